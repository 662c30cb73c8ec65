"""When a unit holds: its event's range and, of what superseded another, from when it speaks on."""

from __future__ import annotations

import numpy as np

from recalld.actors.recall.snapshot import Bools, Columns, Snapshot
from recalld.storage.records import SUPERSEDES, UNKNOWN


def valid_mask(columns: Columns, at: int) -> Bools:
    """Units whose occurred range covers the instant, and those that state none. An open end reaches on."""
    start, end = columns.occurred_start, columns.occurred_end
    begun = (start == UNKNOWN) | (start <= at)
    unended = (end == UNKNOWN) | (end >= at)
    covers: Bools = begun & unended
    return covers


def without_successors(snap: Snapshot, at: int, as_of: int | None) -> Bools:
    """All units but those that took the place of another and speak from later than `at`: until then the other held.

    What was not superseded yet `as_of` then bounds nothing.
    """
    columns = snap.columns
    held = np.ones(snap.n, np.bool_)
    ended = columns.superseded if as_of is None else columns.superseded & (columns.retired <= as_of)
    if not ended.any():
        return held
    # As `holds_since` of a unit (retain/matching.py).
    said = np.where(columns.mentioned == UNKNOWN, columns.recorded, columns.mentioned)
    start = columns.occurred_start
    since = np.where(start == UNKNOWN, said, np.minimum(said, start))
    late = since > at
    if not late.any():
        return held
    for uid in np.flatnonzero(ended).tolist():
        _, others, kinds, _ = snap.edges(uid)
        for other in others[kinds == SUPERSEDES].tolist():
            later = other if (since[other], other) > (since[uid], uid) else uid
            held[later] &= not late[later]
    return held

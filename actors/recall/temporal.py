"""The temporal arm: units whose time overlaps the question's window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recalld.actors.recall.arms import Hits, distinct, top
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import AnyInts, Bools, Columns, Floats, Ints, Snapshot
from recalld.storage.records import UNKNOWN


def spans(columns: Columns, uids: AnyInts | None = None) -> tuple[Ints, Ints]:
    """(start, end) of the units: when it occurred, else when it was said; `UNKNOWN` twice without either."""
    start, end, said = columns.occurred_start, columns.occurred_end, columns.mentioned
    if uids is not None:
        start, end, said = start[uids], end[uids], said[uids]
    first = np.where(start != UNKNOWN, start, np.where(end != UNKNOWN, end, said))
    last = np.where(end != UNKNOWN, end, first)
    return first, np.maximum(first, last)


def closeness(columns: Columns, uids: AnyInts, window: tuple[int, int]) -> tuple[Floats, Bools]:
    """(score, overlaps) of the units: `1 - |mid - mid_q| / (span / 2)`, kept in 0..1, and whether the times meet."""
    first, last = spans(columns, uids)
    begin, end = min(window), max(window)
    half = max(1.0, (end - begin) / 2.0)
    # In float64 from the first step: the sum of two far instants overflows int64.
    middle = (first.astype(np.float64) + last.astype(np.float64)) / 2.0
    distance = np.abs(middle - (float(begin) + float(end)) / 2.0)
    score = np.clip(1.0 - distance / half, 0.0, 1.0).astype(np.float32)
    overlaps = (first != UNKNOWN) & (first <= end) & (last >= begin)
    score[~overlaps] = 0.0
    return score, overlaps


def temporal(
    snap: Snapshot,
    window: tuple[int, int],
    vector: Floats,
    k: int,
    allowed: Bools,
    settings: RecallSettings,
    others: Sequence[AnyInts] = (),
    trust: float = 1.0,
) -> Hits:
    """Units in the window by closeness to its middle, equal ones by cosine; at most k, none below the cosine floor.

    Of more than k units in the window those are looked at that the other arms found (`others`) and those closest to the
    middle; where no other arm ran, those most alike the question. `trust` (0..1) is how far the model knows the query's
    words: what it cannot read it must not veto.
    """
    begin, end = min(window), max(window)
    first, last = spans(snap.columns)
    inside = allowed & (first <= end) & (last >= begin) & (first != UNKNOWN)
    uids = np.flatnonzero(inside)
    if len(uids) == 0:
        return Hits.none()
    floor = settings.temporal_floor if trust > 0.5 and vector.any() else -2.0
    if len(uids) > k:
        if others:
            known = np.concatenate(others)
            closest = uids[top(closeness(snap.columns, uids, window)[0], k)]
            uids = distinct(np.concatenate([known[inside[known]], closest]))
        else:
            uids = snap.semantic(vector, k, inside, floor)[0].astype(np.int64)
            uids = uids[inside[uids]]
    cosine = snap.cosine(uids, vector)
    best = top(cosine, k)
    best = best[cosine[best] >= floor]
    uids, cosine = uids[best], cosine[best]
    score, _ = closeness(snap.columns, uids, window)
    order = np.lexsort((-cosine, -score))
    return Hits(uids[order], score[order])

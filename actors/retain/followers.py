"""Whether a commit has new vectors for every unit that is embedded behind a text that goes or changes its readers.

A unit's vectors carry the text of its predecessor, so they must not outlive what the unit's readers may see of that. A
plan names such followers and the worker embeds them; here a commit finds those that came since, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from recalld.storage.apply import Applier
from recalld.storage.errors import Superseded
from recalld.storage.records import UnitRecord


def check_prepared(
    applier: Applier, uids: Iterable[int], prepared: Container[int], spared: Callable[[UnitRecord], bool]
) -> None:
    """Raise `Superseded` when a unit embedded behind one of `uids` is neither `prepared` (by uid) nor `spared`."""
    for uid in uids:
        for follower in applier.followers(uid):
            unit = None if follower in prepared else applier.unit(follower)
            if unit is not None and unit.predecessor is not None and not spared(unit):
                raise Superseded("A unit was added behind one that changes.")


def check_places(applier: Applier, uids: Iterable[int]) -> None:
    """After all changes: raise `Superseded` when one of `uids` is embedded behind a unit that it must not be."""
    for uid in uids:
        unit = applier.unit(uid)
        if unit is None or unit.predecessor is None:
            continue
        before = applier.unit(unit.predecessor)
        if (
            before is None
            or before.tags != unit.tags
            or (unit.stands and not before.stands)
            or applier.prev_of(unit.uid) != before.uid
        ):
            raise Superseded("The unit that another is to be embedded behind changed.")

"""Which of the units to be written say what a unit of the bank says already: those become mentions of it.

Runs inside the write. One claim is one unit: the same line (case, width, spacing and the punctuation it ends with
aside) from the same speaker, with the same tags, trust, network and event days. A claim that has ended meets itself
again in one of two ways. Said after it ended, it is news, and a unit of its own; otherwise, as when an old
conversation is sent once more, it is one more mention of what has ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from dataclasses import dataclass, field

from recalld.storage.apply import Applier
from recalld.storage.changes import NewUnit
from recalld.storage.mentions import mention_of
from recalld.storage.records import INVALIDATED, SUPERSEDED, MentionRecord, PreparedUnit, UnitRecord


def holds_since(unit: PreparedUnit | UnitRecord | MentionRecord, recorded_at: int) -> int:
    """From when a claim speaks: the start of its event where that lies before it was said, else when it was said.

    So `I lived in Porto in 2020`, said today, is older than `I live in Lyon`, said last year.
    """
    said = recorded_at if unit.mentioned_at is None else unit.mentioned_at
    return said if unit.occurred_start is None else min(said, unit.occurred_start)


@dataclass(slots=True)
class Matcher:
    """The claims of one write. `going` are uids whose place in a document's text this write takes away."""

    applier: Applier
    now: int
    claims: frozenset[bytes]
    """All claims of the request."""
    going: Set[int] = frozenset()
    mentions: list[MentionRecord] = field(default_factory=list)
    matched: dict[str, str] = field(default_factory=dict)
    """Id of a prepared unit -> id of the unit that it mentions or continues."""
    continued: set[int] = field(default_factory=set)
    """uids of going units that a unit of the write continues under the same id."""
    _new: dict[bytes, tuple[str, int]] = field(default_factory=dict)

    def find(self, unit: PreparedUnit) -> tuple[str, int] | UnitRecord | None:
        """(id, uid) of a new unit of this write with the same claim, or the stored one, or None."""
        if not unit.claim:
            return None
        new = self._new.get(unit.claim)
        if new is not None:
            return new
        held = self.applier.claimed(unit.claim)
        if held is None or not held.stands:
            return None
        return None if self._is_news(unit, held) else held

    def _is_news(self, unit: PreparedUnit, held: UnitRecord) -> bool:
        if held.state == INVALIDATED:
            return not unit.anchor_assumed and _said(unit, self.now) > (held.retired_at or 0)
        if held.state != SUPERSEDED:
            return False
        by = self.applier.current(held.superseded_by)
        if by is None:
            return True
        if unit.anchor_assumed:
            # Nobody said when: a conversation that is sent again says what took its place as well.
            return self.claims.isdisjoint(by.claims)
        return holds_since(unit, self.now) > holds_since(by, by.recorded_at)

    def keep(self, new: NewUnit) -> None:
        """A unit is written: what says the same later in the write mentions it."""
        if new.unit.claim:
            self._new[new.unit.claim] = (new.unit.id, new.uid)

    def add(self, unit: PreparedUnit, unit_id: str, place: MentionRecord) -> MentionRecord:
        """One more mention of a unit, at `place`, whose number is drawn here."""
        number = self.applier.allocate("mention")
        made = mention_of(unit, dataclasses.replace(place, unit=unit_id, number=number))
        self.mentions.append(made)
        self.matched[unit.id] = unit_id
        return made


def _said(unit: PreparedUnit, now: int) -> int:
    return now if unit.mentioned_at is None else unit.mentioned_at

"""What moved the confidence of opinions: rows and their reads.

An opinion is a unit; its confidence is what it began with, moved by each event in turn and kept within 0 and 1
(`replay`). Rows name units by id, so they outlive an edit. An opinion that nothing ever moved has no rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.records import UnitRecord

REINFORCE, WEAKEN, CONTRADICT, NEUTRAL, SET = "reinforce", "weaken", "contradict", "neutral", "set"
RETAIN, REFLECT, HAND = "retain", "reflect", "hand"
BELOW_FLOOR = "confidence below the floor"
"""Why an opinion was retired that nobody retired by hand."""
JUDGEMENTS = (REINFORCE, WEAKEN, CONTRADICT, NEUTRAL)
STEPS = {REINFORCE: 1.0, WEAKEN: -1.0, CONTRADICT: -2.0, NEUTRAL: 0.0}
"""By how many times the bank's step a judgement moves the confidence."""
DIGITS = 9
"""Decimals a confidence is kept to: sums of steps stay the numbers that people write."""


@dataclass(frozen=True, slots=True)
class BeliefRecord:
    """An opinion that has events. It began with the confidence `base`; below `floor` it is retired.

    `made_by` says who formed it: `retain`, `reflect` or `hand`.
    """

    opinion: str
    base: float
    floor: float
    next_event: int = 1
    made_by: str = "retain"


@dataclass(frozen=True, slots=True)
class BeliefEvent:
    """One judgement of a unit, or (`set`) a confidence given by hand: the `value` it was set to.

    `by` is `rules`, `model`, `nli`, `reflect` or `hand`; `reason` a word of the code, or a sentence of whoever judged.
    `withdrawn_at`: the unit was invalidated, or left its document, and counts no more from then on.
    """

    opinion: str
    number: int
    judgement: str
    at: int
    change: float = 0.0
    value: float | None = None
    unit: str = ""
    reason: str = ""
    by: str = "rules"
    withdrawn_at: int | None = None
    founds: bool = False
    """The opinion was formed on it: it moves nothing, and an opinion that `reflect` formed goes with the last one."""

    def counts(self, at: int | None) -> bool:
        """Whether it counted at an instant; None: now."""
        if at is None:
            return self.withdrawn_at is None
        return self.at <= at and (self.withdrawn_at is None or self.withdrawn_at > at)


def within(confidence: float) -> float:
    return round(min(1.0, max(0.0, confidence)), DIGITS)


def step(confidence: float, event: BeliefEvent) -> float:
    """The confidence after an event."""
    return within(confidence + event.change) if event.value is None else within(event.value)


def replay(base: float, events: Iterable[BeliefEvent], at: int | None = None) -> float:
    """The confidence after the events that count, in their order."""
    confidence = within(base)
    for event in events:
        if event.counts(at):
            confidence = step(confidence, event)
    return confidence


# -- reads -----------------------------------------------------------------------------------------------------------


def any_beliefs(txn: ReadTxn, bank: int) -> bool:
    return next(iter(txn.scan(keys.table(bank, keys.BELIEF))), None) is not None


def belief(txn: ReadTxn, bank: int, opinion: str) -> BeliefRecord | None:
    value = txn.get(keys.named(bank, keys.BELIEF, opinion))
    return None if value is None else codec.decode(BeliefRecord, value)


def events(txn: ReadTxn, bank: int, opinion: str) -> list[BeliefEvent]:
    """The events of an opinion, in order."""
    return [codec.decode(BeliefEvent, value) for _, value in txn.scan(keys.named(bank, keys.BELIEF_EVENT, opinion))]


def judged(txn: ReadTxn, bank: int, opinion: str, unit: str) -> bool:
    """Whether a unit was judged for an opinion already."""
    return txn.get(keys.believed_by(bank, unit, opinion)) is not None


def moved_by(txn: ReadTxn, bank: int, unit: str) -> list[tuple[str, int]]:
    """(opinion id, event number) of what a unit was judged for."""
    found = []
    for _, value in txn.scan(keys.named(bank, keys.BELIEVED_BY, unit)):
        opinion, number = codec.unpack(value)
        found.append((opinion, number))
    return found


def confidence_at(txn: ReadTxn, bank: int, opinion: UnitRecord, at: int | None) -> float | None:
    """The confidence an opinion had at an instant; None: has now."""
    if at is None:
        return opinion.confidence
    held = belief(txn, bank, opinion.id)
    return opinion.confidence if held is None else replay(held.base, events(txn, bank, opinion.id), at)


def withdrawn(unit: UnitRecord) -> int | None:
    """Since when a unit is no evidence any more: it was invalidated, or its text left its document.

    One that was superseded was true in its time, and stays.
    """
    return unit.retired_at if unit.state in ("valid", "invalidated") else None

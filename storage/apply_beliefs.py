"""Carrying out what happens to opinions: judgements come, evidence goes, and the confidence follows.

The confidence that stands in an opinion's record and columns is always the replay of its events (`beliefs.replay`).
Whatever ends, brings back or erases a unit tells `_touch_belief`; `settle_beliefs` then counts again what it moved.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any

from recalld.storage import audit, beliefs, codec, keys
from recalld.storage.audit import AuditRecord
from recalld.storage.beliefs import BELOW_FLOOR, REFLECT, BeliefEvent, BeliefRecord
from recalld.storage.changes import BeliefMove, BeliefsMoved, Delta, End, UnitsEnded, UnitsErased, UnitsRestored
from recalld.storage.columns import COLUMN_ROWS, ColumnRow
from recalld.storage.environment import WriteTxn
from recalld.storage.records import RETIRED, UnitRecord

ABOVE_FLOOR = "confidence not below the floor any more"
BASE = 0.5
"""Where an opinion begins that states no confidence."""
_SPACE = uuid.UUID("0b3a1df2-6a04-4b0e-8c58-54f3b0a1c7de")


class BeliefChanges:
    """The part of an `Applier` that knows opinions."""

    txn: WriteTxn
    bank: int
    delta: Delta
    unit: Callable[[int], UnitRecord | None]
    uid_of: Callable[[str], int | None]
    _column: Callable[[int], ColumnRow]
    _put_unit: Callable[..., None]
    _end: Callable[[UnitsEnded], None]
    _restore: Callable[[UnitsRestored], None]
    _erase: Callable[[UnitsErased], None]
    _touched: set[str]
    """Ids of units whose rows changed since beliefs were settled."""
    _told: list[AuditRecord]
    _counted: int
    _at: int
    """When the change under way happens."""
    _beliefs: bool | None
    """Whether any opinion of the bank has rows; None until somebody looks."""

    def _touch_belief(self, record: UnitRecord) -> None:
        """A unit ended, came back or is gone. Costs one look at the store where a bank has no moved opinions."""
        if self._beliefs is None:
            self._beliefs = beliefs.any_beliefs(self.txn, self.bank)
        if self._beliefs:
            self._touched.add(record.id)

    # -- judgements ------------------------------------------------------------------------------------------------

    def _believe(self, change: BeliefsMoved) -> None:
        """Store judgements; a unit that was judged for an opinion before is passed over, and so is one that ended."""
        self.settle_beliefs()
        held: dict[str, BeliefRecord] = {}
        found: dict[str, UnitRecord] = {}
        now: dict[str, float] = {}
        for opinion_id in (*change.formed, *(move.opinion for move in change.moves)):
            opinion = None if opinion_id in held else self._current(opinion_id)
            if opinion is None:
                continue
            known = beliefs.belief(self.txn, self.bank, opinion_id)
            base = now[opinion_id] = beliefs.within(BASE if opinion.confidence is None else opinion.confidence)
            known = known or BeliefRecord(opinion_id, base, change.floor, made_by=change.made_by)
            found[opinion_id], held[opinion_id] = opinion, dataclasses.replace(known, floor=change.floor)
        there = {unit: self._is_evidence(unit) for unit in {move.unit for move in change.moves} if unit}
        for move in change.moves:
            if move.opinion not in held:
                continue
            if move.unit:
                ended = found[move.opinion].retired_at is not None
                if ended or not there[move.unit] or beliefs.judged(self.txn, self.bank, move.opinion, move.unit):
                    continue
            now[move.opinion] = self._judge(change, move, held, now[move.opinion])
        for opinion_id, record in held.items():
            self.txn.put(keys.named(self.bank, keys.BELIEF, opinion_id), codec.encode(record))
        if held:
            self._beliefs = True
            # The newest event comes last, so what stood before needs no replay.
            self._set_confidences([(found[one], record, now[one]) for one, record in held.items()])
        self._write_told()

    def _current(self, unit_id: str) -> UnitRecord | None:
        uid = self.uid_of(unit_id)
        return None if uid is None else self.unit(uid)

    def _is_evidence(self, unit_id: str) -> bool:
        unit = self._current(unit_id)
        return unit is not None and beliefs.withdrawn(unit) is None

    def _judge(self, change: BeliefsMoved, move: BeliefMove, held: dict[str, BeliefRecord], before: float) -> float:
        number = held[move.opinion].next_event
        held[move.opinion] = dataclasses.replace(held[move.opinion], next_event=number + 1)
        event = BeliefEvent(
            move.opinion,
            number,
            move.judgement,
            change.at,
            0.0 if move.founds else round(beliefs.STEPS.get(move.judgement, 0.0) * change.step, beliefs.DIGITS),
            move.value,
            move.unit,
            move.reason,
            change.by,
            founds=move.founds,
        )
        self.txn.put(keys.belief_event(self.bank, move.opinion, number), codec.encode(event))
        if move.unit:
            key = keys.believed_by(self.bank, move.unit, move.opinion)
            self.txn.put(key, codec.pack([move.opinion, number]))
        after = beliefs.step(before, event)
        told: dict[str, Any] = {"opinion_id": move.opinion, "judgement": move.judgement, "by": change.by}
        told |= {"unit_id": move.unit} if move.unit else {}
        # A model's own words may repeat a text that will be erased; they stand in the event alone.
        told |= {"reason": move.reason} if change.by == "rules" else {}
        self._tell("opinion_judged", {**told, "before": before, "after": after})
        return after

    # -- what follows ----------------------------------------------------------------------------------------------

    def settle_beliefs(self) -> None:
        """Count again what touched units moved; rows of those that are gone go."""
        while self._touched:
            touched, self._touched = self._touched, set()
            moved: set[str] = set()
            for unit_id in sorted(touched):
                if beliefs.belief(self.txn, self.bank, unit_id) is not None:
                    if self.uid_of(unit_id) is None:
                        self._forget_opinion(unit_id)
                    else:
                        moved.add(unit_id)
                moved |= self._evidence_changed(unit_id)
            self._recount(moved)
        self._write_told()

    def _evidence_changed(self, unit_id: str) -> set[str]:
        """Opinions for which a unit counts otherwise than before."""
        uid = self.uid_of(unit_id)
        unit = None if uid is None else self.unit(uid)
        until = None if unit is None else beliefs.withdrawn(unit)
        moved: set[str] = set()
        for opinion, number in beliefs.moved_by(self.txn, self.bank, unit_id):
            key = keys.belief_event(self.bank, opinion, number)
            value = self.txn.get(key)
            if value is None:
                continue
            event = codec.decode(BeliefEvent, value)
            if unit is None:
                self.txn.delete(key)
                self.txn.delete(keys.believed_by(self.bank, unit_id, opinion))
                if event.founds and self._unfounded(opinion):
                    continue
            elif event.withdrawn_at != until:
                self.txn.put(key, codec.encode(dataclasses.replace(event, withdrawn_at=until)))
            else:
                continue
            moved.add(opinion)
        return moved

    def _unfounded(self, opinion: str) -> bool:
        """Erase an opinion that a reflect formed on memories of which none is left."""
        held = beliefs.belief(self.txn, self.bank, opinion)
        if held is None or held.made_by != REFLECT:
            return False
        if any(event.unit for event in beliefs.events(self.txn, self.bank, opinion)):
            return False
        uid = self.uid_of(opinion)
        if uid is None:
            return False
        self._tell("opinion_erased", {"opinion_id": opinion, "reason": "what it was formed on is erased"})
        self._erase(UnitsErased((uid,), self._at))
        return True

    def _forget_opinion(self, opinion: str) -> None:
        for event in beliefs.events(self.txn, self.bank, opinion):
            if event.unit:
                self.txn.delete(keys.believed_by(self.bank, event.unit, opinion))
        self.txn.delete_prefix(keys.named(self.bank, keys.BELIEF_EVENT, opinion))
        self.txn.delete(keys.named(self.bank, keys.BELIEF, opinion))

    def _recount(self, opinions: set[str]) -> None:
        """Set the confidence of opinions to the replay of their events."""
        found: list[tuple[UnitRecord, BeliefRecord, float]] = []
        for opinion_id in sorted(opinions):
            held, opinion = beliefs.belief(self.txn, self.bank, opinion_id), self._current(opinion_id)
            if held is not None and opinion is not None:
                confidence = beliefs.replay(held.base, beliefs.events(self.txn, self.bank, opinion_id))
                found.append((opinion, held, confidence))
        for opinion_id, before, after in self._set_confidences(found):
            self._tell("opinion_moved", {"opinion_id": opinion_id, "before": before, "after": after, "by": "replay"})

    def _set_confidences(
        self, found: list[tuple[UnitRecord, BeliefRecord, float]]
    ) -> list[tuple[str, float | None, float]]:
        """Write confidences; end and bring back what crossed the floor. (id, before, after) of what changed."""
        rows: dict[int, bytes] = {}
        changed: list[tuple[str, float | None, float]] = []
        ends: list[int] = []
        back: list[int] = []
        for record, held, confidence in found:
            if confidence != record.confidence:
                changed.append((record.id, record.confidence, confidence))
                self._put_unit(dataclasses.replace(record, confidence=confidence, updated_at=self._at))
                rows[record.uid] = self._column(record.uid)._replace(confidence=confidence).pack()
            if record.retired_at is None and confidence < held.floor:
                ends.append(record.uid)
                self._tell("opinion_retired", {"opinion_id": record.id, "reason": BELOW_FLOOR})
            elif record.state == RETIRED and record.reason == BELOW_FLOOR and confidence >= held.floor:
                back.append(record.uid)
                self._tell("opinion_restored", {"opinion_id": record.id, "reason": ABOVE_FLOOR})
        if rows:
            COLUMN_ROWS.replace(self.txn, self.bank, rows)
            self.delta.add("move_beliefs", list(rows), [after for _, _, after in changed])
        if ends:
            self._end(UnitsEnded(tuple(End(uid, RETIRED, BELOW_FLOOR) for uid in ends), self._at))
        if back:
            self._restore(UnitsRestored(tuple(back), self._at))
        return changed

    def _tell(self, action: str, metadata: dict[str, Any]) -> None:
        """An entry of the audit log, its id made of what it says and how many were told before it in this write."""
        self._counted += 1
        named = f"{self.bank} {self._at} {self._counted} {action} {sorted(metadata.items())}"
        self._told.append(AuditRecord(str(uuid.uuid5(_SPACE, named)), action, "system", self._at, self._at, metadata))

    def _write_told(self) -> None:
        if self._told:
            audit.record(self.txn, self.bank, tuple(self._told), 0)
            self._told.clear()

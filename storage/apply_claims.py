"""Carrying out what happens to claims: mentions that come and go, units that end and come back."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from recalld.storage import codec, edges, keys, mentions
from recalld.storage.changes import (
    Delta,
    End,
    MentionsAdded,
    MentionsMoved,
    MentionsRemoved,
    UnitsEnded,
    UnitsLinked,
    UnitsRestored,
)
from recalld.storage.columns import COLUMN_ROWS, LIVE, SUPERSEDED_ROW, ColumnRow
from recalld.storage.environment import WriteTxn
from recalld.storage.groups import number_key
from recalld.storage.names import Names, folded
from recalld.storage.records import NEVER, SUPERSEDED, SUPERSEDES, UNKNOWN, VALID, MentionRecord, UnitRecord

PROOF_MAX = 65_535


class ClaimChanges:
    """The part of an `Applier` that knows claims, mentions and ends."""

    txn: WriteTxn
    bank: int
    delta: Delta
    _names: Names
    _live: list[int]
    unit: Callable[[int], UnitRecord | None]
    _column: Callable[[int], ColumnRow]
    _put_unit: Callable[..., None]
    _link: Callable[..., None]
    _join_set: Callable[[int, bytes, list[int]], None]
    _leave_set: Callable[[int, bytes, int], bool]
    _count_links: Callable[[dict[str, int], dict[str, int]], None]
    _touch_belief: Callable[[UnitRecord], None]
    _unsettle: Callable[[UnitRecord], None]
    _end_built_on: Callable[[list[int], int], None]
    _drop_sources: Callable[[UnitRecord], None]

    # -- reads that commits need -----------------------------------------------------------------------------------

    def uid_of(self, unit_id: str) -> int | None:
        """The uid a unit has now."""
        return mentions.uid_of(self.txn, self.bank, unit_id)

    def current(self, unit_id: str) -> UnitRecord | None:
        """A unit by its id, as it is now."""
        uid = self.uid_of(unit_id)
        return None if uid is None else self.unit(uid)

    def claimed(self, claim: bytes) -> UnitRecord | None:
        """The unit that carries a claim."""
        unit_id = mentions.unit_of_claim(self.txn, self.bank, claim)
        return None if unit_id is None else self.current(unit_id)

    def mentions_of(self, unit_id: str) -> list[MentionRecord]:
        return mentions.mentions_of(self.txn, self.bank, unit_id)

    # -- rows beside a unit ----------------------------------------------------------------------------------------

    def _put_claims(self, record: UnitRecord) -> UnitRecord:
        """The unit carries its claims from now on, but for those that another current unit carries."""
        name = record.id.encode()
        held = {claim: self.claimed(claim) for claim in record.claims}
        own = [claim for claim, by in held.items() if by is None or by.id == record.id or by.retired_at is not None]
        if len(own) < len(record.claims):
            record = dataclasses.replace(record, claims=tuple(own))
        for claim in own:
            self.txn.put(keys.raw(self.bank, keys.CLAIM, claim), name)
        if record.attribute and record.subject:
            self.txn.put(keys.about(self.bank, folded(record.subject), record.attribute, record.uid), b"")
        if record.superseded_by:
            self.txn.put(keys.ended_by(self.bank, record.superseded_by, record.id), name)
        return record

    def _reclaim(self, before: UnitRecord, record: UnitRecord) -> UnitRecord:
        """The unit changed in what makes its claim; what it said before an edit, nobody can find under the new tags."""
        if not before.claims:
            return record
        if self.uid_of(record.id) != record.uid:
            return dataclasses.replace(record, claims=())
        self._drop_claims(before)
        return self._put_claims(dataclasses.replace(record, claims=(mentions.claim_of(record),)))

    def _drop_claims(self, record: UnitRecord) -> None:
        """The unit carries its claims no more, unless one that took them over does."""
        if self.uid_of(record.id) != record.uid:
            return
        for claim in record.claims:
            key = keys.raw(self.bank, keys.CLAIM, claim)
            if bytes(self.txn.get(key) or b"") == record.id.encode():
                self.txn.delete(key)

    def _drop_unit_rows(self, record: UnitRecord) -> None:
        """The rows beside a unit that is erased."""
        self._drop_claims(record)
        self._touch_belief(record)
        self._drop_sources(record)
        if record.attribute and record.subject:
            self.txn.delete(keys.about(self.bank, folded(record.subject), record.attribute, record.uid))
        if self.uid_of(record.id) == record.uid:
            if record.superseded_by:
                self.txn.delete(keys.ended_by(self.bank, record.superseded_by, record.id))
            key = keys.named(self.bank, keys.UNIT_ID, record.id)
            if record.former is not None and self.unit(record.former) is not None:
                # What is read as of before has the version before it, under the same id.
                self.txn.put(key, record.former.to_bytes(4, "little"))
            else:
                self.txn.delete(key)
        else:
            self._skip_version(record)

    def _skip_version(self, record: UnitRecord) -> None:
        """A version that is erased between others: the next one continues the one before it."""
        newer = self.current(record.id)
        while newer is not None and newer.former is not None and newer.former != record.uid:
            newer = self.unit(newer.former)
        if newer is not None and newer.former == record.uid:
            self._put_unit(dataclasses.replace(newer, former=record.former))

    # -- mentions --------------------------------------------------------------------------------------------------

    def _add_mentions(self, change: MentionsAdded) -> None:
        for one in change.mentions:
            self.txn.put(keys.mention(self.bank, one.unit, one.number), codec.encode(one))
        numbers: dict[int, list[int]] = {}
        for one in change.mentions:
            numbers.setdefault(one.document, []).append(one.number)
        for document, said in numbers.items():
            self._join_set(keys.SET_MENTION, number_key(document), said)
        self._prove(Counter(one.unit for one in change.mentions), change.at)

    def _remove_mentions(self, change: MentionsRemoved) -> None:
        gone: Counter[str] = Counter()
        for unit_id, number in change.mentions:
            held = mentions.mention(self.txn, self.bank, unit_id, number)
            if held is not None:
                self.txn.delete(keys.mention(self.bank, unit_id, number))
                self._leave_set(keys.SET_MENTION, number_key(held.document), number)
                gone[unit_id] -= 1
        self._prove(gone, change.at)

    def _prove(self, changes: Counter[str], at: int) -> None:
        """Units have more or fewer mentions than before."""
        rows: dict[int, bytes] = {}
        proofs: list[int] = []
        for unit_id, by in changes.items():
            record = self.current(unit_id)
            if record is None or not record.stands:
                continue  # the version that had the mentions is erased in this write, and one from before it is left
            count = record.proof_count + by
            self._put_unit(dataclasses.replace(record, proof_count=count, updated_at=at))
            shown = min(max(count, 0), PROOF_MAX)
            rows[record.uid] = self._column(record.uid)._replace(proof=shown).pack()
            proofs.append(shown)
        if rows:
            COLUMN_ROWS.replace(self.txn, self.bank, rows)
            self.delta.add("prove_units", list(rows), proofs)

    def _move_mentions(self, change: MentionsMoved) -> None:
        for (unit_id, number), (index, chunk_id) in change.places.items():
            held = mentions.mention(self.txn, self.bank, unit_id, number)
            if held is not None:
                moved = dataclasses.replace(held, chunk_index=index, chunk_id=chunk_id)
                self.txn.put(keys.mention(self.bank, unit_id, number), codec.encode(moved))

    # -- ends ------------------------------------------------------------------------------------------------------

    def _end(self, change: UnitsEnded) -> None:
        rows: dict[int, bytes] = {}
        untils: list[int] = []
        for end in change.ends:
            record, row = self.unit(end.uid), self._column(end.uid)
            if record is None or not record.stands:
                continue
            if row.flags & LIVE:
                self._live[row.network] -= 1
                self._names.forget_mentions(record)
                self._unsettle(record)
            ended = self._ended(record, end, change.at)
            self._put_unit(ended)
            flags = row.flags & ~LIVE & ~SUPERSEDED_ROW | (SUPERSEDED_ROW if end.state == SUPERSEDED else 0)
            until = row.occurred_end
            if until == UNKNOWN and end.until is not None:
                until = end.until
            row = row._replace(flags=flags, retired=change.at, occurred_end=until)
            rows[end.uid] = row.pack()
            untils.append(row.occurred_end)
        if rows:
            COLUMN_ROWS.replace(self.txn, self.bank, rows)
            superseded = [bool(ColumnRow.unpack(row).flags & SUPERSEDED_ROW) for row in rows.values()]
            self.delta.add("end_units", list(rows), change.at, superseded, untils)
            self._end_built_on(list(rows), change.at)

    def _link_stored(self, change: UnitsLinked) -> None:
        links: dict[int, edges.Edges] = {}
        weights = [weight for _, weight in change.others]
        self._link(links, change.uid, [other for other, _ in change.others], change.kind, weights)
        for uid, value in links.items():
            self.txn.put(keys.number(self.bank, keys.EDGES, uid), edges.encode(value))

    def _part(self, record: UnitRecord) -> None:
        """The unit is no longer superseded: the row that says so goes, and the link."""
        if not record.superseded_by:
            return
        self.txn.delete(keys.ended_by(self.bank, record.superseded_by, record.id))
        by = self.uid_of(record.superseded_by)
        for uid, other in () if by is None else ((record.uid, by), (by, record.uid)):
            key = keys.number(self.bank, keys.EDGES, uid)
            value = self.txn.get(key)
            if value is not None:
                held = edges.decode(value)
                kept = edges.without_kind(held, other, SUPERSEDES)
                self._count_links(edges.count_kinds(held), edges.count_kinds(kept))
                self.txn.put(key, edges.encode(kept))

    def _ended(self, record: UnitRecord, end: End, at: int) -> UnitRecord:
        self._touch_belief(record)
        self._part(record)
        if end.by:
            self.txn.put(keys.ended_by(self.bank, end.by, record.id), record.id.encode())
        return dataclasses.replace(
            record, retired_at=at, state=end.state, reason=end.reason, superseded_by=end.by, updated_at=at
        )

    def _replaced(self, record: UnitRecord, row: ColumnRow) -> ColumnRow:
        """A unit that was superseded or invalidated leaves its document's text as well; its new columns."""
        self._drop_claims(record)
        self._part(record)
        self._put_unit(dataclasses.replace(record, state=VALID, superseded_by="", reason="", chunk_id=None))
        return row._replace(flags=row.flags & ~SUPERSEDED_ROW)

    def _restore(self, change: UnitsRestored) -> None:
        rows: dict[int, bytes] = {}
        ends: list[int] = []
        for uid in change.uids:
            record, row = self.unit(uid), self._column(uid)
            if record is None or row.flags & LIVE or not record.stands or uid in rows:
                continue
            self._touch_belief(record)
            self._part(record)
            current = dataclasses.replace(
                record, retired_at=None, state=VALID, reason="", superseded_by="", updated_at=change.at
            )
            self._put_unit(self._put_claims(current))
            end = UNKNOWN if record.occurred_end is None else record.occurred_end
            flags = row.flags & ~SUPERSEDED_ROW | LIVE
            rows[uid] = row._replace(flags=flags, retired=NEVER, occurred_end=end).pack()
            ends.append(end)
            self._live[row.network] += 1
            self._names.count_mentions(record)
        if rows:
            COLUMN_ROWS.replace(self.txn, self.bank, rows)
            self.delta.add("restore_units", list(rows), ends)


def inherited(claim: bytes, former: UnitRecord | None, left: UnitRecord | None) -> dict[str, Any]:
    """What a unit has from the version before it; its claims are its own, then those that one had.

    That version may have been erased in this very write: `left` is the newest one that is still there.
    """
    own = (claim,) if claim else ()
    if former is None:
        return {"claims": own}
    claims = tuple(dict.fromkeys((*own, *former.claims)))
    return {"claims": claims, "former": None if left is None else left.uid, "edited_at": former.edited_at}

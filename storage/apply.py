"""Carrying out changes: the only code that writes a bank's tables.

An `Applier` lives inside one write function. It keeps the bank's counters and the open entity records in hand, writes
them back at `finish`, appends to the change log, and gathers the `Delta` that the bank's caches follow after the flush.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from pyroaring import BitMap

from recalld.storage import audit, codec, edges, keys, ledger_rows, page_rows, postings, regroup
from recalld.storage.apply_beliefs import BeliefChanges
from recalld.storage.apply_claims import PROOF_MAX, ClaimChanges, inherited
from recalld.storage.apply_observations import ObservationChanges
from recalld.storage.apply_places import PlaceChanges, tagset_key
from recalld.storage.apply_records import RecordChanges
from recalld.storage.changes import (
    Audited,
    BankErased,
    BankStored,
    BeliefsMoved,
    CallsRecorded,
    Change,
    Delta,
    DocumentErased,
    DocumentStored,
    EntitiesChanged,
    EntitiesRestored,
    FactsConsolidated,
    MentionsAdded,
    MentionsMoved,
    MentionsRemoved,
    OperationErased,
    OperationStored,
    UnitsAdded,
    UnitsEnded,
    UnitsErased,
    UnitsLinked,
    UnitsMoved,
    UnitsReembedded,
    UnitsRelinked,
    UnitsRestored,
    UnitsRetagged,
    UnitsRetired,
    summary,
)
from recalld.storage.columns import COLUMN_DTYPE, COLUMN_ROWS, EXISTS, LIVE, QUESTION, ColumnRow
from recalld.storage.environment import ReadTxn, WriteTxn
from recalld.storage.names import Names, number_key
from recalld.storage.pages import PagesChanged
from recalld.storage.records import (
    CAUSED_BY,
    CAUSES,
    SEMANTIC,
    UNKNOWN,
    BankCounters,
    UnitRecord,
)
from recalld.storage.resolution import entities_of
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS, pack_tokens, pack_vectors, token_ids_of

_U32 = struct.Struct("<I")


def read_counters(txn: ReadTxn, bank: int) -> BankCounters:
    value = txn.get(keys.table(bank, keys.COUNTERS))
    return BankCounters() if value is None else codec.decode(BankCounters, value)


class Applier(ClaimChanges, BeliefChanges, ObservationChanges, PlaceChanges, RecordChanges):
    """Applies changes to one bank within one write transaction. Call `finish` once at the end."""

    def __init__(self, txn: WriteTxn, bank: int, next_sequence: Callable[[], int], new_id: Callable[[], str]) -> None:
        self.txn = txn
        self.bank = bank
        self.delta = Delta(bank)
        self._next_sequence = next_sequence
        self._counters = read_counters(txn, bank)
        self._numbers: dict[str, int] = {}
        self._live = list(self._counters.live)
        self._links: dict[str, int] = dict(self._counters.edges)
        self.names = self._names = Names(txn, bank, self.allocate, new_id, self.delta)
        self._documents = 0
        self._erased = False
        self._touched: set[str] = set()
        self._told: list[audit.AuditRecord] = []
        self._counted = 0
        self._beliefs: bool | None = None
        self._at = 0

    # -- numbers ---------------------------------------------------------------------------------------------------

    def allocate(self, what: str, count: int = 1) -> int:
        """The first of `count` new numbers of `uid`, `document`, `entity`, `speaker` or `thread`; never given twice."""
        name = f"next_{what}"
        first = self._numbers.setdefault(name, getattr(self._counters, name))
        self._numbers[name] = first + count
        return first

    def thread_of(self, uid: int) -> int:
        return self._column(uid).thread

    def prev_of(self, uid: int) -> int:
        return self._column(uid).prev

    def is_live(self, uid: int) -> bool:
        return bool(self._column(uid).flags & LIVE)

    @property
    def erased(self) -> bool:
        """The bank itself was erased in this write."""
        return self._erased

    def touch(self, at: int, new_document: bool = False) -> None:
        """The write changes content at `at`: it moves the bank's last write, and its last document if one is new."""
        self._numbers["last_write_at"] = at
        if new_document:
            self._numbers["last_document_at"] = at

    def _column(self, uid: int) -> ColumnRow:
        return ColumnRow.unpack(COLUMN_ROWS.get(self.txn, self.bank, uid))

    def unit(self, uid: int) -> UnitRecord | None:
        value = self.txn.get(keys.number(self.bank, keys.UNIT, uid))
        return None if value is None else codec.decode(UnitRecord, value)

    # -- changes ---------------------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Carry out one change and log it."""
        self._at = getattr(change, "at", self._at)
        match change:
            case UnitsAdded():
                self._add(change)
            case UnitsRetired():
                self._retire(change)
            case UnitsEnded():
                self._end(change)
            case UnitsRestored():
                self._restore(change)
            case UnitsLinked():
                self._link_stored(change)
            case MentionsAdded():
                self._add_mentions(change)
            case MentionsRemoved():
                self._remove_mentions(change)
            case MentionsMoved():
                self._move_mentions(change)
            case Audited():
                audit.record(self.txn, self.bank, change.entries, change.keep_from)
            case UnitsErased():
                self._erase(change)
            case FactsConsolidated():
                self._consolidate(change)
            case BeliefsMoved():
                self._believe(change)
            case UnitsReembedded():
                self._reembed(change)
            case UnitsRelinked():
                self._relink(change.prev)
            case UnitsMoved():
                self._move(change)
            case UnitsRetagged():
                self._retag(change)
            case DocumentStored():
                self._store_document(change)
            case DocumentErased():
                self._erase_document(change)
            case BankStored():
                self.txn.put(keys.table(self.bank, keys.BANK), codec.encode(change.record))
                self.delta.add("set_record", change.record)
            case BankErased():
                self._erase_bank()
            case OperationStored():
                self._store_operation(change)
            case OperationErased():
                self._erase_operation(change)
            case PagesChanged():
                page_rows.write(self.txn, self.bank, change)
            case CallsRecorded():
                ledger_rows.record_calls(self.txn, self.bank, change)
            case EntitiesChanged():
                regroup.change(self, self._names, change)
            case EntitiesRestored():
                regroup.restore(self, self._names, change)
        sequence = self._next_sequence()
        self.txn.put(keys.change(sequence), codec.pack({"b": self.bank, **summary(change)}))

    def finish(self) -> Delta:
        """Write back counters and entities."""
        if self._erased:
            return self.delta
        self.settle_beliefs()
        self._names.finish()
        fields: dict[str, Any] = {
            **self._numbers,
            "live": tuple(self._live),
            "edges": self._links,
            "documents": self._counters.documents + self._documents,
            "entities": self._counters.entities + self._names.created,
        }
        counters = dataclasses.replace(self._counters, **fields)
        if counters != self._counters:
            self.txn.put(keys.table(self.bank, keys.COUNTERS), codec.encode(counters))
        return self.delta

    # -- units -----------------------------------------------------------------------------------------------------

    def _add(self, change: UnitsAdded) -> None:
        if not change.units:
            return
        first = change.units[0].uid
        columns, vectors, tokens = [], [], []
        terms: dict[str, tuple[list[int], list[int]]] = {}
        members: dict[tuple[int, bytes], list[int]] = {}
        token_counts: dict[int, int] = {}
        links: dict[int, edges.Edges] = {}
        for new in change.units:
            unit, uid = new.unit, new.uid
            numbers = new.entities
            if numbers is None:
                numbers = entities_of(self._names, unit.entities, unit.mentioned_at, uid, unit.aliases)
            self._names.renew(unit.id, uid)
            speaker = self._names.speaker(unit.speaker) if unit.speaker else 0
            record = UnitRecord(
                uid=uid,
                id=unit.id,
                text=unit.text,
                network=unit.network,
                context=unit.context,
                speaker=unit.speaker,
                entities=numbers,
                occurred_start=unit.occurred_start,
                occurred_end=unit.occurred_end,
                mentioned_at=unit.mentioned_at,
                recorded_at=change.at if new.recorded_at is None else new.recorded_at,
                metadata=unit.metadata,
                tags=tuple(sorted(set(unit.tags))),
                document=new.document,
                document_id=new.document_id or None,
                chunk_index=new.chunk_index,
                chunk_id=new.chunk_id or None,
                tokens=unit.tokens,
                trust=unit.trust,
                risks=unit.risks,
                confidence=unit.confidence,
                anchor_assumed=unit.anchor_assumed,
                predecessor=new.predecessor,
                updated_at=change.at,
                undocumented=new.undocumented,
                proof_count=new.proof,
                sources=new.sources,
                subject=unit.subject,
                attribute=unit.attribute,
                value=unit.value,
                polarity=unit.polarity,
                **inherited(unit.claim, new.former, None if new.former is None else self.current(unit.id)),
            )
            self._put_unit(self._put_claims(record), new=True)
            if new.former is not None:
                self._touch_belief(record)
            self.txn.put(keys.named(self.bank, keys.UNIT_ID, unit.id), _U32.pack(uid))
            columns.append(
                ColumnRow(
                    flags=EXISTS | LIVE | (QUESTION if unit.question else 0),
                    network=unit.network,
                    document=new.document,
                    thread=new.thread,
                    speaker=speaker,
                    prev=new.prev,
                    length=sum(frequency for _, frequency in unit.terms),
                    tokens=unit.tokens,
                    confidence=float("nan") if unit.confidence is None else unit.confidence,
                    occurred_start=_instant(unit.occurred_start),
                    occurred_end=_instant(unit.occurred_end),
                    mentioned=_instant(unit.mentioned_at),
                    recorded=record.recorded_at,
                    proof=min(new.proof, PROOF_MAX),
                )
            )
            vectors.append(pack_vectors(unit.vectors, unit.scales))
            tokens.append(pack_tokens(unit.token_vectors, unit.token_ids))
            if new.like >= 0:
                vectors[-1], tokens[-1] = self._rows_of(new.like)
            # An echo must not make the words of its source look common.
            for token in set(token_ids_of(tokens[-1])) if new.like < 0 else ():
                token_counts[token] = token_counts.get(token, 0) + 1
            for term, frequency in unit.terms:
                uids, frequencies = terms.setdefault(term, ([], []))
                uids.append(uid)
                frequencies.append(frequency)
            for membership in self._memberships(record):
                members.setdefault(membership, []).append(uid)
            links[uid] = edges.NONE._replace(entities=np.array(numbers, np.uint32))
            self._live[unit.network] += 1
            if new.prev >= 0:
                self.txn.put(keys.follower(self.bank, new.prev, uid), b"")
        for new in change.units:
            weights = [*new.cause_weights, *([1.0] * len(new.causes))][: len(new.causes)]
            self._link(links, new.uid, new.causes, CAUSED_BY, weights)
            self._link(links, new.uid, [o for o, _ in new.similar], SEMANTIC, [w for _, w in new.similar])
            if new.sources:
                self._build_on(links, new.uid, new.sources, echo=new.like >= 0)
        rows = np.array([tuple(row) for row in columns], COLUMN_DTYPE)
        size = COLUMN_DTYPE.itemsize
        data = rows.tobytes()
        COLUMN_ROWS.append(self.txn, self.bank, first, [data[i : i + size] for i in range(0, len(data), size)])
        VECTOR_ROWS.append(self.txn, self.bank, first, vectors)
        TOKEN_ROWS.append(self.txn, self.bank, first, tokens)
        for uid, value in links.items():
            if len(value.entities) or len(value.others):
                self.txn.put(keys.number(self.bank, keys.EDGES, uid), edges.encode(value))
        self._post(terms)
        for (kind, name), uids in members.items():
            self._join_set(kind, name, uids)
        self._count_tokens(token_counts)
        self.delta.add("append_units", first, rows, vectors, tokens)

    def _put_unit(self, record: UnitRecord, *, new: bool = False) -> None:
        self.txn.put(keys.number(self.bank, keys.UNIT, record.uid), codec.encode(record))
        if not new:
            self.delta.rewritten.append(record.uid)

    def put_unit(self, record: UnitRecord) -> None:
        """Write the body of a unit that is stored already."""
        self._put_unit(record)

    def move_entities(self, record: UnitRecord, numbers: tuple[int, ...]) -> None:
        """Take a unit out of the sets of its entities and put it into those of others."""
        for number in set(record.entities) - set(numbers):
            self._leave_set(keys.SET_ENTITY, number_key(number), record.uid)
        for number in set(numbers) - set(record.entities):
            self._join_set(keys.SET_ENTITY, number_key(number), [record.uid])

    def _memberships(self, record: UnitRecord) -> list[tuple[int, bytes]]:
        names = [(keys.SET_TAG, keys.name_key(tag)) for tag in record.tags]
        for tag in record.tags:
            self.txn.put(keys.named(self.bank, keys.TAG, tag), tag.encode("utf-8", "surrogatepass"))
        names.append((keys.SET_TAGSET, tagset_key(record.tags)))
        names += [(keys.SET_ENTITY, number_key(number)) for number in record.entities]
        if record.document:
            names.append((keys.SET_DOCUMENT, number_key(record.document)))
        return names

    def _link(
        self, links: dict[int, edges.Edges], uid: int, others: Iterable[int], kind: int, weights: list[float]
    ) -> None:
        """Store links of `uid` at both ends; an older end is read, changed and written with the rest.

        A causal link points one way: its cause holds it as `CAUSES`.
        """
        pairs = [
            (other, weight)
            for other, weight in zip(others, weights, strict=True)
            # Looked up before this write: one that was erased meanwhile is linked no more.
            if other in links or self.txn.get(keys.number(self.bank, keys.UNIT, other)) is not None
        ]
        if not pairs:
            return
        others, weights = [other for other, _ in pairs], [weight for _, weight in pairs]
        back = CAUSES if kind == CAUSED_BY else kind
        for end, ends, way, values in [
            (uid, others, kind, weights),
            *((o, [uid], back, [w]) for o, w in zip(others, weights, strict=True)),
        ]:
            if end not in links:
                value = self.txn.get(keys.number(self.bank, keys.EDGES, end))
                links[end] = edges.NONE if value is None else edges.decode(value)
            held = links[end]
            links[end] = edges.with_links(held, ends, way, values)
            self._count_links(edges.count_kinds(held), edges.count_kinds(links[end]))
            # Whoever lost a place here still lists this unit, and must be found when it goes.
            for other in {*held.others.tolist(), *ends}.difference(links[end].others.tolist()):
                self.txn.put(keys.half_link(self.bank, end, other), b"")

    def _count_links(self, before: dict[str, int], after: dict[str, int]) -> None:
        for name in before.keys() | after.keys():
            self._links[name] = self._links.get(name, 0) + after.get(name, 0) - before.get(name, 0)

    def _post(self, terms: dict[str, tuple[list[int], list[int]]]) -> None:
        txn, bank = self.txn, self.bank
        for term, (uids, frequencies) in terms.items():
            name = keys.name_key(term)
            tail_key = keys.posting(bank, name, keys.TAIL_BLOCK)
            tail = txn.get(tail_key)
            last_block, last_number = None, -1
            if not postings.tail_fits(tail, len(uids)):
                for key, value in txn.scan_reverse(keys.postings(bank, name)):
                    found = keys.trailing_u32(key)
                    if found != keys.TAIL_BLOCK:
                        last_block, last_number = bytes(value), found
                        break
            update = postings.plan_append(last_block, tail, np.array(uids, "<u4"), np.array(frequencies, np.uint8))
            if update.replace_last is not None:
                txn.put(keys.posting(bank, name, last_number), update.replace_last)
            for block in update.new_blocks:
                last_number += 1
                txn.put(keys.posting(bank, name, last_number), block)
            txn.put(tail_key, update.tail)

    def _join_set(self, kind: int, name: bytes, uids: list[int]) -> None:
        by_container: dict[int, list[int]] = {}
        for uid in uids:
            by_container.setdefault(uid >> 16, []).append(uid)
        for high, added in by_container.items():
            key = keys.container(self.bank, kind, name, high)
            value = self.txn.get(key)
            held = BitMap(added) if value is None else BitMap.deserialize(bytes(value)) | BitMap(added)
            self.txn.put(key, held.serialize())

    def _leave_set(self, kind: int, name: bytes, uid: int) -> bool:
        """Take `uid` out of a set; True when the container is empty and gone."""
        key = keys.container(self.bank, kind, name, uid >> 16)
        value = self.txn.get(key)
        if value is None:
            return False
        held = BitMap.deserialize(bytes(value))
        held.discard(uid)
        if held:
            self.txn.put(key, held.serialize())
            return False
        self.txn.delete(key)
        return next(iter(self.txn.scan(keys.containers(self.bank, kind, name))), None) is None

    def _count_tokens(self, changes: dict[int, int]) -> None:
        for token, by in changes.items():
            key = keys.number(self.bank, keys.TOKEN_COUNT, token)
            value = self.txn.get(key)
            held = (0 if value is None else _U32.unpack(value)[0]) + by
            if held > 0:
                self.txn.put(key, _U32.pack(held))
            elif value is not None:
                self.txn.delete(key)

    def _retire(self, change: UnitsRetired) -> None:
        rows: dict[int, bytes] = {}
        ended_now: list[int] = []
        for uid in change.uids:
            record, row = self.unit(uid), self._column(uid)
            if record is None:
                continue
            self._touch_belief(record)
            if not row.flags & LIVE:
                if change.unchunked and record.stands:
                    rows[uid] = self._replaced(record, row).pack()
                continue
            ended = dataclasses.replace(record, retired_at=change.at, state=change.state, updated_at=change.at)
            self._put_unit(dataclasses.replace(ended, chunk_id=None) if change.unchunked else ended)
            rows[uid] = row._replace(flags=row.flags & ~LIVE, retired=change.at).pack()
            self._live[row.network] -= 1
            self._names.forget_mentions(record)
            self._drop_claims(record)
            if not change.continued:
                self._unsettle(record)
            ended_now.append(uid)
        COLUMN_ROWS.replace(self.txn, self.bank, rows)
        self.delta.add("retire_units", ended_now, change.at)
        self._end_built_on(ended_now, change.at)
        replaced = [uid for uid in rows if uid not in ended_now]
        if replaced:
            self.delta.add("replace_ended", replaced)

    def _erase(self, change: UnitsErased) -> None:
        gone = self._with_built_on(change.uids)
        zero = ColumnRow(0, 0, proof=0, recorded=0, retired=0).pack()
        rows: dict[int, bytes] = {}
        token_counts: dict[int, int] = {}
        relinked: dict[int, int] = {}
        before = {uid: self._column(uid).prev for uid in gone}
        seen: set[tuple[int, int | None]] = set()
        speakers: set[int] = set()
        for uid in sorted(gone):
            record, row = self.unit(uid), self._column(uid)
            if record is None:
                continue
            self.txn.delete(keys.number(self.bank, keys.UNIT, uid))
            self.delta.rewritten.append(uid)
            counted = not self._is_echo(record)
            for token in set(token_ids_of(TOKEN_ROWS.get(self.txn, self.bank, uid))) if counted else ():
                token_counts[token] = token_counts.get(token, 0) - 1
            self._drop_unit_rows(record)
            for kind, name in self._memberships(record):
                if self._leave_set(kind, name, uid) and kind == keys.SET_TAG:
                    self._drop_tag(name)
            self._unlink(uid)
            if row.flags & LIVE:
                self._live[row.network] -= 1
                self._names.forget_mentions(record)
                self._unsettle(record)
            self._names.prune(record)
            seen.update((number, record.mentioned_at) for number in record.entities)
            speakers.add(row.speaker)
            rows[uid] = zero
        self._names.forget_dates(seen)
        for uid in gone:
            for follower in self.followers(uid):
                prev = uid
                passed: set[int] = set()
                while prev in gone and prev not in passed:
                    passed.add(prev)
                    prev = before[prev]
                prev = -1 if prev in gone else prev
                if follower not in gone:
                    relinked[follower] = prev
        COLUMN_ROWS.replace(self.txn, self.bank, rows)
        VECTOR_ROWS.replace(self.txn, self.bank, dict.fromkeys(rows, b""))
        TOKEN_ROWS.replace(self.txn, self.bank, dict.fromkeys(rows, b""))
        self._count_tokens(token_counts)
        self.delta.add("erase_units", list(rows))
        self._forget_speakers(speakers - {0})
        self._relink(relinked)
        for uid in gone:
            self.txn.delete_prefix(keys.followers(self.bank, uid))
            if before[uid] >= 0:
                self.txn.delete(keys.follower(self.bank, before[uid], uid))

    def _forget_speakers(self, numbers: set[int]) -> None:
        """Drop the names of speakers who speak in no unit any more, live or retired."""
        if not numbers:
            return
        for table in (COLUMN_ROWS.blocks, COLUMN_ROWS.tail):
            for _, rows in table(self.txn, self.bank):
                numbers = numbers.difference(np.unique(np.frombuffer(rows, COLUMN_DTYPE)["speaker"]).tolist())
        for number in numbers:
            self._names.drop_speaker(number)

    def set_members(self, kind: int, name: bytes) -> list[int]:
        """uids of a set, ascending."""
        held: list[int] = []
        for _, value in self.txn.scan(keys.containers(self.bank, kind, name)):
            held.extend(BitMap.deserialize(bytes(value)))
        return held

    def entity_count(self) -> int:
        self._names.settle()
        return self._counters.entities + self._names.created

    def followers(self, uid: int) -> list[int]:
        """Units that stand directly behind `uid` in its thread."""
        return [keys.trailing_u32(key) for key, _ in self.txn.scan(keys.followers(self.bank, uid))]

    def _drop_tag(self, name: bytes) -> None:
        self.txn.delete(keys.raw(self.bank, keys.TAG, name))

    def _unlink(self, uid: int) -> None:
        key = keys.number(self.bank, keys.EDGES, uid)
        value = self.txn.get(key)
        if value is None:
            return
        own = edges.decode(value)
        self.txn.delete(key)
        self._count_links(edges.count_kinds(own), {})
        half = [keys.trailing_u32(key) for key, _ in self.txn.scan(keys.half_links(self.bank, uid))]
        self.txn.delete_prefix(keys.half_links(self.bank, uid))
        for other in {*own.others.tolist(), *half}:
            self.txn.delete(keys.half_link(self.bank, other, uid))
            other_key = keys.number(self.bank, keys.EDGES, other)
            held = self.txn.get(other_key)
            if held is None:
                continue
            old = edges.decode(held)
            kept = edges.without(old, {uid})
            self._count_links(edges.count_kinds(old), edges.count_kinds(kept))
            self.txn.put(other_key, edges.encode(kept))


def _instant(value: int | None) -> int:
    return UNKNOWN if value is None else value

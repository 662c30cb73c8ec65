"""Rows of the ledger and of what a model read: how `Applier` writes them and how reads get at them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from recalld.storage import codec, keys
from recalld.storage.changes import CallsRecorded
from recalld.storage.environment import ReadTxn, WriteTxn
from recalld.storage.ledger import DayTotals, LedgerCall, day_of
from recalld.storage.records import ChunkRecord

_PLACE = struct.Struct("<II")
TRIM = 100
"""Old calls a write removes at most: more than any write adds, so that the rest follows."""
DAYS_KEPT = 400


def record_calls(txn: WriteTxn, bank: int, change: CallsRecorded) -> None:
    """Store calls, add them to the sums of their day, and let go what is too old. One that is stored counts no more."""
    by_day: dict[int, list[LedgerCall]] = {}
    for call in change.calls:
        if txn.get(keys.ledger_call(bank, call.started_at, call.id)) is not None:
            continue
        txn.put(keys.ledger_call(bank, call.started_at, call.id), codec.encode(call))
        by_day.setdefault(day_of(call.started_at), []).append(call)
    for day, calls in by_day.items():
        for owner in (bank, 0):
            held = day_totals(txn, owner, day)
            txn.put(keys.number(owner, keys.LEDGER_DAY, day), codec.encode(held.plus(calls)))
            for old in _first_days(txn, owner, day - DAYS_KEPT):
                txn.delete(keys.number(owner, keys.LEDGER_DAY, old))
    for operation_id, reading, facts in change.readings:
        txn.put(keys.journal(bank, operation_id, reading), facts)
    old_keys: list[bytes] = []
    for key, _ in txn.scan(keys.table(bank, keys.LEDGER)):
        if key >= keys.ledger_from(bank, max(0, change.keep_from)) or len(old_keys) >= TRIM:
            break
        old_keys.append(bytes(key))
    for key in old_keys:
        txn.delete(key)


def _first_days(txn: ReadTxn, bank: int, before: int, most: int = 4) -> list[int]:
    found: list[int] = []
    for key, _ in txn.scan(keys.table(bank, keys.LEDGER_DAY)):
        day = keys.trailing_u32(key)
        if day >= before or len(found) >= most:
            break
        found.append(day)
    return found


def day_totals(txn: ReadTxn, bank: int, day: int) -> DayTotals:
    """The sums of one day; bank 0 is the whole partition."""
    value = txn.get(keys.number(bank, keys.LEDGER_DAY, day))
    return DayTotals(day) if value is None else codec.decode(DayTotals, value)


def all_days(txn: ReadTxn, bank: int, first: int = 0) -> list[DayTotals]:
    """The sums of each day from `first` on that had a call, oldest first."""
    start = keys.number(bank, keys.LEDGER_DAY, max(0, first))
    return [codec.decode(DayTotals, value) for _, value in txn.scan(keys.table(bank, keys.LEDGER_DAY), start)]


def calls(txn: ReadTxn, bank: int, start: int = 0) -> Iterator[LedgerCall]:
    """Calls from `start` (µs) on, oldest first."""
    for _, value in txn.scan(keys.table(bank, keys.LEDGER), keys.ledger_from(bank, max(0, start))):
        yield codec.decode(LedgerCall, value)


# -- readings --------------------------------------------------------------------------------------------------------


def point_to_chunk(txn: WriteTxn, bank: int, chunk: ChunkRecord) -> None:
    """Make a chunk that a model read findable by its reading, unless another still stands for the same one."""
    if chunk.reading and chunk_read_as(txn, bank, chunk.reading) is None:
        txn.put(keys.named(bank, keys.READING, chunk.reading), _PLACE.pack(chunk.document, chunk.index))


def chunk_read_as(txn: ReadTxn, bank: int, reading: str) -> ChunkRecord | None:
    """A stored chunk that a model read the same way, with the same text and anchors."""
    place = txn.get(keys.named(bank, keys.READING, reading))
    if place is None:
        return None
    value = txn.get(keys.chunk(bank, *_PLACE.unpack(place)))
    chunk = None if value is None else codec.decode(ChunkRecord, value)
    return chunk if chunk is not None and chunk.reading == reading else None


def forget_readings(txn: WriteTxn, bank: int, document: int) -> None:
    """A document goes: nothing points to its chunks any more."""
    readings = [codec.decode(ChunkRecord, value).reading for _, value in txn.scan(keys.chunks(bank, document))]
    for reading in filter(None, readings):
        key = keys.named(bank, keys.READING, reading)
        place = txn.get(key)
        if place is not None and _PLACE.unpack(place)[0] == document:
            txn.delete(key)


def journalled(txn: ReadTxn, bank: int, operation_id: str, reading: str) -> bytes | None:
    """Facts an earlier run of the operation paid for."""
    value = txn.get(keys.journal(bank, operation_id, reading))
    return None if value is None else bytes(value)

"""The part of `verify` that counts entities against the units that name them."""

from __future__ import annotations

import struct
from typing import Any, Protocol

import numpy as np
from pyroaring import BitMap

from recalld.storage import codec, keys
from recalld.storage.columns import LIVE
from recalld.storage.environment import ReadTxn
from recalld.storage.groups import members_of, read_parents, roots_of
from recalld.storage.likeness import spellings
from recalld.storage.names import CONCEPT, folded
from recalld.storage.records import OBSERVATION, UNKNOWN, EntityRecord

_U32 = struct.Struct("<I")


class Told(Protocol):
    """Where problems go."""

    checked: dict[str, int]

    def off(self, table: str, row: Any, what: str) -> None: ...
    def expect(self, fits: bool, table: str, row: Any, what: str) -> None: ...


def check_entities(
    txn: ReadTxn, bank: int, found: Told, units: dict[int, tuple[int, ...]], rows: np.ndarray[Any, Any]
) -> int:
    """Check entities, their names and their groups; how many whole ones there are.

    `units` are the entities each unit names, `rows` the columns of all units.
    """
    records = {
        keys.trailing_u32(key): codec.decode(EntityRecord, value)
        for key, value in txn.scan(keys.table(bank, keys.ENTITY))
    }
    named: dict[int, BitMap] = {}
    for uid, numbers in units.items():
        for number in numbers:
            named.setdefault(number, BitMap()).add(uid)
            found.expect(number in records, "entities", number, f"unit {uid} names it, and there is no record of it")
    parents = {p: w for p, w in read_parents(txn, bank).items() if _holds(found, records, p, w)}
    for number, record in records.items():
        said = parents.get(number, 0)
        found.expect(
            record.into == said, "entity parents", number, f"it says it is a part of {record.into}, not {said}"
        )
        parts = tuple(sorted(part for part, whole in parents.items() if whole == number)) if record.parts else ()
        found.expect(
            record.parts == parts, "entity parents", number, f"it says its parts are {record.parts}, not {parts}"
        )
    for part in list(parents):
        if _circles(parents, part):
            found.off("entity parents", part, "it is a part of itself")
            del parents[part]
    roots = roots_of(parents)
    groups = members_of(roots)
    for number, record in records.items():
        _check_names(txn, bank, found, number, record)
        if number in roots:
            found.expect(record.mentions == 0, "entities", number, "it is a part, and has a count of its own")
            continue
        group = [number, *groups.get(number, ())]
        uids = BitMap()
        for member in group:
            uids |= named.get(member, BitMap())
        _check_count(found, record, uids, rows)
        kinds = {records[member].kind for member in group} - {CONCEPT}
        found.expect(len(kinds) <= 1, "entity parents", number, f"it is of kinds {', '.join(sorted(kinds))} at once")
    _check_lists(txn, bank, found, records)
    found.checked |= {"entities": len(records) - len(roots), "entity parts": len(roots)}
    return len(records) - len(roots)


def _holds(found: Told, records: dict[int, EntityRecord], part: int, whole: int) -> bool:
    fits = part in records and whole in records
    found.expect(fits, "entity parents", part, f"it is a part of {whole}, and one of them is gone")
    return fits


def _circles(parents: dict[int, int], start: int) -> bool:
    seen, number = {start}, start
    while number in parents:
        number = parents[number]
        if number in seen:
            return True
        seen.add(number)
    return False


def _check_count(found: Told, record: EntityRecord, uids: BitMap, rows: np.ndarray[Any, Any]) -> None:
    if not uids:
        found.off("entities", record.number, "no unit names it")
        return
    chosen = rows[np.frombuffer(uids.to_array(), np.uint32)]
    chosen = chosen[chosen["network"] != OBSERVATION]
    live = int(np.count_nonzero(chosen["flags"] & LIVE))
    found.expect(
        record.mentions == live, "entities", record.number, f"it counts {record.mentions} units, and {live} name it"
    )
    said = chosen["mentioned"][chosen["mentioned"] != UNKNOWN]
    span = (int(said.min()), int(said.max())) if len(said) else (None, None)
    found.expect(
        (record.first_seen, record.last_seen) == span,
        "entities",
        record.number,
        f"it was seen from {record.first_seen} to {record.last_seen}, and its units say from {span[0]} to {span[1]}",
    )


def _check_names(txn: ReadTxn, bank: int, found: Told, number: int, record: EntityRecord) -> None:
    found.expect(record.number == number, "entities", number, f"its record says it is {record.number}")
    held = txn.get(keys.named(bank, keys.ENTITY_ID, record.id))
    found.expect(held is not None and bytes(held) == _U32.pack(number), "entities", number, "it is not found by its id")
    found.expect(
        number in _list(txn, keys.named(bank, keys.ENTITY_NAME, folded(record.name))),
        "entity names",
        number,
        "it is not found by its name",
    )
    for form in spellings(record.name, record.kind):
        found.expect(
            number in _list(txn, keys.named(bank, keys.ENTITY_SPELLING, form)),
            "entity spellings",
            number,
            "it is not found by a form of its name",
        )


def _check_lists(txn: ReadTxn, bank: int, found: Told, records: dict[int, EntityRecord]) -> None:
    for which, table in ((keys.ENTITY_NAME, "entity names"), (keys.ENTITY_SPELLING, "entity spellings")):
        for key, value in txn.scan(keys.table(bank, which)):
            for number in np.frombuffer(bytes(value), "<u4").tolist():
                found.expect(
                    number in records, table, number, f"a list ({bytes(key)[-16:].hex()}) names it, and it is gone"
                )
    for key, value in txn.scan(keys.table(bank, keys.ENTITY_ID)):
        number = _U32.unpack(value)[0]
        found.expect(
            number in records, "entities", number, f"an id ({bytes(key)[-16:].hex()}) leads to it, and it is gone"
        )


def _list(txn: ReadTxn, key: bytes) -> list[int]:
    value = txn.get(key)
    return [] if value is None else np.frombuffer(bytes(value), "<u4").tolist()

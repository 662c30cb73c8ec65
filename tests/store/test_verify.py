"""A sound bank counts itself ok; one row changed by hand is found and named, in whatever table it stands."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import DAY, START, World

from recalld.storage import codec, edges, keys, postings
from recalld.storage.apply import read_counters
from recalld.storage.changes import (
    EntitiesChanged,
    MentionsAdded,
    UnitsErased,
    UnitsRetagged,
    UnitsRetired,
)
from recalld.storage.columns import COLUMN_ROWS, ColumnRow
from recalld.storage.environment import WriteTxn
from recalld.storage.errors import BankNotFound
from recalld.storage.groups import number_key
from recalld.storage.records import (
    DocumentRecord,
    EntityChange,
    EntityRecord,
    MentionRecord,
    UnitRecord,
)
from recalld.storage.regroup import MERGED
from recalld.storage.upkeep import verify
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS

T, B = "tenant", "bank"
U32 = struct.Struct("<I")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.add(
        T,
        B,
        "d1",
        [
            made.unit("Ana met Bo.", entities=["Ana", "Bo"], speaker="Ana", tags=("x",), mentioned_at=START),
            made.unit(
                "Bo moved to Lyon.", entities=["Bo"], mentioned_at=START + DAY, subject="Bo", attribute="lives_in"
            ),
            made.unit("Robert Chen resigned.", entities=["Robert Chen"], tags=("x", "y")),
            made.unit("It rained.", claim=bytes(16)),
        ],
        causes={1: [0]},
        similar={2: [(0, 0.9), (1, 0.8)]},
    )
    made.add(T, B, "d2", [made.unit("Bo sings.", entities=["Bo"]), made.unit("Gone."), made.unit("Old.")])
    made.apply(T, B, UnitsRetired((6,), made.now()), UnitsErased((5,), made.now()))
    made.operation(T, B)
    with made.partition.read(T, B) as snap:
        rained = snap.unit(3)
    assert rained is not None
    place = MentionRecord(rained.id, 2, 1, "d1", 0, "bank_d1_0", START, text="It rained.")
    made.apply(T, B, MentionsAdded((place,), made.now()))
    # Bo is Robert Chen: numbers are given in the order of the names.
    made.apply(T, B, EntitiesChanged(EntityChange(made.new_id(), MERGED, made.now(), 2, 3)))
    yield made
    made.close()


def problems(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = verify(world.partition, T, B)["problems"]
    return found


def test_a_sound_bank_is_ok_and_says_what_it_counted(world: World) -> None:
    found = verify(world.partition, T, B)
    assert (found["ok"], found["problems"], found["problems_total"]) == (True, [], 0)
    counted = found["checked"]
    assert (counted["units"], counted["documents"], counted["entities"], counted["entity parts"]) == (6, 2, 2, 1)
    assert counted["mentions"] == 1 and counted["operations"] == 1 and counted["postings"] > 8
    with pytest.raises(BankNotFound):
        verify(world.partition, T, "nowhere")


def record(txn: WriteTxn, bank: int, table: int, number: int, kind: Any) -> Any:
    return codec.decode(kind, bytes(txn.get(keys.number(bank, table, number)) or b""))


def change(table: int, number: int, kind: Any, **fields: Any) -> Callable[[WriteTxn, int], None]:
    def run(txn: WriteTxn, bank: int) -> None:
        changed = dataclasses.replace(record(txn, bank, table, number, kind), **fields)
        txn.put(keys.number(bank, table, number), codec.encode(changed))

    return run


def drop(key: Callable[[WriteTxn, int], bytes]) -> Callable[[WriteTxn, int], None]:
    def run(txn: WriteTxn, bank: int) -> None:
        found = key(txn, bank)
        assert txn.get(found) is not None
        txn.delete(found)

    return run


def first(table: int) -> Callable[[WriteTxn, int], bytes]:
    return lambda txn, bank: bytes(next(iter(txn.scan(keys.table(bank, table))))[0])


def column(uid: int, **fields: Any) -> Callable[[WriteTxn, int], None]:
    def run(txn: WriteTxn, bank: int) -> None:
        row = ColumnRow.unpack(COLUMN_ROWS.get(txn, bank, uid))
        COLUMN_ROWS.replace(txn, bank, {uid: row._replace(**fields).pack()})

    return run


def lessen_posting(txn: WriteTxn, bank: int) -> None:
    key = keys.posting(bank, keys.name_key("lyon"), keys.TAIL_BLOCK)
    uids, frequencies = postings.join([bytes(txn.get(key) or b"")])
    txn.put(key, postings.encode(uids[:-1], frequencies[:-1]))


def count_token(txn: WriteTxn, bank: int) -> None:
    txn.put(keys.number(bank, keys.TOKEN_COUNT, 0), U32.pack(99))


def lessen_edges(txn: WriteTxn, bank: int) -> None:
    key = keys.number(bank, keys.EDGES, 0)
    txn.put(key, edges.encode(edges.without(edges.decode(bytes(txn.get(key) or b"")), {1})))


def rename_edges(txn: WriteTxn, bank: int) -> None:
    key = keys.number(bank, keys.EDGES, 0)
    held = edges.decode(bytes(txn.get(key) or b""))
    txn.put(key, edges.encode(held._replace(entities=np.array([2], np.uint32))))


def counters(**fields: Any) -> Callable[[WriteTxn, int], None]:
    def run(txn: WriteTxn, bank: int) -> None:
        txn.put(keys.table(bank, keys.COUNTERS), codec.encode(dataclasses.replace(read_counters(txn, bank), **fields)))

    return run


def parents(*pairs: int) -> Callable[[WriteTxn, int], None]:
    def run(txn: WriteTxn, bank: int) -> None:
        txn.put(keys.table(bank, keys.ENTITY_PARENTS), np.array(pairs, "<u4").tobytes())

    return run


def empty_list(table: int) -> Callable[[WriteTxn, int], None]:
    return drop(first(table))


BROKEN: dict[str, tuple[str, Callable[[WriteTxn, int], None]]] = {
    "a unit's record": ("units", drop(lambda txn, bank: keys.number(bank, keys.UNIT, 3))),
    "a unit's number": ("units", change(keys.UNIT, 3, UnitRecord, uid=7)),
    "a unit's id": ("ids", drop(first(keys.UNIT_ID))),
    "a unit that ended in its record alone": ("columns", change(keys.UNIT, 3, UnitRecord, retired_at=START)),
    "a unit that ended in its columns alone": ("columns", column(3, flags=1)),
    "a network": ("columns", column(3, network=1)),
    "a date": ("columns", column(0, mentioned=START + 1)),
    "a speaker": ("speakers", drop(lambda txn, bank: keys.number(bank, keys.SPEAKER, 1))),
    "a vector": ("vectors", lambda txn, bank: VECTOR_ROWS.replace(txn, bank, {3: b""})),
    "a vector of a unit that is gone": ("vectors", lambda txn, bank: VECTOR_ROWS.replace(txn, bank, {5: b"\1\0\0\0"})),
    "token vectors": ("token vectors", lambda txn, bank: TOKEN_ROWS.replace(txn, bank, {3: b""})),
    "a token's count": ("token counts", count_token),
    "a posting": ("postings", lessen_posting),
    "a posting list": ("postings", drop(first(keys.POSTING))),
    "a tag's set": ("tags", drop(lambda txn, bank: keys.container(bank, keys.SET_TAG, keys.name_key("y"), 0))),
    "a listed tag": ("tags", drop(lambda txn, bank: keys.named(bank, keys.TAG, "y"))),
    "an entity's set": ("entity sets", drop(lambda txn, bank: keys.container(bank, keys.SET_ENTITY, number_key(1), 0))),
    "a document's set": (
        "document sets",
        drop(lambda txn, bank: keys.container(bank, keys.SET_DOCUMENT, number_key(1), 0)),
    ),
    "a link at one end": ("edges", lessen_edges),
    "a unit's edges": ("edges", drop(lambda txn, bank: keys.number(bank, keys.EDGES, 0))),
    "entities of edges": ("edges", rename_edges),
    "a follower": ("followers", drop(first(keys.FOLLOWER))),
    "a follower too many": ("followers", lambda txn, bank: txn.put(keys.follower(bank, 3, 0), b"")),
    "an entity's record": ("entities", drop(lambda txn, bank: keys.number(bank, keys.ENTITY, 1))),
    "an entity's count": ("entities", change(keys.ENTITY, 1, EntityRecord, mentions=7)),
    "an entity's dates": ("entities", change(keys.ENTITY, 3, EntityRecord, last_seen=START)),
    "an entity's id": ("entities", drop(first(keys.ENTITY_ID))),
    "an entity's name": ("entity names", drop(first(keys.ENTITY_NAME))),
    "a form of an entity's name": ("entity spellings", drop(first(keys.ENTITY_SPELLING))),
    "a part of what is gone": ("entity parents", parents(2, 9)),
    "a part of itself": ("entity parents", parents(2, 3, 3, 2)),
    "a document's record": ("documents", drop(lambda txn, bank: keys.number(bank, keys.DOCUMENT, 2))),
    "a document's id": ("documents", drop(first(keys.DOCUMENT_ID))),
    "a document's count of chunks": ("chunks", change(keys.DOCUMENT, 1, DocumentRecord, chunks=2)),
    "a chunk": ("chunks", drop(first(keys.CHUNK))),
    "a claim": ("claims", drop(first(keys.CLAIM))),
    "a mention": ("mentions", change(keys.UNIT, 3, UnitRecord, proof_count=5)),
    "what a unit says of somebody": ("attributes", drop(first(keys.ATTRIBUTE))),
    "an open operation": (
        "operations",
        drop(lambda txn, bank: bytes(next(iter(txn.scan(keys.table(0, keys.OPEN_OPERATION))))[0])),
    ),
    "the count of units": ("counters", counters(live=(9, 0, 0, 0))),
    "the count of documents": ("counters", counters(documents=9)),
    "the count of entities": ("counters", counters(entities=9)),
    "the count of links": ("counters", counters(edges={"semantic": 9})),
    "the next number": ("counters", counters(next_uid=99)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_single_row_that_does_not_fit_is_named(world: World, what: str) -> None:
    table, damage = BROKEN[what]
    bank = next(iter(world.partition.banks()))[0].number
    world.partition.environment.write(lambda txn: damage(txn, bank))
    found = problems(world)
    assert table in {problem["table"] for problem in found}, found
    assert all(problem["what"] and problem["row"] for problem in found)


def test_a_bank_stays_sound_through_tags_ends_and_erasures(world: World) -> None:
    world.apply(T, B, UnitsRetagged((0, 1), ("z",), world.now()))
    world.apply(T, B, UnitsRetired((0,), world.now()))
    assert not problems(world)
    world.apply(T, B, UnitsErased((0, 4), world.now()))
    assert not problems(world)
    assert verify(world.partition, T, B)["checked"]["units"] == 4

"""Promises of one partition: writes once, visible to every arm at once, gone from every arm, epochs, banks apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_units import DAY, DIM, MODEL, NOW, Ids, add, open_partition, prepared, vector

from recalld.actors import banks
from recalld.actors.recall import engine
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import keys
from recalld.storage.analysis import query_terms
from recalld.storage.apply import Applier
from recalld.storage.changes import UnitsErased, UnitsRetagged, UnitsRetired
from recalld.storage.errors import BankNotFound, Unavailable
from recalld.storage.partition import Partition, _raise_epoch
from recalld.storage.records import SEMANTIC

ARMS = ("semantic", "keyword", "graph", "temporal")
ODD_NAMES = [
    "plain",
    "a/b/c",
    "x::y",
    "имя",
    "名前",
    "e\u0301",
    "\u00e9",
    " spaced ",
    "a\0b",
    "🧠",
    "__proto__",
    "..",
    "%2F",
    "CON",
    "x" * 600,
]


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    opened = open_partition(tmp_path / "p")
    yield opened
    opened.close()


def recall(partition: Partition, text: str, *arms: str, tenant: str = "t", bank: str = "b") -> list[str]:
    """Texts that the given arms alone find for `text`."""
    query = RecallQuery(
        tenant,
        bank,
        text,
        vector(text).tobytes(),
        terms=query_terms(text),
        window=(NOW - DAY, NOW + DAY),
        now=NOW,
        arms=arms or ARMS,
        max_tokens=100_000,
    )
    with partition.read(tenant, bank) as snap:
        found = engine.recall(snap, query, RecallSettings())
    return [result["text"] for result in found.results]


def one(text: str, unit_id: str, **given: Any) -> Any:
    return lambda applier: add(applier, [prepared(text, unit_id, **given)], document_id=f"doc {unit_id}")


def pair(number: int) -> Any:
    """Two linked units with a word of their own: the first is found by its text, the second over the graph."""

    def run(applier: Applier) -> list[int]:
        first = prepared(f"marker{number} stands here", f"a{number}", entities=[f"Entity{number}"])
        second = prepared(f"unrelated words {number} follow", f"b{number}", entities=[f"Entity{number}"])
        uid = applier.allocate("uid", 0)
        return add(applier, [first, second], document_id=f"d{number}", similar=[[], [(uid, 0.9)]])

    return run


# -- acknowledged means visible ----------------------------------------------------------------------------------------


def test_ack_is_visible_to_every_arm_at_once(partition: Partition) -> None:
    for number in range(30):
        partition.write("t", "b", pair(number), create=True)
        text = f"marker{number} stands here"
        for arm in ("semantic", "keyword", "temporal"):
            assert text in recall(partition, text, arm), f"{arm} does not see what was acknowledged"
        assert f"unrelated words {number} follow" in recall(partition, text, "graph")
        with partition.read("t", "b") as snap:
            assert snap.n == 2 * (number + 1)


def test_ack_is_visible_to_every_arm_at_once_beside_other_writers(partition: Partition) -> None:
    partition.write("t", "b", pair(10_000), create=True)
    stop = threading.Event()

    def noise() -> int:
        count = 0
        while not stop.is_set():
            count += 1
            partition.write("t", "b", one(f"noise {count} of thread", f"n{threading.get_ident()}-{count}"))
        return count

    def check(number: int) -> None:
        partition.write("t", "b", pair(number))
        text = f"marker{number} stands here"
        for arm in ("semantic", "keyword", "temporal", "graph"):
            wanted = f"unrelated words {number} follow" if arm == "graph" else text
            assert wanted in recall(partition, text, arm), f"{arm} does not see what was acknowledged"

    with ThreadPoolExecutor(6) as pool:
        others = [pool.submit(noise) for _ in range(2)]
        list(pool.map(check, range(40)))
        stop.set()
        assert all(other.result(20) > 0 for other in others)


def test_a_delete_reaches_every_arm_at_once(partition: Partition) -> None:
    uids = [partition.write("t", "b", pair(number), create=True) for number in range(6)]
    for number in range(6):
        text = f"marker{number} stands here"
        assert all(recall(partition, text, arm) for arm in ARMS)
        partition.write("t", "b", lambda applier, n=number: applier.apply(UnitsErased(tuple(uids[n]), NOW)))
        for arm in ARMS:
            found = recall(partition, text, arm)
            assert text not in found and f"unrelated words {number} follow" not in found, f"{arm} still answers"
    partition.drop_caches()
    for number in range(6):
        assert recall(partition, f"marker{number} stands here") == []


def test_a_reader_keeps_the_state_it_began_with(partition: Partition) -> None:
    partition.write("t", "b", pair(0), create=True)
    with partition.read("t", "b") as snap:
        partition.write("t", "b", pair(1))
        assert snap.n == 2
        uids, _ = snap.semantic(vector("marker1 stands here"), 10, None, -1.0)
        assert set(uids.tolist()) == {0, 1}
        assert snap.postings("marker1")[0].tolist() == []
    with partition.read("t", "b") as snap:
        assert snap.n == 4


# -- once --------------------------------------------------------------------------------------------------------------


def test_a_request_id_is_carried_out_once(partition: Partition) -> None:
    runs = []

    def run(applier: Applier) -> dict[str, Any]:
        runs.append(1)
        return {"uids": add(applier, [prepared("only once", f"u{len(runs)}")])}

    first = partition.write("t", "b", run, request_id="r1", create=True)
    with ThreadPoolExecutor(8) as pool:
        rest = list(pool.map(lambda _: partition.write("t", "b", run, request_id="r1", create=True), range(20)))
    assert len(runs) == 1
    assert all(answer == first for answer in rest)
    assert partition.write("t", "b", run, request_id="r2") != first
    with partition.read("t", "b") as snap:
        assert snap.n == 2


def test_a_request_id_survives_a_restart(tmp_path: Path) -> None:
    partition = open_partition(tmp_path / "p")
    first = partition.write("t", "b", one("x", "u"), request_id="r", create=True)
    partition.close()
    partition = open_partition(tmp_path / "p")
    assert partition.write("t", "b", one("x", "u"), request_id="r", create=True) == first
    with partition.read("t", "b") as snap:
        assert snap.n == 1
    partition.close()


def test_a_request_id_of_one_bank_says_nothing_to_another(partition: Partition) -> None:
    partition.write("t", "a", one("of a", "u"), request_id="r", create=True)
    partition.write("t", "b", one("of b", "u"), request_id="r", create=True)
    with partition.read("t", "b") as snap:
        assert [unit.text for unit in snap.units([0])] == ["of b"]


def test_a_request_id_of_a_deleted_bank_does_not_speak_for_the_new_one(partition: Partition) -> None:
    partition.write("t", "b", one("old", "u"), request_id="r", create=True)
    deleted = partition.write("t", "b", banks.delete_bank, request_id="d")
    # The write did happen, so repeating it after the deletion revives nothing; nor is the deletion done twice.
    partition.write("t", "b", one("old", "u"), request_id="r", create=True)
    assert partition.bank("t", "b") is None
    partition.write("t", "b", one("new", "v"), request_id="n", create=True)
    assert partition.write("t", "b", banks.delete_bank, request_id="d") == deleted
    partition.write("t", "b", one("again", "w"), request_id="r", create=True)
    with partition.read("t", "b") as snap:
        assert [unit.text for unit in snap.units([0, 1])] == ["new", "again"]


def test_a_failed_write_leaves_no_trace(partition: Partition) -> None:
    partition.write("t", "b", one("first", "u0"), create=True)

    def fail(applier: Applier) -> None:
        add(applier, [prepared("half", "u1", tags=["t"], entities=["Half"], speaker="Half")], document_id="half")
        raise ValueError("no")

    before = dump(partition)
    with pytest.raises(ValueError):
        partition.write("t", "b", fail, request_id="f")
    assert dump(partition) == before
    with pytest.raises(ValueError):
        partition.write("t", "b", fail, request_id="f")
    assert partition.write("t", "b", one("second", "u1")) == [1]


def test_all_of_a_request_or_nothing(partition: Partition) -> None:
    """41 units in one write, the last of them bad: none is there."""

    def run(applier: Applier) -> None:
        add(applier, [prepared(f"item {i}", f"u{i}") for i in range(40)])
        add(applier, [prepared("bad", "bad", tokens=[1])], prevs=["x"])  # type: ignore[list-item]

    with pytest.raises(TypeError):
        partition.write("t", "b", run, create=True)
    assert partition.bank("t", "b") is None


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_a_stale_owner_cannot_write(partition: Partition) -> None:
    partition.write("t", "b", one("mine", "u"), create=True)
    partition.environment.write(_raise_epoch)
    with pytest.raises(Unavailable):
        partition.write("t", "b", one("late", "v"))
    with partition.read("t", "b") as snap:
        assert snap.n == 1


def test_every_opening_raises_the_epoch(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        partition = open_partition(tmp_path / "p")
        epochs.append(partition.epoch)
        partition.close()
    assert epochs == [1, 2, 3]


# -- banks -------------------------------------------------------------------------------------------------------------


def dump(partition: Partition, bank: int | None = None) -> dict[bytes, bytes]:
    """Every key and value, of one bank or of the partition."""
    prefix = b"" if bank is None else keys.bank_prefix(bank)
    with partition.environment.read() as txn:
        return {key: bytes(value) for key, value in txn.scan(prefix)}


def test_banks_of_any_name_are_apart(partition: Partition) -> None:
    for index, name in enumerate(ODD_NAMES):
        partition.write("t", name, one(f"secret {index}", f"u{index}"), create=True)
        partition.write(name, "t", one(f"mirror {index}", f"m{index}"), create=True)
    for index, name in enumerate(ODD_NAMES):
        assert recall(partition, f"secret {index}", tenant="t", bank=name) == [f"secret {index}"]
        assert recall(partition, f"mirror {index}", tenant=name, bank="t") == [f"mirror {index}"]
        found = partition.bank("t", name)
        assert found is not None and found[0].bank_id == name
    assert len(partition.banks()) == 2 * len(ODD_NAMES)
    with pytest.raises(BankNotFound), partition.read("t", "absent"):
        pass
    with pytest.raises(BankNotFound):
        partition.write("t", "absent", one("x", "u"))


def test_deleting_one_bank_leaves_the_others_byte_identical(partition: Partition) -> None:
    for index, name in enumerate(ODD_NAMES):
        partition.write("t", name, pair(index), create=True)
    numbers = {record.bank_id: record.number for record, _ in partition.banks()}
    before = {name: dump(partition, number) for name, number in numbers.items()}
    for gone in ODD_NAMES[::2]:
        partition.write("t", gone, banks.delete_bank)
        assert dump(partition, numbers[gone]) == {}
    for name in ODD_NAMES[1::2]:
        assert dump(partition, numbers[name]) == before[name]
        assert len(recall(partition, f"marker{ODD_NAMES.index(name)} stands here", bank=name)) == 2
    assert {record.bank_id for record, _ in partition.banks()} == set(ODD_NAMES[1::2])


def test_a_deleted_and_recreated_bank_is_empty(partition: Partition) -> None:
    partition.write("t", "b", pair(1), create=True)
    assert recall(partition, "marker1 stands here")
    partition.write("t", "b", banks.delete_bank)
    with pytest.raises(BankNotFound), partition.read("t", "b"):
        pass
    partition.write("t", "b", one("new life", "u"), create=True)
    assert recall(partition, "marker1 stands here", "keyword") == []
    assert recall(partition, "new life", "keyword") == ["new life"]


def test_parallel_first_writes_make_one_bank(partition: Partition) -> None:
    barrier = threading.Barrier(20)

    def write(number: int) -> list[int]:
        barrier.wait(10)
        return partition.write("t", "new", one(f"word{number}", f"u{number}"), create=True)

    with ThreadPoolExecutor(20) as pool:
        uids = [uid for found in pool.map(write, range(20)) for uid in found]
    assert sorted(uids) == list(range(20))
    assert len(partition.banks()) == 1
    for number in range(20):
        assert recall(partition, f"word{number}", "keyword", bank="new") == [f"word{number}"]


def test_creating_banks_stays_flat_beside_a_big_one(partition: Partition) -> None:
    """Nothing is built per bank, whatever else the partition holds."""
    import time

    for start in range(0, 4000, 500):
        units = [prepared(f"row {start + i} of many", f"u{start + i}") for i in range(500)]
        partition.write("t", "big", lambda applier, units=units: add(applier, units), create=True)
    took = []
    for number in range(100):
        started = time.perf_counter()
        partition.write("t", f"small{number}", lambda applier: None, create=True)
        took.append(time.perf_counter() - started)
    assert float(np.median(took)) < partition.environment.last_flush_seconds + 0.02


# -- the memory budget -------------------------------------------------------------------------------------------------


def test_open_banks_stay_within_the_budget_and_answer_all_the_same(tmp_path: Path) -> None:
    from store_units import NO_RESERVE, replace_settings

    partition = open_partition(tmp_path / "p", replace_settings(NO_RESERVE, memory_budget=300_000))
    for bank in range(30):
        units = [prepared(f"bank{bank} row{i}", f"u{bank}-{i}") for i in range(100)]
        partition.write("t", str(bank), lambda applier, units=units: add(applier, units), create=True)
    for bank in [*range(30), *range(29, -1, -1)]:
        assert f"bank{bank} row7" in recall(partition, f"bank{bank} row7", "keyword", bank=str(bank))
        held = sum(opened.nbytes for opened in partition.open_banks())
        assert held <= 300_000 or len(partition.open_banks()) == 1
    partition.close()


def test_banks_dropped_while_writes_come_lose_none(partition: Partition) -> None:
    stop = threading.Event()
    partition.write("t", "b", one("start", "s"), create=True)

    def drop() -> None:
        while not stop.is_set():
            partition.drop_caches()

    def check(number: int) -> None:
        partition.write("t", "b", one(f"word{number} here", f"u{number}"))
        assert recall(partition, f"word{number} here", "keyword")[0] == f"word{number} here"
        assert f"word{number} here" in recall(partition, f"word{number} here", "semantic")

    with ThreadPoolExecutor(5) as pool:
        dropping = pool.submit(drop)
        try:
            list(pool.map(check, range(120)))
        finally:
            stop.set()
        dropping.result(10)


def test_retiring_and_retagging_show_at_once(partition: Partition) -> None:
    uids = partition.write("t", "b", pair(0), create=True)
    partition.write("t", "b", lambda applier: applier.apply(UnitsRetagged(tuple(uids), ("blue", "red"), NOW)))
    with partition.read("t", "b") as snap:
        assert snap.tag_mask("blue").all() and snap.tagset_mask(frozenset({"red", "blue"})).all()
        assert dict(snap.all_tags()) == {"blue": 2, "red": 2}
    partition.write("t", "b", lambda applier: applier.apply(UnitsRetired((uids[0],), NOW)))
    for arm in ARMS:
        assert "marker0 stands here" not in recall(partition, "marker0 stands here", arm)
    with partition.read("t", "b") as snap:
        assert dict(snap.all_tags()) == {"blue": 1, "red": 1}
        assert snap.columns.retired[uids[0]] == NOW


def test_links_fall_with_either_end(partition: Partition) -> None:
    uids = partition.write("t", "b", pair(0), create=True)
    with partition.read("t", "b") as snap:
        assert snap.edges(uids[0])[1].tolist() == [uids[1]]
        assert snap.edges(uids[1])[2].tolist() == [SEMANTIC]
    partition.write("t", "b", lambda applier: applier.apply(UnitsErased((uids[1],), NOW)))
    with partition.read("t", "b") as snap:
        assert snap.edges(uids[0])[1].tolist() == []
        assert sum(snap.counters().edges.values()) == 0


def test_the_same_writes_store_the_same_bytes(tmp_path: Path) -> None:
    dumps = []
    for name in ("one", "two"):
        partition = open_partition(tmp_path / name, new_id=Ids())
        for number in range(5):
            partition.write("t", "b", pair(number), create=True, request_id=str(number))
        dumps.append(dump(partition))
        partition.close()
    assert dumps[0] == dumps[1]


def test_the_model_of_the_units_is_small() -> None:
    """The helper's vectors are what the tests take them for: apart for different texts."""
    assert MODEL["dim"] == DIM
    assert abs(float(vector("one text") @ vector("another text"))) < 0.9

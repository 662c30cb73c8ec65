"""Promises of banks too large to scan: nothing is lost, late or left behind by an approximate index and its files."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recalld.actors import banks
from recalld.actors.recall import engine
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import arrays, bank_index, upkeep
from recalld.storage import partition as partitions
from recalld.storage.budget import MemoryBudget
from recalld.storage.bulk import Maker, load_synthetic, write_units
from recalld.storage.changes import Embedding, UnitsErased, UnitsReembedded
from recalld.storage.errors import Quarantined
from recalld.storage.hnsw import HnswIndex
from recalld.storage.open_bank import OpenBank
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.quantise import quantise, quantise_unit, unit_rows
from recalld.storage.snapshot import Snapshot
from recalld.storage.vector_rows import unpack_vectors
from recalld.storage.vectors import ExactIndex

T, B, DIM, NOW, THRESHOLD = "t", "b", 32, 1_750_000_000_000_000, 200
SETTINGS = StoreSettings(map_size=1 << 30, reserve=0, vector_threshold=THRESHOLD)
F32 = NDArray[np.float32]


def new_ids() -> Callable[[], str]:
    count = itertools.count()
    return lambda: f"00000000-0000-4000-8000-{next(count):012d}"


def opened(folder: Path, settings: StoreSettings = SETTINGS) -> Partition:
    return Partition(folder, settings, lambda: NOW, new_ids())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Partition]:
    made = opened(tmp_path / "p")
    yield made
    made.close()


def load(store: Partition, units: int, seed: int = 1, bank: str = B) -> None:
    load_synthetic(store, T, bank, units, DIM, seed, NOW)


def bank_of(store: Partition, bank: str = B) -> OpenBank:
    with store.read(T, bank) as snap:
        return store.open_bank(snap.bank)


def large(store: Partition, units: int = 600) -> HnswIndex:
    """A bank of `units` with its graph built and saved; its index."""
    load(store, units)
    bank_of(store)
    upkeep.settle(store)
    index = bank_of(store).index
    assert isinstance(index, HnswIndex) and index.tail == 0
    return index


def reload(store: Partition) -> Any:
    """The bank's index after its caches were dropped and opened again."""
    store.drop_caches()
    return bank_of(store).index


def stored(snap: Snapshot, uid: int) -> F32:
    """The vector the store holds for a unit."""
    row: F32 = unit_rows(unpack_vectors(snap.vector_row(uid))[0])[0]
    return row


def check(store: Partition, gone: frozenset[int] = frozenset(), bank: str = B) -> None:
    """Every unit that exists is found by the vector the store holds of it, and no other is ever returned."""
    with store.read(T, bank) as snap:
        everything = set()
        for uid in range(snap.n):
            if uid in gone:
                assert not snap.columns.exists[uid]
                continue
            found, scores = snap.semantic(stored(snap, uid), 3, None, -1.0)
            assert found[0] == uid and scores[0] > 0.999, uid
            assert snap.cosine(np.array([uid]), stored(snap, uid))[0] > 0.999
            everything |= set(found.tolist())
        assert not everything & gone


def erase(store: Partition, uids: list[int]) -> None:
    store.write(T, B, lambda applier: applier.apply(UnitsErased(tuple(uids), NOW)), frees=True)


def reembed(store: Partition, uids: list[int], seed: int, tokens: NDArray[np.int8] | None = None) -> F32:
    """Give units new vectors, and these tokens each; returns the vectors as they are stored."""
    own = b"" if tokens is None else tokens.tobytes()
    ids = np.arange(len(own) // 64, dtype="<u4").tobytes()
    rng = np.random.default_rng(seed)
    codes, scales = quantise(unit_rows(rng.normal(size=(len(uids), DIM)).astype(np.float32)))
    made = tuple(
        Embedding(uid, code.tobytes(), scale.tobytes(), own, ids, None)
        for uid, code, scale in zip(uids, codes, scales, strict=True)
    )
    store.write(T, B, lambda applier: applier.apply(UnitsReembedded(made, NOW)))
    return unit_rows(codes)


def vector_files(store: Partition) -> list[Path]:
    return [path for path in (store.folder / "vectors").rglob("*") if path.is_file()]


# -- promotion -----------------------------------------------------------------------------------------------------


def test_a_bank_below_the_threshold_is_scanned_and_has_no_files(store: Partition) -> None:
    load(store, THRESHOLD)
    assert isinstance(bank_of(store).index, ExactIndex)
    assert not upkeep.tend(store, 0.01)
    assert isinstance(bank_of(store).index, ExactIndex) and not vector_files(store)


def test_an_open_bank_that_outgrows_the_threshold_is_promoted_with_every_unit(store: Partition) -> None:
    load(store, 100)
    before = bank_of(store)
    with store.read(T, B) as snap:
        tokens = snap.maxsim(np.arange(100), np.eye(64, dtype=np.float32)[:4], np.ones(4, np.float32))
    load(store, 500, seed=2)
    erase(store, [7, 300])
    upkeep.settle(store)
    index = bank_of(store).index
    assert bank_of(store) is before and isinstance(index, HnswIndex)
    check(store, frozenset({7, 300}))
    with store.read(T, B) as snap:
        after = snap.maxsim(np.arange(100), np.eye(64, dtype=np.float32)[:4], np.ones(4, np.float32))
    tokens[7] = 0
    assert np.allclose(tokens, after, atol=1e-5)


def test_units_that_are_written_while_a_bank_is_promoted_are_not_lost(store: Partition) -> None:
    load(store, 150)
    bank = bank_of(store)
    load(store, 250, seed=2)  # it outgrew the threshold while open
    done = threading.Event()
    maker = Maker(DIM, 9)

    def write() -> None:
        for number in range(40):
            units = maker.batch(number, 10)
            store.write(T, B, partial(write_units, units=units, now=NOW))
            reembed(store, [number], number)
            erase(store, [100 + number])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.01)
    assert isinstance(bank.index, ExactIndex)
    bank.promote()
    assert isinstance(bank.index, HnswIndex) and not done.is_set()
    writer.join(30)
    assert done.is_set()
    upkeep.settle(store)
    check(store, frozenset(range(100, 140)))


def test_what_is_written_while_the_rows_are_copied_is_in_the_promoted_index(
    store: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(store, 150)
    bank = bank_of(store)
    load(store, 250, seed=2)
    copy = bank_index.promoted
    rng = np.random.default_rng(3)
    tokens = quantise_unit(unit_rows(rng.normal(size=(4, 64)).astype(np.float32)))

    def slowly(*given: Any) -> Any:
        made = copy(*given)
        load(store, 30, seed=3)
        reembed(store, [5, 405], 1, tokens)
        erase(store, [6, 406])
        return made

    monkeypatch.setattr(bank_index, "promoted", slowly)
    bank.promote()
    assert isinstance(bank.index, HnswIndex)
    check(store, frozenset({6, 406}))
    query = unit_rows(tokens.astype(np.float32))
    with store.read(T, B) as snap:
        scores = snap.maxsim(np.arange(snap.n), query, np.ones(4, np.float32))
    assert np.allclose(scores[[5, 405]], 4.0, atol=0.05) and not scores[[6, 406]].any()
    scores[[5, 6, 405, 406]] = 1.0
    assert (scores > 0.2).all() and scores.max() < 3.0


def test_a_snapshot_taken_before_a_promotion_still_answers(store: Partition) -> None:
    load(store, 150)
    with store.read(T, B) as snap:
        load(store, 200, seed=2)
        upkeep.settle(store)
        assert snap.n == 150
        for uid in range(150):
            assert snap.semantic(stored(snap, uid), 1, None, -1.0)[0].tolist() == [uid]


def test_what_a_large_bank_keeps_in_memory_is_less_than_its_vectors(tmp_path: Path) -> None:
    anonymous = []
    for threshold in (10, 10_000):
        store = opened(tmp_path / str(threshold), dataclasses.replace(SETTINGS, vector_threshold=threshold))
        load(store, 500)
        bank = bank_of(store)
        index = bank.index
        assert index is not None
        anonymous.append((bank.tokens.nbytes, index.rows.nbytes))
        store.close()
    assert anonymous[0][0] < anonymous[1][0] / 50 and anonymous[0][1] < anonymous[1][1] / 5


# -- opening from files --------------------------------------------------------------------------------------------


def test_a_reopened_index_comes_from_its_files(store: Partition) -> None:
    large(store)
    index = reload(store)
    assert isinstance(index, HnswIndex) and index.tail == 0
    check(store)


def test_a_reopened_index_knows_units_added_erased_and_embedded_anew_since_it_was_saved(store: Partition) -> None:
    index = large(store)
    saved = json.loads((bank_of(store).files / "index.json").read_text())["seq"]
    load(store, 50, seed=3)
    erase(store, [0, 17, 610])
    fresh = reembed(store, [5, 630], 1)
    del index
    index = reload(store)
    assert json.loads((bank_of(store).files / "index.json").read_text())["seq"] == saved < index.seq
    assert 0 < index.tail <= 60, "the graph was built again instead of caught up"
    check(store, frozenset({0, 17, 610}))
    with store.read(T, B) as snap:
        assert np.allclose(snap.cosine(np.array([5]), fresh[0]), 1.0, atol=1e-4)


def test_an_index_older_than_the_change_log_is_compared_with_the_store(
    store: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = large(store)
    monkeypatch.setattr(partitions, "CHANGES_KEPT", 5)
    reembed(store, [3, 599], 1)
    erase(store, [4])
    load(store, 40, seed=5)
    load(store, 200, seed=6, bank="other")
    del index
    index = reload(store)
    assert 0 < index.tail <= 45
    check(store, frozenset({4}))


@pytest.mark.parametrize("stem", ["rows", "graph", "spans", "index"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_vector_file_is_built_again_from_the_store(store: Partition, stem: str, damage: str) -> None:
    large(store, 300)
    store.drop_caches()
    path = next(p for p in vector_files(store) if p.name.startswith(stem))
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 3])
    else:
        path.write_bytes(bytes((data[0] ^ 255,)) + data[1:])
    index = bank_of(store).index
    assert isinstance(index, HnswIndex) and index.tail == 300
    check(store)
    upkeep.settle(store)
    check(store)
    assert reload(store).tail == 0


def test_an_index_of_another_bank_with_the_same_number_is_not_used(tmp_path: Path) -> None:
    first = opened(tmp_path / "p")
    large(first, 300)
    kept = vector_files(first)[0].parent
    first.close()
    moved = tmp_path / "kept"
    kept.rename(moved)
    second = Partition(tmp_path / "q", SETTINGS, lambda: NOW + 1, lambda: "00000000-0000-4000-8000-000000000001")
    load(second, 300, seed=4)
    (second.folder / "vectors").mkdir()
    moved.rename(second.folder / "vectors" / kept.name)
    index = bank_of(second).index
    assert isinstance(index, HnswIndex) and index.tail == 300
    check(second)
    second.close()


def test_a_bank_dropped_for_memory_while_it_is_read_is_taken_up_again_not_opened_twice(store: Partition) -> None:
    large(store, 300)
    with store.read(T, B) as snap:
        first = store.open_bank(snap.bank)
        store.drop_caches()
        load(store, 20, seed=2)
        assert store.open_bank(snap.bank) is first
    check(store)


def test_a_deleted_bank_leaves_no_folder(store: Partition) -> None:
    large(store, 300)
    assert vector_files(store)
    store.write(T, B, banks.delete_bank, frees=True)
    upkeep.tend(store, 0.01)
    assert not vector_files(store)


def test_a_large_bank_is_read_and_searched_while_the_disk_is_full(
    store: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    large(store, 300)
    store.drop_caches()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(arrays, "_allocate", full)
        index = bank_of(store).index
        assert isinstance(index, HnswIndex) and index.folder is None
        load(store, 20, seed=2)
        upkeep.tend(store, 0.01)
        check(store)
    assert reload(store).folder is not None
    check(store)


def test_a_bank_whose_mapped_files_cannot_grow_goes_on_in_memory(
    store: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    large(store, 300)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(arrays, "_allocate", full)
    load(store, 1000, seed=2)
    check(store)
    with store.read(T, B) as snap:
        assert snap.n == 1300


# -- searching -----------------------------------------------------------------------------------------------------


def test_filters_are_exact_and_k_is_clamped_to_what_is_there(store: Partition) -> None:
    large(store, 700)
    erase(store, list(range(0, 100)))
    rng = np.random.default_rng(0)
    with store.read(T, B) as snap:
        query = unit_rows(rng.normal(size=(1, DIM)).astype(np.float32))[0]
        for share in (0.002, 0.05, 0.5, 0.95):
            allowed = snap.columns.live & (rng.random(snap.n) < share)
            expected = np.flatnonzero(allowed)
            scores = snap.cosine(expected, query)
            found, _ = snap.semantic(query, 10_000, allowed, -1.0)
            assert sorted(found.tolist()) == expected.tolist()
            best, _ = snap.semantic(query, 5, allowed, -1.0)
            assert set(best.tolist()) <= set(expected.tolist())
            assert (
                len(set(best.tolist()) & set(expected[np.argsort(-scores)[:5]].tolist())) >= min(5, len(expected)) - 1
            )
        assert len(snap.semantic(query, 50, np.zeros(snap.n, np.bool_), -1.0)[0]) == 0


def test_k_beyond_what_is_left_after_deletes_returns_what_is_left(store: Partition) -> None:
    large(store, 300)
    erase(store, list(range(292)))
    upkeep.settle(store)
    with store.read(T, B) as snap:
        allowed = snap.columns.live & (np.arange(snap.n) % 2 == 0)
        assert sorted(snap.semantic(stored(snap, 295), 50, None, -1.0)[0].tolist()) == list(range(292, 300))
        assert sorted(snap.semantic(stored(snap, 295), 50, allowed, -1.0)[0].tolist()) == [292, 294, 296, 298]


def test_writing_erasing_and_upkeep_beside_searches_end_in_no_crash_and_no_loss(store: Partition) -> None:
    large(store, 400)
    stop = time.monotonic() + 4
    problems: list[BaseException] = []
    gone: set[int] = set()

    def guarded(run: Any) -> None:
        try:
            while time.monotonic() < stop and not problems:
                run()
        except BaseException as error:
            problems.append(error)

    numbers = itertools.count()
    maker = Maker(DIM, 7)

    def retain() -> None:
        number = next(numbers)
        units = maker.batch(number, 20)
        uids = store.write(T, B, partial(write_units, units=units, now=NOW))
        reembed(store, uids[:3], number)
        erase(store, uids[10:])
        gone.update(uids[10:])

    rng = np.random.default_rng(1)

    def search() -> None:
        with store.read(T, B) as snap:
            live = snap.columns.live
            uid = int(rng.choice(np.flatnonzero(live[:400])))
            found, _ = snap.semantic(stored(snap, uid), 20, live, -1.0)
            assert found[0] == uid and live[found].all()

    def tend() -> None:
        upkeep.tend(store, 0.05)

    threads = [threading.Thread(target=guarded, args=(run,)) for run in (retain, search, search, search, tend)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not problems, problems
    upkeep.settle(store)
    check(store, frozenset(gone))


# -- compaction ----------------------------------------------------------------------------------------------------


def test_compaction_leaves_no_vector_of_an_erased_unit_in_any_file(store: Partition) -> None:
    large(store, 400)
    with store.read(T, B) as snap:
        doomed = [3, 222, 399]
        rows = [stored(snap, uid).tobytes() for uid in doomed]
        codes = [snap.vector_row(uid)[8:] for uid in doomed]
        tokens = [snap.token_row(uid)[-128:] for uid in doomed]
    marks = [*rows, *codes, *tokens]
    assert all(any(mark in path.read_bytes() for path in _files(store)) for mark in marks)
    erase(store, doomed)
    upkeep.compact(store)
    for path in _files(store):
        data = path.read_bytes()
        assert not any(mark in data for mark in marks), path.name
    check(store, frozenset(doomed))
    store.drop_caches()
    check(store, frozenset(doomed))


def test_compaction_reaches_rows_that_an_earlier_process_left_behind_the_end_of_its_file(store: Partition) -> None:
    large(store, 300)
    load(store, 5, seed=2)  # in the tail of the mapped file, not in the saved index
    with store.read(T, B) as snap:
        mark = stored(snap, 304).tobytes()
    store.drop_caches()
    with store.environment.read():
        pass
    store.write(T, B, lambda applier: applier.apply(UnitsErased((304,), NOW)), frees=True)
    assert any(mark in path.read_bytes() for path in _files(store))
    upkeep.compact(store)
    assert not any(mark in path.read_bytes() for path in _files(store))
    check(store, frozenset({304}))


def test_a_graph_of_mostly_dead_rows_is_rebuilt_in_the_background(store: Partition) -> None:
    index = large(store, 1500)
    erase(store, list(range(600)))
    upkeep.settle(store)
    assert len(index.rows) == 900 and index.rows.dead == 0
    check(store, frozenset(range(600)))


def _files(store: Partition) -> list[Path]:
    return [path for path in store.folder.rglob("*") if path.is_file() and path.name != "lock.mdb"]


# -- memory and quarantine -----------------------------------------------------------------------------------------


def test_thirty_banks_stay_within_the_memory_budget(tmp_path: Path) -> None:
    probe = opened(tmp_path / "probe")
    load(probe, 150)
    size = bank_of(probe).nbytes
    probe.close()
    store = opened(tmp_path / "p", dataclasses.replace(SETTINGS, memory_budget=int(size * 5.5)))
    for number in range(30):
        load(store, 150, seed=number, bank=f"bank {number}")
    for number in range(30):
        with store.read(T, f"bank {number}") as snap:
            assert snap.semantic(stored(snap, 0), 1, None, -1.0)[0].tolist() == [0]
        assert sum(bank.nbytes for bank in store.open_banks()) <= store.settings.memory_budget
    assert 3 <= len(store.open_banks()) <= 6
    store.close()


def test_partitions_that_share_a_budget_leave_all_of_it_to_whoever_needs_it(tmp_path: Path) -> None:
    probe = opened(tmp_path / "probe")
    load(probe, 150)
    size = bank_of(probe).nbytes
    probe.close()
    budget = MemoryBudget(int(size * 4.5))
    first, second = (Partition(tmp_path / name, SETTINGS, lambda: NOW, new_ids(), budget) for name in "pq")
    for number in range(4):
        load(first, 150, bank=f"{number}")
        bank_of(first, f"{number}")
    assert len(first.open_banks()) == 4, "one partition may use all of it"
    bank_of(first, "0")
    load(second, 150)
    bank_of(second)
    left = {bank.record.bank_id for bank in first.open_banks()}
    assert left == {"0", "2", "3"} and len(second.open_banks()) == 1, "the least recently used goes, wherever it is"
    assert budget.total == sum(bank.nbytes for store in (first, second) for bank in store.open_banks())
    first.close()
    assert budget.total == sum(bank.nbytes for bank in second.open_banks())
    second.close()
    assert budget.total == 0


def die(folder: Path, number: int, step: str) -> None:
    """What a process that dies with a bank in hand leaves behind."""
    (folder / "in_hand.json").write_text(json.dumps([[number, step]]))


def recall(store: Partition, *terms: str) -> list[dict[str, Any]]:
    query = RecallQuery(T, B, " ".join(terms), vector=np.ones(DIM, np.float32).tobytes(), terms=terms, now=NOW)
    with store.read(T, B) as snap:
        return engine.recall(snap, query, RecallSettings()).results


def test_a_bank_that_kills_its_shard_three_times_is_read_without_vectors_until_it_is_released(tmp_path: Path) -> None:
    store = opened(tmp_path / "p")
    large(store, 300)
    load(store, 20, bank="healthy")
    number = bank_of(store).record.number
    store.close()
    for _ in range(3):
        die(tmp_path / "p", number, "advance")
        store = opened(tmp_path / "p")
        store.close()
    store = opened(tmp_path / "p")
    assert store.quarantined() == [number]
    assert recall(store, "person1"), "keyword search works"
    with store.read(T, B) as snap:
        assert snap.n == 300 and len(snap.units(range(300))) == 300
        assert len(snap.semantic(np.ones(DIM, np.float32), 5, None, -1.0)[0]) == 0
    with pytest.raises(Quarantined, match="quarantined"):
        load(store, 5, seed=2)
    load(store, 5, seed=2, bank="healthy")
    upkeep.tend(store, 0.01)
    erase(store, [11])  # erasing is still allowed
    store.release(number)
    assert store.quarantined() == []
    load(store, 5, seed=2)
    check(store, frozenset({11}))
    store.close()


def test_deaths_that_do_not_follow_each_other_quarantine_nobody(tmp_path: Path) -> None:
    store = opened(tmp_path / "p")
    load(store, 20)
    number = bank_of(store).record.number
    store.close()
    for _ in range(4):
        die(tmp_path / "p", number, "open")
        store = opened(tmp_path / "p")
        bank_of(store)
        assert store.quarantined() == []
        store.close()


def test_the_note_of_a_bank_in_hand_names_all_of_them_and_goes_with_the_last(store: Partition) -> None:
    load(store, 5)
    note = store.folder / "in_hand.json"
    with store.in_hand(1, "open"):
        with store.in_hand(2, "advance"):
            assert json.loads(note.read_text()) == [[1, "open"], [2, "advance"]]
        assert json.loads(note.read_text()) == [[1, "open"]]
    assert not note.exists()


def test_a_cache_that_cannot_follow_a_commit_is_loaded_again(store: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    load(store, 20)
    bank = bank_of(store)

    def broken(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(bank, "append_units", broken)
    load(store, 20, seed=2)
    assert bank_of(store) is not bank
    check(store)
    with store.read(T, B) as snap:
        assert snap.n == 40

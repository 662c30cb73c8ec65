"""Promises of banks too large to scan: nothing is lost, late or left behind by an approximate index and its files."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from large_bank import (
    DIM,
    NOW,
    SETTINGS,
    THRESHOLD,
    B,
    T,
    bank_of,
    check,
    erase,
    large,
    load,
    opened,
    reembed,
    reload,
    stored,
    vector_files,
)

from recalld.actors import banks
from recalld.storage import arrays, bank_index, upkeep
from recalld.storage import partition as partitions
from recalld.storage.bulk import Maker, write_units
from recalld.storage.changes import UnitsErased
from recalld.storage.hnsw import HnswIndex
from recalld.storage.partition import Partition
from recalld.storage.quantise import quantise_unit, unit_rows
from recalld.storage.vectors import ExactIndex


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Partition]:
    made = opened(tmp_path / "p")
    yield made
    made.close()


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

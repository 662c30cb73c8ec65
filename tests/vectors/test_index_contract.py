"""The contract of `VectorIndex`, held by every implementation: what is added is found, what is removed is not."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recalld.storage import hnsw
from recalld.storage.hnsw import HnswIndex, SliceLock
from recalld.storage.vectors import ExactIndex

DIM = 48
MODEL = "model-a/bank-1"


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    rows = np.asarray(rows, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clustered(n: int, seed: int = 0, dim: int = DIM) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(n // 40, 1), dim))
    return unit(centres[rng.integers(0, len(centres), n)] + 0.6 * rng.standard_normal((n, dim)))


def brute(
    rows: NDArray[np.float32], uids: NDArray[Any], q: NDArray[Any], k: int, allowed: set[int] | None = None
) -> list[int]:
    """The k best units, best row each, by the plainest code there is."""
    best: dict[int, float] = {}
    for uid, score in zip(uids.tolist(), (rows @ q).tolist(), strict=True):
        if allowed is None or uid in allowed:
            best[uid] = max(score, best.get(uid, -2.0))
    return sorted(best, key=lambda uid: (-best[uid], uid))[:k]


class Exact:
    exact = True

    def make(self, folder: Path) -> ExactIndex:
        return ExactIndex(DIM, MODEL)

    def open(self, folder: Path, model: str = MODEL, dim: int = DIM, newest: int | None = None) -> ExactIndex | None:
        return ExactIndex.open(folder, model, dim, newest)


class Hnsw:
    """The graph asked even where a scan would do, so that a small test exercises it."""

    exact = False

    def make(self, folder: Path) -> HnswIndex:
        return HnswIndex(DIM, MODEL, folder, exact_rows=0)

    def open(self, folder: Path, model: str = MODEL, dim: int = DIM, newest: int | None = None) -> HnswIndex | None:
        return HnswIndex.open(folder, model, dim, newest, exact_rows=0)


class HnswInMemory(Hnsw):
    def make(self, folder: Path) -> HnswIndex:
        return HnswIndex(DIM, MODEL, None, exact_rows=0)


class HnswTail(Hnsw):
    """Never advanced: everything is in the tail."""

    exact = True


@pytest.fixture(params=[Exact, Hnsw, HnswInMemory, HnswTail], ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param()


def settle(kind: Any, index: Any) -> None:
    """Let the background work finish, where the kind does any."""
    if not isinstance(kind, HnswTail):
        while index.advance(1.0):
            pass


def recall_of(index: Any, rows: NDArray[Any], uids: NDArray[Any], k: int, queries: int = 30, **options: Any) -> float:
    rng, hits, wanted = np.random.default_rng(5), 0, 0
    mask = options.get("allowed")
    allowed = None if mask is None else set(np.flatnonzero(mask).tolist())
    for _ in range(queries):
        q = unit(rows[rng.integers(0, len(rows))][None] + 0.3 * rng.standard_normal((1, DIM)))[0]
        truth = brute(rows, uids, q, k, allowed)
        got, scores = index.search(q, k, **options)
        assert len(got) == len(truth) and len(set(got.tolist())) == len(got)
        assert (np.diff(scores) <= 1e-6).all()
        if allowed is not None:
            assert set(got.tolist()) <= allowed
        hits += len(set(got.tolist()) & set(truth))
        wanted += len(truth)
    return hits / wanted


@pytest.mark.parametrize("k", [1, 10, 300])
def test_the_nearest_units_are_found(kind: Any, k: int, tmp_path: Path) -> None:
    rows, uids = clustered(2500), np.arange(2500)
    index = kind.make(tmp_path)
    for at in range(0, 2500, 500):
        index.add(uids[at : at + 500], rows[at : at + 500])
    settle(kind, index)
    assert recall_of(index, rows, uids, k) >= (1.0 if kind.exact else 0.95)


def test_scores_are_cosines_in_order_with_ties_by_uid(kind: Any, tmp_path: Path) -> None:
    rows = unit(np.array([[1, 0], [1, 0], [0, 1], [1, 1]]) @ np.eye(2, DIM))
    index = kind.make(tmp_path)
    index.add(np.arange(4), rows)
    settle(kind, index)
    uids, scores = index.search(rows[0], 10)
    assert uids.tolist() == [0, 1, 3, 2]
    assert scores == pytest.approx([1, 1, 2**-0.5, 0], abs=1e-6)
    assert uids.dtype == np.int64 and scores.dtype == np.float32


def test_k_beyond_what_exists_returns_what_exists(kind: Any, tmp_path: Path) -> None:
    rows = clustered(10)
    index = kind.make(tmp_path)
    assert [len(part) for part in index.search(rows[0], 5)] == [0, 0]
    index.add(np.arange(10), rows)
    settle(kind, index)
    index.remove(np.arange(8))
    for ready in (False, True):
        if ready:
            settle(kind, index)
        mask = np.zeros(10, np.bool_)
        mask[[1, 8]] = True
        assert sorted(index.search(rows[0], 50)[0].tolist()) == [8, 9]
        assert index.search(rows[0], 50, mask)[0].tolist() == [8]
        assert len(index.search(rows[0], 0)[0]) == 0
    index.remove(np.array([8, 9, 9, 77]))
    settle(kind, index)
    assert len(index.search(rows[0], 50)[0]) == 0


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.97])
def test_filters_return_k_admitted_units_whatever_their_share(kind: Any, share: float, tmp_path: Path) -> None:
    rows, uids = clustered(3000, 1), np.arange(3000)
    index = kind.make(tmp_path)
    index.add(uids, rows)
    settle(kind, index)
    mask = np.random.default_rng(2).random(3000) < share
    assert recall_of(index, rows, uids, 20, allowed=mask) >= (1.0 if kind.exact else 0.95)
    assert len(index.search(rows[0], 5, np.zeros(3000, np.bool_))[0]) == 0


def test_a_filter_that_excludes_the_whole_neighbourhood_still_returns_k(kind: Any, tmp_path: Path) -> None:
    rows, uids = clustered(3000, 3), np.arange(3000)
    index = kind.make(tmp_path)
    index.add(uids, rows)
    settle(kind, index)
    far = np.argsort(rows @ rows[0])[:1500]
    mask = np.zeros(3000, np.bool_)
    mask[far] = True
    got, _ = index.search(rows[0], 30, mask)
    truth = brute(rows, uids, rows[0], 30, set(far.tolist()))
    assert len(got) == 30 and mask[got].all()
    assert len(set(got.tolist()) & set(truth)) >= 28


def test_small_sets_are_answered_exactly(tmp_path: Path) -> None:
    rows, uids = clustered(3000, 4), np.arange(3000)
    index = HnswIndex(DIM, MODEL, tmp_path, exact_rows=400)
    index.add(uids, rows)
    settle(Hnsw(), index)
    mask = np.random.default_rng(2).random(3000) < 0.1
    assert recall_of(index, rows, uids, 20, allowed=mask) == 1.0


def test_nothing_scores_under_the_floor_and_nothing_above_is_lost(kind: Any, tmp_path: Path) -> None:
    rows = clustered(1500, 6)
    index = kind.make(tmp_path)
    index.add(np.arange(1500), rows)
    settle(kind, index)
    q = rows[7]
    got, scores = index.search(q, 400, floor=0.5)
    expected = np.flatnonzero(rows @ q >= 0.5)
    assert (scores >= 0.5).all()
    assert len(set(expected.tolist()) & set(got.tolist())) >= 0.98 * len(expected) and len(got) <= len(expected)
    assert len(index.search(q, 400, floor=1.5)[0]) == 0


def test_units_added_after_a_snapshot_are_not_in_its_answers(kind: Any, tmp_path: Path) -> None:
    rows = clustered(1200, 7)
    index = kind.make(tmp_path)
    index.add(np.arange(1200), rows)
    settle(kind, index)
    for q in rows[1100:1110]:
        got, _ = index.search(q, 20, n=1000)
        truth = brute(rows[:1000], np.arange(1000), q, 20)
        assert len(got) == 20 and got.max() < 1000 and len(set(got.tolist()) & set(truth)) >= 18
        got, _ = index.search(q, 20, np.ones(1000, np.bool_))
        assert got.max() < 1000 and len(got) == 20


def test_a_removed_unit_is_never_found_again(kind: Any, tmp_path: Path) -> None:
    rows = clustered(800, 8)
    index = kind.make(tmp_path)
    index.add(np.arange(800), rows)
    settle(kind, index)
    gone = np.arange(0, 800, 3)
    index.remove(gone)
    for _ in range(2):
        for uid in gone[:40].tolist():
            assert uid not in index.search(rows[uid], 50)[0]
            assert index.rows.cosine(np.array([uid]), rows[uid]).tolist() == [0.0]
        settle(kind, index)
    alive = np.setdiff1d(np.arange(800), gone)
    assert recall_of(index, rows[alive], alive, 20) >= (1.0 if kind.exact else 0.95)


def test_a_unit_with_several_rows_is_one_result_by_its_best_row(kind: Any, tmp_path: Path) -> None:
    rows = clustered(1500, 9)
    uids = np.sort(np.random.default_rng(1).integers(0, 600, 1500))
    index = kind.make(tmp_path)
    index.add(uids, rows)
    settle(kind, index)
    assert recall_of(index, rows, uids, 40) >= (1.0 if kind.exact else 0.95)
    q, asked = rows[3], np.unique(uids)[:100]
    expected = [float((rows[uids == uid] @ q).max()) for uid in asked]
    assert index.rows.cosine(asked, q) == pytest.approx(expected, abs=1e-6)


def test_adding_a_unit_again_replaces_its_rows(kind: Any, tmp_path: Path) -> None:
    rows = clustered(600, 10)
    index = kind.make(tmp_path)
    index.add(np.arange(500), rows[:500])
    settle(kind, index)
    index.add(np.array([7, 7, 9]), rows[500:503])
    for _ in range(2):
        assert index.search(rows[501], 1)[0].tolist() == [7] and index.search(rows[502], 1)[0].tolist() == [9]
        found, scores = index.search(rows[7], 3)
        assert 7 not in found or scores[found.tolist().index(7)] < 0.999
        settle(kind, index)


def test_uids_may_have_gaps_and_come_in_any_order(kind: Any, tmp_path: Path) -> None:
    rows = clustered(300, 11)
    uids = np.random.default_rng(3).permutation(1000)[:300]
    index = kind.make(tmp_path)
    index.add(uids, rows)
    settle(kind, index)
    assert recall_of(index, rows, uids, 10) >= (1.0 if kind.exact else 0.95)
    absent = np.setdiff1d(np.arange(1000), uids)
    assert not index.rows.cosine(absent, rows[0]).any()
    assert not index.rows.cosine(np.array([5000]), rows[0]).any()


def _filled(kind: Any, folder: Path, n: int = 1200) -> tuple[Any, NDArray[np.float32]]:
    rows = clustered(n, 12)
    index = kind.make(folder)
    index.add(np.arange(n), rows)
    settle(kind, index)
    index.remove(np.arange(0, 100, 2))
    return index, rows


def test_a_saved_index_opens_where_it_stood_and_is_caught_up(kind: Any, tmp_path: Path) -> None:
    index, rows = _filled(kind, tmp_path)
    index.save(tmp_path, 41)
    index.add(np.arange(1200, 1250), clustered(50, 13))  # lost: after the save
    index.close()
    again = kind.open(tmp_path, newest=41)
    assert again is not None and again.seq == 41
    alive = np.setdiff1d(np.arange(1200), np.arange(0, 100, 2))
    assert recall_of(again, rows[alive], alive, 20) >= (1.0 if kind.exact else 0.95)
    late = clustered(50, 13)
    again.add(np.arange(1200, 1250), late)
    again.add(np.arange(1100, 1150), rows[1100:1150])  # a change it already holds, applied twice
    again.remove(np.arange(0, 100, 2))
    settle(kind, again)
    everything = np.concatenate([rows[alive], late])
    uids = np.concatenate([alive, np.arange(1200, 1250)])
    assert recall_of(again, everything, uids, 20) >= (1.0 if kind.exact else 0.95)
    again.save(tmp_path, 42)
    third = kind.open(tmp_path)
    assert third is not None and third.seq == 42
    assert recall_of(third, everything, uids, 20) >= (1.0 if kind.exact else 0.95)


def test_files_are_private_and_old_ones_go(kind: Any, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index, _ = _filled(kind, folder)
    for seq in (1, 2, 3):
        index.save(folder, seq)
    names = sorted(p.name for p in folder.iterdir())
    header = json.loads((folder / "index.json").read_text())
    assert names == sorted(["index.json", *(entry["name"] for entry in header["files"].values())])
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in folder.iterdir())


def _damages(folder: Path) -> list[Callable[[], None]]:
    def cut(path: Path) -> Callable[[], None]:
        return lambda: os.truncate(path, path.stat().st_size // 2)

    def flip(path: Path) -> Callable[[], None]:
        def change() -> None:
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 0xFF
            path.write_bytes(data)

        return change

    named = [entry["name"] for entry in json.loads((folder / "index.json").read_text())["files"].values()]
    paths = [folder / "index.json", *(folder / name for name in named)]
    return [act for path in paths for act in (cut(path), flip(path), path.unlink, lambda p=path: p.write_bytes(b""))]  # type: ignore[misc]


def test_truncated_damaged_or_missing_files_are_reported_and_rebuilt(kind: Any, tmp_path: Path) -> None:
    count = 1
    done = 0
    while done < count:
        folder = tmp_path / str(done)
        index, rows = _filled(kind, folder, 300)
        index.save(folder, 5)
        index.close()
        damages = _damages(folder)
        count = len(damages)
        damages[done]()
        assert kind.open(folder) is None, f"damage {done}"
        fresh = kind.make(folder)
        fresh.add(np.arange(300), rows)
        settle(kind, fresh)
        fresh.save(folder, 6)
        assert kind.open(folder) is not None
        done += 1


def test_foreign_and_newer_indexes_are_refused(kind: Any, tmp_path: Path) -> None:
    assert kind.open(tmp_path / "nowhere") is None
    index, _ = _filled(kind, tmp_path, 200)
    index.save(tmp_path, 5)
    assert kind.open(tmp_path, model="model-b/bank-1") is None
    assert kind.open(tmp_path, dim=DIM + 1) is None
    assert kind.open(tmp_path, newest=4) is None
    assert kind.open(tmp_path, newest=9) is not None


def test_a_save_that_dies_before_its_header_leaves_the_old_index(kind: Any, tmp_path: Path, monkeypatch: Any) -> None:
    index, rows = _filled(kind, tmp_path, 300)
    index.save(tmp_path, 5)
    index.add(np.arange(300, 340), clustered(40, 14))
    settle(kind, index)

    def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("recalld.storage.vector_files.commit", dies)
        with pytest.raises(KeyboardInterrupt):
            index.save(tmp_path, 6)
    again = kind.open(tmp_path)
    assert again is not None and again.seq == 5
    assert again.search(rows[299], 1)[0].tolist() == [299]


def test_one_adds_and_removes_while_three_search(kind: Any, tmp_path: Path) -> None:
    """No crash, no unit twice, no removed unit, every answer full. 2 s here, longer in a soak."""
    seconds = float(os.environ.get("RECALLD_SOAK_SECONDS", "2"))
    rows = clustered(4000, 15)
    index = kind.make(tmp_path)
    index.add(np.arange(500), rows[:500])
    settle(kind, index)
    visible, stop, failures = [500], threading.Event(), []

    def search(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            while not stop.is_set():
                n = visible[0]
                uids, scores = index.search(rows[rng.integers(0, n)], 30, np.ones(n, np.bool_))
                assert len(uids) == len(set(uids.tolist())) and len(uids) <= 30
                assert not len(uids) or (uids.max() < n and scores[0] <= 1.001)
                assert not (uids[uids < 200] % 2).any() or visible[0] < 600
                assert len(uids) == 30
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(3)]
    background = threading.Thread(
        target=lambda: [index.advance(0.02) or time.sleep(0.001) for _ in iter(stop.is_set, True)]
    )
    for thread in [*threads, background]:
        thread.start()
    end = time.monotonic() + seconds
    at = 500
    index.remove(np.arange(1, 200, 2))
    saves = 0
    while time.monotonic() < end and not failures:
        if at < 4000:
            index.add(np.arange(at, at + 5), rows[at : at + 5])
            at += 5
            visible[0] = at
        elif saves < 3:
            index.save(tmp_path, saves)
            saves += 1
        time.sleep(0.002)
    stop.set()
    for thread in [*threads, background]:
        thread.join()
    assert not failures, failures[0]


# -- what only the graph does ----------------------------------------------------------------------------------------


def test_a_third_dead_compacts_the_graph_while_it_serves(tmp_path: Path) -> None:
    rows = clustered(4000, 16)
    index = HnswIndex(DIM, MODEL, tmp_path, exact_rows=0)
    index.add(np.arange(3000), rows[:3000])
    while index.advance(1.0):
        pass
    index.save(tmp_path, 1)
    index.remove(np.arange(0, 1200))
    added = 3000
    while index.advance(0.0):  # one slice at a time, with changes in between
        if added < 3300:
            index.add(np.arange(added, added + 1), rows[added : added + 1])
            if added % 3 == 0:
                index.remove(np.array([added - 1000]))
                index.add(np.array([added - 1200]), rows[3900:3901])
                index.add(np.array([added - 1200]), rows[added - 1200 : added - 1199])
            added += 1
    assert index.rows.dead < 500 and len(index.rows) < 2500 and index.save_due
    alive = np.setdiff1d(np.arange(3300), [*range(1200), *(a - 1000 for a in range(3000, 3300) if a % 3 == 0)])
    assert recall_of(index, rows[alive], alive, 20) >= 0.95
    index.save(tmp_path, 2)
    assert not index.save_due
    assert len([p for p in tmp_path.iterdir() if p.name.startswith("rows.")]) == 1
    again = HnswIndex.open(tmp_path, MODEL, DIM, exact_rows=0)
    assert again is not None and recall_of(again, rows[alive], alive, 20) >= 0.95


def test_after_compact_and_save_no_file_holds_a_removed_vector(tmp_path: Path) -> None:
    rows = clustered(1500, 17)
    index = HnswIndex(DIM, MODEL, tmp_path, exact_rows=0)
    index.add(np.arange(1500), rows)
    while index.advance(1.0):
        pass
    index.save(tmp_path, 1)
    marker = rows[777].tobytes()
    assert any(marker in p.read_bytes() for p in tmp_path.iterdir())
    index.remove(np.array([777]))
    index.compact()
    index.save(tmp_path, 2)
    assert not any(marker in p.read_bytes() for p in tmp_path.iterdir())
    assert index.search(rows[778], 1)[0].tolist() == [778]


def test_a_large_bank_is_made_from_the_rows_of_a_small_one(tmp_path: Path) -> None:
    rows = clustered(900, 18)
    small = ExactIndex(DIM, MODEL)
    small.add(np.arange(900), rows)
    small.remove(np.array([3]))
    large = HnswIndex(DIM, MODEL, tmp_path, rows=small.rows, exact_rows=0)
    assert large.tail == 899
    while large.advance(1.0):
        pass
    assert large.tail == 0
    alive = np.setdiff1d(np.arange(900), [3])
    assert recall_of(large, rows[alive], alive, 20) >= 0.95


def test_a_unit_of_several_rows_keeps_them_all_when_rows_are_copied(tmp_path: Path) -> None:
    rows, uids = clustered(6000, 15), np.repeat(np.arange(2000), 3)  # no piece of copying ends where a unit does
    index = HnswIndex(DIM, MODEL, tmp_path / "large", exact_rows=0)
    index.add(uids, rows)
    settle(Hnsw(), index)
    index.compact()
    small = ExactIndex(DIM, MODEL)
    small.add(uids, rows)
    promoted = HnswIndex(DIM, MODEL, tmp_path / "promoted", rows=small.rows)
    for copied in (index, promoted):
        owners, kept = copied.rows.of(np.arange(2000))
        assert np.array_equal(owners, uids) and np.array_equal(kept, rows)
    settle(Hnsw(), index)
    found = sum(index.search(rows[row], 1)[0].tolist() == [row // 3] for row in range(1000, 1060))
    assert found >= 58


def test_a_compaction_under_way_keeps_nothing_of_what_is_scrubbed(tmp_path: Path) -> None:
    rows = clustered(3000, 16)
    index = HnswIndex(DIM, MODEL, tmp_path, exact_rows=0)
    index.add(np.arange(3000), rows)
    settle(Hnsw(), index)
    index.remove(np.arange(1200))
    victim = 1250
    while index._rebuild is None or not index._rebuild.graph.rows.holds(victim):
        index._step()
    index.remove(np.array([victim]))
    for again in range(2):
        index.scrub()
        index.save(tmp_path, 1 + again)
        assert not [path.name for path in tmp_path.iterdir() if rows[victim].tobytes() in path.read_bytes()]
        settle(Hnsw(), index)
    assert index.search(rows[1400], 1)[0].tolist() == [1400] and len(list(tmp_path.glob("rows.*"))) <= 2
    assert victim not in index.search(rows[victim], 50)[0]


def test_matrix_of_a_large_bank_is_not_anonymous_memory(tmp_path: Path) -> None:
    rows = clustered(2000, 19)
    mapped = HnswIndex(DIM, MODEL, tmp_path)
    resident = HnswIndex(DIM, MODEL, None)
    for index in (mapped, resident):
        index.add(np.arange(2000), rows)
    assert resident.rows.nbytes - mapped.rows.nbytes == rows.nbytes


def test_an_unwritable_graph_is_a_clean_error_and_the_old_save_stays(tmp_path: Path, monkeypatch: Any) -> None:
    index, rows = _filled(Hnsw(), tmp_path, 1100)
    index.save(tmp_path, 1)
    monkeypatch.setattr(hnsw._Graph, "file_bytes", property(lambda self: 1), raising=True)
    with pytest.raises(hnsw.DiskFull):
        index.save(tmp_path, 2)
    again = HnswIndex.open(tmp_path, MODEL, DIM)
    assert again is not None and again.seq == 1 and not list(tmp_path.glob("*.tmp"))
    assert again.search(rows[999], 1)[0].tolist() == [999]


def test_a_slice_waits_for_running_queries_and_keeps_new_ones_out() -> None:
    lock, order = SliceLock(patience=0.05), []
    inside, leave = threading.Event(), threading.Event()

    def long_query() -> None:
        with lock.query():
            inside.set()
            leave.wait(5)
            order.append("query")

    def grow() -> None:
        with lock.slice():
            order.append("slice")
            time.sleep(0.02)
            order.append("slice end")

    threads = [threading.Thread(target=long_query), threading.Thread(target=grow)]
    threads[0].start()
    inside.wait(5)
    threads[1].start()
    time.sleep(0.1)  # past its patience: from now on new queries wait for the slice
    late = threading.Thread(target=lambda: [order.append("late") for _ in [lock.query().__enter__()]])
    late.start()
    time.sleep(0.02)
    assert order == []
    leave.set()
    for thread in [*threads, late]:
        thread.join(5)
    assert order == ["query", "slice", "slice end", "late"]


def test_a_stream_of_queries_cannot_stop_growth() -> None:
    lock, stop = SliceLock(patience=0.02), threading.Event()

    def query() -> None:
        while not stop.is_set():
            with lock.query():
                time.sleep(0.002)

    threads = [threading.Thread(target=query) for _ in range(4)]
    for thread in threads:
        thread.start()
    began, slices = time.monotonic(), 0
    while time.monotonic() - began < 0.5:
        with lock.slice():
            slices += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert slices >= 5

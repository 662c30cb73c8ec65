"""Growing arrays, token vectors and their scores."""

from __future__ import annotations

import errno
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recalld.storage import arrays, tokens
from recalld.storage.arrays import GrowingArray
from recalld.storage.errors import DiskFull, StoreCorrupt
from recalld.storage.tokens import TokenRows


@pytest.fixture(params=["memory", "file"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "rows.1.f32" if request.param == "file" else None


@pytest.mark.parametrize("width", [0, 3])
def test_a_view_stays_as_it_was_while_the_array_grows(where: Path | None, width: int) -> None:
    array = GrowingArray(np.float32, width, where)
    shape = (width,) if width else ()
    views, expected = [], np.empty((0, *shape), np.float32)
    for i in range(60):
        rows = np.random.default_rng(i).standard_normal((i * 7, *shape)).astype(np.float32)
        assert array.append(rows) == len(expected)
        expected = np.concatenate([expected, rows])
        views.append(array.view())
    gc.collect()
    for i, view in enumerate(views):
        assert np.array_equal(view, expected[: len(view)]), i
    view = array.view(10)
    assert len(view) == 10 and not view.flags.writeable
    with pytest.raises(ValueError):
        array.view(len(array) + 1)
    with pytest.raises(ValueError):
        array.append(np.zeros((2, width + 1), np.float32))
    array.close()
    array.close()
    assert np.array_equal(views[-1], expected)


def test_a_file_is_kept_cut_to_the_rows_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    array = GrowingArray(np.int64, 2, path)
    array.append(np.arange(2000).reshape(1000, 2))
    array.flush()
    assert path.stat().st_mode & 0o777 == 0o600
    assert array.nbytes == 0 and array.file_bytes == 16_000
    array.close()
    again = GrowingArray(np.int64, 2, path, rows=600)
    assert len(again) == 600
    assert again.append(np.array([[7, 7]])) == 600
    assert again.view()[599:].tolist() == [[1198, 1199], [7, 7]]
    with pytest.raises(StoreCorrupt):
        GrowingArray(np.int64, 2, path, rows=10**6)


def test_a_full_disk_is_an_error_and_changes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    array = GrowingArray(np.int64, 0, tmp_path / "a")
    array.append(np.arange(100))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(arrays, "_allocate", full)
    with pytest.raises(DiskFull):
        array.append(np.arange(100_000))
    monkeypatch.undo()
    assert array.view().tolist() == list(range(100))
    assert array.append(np.array([5])) == 100


def test_space_of_a_mapped_file_is_allocated_not_sparse(tmp_path: Path) -> None:
    array = GrowingArray(np.int64, 0, tmp_path / "a")
    array.append(np.arange(50_000))
    stat = (tmp_path / "a").stat()
    assert stat.st_blocks * 512 >= stat.st_size


def _naive(held: dict[int, NDArray[np.int8]], uids: list[int], q: NDArray[Any], w: NDArray[Any]) -> list[float]:
    out = []
    for uid in uids:
        rows = held.get(uid)
        if rows is None or not len(rows):
            out.append(0.0)
            continue
        products = (rows.astype(np.float64) / 127) @ q.T.astype(np.float64)
        out.append(float((products.max(axis=0) * w).sum()))
    return out


lengths = st.lists(st.one_of(st.integers(0, 6), st.integers(0, 60), st.just(1)), min_size=1, max_size=40)


@settings(max_examples=80, deadline=None)
@given(lengths, st.data(), st.integers(0, 2**16), st.sampled_from([8192, 16, 1]), st.booleans())
def test_maxsim_equals_the_plain_definition(sizes: list[int], data: Any, seed: int, chunk: int, bulk: bool) -> None:
    rng = np.random.default_rng(seed)
    original, tokens._CHUNK = tokens._CHUNK, chunk
    try:
        rows = TokenRows()
        held = {uid: rng.integers(-127, 128, (n, 64)).astype(np.int8) for uid, n in enumerate(sizes)}
        if bulk:
            rows.extend(0, np.array(sizes, np.int64), np.concatenate(list(held.values())))
        else:
            for uid, part in held.items():
                rows.append(uid, part)
        for uid in data.draw(st.lists(st.integers(0, len(sizes) + 3), max_size=5)):
            rows.remove(uid)
            held.pop(uid, None)
        for uid in data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3)):
            held[uid] = rng.integers(-127, 128, (3, 64)).astype(np.int8)
            rows.append(uid, held[uid])
        uids = data.draw(st.lists(st.integers(0, len(sizes) + 5), max_size=60))
        q = rng.standard_normal((data.draw(st.integers(0, 12)), 64)).astype(np.float32)
        q /= np.maximum(np.linalg.norm(q, axis=1, keepdims=True), 1e-9)
        w = rng.random(len(q)).astype(np.float32)
        got = rows.maxsim(np.array(uids, np.int64), q, w)
        assert got.dtype == np.float32
        assert got == pytest.approx(_naive(held, uids, q, w), abs=1e-4)
    finally:
        tokens._CHUNK = original


def test_maxsim_of_long_units_is_right_and_bounded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = TokenRows(path=tmp_path / "tokens.1.i8")
    held = {uid: rng.integers(-127, 128, (n, 64)).astype(np.int8) for uid, n in enumerate([30_000, 3, 0, 9000, 20])}
    for uid, part in held.items():
        rows.append(uid, part)
    q = rng.standard_normal((4, 64)).astype(np.float32)
    w = np.ones(4, np.float32)
    order = [4, 0, 2, 1, 3, 0]
    assert rows.maxsim(np.array(order), q, w) == pytest.approx(_naive(held, order, q, w), rel=1e-4)
    assert rows.nbytes < 1000


def test_removed_token_vectors_are_overwritten() -> None:
    rows = TokenRows()
    rows.append(0, np.full((4, 64), 9, np.int8))
    rows.append(1, np.full((2, 64), 5, np.int8))
    rows.remove(0)
    assert not rows._rows.data.view()[:4].any() and rows._rows.data.view()[4:].all()
    assert rows.dead_rows == 4 and len(rows) == 2


def test_a_reader_of_n_units_is_untouched_by_later_ones() -> None:
    rng = np.random.default_rng(1)
    rows = TokenRows()
    q, w = rng.standard_normal((5, 64)).astype(np.float32), np.ones(5, np.float32)
    for uid in range(50):
        rows.append(uid, rng.integers(-127, 128, (uid % 7, 64)).astype(np.int8))
    before = rows.maxsim(np.arange(50), q, w)
    for uid in range(50, 2000):
        rows.append(uid, rng.integers(-127, 128, (9, 64)).astype(np.int8))
    assert np.array_equal(rows.maxsim(np.arange(50), q, w), before)

"""Posting blocks: what goes in comes out, in order, in few and well-sized pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.storage import postings
from recalld.storage.errors import StoreCorrupt

batches = st.lists(st.integers(min_value=0, max_value=700), min_size=1, max_size=60)


def _entries(start: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    uids = (start + np.cumsum(rng.integers(1, 5, n))).astype(np.uint32)
    return uids, rng.integers(1, 256, n).astype(np.uint8)


class _List:
    """A term's list as the store keeps it."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.tail: bytes | None = None

    def add(self, uids: np.ndarray, freqs: np.ndarray) -> None:
        fits = postings.tail_fits(self.tail, len(uids))
        last = self.blocks[-1] if self.blocks and not fits else None
        update = postings.plan_append(last, self.tail, uids, freqs)
        assert not (fits and (update.replace_last or update.new_blocks))
        if update.replace_last is not None:
            self.blocks[-1] = update.replace_last
        self.blocks.extend(update.new_blocks)
        self.tail = update.tail

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        return postings.join([*self.blocks, *([self.tail] if self.tail is not None else [])])


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 255)), unique_by=lambda e: e[0], max_size=300))
def test_a_block_gives_back_what_was_encoded(entries: list[tuple[int, int]]) -> None:
    entries.sort()
    uids = np.array([u for u, _ in entries], np.uint32)
    freqs = np.array([f for _, f in entries], np.uint8)
    block = postings.encode(uids, freqs)
    for buffer in (block, memoryview(block), memoryview(bytearray(block))):
        got_uids, got_freqs = postings.decode(buffer)
        assert np.array_equal(got_uids, uids) and np.array_equal(got_freqs, freqs)
        assert not got_uids.flags.writeable and not got_freqs.flags.writeable
    assert postings.count(block) == len(entries)


@settings(max_examples=60, deadline=None)
@given(batches, st.integers(0, 1000), st.sampled_from([8192, 300, 1000]))
def test_any_sequence_of_appends_reads_as_one_sorted_list(sizes: list[int], seed: int, limit: int) -> None:
    original, postings.BLOCK_ENTRIES = postings.BLOCK_ENTRIES, limit
    try:
        stored, all_uids, all_freqs, start = _List(), [], [], 0
        for i, n in enumerate(sizes):
            uids, freqs = _entries(start, n, seed + i)
            start = int(uids[-1]) if n else start
            stored.add(uids, freqs)
            all_uids.append(uids)
            all_freqs.append(freqs)
        uids, freqs = stored.read()
        assert np.array_equal(uids, np.concatenate(all_uids))
        assert np.array_equal(freqs, np.concatenate(all_freqs))
        assert all(postings.count(block) == limit for block in stored.blocks[:-1])
        assert all(postings.TAIL_ENTRIES < postings.count(block) <= limit for block in stored.blocks)
        assert stored.tail is not None and postings.count(stored.tail) <= postings.TAIL_ENTRIES
    finally:
        postings.BLOCK_ENTRIES = original


def test_a_tail_stays_under_a_kilobyte_and_a_full_block_between_16_and_64() -> None:
    uids, freqs = _entries(0, postings.BLOCK_ENTRIES, 1)
    assert len(postings.encode(uids[: postings.TAIL_ENTRIES], freqs[: postings.TAIL_ENTRIES])) <= 1024
    assert 16 * 1024 <= len(postings.encode(uids, freqs)) <= 64 * 1024


def test_one_huge_append_makes_full_blocks() -> None:
    uids, freqs = _entries(0, 3 * postings.BLOCK_ENTRIES + 17, 2)
    update = postings.build(uids, freqs)
    assert [postings.count(b) for b in update.new_blocks] == [postings.BLOCK_ENTRIES] * 3
    assert postings.count(update.tail) == 17
    assert np.array_equal(postings.join([*update.new_blocks, update.tail])[0], uids)


def test_frequencies_above_255_count_as_255() -> None:
    block = postings.encode(np.array([1, 2]), np.array([3, 9000]))
    assert postings.decode(block)[1].tolist() == [3, 255]


def test_unsorted_or_repeated_uids_are_refused() -> None:
    one = np.ones(1, np.uint8)
    tail = postings.plan_append(None, None, np.array([7], np.uint32), one).tail
    for wrong in (7, 6):
        with pytest.raises(ValueError):
            postings.plan_append(None, tail, np.array([wrong], np.uint32), one)
    with pytest.raises(ValueError):
        postings.encode(np.array([1, 2], np.uint32), one)
    with pytest.raises(ValueError):
        postings.plan_append(None, None, np.array([2, 2], np.uint32), np.ones(2, np.uint8))
    block = postings.encode(np.array([50], np.uint32), one)
    with pytest.raises(ValueError):
        postings.plan_append(block, postings.EMPTY, np.array([50], np.uint32), one)


def test_a_block_of_the_wrong_length_is_reported_not_read() -> None:
    block = postings.encode(*_entries(0, 10, 3))
    for broken in (block[:-1], block + b"x", block[:3], b""):
        with pytest.raises(StoreCorrupt):
            postings.decode(broken)


@given(st.sets(st.integers(0, 400), max_size=100), st.sets(st.integers(0, 400), max_size=50), st.integers(1, 500))
def test_without_drops_exactly_the_dead(held: set[int], dead: set[int], n: int) -> None:
    uids = np.array(sorted(held), np.uint32)
    mask = np.zeros(n, np.bool_)
    mask[[d for d in dead if d < n]] = True
    result = postings.without(postings.encode(uids, np.ones(len(uids), np.uint8)), mask)
    expected = [u for u in uids.tolist() if not (u < n and mask[u])]
    if result is None:
        assert expected == uids.tolist()
    else:
        assert postings.decode(result)[0].tolist() == expected
        assert len(expected) < len(uids)


def test_append_is_the_single_block_form() -> None:
    uids, freqs = _entries(0, 201, 4)
    sealed, tail = postings.append(None, uids[:200], freqs[:200])
    assert sealed is None
    sealed, tail = postings.append(tail, uids[200:], freqs[200:])
    assert sealed is not None and postings.count(sealed) == 201 and postings.count(tail) == 0
    assert postings.append(None, *_entries(0, 0, 5)) == (None, postings.EMPTY)


def test_empty_lists_join_to_empty_arrays() -> None:
    uids, freqs = postings.join([])
    assert uids.dtype == np.uint32 and freqs.dtype == np.uint8 and not len(uids) and not len(freqs)

"""The plan of model passes for texts of any length."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.windows import plan


@given(st.integers(0, 3000), st.integers(0, 600), st.integers(16, 300))
def test_every_token_is_kept_once_and_no_window_exceeds_the_capacity(own: int, context: int, capacity: int) -> None:
    windows = plan(own, context, capacity)
    kept = [token for w in windows for token in range(w.keep_from, w.keep_to)]
    assert kept == list(range(own))
    for index, w in enumerate(windows):
        size = (context - w.context_from) + (w.stop - w.start)
        assert size <= capacity
        assert w.start <= w.keep_from <= w.keep_to <= w.stop
        assert index == 0 or w.context_from == context


@given(st.integers(1, 3000), st.integers(0, 600), st.integers(16, 300))
def test_windows_of_a_long_text_overlap_by_about_a_quarter(own: int, context: int, capacity: int) -> None:
    windows = plan(own, context, capacity)
    for left, right in itertools.pairwise(windows):
        assert left.stop - right.start >= capacity // 4 - 1
    for w in windows[1:-1]:
        # A token is kept where it stands well inside.
        assert w.keep_from - w.start >= capacity // 8 - 1
        assert w.stop - w.keep_to >= capacity // 8 - 1


def test_context_gives_way_from_its_front_so_that_the_text_stays_whole() -> None:
    (window,) = plan(own=90, context=50, capacity=100)
    assert (window.context_from, window.start, window.stop) == (40, 0, 90)
    (window,) = plan(own=100, context=50, capacity=100)
    assert window.context_from == 50


def test_an_empty_text_is_one_window() -> None:
    assert len(plan(0, 10, 100)) == 1

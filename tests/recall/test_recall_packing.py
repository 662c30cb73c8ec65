"""What fits, one voice per claim, and instants on the wire."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.recall.packing import cut_to_tokens, estimate_tokens, fold, pack, repeats, select
from recalld.storage.bodies import Body
from recalld.storage.isotime import iso
from recalld.storage.records import OPINION, UnitRecord


def walk(tokens: list[int], budget: int) -> list[int]:
    """The rule, literally."""
    if budget <= 0:
        return []
    taken, left = [], budget
    for place, cost in enumerate(tokens):
        if max(cost, 1) <= left:
            taken.append(place)
            left -= max(cost, 1)
    return taken or ([0] if tokens else [])


@given(st.lists(st.integers(0, 60), max_size=80), st.integers(-5, 400))
def test_packing_is_the_greedy_walk(tokens: list[int], budget: int) -> None:
    assert pack(np.array(tokens, np.uint32), budget).tolist() == walk(tokens, budget)


def test_one_that_does_not_fit_is_skipped_and_the_walk_goes_on() -> None:
    assert pack(np.array([50, 80, 30, 20], np.uint32), 100).tolist() == [0, 2, 3]


def test_top_one_goes_alone_when_nothing_fits() -> None:
    assert pack(np.array([500, 400], np.uint32), 100).tolist() == [0]
    assert pack(np.array([500, 400], np.uint32), 1).tolist() == [0]


def test_no_budget_takes_nothing_and_a_huge_one_takes_all() -> None:
    tokens = np.array([5, 5], np.uint32)
    assert pack(tokens, 0).tolist() == pack(tokens, -1).tolist() == []
    assert pack(tokens, 10**18).tolist() == [0, 1]
    assert pack(np.array([], np.uint32), 10).tolist() == []


def unit(uid: int, text: str, speaker: str = "", network: int = 0) -> Body:
    return Body(UnitRecord(uid=uid, id=str(uid), text=text, speaker=speaker, network=network))


def test_same_text_is_one_voice_and_folded_text_only_for_one_speaker() -> None:
    bodies = [
        unit(0, "We ship on Friday.", "Ana"),
        unit(1, "We ship on Friday.", "Bo"),
        unit(2, "WE SHIP  on friday.", "Ana"),
        unit(3, "we ship on FRIDAY.", "Bo"),
        unit(4, "We ship on Friday.", "Ana", OPINION),
    ]
    assert repeats(bodies) == {1: 0, 2: 0}


def test_room_of_a_repeated_claim_goes_to_what_comes_next() -> None:
    bodies = {0: unit(0, "same"), 1: unit(1, "same"), 2: unit(2, "other"), 3: unit(3, "third")}
    uids, tokens = np.array([0, 1, 2, 3]), np.array([10, 10, 10, 10], np.uint32)
    found = select(uids, tokens, 20, lambda wanted: [bodies[uid] for uid in wanted])
    assert [body.record.uid for body in found.bodies] == [0, 2]
    assert found.duplicates == {1: 0}


def test_unit_that_is_being_erased_is_dropped() -> None:
    found = select(
        np.array([0, 1]), np.array([1, 1], np.uint32), 10, lambda wanted: [unit(u, "x") for u in wanted if u]
    )
    assert [body.record.uid for body in found.bodies] == [1]


def test_thousand_copies_of_one_claim_come_back_once() -> None:
    n = 1000
    found = select(
        np.arange(n),
        np.full(n, 10, np.uint32),
        300,
        lambda wanted: [unit(u, "spam" if u < 990 else str(u)) for u in wanted],
    )
    assert [body.record.uid for body in found.bodies] == [0, *range(990, 1000)]


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd" * 10, 10), ("外币汇率", 4)])
def test_estimated_size_of_a_text_follows_its_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(max_size=200), st.integers(0, 60))
def test_cut_text_fits_and_is_a_beginning(text: str, tokens: int) -> None:
    cut = cut_to_tokens(text, tokens)
    assert text.startswith(cut) and estimate_tokens(cut) <= tokens


def test_fold_ignores_case_width_and_spacing() -> None:
    assert fold("ＡＢＣ  １２３") == fold("abc 123")


def test_instants_have_microseconds_and_offset_in_every_year() -> None:
    assert iso(1_796_052_007_207_444) == "2026-11-30T15:20:07.207444+00:00"
    assert iso(0) == "1970-01-01T00:00:00.000000+00:00"
    assert iso(None) is None
    assert iso(-(2**63)).startswith("0001-01-01T")
    assert iso(2**63 - 1).startswith("9999-12-31T")

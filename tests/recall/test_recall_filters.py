"""Which units a recall may return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from memory_snapshot import MemoryBank, MemorySnapshot

from recalld.actors.recall import filters
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.storage.errors import Unprocessable

SETTINGS = RecallSettings()


def query(**fields: Any) -> RecallQuery:
    return RecallQuery(tenant="t", bank_id="b", query="q", vector=b"", **fields)


def tagged() -> MemorySnapshot:
    bank = MemoryBank()
    for tags in ((), ("red",), ("blue",), ("red", "blue"), ("red", "blue", "green")):
        bank.add("x", tags=tags)
    return bank.snapshot()


def chosen(snap: MemorySnapshot, **fields: Any) -> list[int]:
    return np.flatnonzero(filters.allowed(snap, query(**fields), SETTINGS)).tolist()


@pytest.mark.parametrize(
    ("match", "tags", "uids"),
    [
        ("any", ("red",), [0, 1, 3, 4]),
        ("any", ("red", "blue"), [0, 1, 2, 3, 4]),
        ("all", ("red", "blue"), [0, 3, 4]),
        ("any_strict", ("red",), [1, 3, 4]),
        ("all_strict", ("red", "blue"), [3, 4]),
        ("exact", ("blue", "red"), [3]),
        ("exact", ("red",), [1]),
        ("exact", (), [0]),
        ("any", (), [0, 1, 2, 3, 4]),
        ("any_strict", (), [0, 1, 2, 3, 4]),
        ("all_strict", (), [0, 1, 2, 3, 4]),
        ("any_strict", ("unknown",), []),
        ("any", ("unknown",), [0]),
    ],
)
def test_each_tag_mode_has_its_own_rule_for_untagged_units(match: str, tags: tuple[str, ...], uids: list[int]) -> None:
    assert chosen(tagged(), tags=tags, tags_match=match) == uids


@pytest.mark.parametrize(
    ("groups", "uids"),
    [
        ([{"tags": ["red"]}], [1, 3, 4]),
        ([{"tags": ["red"], "match": "any"}], [0, 1, 3, 4]),
        ([{"tags": []}], [0, 1, 2, 3, 4]),
        ([{"tags": [], "match": "exact"}], [0]),
        ([{"not": {"tags": ["red"]}}], [0, 2]),
        ([{"and": [{"tags": ["red"]}, {"tags": ["blue"]}]}], [3, 4]),
        ([{"or": [{"tags": ["green"]}, {"tags": ["blue"], "match": "exact"}]}], [2, 4]),
        ([{"tags": ["red"]}, {"not": {"tags": ["green"]}}], [1, 3]),
        ([{"or": []}], []),
        ([{"and": []}], [0, 1, 2, 3, 4]),
        ([], [0, 1, 2, 3, 4]),
    ],
)
def test_tag_groups_nest_and_default_to_any_strict(groups: list[dict[str, Any]], uids: list[int]) -> None:
    assert chosen(tagged(), tag_groups=groups) == uids


def test_tag_groups_do_not_fall_under_the_flat_exact_rule() -> None:
    assert chosen(tagged(), tag_groups=[{"tags": ["red"]}], tags_match="exact") == [1, 3, 4]


def test_fuzzy_leaf_finds_misspelt_tags_but_not_a_sibling() -> None:
    bank = MemoryBank()
    for tag in ("project-alpha", "project-beta", "user:alice", "user:bob"):
        bank.add("x", tags=(tag,))
    snap = bank.snapshot()
    assert chosen(snap, tag_groups=[{"tags": ["projct-alpha"], "resolve": "fuzzy"}]) == [0]
    assert chosen(snap, tag_groups=[{"tags": ["user:alice"], "resolve": "fuzzy"}]) == [2]
    assert chosen(snap, tag_groups=[{"tags": ["PROJECT_ALPHA"], "resolve": "fuzzy", "match": "exact"}]) == [0]
    assert chosen(snap, tag_groups=[{"tags": ["user:carol"], "resolve": "fuzzy"}]) == []
    assert chosen(snap, tag_groups=[{"tags": ["nothing like it"], "resolve": "fuzzy"}]) == []


@pytest.mark.parametrize("tag", ['x" OR "1"="1', "*", "{$ne:1}", "%", "red' --", "\\"])
def test_tag_is_a_literal_whatever_it_looks_like(tag: str) -> None:
    bank = MemoryBank()
    bank.add("plain", tags=("red",))
    bank.add("odd", tags=(tag,))
    assert chosen(bank.snapshot(), tags=(tag,), tags_match="any_strict") == [1]


@pytest.mark.parametrize(
    "groups",
    [
        [{"nope": 1}],
        ["red"],
        [{"tags": "red"}],
        [{"tags": [1]}],
        [{"tags": ["red"], "match": "some"}],
        [{"tags": ["red"], "resolve": "near"}],
        [{"and": {"tags": ["red"]}}],
        [{"tags": [f"t{i}" for i in range(1000)]}],
        [{"or": [{"tags": ["red"]}] * 1000}],
    ],
)
def test_malformed_or_huge_tag_groups_are_refused_with_a_sentence(groups: list[Any]) -> None:
    with pytest.raises(Unprocessable):
        chosen(tagged(), tag_groups=groups)


def test_deep_tag_groups_are_refused_and_do_not_exhaust_the_stack() -> None:
    node: dict[str, Any] = {"tags": ["red"]}
    for _ in range(5000):
        node = {"not": node}
    with pytest.raises(Unprocessable):
        chosen(tagged(), tag_groups=[node])


def test_types_select_networks_and_none_means_all_four() -> None:
    bank = MemoryBank()
    for network in range(4):
        bank.add("x", network=network)
    assert chosen(bank.snapshot()) == [0, 1, 2, 3]
    assert chosen(bank.snapshot(), types=(0, 3)) == [0, 3]


def test_as_of_shows_what_was_known_then_and_never_what_is_erased() -> None:
    bank = MemoryBank()
    bank.add("old", recorded=10, retired=20)
    bank.add("new", recorded=20)
    bank.add("gone", recorded=5, erased=True)
    snap = bank.snapshot()
    assert chosen(snap) == [1]
    assert chosen(snap, as_of=9) == []
    assert chosen(snap, as_of=10) == [0]
    assert chosen(snap, as_of=19) == [0]
    assert chosen(snap, as_of=20) == [1]


def test_valid_at_keeps_ranges_that_cover_it_and_units_without_range() -> None:
    bank = MemoryBank()
    bank.add("undated", mentioned=500)
    bank.add("covers", occurred=(10, 20))
    bank.add("before", occurred=(1, 9))
    bank.add("open end", occurred=(10, None))
    bank.add("later", occurred=(21, 30))
    assert chosen(bank.snapshot(), valid_at=15) == [0, 1, 3]


def test_one_things_tags_pass_by_the_same_rules_as_units() -> None:
    asked = query(tags=("red",), tags_match="any_strict")
    assert filters.tags_pass(filters.OneThing(frozenset({"red"})), asked, SETTINGS)[0]
    assert not filters.tags_pass(filters.OneThing(frozenset()), asked, SETTINGS)[0]

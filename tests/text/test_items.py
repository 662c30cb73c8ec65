"""Canonical items: what is cleaned, what is refused, and that a zone survives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.retain.canonical import clean_metadata, clean_tags, clean_text, parse_timestamp
from recalld.actors.retain.items import ItemEntity, RetainItem, parse_entities, parse_scopes


def micros(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc,arg-type]


def test_nul_is_stripped_everywhere() -> None:
    item = RetainItem.parse(
        {
            "content": "Ana\x00 likes tea",
            "context": "a\x00b",
            "document_id": "d\x001",
            "tags": ["t\x00"],
            "metadata": {"k\x00": "v\x00"},
            "entities": [{"text": "An\x00a"}],
        }
    )
    assert "\x00" not in repr(item)
    assert item.content == "Ana likes tea" and item.document_id == "d1" and item.metadata == {"k": "v"}


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert clean_text("ok \ud83d end") == "ok \ufffd end"
    assert clean_text("\ud83d\ude00") == "😀"
    assert clean_text("\udc00\ud83d") == "\ufffd\ufffd"


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_clean_text_can_always_be_encoded_and_is_stable(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned and clean_text(cleaned) == cleaned
    cleaned.encode()


def test_other_text_is_verbatim() -> None:
    text = "a\u202eb\r\n\t Cafe\u0301 \ufeff"
    assert clean_text(text) == text


def test_metadata_becomes_strings_and_nulls_are_dropped() -> None:
    value = {"n": 1, "f": 1.5, "b": True, "z": None, "o": {"a": [1]}, "s": "x", "inf": float("inf")}
    assert clean_metadata(value) == {"n": "1", "f": "1.5", "b": "true", "o": '{"a": [1]}', "s": "x", "inf": "inf"}
    assert clean_metadata(None) == {}
    with pytest.raises(ValueError, match="metadata"):
        clean_metadata([1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        (None, ()),
        (["a", "b", "a", " ", " c "], ("a", "b", "c")),
        ('["a", "b"]', ("a", "b")),
        ("solo", ("solo",)),
        ("[not json", ("[not json",)),
        ("", ()),
    ],
)
def test_tags_come_in_three_forms(value: object, tags: tuple[str, ...]) -> None:
    assert clean_tags(value) == tags


@pytest.mark.parametrize("value", [5, {"a": 1}, [1], '[1, "a"]', [None]])
def test_other_tags_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="tag"):
        clean_tags(value)


@pytest.mark.parametrize(
    ("text", "instant", "offset"),
    [
        ("2026-06-12T19:17:00+08:00", micros(2026, 6, 12, 11, 17), 480),
        ("2026-06-12T19:17:00Z", micros(2026, 6, 12, 19, 17), 0),
        ("2026-06-12t19:17:00z", micros(2026, 6, 12, 19, 17), 0),
        ("2026-06-12T19:17:00", micros(2026, 6, 12, 19, 17), 0),
        ("2026-06-12", micros(2026, 6, 12), 0),
        ("2026-03-29T02:30:00", micros(2026, 3, 29, 2, 30), 0),
        ("2026-07-25T01:00:00-01:00", micros(2026, 7, 25, 2), -60),
        ("2026-06-12T19:17:00[Europe/Berlin]", micros(2026, 6, 12, 17, 17), 120),
        ("2026-06-12T19:17:00+02:00[Europe/Berlin]", micros(2026, 6, 12, 17, 17), 120),
        ("2026-06-12T19:17:00 Europe/Berlin", micros(2026, 6, 12, 17, 17), 120),
    ],
)
def test_a_timestamp_keeps_its_zone(text: str, instant: int, offset: int) -> None:
    stamp = parse_timestamp(text)
    assert (stamp.instant, stamp.utc_offset_minutes, stamp.given) == (instant, offset, True)


def test_a_skipped_wall_time_lands_behind_the_gap_and_a_doubled_one_is_the_first() -> None:
    assert parse_timestamp("2026-03-29T02:30:00[Europe/Berlin]").instant == micros(2026, 3, 29, 1, 30)
    assert parse_timestamp("2026-10-25T02:30:00[Europe/Berlin]").instant == micros(2026, 10, 25, 0, 30)


def test_unset_is_undated_and_blank_is_now() -> None:
    for word in ("unset", "UNSET", " Unset "):
        assert parse_timestamp(word).undated
    for blank in (None, "", "  "):
        stamp = parse_timestamp(blank)
        assert stamp.instant is None and not stamp.given and not stamp.undated
    assert RetainItem.parse({"content": "x"}).anchor_missing
    assert not RetainItem.parse({"content": "x", "timestamp": "unset"}).anchor_missing


@pytest.mark.parametrize(
    "value",
    ["0001-01-01T00:00:00", "0000-01-01", "9999-12-31T23:59:59Z", "+12026-01-01", "0000-00-00T00:00:00", 1e15],
)
def test_placeholder_years_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        parse_timestamp(value)


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01", "2026-02-30", True, [], {}, "12/06/2026", float("nan")])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_timestamp(value)
    with pytest.raises(ValueError, match="zone"):
        parse_timestamp("2026-01-01T00:00:00[Mars/Base]")


@given(st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.from_regex(r"[0-9T:Z+\-\[\]]{0,30}")))
def test_a_timestamp_is_read_or_refused_with_a_sentence(value: object) -> None:
    try:
        parse_timestamp(value)
    except ValueError as error:
        assert str(error).startswith("The time")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"content": None},
        {"content": " \n"},
        {"content": "\x00"},
        {"content": "x", "update_mode": "append"},
        {"content": "x", "update_mode": "merge"},
        {"content": "x", "observation_scopes": "all"},
        {"content": "x", "entities": "Ana"},
        {"content": "x", "entities": [{"name": "Ana"}]},
        {"content": "x", "resolve_entities": "yes"},
        {"content": "x", "context": 5},
    ],
)
def test_bad_items_are_refused_with_a_sentence(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^The|^Every"):
        RetainItem.parse(value)


def test_entity_names_collapse_white_space_and_blank_ones_are_dropped() -> None:
    assert parse_entities([{"text": "Acme\n\tCorp "}, {"text": "Acme Corp", "type": None}, {"text": " "}]) == (
        ItemEntity("Acme Corp"),
    )


def test_scopes_have_the_forms_of_the_contract() -> None:
    assert parse_scopes([[]]) == "shared"
    assert parse_scopes([]) == "combined"
    assert parse_scopes([["a", "b*"], ["c"]]) == (("a", "b*"), ("c",))
    assert parse_scopes("per_tag") == "per_tag"


def test_an_item_survives_msgpack() -> None:
    item = RetainItem.parse(
        {
            "content": "Ana moved",
            "timestamp": "2026-06-12T19:17:00+08:00",
            "context": "chat",
            "metadata": {"a": 1},
            "document_id": "d",
            "entities": [{"text": "Ana", "type": "PERSON"}],
            "resolve_entities": False,
            "tags": "x",
            "observation_scopes": [["a"]],
            "strategy": "s",
            "update_mode": "append",
        }
    )
    for each in (item, RetainItem("plain")):
        assert RetainItem.from_plain(msgpack.unpackb(msgpack.packb(each.to_plain()))) == each
    assert item.with_tags(["y", "x"]).tags == ("x", "y")

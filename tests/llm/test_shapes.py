"""Answers fitted to their schema: what is coerced, what is left out and why, and what is refused whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.llm.modes import closed
from recalld.actors.llm.providers.gemini import openapi
from recalld.actors.llm.shapes import Misfit, fit, read_answer

from .stages import FACTS, GOOD, texts

ITEM = '{"text": "a", "kind": "world"}'
OTHER = '{"text": "b", "kind": "world"}'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (GOOD, ["Ana drinks tea."]),
        ('{"facts": []}', []),
        (f"[{ITEM}]", ["a"]),
        (ITEM, ["a"]),
        (f'{{"memories": [{ITEM}]}}', ["a"]),
        (f'{{"result": {{"facts": [{ITEM}]}}}}', ["a"]),
        (f'{{"Facts": [{ITEM}]}}', ["a"]),
        (f'{{"facts": {ITEM}}}', ["a"]),
        (f'{{"facts": {{"0": {ITEM}, "1": {ITEM}}}}}', ["a", "a"]),
        (f'{{"facts": {json.dumps(f"[{ITEM}]")}}}', ["a"]),
        (f'[{{"facts": [{ITEM}]}}, {{"facts": [{OTHER}]}}]', ["a", "b"]),
        (f"{ITEM}\n{OTHER}\n", ["a", "b"]),
        ('{"facts": null, "note": "nothing here"}', []),
    ],
)
def test_shapes_that_models_use_instead_are_understood(text: str, wanted: list[str]) -> None:
    assert texts(read_answer(text, FACTS).value) == wanted


def test_the_last_answer_counts_and_drafts_do_not() -> None:
    draft = GOOD.replace("tea", "coffee")
    assert texts(read_answer(f"Draft: {draft}\nBetter: {GOOD}", FACTS).value) == ["Ana drinks tea."]
    assert texts(read_answer(f'{GOOD}\nAn empty answer would be {{"facts": []}}.', FACTS).value) == ["Ana drinks tea."]
    assert texts(read_answer(f"As in [1] and {{x}}: {GOOD} [2]", FACTS).value) == ["Ana drinks tea."]


def test_the_schema_said_back_is_no_answer() -> None:
    with pytest.raises(Misfit):
        read_answer(json.dumps(FACTS), FACTS)


def test_items_are_left_out_one_by_one_with_a_reason_that_quotes_nothing() -> None:
    items: list[Any] = [
        {"text": "good", "kind": "World", "confidence": "0.5", "entities": "Bob", "extra": 1},
        {"text": "secret", "kind": "gossip"},
        {"text": "  ", "kind": "world"},
        {"kind": "world"},
        "just words",
        None,
        {"text": "also good", "kind": "opinion", "confidence": 7, "entities": [{"name": "Bob"}, {"kind": "PERSON"}, 3]},
    ]
    read = read_answer(json.dumps({"facts": items}), FACTS)
    first, last = read.value["facts"]
    assert first == {"text": "good", "kind": "world", "confidence": 0.5, "entities": [{"name": "Bob"}]}
    assert last["text"] == "also good" and "confidence" not in last
    assert [one["name"] for one in last["entities"]] == ["Bob", "3"] or last["entities"] == [{"name": "Bob"}]
    reasons = {one.path: one.reason for one in read.rejected}
    assert reasons["facts[1]"] == "kind is none of the words it may be"
    assert reasons["facts[2]"] == "text is empty" and reasons["facts[3]"] == "text is missing"
    assert reasons["facts[6].confidence"] == "is outside its range"
    assert {"facts[4]", "facts[5]"} <= set(reasons)
    assert not any("secret" in one or "gossip" in one for one in reasons.values())


def test_an_answer_of_which_nothing_fits_is_refused_and_not_taken_for_an_empty_one() -> None:
    with pytest.raises(Misfit, match="no part of the answer fits"):
        read_answer('{"facts": [{"txt": 1}, {"txt": 2}]}', FACTS)


PLAIN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "entities": {"type": "array", "items": {"type": "string"}}},
                "required": ["text"],
            },
        }
    },
    "required": ["facts"],
}


@pytest.mark.parametrize(
    "text",
    [
        "facts:\n- text: Ana likes tea\n  entities: []\n",
        'facts:\n- text: Ana likes tea\n  entities: ["Ana", "tea"]\n',
        '{"facts": [{"text": Ana likes tea, "entities": []}]}',
        '{"facts": [{"text": Ana likes tea, "entities": ["Ana"]}]}',
        '{"facts"：[{"text"："Ana likes tea"，"entities"：["Ana"]}]}',
        "{«facts»: [{«text»: «Ana likes tea», «entities»: []}]}",
        '[Fact(text="Ana likes tea", entities=[])]',
        "- [ ] Ana likes tea\n- [x] Bo does not",
        '{"summary": "Ana likes tea", "entities": []}',
        '{"summary": "Ana likes tea", "entities": ["Ana"]}',
        json.dumps(PLAIN),
    ],
)
def test_a_list_in_an_answer_nobody_can_read_is_neither_its_facts_nor_their_absence(text: str) -> None:
    with pytest.raises(Misfit):
        read_answer(text, PLAIN)


@pytest.mark.parametrize("text", ["[]", "Facts: []", "Here:\n```json\n[]\n```\nThat is all.", '{"memories": []}'])
def test_an_answer_that_says_there_is_nothing_is_believed(text: str) -> None:
    assert read_answer(text, PLAIN).value == {"facts": []}


@pytest.mark.parametrize("text", ['["Ana likes tea"]', '```\n["Ana likes tea"]\n```', '{"list": ["Ana likes tea"]}'])
def test_bare_sentences_are_facts_where_they_are_the_answer(text: str) -> None:
    assert texts(read_answer(text, PLAIN).value) == ["Ana likes tea"]


def test_an_item_beside_one_that_cannot_be_read_stays_and_the_other_is_told() -> None:
    read = read_answer('{"facts": [{"text": Ana likes tea, "entities": []}, {"text": "Bo does not"}]}', PLAIN)
    assert texts(read.value) == ["Bo does not"]
    assert [one.reason for one in read.rejected] == ["stands beside what cannot be read"]


@pytest.mark.parametrize(
    ("value", "schema", "fitted"),
    [
        ("7", {"type": "integer"}, 7),
        (7.0, {"type": "integer"}, 7),
        ("0.25", {"type": "number"}, 0.25),
        ("yes", {"type": "boolean"}, True),
        (0, {"type": "boolean"}, False),
        (3, {"type": "string"}, "3"),
        (["one"], {"type": "string"}, "one"),
        ("null", {"type": ["number", "null"]}, None),
        ("x", {"type": "array", "items": {"type": "string"}}, ["x"]),
        (None, {"type": "array", "items": {"type": "string"}}, []),
        ("FULL-NAME", {"enum": ["full_name"]}, "full_name"),
        ({"a": 1}, {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "object"}}}, {"a": 1}),
    ],
)
def test_values_are_coerced_where_it_is_safe(value: Any, schema: dict[str, Any], fitted: Any) -> None:
    assert fit(value, schema).value == fitted


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, {"type": "number"}),
        ("about 7", {"type": "number"}),
        (7.5, {"type": "integer"}),
        ("maybe", {"type": "boolean"}),
        ({"a": 1}, {"type": "string"}),
        (["a", "b"], {"type": "string"}),
        (None, {"type": "string"}),
        ("words", {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
    ],
)
def test_values_are_refused_where_it_is_not(value: Any, schema: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        fit(value, schema)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["facts", "text", "kind", "entities", "name", "x"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(anything)
@settings(max_examples=300, deadline=None)
def test_whatever_is_accepted_obeys_the_schema(value: Any) -> None:
    try:
        read = read_answer(json.dumps(value), FACTS)
    except Misfit:
        return
    for one in read.value["facts"]:
        assert isinstance(one["text"], str) and one["text"].strip()
        assert one["kind"] in ("world", "experience", "opinion")
        assert one.get("confidence") is None or 0 <= one["confidence"] <= 1
        assert all(isinstance(entity["name"], str) for entity in one.get("entities", []))


WORDS = ["Ana", "Bo", "tea", "likes", "not", "never", "it's", '"so"', "[x]", "{y}", "a,b", "c:d"]
said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
spoilt = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from([*"{}[]\",:'", "", "CUT"])), max_size=3)


@given(st.lists(said, min_size=1, max_size=4), spoilt, st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_mending_invents_no_text(
    texts_said: list[str], spoils: list[tuple[int, str]], unescaped: bool, single: bool
) -> None:
    """Whatever is broken in an answer: a text that is kept stands in it just so."""
    text = json.dumps({"facts": [{"text": one, "kind": "world"} for one in texts_said]})
    text = text.replace('\\"', '"') if unescaped else text
    text = text.replace('"', "'") if single else text
    for place, what in spoils:
        place %= max(1, len(text))
        text = text[:place] if what == "CUT" else text[:place] + what + text[place + (what == "") :]
    try:
        read = read_answer(text, FACTS)
    except Misfit:
        return
    assert all(one["text"].replace("\\", "") in text.replace("\\", "") for one in read.value["facts"])


def test_strict_schemas_are_closed_and_ask_for_everything() -> None:
    item = closed(FACTS)["properties"]["facts"]["items"]
    assert item["additionalProperties"] is False and set(item["required"]) == set(item["properties"])
    assert item["properties"]["entities"]["type"] == ["array", "null"]
    plain = closed(FACTS, require_all=False, without=frozenset({"maxLength", "minLength"}))["properties"]["facts"]
    assert plain["items"]["required"] == ["text", "kind"] and "maxLength" not in json.dumps(plain)


def test_the_openapi_form_says_the_same_in_its_own_words() -> None:
    shaped = openapi(FACTS, FACTS)
    item = shaped["properties"]["facts"]["items"]
    assert shaped["type"] == "OBJECT" and item["required"] == ["text", "kind"]
    assert item["properties"]["kind"] == {"type": "STRING", "enum": ["world", "experience", "opinion"]}
    assert item["properties"]["confidence"] == {"type": "NUMBER", "nullable": True, "minimum": 0, "maximum": 1}

"""Reading what models write: broken JSON, reasoning, prose around; and that nothing is invented on the way."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recalld.actors.llm.parsing import candidates, clean, parse, without_reasoning

GOOD = '{"facts": [{"text": "a"}]}'
VALUE = {"facts": [{"text": "a"}]}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>\nhm\n</think>\n\nTea.", "Tea."),
        ("<think>hm</think>Tea.", "Tea."),
        ("  <Thinking>hm</Thinking>\n" + GOOD, GOOD),
        ("<think></think>\n\n" + GOOD, GOOD),
        ("<think>I must not write </think> here</think>" + GOOD, GOOD),
        ("<think>\nand then the tokens ran out", ""),
        ("so the answer is short.\n</think>\n\n" + GOOD, GOOD),
        # What only mentions the tag stays as it is.
        ("<think> and </think> are tags of reasoning models.", None),
        ("The tag <think> opens it.\n</think> closes it.", None),
        ("`<think>` is a tag", None),
        ("<think> is a tag that opens reasoning", None),
        ('{"facts": [{"text": "Ana wrote <think>x</think>\\n twice."}]}', None),
        ('[{"text": "a </think>\\n{b}"}]', None),
        ("", None),
    ],
)
def test_only_a_real_reasoning_block_is_taken_off(text: str, left: str | None) -> None:
    assert without_reasoning(text) == (text if left is None else left)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\ufeff" + GOOD,
        "```json\n" + GOOD + "\n```",
        "Here you go:\n```\n" + GOOD + "\n```\nHope it helps! {smile}",
        "The facts [as asked] are " + GOOD + " - done.",
        "<think>\n{}\n</think>\n" + GOOD,
        '{"facts": [{"text": "a",},],}',
        '{"facts": [{"text": "a"},,]}',
        "{'facts': [{'text': 'a'}]}",
        "{facts: [{text: 'a'}]}",
        "{“facts”: [{“text”: “a”}]}",
        '{"facts": [{"text": "a"}}',
        '{"facts": [{"text": "a"}]',
        '{"facts" : [{"text" : "a"}] // that is all\n}',
        json.dumps(GOOD),
        GOOD.replace('"', '\\"'),
    ],
)
def test_the_value_is_found_whatever_is_around_it_and_mended(text: str) -> None:
    assert VALUE in (parse(text), {"facts": parse(text)})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"text": "He said "hi" and left", "n": 1}]', [{"text": 'He said "hi" and left', "n": 1}]),
        ('[{"text": "the "best", they say", "n": 1}]', [{"text": 'the "best", they say', "n": 1}]),
        ("{'a': 'It's ok, isn't it', 'b': None, 'c': True}", {"a": "It's ok, isn't it", "b": None, "c": True}),
        ('{"a": "x" "b": "y"}', {"a": "x", "b": "y"}),
        ('{"a": "x"\n "b": [1 2]}', {"a": "x", "b": [1, 2]}),
        ('{"a": NaN, "b": -Infinity, "c": 1e999}', {"a": None, "b": None, "c": None}),
        ('{"a": undefined, "b": .5, "c": +3}', {"a": None, "b": 0.5, "c": 3}),
        ('{"a": "line\nbreak\tand tab"}', {"a": "line\nbreak\tand tab"}),
        ('{"a": "C:\\dir \\d", }', {"a": "C:\\dir \\d"}),
        ('{"a": "\\ud83d\\ude00 \\ud800 x",}', {"a": "😀 \ufffd x"}),
        ('{"a": "\\ud83d\\ude00 \\ud800 x"}', {"a": "😀 \ufffd x"}),
        ('{"a": [1], "a": [2], "b": 1, "b": 2}', {"a": [1, 2], "b": 2}),
        ('{"a": ' + "9" * 5000 + "}", {"a": None}),
        ('{"a": "fence ``` inside", "b": "```json"}', {"a": "fence ``` inside", "b": "```json"}),
    ],
)
def test_mended_values_are_what_was_meant(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "no json", "{curly} [sic] words", "{", "[", '{"a', "{]", "[}", "<think>\n{}", "[" * 10_000, '{"a":' * 5000],
)
def test_what_is_no_json_is_not_made_into_any(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        parse(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
containers = st.lists(json_values, max_size=4) | st.dictionaries(st.text(max_size=6), json_values, max_size=4)
prose = st.text(st.characters(exclude_characters='{}[]"', exclude_categories=("Cs",)), max_size=20)


@given(containers, prose, prose, st.booleans())
@settings(max_examples=150, deadline=None)
def test_valid_json_comes_through_unchanged_whatever_stands_around_it(
    value: Any, before: str, after: str, ascii_only: bool
) -> None:
    text = before + json.dumps(value, ensure_ascii=ascii_only) + after
    (found,) = candidates(text)
    assert found.value == value and found.complete and not found.repairs


facts = st.lists(
    st.fixed_dictionaries(
        {"text": st.text(min_size=1, max_size=20), "tags": st.lists(st.text(max_size=5), max_size=3)}
    ),
    min_size=1,
    max_size=5,
)


@given(facts, st.data())
@settings(max_examples=300, deadline=None)
def test_a_cut_off_list_keeps_whole_items_and_only_those(items: list[dict[str, Any]], data: st.DataObject) -> None:
    text = json.dumps({"facts": items}, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(1, len(text) - 1))
    found = candidates(text[:cut])
    kept = found[0].value.get("facts", []) if found else []
    assert kept == items[: len(kept)], "no half item, none changed, none out of order"
    whole = sum(
        1 for end in range(1, len(items) + 1) if len(json.dumps({"facts": items[:end]}, ensure_ascii=False)) - 2 <= cut
    )
    if text == json.dumps({"facts": items}, ensure_ascii=False):
        assert len(kept) == whole
    assert not found or not found[0].complete or len(kept) == len(items)


@given(st.text(st.characters(codec=None), max_size=80))
@settings(max_examples=300, deadline=None)
@example('{"a": "\\u12')
@example('{"a": "\\')
@example('{"a": "b", ')
@example("{'")
@example('[1, 2, "x')
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    for one in candidates(text):
        json.dumps(one.value, ensure_ascii=False, allow_nan=False).encode()
    without_reasoning(text)


@given(st.lists(st.sampled_from(list("{}[]\",:\\'ntfu01 ab\n<>/")), max_size=60).map("".join))
@settings(max_examples=400, deadline=None)
def test_no_heap_of_brackets_and_quotes_breaks_the_reader(text: str) -> None:
    for one in candidates(text):
        assert isinstance(one.value, dict | list) and 0 <= one.start < one.end <= len(text) + 1


def test_cleaning_leaves_nothing_that_cannot_be_stored() -> None:
    dirty = {"a\ud800": [math.nan, math.inf, 1.5, "x\udfff"], "b": None}
    assert clean(dirty) == {"a\ufffd": [None, None, 1.5, "x\ufffd"], "b": None}


@pytest.mark.parametrize(
    "part", ['["', "{'", '{"a" ', '{"a": "', '[{"a":', "{", "[1,", "</think> a", '"a", ', '{"a":[', "\\"], ids=repr
)
def test_a_heap_of_anything_is_read_in_a_moment(part: str) -> None:
    text = part * (100_000 // len(part))
    began = time.perf_counter()
    candidates(without_reasoning("<think>" + text) + text)
    assert time.perf_counter() - began < 8

"""Chunking: nothing is lost, cuts are natural, stable under appends, and quick."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.retain.chunking import WHOLE_OBJECT, chunk_text

PARAGRAPH = "The pump failed again on Monday. Ana called the vendor, and they sent a part; it did not fit! What now? "


def prose(paragraphs: int) -> str:
    return "\n\n".join(f"{i}. {PARAGRAPH * (3 + i % 5)}" for i in range(paragraphs))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.integers(1, 60), st.integers(1, 200))
def test_no_character_is_lost_and_no_chunk_is_empty(text: str, size: int, structured: int) -> None:
    chunks = chunk_text(text, size, structured)
    assert "".join(chunks) == text
    assert all(chunks)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='ab. \n,;!?{}[]":1é\u0301', max_size=400), st.integers(1, 60))
def test_a_chunk_fed_back_comes_out_whole(text: str, size: int) -> None:
    for chunk in chunk_text(text, size):
        assert chunk_text(chunk, size) == [chunk]


def test_text_that_fits_is_one_chunk() -> None:
    assert chunk_text("") == []
    assert chunk_text("a" * 3000) == ["a" * 3000]
    assert [len(c) for c in chunk_text("a" * 3001)] == [3000, 1]


def test_prose_is_cut_at_blank_lines_and_never_inside_a_sentence() -> None:
    chunks = chunk_text(prose(40))
    assert all(chunk.endswith("\n\n") for chunk in chunks[:-1])
    one_paragraph = PARAGRAPH * 100
    assert all(chunk.rstrip()[-1] in ".!?" for chunk in chunk_text(one_paragraph)[:-1])
    assert all(1500 <= len(chunk) <= 3000 for chunk in chunk_text(one_paragraph)[:-1])


def test_chinese_is_cut_at_its_own_stops() -> None:
    chunks = chunk_text("外币汇率换算由财务部的林芳负责，每月更新。" * 400)
    assert all(chunk.endswith("。") for chunk in chunks)


def test_marks_stay_with_their_letter() -> None:
    assert all(not chunk.startswith("\u0301") for chunk in chunk_text("e\u0301" * 4000, 2999))
    assert all(not chunk.startswith("\u200d") for chunk in chunk_text("👩\u200d👧" * 2000, 1000))


def test_an_append_changes_only_the_tail() -> None:
    before = prose(100)
    after = before + "\nOne more line."
    old, new = chunk_text(before), chunk_text(after)
    assert new[: len(old) - 1] == old[:-1]


def turns(count: int, length: int = 200) -> list[dict[str, str]]:
    return [
        {"role": "user" if i % 2 else "assistant", "content": f"{i} " + "word, " * (length // 6)} for i in range(count)
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_conversation_is_cut_between_turns(indent: int | None) -> None:
    text = json.dumps(turns(100), indent=indent)
    chunks = chunk_text(text)
    assert "".join(chunks) == text and all(len(chunk) <= 3000 for chunk in chunks)
    read = [turn for chunk in chunks for turn in json.loads("[" + chunk.strip().strip("[],").strip().strip(",") + "]")]
    assert read == turns(100)


def test_an_appended_turn_leaves_earlier_chunks_alone() -> None:
    old, new = chunk_text(json.dumps(turns(100))), chunk_text(json.dumps(turns(101)))
    assert new[: len(old) - 1] == old[:-1]


def test_json_lines_are_cut_between_lines() -> None:
    text = "\n".join(json.dumps(turn) for turn in turns(100)) + "\n"
    chunks = chunk_text(text)
    assert "".join(chunks) == text
    assert [json.loads(line) for chunk in chunks for line in chunk.splitlines()] == turns(100)


def test_a_single_object_stays_whole() -> None:
    text = json.dumps({"notes": "word " * 2000})
    assert chunk_text(text) == [text]
    assert len(chunk_text(json.dumps({"notes": "word " * WHOLE_OBJECT}))) > 1


def test_a_long_turn_is_whole_up_to_the_structured_size_else_cut_as_text() -> None:
    long = [*turns(3), *turns(1, 8000), *turns(3)]
    text = json.dumps(long)
    assert max(map(len, chunk_text(text))) <= 3000
    whole = chunk_text(text, 3000, 10_000)
    assert "".join(whole) == text and max(map(len, whole)) > 7000
    for chunk in whole:
        assert chunk_text(chunk, 3000, 10_000) == [chunk]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '[{"a":1},' * 1000 + "oops", "\ud800 " * 5000])
def test_broken_structure_is_text(text: str) -> None:
    assert "".join(chunk_text(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        prose(6000),
        "x" * 2_000_000,
        "\n" * 2_000_000,
        " \n " * 700_000,
        json.dumps(turns(9000)),
        "\n".join(map(json.dumps, turns(9000))),
    ],
    ids=["prose", "one word", "newlines", "blank lines", "conversation", "json lines"],
)
def test_two_megabytes_are_cut_quickly(text: str) -> None:
    text = text[:2_000_000] if not text.startswith(("[", "{")) else text
    started = time.perf_counter()
    chunks = chunk_text(text)
    assert time.perf_counter() - started < 2
    assert "".join(chunks) == text and max(map(len, chunks)) <= 3000

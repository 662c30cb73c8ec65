"""Sentences and passages are verbatim slices, cut where a reader would."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.retain.sentences import MOST, passages, sentence_spans, sentences, weight


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Waller met Mr. Li at 3 p.m. They left.", ["Dr. Waller met Mr. Li at 3 p.m.", "They left."]),
        ("It costs 3.5 euros. ok? Yes!", ["It costs 3.5 euros.", "ok?", "Yes!"]),
        ("J. R. Smith wrote e.g. this. Fine.", ["J. R. Smith wrote e.g. this.", "Fine."]),
        ("i like go. i also like rust.", ["i like go.", "i also like rust."]),
        ("他去了里昂。火车晚点了！为什么？", ["他去了里昂。", "火车晚点了！", "为什么？"]),
        ("He said “Go!” Then he left.", ["He said “Go!”", "Then he left."]),
        ("Well... maybe not. Or so", ["Well... maybe not.", "Or so"]),
        ("One\nTwo", ["One", "Two"]),
        ("See README.md for more. Done.", ["See README.md for more.", "Done."]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="abc AB.!?。\n\t,;漢 ", max_size=3000))
def test_no_letter_is_lost_by_cutting(text: str) -> None:
    squeezed = "".join(text.split())
    assert "".join("".join(sentences(text)).split()) == squeezed
    assert "".join("".join(passages(text)).split()) == squeezed
    spans = sentence_spans(text)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_a_short_text_is_one_passage() -> None:
    text = "One.\n\nTwo. Three."
    assert passages(text) == [text]


def test_headings_stay_with_what_they_head() -> None:
    body = "A sentence about the pump that is long enough to stand alone in a passage of its own. " * 6
    text = f"# Pumps\n\n{body.strip()}\n\n## Seals\n\n{body.strip()}"
    pieces = passages(text)
    assert pieces[0].startswith("# Pumps\n\nA sentence") and any(piece.startswith("## Seals\n\nA") for piece in pieces)


def test_passages_of_chinese_are_counted_by_what_they_say() -> None:
    text = "水泵在夜班时坏了，水流进了电缆沟。安娜早上六点给供应商打了电话。" * 40
    assert all(weight(piece) <= MOST for piece in passages(text))


def test_code_is_not_cut_at_its_blank_lines() -> None:
    code = "```\n" + "x = 1\n\ny = 2\n" * 20 + "```"
    text = ("Prose before the code that explains it. " * 15) + "\n\n" + code
    assert any(piece.endswith(code) for piece in passages(text))


def test_one_endless_sentence_is_cut_at_spaces() -> None:
    pieces = passages("word " * 2000)
    assert all(len(piece) <= MOST + 50 and not piece.startswith("ord") for piece in pieces)

"""The analyser: what meets what, what is cut, and what it costs."""

from __future__ import annotations

import re
import sys
import threading
import time
import unicodedata

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from recalld.storage.analysis import (
    ANALYSER,
    ENGLISH_STOP,
    MAX_TERM,
    MAX_TERMS,
    analyse,
    is_cjk_heavy,
    query_terms,
    term_frequencies,
)


def meet(text: str, query: str) -> set[str]:
    return set(analyse(text)) & set(query_terms(query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("外币汇率换算由财务部的林芳负责", "外币汇率"),
        ("外币汇率换算由财务部的林芳负责", "现在外币的汇率换算是谁在负责？"),
        ("経費精算の締切は毎月25日", "経費精算"),
        ("회의실 예약은 민지가 담당", "회의실"),
        ("การประชุมเริ่มเก้าโมง", "ประชุม"),
    ],
)
def test_scripts_without_spaces_meet_by_bigrams(text: str, query: str) -> None:
    assert any(len(term) >= 2 for term in meet(text, query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Café Zoë", "Cafe\u0301 Zoe\u0308"),
        ("Café Zoë", "cafe zoe"),
        ("ＡＢＣ１２３", "abc123"),
        ("İSTANBUL", "istanbul"),
        ("ISPARTA", "ısparta"),
        ("Straße", "STRASSE"),
        ("don’t", "don't"),
        ("a \u202eword\u202c here", "word"),
        ("zero\u200bwidth", "zerowidth"),
        ("مدير المشروع هو سامي", "سامي"),
        ("كِتَابٌ جديد", "كتاب"),
        ("проекты закрыты", "проект"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("l'ami de Paul", "ami"),
        ("ｶﾞｽ会社", "ガス"),
    ],
)
def test_forms_of_one_word_meet(text: str, query: str) -> None:
    assert meet(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Los perros corren por la playa con su dueño", "perro"),
        ("Nous avons décidé de repousser la livraison", "livraisons"),
        ("Wir haben die Häuser gestern verkauft und nicht vermietet", "Haus Häusern"),
    ],
)
def test_a_query_too_short_to_tell_its_language_meets_other_forms(text: str, query: str) -> None:
    assert meet(text, query)


def test_english_has_only_english_terms() -> None:
    text = "When did Caroline's sisters paint the sunrises, and what were they running for in 2022?"
    stem = Stemmer.Stemmer("english").stemWord
    expected = [stem(w) for w in re.findall(r"[\w']+", text.lower()) if w not in ENGLISH_STOP]
    assert analyse(text) == expected
    assert list(query_terms(text)) == expected


def test_identifiers_give_their_parts() -> None:
    assert {"src", "main", "py"} <= set(analyse(r"C:\repo\src\main.py"))
    assert {"foo", "bar"} <= set(analyse("foo_bar"))
    assert "9077" in analyse("port 9077")


def test_only_stop_words_still_give_terms() -> None:
    assert query_terms("the of and the") == ("the", "of", "and")
    assert analyse("to be") == ["to", "be"]


def test_emoji_only_text_gives_emoji_terms() -> None:
    assert analyse("😀🎉") == ["😀", "🎉"]
    assert meet("party 🎉🎉", "🎉")
    assert analyse("👍🏽") == ["👍"]


def test_punctuation_gives_nothing() -> None:
    assert analyse('... - " | (') == []
    assert query_terms("") == ()


def test_frequencies_fit_one_byte() -> None:
    assert term_frequencies("spam " * 1000 + "egg") == (("spam", 255), ("egg", 1))


def test_huge_words_and_texts_are_cut() -> None:
    assert analyse("x" * 100_000) == ["x" * MAX_TERM]
    assert len(analyse("汇率" * 100_000)) == MAX_TERMS
    assert len(analyse("a b c1 " * 200_000)) == MAX_TERMS


def test_a_huge_query_is_quick() -> None:
    started = time.perf_counter()
    assert query_terms("spam " * 60_000)[0] == "spam"
    query_terms(" ".join(f"word{i}" for i in range(60_000)))
    assert time.perf_counter() - started < 0.5


def test_a_turn_costs_microseconds() -> None:
    text = "Caroline: I went to the support group yesterday and it was so powerful, I met people and told my story"
    analyse(text)
    best = min(_timed(text) for _ in range(5))
    assert best < 200e-6  # about 15 µs alone; the margin is for a busy machine


def _timed(text: str) -> float:
    started = time.perf_counter()
    for _ in range(200):
        term_frequencies(text)
    return (time.perf_counter() - started) / 200


def test_cjk_heavy() -> None:
    assert is_cjk_heavy("外币汇率 converted")
    assert not is_cjk_heavy("the word 汇 in an English sentence")
    assert not is_cjk_heavy("") and not is_cjk_heavy("!!!\u3000")


def test_the_analyser_is_named_with_its_stemmer() -> None:
    assert Stemmer.version() in ANALYSER


def test_threads_agree() -> None:
    text = "Los niños juegan con el perro; дети играют; children are playing happily"
    expected, seen = analyse(text), []
    threads = [
        threading.Thread(target=lambda: seen.extend(analyse(text) == expected for _ in range(200))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(seen) and len(seen) == 800


@given(st.text(max_size=300))
def test_any_text_is_analysed_the_same_on_both_sides(text: str) -> None:
    terms = analyse(text)
    unmarked = {term for term in terms if not term.startswith("~")}
    assert unmarked <= set(query_terms(text))
    assert all(0 < len(term) <= MAX_TERM * 4 for term in terms)
    assert all(term.encode() for term in terms)


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=100))
def test_composed_and_decomposed_forms_meet(text: str) -> None:
    assert analyse(unicodedata.normalize("NFC", text)) == analyse(unicodedata.normalize("NFD", text))


def test_every_code_point_is_survived() -> None:
    for start in range(0, sys.maxunicode, 4096):
        analyse(" ".join(map(chr, range(start, start + 4096))))

"""Which window a question speaks of: the readings, the refusals, and that nothing makes it fail."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.recall import dates
from recalld.actors.recall.dates import detect_window
from recalld.storage.errors import DateParseError

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def day(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).date().isoformat()


NOW = at("2026-06-17T15:00")  # a Wednesday


def window(query: str, now: int = NOW, offset: int = 0) -> tuple[str, str] | None:
    found = detect_window(query, now, offset)
    if found is None:
        return None
    first, last = found[0] + offset * 60_000_000, found[1] + offset * 60_000_000
    assert first <= last
    return day(first), day(last)


ENGLISH = {
    "what happened today": ("2026-06-17", "2026-06-17"),
    "what did we do yesterday?": ("2026-06-16", "2026-06-16"),
    "what is on tomorrow": ("2026-06-18", "2026-06-18"),
    "the day before yesterday": ("2026-06-15", "2026-06-15"),
    "what happened last week": ("2026-06-08", "2026-06-14"),
    "this week": ("2026-06-15", "2026-06-21"),
    "next week": ("2026-06-22", "2026-06-28"),
    "last month": ("2026-05-01", "2026-05-31"),
    "next month": ("2026-07-01", "2026-07-31"),
    "last year": ("2025-01-01", "2025-12-31"),
    "last quarter": ("2026-01-01", "2026-03-31"),
    "last Tuesday": ("2026-06-16", "2026-06-16"),
    "last Wednesday": ("2026-06-10", "2026-06-10"),
    "this Friday": ("2026-06-19", "2026-06-19"),
    "next Friday": ("2026-06-26", "2026-06-26"),
    "last weekend": ("2026-06-13", "2026-06-14"),
    "this weekend": ("2026-06-20", "2026-06-21"),
    "what did she do over the weekend": ("2026-06-13", "2026-06-14"),
    "last summer": ("2025-06-01", "2025-08-31"),
    "last winter": ("2025-12-01", "2026-02-28"),
    "summer of 2022": ("2022-06-01", "2022-08-31"),
    "3 days ago": ("2026-06-14", "2026-06-14"),
    "two weeks ago": ("2026-06-01", "2026-06-07"),
    "a month ago": ("2026-05-01", "2026-05-31"),
    "five years ago": ("2021-01-01", "2021-12-31"),
    "a few months ago": ("2026-02-01", "2026-04-30"),
    "in the last 7 days": ("2026-06-10", "2026-06-17"),
    "over the past three weeks": ("2026-05-27", "2026-06-17"),
    "in the past year": ("2025-06-17", "2026-06-17"),
    "since last Tuesday": ("2026-06-16", "2026-06-17"),
    "since 2016": ("2016-01-01", "2026-06-17"),
    "since May 7": ("2026-05-07", "2026-06-17"),
    "what happened in June": ("2026-06-01", "2026-06-30"),
    "what happened in July": ("2025-07-01", "2025-07-31"),
    "what will we do in July": ("2026-07-01", "2026-07-31"),
    "in May": ("2026-05-01", "2026-05-31"),
    "June 2024": ("2024-06-01", "2024-06-30"),
    "in 2023": ("2023-01-01", "2023-12-31"),
    "who won in 1066?": ("1066-01-01", "1066-12-31"),
    "the trip to Lisbon 2023?": ("2023-01-01", "2023-12-31"),
    "between May and July 2023": ("2023-05-01", "2023-07-31"),
    "between 3 May 2023 and 9 June 2023": ("2023-05-03", "2023-06-09"),
    "from March 3 to April 5": ("2026-03-03", "2026-04-05"),
    "from November 20 to January 5": ("2025-11-20", "2026-01-05"),
    "from 2019 to 2021": ("2019-01-01", "2021-12-31"),
    "between Monday and Tuesday": ("2026-06-15", "2026-06-16"),
    "last week and this week": ("2026-06-08", "2026-06-21"),
    "before June 2024": ("1924-06-01", "2024-05-31"),
    "after March 2026": ("2026-04-01", "2026-06-17"),
    "what did we decide on 10 June 2026": ("2026-06-10", "2026-06-10"),
    "7 May 2023": ("2023-05-07", "2023-05-07"),
    "the 7th of May, 2023": ("2023-05-07", "2023-05-07"),
    "May 7th, 2023": ("2023-05-07", "2023-05-07"),
    "May 7": ("2026-05-07", "2026-05-07"),
    "on December 7": ("2025-12-07", "2025-12-07"),
    "May 7-9, 2023": ("2023-05-07", "2023-05-09"),
    "2026-06-10": ("2026-06-10", "2026-06-10"),
    "log of 2026-06-10T09:30": ("2026-06-10", "2026-06-10"),
    "5/7/2023": ("2023-05-07", "2023-05-07"),
    "07.05.2023": ("2023-05-07", "2023-05-07"),
    "Q1 2024": ("2024-01-01", "2024-03-31"),
    "third quarter of 2023": ("2023-07-01", "2023-09-30"),
    "in Q4": ("2025-10-01", "2025-12-31"),
    "first week of May 2023": ("2023-05-01", "2023-05-07"),
    "the last Friday of June 2023": ("2023-06-30", "2023-06-30"),
    "early May 2023": ("2023-05-01", "2023-05-07"),
    "in the 1990s": ("1990-01-01", "1999-12-31"),
    "what runs on port 9077 since last Tuesday": ("2026-06-16", "2026-06-17"),
    "the week before August 3, 2023": ("2023-07-24", "2023-07-30"),
    "two weeks before August 11, 2023": ("2023-07-24", "2023-07-30"),
    "two days after 1 May 2023": ("2023-05-03", "2023-05-03"),
    "the Friday before 20 May 2023": ("2023-05-19", "2023-05-19"),
    "the Friday after 19 May 2023": ("2023-05-26", "2023-05-26"),
    "on Halloween 2022": ("2022-10-31", "2022-10-31"),
    "Which city did they visit in the week of May 8, 2023?": ("2023-05-08", "2023-05-14"),
}


@pytest.mark.parametrize("query", ENGLISH)
def test_english_questions(query: str) -> None:
    assert window(query) == ENGLISH[query]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "what did Caroline research",
        "we do me may do it",
        "may I march with the sun and sat on a mat",
        "what runs on port 9077",
        "what runs on port 2023?",
        "room 2024",
        "error 1999 in the log",
        "it costs $2000.",
        "walked in 2000 steps",
        "every Friday",
        "each summer",
        "on 2023-13-45",
        "on February 30, 2023",
        "in 9999",
        "year 0001",
        "99999999 years ago",
        "in 0999",
        "version 2.0.2019.",
        "this is the 1st time",
        "the second house on the street",
        "十万年前",
        "这种鸟十万年前就有了",
        "das Haus ist hier und nicht da",
        "por la mañana bebo café",
    ],
)
def test_questions_without_a_window(query: str) -> None:
    assert window(query) is None


OTHERS = {
    "¿qué hicimos ayer?": ("2026-06-16", "2026-06-16"),
    "la semana pasada": ("2026-06-08", "2026-06-14"),
    "hace tres semanas": ("2026-05-25", "2026-05-31"),
    "el lunes pasado": ("2026-06-15", "2026-06-15"),
    "el 7 de mayo de 2023": ("2023-05-07", "2023-05-07"),
    "en mayo de 2023": ("2023-05-01", "2023-05-31"),
    "desde 2020": ("2020-01-01", "2026-06-17"),
    "el verano pasado": ("2025-06-01", "2025-08-31"),
    "le mois dernier": ("2026-05-01", "2026-05-31"),
    "qu'avons-nous fait hier soir": ("2026-06-16", "2026-06-16"),
    "il y a deux ans": ("2024-01-01", "2024-12-31"),
    "l'année dernière": ("2025-01-01", "2025-12-31"),
    "en mai 2023": ("2023-05-01", "2023-05-31"),
    "was haben wir letzte Woche gemacht": ("2026-06-08", "2026-06-14"),
    "vor drei Tagen": ("2026-06-14", "2026-06-14"),
    "am 7. Mai 2023": ("2023-05-07", "2023-05-07"),
    "im Juni": ("2026-06-01", "2026-06-30"),
    "letzten Sommer": ("2025-06-01", "2025-08-31"),
    "la settimana scorsa": ("2026-06-08", "2026-06-14"),
    "due anni fa": ("2024-01-01", "2024-12-31"),
    "cosa abbiamo fatto ieri": ("2026-06-16", "2026-06-16"),
    "na semana passada": ("2026-06-08", "2026-06-14"),
    "há três dias": ("2026-06-14", "2026-06-14"),
    "o que fizemos ontem": ("2026-06-16", "2026-06-16"),
    "上周发生了什么": ("2026-06-08", "2026-06-14"),
    "上周五": ("2026-06-12", "2026-06-12"),
    "昨天我们做了什么": ("2026-06-16", "2026-06-16"),
    "三天前": ("2026-06-14", "2026-06-14"),
    "去年五月": ("2025-05-01", "2025-05-31"),
    "2023年5月7日": ("2023-05-07", "2023-05-07"),
    "二〇二三": None,
    "最近7天": ("2026-06-10", "2026-06-17"),
    "先週の金曜日": ("2026-06-12", "2026-06-12"),
    "昨日何をしましたか": ("2026-06-16", "2026-06-16"),
    "３日前": ("2026-06-14", "2026-06-14"),
    "来月の予定": ("2026-07-01", "2026-07-31"),
    "지난주 회의": ("2026-06-08", "2026-06-14"),
    "어제 뭐 했어": ("2026-06-16", "2026-06-16"),
    "2023년 5월": ("2023-05-01", "2023-05-31"),
    "3일 전": ("2026-06-14", "2026-06-14"),
    "작년": ("2025-01-01", "2025-12-31"),
}


@pytest.mark.parametrize("query", OTHERS)
def test_questions_in_other_languages(query: str) -> None:
    assert window(query) == OTHERS[query]


def test_other_languages_go_through_the_library() -> None:
    assert window("что мы решили вчера") == ("2026-06-16", "2026-06-16")
    assert window("wat deden we gisteren") == ("2026-06-16", "2026-06-16")


def test_relative_words_are_read_in_the_callers_zone() -> None:
    late = at("2026-06-17T23:30")
    assert window("today", late) == ("2026-06-17", "2026-06-17")
    assert window("today", late, 60) == ("2026-06-18", "2026-06-18")
    assert detect_window("today", late, 60) == (at("2026-06-17T23:00"), at("2026-06-18T23:00") - 1)


def test_a_question_without_date_words_never_imports_the_library() -> None:
    code = (
        "import sys; from recalld.actors.recall.dates import detect_window as d;"
        "d('what did Ana say about the boat', 0); d('what happened last week', 0);"
        "assert 'dateparser' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_question_without_date_words_costs_microseconds() -> None:
    query = "What did Caroline and her mentor research for the adoption agency meeting?"
    started = time.perf_counter()
    for _ in range(1000):
        detect_window(query, NOW)
    assert (time.perf_counter() - started) / 1000 < 200e-6


def test_a_broken_library_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    import dateparser.search

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(dateparser.search, "search_dates", broken)
    with pytest.raises(DateParseError):
        detect_window("что мы решили вчера", NOW)
    assert window("last week") == ("2026-06-08", "2026-06-14")


def test_broken_rules_are_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(dates.datephrases, "find", broken)
    with pytest.raises(DateParseError):
        detect_window("what happened last week", NOW)


@pytest.mark.parametrize("extra", [(), ("more",), ("more", {"and": "more"})])
def test_results_of_the_library_may_be_tuples_of_any_length(
    extra: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    import dateparser.search

    moment = datetime(2026, 6, 16, 15)  # noqa: DTZ001
    monkeypatch.setattr(dateparser.search, "search_dates", lambda *_, **__: [("вчера", moment, *extra)])
    assert window("что мы решили вчера") == ("2026-06-16", "2026-06-16")


WORDS = [
    "last",
    "next",
    "this",
    "past",
    "the",
    "of",
    "in",
    "on",
    "since",
    "before",
    "after",
    "between",
    "from",
    "to",
    "and",
    "ago",
    "every",
    "week",
    "weeks",
    "month",
    "year",
    "years",
    "day",
    "days",
    "Friday",
    "monday",
    "weekend",
    "summer",
    "winter",
    "fall",
    "June",
    "May",
    "march",
    "february",
    "31",
    "29",
    "30",
    "7",
    "0",
    "2023",
    "1999",
    "9999",
    "99999",
    "31st",
    "3rd",
    "end",
    "beginning",
    "early",
    "late",
    "q1",
    "quarter",
    "first",
    "few",
    "several",
    "a",
    "couple",
    "十万",
    "年前",
    "上周",
    "五月",
    "3",
    "日前",
    "지난주",
    "hace",
    "ans",
    "vor",
    "il",
    "y",
    "a",
    "semana",
    "pasada",
    "today",
    "tomorrow",
    "2023-02-30",
    "1/13/2020",
    ",",
    ".",
    "?",
    "-",
    "–",
    "вчера",
]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=9), st.integers(-720, 840), st.sampled_from([NOW, 0, at("2024-02-29")])
)
def test_any_string_of_date_words_is_a_window_or_none(words: list[str], offset: int, now: int) -> None:
    found = detect_window(" ".join(words), now, offset)
    assert found is None or (found[0] <= found[1] and at("0999-12-30") <= found[0] and found[1] < at("3000-01-03"))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(-(2**63), 2**63 - 1))
def test_any_text_at_any_time_is_survived(text: str, now: int) -> None:
    found = detect_window(text, now)
    assert found is None or found[0] <= found[1]


@pytest.mark.parametrize(
    "text", ["last " * 20_000, "9" * 100_000, " " * 100_000 + "ago", "十" * 10_000 + "年前", "in the " * 9000]
)
def test_huge_questions_are_cut(text: str) -> None:
    started = time.perf_counter()
    detect_window(text, NOW)
    assert time.perf_counter() - started < 1

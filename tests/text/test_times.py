"""When the things a text tells of happened: absolute ranges from the text's own time and zone."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.retain.times import resolve

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def said(text: str, when: str, offset: int = 0) -> list[tuple[str, str, str]]:
    shift = offset * 60_000_000
    return [
        (
            event.words,
            *((EPOCH + timedelta(microseconds=t + shift)).date().isoformat() for t in (event.start, event.end)),
        )
        for event in resolve(text, at(when) - shift, offset)
    ]


@pytest.mark.parametrize(
    ("text", "when", "words", "first", "last"),
    [
        ("Last week the pump failed", "2026-05-13T10:00", "Last week", "2026-05-04", "2026-05-10"),
        ("I went to the support group yesterday", "2023-05-08T13:56", "yesterday", "2023-05-07", "2023-05-07"),
        ("I painted it last year", "2023-05-08T13:56", "last year", "2022-01-01", "2022-12-31"),
        ("We met in 2022 at the lake", "2023-05-08T13:56", "2022", "2022-01-01", "2022-12-31"),
        ("Last summer we sailed", "2023-05-08T13:56", "Last summer", "2022-06-01", "2022-08-31"),
        ("I ran a race last Saturday", "2023-05-25T13:14", "last Saturday", "2023-05-20", "2023-05-20"),
        ("I gave a talk last month", "2023-06-09T19:55", "last month", "2023-05-01", "2023-05-31"),
        ("I'm going to the beach next month", "2023-06-09T19:55", "next month", "2023-07-01", "2023-07-31"),
        ("We had a picnic on Friday", "2023-06-07T12:00", "Friday", "2023-06-02", "2023-06-02"),
        ("I will call you on Friday", "2023-06-07T12:00", "Friday", "2023-06-09", "2023-06-09"),
        ("It opened two weekends ago", "2023-07-17T12:00", "two weekends ago", "2023-07-08", "2023-07-09"),
        ("I moved from Sweden four years ago", "2023-06-27T10:37", "four years ago", "2019-01-01", "2019-12-31"),
        ("In May I started yoga", "2023-08-14T12:00", "May", "2023-05-01", "2023-05-31"),
        ("The exam is due in June", "2023-08-14T12:00", "June", "2024-06-01", "2024-06-30"),
        ("I will see her in two weeks", "2023-08-14T12:00", "in two weeks", "2023-08-28", "2023-09-03"),
        ("Her birthday was August 13", "2023-08-14T12:00", "August 13", "2023-08-13", "2023-08-13"),
        ("I've had her since 2016", "2023-08-14T12:00", "2016", "2016-01-01", "2023-08-14"),
        ("Ayer fui al médico", "2023-08-14T12:00", "Ayer", "2023-08-13", "2023-08-13"),
        ("昨日、医者に行った。", "2023-08-14T12:00", "昨日", "2023-08-13", "2023-08-13"),
        ("上周五开会了", "2023-08-14T12:00", "上周五", "2023-08-11", "2023-08-11"),
        ("Wir haben uns letzte Woche getroffen", "2023-08-16T12:00", "letzte Woche", "2023-08-07", "2023-08-13"),
    ],
)
def test_relative_words_become_ranges(text: str, when: str, words: str, first: str, last: str) -> None:
    assert said(text, when) == [(words, first, last)]


# Sunday 15 February 2026, Friday 13 March 2026, Saturday 31 January 2026: the readings the grammar's docstring states.
AMBIGUOUS = {
    ("Rent is due the 31st.", "2026-02-15"): ("2026-03-31", "2026-03-31"),
    ("I paid it on the 31st.", "2026-02-15"): ("2026-01-31", "2026-01-31"),
    ("Rent is the 31st.", "2026-02-15"): ("2026-03-31", "2026-03-31"),
    ("Rent is the 31st.", "2026-03-13"): ("2026-03-31", "2026-03-31"),
    ("Rent is the 31st.", "2026-01-31"): ("2026-01-31", "2026-01-31"),
    ("See you next Friday.", "2026-02-15"): ("2026-02-20", "2026-02-20"),
    ("See you next Friday.", "2026-03-13"): ("2026-03-20", "2026-03-20"),
    ("See you next Friday.", "2026-01-31"): ("2026-02-06", "2026-02-06"),
    ("It rains this weekend.", "2026-02-15"): ("2026-02-14", "2026-02-15"),
    ("It rains this weekend.", "2026-03-13"): ("2026-03-14", "2026-03-15"),
    ("It rains this weekend.", "2026-01-31"): ("2026-01-31", "2026-02-01"),
    ("Done by the end of the month.", "2026-02-15"): ("2026-02-22", "2026-02-28"),
    ("Done by the end of the month.", "2026-03-13"): ("2026-03-25", "2026-03-31"),
    ("Done by the end of the month.", "2026-01-31"): ("2026-01-25", "2026-01-31"),
}


@pytest.mark.parametrize(("text", "when"), AMBIGUOUS)
def test_ambiguous_anchors_have_one_documented_reading(text: str, when: str) -> None:
    assert [event[1:] for event in said(text, when)] == [AMBIGUOUS[text, when]]


def test_the_31st_is_never_the_3rd_of_march() -> None:
    for day in range(1, 29):
        for text in ("on the 31st", "I went on the 31st", "we will go on the 31st", "the 31st."):
            for _, first, _ in said(text, f"2026-02-{day:02}"):
                assert first in ("2026-01-31", "2026-03-31")


def test_words_are_read_in_the_items_own_zone() -> None:
    assert said("I saw it yesterday", "2026-06-12T01:00", 480) == [("yesterday", "2026-06-11", "2026-06-11")]
    (event,) = resolve("I saw it today", at("2026-06-12T19:17") - 480 * 60_000_000, 480)
    assert (event.start, event.end) == (at("2026-06-11T16:00"), at("2026-06-12T16:00") - 1)


def test_spans_point_at_the_words() -> None:
    text = "Hi! 😀 Last week we sailed. Café was closed on Monday, though."
    events = resolve(text, at("2026-05-13T10:00"))
    assert [text[a:b] for a, b in (event.span for event in events)] == ["Last week", "Monday"]
    assert [event.words for event in events] == ["Last week", "Monday"]


def test_other_languages_go_through_the_library_and_its_failure_loses_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said("Мы встретились вчера. Потом ничего.", "2026-05-13T10:00") == [("вчера", "2026-05-12", "2026-05-12")]
    import dateparser.search

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(dateparser.search, "search_dates", broken)
    assert said("Мы встретились вчера.", "2026-05-13T10:00") == []


@pytest.mark.parametrize(
    "text",
    [
        "I swim every Friday.",
        "You need it before June.",
        "At the end of the day it works.",
        "We do what we may do.",
        "He lives in room 2024 and pays $1999.",
        "These birds existed 100000 years ago.",
        "这种鸟十万年前就有了",
        "She will march on.",
        "Take it one day at a time.",
    ],
)
def test_what_names_no_event_time_gives_nothing(text: str) -> None:
    assert resolve(text, at("2026-05-13T10:00")) == []


def test_every_sentence_leans_its_own_way() -> None:
    events = said("We met on Friday. We will meet again on Friday.", "2026-05-13T10:00")
    assert [event[1] for event in events] == ["2026-05-08", "2026-05-15"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(-(2**63), 2**63 - 1), st.integers(-840, 840))
def test_any_text_at_any_time_is_survived(text: str, anchor: int, offset: int) -> None:
    for event in resolve(text + " last week in May", anchor, offset):
        assert event.start <= event.end


@pytest.mark.parametrize(
    "text", ["last week " * 2000, "9" * 20_000, "a" * 20_000, "in the " * 3000, "十" * 20_000 + "年前", "." * 20_000]
)
def test_long_texts_are_read_quickly(text: str) -> None:
    started = time.perf_counter()
    resolve(text, at("2026-05-13T10:00"))
    assert time.perf_counter() - started < 2

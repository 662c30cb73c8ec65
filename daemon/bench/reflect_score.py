"""What an extractive answer is worth beside the gold answer, as pure functions: words, dates, and "not found"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from recalld.actors.reflect.questions import stem

ADVERSARIAL, TEMPORAL = "adversarial", "temporal"
WORDED = ("multi-hop", "temporal", "single hop")
"""Categories whose gold words are looked for in what an answer cites."""
SLACK = timedelta(days=1)
_ABSENT_WORDS = """
    the a an of to and in on at for is was were be by with as or it its their his her they he she that this from has
    have had not are who when what which before after during since about up out into
"""
_ABSENT = frozenset(_ABSENT_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_DAY_MONTH = re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?P<year>\d{{4}})")
_MONTH_DAY = re.compile(rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})")
_RANGE = re.compile(
    rf"(?P<first>\d{{1,2}})(?: (?P<other>[a-z]+))?(?: (?P<before>\d{{4}}))? to (?=\d{{1,2}} {_MONTH} \d{{4}})"
)
_MONTH_YEAR = re.compile(rf"{_MONTH},? (?P<year>\d{{4}})")
_YEAR = re.compile(r"\b(?P<year>(?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Answered:
    """One question with its gold answer and what came of it: the text, whether it was found, and the texts cited."""

    category: str
    gold: str
    text: str
    found: bool
    cited: tuple[str, ...]


def gold_words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _WORD.findall(text.casefold().replace("'s", "")) if word not in _ABSENT)


def covered(one: Answered) -> float:
    """Share of the gold answer's content words that stand in the memories the answer cites."""
    wanted = gold_words(one.gold)
    has = gold_words(" ".join(one.cited))
    return len(wanted & has) / len(wanted) if wanted else 0.0


def opening(text: str) -> str:
    """The part of an answer that states a time: what stands before the first memory."""
    return text.split("\n- ")[0] if not text.startswith("- ") else ""


def right_date(one: Answered) -> bool:
    """Whether the answer states a period that lies in the gold answer's, give or take a day."""
    stated, gold = period(opening(one.text)), period(one.gold)
    if not one.found or stated is None or gold is None:
        return False
    return gold[0] - SLACK <= stated[0] and stated[1] <= gold[1] + SLACK


def period(text: str) -> tuple[date, date] | None:
    """The first period of time named in absolute words; None when there is none."""
    words = " ".join(text.casefold().split())
    try:
        return _period(words)
    except ValueError:
        return None


def _period(words: str) -> tuple[date, date] | None:
    day = _DAY_MONTH.search(words) or _MONTH_DAY.search(words)
    if day is not None:
        last = date(int(day["year"]), _month(day["month"]), int(day["day"]))
        ranged = _RANGE.search(words)
        if ranged is not None and ranged.end() == day.start():
            first_month = _month(ranged["other"]) if ranged["other"] else last.month
            return date(int(ranged["before"] or last.year), first_month, int(ranged["first"])), last
        return _around(words[: day.start()], last)
    month = _MONTH_YEAR.search(words)
    if month is not None:
        return _within_month(words[: month.start()], int(month["year"]), _month(month["month"]))
    year = _YEAR.search(words)
    return None if year is None else (date(int(year["year"]), 1, 1), date(int(year["year"]), 12, 31))


def _around(before: str, day: date) -> tuple[date, date]:
    """The period that words in front of a day make of it."""
    if "before" in before or "prior to" in before:
        for number, name in enumerate(_DAYS):
            if name in before:
                back = (day.weekday() - number - 1) % 7 + 1
                return day - timedelta(days=back), day - timedelta(days=back)
        if "two weekends" in before or "two weeks" in before:
            return day - timedelta(days=day.weekday() + 14), day - timedelta(days=7)
        if "week" in before:
            return day - timedelta(days=day.weekday() + 7), day - timedelta(days=1)
        if "few days" in before:
            return day - timedelta(days=6), day - timedelta(days=1)
        if "two days" in before:
            return day - timedelta(days=2), day - timedelta(days=2)
        return day - timedelta(days=1), day - timedelta(days=1)
    if "week of" in before:
        return day - timedelta(days=day.weekday()), day + timedelta(days=6 - day.weekday())
    return day, day


def _within_month(before: str, year: int, month: int) -> tuple[date, date]:
    first = date(year, month, 1)
    last = (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    parts = {"first week": (1, 7), "early": (1, 12), "beginning": (1, 12), "mid": (10, 20), "second week": (8, 14)}
    for part, (start, end) in parts.items():
        if part in before:
            return first.replace(day=start), first.replace(day=end)
    if "last week" in before or "late" in before or "end of" in before:
        return last - timedelta(days=9), last
    return first, last


def _month(word: str) -> int:
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(word[:3]))


def cited_text(memory: dict[str, Any]) -> str:
    """A cited memory as a reader sees it: its text, and its dates written out."""
    dates = []
    for name in ("occurred_start", "occurred_end", "mentioned_at"):
        if memory.get(name):
            day = date.fromisoformat(str(memory[name])[:10])
            dates.append(f"{day.day} {day:%B} {day.year}")
    return " ".join((str(memory["text"]), *dict.fromkeys(dates)))


def summary(answers: Sequence[Answered]) -> dict[str, dict[str, float]]:
    """Figures by category, and for the three worded ones and the answerable ones together."""
    groups: dict[str, list[Answered]] = {}
    for one in answers:
        groups.setdefault(one.category, []).append(one)
    out = {name: _figures(name, some) for name, some in sorted(groups.items())}
    worded = [one for one in answers if one.category in WORDED]
    answerable = [one for one in answers if one.category != ADVERSARIAL]
    if worded:
        out["1, 2 and 4"] = _figures("worded", worded)
    if answerable:
        out["answerable"] = _figures("answerable", answerable)
    return out


def _figures(name: str, some: Sequence[Answered]) -> dict[str, float]:
    figures = {"questions": float(len(some)), "not found": _share(not one.found for one in some)}
    if name != ADVERSARIAL:
        figures |= {
            "all words": _share(covered(one) >= 0.999 for one in some),
            "half the words": _share(covered(one) >= 0.5 for one in some),
            "words": sum(map(covered, some)) / len(some),
        }
    if name == TEMPORAL:
        figures["dates right"] = _share(right_date(one) for one in some)
    return figures


def _share(some: Iterable[bool]) -> float:
    values = list(some)
    return sum(values) / len(values) if values else 0.0

"""An answer put together from memories, without a language model. Pure.

    extract = answer("When did Ana move to Lyon?", results, asked_at=now)
    extract.text        # "12 May 2026. Ana moved to Lyon on 12 May 2026. [1] ..."
    extract.found       # False: "Not found in memory."

`results` are those of a recall, best first, with their scores. Words of the answer are the memories' own; what is
worded here are dates, frames, and how certain it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from recalld.actors.llm.counting import count_tokens
from recalld.actors.reflect import questions
from recalld.actors.reflect.questions import HOW_MANY, LIST, SUMMARY, WHEN, WHY, YES_NO, Question
from recalld.actors.reflect.weighing import Weighed, advantage, weigh

MOST_CITED = 10
LEAST_ADVANTAGE = 0.0
"""Floor of `weighing.advantage`: below it the memory tells this of somebody else."""
LEAST_FIT = 0.9
"""Floor of the best fit: below it nothing stored has to do with the question."""
FIRM_FIT, FAIR_FIT = 1.85, 1.4
"""From these fits on an answer is called certain, or likely."""
RELATED = 0.3
"""Share of the best fit below which a memory is not cited beside the best."""
SHOWN = {LIST: 8, SUMMARY: 8}
"""How many memories are told in full; the rest are named as further sources."""
USUALLY_SHOWN = 3
NOT_FOUND = "Not found in memory."
HIGH, MEDIUM, LOW, NONE = "high", "medium", "low", "none"
CERTAINTY = {
    HIGH: "Certainty: high; the memories say this nearly in the question's own words.",
    MEDIUM: "Certainty: medium; the memories fit the question, but do not say it in so many words.",
    LOW: "Certainty: low; this is the closest there is.",
    NONE: "Certainty: no memory answers this.",
}
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NUMBER = re.compile(
    r"\b(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|several|dozen)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|in order to|due to|thanks to|to help|inspired|reason|porque|weil)\b", re.I
)
_NEGATION = re.compile(
    r"\b(?:not|never|no longer|n['’]t|don['’]t|didn['’]t|isn['’]t|wasn['’]t|hasn['’]t|nobody|none)\b", re.I
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Extract:
    """An extractive answer. `kind` is what the question was taken for; `cited` are ids of units, in order of use.

    `signals` are the figures it was decided by. `dates` is the period a question for a time was answered with, as the
    first and the last day in ISO form.
    """

    text: str
    kind: str
    found: bool
    certainty: str
    cited: tuple[str, ...] = ()
    signals: dict[str, float] = field(default_factory=dict)
    dates: tuple[str, str] | None = None


def answer(
    query: str, results: Sequence[dict[str, Any]], *, asked_at: int, utc_offset: int = 0, max_tokens: int = 4096
) -> Extract:
    """A short answer to a question. Without a result good enough it says that it was not found."""
    question = questions.read(query)
    weighed = weigh(question, results)
    best_fit = max((one.for_asked * one.fit for one in weighed), default=0.0)
    lead = advantage(weighed) if question.names else 0.0
    signals = {"fit": round(best_fit, 3), "advantage": round(lead, 3)}
    if best_fit < LEAST_FIT or lead < LEAST_ADVANTAGE:
        return Extract(f"{NOT_FOUND}\n\n{CERTAINTY[NONE]}", question.kind, False, NONE, (), signals)
    chosen = choose(question, weighed)
    certainty = HIGH if best_fit >= FIRM_FIT and lead >= 0 else MEDIUM if best_fit >= FAIR_FIT else LOW
    dates = period(chosen[0], utc_offset) if question.kind == WHEN else None
    text = _composed(question, chosen, certainty, dates, utc_offset, max_tokens)
    return Extract(text, question.kind, True, certainty, tuple(one.memory["id"] for one in chosen), signals, dates)


def choose(question: Question, weighed: Sequence[Weighed]) -> list[Weighed]:
    """The memories an answer cites, the one that answers first."""

    def worth(one: Weighed) -> float:
        score = float((one.memory.get("scores") or {}).get("final") or 0.0)
        return score * (0.75 + 0.25 * one.for_asked) + 0.1 * one.covers

    bar = RELATED * max((one.for_asked * one.fit for one in weighed), default=0.0)
    related = [one for one in weighed if one.for_asked * one.fit >= bar]
    ranked = sorted(related, key=worth, reverse=True)[:MOST_CITED]
    if question.kind == WHEN:
        return _dated_first(ranked)
    if question.kind == HOW_MANY:
        return _first_with(ranked, _NUMBER)
    if question.kind == WHY:
        return _first_with(ranked, _REASON)
    return ranked


def _dated_first(ranked: list[Weighed]) -> list[Weighed]:
    """A memory of an event with a date of its own goes before one that only was said some day, when it fits nearly as
    well."""
    if not ranked or ranked[0].memory.get("occurred_start"):
        return ranked
    bar = 0.8 * ranked[0].fit * ranked[0].for_asked
    for one in ranked[1:4]:
        if one.memory.get("occurred_start") and one.fit * one.for_asked >= bar:
            return [one, *(other for other in ranked if other is not one)]
    return ranked


def _first_with(ranked: list[Weighed], pattern: re.Pattern[str]) -> list[Weighed]:
    if not ranked or pattern.search(ranked[0].body):
        return ranked
    bar = 0.85 * ranked[0].fit * ranked[0].for_asked
    for one in ranked[1:4]:
        if pattern.search(one.body) and one.fit * one.for_asked >= bar:
            return [one, *(other for other in ranked if other is not one)]
    return ranked


# -- times -----------------------------------------------------------------------------------------------------------


def period(one: Weighed, utc_offset: int) -> tuple[str, str] | None:
    """First and last day of what a memory tells: of the event, or else of the day it was said. None when unknown."""
    memory = one.memory
    start, end = memory.get("occurred_start"), memory.get("occurred_end")
    if start:
        first, last = _day(str(start), utc_offset), _day(str(end or start), utc_offset)
        return (first, max(first, last))
    said = memory.get("mentioned_at")
    return None if not said else (_day(str(said), utc_offset),) * 2


def _day(text: str, utc_offset: int) -> str:
    at = datetime.fromisoformat(text)
    return at.astimezone(timezone(timedelta(minutes=utc_offset))).date().isoformat()


def date_words(first: str, last: str) -> str:
    """A period in words, never relative: `7 May 2023`, `May 2023`, `2023`, `1 to 7 May 2023`."""
    a, b = datetime.fromisoformat(first), datetime.fromisoformat(last)
    if a == b:
        return _full(a)
    if (a.month, a.day, b.month, b.day) == (1, 1, 12, 31):
        return str(a.year) if a.year == b.year else f"{a.year} to {b.year}"
    if a.day == 1 and (b + _DAY).day == 1:
        if (a.year, a.month) == (b.year, b.month):
            return a.strftime("%B %Y")
        return f"{a.strftime('%B %Y')} to {b.strftime('%B %Y')}"
    if (a.year, a.month) == (b.year, b.month):
        return f"{a.day} to {_full(b)}"
    return f"{a.day} {a.strftime('%B')} to {_full(b)}" if a.year == b.year else f"{_full(a)} to {_full(b)}"


def _full(day: datetime) -> str:
    return f"{day.day} {day.strftime('%B %Y')}"


def _date_of(one: Weighed, utc_offset: int) -> str:
    found = period(one, utc_offset)
    if found is None:
        return "undated"
    return date_words(*found) if one.memory.get("occurred_start") else f"said on {date_words(*found)}"


# -- words -----------------------------------------------------------------------------------------------------------


def _composed(
    question: Question,
    chosen: Sequence[Weighed],
    certainty: str,
    dates: tuple[str, str] | None,
    utc_offset: int,
    max_tokens: int,
) -> str:
    shown = chosen[: SHOWN.get(question.kind, USUALLY_SHOWN)]
    lines: list[str] = []
    best = chosen[0]
    opening = _opening(question, best, dates)
    if opening:
        lines.append(opening)
    for number, one in enumerate(shown, 1):
        text = _excerpt(question, one)
        lines.append(f"- {text} ({_date_of(one, utc_offset)}) [{number}]")
    tail = [CERTAINTY[certainty]]
    if len(chosen) > len(shown):
        tail.append(f"{len(chosen) - len(shown)} more memories were drawn on.")
    room = max_tokens - sum(map(count_tokens, tail)) if max_tokens > 0 else 1 << 30
    kept: list[str] = []
    for line in lines:
        room -= count_tokens(line)
        if room < 0 and kept:
            break
        kept.append(line)
    return "\n".join(kept) + "\n\n" + " ".join(tail)


def _opening(question: Question, best: Weighed, dates: tuple[str, str] | None) -> str:
    if question.kind == WHEN:
        if dates is None:
            return "The memories give no date for this:"
        if best.memory.get("occurred_start"):
            return f"{date_words(*dates)}."
        return f"Said on {date_words(*dates)}, with no other date:"
    if question.kind == HOW_MANY:
        number = _NUMBER.search(_excerpt(question, best))
        return f"{number[0].capitalize()}." if number else ""
    if question.kind == YES_NO:
        if _NEGATION.search(_excerpt(question, best)) and not _NEGATION.search(question.text):
            return "It seems not; the closest memory denies something:"
        return "It seems so, going by the closest memories:"
    return ""


def _excerpt(question: Question, one: Weighed) -> str:
    """The sentences of a memory that the question is about: all of a short one, the best two of a long one."""
    text = " ".join(str(one.memory["text"]).split())
    if one.memory.get("type") == "opinion":
        # A judgement is never told as a fact.
        confidence = one.memory.get("confidence")
        return f"An opinion{'' if confidence is None else f' (confidence {confidence:.2f})'}: {text}"
    if len(text) <= 240:
        return text
    sentences = [part for part in _SENTENCE.split(str(one.memory["text"])) if part.strip()]
    scored = sorted(
        range(len(sentences)), key=lambda at: len(question.words & questions.content(sentences[at])), reverse=True
    )
    kept = sorted(scored[:2])
    out = " ".join(" ".join(sentences[at].split()) for at in kept)
    speaker = one.memory["text"].partition(": ")[0] if one.speaker else ""
    return f"{speaker}: {out}" if speaker and not out.startswith(speaker) else out

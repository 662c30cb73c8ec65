"""Observations without a model: facts that make one claim are grouped, and one of them speaks for all. Pure.

Two facts are one claim when nothing in them speaks against it (who speaks, whom it is about, the value, the numbers,
the days, a denial) and their words or meanings agree. A group is represented by its most informative fact, word for
word, so that nothing is ever said that no fact says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from recalld.storage.analysis import analyse
from recalld.storage.names import folded

Fact = Mapping[str, Any]
Pair = tuple[int, int, float, float]

SURE, LIKELY, ALIKE = 0.86, 0.74, 0.62
"""Of the joint score: above the first two facts are one claim; above the second if they name the same; above the third
if the rules of extraction read the same subject, attribute and value in both."""
_DAY = 86_400_000_000
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NOT = re.compile(
    r"\b(?:not|no longer|never|n't|nobody|nothing|without|stopped|quit|nicht|kein\w*|nie|nunca|ya no|no)\b|n['’]t\b"
    r"|[不没沒]|ない|なかった|ません",
    re.IGNORECASE,
)
_SELF = re.compile(r"\b(?:i|i'm|i’m|i've|i’ve|my|me|mine|we|our|ich|mein\w*|wir|yo|mis?)\b|[我私僕俺]", re.IGNORECASE)
_DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"(?:\s+\d{1,2})?(?:,?\s+\d{4})?|\d{1,2}\s+(?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december)(?:\s+\d{4})?|(?:19|20)\d{2})\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Group:
    """Facts that make one claim; `uid` and `id` are those of the observation that states it (-1, "": none yet)."""

    facts: list[Fact]
    uid: int = -1
    id: str = ""
    text: str = ""
    new: list[Fact] = field(default_factory=list)

    @property
    def speaker_for_all(self) -> Fact:
        """The fact that says most: names, days and words; of equals the oldest."""
        return max(self.facts, key=lambda one: (_informative(one), -one["uid"]))


def is_claim(fact: Fact) -> bool:
    """Whether a fact states something that an observation can repeat: no question, and more than a few empty words."""
    if fact["question"] or not fact["text"].strip() or fact["text"].rstrip().endswith(("?", "？")):
        return False
    return bool(fact["attribute"]) or len(_words(fact["text"])) >= 3


def group(facts: Sequence[Fact], context: Mapping[str, Any]) -> list[Group]:
    """New facts put to the claims of a scope; only groups that gained one, each with all its facts."""
    by_uid: dict[int, Fact] = {one["uid"]: one for one in (*context["sources"], *facts)}
    groups = [
        Group([by_uid[uid] for uid in one["sources"] if uid in by_uid], one["uid"], one["id"], one["text"])
        for one in context["observations"]
    ]
    home: dict[int, list[Group]] = {}
    for existing in groups:
        for fact in existing.facts:
            home.setdefault(fact["uid"], []).append(existing)
    likeness: dict[int, dict[int, tuple[float, float]]] = {}
    for one, other, cosine, late in context["pairs"]:
        likeness.setdefault(one, {})[other] = likeness.setdefault(other, {})[one] = (cosine, late)
    for fact in facts:
        if fact["uid"] in home:
            for held in home[fact["uid"]]:
                held.new.append(fact)
            continue
        if not is_claim(fact):
            continue
        best = _best(fact, likeness.get(fact["uid"], {}), by_uid, home)
        if best is None:
            best = Group([])
            groups.append(best)
        best.facts.append(fact)
        best.new.append(fact)
        home[fact["uid"]] = [best]
    return [one for one in groups if one.new]


def _best(
    fact: Fact,
    near: Mapping[int, tuple[float, float]],
    by_uid: Mapping[int, Fact],
    home: Mapping[int, list[Group]],
) -> Group | None:
    """The group of the nearest fact that makes the same claim, none of whose other facts contradicts it."""
    found: list[tuple[float, int, Group]] = []
    for uid, (cosine, late) in near.items():
        other = by_uid.get(uid)
        if other is None or uid not in home:
            continue
        value = agreement(fact, other, cosine, late)
        if value > 0:
            found += [(value, -uid, held) for held in home[uid]]
    for _, _, held in sorted(found, key=lambda one: one[:2], reverse=True):
        if all(compatible(fact, other) for other in held.facts):
            return held
    return None


def agreement(one: Fact, other: Fact, cosine: float, late: float) -> float:
    """How surely two facts make one claim: 0 when they do not."""
    if not compatible(one, other):
        return 0.0
    mine, theirs = _content(one), _content(other)
    shared = len(mine & theirs)
    overlap = shared / max(1, min(len(mine), len(theirs)))
    score = 0.35 * cosine + 0.4 * late + 0.25 * overlap
    if _same_claim(one, other) and score >= ALIKE:
        return 1.0 + score
    if one["attribute"] and other["attribute"] and one["attribute"] == other["attribute"]:
        score += 0.05
    named = _named(one) & _named(other)
    if score >= SURE or (score >= LIKELY and (named or not (_named(one) or _named(other))) and shared):
        return score
    return 0.0


def compatible(one: Fact, other: Fact) -> bool:
    """Whether nothing in two facts speaks against their being one claim."""
    if one["trust"] != other["trust"] or one["network"] != other["network"]:
        return False
    if _subject(one) and _subject(other) and _subject(one) != _subject(other):
        return False
    if _denies(one) != _denies(other):
        return False
    if _numbers(one) != _numbers(other):
        return False
    if not _days_meet(one, other):
        return False
    mine, theirs = _named(one), _named(other)
    # Each names something the other does not: two people, two places.
    if mine - theirs and theirs - mine:
        return False
    return not _other_value(one, other)


def _same_claim(one: Fact, other: Fact) -> bool:
    """The rules of extraction read the same statement in both."""
    if not (one["attribute"] and one["subject"] and one["attribute"] == other["attribute"]):
        return False
    if (one["occurred_start"] is None) != (other["occurred_start"] is None):
        return False  # an event is not the state that it begins
    value, theirs = folded(one["value"]), folded(other["value"])
    same_value = bool(value) and (value == theirs or value in theirs or theirs in value) if theirs else False
    return same_value and one["polarity"] == other["polarity"] and _subject(one) == _subject(other)


def _other_value(one: Fact, other: Fact) -> bool:
    kind, same = one["attribute"].partition(":")[0], other["attribute"].partition(":")[0]
    if not (kind and kind == same and one["value"] and other["value"]):
        return False
    value, theirs = set(_words(one["value"])), set(_words(other["value"]))
    return bool(value) and bool(theirs) and not value & theirs


def _subject(fact: Fact) -> str:
    """Whom a fact is about, as far as its words say: its subject, or the speaker where it says `I`."""
    subject = folded(fact["subject"]) if fact["subject"] else ""
    if subject in ("i", "we", "me", "") and _SELF.search(fact["text"]):
        return folded(fact["speaker"]) or subject or "i"
    return subject


def _denies(fact: Fact) -> bool:
    return fact["polarity"] < 0 or bool(_NOT.search(fact["text"]))


def _numbers(fact: Fact) -> frozenset[str]:
    return _numbers_in(fact["text"])


@lru_cache(maxsize=16384)
def _numbers_in(text: str) -> frozenset[str]:
    """Numbers of a text, those of its dates aside: days are compared as days."""
    return frozenset(number.strip(".,:") for number in _NUMBER.findall(_DATE.sub(" ", text)))


def _days_meet(one: Fact, other: Fact) -> bool:
    """Dated events overlap; a fact without a date may be any day's, and single days may be read one day apart."""
    start, begin = one["occurred_start"], other["occurred_start"]
    if start is None or begin is None:
        return True
    end = start if one["occurred_end"] is None else one["occurred_end"]
    stop = begin if other["occurred_end"] is None else other["occurred_end"]
    slack = _DAY if max(end - start, stop - begin) <= _DAY else 0
    return bool(start <= stop + slack and begin <= end + slack)


def _named(fact: Fact) -> frozenset[str]:
    """Names in a fact's own words: its entities, the speaker aside."""
    text = folded(fact["text"])
    speaker = folded(fact["speaker"])
    return frozenset(name for name in map(folded, fact["names"]) if name in text and name != speaker)


def _content(fact: Fact) -> frozenset[str]:
    return _words(fact["text"])


@lru_cache(maxsize=16384)
def _words(text: str) -> frozenset[str]:
    """Stems of the words of a text that say something, days aside."""
    return frozenset(term for term in analyse(_DATE.sub(" ", text)) if term not in _EMPTY)


_EMPTY = frozenset(
    analyse("the a an is are was were be been to of in on at by for with and or it that this i my me we")
)


def _informative(fact: Fact) -> tuple[int, int, int]:
    return len(_named(fact)), int(fact["occurred_start"] is not None), min(len(_words(fact["text"])), 40)


def contradict(one: str, other: str) -> bool:
    """Whether two statements cannot be one because of a number or a denial."""
    return _numbers_in(one) != _numbers_in(other) or bool(_NOT.search(one)) != bool(_NOT.search(other))


def sources_of(groups: Iterable[Group]) -> list[int]:
    return [fact["uid"] for one in groups for fact in one.facts]

"""A page without a model: recalled sentences with their dates and citations, under a line that says so. Pure.

A citation is the first eight digits of a memory's id in brackets, so it never changes when others come or go: an edit
can take one sentence out and leave all others as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recalld.actors.pages.blocks import Page, parse
from recalld.actors.recall.packing import estimate_tokens
from recalld.actors.reflect import questions
from recalld.actors.reflect.extractive import LEAST_FIT
from recalld.actors.reflect.weighing import weigh

NOTICE = "*Extractive page: sentences from memory, chosen by relevance. No language model wrote it.*"
SECTIONS = {"observation": "Observations", "world": "Facts", "experience": "Experiences"}
MOST = 25
"""Sentences on a page: what ranks behind them answers another question."""
BEHIND = 0.5
"""Share of the best fit below which a fact is about something else."""

_CITED = re.compile(r"\[([0-9a-f]{8})\](?!\()")
_DATED = re.compile(r"- \*\*(\d{4}-\d{2}-\d{2})")
Fact = Mapping[str, Any]


def mark(unit_id: str) -> str:
    """How a page cites a memory."""
    return unit_id.replace("-", "")[:8].lower()


def cited_marks(text: str) -> set[str]:
    """The citations in a piece of text."""
    return set(_CITED.findall(text))


def line(fact: Fact) -> str:
    """A memory as a list item: when, what, and which."""
    text = " ".join(str(fact["text"]).split())
    return f"- {_when(fact)}{text} [{mark(str(fact['id']))}]"


def _when(fact: Fact) -> str:
    first, last = _day(fact.get("occurred_start")), _day(fact.get("occurred_end"))
    if first:
        return f"**{first} to {last}** " if last and last != first else f"**{first}** "
    said = _day(fact.get("mentioned_at"))
    return f"**{said}** (said) " if said else ""


def _day(instant: Any) -> str:
    return str(instant)[:10] if instant else ""


def relevant(question: str, facts: Sequence[dict[str, Any]]) -> list[Fact]:
    """What of a recall's results is about the question, the best first.

    A recall brings what is least far away, however far that is; here a fact must fit as well as a reflect without a
    model demands of an answer, and not much worse than the best.
    """
    weighed = weigh(questions.read(question), facts)
    fits = [(one.for_asked * one.fit, one.memory) for one in weighed]
    best = max((fit for fit, _ in fits), default=0.0)
    kept = [pair for pair in fits if pair[0] >= max(LEAST_FIT, BEHIND * best)]
    return [fact for _, fact in sorted(kept, key=lambda pair: -pair[0])]


def usable(facts: Iterable[Fact]) -> tuple[list[Fact], int]:
    """Facts that may stand on a page, and how many may not because they read like instructions."""
    kept: list[Fact] = []
    left_out = 0
    for fact in facts:
        if fact.get("type") not in SECTIONS:
            continue
        if "instruction" in (fact.get("risks") or ()):
            left_out += 1
        else:
            kept.append(fact)
    return kept, left_out


def chosen(facts: Sequence[Fact], max_tokens: int, taken: int = 0, said: Iterable[str] = ()) -> list[Fact]:
    """The best of ranked facts that fit beside `taken` tokens; one that is too long is passed over, and so is one that
    only repeats another, or what is `said` already."""
    picked: list[Fact] = []
    heard = {_plain(text) for text in said}
    left = max_tokens - taken - estimate_tokens(NOTICE) - 12
    for fact in facts:
        if len(picked) >= MOST:
            break
        size, words = estimate_tokens(line(fact)), _plain(str(fact["text"]))
        if size <= left and words not in heard:
            heard.add(words)
            left -= size
            picked.append(fact)
    return picked


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def compose(facts: Sequence[Fact]) -> str:
    """A page of facts: a section a kind, each in order of time. Empty without facts."""
    if not facts:
        return ""
    parts = [NOTICE]
    for kind, title in SECTIONS.items():
        mine = [fact for fact in facts if fact["type"] == kind]
        if mine:
            parts.append(f"## {title}\n\n" + "\n".join(line(one) for one in sorted(mine, key=_order)))
    return "\n\n".join(parts) + "\n"


def _order(fact: Fact) -> tuple[str, str]:
    return str(fact.get("occurred_start") or fact.get("mentioned_at") or ""), str(fact["id"])


def without(text: str, gone: Iterable[str]) -> list[dict[str, Any]]:
    """Edits that take out what cites nothing but memories that are gone (ids)."""
    marks = {mark(one) for one in gone}
    edits: list[dict[str, Any]] = []
    for section in parse(text).sections:
        dead = [block for block in section.blocks if (found := cited_marks(block.raw)) and found <= marks]
        if dead and len(dead) == len(section.blocks) and section.heading:
            edits.append({"op": "remove_section", "section": section.id})
        else:
            edits += [{"op": "remove_block", "block": block.id} for block in dead]
    return edits


def additions(text: str, facts: Sequence[Fact], gone: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Edits that put new facts where a page composed anew would have them; one that is cited already is left alone.

    They are for the text as it is, with what cites memories that are `gone` in it still.
    """
    page = parse(text)
    known = cited_marks(text) - {mark(one) for one in gone}
    doomed = {one["section"] for one in without(text, gone) if one["op"] == "remove_section"}
    edits: list[dict[str, Any]] = []
    for kind, title in SECTIONS.items():
        mine = sorted((f for f in facts if f["type"] == kind and mark(str(f["id"])) not in known), key=_order)
        section = page.titled(title)
        if mine and (section is None or section.id in doomed):
            lines = "\n".join(line(one) for one in mine)
            edits.append({"op": "add_section", "heading": title, "level": 2, "text": lines})
        elif mine and section is not None:
            edits += [_placed(page, section.id, fact) for fact in mine]
    return edits


def _placed(page: Page, section_id: str, fact: Fact) -> dict[str, Any]:
    """An edit that puts a fact before the first that is later."""
    text = line(fact)
    day = _DATED.match(text)
    section = page.section(section_id)
    if day is not None and section is not None:
        for block in section.blocks:
            other = _DATED.match(block.raw)
            if other is not None and other[1] > day[1]:
                return {"op": "insert_block", "before": block.id, "text": text}
    return {"op": "append_block", "section": section_id, "text": text}

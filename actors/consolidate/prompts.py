"""What a language model is asked when facts are consolidated, and how its answer is read. Pure.

Facts and observations are named by short labels (`f1`, `o1`), so that an answer cannot name anything it was not shown.
All text of memories stands fenced as quotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from recalld.actors.llm.base import Message, system, user
from recalld.actors.trust.fence import RULE, fence

Fact = Mapping[str, Any]
TEXT_LENGTH = 2000
TOKEN_CHARACTERS = 4
MISSION = "Track anything notable about people, things, places, plans, preferences, states and events."

_TASK = (
    """\
You keep the observations of a long-term memory: short statements, each of which sums up what several facts say of one
thing. You are given new facts and the observations that stand near them, and say what is to change.

"""
    + RULE
    + """

How to work:
- One observation for one claim. A fact that says again, in whatever words, what an observation says is a source of that
  observation: update it, and keep its text unless the fact adds something.
- A fact that changes what an observation says updates it: what holds now first, and what held before as the past.
- A fact that nothing says yet makes a new observation. Facts of one claim among the new ones make one observation.
- Two observations that say the same: update one with the sources of both, and delete the other, naming what it is
  merged into.
- What is not worth keeping (greetings, questions, small talk) needs no action.

How to write an observation:
- Only what its sources say. Nothing added, no advice, no judgement.
- Keep names, numbers, days and denials: what somebody does not do or no longer does stays so.
- One or two sentences, in the third person, in the language of the facts."""
)

_LANGUAGE = "- Write every observation in this language: "

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "creates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "source_fact_ids": {"type": "array", "items": {"type": "string"}},
                    "reason": {"type": "string"},
                },
                "required": ["text", "source_fact_ids"],
            },
        },
        "updates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "observation_id": {"type": "string"},
                    "current_text": {"type": "string"},
                    "text": {"type": "string"},
                    "source_fact_ids": {"type": "array", "items": {"type": "string"}},
                    "reason": {"type": "string"},
                },
                "required": ["observation_id", "text", "source_fact_ids"],
            },
        },
        "deletes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "observation_id": {"type": "string"},
                    "merged_into": {"type": "string"},
                    "reason": {"type": "string"},
                },
                "required": ["observation_id"],
            },
        },
    },
    "required": ["creates", "updates", "deletes"],
}

TWINS = {
    "type": "object",
    "properties": {"merge": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["merge"],
}


@dataclass(slots=True)
class Action:
    """An observation to be written: new (`before` -1) or the next version of a stored one, with all its sources."""

    text: str
    sources: tuple[int, ...]
    before: int = -1


@dataclass(slots=True)
class Actions:
    writes: list[Action] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    dropped: int = 0
    """Actions that named what was not shown."""


def messages_for(
    facts: Sequence[Fact],
    context: Mapping[str, Any],
    settings: Mapping[str, Any],
    nonce: str,
) -> tuple[Message, ...]:
    """The messages of one call. `settings` are those of the scope; its mission outranks the built-in rules."""
    mission = (settings.get("observations_mission") or "").strip()
    language = (settings.get("llm_output_language") or "").strip()
    task = _TASK + (f"\n{_LANGUAGE}{language}" if language else "")
    parts = [f"What to track, above all other rules:\n{mission}" if mission else f"What to track: {MISSION}"]
    parts.append("New facts:")
    parts += [_fact(f"f{index}", one, nonce) for index, one in enumerate(facts, 1)]
    if context["observations"]:
        parts.append("Observations near them, each with facts it stands on:")
        parts += _observations(context, settings, nonce)
    else:
        parts.append("There are no observations near them yet.")
    return system(task), user("\n\n".join(parts))


def _fact(label: str, fact: Fact, nonce: str) -> str:
    return fence(
        fact["text"][:TEXT_LENGTH],
        nonce,
        id=label,
        kind="fact",
        speaker=fact["speaker"],
        date=_day(fact["occurred_start"] if fact["occurred_start"] is not None else fact["mentioned_at"]),
        trust="" if fact["trust"] == "normal" else fact["trust"],
    )


def _observations(context: Mapping[str, Any], settings: Mapping[str, Any], nonce: str) -> list[str]:
    left = settings.get("consolidation_source_facts_max_tokens", 4096)
    each = settings.get("consolidation_source_facts_max_tokens_per_observation", 256)
    sources = {one["uid"]: one for one in context["sources"]}
    parts = []
    for index, one in enumerate(context["observations"], 1):
        parts.append(fence(one["text"][:TEXT_LENGTH], nonce, id=f"o{index}", kind="observation"))
        spent = 0
        for uid in one["sources"]:
            fact = sources.get(uid)
            size = 0 if fact is None else len(fact["text"]) // TOKEN_CHARACTERS + 1
            if fact is None or (each >= 0 and spent + size > each) or (0 <= left < size):
                continue
            spent += size
            left = left - size if left >= 0 else left
            parts.append(_fact("", fact, nonce))
    return parts


def _day(instant: int | None) -> str:
    if instant is None:
        return ""
    try:
        return str(datetime.fromtimestamp(instant / 1e6, UTC).date())
    except (OverflowError, ValueError, OSError):
        return ""


def twins_for(one: str, other: str, nonce: str) -> tuple[Message, ...]:
    """Whether two observations say the same."""
    task = (
        "Two observations of a memory look alike. Answer whether they say the same of the same thing, so that one of"
        f" them is enough.\n\n{RULE}"
    )
    return system(task), user(f"{fence(one, nonce, id='o1')}\n\n{fence(other, nonce, id='o2')}")


def read_actions(parsed: Any, facts: Sequence[Fact], context: Mapping[str, Any]) -> Actions:
    """An answer as actions on uids. What names unknown facts or observations is dropped; ids may be ours or short."""
    by_label = {f"f{index}": one["uid"] for index, one in enumerate(facts, 1)}
    by_label |= {one["id"]: one["uid"] for one in facts}
    observed = {f"o{index}": one for index, one in enumerate(context["observations"], 1)}
    observed |= {one["id"]: one for one in context["observations"]}
    found = Actions()
    parsed = parsed if isinstance(parsed, Mapping) else {}
    merged: dict[int, list[int]] = {}
    for one in _items(parsed, "deletes"):
        gone = observed.get(str(one.get("observation_id")))
        if gone is None:
            found.dropped += 1
            continue
        into = observed.get(str(one.get("merged_into"))) if one.get("merged_into") else None
        if one.get("merged_into") and (into is None or into["uid"] == gone["uid"]):
            found.dropped += 1
            continue
        if gone["uid"] not in found.removed:
            found.removed.append(gone["uid"])
        if into is not None:
            merged.setdefault(into["uid"], []).extend(gone["sources"])
    for one in _items(parsed, "creates"):
        text, sources = _text(one), _sources(one, by_label)
        if not text or not sources:
            found.dropped += 1
            continue
        found.writes.append(Action(text, tuple(sources)))
    updated: dict[int, Action] = {}
    for one in _items(parsed, "updates"):
        target, text, sources = observed.get(str(one.get("observation_id"))), _text(one), _sources(one, by_label)
        if target is None or not text or target["uid"] in found.removed:
            found.dropped += 1
            continue
        held = updated.get(target["uid"])
        before = held.sources if held is not None else tuple(target["sources"])
        more = merged.pop(target["uid"], [])
        updated[target["uid"]] = Action(text, tuple(dict.fromkeys((*before, *sources, *more))), target["uid"])
    for uid, more in merged.items():
        target = next(one for one in observed.values() if one["uid"] == uid)
        if uid not in found.removed:
            every = tuple(dict.fromkeys((*target["sources"], *more)))
            updated[uid] = Action(target["text"], every, uid)
    found.writes += updated.values()
    return found


def _items(parsed: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = parsed.get(name)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(one: Mapping[str, Any]) -> str:
    value = one.get("text")
    return " ".join(value.split())[:TEXT_LENGTH] if isinstance(value, str) else ""


def _sources(one: Mapping[str, Any], by_label: Mapping[str, int]) -> list[int]:
    named = one.get("source_fact_ids")
    found = (by_label.get(str(name)) for name in named) if isinstance(named, list) else ()
    return list(dict.fromkeys(uid for uid in found if uid is not None))

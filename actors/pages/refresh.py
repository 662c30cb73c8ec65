"""One refresh of a mental model: from a plan of what is new and what is gone to the content that would be stored.

It reads and composes; it stores nothing, so a dry run is the same code. Who composes is a `Composer`: the extractive
one, or one that asks a model.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from recalld.actors.pages import extractive, outcomes
from recalld.actors.pages.blocks import Edited, apply_edits
from recalld.storage.errors import NoAnswer
from recalld.storage.isotime import iso

Plain = dict[str, Any]
FULL, DELTA = "full", "delta"
KINDS = ("world", "experience", "observation", "opinion")
NO_USAGE = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"), 0)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a page is composed from: its question under the settings of its trigger, at the clock's `now` (µs)."""

    tenant: str
    bank_id: str
    plan: Plain
    now: int
    operation_id: str | None = None

    @property
    def question(self) -> str:
        return str(self.plan["source_query"])

    @property
    def trigger(self) -> Plain:
        trigger: Plain = self.plan["trigger"]
        return trigger

    @property
    def max_tokens(self) -> int:
        return int(self.plan["max_tokens"])


@dataclass(slots=True)
class Composition:
    """What a composer made. `facts` are those it rests on, in the shape of a recall's result; `retrieved` counts all it
    was given, by type, and `read` are their ids. An empty text with `found` False: there was nothing to say."""

    text: str = ""
    found: bool = True
    facts: list[Plain] = field(default_factory=list)
    retrieved: Plain = field(default_factory=dict)
    read: tuple[str, ...] = ()
    mental_models: list[Plain] = field(default_factory=list)
    directives: list[Plain] = field(default_factory=list)
    structured_output: Plain | None = None
    structured_error: str | None = None
    tool_calls: list[Plain] = field(default_factory=list)
    llm_calls: list[Plain] = field(default_factory=list)
    usage: Plain = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Edits:
    """Edits a composer wants for a page, in the order they are to be applied, and what they took."""

    edits: list[Plain]
    used: list[Plain] = field(default_factory=list)
    llm_calls: list[Plain] = field(default_factory=list)
    usage: Plain = field(default_factory=dict)
    directives: list[Plain] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Composer(Protocol):
    """Who writes pages. Every method may raise what models and shards raise."""

    async def full(self, ask: Ask) -> Composition:
        """A page composed anew from all that is in scope."""
        ...

    async def news(self, ask: Ask) -> Composition:
        """What came since the last refresh and is about the question; `facts` best first, no text."""
        ...

    async def edits(self, ask: Ask, facts: Sequence[Plain], gone: Sequence[str]) -> Edits:
        """How the page is to change for new facts and for memories that are gone."""
        ...


@dataclass(slots=True)
class Refreshed:
    """What a refresh comes to. `text` None leaves the content; `error` is "" when it did not fail."""

    requested: str
    mode: str
    outcome: str
    fallback: str | None = None
    failure: str = ""
    error: str = ""
    text: str | None = None
    candidate: str = ""
    cited: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    based_on: Plain = field(default_factory=dict)
    response: Plain = field(default_factory=dict)
    operations: Plain | None = None
    retraction: Plain | None = None
    retrieved: Plain = field(default_factory=dict)
    used: Plain = field(default_factory=dict)
    tool_calls: list[Plain] = field(default_factory=list)
    llm_calls: list[Plain] = field(default_factory=list)
    usage: Plain = field(default_factory=lambda: dict(NO_USAGE))
    warnings: list[str] = field(default_factory=list)
    milliseconds: int = 0

    @property
    def writes(self) -> bool:
        return self.outcome == outcomes.WRITTEN


async def refresh(ask: Ask, composer: Composer, full: bool) -> Refreshed:
    """Carry a refresh out, short of storing it."""
    started = time.perf_counter()
    plan = ask.plan
    requested = FULL if full or ask.trigger.get("mode") != DELTA else DELTA
    fallback = None
    if requested == DELTA and not plan["content"]:
        fallback = outcomes.NO_BASELINE
    elif requested == DELTA and plan["content_query"] != plan["source_query"]:
        fallback = outcomes.QUERY_CHANGED
    if requested == DELTA and fallback is None:
        done = await _delta(ask, composer)
    else:
        done = await _full(ask, composer, requested, fallback)
    done.milliseconds = round((time.perf_counter() - started) * 1000)
    done.response = _response(ask, done)
    return done


async def _full(ask: Ask, composer: Composer, requested: str, fallback: str | None) -> Refreshed:
    plan = ask.plan
    try:
        made = await composer.full(ask)
    except NoAnswer as error:
        return Refreshed(requested, FULL, outcomes.EMPTY_CANDIDATE, fallback, failure="no_answer", error=error.message)
    done = Refreshed(requested, FULL, outcomes.WRITTEN, fallback, candidate=made.text)
    _take(done, made)
    done.retraction = _retraction(plan, applied=True)
    if not made.text.strip():
        if made.found:
            done.outcome, done.failure = outcomes.EMPTY_CANDIDATE, "empty_candidate"
            done.error = "The refresh gave no text; the content stays as it was."
            return done
        # Nothing was found: what the page said stays, save what rests on memories that are gone.
        left = [one for one in plan["cited"] if one not in plan["gone"]]
        edits = extractive.without(plan["content"], plan["gone"])
        text = apply_edits(plan["content"], edits).text if left or not plan["cited"] else ""
        done.based_on = _kept(plan, set(left))
        done.cited, done.read = tuple(left), tuple(left)
        done.text = text if text != plan["content"] else None
        done.outcome = outcomes.PRESERVED if done.text is None else outcomes.WRITTEN
        return done
    if ask.trigger.get("response_schema") and made.structured_error:
        done.outcome, done.failure = outcomes.STRUCTURED_OUTPUT, "structured_output_failed"
        done.error = "The text was written, but the object its schema asks for could not be made from it."
        return done
    done.based_on = based_on_of(made.facts, made.mental_models, made.directives)
    done.cited = tuple(dict.fromkeys(str(one["id"]) for one in made.facts))
    done.response = {"structured_output": made.structured_output}
    done.text = made.text
    if made.text == plan["content"]:
        done.text, done.outcome = None, outcomes.UNCHANGED
    return done


async def _delta(ask: Ask, composer: Composer) -> Refreshed:
    plan = ask.plan
    made = await composer.news(ask)
    renewed = [one for one in plan["renewed"] if all(one["id"] != fact["id"] for fact in made.facts)]
    facts = [*made.facts, *renewed]
    done = Refreshed(DELTA, DELTA, outcomes.PRESERVED, candidate="\n".join(extractive.line(one) for one in facts))
    _take(done, made)
    gone = set(plan["gone"])
    left = {one for one in plan["cited"] if one not in gone}
    done.based_on, done.cited = _kept(plan, left), tuple(one for one in plan["cited"] if one in left)
    if not facts and not gone:
        done.operations = {"applied": [], "skipped": []}
        return done
    wanted = await composer.edits(ask, facts, plan["gone"])
    _count(done, wanted.usage)
    done.llm_calls += wanted.llm_calls
    done.warnings += wanted.warnings
    edited: Edited = apply_edits(plan["content"], wanted.edits)
    done.operations = {"applied": list(edited.applied), "skipped": list(edited.skipped)}
    done.retraction = _retraction(plan, applied=True)
    if wanted.edits and not edited.applied:
        done.outcome, done.failure = outcomes.DELTA_NOT_APPLIED, "delta_ops_all_skipped"
        done.error = "None of the edits fits the page; the content stays as it was."
        if done.retraction is not None:
            done.retraction |= {"applied": False, "deferred_reason": "None of the edits fits the page."}
        return done
    done.text = edited.text if edited.text != plan["content"] else None
    done.outcome = outcomes.UNCHANGED if done.text is None else outcomes.WRITTEN
    new = [one for one in wanted.used if one["id"] not in left]
    done.used = _by_kind(wanted.used)
    accumulated = based_on_of(new, [], wanted.directives)
    for kind, held in done.based_on.items():
        accumulated[kind] = [*held, *accumulated.get(kind, [])] if kind != "directives" else wanted.directives
    done.based_on = accumulated
    done.cited = (*done.cited, *(str(one["id"]) for one in new))
    done.read = tuple(dict.fromkeys((*done.read, *done.cited)))
    return done


def _take(done: Refreshed, made: Composition) -> None:
    done.retrieved, done.used = made.retrieved, _by_kind(made.facts)
    done.tool_calls, done.warnings = made.tool_calls, [*done.warnings, *made.warnings]
    done.llm_calls = [*done.llm_calls, *made.llm_calls]
    done.read = tuple(dict.fromkeys((*made.read, *(str(one["id"]) for one in made.facts))))
    _count(done, made.usage)


def _count(done: Refreshed, usage: Plain) -> None:
    done.usage = {name: done.usage.get(name, 0) + int(usage.get(name) or 0) for name in NO_USAGE}


def _by_kind(facts: Sequence[Plain]) -> Plain:
    counts: Plain = {}
    for one in facts:
        counts[one["type"]] = counts.get(one["type"], 0) + 1
    return counts


def based_on_of(facts: Sequence[Plain], mental_models: list[Plain], directives: list[Plain]) -> Plain:
    """What content rests on, by kind of fact; every kind is there."""
    found: Plain = {kind: [as_source(one) for one in facts if one.get("type") == kind] for kind in KINDS}
    found["opinion"] = []
    return {**found, "directives": directives, "mental-models": mental_models}


def as_source(fact: Plain) -> Plain:
    """A fact as a reflect's `based_on` shows it."""
    names = ("id", "text", "type", "context", "occurred_start", "occurred_end", "mentioned_at", "document_id")
    shown = {name: fact.get(name) for name in (*names, "chunk_id", "metadata", "attachments")}
    return {**shown, "tags": list(fact.get("tags") or ())}


def _kept(plan: Plain, left: set[str]) -> Plain:
    """What the content rested on before, without memories that are gone."""
    before = plan["response"].get("based_on") or {}
    facts = {kind: [one for one in before.get(kind, []) if one.get("id") in left] for kind in KINDS}
    return {**facts, "directives": before.get("directives", []), "mental-models": before.get("mental-models", [])}


def _retraction(plan: Plain, *, applied: bool) -> Plain | None:
    if not plan["gone"]:
        return None
    before = plan["response"].get("based_on") or {}
    texts = {one.get("id"): one.get("text") for kind in KINDS for one in before.get(kind, [])}
    said = [str(texts[one]) for one in plan["gone"] if one in texts]
    return {"fact_ids": list(plan["gone"]), "fact_texts": said, "applied": applied, "deferred_reason": None}


def _response(ask: Ask, done: Refreshed) -> Plain:
    """What is kept under `reflect_response`."""
    text = ask.plan["content"] if done.text is None else done.text
    response: Plain = {
        "text": text,
        "outcome": done.outcome,
        "based_on": done.based_on,
        "mental_models": done.based_on.get("mental-models", []),
    }
    if ask.trigger.get("response_schema"):
        response["structured_output"] = done.response.get("structured_output")
    if ask.trigger.get("keep_trace"):
        response["trace"] = trace_of(done, ask.now, outputs=False)
    return response


def trace_of(done: Refreshed, now: int, *, outputs: bool) -> Plain:
    """How a refresh came to its result. The stored one counts what its tools gave, a dry run shows it."""
    calls = []
    for call in done.tool_calls:
        shown = {
            "tool": call["tool"],
            "reason": call.get("reason"),
            "input": call.get("input") or {},
            "output": call.get("output") if outputs else None,
            "updated_at": None,
            "result_count": call.get("result_count"),
            "duration_ms": int(call.get("duration_ms") or 0),
            "iteration": int(call.get("iteration") or 0),
        }
        calls.append(shown)
    return {
        "recorded_at": iso(now),
        "effective_mode": done.mode,
        "mode_fallback_reason": done.fallback,
        "outcome": done.outcome,
        "tool_calls": calls,
        "llm_calls": done.llm_calls,
        "delta_operations": done.operations,
        "retraction": done.retraction,
        "usage": done.usage,
        "duration_ms": done.milliseconds,
        "warnings": done.warnings,
    }


def preview(ask: Ask, done: Refreshed) -> Plain:
    """A refresh as a dry run shows it."""
    plan = ask.plan
    current = plan["content"]
    shown = current if done.text is None else done.text
    diff = difflib.unified_diff(current.splitlines(True), shown.splitlines(True), "current", "preview")
    excluded = [plan["id"], *(ask.trigger.get("exclude_mental_model_ids") or ())]
    return {
        "mental_model_id": plan["id"],
        "name": plan["name"],
        "requested_mode": done.requested,
        "effective_mode": done.mode,
        "mode_fallback_reason": done.fallback,
        "outcome": done.outcome,
        "would_persist": done.writes,
        "scope": {
            "tags": plan["tags"] or None,
            "tags_match": plan["tags_match"],
            "tag_groups": plan["tag_groups"],
            "fact_types": ask.trigger.get("fact_types"),
            "exclude_mental_models": bool(ask.trigger.get("exclude_mental_models")),
            "exclude_mental_model_ids": list(dict.fromkeys(excluded)),
        },
        "window": {
            "created_after": iso(plan["watermark"]) if done.mode == DELTA else None,
            "created_before": iso(ask.now),
            "watermark": iso(plan["watermark"]),
        },
        "facts": {"retrieved": done.retrieved, "used": done.used},
        "based_on": done.based_on,
        "current_content": current,
        "candidate_content": done.candidate,
        "preview_content": shown,
        "diff": "".join(line if line.endswith("\n") else f"{line}\n" for line in diff),
        "delta_operations": done.operations,
        "retraction": done.retraction,
        "trace": trace_of(done, ask.now, outputs=True),
        "usage": done.usage,
        "duration_ms": done.milliseconds,
        "warnings": done.warnings,
    }

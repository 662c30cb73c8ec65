"""`reflect(request, deps)`: the one way to a reflect, for the route and for refreshes of pages alike."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import structlog

from recalld.actors.llm.base import system, user
from recalld.actors.llm.counting import count_tokens
from recalld.actors.llm.shapes import Misfit
from recalld.actors.reflect import disposition as dispositions
from recalld.actors.reflect import prompts
from recalld.actors.reflect.calling import Caller
from recalld.actors.reflect.deps import Plain, ReflectDeps
from recalld.actors.reflect.explain import path
from recalld.actors.reflect.forming import FIELD, proposals
from recalld.actors.reflect.loop import Draft, Loop
from recalld.actors.reflect.request import EXTRACTIVE, MODEL, ReflectAnswer, ReflectRequest
from recalld.actors.reflect.tools import Toolbox
from recalld.actors.reflect.without_model import extract
from recalld.actors.trust.fence import fence
from recalld.storage.errors import (
    BadRequest,
    CapReached,
    DeadlineExceeded,
    ModelAnswerUnusable,
    ModelOverflow,
    ModelRefused,
    RecalldError,
)

__all__ = ["ReflectAnswer", "ReflectDeps", "ReflectRequest", "reflect"]

log = structlog.get_logger(__name__)

TOO_LONG = 1.15
"""An answer this much above its length target is written again."""
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|\n")


async def reflect(request: ReflectRequest, deps: ReflectDeps) -> ReflectAnswer:
    """The answer.

    Raises `DeadlineExceeded` past the wall limit, `CapReached`, `BudgetExhausted`, `NoAnswer`, `BadRequest` when a
    model is asked for and there is none, and what models and shards raise. Cancelled, it leaves nothing running.
    """
    if request.mode == MODEL and deps.llm is None:
        raise BadRequest("mode is 'model' and no language model is set; set llm.provider, or leave the mode away.")
    started = time.perf_counter()
    try:
        async with asyncio.timeout(deps.limits.wall_seconds):
            if deps.llm is None or request.mode == EXTRACTIVE:
                return await extract(request, deps, started)
            return await _with_model(request, deps, started)
    except TimeoutError:
        raise DeadlineExceeded(
            f"The reflect took longer than {deps.limits.wall_seconds:g} s (reflect.wall_timeout); try a lower budget."
        ) from None


async def _with_model(request: ReflectRequest, deps: ReflectDeps, started: float) -> ReflectAnswer:
    directives = await in_force(request, deps)
    words = dispositions.words(dispositions.Disposition.of(deps.config, request.bias_strength))
    box = Toolbox(request, deps, await _has_pages(request, deps))
    caller = Caller(request, deps)
    reserve = 1 if request.response_schema is None else 2
    if caller.left < reserve:
        raise CapReached(f"A reflect like this takes at least {reserve} model calls; max_llm_calls allows fewer.")
    forms = _forms_opinions(request, deps)
    loop = Loop(request, deps, box, caller, words, directives, reserve, FIELD if forms else None)
    draft = await loop.run()
    text = await _of_length(request, caller, draft, reserve - 1)
    if deps.watch is not None:
        deps.watch("text", {"text": text})
    structured, problem = await _structured(request, deps, caller, text)
    memories, observations, pages = cited(draft, box)
    opinions = await _opinions(request, deps, draft, box) if forms else []
    return ReflectAnswer(
        text=text,
        mode=MODEL,
        found=draft.found,
        memories=memories,
        observations=observations,
        mental_models=[{"id": one["id"], "text": one["text"], "context": one.get("name")} for one in pages],
        directives=[{key: one[key] for key in ("id", "name", "content")} for one in directives],
        opinions=opinions,
        structured_output=structured,
        structured_output_error=problem,
        usage=caller.usage,
        tool_calls=_trace(request, box),
        llm_calls=caller.calls,
        stats=stats(started, loop.rounds, box.calls, len(caller.calls), caller.usage, caller.cost),
        explain=path(request, box, words, directives, memories + observations) if request.include_explain else None,
    )


async def in_force(request: ReflectRequest, deps: ReflectDeps) -> list[Plain]:
    """The directives that hold for a request, highest priority first."""
    if deps.directives is None:
        return []
    return await deps.directives.in_force(
        request.tags, request.tags_match, request.tag_groups, request.apply_all_directives
    )


async def _has_pages(request: ReflectRequest, deps: ReflectDeps) -> bool:
    if deps.pages is None or request.exclude_mental_models:
        return False
    return await deps.pages.any(request, request.exclude_mental_model_ids)


def cited(draft: Draft, box: Toolbox) -> tuple[list[Plain], list[Plain], list[Plain]]:
    """(memories, observations, mental models) the answer rests on: what it named and a tool gave.

    A model that named none of a kind rests on all of that kind, unless it found nothing.
    """
    evidence = box.evidence
    out: list[list[Plain]] = []
    for kept in (evidence.memories, evidence.observations):
        named = [kept[one] for one in draft.named if one in kept]
        out.append(named or (list(kept.values()) if draft.found and not draft.named else []))
    return out[0], out[1], [evidence.pages[one] for one in draft.named if one in evidence.pages]


async def _of_length(request: ReflectRequest, caller: Caller, draft: Draft, kept_back: int) -> str:
    """The text, written again once when it is too long; one that was cut off ends with its last whole sentence."""
    text = draft.text
    long = request.max_tokens > 0 and count_tokens(text) > TOO_LONG * request.max_tokens
    if (long or draft.cut) and caller.left > kept_back:
        asked = prompts.SHORTER.format(tokens=request.max_tokens or "few") + "\n\n" + text
        try:
            again = await caller.ask("final_rewrite", (user(asked),))
        except (ModelAnswerUnusable, ModelOverflow, ModelRefused, CapReached):
            again = None
        if again is not None and again.finish_reason != "length" and count_tokens(again.text) < count_tokens(text):
            return again.text
    return _whole_sentences(text) if draft.cut else text


def _whole_sentences(text: str) -> str:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return text[: ends[-1]].rstrip() if ends else text


async def _structured(
    request: ReflectRequest, deps: ReflectDeps, caller: Caller, text: str
) -> tuple[dict[str, Any] | None, str | None]:
    """(the answer in the shape asked for, None), or (None, why not)."""
    if request.response_schema is None:
        return None, None
    messages = (system(prompts.STRUCTURED), user(fence(text, deps.nonce, kind="answer")))
    try:
        answer = await caller.ask("structured", messages, schema=request.response_schema, schema_name="structured")
    except (RecalldError, Misfit) as error:
        return None, getattr(error, "message", str(error))
    if not isinstance(answer.parsed, dict):
        return None, "The language model gave no object."
    return answer.parsed, None


def _forms_opinions(request: ReflectRequest, deps: ReflectDeps) -> bool:
    wanted = request.form_opinions
    wanted = deps.config.get("reflect_form_opinions") is True if wanted is None else wanted
    return wanted and deps.form_opinions is not None


async def _opinions(request: ReflectRequest, deps: ReflectDeps, draft: Draft, box: Toolbox) -> list[Plain]:
    """The opinions formed or moved. What cannot be stored costs no answer that was paid for."""
    proposed = proposals(draft.opinions, box.evidence, request.query)
    if not proposed or deps.form_opinions is None:
        return []
    try:
        return await deps.form_opinions(proposed)
    except RecalldError as error:
        log.warning("the opinions of a reflect could not be stored", error=error.code)
        return []


def _trace(request: ReflectRequest, box: Toolbox) -> list[Plain]:
    if not request.include_tool_calls:
        return []
    return [{**one, "output": one["output"] if request.tool_outputs else None} for one in box.calls]


def stats(
    started: float, rounds: int, tool_calls: list[Plain], calls: int, usage: dict[str, Any], cost: float | None
) -> Plain:
    """What an answer took."""
    by_name: dict[str, int] = {}
    for one in tool_calls:
        by_name[one["tool"]] = by_name.get(one["tool"], 0) + 1
    return {
        "rounds": rounds,
        "tool_calls": by_name,
        "llm_calls": calls,
        "seconds": round(time.perf_counter() - started, 3),
        "tokens": usage["total_tokens"],
        "cost": cost,
    }

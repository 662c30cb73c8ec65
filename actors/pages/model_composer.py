"""The composer with a model: a page is what a reflect on its question gives, and edits are asked for one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from recalld.actors.pages.composer import ExtractiveComposer
from recalld.actors.pages.editor import PURPOSE, EditPage
from recalld.actors.pages.refresh import KINDS, Ask, Composition, Edits, Plain
from recalld.actors.reflect.request import ReflectAnswer, ReflectRequest

Reflect = Callable[[ReflectRequest], Awaitable[ReflectAnswer]]
Edit = Callable[[EditPage], Awaitable[Plain]]


def request_of(ask: Ask, reflect_id: str) -> ReflectRequest:
    """The reflect that a refresh in full is: the question under the trigger's settings, never citing the model itself.

    The bank's defaults for reflects do not reach it.
    """
    plan, trigger = ask.plan, ask.trigger
    excluded = (plan["id"], *(trigger.get("exclude_mental_model_ids") or ()))
    return ReflectRequest(
        ask.tenant,
        ask.bank_id,
        ask.question,
        ask.now,
        id=reflect_id,
        budget=trigger.get("budget") or "mid",
        max_tokens=ask.max_tokens,
        response_schema=trigger.get("response_schema"),
        tags=tuple(plan["tags"]),
        tags_match=plan["tags_match"],
        tag_groups=plan["tag_groups"],
        fact_types=tuple(plan["fact_types"]),
        exclude_mental_models=bool(trigger.get("exclude_mental_models")),
        exclude_mental_model_ids=tuple(dict.fromkeys(excluded)),
        include_facts=True,
        include_tool_calls=True,
        include_chunks=trigger.get("include_chunks"),
        recall_max_tokens=trigger.get("recall_max_tokens"),
        recall_chunks_max_tokens=trigger.get("recall_chunks_max_tokens"),
        search_observations_max_tokens=trigger.get("reflect_search_observations_max_tokens"),
        search_observations_include_entities=trigger.get("reflect_search_observations_include_entities"),
        form_opinions=False,
        operation=PURPOSE,
        operation_id=ask.operation_id,
    )


class ModelComposer:
    """Writes pages with a model where there is one (`calls`), without one as the extractive composer does."""

    def __init__(
        self,
        without: ExtractiveComposer,
        calls: Callable[[], bool],
        reflect: Reflect,
        edit: Edit,
        defaults: Callable[[], Plain],
        new_id: Callable[[], str],
    ) -> None:
        self._without = without
        self._calls = calls
        self._reflect = reflect
        self._edit = edit
        self._defaults = defaults
        self._new_id = new_id

    async def full(self, ask: Ask) -> Composition:
        if not self._calls():
            return await self._without.full(ask)
        if not ask.plan["in_scope"]:
            return Composition(found=False)
        answer = await self._reflect(request_of(ask, self._new_id()))
        facts = [one for one in (*answer.memories, *answer.observations) if one.get("type") in KINDS[:3]]
        retrieved = _shown(answer.tool_calls)
        made = Composition(
            text=answer.text if answer.found else "",
            found=answer.found,
            facts=facts,
            retrieved=_by_kind(retrieved),
            read=tuple(dict.fromkeys(str(one["id"]) for one in retrieved)),
            mental_models=answer.mental_models,
            directives=answer.directives,
            structured_output=answer.structured_output,
            structured_error=answer.structured_output_error,
            tool_calls=[_call(one) for one in answer.tool_calls],
            llm_calls=answer.llm_calls,
            usage=answer.usage,
        )
        if answer.found and not facts and not answer.mental_models:
            made.warnings.append("The answer names no memory that it rests on.")
        return made

    async def news(self, ask: Ask) -> Composition:
        return await self._without.news(ask)

    async def edits(self, ask: Ask, facts: Sequence[Plain], gone: Sequence[str]) -> Edits:
        if not self._calls():
            return await self._without.edits(ask, facts, gone)
        before = ask.plan["response"].get("based_on") or {}
        texts = {str(one.get("id")): str(one.get("text")) for kind in KINDS for one in before.get(kind, [])}
        job = EditPage(
            request_of(ask, self._new_id()),
            self._defaults(),
            ask.plan["content"],
            tuple(facts),
            tuple(texts[one] for one in gone if one in texts),
            tuple(ask.plan["directives"]),
        )
        found = await self._edit(job)
        named = set(found["memory_ids"])
        used = [one for one in facts if one["id"] in named] or (list(facts) if found["edits"] else [])
        return Edits(found["edits"], used, found["llm_calls"], found["usage"], list(ask.plan["directives"]))


def _call(call: Plain) -> Plain:
    given = dict(call.get("input") or {})
    return {**call, "reason": given.pop("reason", None), "input": given, "result_count": len(_shown([call]))}


def _shown(calls: Sequence[Plain]) -> list[Plain]:
    """The memories that tools gave, each once."""
    found: dict[str, Plain] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") in KINDS and "id" in value and "text" in value:
                found.setdefault(str(value["id"]), value)
            for one in value.values():
                walk(one)
        elif isinstance(value, list | tuple):
            for one in value:
                walk(one)

    for call in calls:
        walk(call.get("output"))
    return list(found.values())


def _by_kind(facts: Sequence[Plain]) -> Plain:
    counts: Plain = {}
    for one in facts:
        counts[one["type"]] = counts.get(one["type"], 0) + 1
    return counts

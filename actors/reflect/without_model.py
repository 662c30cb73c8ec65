"""A reflect without a language model: one recall, and an answer put together from what it gives."""

from __future__ import annotations

import time

from recalld.actors.reflect.deps import Plain, ReflectDeps, Search
from recalld.actors.reflect.extractive import Extract, answer
from recalld.actors.reflect.request import EXTRACTIVE, NO_USAGE, ReflectAnswer, ReflectRequest
from recalld.storage.records import NETWORK_NAMES, OBSERVATION, OPINION

RECALL_TOKENS = 2048
NO_MODEL = "No language model is set, and an extractive answer has no other shape than its text."
_OBSERVATION, _OPINION = NETWORK_NAMES[OBSERVATION], NETWORK_NAMES[OPINION]
_USUAL = tuple(name for name in NETWORK_NAMES if name != _OPINION)


async def extract(request: ReflectRequest, deps: ReflectDeps, started: float) -> ReflectAnswer:
    """The extractive answer. Directives and disposition have no say in it: nothing in it is worded here but frames."""
    query = request.query if not request.context.strip() else f"{request.query}\n{request.context.strip()}"
    search = Search(
        query=query,
        types=request.fact_types or _USUAL,
        max_tokens=request.recall_max_tokens or RECALL_TOKENS,
        budget=request.budget,
        tags=request.tags,
        tags_match=request.tags_match,
        tag_groups=request.tag_groups,
        now=request.asked_at,
        utc_offset=request.utc_offset,
    )
    began = time.perf_counter()
    results = (await deps.memory.recall(search))["results"]
    call: Plain = {
        "tool": "recall",
        "input": {"query": query, "max_tokens": search.max_tokens},
        "output": {"memories": results} if request.tool_outputs else None,
        "duration_ms": round((time.perf_counter() - began) * 1000),
        "iteration": 1,
    }
    if deps.watch is not None:
        deps.watch("tool", {key: value for key, value in call.items() if key != "output"})
    found = answer(
        request.query,
        results,
        asked_at=request.asked_at,
        utc_offset=request.utc_offset,
        max_tokens=request.max_tokens,
    )
    if deps.watch is not None:
        deps.watch("text", {"text": found.text})
    by_id = {one["id"]: one for one in results}
    used = [by_id[one] for one in found.cited]
    return ReflectAnswer(
        text=found.text,
        mode=EXTRACTIVE,
        found=found.found,
        certainty=found.certainty,
        memories=[one for one in used if one["type"] != _OBSERVATION],
        observations=[one for one in used if one["type"] == _OBSERVATION],
        structured_output_error=None if request.response_schema is None else NO_MODEL,
        usage=dict(NO_USAGE),
        tool_calls=[call] if request.include_tool_calls else [],
        stats={
            "rounds": 1,
            "tool_calls": {"recall": 1},
            "llm_calls": 0,
            "seconds": round(time.perf_counter() - started, 3),
            "tokens": 0,
            "cost": 0.0,
        },
        explain=_path(request, query, found, results) if request.include_explain else None,
    )


def _path(request: ReflectRequest, query: str, found: Extract, results: list[Plain]) -> Plain:
    ids = [one["id"] for one in results]
    opinions = [one for one in results if one["type"] == _OPINION]
    return {
        "question": request.query,
        "kind": found.kind,
        "certainty": found.certainty,
        "searches": [
            {
                "tool": "recall",
                "query": query,
                "reason": f"a question of the kind {found.kind}",
                "candidates": ids,
                "used": list(found.cited),
                "left_out": [one for one in ids if one not in found.cited],
                "error": None,
            }
        ],
        "signals": found.signals,
        "beliefs": [
            {"id": one["id"], "text": one["text"], "confidence": one["confidence"], "used": one["id"] in found.cited}
            for one in opinions
        ],
        "disposition": [],
        "directives": [],
    }

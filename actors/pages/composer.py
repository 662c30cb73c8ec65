"""The composer without a model: recalled sentences with dates and citations."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from recalld.actors.pages import extractive
from recalld.actors.pages.blocks import apply_edits
from recalld.actors.pages.refresh import KINDS, Ask, Composition, Edits
from recalld.actors.recall.packing import estimate_tokens

Plain = dict[str, Any]
Recall = Callable[[Ask, int], Awaitable[list[Plain]]]
"""Memories in the scope of a page that are about its question, best first; the number leaves out smaller uids."""


class ExtractiveComposer:
    """Composes pages from what `recall` finds."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    async def _found(self, ask: Ask, first_uid: int) -> tuple[Composition, list[Plain]]:
        started = time.perf_counter()
        results = await self._recall(ask, first_uid)
        usable, left_out = extractive.usable(extractive.relevant(ask.question, results))
        counts: Plain = {}
        for one in results:
            counts[one["type"]] = counts.get(one["type"], 0) + 1
        warnings = []
        if left_out:
            warnings.append(f"{left_out} memories that read like instructions were left out.")
        call = {
            "tool": "recall",
            "reason": "what the bank holds on the question",
            "input": {"query": ask.question},
            "output": {"results": results},
            "result_count": len(results),
            "duration_ms": round((time.perf_counter() - started) * 1000),
            "iteration": 1,
        }
        made = Composition(found=bool(usable), retrieved=counts, tool_calls=[call], warnings=warnings)
        return made, [dict(one) for one in usable]

    async def full(self, ask: Ask) -> Composition:
        made, facts = await self._found(ask, 0)
        made.facts = [dict(one) for one in extractive.chosen(facts, ask.max_tokens)]
        made.text = extractive.compose(made.facts)
        if ask.trigger.get("response_schema"):
            made.warnings.append("Without a language model there is no structured output.")
        if facts and not made.text:
            made.found = False
            made.warnings.append("No memory is short enough for max_tokens.")
        return made

    async def news(self, ask: Ask) -> Composition:
        made, facts = await self._found(ask, ask.plan["first_uid"])
        made.facts = facts[: extractive.MOST]
        return made

    async def edits(self, ask: Ask, facts: Sequence[Plain], gone: Sequence[str]) -> Edits:
        content = ask.plan["content"]
        removed = extractive.without(content, gone)
        left = apply_edits(content, removed).text
        before = ask.plan["response"].get("based_on") or {}
        lost = set(gone)
        said = [one["text"] for kind in KINDS for one in before.get(kind, []) if one["id"] not in lost]
        used = extractive.chosen(facts, ask.max_tokens, estimate_tokens(left), said)
        # Ids of parts are those of the page as it stands, so the places of additions are looked up before the removals.
        added = extractive.additions(content, used, gone)
        full = estimate_tokens(left) + sum(estimate_tokens(extractive.line(one)) for one in facts) > ask.max_tokens
        warnings = ["The page is full; a full refresh picks anew."] if full and len(used) < len(facts) else []
        return Edits([*added, *removed], [dict(one) for one in used], warnings=warnings)

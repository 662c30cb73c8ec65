"""The model calls of one reflect: counted, within the request's own caps, in the ledger like all others."""

from __future__ import annotations

import time
from typing import Any

from recalld.actors.ledger import LIKELY_OUTPUT, Purpose
from recalld.actors.llm.base import REFLECT, Llm, LlmAnswer, LlmRequest, Message, Schema, Tool
from recalld.actors.llm.counting import count_call
from recalld.actors.reflect.deps import Plain, ReflectDeps
from recalld.actors.reflect.request import NO_USAGE, ReflectRequest
from recalld.actors.spending import Caps
from recalld.storage.errors import CapReached
from recalld.storage.ledger import BILLION

LEAST_OUTPUT = 2000
"""Tokens that every call may give back at least: a model that thinks first must come to its answer, one that rambles
must come to an end."""


class Caller:
    """Asks the model of `deps`. `calls` is the trace; `purpose` sums what they took."""

    def __init__(self, request: ReflectRequest, deps: ReflectDeps) -> None:
        assert deps.llm is not None
        self._request = request
        self._ledger = deps.ledger
        self.purpose = Purpose(
            request.bank, request.operation, Caps.of_bank(deps.config), operation_id=request.operation_id
        )
        self._llm: Llm = deps.llm if deps.ledger is None else deps.ledger.metered(deps.llm, self.purpose)
        self._most_tokens = max(LEAST_OUTPUT, 2 * request.max_tokens) if request.max_tokens else None
        self._usage: dict[str, Any] = dict(NO_USAGE)
        self.calls: list[Plain] = []

    @property
    def left(self) -> int:
        """How many calls the request still allows; a large number without a cap."""
        most = self._request.max_llm_calls
        return 1 << 30 if most is None else most - len(self.calls)

    @property
    def usage(self) -> dict[str, Any]:
        """Tokens of all calls, the failed ones included."""
        return {**self._usage, **self.purpose.usage}

    @property
    def cost(self) -> float | None:
        """Money, in the currency of the prices; None where a price is not known."""
        if self._ledger is None or self.purpose.cost is None:
            return None
        return self.purpose.cost / BILLION

    async def ask(
        self,
        scope: str,
        messages: tuple[Message, ...],
        *,
        tools: tuple[Tool, ...] = (),
        tool_choice: str = "auto",
        schema: Schema | None = None,
        schema_name: str = "answer",
    ) -> LlmAnswer:
        """One call. Raises `CapReached`, `BudgetExhausted`, and what a model raises."""
        self._check(messages, schema, tools)
        self.purpose.scope = scope
        started = time.perf_counter()
        try:
            answer = await self._llm.complete(
                LlmRequest(
                    operation=REFLECT,
                    messages=messages,
                    bank=self._request.bank,
                    schema=schema,
                    schema_name=schema_name,
                    max_tokens=self._most_tokens,
                    tools=tools,
                    tool_choice=tool_choice,
                )
            )
        finally:
            self.calls.append({"scope": scope, "duration_ms": round((time.perf_counter() - started) * 1000)})
        if self._ledger is None:
            for name, count in (("input_tokens", answer.usage.input), ("output_tokens", answer.usage.output)):
                self._usage[name] += count
                self._usage["total_tokens"] += count
        return answer

    def _check(self, messages: tuple[Message, ...], schema: Schema | None, tools: tuple[Tool, ...]) -> None:
        if self.left <= 0:
            raise CapReached("The reflect used up its max_llm_calls before it had an answer; allow it more.")
        most = self._request.max_cost
        if most is None or self._ledger is None:
            return
        price = self._ledger.prices.of(f"{self._llm.provider}/{self._llm.model}")
        if price is None or self.purpose.cost is None:
            raise CapReached("max_cost is set and the price of the model is not known; add it to budget.prices.")
        next_call = price.of(count_call(messages, schema, tools), LIKELY_OUTPUT)
        if self.purpose.cost + next_call > most * BILLION:
            raise CapReached("The reflect's next model call would pass its max_cost; allow it more.")

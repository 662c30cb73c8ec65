"""Every model call through one door: it is allowed by the budget, made, priced, and written into the bank's ledger.

`MeteredLlm` is an `Llm` like any other. What its calls took is stored before its answer is handed on, so that a crash
afterwards forgets none of it; where the store cannot take it, the log says so and today's budget counts it still.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import structlog

from recalld.actors.directory import Shards
from recalld.actors.llm.base import CallRecord, Llm, LlmAnswer, LlmRequest
from recalld.actors.llm.counting import count_call
from recalld.actors.messages import Read, RecordCalls
from recalld.actors.spending import ALL, Bank, Caps, PriceTable, Spending
from recalld.storage import codec
from recalld.storage.errors import BankNotFound, RecalldError
from recalld.storage.ledger import DAY_US, OK, DayTotals, LedgerCall

log = structlog.get_logger(__name__)

LIKELY_OUTPUT = 400
"""Tokens of an answer that a call reserves of its budget."""
WRITE_SECONDS = 30.0

_attempts: ContextVar[list[CallRecord] | None] = ContextVar("attempts", default=None)


def observe(record: CallRecord) -> None:
    """What model clients report each attempt to; it goes to the call that is under way in this task."""
    held = _attempts.get()
    if held is not None:
        held.append(record)


@dataclass(slots=True)
class Purpose:
    """What calls are made for. `usage` sums their tokens as the wire reports them, `cost` their price in billionths;
    that is None once one of them has no known price."""

    bank: Bank
    operation: str
    caps: Caps = field(default_factory=Caps)
    operation_id: str | None = None
    document_id: str | None = None
    scope: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    cost: int | None = 0

    def count(self, calls: list[LedgerCall]) -> None:
        if not self.usage:
            names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens")
            self.usage.update(dict.fromkeys(names, 0))
        for call in calls:
            sent = call.counted_input if call.input_tokens is None else call.input_tokens
            back = call.counted_output if call.output_tokens is None else call.output_tokens
            self.usage["input_tokens"] += sent
            self.usage["output_tokens"] += back
            self.usage["total_tokens"] += sent + back
            self.usage["cached_tokens"] += call.cached_tokens or 0
            self.cost = None if self.cost is None or call.cost is None else self.cost + call.cost


class Ledger:
    """Writes calls and watches the budgets of a process. `keep_us` is how long calls are kept one by one."""

    def __init__(
        self,
        shards: Shards,
        prices: PriceTable,
        caps: Caps,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        keep_us: int = DAY_US,
    ) -> None:
        self._shards = shards
        self.prices = prices
        self.spending = Spending(caps, self._load, clock)
        self.clock = clock
        self._new_id = new_id
        self._keep_us = keep_us

    async def _load(self, bank: Bank, day: int) -> DayTotals:
        if bank != ALL:
            read = Read("day_sums", *bank, params={"day": day})
            return codec.decode(DayTotals, codec.pack(await self._shards.call(*bank, read)))
        total = DayTotals(day)
        for found in await self._shards.call_all(Read("day_sums", "", params={"day": day})):
            for one in found:
                total = total.joined(codec.decode(DayTotals, codec.pack(one)))
        return total

    def metered(self, llm: Llm, purpose: Purpose) -> MeteredLlm:
        return MeteredLlm(llm, self, purpose)

    async def call(self, llm: Llm, request: LlmRequest, purpose: Purpose) -> LlmAnswer:
        """`llm.complete(request)` within the budget and in the ledger. Raises `BudgetExhausted` before any call."""
        name = f"{llm.provider}/{llm.model}"
        price = self.prices.of(name)
        tokens = count_call(request.messages, request.schema, request.tools)
        held = await self.spending.reserve(purpose.bank, purpose.caps, tokens, price, LIKELY_OUTPUT)
        attempts: list[CallRecord] = []
        token = _attempts.set(attempts)
        try:
            return await llm.complete(request)
        finally:
            _attempts.reset(token)
            calls = [self._row(one, purpose) for one in attempts]
            self.spending.settle(held, calls)
            purpose.count(calls)
            await self.record(purpose, calls)

    def _row(self, one: CallRecord, purpose: Purpose) -> LedgerCall:
        usage, price = one.usage, self.prices.of(f"{one.provider}/{one.model}")
        reported = usage.reported
        sent, back = (usage.input, usage.output) if reported else (usage.own_input, usage.own_output)
        answered = one.outcome == OK or reported
        milliseconds = round(one.milliseconds)
        return LedgerCall(
            id=self._new_id(),
            started_at=self.clock() - milliseconds * 1000,
            milliseconds=milliseconds,
            operation=purpose.operation,
            provider=one.provider,
            model=one.model,
            outcome=one.outcome,
            # What a provider wrote may repeat the text it was sent, which stands in the bank alone.
            error="" if one.outcome == OK else one.outcome,
            operation_id=purpose.operation_id,
            document_id=purpose.document_id,
            scope=purpose.scope,
            input_tokens=usage.input if reported else None if answered else 0,
            output_tokens=usage.output if reported else None if answered else 0,
            cached_tokens=usage.cached if reported else None,
            counted_input=usage.own_input,
            counted_output=usage.own_output,
            # A call that brought no answer is not billed; where one came without figures, our own count is priced.
            cost=None if price is None else price.of(sent, back, usage.cached) if answered else 0,
        )

    async def record(
        self, purpose: Purpose, calls: list[LedgerCall], readings: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        """Store calls, and what was read for an operation. A store that cannot take them costs no answer."""
        if not calls and not (readings and purpose.operation_id):
            return
        request = RecordCalls(
            *purpose.bank, tuple(calls), self.clock() - self._keep_us, purpose.operation_id, tuple(readings)
        )
        try:
            await self._shards.call(*purpose.bank, request, WRITE_SECONDS)
        except BankNotFound:
            log.info("the bank of model calls is gone; they are in no ledger", calls=len(calls))
        except RecalldError as error:
            log.warning("model calls could not be written into the ledger", calls=len(calls), error=error.code)


class MeteredLlm:
    """An `Llm` whose calls are budgeted and recorded for one purpose."""

    def __init__(self, llm: Llm, ledger: Ledger, purpose: Purpose) -> None:
        self._llm = llm
        self._ledger = ledger
        self.purpose = purpose

    @property
    def provider(self) -> str:
        return self._llm.provider

    @property
    def model(self) -> str:
        return self._llm.model

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        return await self._ledger.call(self._llm, request, self.purpose)

    async def close(self) -> None:
        return None

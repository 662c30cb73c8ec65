"""What model calls may cost: prices, caps a day, and the count of what today's calls used of them.

Caps hold for one bank and for the whole daemon. A call reserves what it is likely to use before it starts, so that
calls under way together do not overrun a cap; what it really used replaces the reservation. Days are those of UTC.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recalld.storage.errors import BadRequest, BudgetExhausted
from recalld.storage.ledger import BILLION, DAY_US, DayTotals, LedgerCall, day_of

Bank = tuple[str, str]
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Billionths of the currency a token."""

    input: float
    output: float
    cached: float

    def of(self, sent: int, back: int, cached: int = 0) -> int:
        """What a call costs, in billionths; `cached` tokens are part of `sent`."""
        cached = min(cached, sent)
        return round((sent - cached) * self.input + cached * self.cached + back * self.output)


class PriceTable:
    """Prices by model name; a name may hold `*`. The first entry that fits counts."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Entries are `model=input/output` or `model=input/output/cached`, in the currency a million tokens."""
        self._rows: list[tuple[str, Price]] = []
        for entry in entries:
            name, separator, figures = entry.rpartition("=")
            try:
                parts = [float(part) for part in figures.split("/")]
            except ValueError:
                parts = []
            if not separator or not name.strip() or len(parts) not in (2, 3) or not all(0 <= p < 1e9 for p in parts):
                raise BadRequest(
                    f"'{entry}' is no price: write model=input/output or model=input/output/cached, a million tokens,"
                    " as in gpt-4o-mini=0.15/0.60/0.075."
                )
            # A price a million in the currency is a thousand times as many billionths a token.
            a_token = [1000 * part for part in parts]
            self._rows.append(
                (name.strip(), Price(a_token[0], a_token[1], a_token[-1] if len(parts) == 3 else a_token[0]))
            )

    def of(self, model: str) -> Price | None:
        """The price of a model, with or without its provider in front; None when nobody gave it."""
        names = (model, model.partition("/")[2] or model)
        for pattern, price in self._rows:
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                return price
        return None


@dataclass(frozen=True, slots=True)
class Caps:
    """Most calls, tokens and money (in the currency) a day; None is no cap, 0 stops everything."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def of_bank(cls, config: Mapping[str, Any]) -> Caps:
        """The caps among a bank's settings in force."""
        return cls(
            config.get("budget_bank_calls_per_day"),
            config.get("budget_bank_tokens_per_day"),
            config.get("budget_bank_cost_per_day"),
        )


@dataclass(slots=True)
class _Used:
    """What a bank, or all of them, used of a day, reservations included."""

    calls: int
    tokens: int
    cost: int

    def add(self, calls: int, tokens: int, cost: int) -> None:
        self.calls += calls
        self.tokens += tokens
        self.cost += cost


@dataclass(frozen=True, slots=True)
class Reservation:
    """One call that may be made; `cost` is in billionths."""

    day: int
    bank: Bank
    tokens: int
    cost: int


ALL: Bank = ("", "")
Load = Callable[[Bank, int], Awaitable[DayTotals]]
"""The sums of a bank, or of `ALL`, on a day, from the store."""


class Spending:
    """Today's use of the caps. The store is asked once for each bank and day; after that this process counts."""

    def __init__(self, caps: Caps, load: Load, clock: Callable[[], int]) -> None:
        self._caps = caps
        self._load = load
        self._clock = clock
        self._day = -1
        self._used: dict[Bank, _Used] = {}

    async def reserve(self, bank: Bank, caps: Caps, tokens: int, price: Price | None, output: int = 0) -> Reservation:
        """Leave to make a call of about `tokens` in and `output` out. Raises `BudgetExhausted`."""
        if (caps.cost is not None or self._caps.cost is not None) and price is None:
            raise BudgetExhausted(
                "A cap on money is set and the price of the model is not known, so the cap cannot be kept. Add the"
                " model to budget.prices, or remove the cap.",
                self._until_tomorrow(),
            )
        cost = 0 if price is None else price.of(tokens, output)
        mine, everyone = await self._of(bank), await self._of(ALL)
        for used, limit, name in ((mine, caps, "budget_bank"), (everyone, self._caps, "budget")):
            self._check(used, limit, tokens + output, cost, name)
        for used in (mine, everyone):
            used.add(1, tokens + output, cost)
        return Reservation(self._day, bank, tokens + output, cost)

    def settle(self, held: Reservation, calls: Iterable[LedgerCall]) -> None:
        """The call ended: what it used, in as many attempts as it took, stands in place of what was reserved."""
        if held.day != self._day:
            return
        made = list(calls)
        for bank in (held.bank, ALL):
            used = self._used.get(bank)
            if used is not None:
                used.add(
                    len(made) - 1,
                    sum(call.tokens for call in made) - held.tokens,
                    sum(call.cost or 0 for call in made) - held.cost,
                )

    async def _of(self, bank: Bank) -> _Used:
        today = day_of(self._clock())
        if today != self._day:
            self._day, self._used = today, {}
        if bank not in self._used:
            total = await self._load(bank, today)
            # Another call may have asked for the same meanwhile, and counts already.
            self._used.setdefault(bank, _Used(total.calls, total.tokens, total.cost))
        return self._used[bank]

    def _check(self, used: _Used, caps: Caps, tokens: int, cost: int, name: str) -> None:
        limits = (
            ("calls", used.calls + 1, caps.calls),
            ("tokens", used.tokens + tokens, caps.tokens),
            ("cost", used.cost + cost, None if caps.cost is None else round(caps.cost * BILLION)),
        )
        for what, would_be, limit in limits:
            if limit is not None and would_be > limit:
                raise BudgetExhausted(
                    f"Today's budget for language models is used up: the next call would pass {name}_{what}_per_day."
                    " Wait for the next day (UTC), or raise the cap.",
                    self._until_tomorrow(),
                )

    def _until_tomorrow(self) -> int:
        now = self._clock()
        return max(1, ((day_of(now) + 1) * DAY_US - now) // 1_000_000)


# -- previews --------------------------------------------------------------------------------------------------------

CHARACTERS_A_TOKEN = 4
FACT_TOKENS = 90
FACTS_A_CHUNK = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a piece of work is likely to take. `least` differs from `most` where nobody can know how long it goes on."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: int | None

    def to_wire(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
            "cost": money(self.cost),
        }


def money(billionths: int | None) -> float | None:
    """An amount in the currency."""
    return None if billionths is None else billionths / BILLION


def estimate(calls: int, input_tokens: int, output_tokens: int, price: Price | None) -> Estimate:
    return Estimate(
        calls, input_tokens, output_tokens, None if price is None else price.of(input_tokens, output_tokens)
    )


def retain_estimate(prompts: Iterable[int], price: Price | None) -> Estimate:
    """Chunks that a model must read, each with the tokens of its prompt: one call a chunk, four facts an answer."""
    sizes = list(prompts)
    return estimate(len(sizes), sum(sizes), len(sizes) * FACTS_A_CHUNK * FACT_TOKENS, price)


def consolidation_estimate(facts: int, batch: int, price: Price | None, prompt: int = 1500) -> Estimate:
    """A backlog of `facts` in calls of `batch`: each fact with its text and the related observations it is shown."""
    calls = -(-facts // max(1, batch))
    return estimate(calls, calls * prompt + facts * (FACT_TOKENS + 256), calls * 300, price)


def reflect_estimate(
    iterations: int, price: Price | None, context_tokens: int = 100_000, round_tokens: int = 4000
) -> tuple[Estimate, Estimate]:
    """(least, most) of one reflect: one round, or as many as its limit allows, each with all that was gathered."""

    def rounds(count: int) -> Estimate:
        sent = sum(min(context_tokens, 2000 + round_tokens * number) for number in range(1, count + 1))
        return estimate(count, sent, 200 * (count - 1) + 600, price)

    return rounds(1), rounds(max(1, iterations))

"""The ledger of model calls: one record a call, and one row of sums a day that outlives them.

Money is whole billionths of the currency the price table is written in, so that sums are exact; None is a price nobody
gave, 0 one that is nothing. Reported tokens are the provider's, counted ones our own count of what was sent and came
back: a lasting gap between the two is somebody else's text on the bill.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

DAY_US = 24 * 3600 * 1_000_000
BILLION = 1_000_000_000
OK = "ok"


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """One call of a model. `outcome` is `ok` or the code of the error it ended with."""

    id: str
    started_at: int
    milliseconds: int
    operation: str
    """What it was for: `retain`, `dry_run`, `consolidation`, `reflect`, `health`."""
    provider: str
    model: str
    outcome: str = OK
    error: str = ""
    operation_id: str | None = None
    document_id: str | None = None
    scope: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    thoughts_tokens: int | None = None
    counted_input: int = 0
    counted_output: int = 0
    cost: int | None = None

    @property
    def tokens(self) -> int:
        """What a cap on tokens counts: as reported, or our own count where nothing was."""
        sent = self.counted_input if self.input_tokens is None else self.input_tokens
        back = self.counted_output if self.output_tokens is None else self.output_tokens
        return sent + back


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Sums over the calls of one day (UTC). `compared` calls have both counts; `gap_*` are sums over those alone."""

    day: int = 0
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    cost: int = 0
    unpriced: int = 0
    compared: int = 0
    gap_reported: int = 0
    gap_counted: int = 0

    def plus(self, calls: Iterable[LedgerCall]) -> DayTotals:
        """The totals with more calls in them."""
        total = self
        for call in calls:
            both = call.input_tokens is not None and call.counted_input > 0
            total = dataclasses.replace(
                total,
                calls=total.calls + 1,
                failed=total.failed + (call.outcome != OK),
                input_tokens=total.input_tokens + (call.input_tokens or 0),
                output_tokens=total.output_tokens + (call.output_tokens or 0),
                cached_tokens=total.cached_tokens + (call.cached_tokens or 0),
                tokens=total.tokens + call.tokens,
                cost=total.cost + (call.cost or 0),
                unpriced=total.unpriced + (call.cost is None and call.outcome == OK),
                compared=total.compared + both,
                gap_reported=total.gap_reported + (call.input_tokens or 0 if both else 0),
                gap_counted=total.gap_counted + (call.counted_input if both else 0),
            )
        return total

    def joined(self, other: DayTotals) -> DayTotals:
        """The sums of both, under this one's day."""
        fields = [field.name for field in dataclasses.fields(self) if field.name != "day"]
        return dataclasses.replace(self, **{name: getattr(self, name) + getattr(other, name) for name in fields})


def day_of(instant: int) -> int:
    """Days since the epoch, UTC."""
    return instant // DAY_US


GAP_CALLS = 5
GAP_SHARE = 1.5
GAP_TOKENS = 300


def lasting_gap(total: DayTotals) -> int:
    """Input tokens a call that the provider bills beyond what we sent; 0 when there is no lasting gap.

    Tokenizers differ by some tens of percent, so only half as much again, and 300 tokens a call, over at least five
    calls count as one.
    """
    if total.compared < GAP_CALLS:
        return 0
    extra = (total.gap_reported - total.gap_counted) // total.compared
    return extra if extra >= GAP_TOKENS and total.gap_reported >= GAP_SHARE * total.gap_counted else 0

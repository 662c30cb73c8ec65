"""The shape of a range of wall time (a day, a week, a month ...), which decides how any language writes it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from recalld.actors import dateranges as r
from recalld.actors.dateranges import DAY

SEASON_STARTS: Final = (3, 6, 9, 12)


class Shape(NamedTuple):
    """`kind` is hour, part (of a day), day, days, weekend, week, month, months, year or years. `last` is the last day
    inside, as `first` is the first."""

    kind: str
    first: datetime
    last: datetime
    low: datetime
    high: datetime


def shape_of(low: datetime, high: datetime) -> Shape:
    """The shape of a half-open range."""
    first, last = r.midnight(low), r.midnight(high - timedelta(microseconds=1))
    whole = low == first and high == r.midnight(high)
    kind = "days"
    if high - low <= timedelta(hours=1):
        kind = "hour"
    elif not whole and high - low < DAY:
        kind = "part"
        last = first
    elif first == last:
        kind = "day"
    elif whole and low.weekday() == 0 and high - low == 7 * DAY:
        kind = "week"
    elif whole and low.weekday() == 5 and high - low == 2 * DAY:
        kind = "weekend"
    elif whole and low.day == 1 and high.day == 1:
        months = (high.year - low.year) * 12 + high.month - low.month
        if low.month == 1 and months % 12 == 0:
            kind = "year" if months == 12 else "years"
        else:
            kind = "month" if months == 1 else "months"
    return Shape(kind, first, last, low, high)


def season_of(shape: Shape) -> int | None:
    """0 spring to 3 winter when the range is exactly one season."""
    if shape.kind == "months" and shape.low.month in SEASON_STARTS and r.shift_months(shape.low, 3) == shape.high:
        return SEASON_STARTS.index(shape.low.month)
    return None


def part_of_day(hour: int) -> str:
    """morning (5 to 12), afternoon (to 17), evening (to 22) or night, by the clock."""
    if 5 <= hour < 12:
        return "morning"
    if 12 <= hour < 17:
        return "afternoon"
    return "evening" if 17 <= hour < 22 else "night"


def parts(low: datetime, high: datetime) -> str:
    """The part of day a range of `dategrammar` stands for."""
    return {0: "morning", 12: "afternoon", 17: "evening"}.get(low.hour, "night")

"""Calendar arithmetic for date words: ranges of local wall time, half open, `[low, high)`.

Functions raise `ValueError` or `OverflowError` when a date leaves the calendar; `dategrammar` turns both into "no
date".
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

Range = tuple[datetime, datetime]

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall time carries no zone
DAY: Final = timedelta(days=1)
MIN_YEAR: Final = 1000
MAX_YEAR: Final = 2999
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The moment words are read from, as wall time, and which way an open word leans: -1 past, +1 future, 0 neither.

    `day_first`: how 3/4/2026 is read where both readings are dates.
    """

    now: datetime
    lean: int = 0
    day_first: bool = False

    @classmethod
    def at(cls, instant: int, utc_offset_minutes: int = 0, lean: int = 0) -> Anchor:
        """From µs since the epoch. Raises `OverflowError` outside the calendar."""
        return cls(EPOCH + timedelta(microseconds=instant, minutes=utc_offset_minutes), lean)

    @property
    def today(self) -> datetime:
        return midnight(self.now)


def to_micros(when: datetime, utc_offset_minutes: int) -> int:
    """Wall time to µs since the epoch."""
    return (when - EPOCH) // _MICROSECOND - utc_offset_minutes * 60_000_000


def midnight(when: datetime) -> datetime:
    return when.replace(hour=0, minute=0, second=0, microsecond=0)


def in_bounds(span: Range) -> bool:
    low, high = span
    return low.year >= MIN_YEAR and (high - _MICROSECOND).year <= MAX_YEAR and low < high


def date(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day)  # noqa: DTZ001 - wall time carries no zone


def day_range(when: datetime, count: int = 1) -> Range:
    low = midnight(when)
    return low, low + count * DAY


def week_range(when: datetime) -> Range:
    """Monday to Sunday around `when`."""
    low = midnight(when) - when.weekday() * DAY
    return low, low + 7 * DAY


def weekend_range(when: datetime) -> Range:
    """Saturday and Sunday of the week around `when`."""
    low, high = week_range(when)
    return low + 5 * DAY, high


def month_range(year: int, month: int, count: int = 1) -> Range:
    low = date(year, month, 1)
    return low, shift_months(low, count)


def quarter_range(year: int, quarter: int) -> Range:
    return month_range(year, 3 * quarter - 2, 3)


def year_range(year: int, count: int = 1) -> Range:
    return date(year, 1, 1), date(year + count, 1, 1)


def season_range(year: int, season: int) -> Range:
    """0 spring (March to May), 1 summer, 2 autumn, 3 winter (December of `year` to February)."""
    low = date(year, 3 * season + 3, 1)
    return low, shift_months(low, 3)


def shift_months(when: datetime, months: int) -> datetime:
    """The same day some months on; the last day of the month where there is no such day."""
    index = when.year * 12 + when.month - 1 + months
    year, month = divmod(index, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside the calendar")
    last = calendar.monthrange(year, month + 1)[1]
    return when.replace(year=year, month=month + 1, day=min(when.day, last))


def period(unit: str, when: datetime) -> Range:
    """The whole `unit` (day, week, weekend, month, quarter, year, decade) around `when`."""
    if unit == "day":
        return day_range(when)
    if unit == "week":
        return week_range(when)
    if unit == "weekend":
        return weekend_range(when)
    if unit == "month":
        return month_range(when.year, when.month)
    if unit == "quarter":
        return quarter_range(when.year, (when.month + 2) // 3)
    if unit == "decade":
        return year_range(when.year // 10 * 10, 10)
    return year_range(when.year)


def shift(unit: str, when: datetime, count: int) -> datetime:
    """`when` moved by `count` units; minute and hour too."""
    if unit in ("month", "quarter", "year", "decade"):
        return shift_months(when, count * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit])
    hours = {"minute": 1 / 60, "hour": 1, "day": 24, "week": 168, "weekend": 168, "fortnight": 336}[unit]
    return when + timedelta(hours=hours * count)


def ago(unit: str, when: datetime, count: int) -> Range:
    """The whole unit `count` units back (ahead when negative). Hours and minutes give the hour around that moment."""
    if unit in ("minute", "hour"):
        low = shift(unit, when, -count).replace(minute=0, second=0, microsecond=0)
        return low, low + timedelta(hours=1)
    if unit == "weekend":
        return weekend_range(when - 7 * count * DAY)
    return period("week" if unit == "fortnight" else unit, shift(unit, when, -count))


def trailing(unit: str, when: datetime, count: int) -> Range:
    """The last `count` units up to now: from the start of the first day to now (at least to its end for days)."""
    low = shift(unit, when, -count)
    if unit in ("minute", "hour"):
        return low, when + _MICROSECOND
    return midnight(low), day_range(when)[1]


def weekday_range(anchor: Anchor, weekday: int) -> Range:
    """A bare weekday: the latest one up to today, or the first from today on when leaning to the future."""
    today = anchor.today
    if anchor.lean > 0:
        return day_range(today + (weekday - today.weekday()) % 7 * DAY)
    return day_range(today - (today.weekday() - weekday) % 7 * DAY)


def relative_weekday(anchor: Anchor, weekday: int, step: int) -> Range:
    """-1: the latest before today. 0: the first from today on. 1: that day of next week."""
    today = anchor.today
    if step < 0:
        return day_range(today - ((today.weekday() - weekday - 1) % 7 + 1) * DAY)
    if step == 0:
        return day_range(today + (weekday - today.weekday()) % 7 * DAY)
    return day_range(week_range(today)[1] + weekday * DAY)


def relative_month(anchor: Anchor, month: int, step: int | None) -> Range:
    """-1: the latest that is over. 0: this year's. 1: the next to begin. None: by lean (module `dategrammar`)."""
    now = anchor.now
    if step == 0:
        return month_range(now.year, month)
    if step is None:
        if anchor.lean > 0:
            return month_range(now.year + (month < now.month), month)
        if anchor.lean == 0:
            return month_range(now.year + (month < now.month - 6) - (month > now.month + 5), month)
        return month_range(now.year - (month > now.month), month)
    if step < 0:
        return month_range(now.year - (month >= now.month), month)
    return month_range(now.year + (month <= now.month), month)


def relative_season(anchor: Anchor, season: int, step: int | None) -> Range:
    """As `relative_month`, for seasons; `this winter` in January began last December."""
    now, year = anchor.now, anchor.now.year
    candidates = [season_range(y, season) for y in range(year - 2, year + 3)]
    if step is not None and step < 0:
        return [c for c in candidates if c[1] <= now][-1]
    if step is not None and step > 0:
        return next(c for c in candidates if c[0] > now)
    current = [c for c in candidates if c[0] <= now < c[1]]
    if current:
        return current[0]
    if step == 0:
        return season_range(year, season)
    if anchor.lean > 0:
        return next(c for c in candidates if c[0] > now)
    return [c for c in candidates if c[0] <= now][-1]


def yearless_day(anchor: Anchor, month: int, day: int) -> Range:
    """A month and day without year: the latest, the next, or without lean the nearest.

    29 February skips common years.
    """
    today = anchor.today
    candidates = []
    for year in range(today.year - 8, today.year + 9):
        if day <= calendar.monthrange(year, month)[1]:
            candidates.append(date(year, month, day))
    if anchor.lean < 0:
        candidates = [c for c in candidates if c <= today]
    elif anchor.lean > 0:
        candidates = [c for c in candidates if c >= today]
    if not candidates:
        raise ValueError("no such day")
    return day_range(min(candidates, key=lambda c: abs(c - today)))


def day_of_month(anchor: Anchor, day: int) -> Range:
    """`the 31st`: this month's; by lean the latest up to today or the first from today on.

    Months without it are skipped.
    """
    first = anchor.today.replace(day=1)
    months = range(0, 3) if anchor.lean >= 0 else range(0, -3, -1)
    for step in months:
        month = shift_months(first, step)
        if day > calendar.monthrange(month.year, month.month)[1]:
            continue
        found = month.replace(day=day)
        if (anchor.lean < 0 and found > anchor.today) or (anchor.lean > 0 and found < anchor.today):
            continue
        return day_range(found)
    raise ValueError("no such day")


def part_of(unit: str, span: Range, part: str) -> Range:
    """The `beginning`, `middle` or `end` of a period, as the module docstring of `dategrammar` defines them."""
    low, high = span
    if unit == "week":
        cut = {"beginning": (0, 2), "middle": (2, 4), "end": (4, 7)}[part]
        return low + cut[0] * DAY, low + cut[1] * DAY
    if unit == "month":
        if part == "end":
            return high - 7 * DAY, high
        return (low, low + 7 * DAY) if part == "beginning" else (low + 10 * DAY, low + 20 * DAY)
    if unit == "year":
        cut = {"beginning": (0, 2), "middle": (4, 8), "end": (10, 12)}[part]
        return shift_months(low, cut[0]), shift_months(low, cut[1])
    third = (high - low) / 3
    at = {"beginning": 0, "middle": 1, "end": 2}[part]
    return midnight(low + at * third), midnight(low + (at + 1) * third) if part != "end" else high

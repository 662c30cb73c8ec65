"""Rules of the English grammar for dates as they are spoken: a weekday of a week, halves, lengths up to now.

They come before those of `dategrammar`, which imports this module first. `has lived here for three years` is the three
years up to now; `lived there for three years` names no time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.dateranges import DAY, Anchor, Range
from recalld.actors.daterules import Match, Reading, Yearless, rule
from recalld.actors.datewords import (
    ANY_WEEKDAY,
    DAY_NUMBER,
    LAST,
    MONTH,
    MONTH_NUMBERS,
    NUMBER,
    SEASON,
    SEASONS,
    WEEKDAY_NUMBERS,
    YEAR,
    day_number_of,
    number_of,
    step_of,
)

_HALF: Final = r"(?:first|second|1st|2nd)\s+half"


@rule(
    rf"\b(?:the\s+)?(?:(?P<o>{_HALF})|h(?P<h>[12]))(?:\s+(?:of\s+)?(?:(?P<y>{YEAR})|(?:(?P<s>{LAST}|this"
    rf"|next)\s+|the\s+)"
    rf"(?P<u>year|month)))(?!\w)"
)
def _half(m: Match, a: Anchor) -> Range:
    second = m["h"] == "2" or (m["o"] or "").lower().startswith(("sec", "2"))
    step = step_of(m["s"]) if m["s"] else 0
    if m["u"] and m["u"].lower() == "month":
        low, high = r.period("month", r.shift("month", a.now, step))
        return (low + 15 * DAY, high) if second else (low, low + 15 * DAY)
    low = r.date(int(m["y"]) if m["y"] else a.now.year + step, 1, 1)
    return r.shift_months(low, 6 * second), r.shift_months(low, 6 + 6 * second)


@rule(
    rf"\b(?P<d>{ANY_WEEKDAY})\s+(?:of\s+)?(?:(?P<s>{LAST}|this|next)\s+week|(?P<w>week))\b"
    rf"|\b(?P<t>{LAST}|this|next)\s+week(?:['’]s|,)?\s+(?:on\s+)?(?P<e>{ANY_WEEKDAY})\b"
)
def _weekday_of_week(m: Match, a: Anchor) -> Range | None:
    if m["w"]:  # "Friday week": a week after the coming one
        day = r.relative_weekday(a, WEEKDAY_NUMBERS[m["d"].lower()], 0)[0] + 7 * DAY
        return r.day_range(day) if a.lean > 0 else None
    week = r.week_range(a.now + 7 * step_of(m["s"] or m["t"]) * DAY)[0]
    return r.day_range(week + WEEKDAY_NUMBERS[(m["d"] or m["e"]).lower()] * DAY)


@rule(
    rf"\b(?:the\s+)?(?P<d>{DAY_NUMBER}|first|last day|last)\s+of\s+(?:(?P<s>{LAST}|this|next|the following)\s+"
    rf"|the\s+)month\b"
)
def _day_of_that_month(m: Match, a: Anchor) -> Range | None:
    step = step_of(m["s"]) if m["s"] else 0
    low, high = r.period("month", r.shift("month", a.now, step))
    word = m["d"].lower()
    if word.startswith("last"):
        return r.day_range(high - DAY)
    if word.isdigit():
        return None
    return r.day_range(r.date(low.year, low.month, 1 if word == "first" else day_number_of(word)))


@rule(r"\b(?:half\s+an?\s+(?P<u>year|hour|century)|an?\s+(?P<v>year|month|week)\s+and\s+a\s+half)\s+ago\b")
def _halves_ago(m: Match, a: Anchor) -> Range | None:
    months = {"year": 6, "century": 600}.get((m["u"] or "").lower()) or (
        18 if (m["v"] or "").lower() == "year" else None
    )
    if months:
        return r.ago("year" if months > 24 else "month", a.now, months // 12 if months > 24 else months)
    back = {"hour": timedelta(minutes=30), "month": 45 * DAY, "week": 10 * DAY}[(m["u"] or m["v"]).lower()]
    return r.ago("hour", a.now, 1) if (m["u"] or "").lower() == "hour" else r.day_range(a.now - back)


@rule(rf"\b(?P<n>{NUMBER})\s+(?P<u>week|month|year)s?\s+ago\s+(?P<d>today|yesterday|tomorrow)\b")
def _ago_today(m: Match, a: Anchor) -> Range:
    day = a.today + {"yesterday": -1, "today": 0, "tomorrow": 1}[m["d"].lower()] * DAY
    return r.day_range(r.shift(m["u"].lower(), day, -number_of(m["n"])[0]))


@rule(rf"\b(?:the\s+)?(?P<d>{ANY_WEEKDAY}) before last\b")
def _weekday_before_last(m: Match, a: Anchor) -> Range:
    return r.day_range(r.relative_weekday(a, WEEKDAY_NUMBERS[m["d"].lower()], -1)[0] - 7 * DAY)


@rule(r"\b(?:the\s+)?night before last\b")
def _night_before_last(m: Match, a: Anchor) -> Range:
    low = a.today - 2 * DAY + timedelta(hours=18)
    return low, low + timedelta(hours=6)


@rule(
    rf"\b(?P<n>an?|one|two|three)\s+(?P<u>week|day|month)s?\s+from\s+(?P<x>today|tomorrow|yesterday|{ANY_WEEKDAY})\b"
    r"|\btomorrow\s+week\b"
)
def _from_day(m: Match, a: Anchor) -> Range:
    if m["x"] is None:
        return r.day_range(a.now + 8 * DAY)
    word = m["x"].lower()
    near = {"today": 0, "tomorrow": 1, "yesterday": -1}.get(word)
    day = a.today + near * DAY if near is not None else r.relative_weekday(a, WEEKDAY_NUMBERS[word], 0)[0]
    return r.day_range(r.shift(m["u"].lower(), day, number_of(m["n"])[0]))


@rule(r"\b(?:by|before|at|until)\s+(?P<x>eo[dwm])\b")
def end_of_business(m: Match, a: Anchor) -> Range:
    unit = {"d": "day", "w": "week", "m": "month"}[m["x"][-1].lower()]
    low, high = r.period(unit, a.now)
    return (low, high) if unit == "day" else (a.today, low + 5 * DAY) if unit == "week" else (high - 7 * DAY, high)


_PERFECT: Final = r"(?:\b(?:have|has|been|haven't|hasn't)\b|\w['’](?:ve|s)\b)"


@rule(
    rf"{_PERFECT}[^.!?;]{{0,80}}?\b(?P<x>for\s+(?:(?:over|about|around|almost|nearly|more than|at least|roughly"
    rf"|some|like)\s+)?"
    rf"(?P<n>{NUMBER})\s+(?P<u>day|week|month|year|decade)s?(?:\s+now)?)\b(?!\s+(?:ago|before|after|by then"
    rf"|when|straight|a)|\s*\(since)"
)
def so_long(m: Match, a: Anchor) -> Range | None:
    # "has lived here for three years" reaches to now; "lived there for three years" names no time.
    return None if a.lean > 0 else r.trailing(m["u"].lower(), a.now, number_of(m["n"])[1])


@rule(
    rf"\b(?P<w>{ANY_WEEKDAY}),?\s+(?:the\s+)?(?P<d>(?:[12]?\d|3[01])(?:st|nd|rd"
    rf"|th))\b(?!\s+(?:of\s+)?(?:{MONTH})\b)"
)
def _weekday_the_12th(m: Match, a: Anchor) -> Range:
    """The nearest such day that is that weekday, on the side the sentence leans to."""
    weekday, number = WEEKDAY_NUMBERS[m["w"].lower()], day_number_of(m["d"])
    first = a.today.replace(day=1)
    months = [r.shift_months(first, step) for step in range(-11, 12)]
    days = [when.replace(day=number) for when in months if _has(when, number)]
    days = [day for day in days if day.weekday() == weekday and (day - a.today) * a.lean >= timedelta(0)]
    return r.day_range(min(days, key=lambda day: abs(day - a.today)))


def _has(month: datetime, day: int) -> bool:
    return day <= (r.shift_months(month, 1) - DAY).day


_SHORT_UNITS: Final = {"wk": "week", "mo": "month", "mth": "month", "yr": "year", "hr": "hour", "min": "minute"}


@rule(rf"\b(?P<n>{NUMBER})\s*(?P<u>wk|mo|mth|yr|hr|min)s?\s+(?:ago|back)\b")
def _short_ago(m: Match, a: Anchor) -> Range:
    least, most = number_of(m["n"])
    unit = _SHORT_UNITS[m["u"].lower()]
    return r.ago(unit, a.now, most)[0], r.ago(unit, a.now, least)[1]


def _full_year(short: str, a: Anchor) -> int:
    """'92 is 1992, '25 is 2025: at most five years ahead."""
    year = 2000 + int(short)
    return year if year <= a.now.year + 5 else year - 100


@rule(rf"\b(?P<m>{MONTH})\.?\s+['’](?P<y>\d\d)\b")
def _month_short_year(m: Match, a: Anchor) -> Range:
    return r.month_range(_full_year(m["y"], a), MONTH_NUMBERS[m["m"].lower()])


@rule(r"\b(?:in|since|from|until|of|by|before|after)\s+(?P<x>['’]\d\d)\b(?!s)")
def short_year(m: Match, a: Anchor) -> Range:
    return r.year_range(_full_year(m["x"][1:], a))


@rule(rf"\b(?P<n>{NUMBER})\s+(?P<s>{SEASON})s?\s+ago\b")
def _seasons_ago(m: Match, a: Anchor) -> Range:
    season = SEASONS[m["s"].lower()]
    low, _ = r.relative_season(a, season, -1)
    return r.season_range(low.year - number_of(m["n"])[0] + 1, season)


@rule(
    rf"\b(?P<o>first|last)\s+(?P<n>{NUMBER})\s+(?P<u>day"
    rf"|week)s\s+of\s+(?:the\s+)?(?:(?P<m>{MONTH})\b(?:,?\s+(?P<y>{YEAR}))?"
    r"|(?P<z>month|year)\b)"
)
def _first_weeks(m: Match, a: Anchor) -> Range:
    if m["m"]:
        month = MONTH_NUMBERS[m["m"].lower()]
        low, high = r.month_range(int(m["y"]), month) if m["y"] else r.relative_month(a, month, None)
    else:
        low, high = r.period(m["z"].lower(), a.now)
    length = number_of(m["n"])[1] * (7 if m["u"].lower() == "week" else 1) * DAY
    return (low, low + length) if m["o"].lower() == "first" else (high - length, high)


def _easter(year: int) -> datetime:
    """Easter Sunday of the Gregorian calendar."""
    a, b, c = year % 19, year // 100, year % 100
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    f = d + e - 7 * ((a + 11 * d + 22 * e) // 451) + 114
    return r.date(year, f // 31, f % 31 + 1)


def _feast(name: str, year: int) -> datetime:
    if name.startswith("easter"):
        return _easter(year) + (DAY if "monday" in name else 0 * DAY)
    if name == "good friday":
        return _easter(year) - 2 * DAY
    first = r.date(year, 11, 1)
    return first + ((3 - first.weekday()) % 7 + 21) * DAY


@rule(
    r"\b(?P<h>easter(?: sunday| monday)?|good friday|thanksgiving(?: day)?)\b(?:\s+(?P<y>[12]\d{3})\b"
    r"|\s+(?P<s>last|this|next) year)?"
)
def _moving_feast(m: Match, a: Anchor) -> Reading:
    name = m["h"].lower()

    def read(year: int) -> Range:
        return r.day_range(_feast(name, year))

    if m["y"]:
        return read(int(m["y"]))
    if m["s"]:
        return read(a.now.year + step_of(m["s"]))
    days = [_feast(name, year) for year in range(a.now.year - 1, a.now.year + 2)]
    if a.lean:
        days = [day for day in days if (day - a.today) * a.lean >= timedelta(0)]
    return Yearless(r.day_range(min(days, key=lambda day: abs(day - a.today))), read)

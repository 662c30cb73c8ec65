"""The grammar of English date words, shared by questions (`recall.dates`) and stored text (`retain.times`).

`atoms(text, anchor)` gives every date expression with its span and its range as local wall time, `[low, high)`.
Readings:

* A week is Monday to Sunday; a weekend is its Saturday and Sunday. Seasons are the northern, meteorological ones;
  winter carries the year of its December.
* `last X` is the latest X that is over; for a weekday, the latest before today. `this week/month/...` holds today.
  `this Friday` is the first one from today on. `next Friday` is the Friday of the week after this one (said on a
  Friday: in seven days). `this weekend` is the one of this week, also on its Sunday; `next weekend` the one of next
  week.
* A bare weekday is the latest one up to today, or the first from today on when the anchor leans to the future.
* `in June` is the latest June that has begun, with a future lean the first that is not over, or without lean the
  nearest. `May 7` likewise.
* The night of a day ends with the day, the evening too.
* `the 31st` is that day of this month, or of the latest or next month by lean. A month without that day is passed over:
  in February it is 31 March (31 January when leaning to the past), never 3 March.
* `end of` a month is its last seven days, `beginning of` its first seven, `middle of` days 11 to 20; of a week
  Monday-Tuesday, Wednesday-Thursday, Friday-Sunday; of a year its first two, middle four, last two months; else thirds.
* `N weeks ago` is the whole week, `N months ago` the month, `N years ago` the year; `a few` is two to four, `several`
  three to seven.
* A bare number is never a year: it needs a word such as `in`, `since`, `from` before it, a place in 1000..2999, and no
  noun of measure behind it.

Anything outside the years 1000 to 2999 is nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors import datespoken
from recalld.actors.dateranges import DAY, MAX_YEAR, MIN_YEAR, Anchor, Range
from recalld.actors.daterules import RULES, Found, Match, Reader, Reading, Yearless, rule
from recalld.actors.datewords import (
    ANY_WEEKDAY,
    DAY_NUMBER,
    HOLIDAYS,
    IN,
    LAST,
    MEASURE,
    MONTH,
    MONTH_NUMBERS,
    NUMBER,
    ORDINAL,
    ORDINALS,
    SEASON,
    SEASONS,
    STEP,
    UNIT,
    WEEKDAY,
    WEEKDAY_NUMBERS,
    YEAR,
    day_number_of,
    number_of,
    step_of,
)


@rule(r"\b(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:(?=[T ]\d\d:)|\b)")
def _iso_day(m: Match, a: Anchor) -> Range:
    return r.day_range(r.date(int(m["y"]), int(m["m"]), int(m["d"])))


@rule(r"\b(?P<y>[12]\d{3})-(?P<m>0[1-9]|1[0-2])\b(?!-\d)")
def _iso_month(m: Match, a: Anchor) -> Range:
    return r.month_range(int(m["y"]), int(m["m"]))


@rule(r"\b(?P<a>\d{1,2})(?P<sep>[/.])(?P<b>\d{1,2})(?P=sep)(?P<y>[12]\d{3})\b")
def _numeric(m: Match, a: Anchor) -> Range:
    # Slashes are month first in English, unless that cannot be; dots are day first, as slashes are everywhere else.
    first, second = int(m["a"]), int(m["b"])
    month, day = (first, second) if m["sep"] == "/" and first <= 12 and not a.day_first else (second, first)
    if month > 12:
        month, day = day, month
    return r.day_range(r.date(int(m["y"]), month, day))


def _days(a: Anchor, month: str, first: str, last: str | None, year: str | None) -> Reading:
    number, low, high = MONTH_NUMBERS[month.lower()], day_number_of(first), day_number_of(last or first)

    def read(y: int) -> Range:
        return r.date(y, number, low), r.date(y, number, high) + DAY

    if year:
        return read(int(year))
    return Yearless((r.yearless_day(a, number, low)[0], r.yearless_day(a, number, high)[1]), read)


@rule(
    rf"\b(?:the\s+)?week of\s+(?:the\s+)?(?:(?P<d>{DAY_NUMBER})\s+(?:of\s+)?(?P<m>{MONTH})|(?P<n>{MONTH})\s+"
    rf"(?P<e>{DAY_NUMBER}))\b(?:,?\s+(?P<y>{YEAR}))?"
)
def _week_of(m: Match, a: Anchor) -> Reading:
    number, day = MONTH_NUMBERS[(m["m"] or m["n"]).lower()], day_number_of(m["d"] or m["e"])

    def read(year: int) -> Range:
        return r.week_range(r.date(year, number, day))

    return read(int(m["y"])) if m["y"] else Yearless(r.week_range(r.yearless_day(a, number, day)[0]), read)


@rule(
    rf"\b(?:{ANY_WEEKDAY}\.?,?\s+)?(?:the\s+)?(?P<d>{DAY_NUMBER})(?:\s*(?:-|–|to|and)\s*(?P<e>{DAY_NUMBER}))?\.?"
    rf"(?:\s+of)?[\s-]+(?P<m>{MONTH})\b\.?(?:,?[\s-]+(?P<y>{YEAR}))?"
)
def _day_month(m: Match, a: Anchor) -> Reading:
    return _days(a, m["m"], m["d"], m["e"], m["y"])


@rule(
    rf"\b(?:{ANY_WEEKDAY}\.?,?\s+)?(?P<m>{MONTH})\.?\s+(?:the\s+)?(?P<d>{DAY_NUMBER})(?![\d:%]|\s*(?:am|pm"
    rf"|o'clock)\b)"
    rf"(?:\s*(?:-|–|to)\s*(?P<e>{DAY_NUMBER})(?![\d:]))?(?:,?\s+(?P<y>{YEAR}))?"
)
def _month_day(m: Match, a: Anchor) -> Reading:
    return _days(a, m["m"], m["d"], m["e"], m["y"])


@rule(
    rf"\b(?P<o>{ORDINAL})\s+(?P<u>{WEEKDAY}|week|weekend|day)\s+(?:of|in)\s+(?:the\s+)?(?:(?P<step>{LAST}"
    rf"|this|next)\s+)?(?P<m>{MONTH}|month|year)\b(?:,?\s+(?P<y>{YEAR}))?"
)
def _ordinal(m: Match, a: Anchor) -> Range | None:
    number, unit, inside = ORDINALS[m["o"].lower()], m["u"].lower(), m["m"].lower()
    step = step_of(m["step"]) if m["step"] else None
    if inside in MONTH_NUMBERS:
        month = MONTH_NUMBERS[inside]
        low, high = r.month_range(int(m["y"]), month) if m["y"] else r.relative_month(a, month, step)
    else:
        low, high = r.period(inside, r.shift(inside, a.now, step or 0))
    if unit == "day":
        return r.day_range(low + (number - 1) * DAY if number > 0 else high - DAY)
    if unit == "week":
        return (low + 7 * (number - 1) * DAY, low + 7 * number * DAY) if number > 0 else (high - 7 * DAY, high)
    weekday = 5 if unit == "weekend" else WEEKDAY_NUMBERS[unit]
    if number > 0:
        day = low + (weekday - low.weekday()) % 7 * DAY + 7 * (number - 1) * DAY
    else:
        day = high - DAY - ((high - DAY).weekday() - weekday) % 7 * DAY
    return r.day_range(day, 2 if unit == "weekend" else 1) if low <= day < high else None


@rule(
    rf"\b(?P<a>{MONTH})\s*(?:and|or|to|through|until|-|–)\s*(?P<b>{MONTH})\b(?:,?\s+(?:of\s+)?(?P<y>{YEAR}))?"
    rf"(?!\s*\d)"
)
def _months(m: Match, a: Anchor) -> Reading:
    first, last = MONTH_NUMBERS[m["a"].lower()], MONTH_NUMBERS[m["b"].lower()]

    def read(year: int) -> Range:
        return r.month_range(year - (first > last), first)[0], r.month_range(year, last)[1]

    return read(int(m["y"])) if m["y"] else Yearless(read(r.relative_month(a, last, None)[0].year), read)


@rule(
    rf"\b(?P<part>early|mid|middle of|late|beginning of|start of|end of|by the end of)[ -]+(?:the\s+)?"
    rf"(?:(?P<step>{LAST}|this|next)\s+)?(?P<u>week(?! of \d)|month|year|quarter|decade|{MONTH}|{SEASON}"
    rf"|(?P<yy>{YEAR}))\b"
    rf"(?:\s+(?:of\s+)?(?P<y>{YEAR}))?"
)
def _part(m: Match, a: Anchor) -> Range | None:
    word = m["part"].lower()
    early = word.startswith(("early", "beg", "start"))
    part = "beginning" if early else "end" if "end" in word or word == "late" else "middle"
    unit = m["u"].lower()
    step = step_of(m["step"]) if m["step"] else None
    if m["yy"]:
        return r.part_of("year", r.year_range(int(m["yy"])), part)
    if unit in MONTH_NUMBERS:
        number = MONTH_NUMBERS[unit]
        span = r.month_range(int(m["y"]), number) if m["y"] else r.relative_month(a, number, step)
        return r.part_of("month", span, part)
    if unit in SEASONS:
        span = r.season_range(int(m["y"]), SEASONS[unit]) if m["y"] else r.relative_season(a, SEASONS[unit], step)
        return r.part_of("season", span, part)
    return r.part_of(unit, r.period(unit, r.shift(unit, a.now, step or 0)), part)


@rule(rf"\b(?P<m>{MONTH})\.?,?\s+(?:of\s+)?(?P<y>{YEAR})")
def _month_year(m: Match, a: Anchor) -> Range:
    return r.month_range(int(m["y"]), MONTH_NUMBERS[m["m"].lower()])


@rule(
    rf"\b(?:(?:the\s+)?(?P<o>first|second|third|fourth|1st|2nd|3rd|4th)\s+quarter|q(?P<q>[1-4]))"
    rf"(?:\s+(?:of\s+)?(?P<y>{YEAR}))?\b"
)
def _quarter(m: Match, a: Anchor) -> Reading:
    number = int(m["q"]) if m["q"] else ORDINALS[m["o"].lower()]

    def read(year: int) -> Range:
        return r.quarter_range(year, number)

    if m["y"]:
        return read(int(m["y"]))
    this = read(a.now.year)
    over = this[0] > a.now if a.lean <= 0 else this[1] <= a.now
    return Yearless(read(a.now.year + (0 if not over else -1 if a.lean <= 0 else 1)), read)


@rule(r"\b(?P<y>[12]\d{3})[ -]?q(?P<q>[1-4])\b")
def _year_quarter(m: Match, a: Anchor) -> Range:
    return r.quarter_range(int(m["y"]), int(m["q"]))


@rule(rf"\b(?P<s>{SEASON})(?:\s+of|,)?\s+(?P<y>{YEAR})")
def _season_year(m: Match, a: Anchor) -> Range:
    return r.season_range(int(m["y"]), SEASONS[m["s"].lower()])


@rule(r"\b(?:the\s+)?day before yesterday\b")
def _before_yesterday(m: Match, a: Anchor) -> Range:
    return r.day_range(a.now - 2 * DAY)


@rule(r"\b(?:the\s+)?day after tomorrow\b")
def _after_tomorrow(m: Match, a: Anchor) -> Range:
    return r.day_range(a.now + 2 * DAY)


_PARTS_OF_DAY: Final = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 24)}


@rule(
    rf"\b(?:(?P<d>yesterday|tomorrow|today|{WEEKDAY})(?:'s)?\s+(?P<p>morning|afternoon|evening|night)"
    r"|(?P<t>this|last)\s+(?P<q>morning|afternoon|evening|night)|tonight)\b"
)
def _part_of_day(m: Match, a: Anchor) -> Range:
    part = (m["p"] or m["q"] or "night").lower()
    word = (m["d"] or "today").lower()
    if word in WEEKDAY_NUMBERS:
        day = r.weekday_range(a, WEEKDAY_NUMBERS[word])[0]
    else:
        day = a.today + {"yesterday": -1, "today": 0, "tomorrow": 1}[word] * DAY
    if m["t"] and m["t"].lower() == "last":
        day -= DAY
    first, last = _PARTS_OF_DAY[part]
    return day + timedelta(hours=first), day + timedelta(hours=last)


@rule(r"\b(?P<d>today|yesterday|tomorrow)\b")
def _near_day(m: Match, a: Anchor) -> Range:
    return r.day_range(a.now + {"yesterday": -1, "today": 0, "tomorrow": 1}[m["d"].lower()] * DAY)


@rule(
    rf"\b(?:(?:in|over|during|within|for|throughout)\s+)?(?:the\s+)?(?P<s>{LAST}|next|coming)\s+"
    rf"(?P<n>{NUMBER})\s+(?P<u>{UNIT})s?\b"
)
def _last_units(m: Match, a: Anchor) -> Range:
    count, unit = number_of(m["n"])[1], m["u"].lower()
    unit = "week" if unit == "weekend" else unit
    if step_of(m["s"]) > 0:
        return a.now, r.day_range(r.shift(unit, a.now, count))[1]
    return r.trailing(unit, a.now, count)


@rule(r"\b(?:in|over|during|within)\s+the\s+(?:last|past)\s+(?P<u>day|week|month|quarter|year|decade|hour)\b")
def _the_last_unit(m: Match, a: Anchor) -> Range:
    # "in the last week" is the seven days up to now; "last week" is a calendar week.
    return r.trailing(m["u"].lower(), a.now, 1)


@rule(rf"\b(?P<n>{NUMBER})\s+(?P<d>{WEEKDAY})s?\s+ago\b")
def _weekdays_ago(m: Match, a: Anchor) -> Range:
    low, high = r.relative_weekday(a, WEEKDAY_NUMBERS[m["d"].lower()], -1)
    back = 7 * (number_of(m["n"])[0] - 1) * DAY
    return low - back, high - back


@rule(rf"\b(?P<n>{NUMBER})\s+(?P<u>{UNIT})s?\s+(?:ago|back|earlier)\b(?!\s+to\b)")
def _units_ago(m: Match, a: Anchor) -> Range:
    least, most = number_of(m["n"])
    unit = m["u"].lower()
    return r.ago(unit, a.now, most)[0], r.ago(unit, a.now, least)[1]


@rule(rf"\b(?:in\s+)?(?P<n>{NUMBER})\s+(?P<u>{UNIT})s?(?:'s?)?\s+(?:from now|from today|time)\b")
def _units_ahead(m: Match, a: Anchor) -> Range:
    least, most = number_of(m["n"])
    return r.ago(m["u"].lower(), a.now, -least)[0], r.ago(m["u"].lower(), a.now, -most)[1]


@rule(rf"\bin\s+(?:about\s+)?(?P<n>{NUMBER})\s+(?P<u>day|week|fortnight|month|year|hour|minute)s?\b(?!\s+of\b)")
def _in_units(m: Match, a: Anchor) -> Reading:
    # "done in three days" is a length unless the sentence looks ahead.
    return _units_ahead(m, a) if a.lean > 0 else None


@rule(
    r"\b(?:the\s+)?(?P<u>week|weekend|month|year|summer|winter|spring|fall|autumn)\s+(?P<w>before last"
    r"|after next)\b"
)
def _before_last(m: Match, a: Anchor) -> Range:
    unit, step = m["u"].lower(), -1 if m["w"].lower() == "before last" else 1
    if unit in SEASONS:
        low, _ = r.relative_season(a, SEASONS[unit], step)
        return r.season_range(low.year + step, SEASONS[unit])
    return r.ago(unit, a.now, -2 * step)


@rule(r"\b(?P<e>earlier|later)\s+(?:in\s+)?(?:this|the|that)\s+(?P<u>week|month|year)\b")
def _earlier(m: Match, a: Anchor) -> Range:
    low, high = r.period(m["u"].lower(), a.now)
    return (low, r.day_range(a.now)[1]) if m["e"].lower() == "earlier" else (a.today, high)


@rule(r"\b(?P<e>earlier|later)\s+today\b")
def _earlier_today(m: Match, a: Anchor) -> Range:
    return r.day_range(a.now)


@rule(
    rf"\b(?:the\s+)?{STEP}\s+(?P<x>weekend|week|month|quarter|year|decade|{ANY_WEEKDAY}|{SEASON}"
    rf"|{MONTH})\b(?!\s*-\s*old)"
)
def _relative(m: Match, a: Anchor) -> Range | None:
    word, step = m["x"].lower(), step_of(m["step"])
    if word in WEEKDAY_NUMBERS:
        if "coming" in m["step"].lower():
            step = 0
        return r.relative_weekday(a, WEEKDAY_NUMBERS[word], step)
    if word in SEASONS:
        return r.relative_season(a, SEASONS[word], step)
    if word in MONTH_NUMBERS:
        return r.relative_month(a, MONTH_NUMBERS[word], step)
    if word == "weekend" and "coming" in m["step"].lower():
        step = 0
    return r.ago(word, a.now, -step)


@rule(r"\b(?:the|this)\s+weekend\b")
def _the_weekend(m: Match, a: Anchor) -> Range:
    # "over the weekend": the latest one that has begun, or the coming one.
    this = r.weekend_range(a.now)
    return this if a.lean > 0 or this[0] <= a.now else r.ago("weekend", a.now, 1)


@rule(r"\bthe other day\b")
def _other_day(m: Match, a: Anchor) -> Range:
    return a.today - 7 * DAY, a.today


@rule(
    r"\b(?:(?P<s>last|this|next)\s+|(?:on|at|during|over|for|since|before|after|by|around)\s+)(?P<h>christmas eve"
    r"|christmas|new year's eve|new year's day|new year's|halloween|valentine's day)\b(?:\s+(?:day\s+)?"
    r"(?P<y>[12]\d{3})\b)?"
)
def _holiday(m: Match, a: Anchor) -> Reading:
    month, day = HOLIDAYS[m["h"].lower()]

    def read(year: int) -> Range:
        return r.day_range(r.date(year, month, day))

    if m["y"]:
        return read(int(m["y"]))
    step = (m["s"] or "").lower()
    if step == "this":
        return read(a.now.year)
    lean = -1 if step == "last" else 1 if step == "next" else a.lean
    shifted = replace(a, now=a.now - DAY if step == "last" else a.now + DAY if step == "next" else a.now, lean=lean)
    return Yearless(r.yearless_day(shifted, month, day), read)


@rule(
    r"\bthe\s+(?P<d>(?:[12]?\d|3[01])(?:st|nd|rd|th))\b(?=\s*(?:$|[.,;:!?)\"]|(?:at|in|and|to|we"
    r"|i|he|she|they|it|was|were|is|for|with|because|so|but|when|did|or)\b))"
)
def _the_31st(m: Match, a: Anchor) -> Range:
    return r.day_of_month(a, day_number_of(m["d"]))


@rule(rf"\b(?P<d>{WEEKDAY})\b(?!\s+(?:school|times)\b)")
def _weekday(m: Match, a: Anchor) -> Range:
    return r.weekday_range(a, WEEKDAY_NUMBERS[m["d"].lower()])


@rule(r"\b(?:on|by|until|since|before|after|from|till)\s+(?P<x>mon|tues|tue|wed|thurs|thur|thu|fri)\b")
def _short_weekday(m: Match, a: Anchor) -> Range:
    return r.weekday_range(a, WEEKDAY_NUMBERS[m["x"].lower()])


@rule(rf"\b{IN}\s+(?:the\s+month\s+of\s+)?(?P<x>{MONTH})\b(?!\s*\d|'s\b)")
def _bare_month(m: Match, a: Anchor) -> Reading:
    number = MONTH_NUMBERS[m["x"].lower()]
    return Yearless(r.relative_month(a, number, None), lambda year: r.month_range(year, number))


@rule(rf"\b(?:in|during|over|since)\s+(?:the\s+)?(?P<x>{SEASON})\b(?!\s+of\b)")
def _bare_season(m: Match, a: Anchor) -> Reading:
    number = SEASONS[m["x"].lower()]
    return Yearless(r.relative_season(a, number, None), lambda year: r.season_range(year, number))


@rule(r"\b(?:the\s+)?(?P<y>(?:19|20)\d0)s\b|\bthe\s+(?:(?:early|mid|late)\s+)?['’]?(?P<z>[2-9]0)s\b")
def _decade(m: Match, a: Anchor) -> Range:
    return r.year_range(int(m["y"] or 1900 + int(m["z"])), 10)


@rule(
    rf"\b(?:between\s+|from\s+)?(?P<a>(?:1[5-9]|2[01])\d\d)\s*(?:and|to|until|through|-|–)\s*(?P<b>"
    rf"(?:1[5-9]|2[01])\d\d)\b(?![\d%]|[.:/-]\d){MEASURE}"
)
def _years(m: Match, a: Anchor) -> Range | None:
    first, last = int(m["a"]), int(m["b"])
    return (r.date(first, 1, 1), r.date(last + 1, 1, 1)) if first <= last else None


@rule(rf"\b{IN}\s+(?:the\s+)?(?:year\s+)?(?P<x>{YEAR}){MEASURE}")
def _in_year(m: Match, a: Anchor) -> Range | None:
    return _plain_year(m, a)


@rule(rf"(?<![\w#$€£./:-])(?P<x>{YEAR})(?=[?!.]*\s*$|[,;?!)]\s)")
def _closing_year(m: Match, a: Anchor) -> Range | None:
    # A year that ends its clause ("the Lisbon trip 2023?"), unless the word before says what else the number is.
    before = m.string[max(0, m.start() - 40) : m.start()].lower().split()
    if not 1950 <= int(m["x"]) <= a.now.year + 5 or (before and _NOT_BEFORE_YEAR.search(before[-1])):
        return None
    return r.year_range(int(m["x"]))


_NOT_BEFORE_YEAR: Final = re.compile(
    r"^(?:port|room|error|code|line|version|v|no|number|nr|id|issue|pr|page|model|route|flight|gate"
    r"|extension|ext|pin|unit"
    r"|ticket|bug|case|order|invoice|street|building|apartment|suite|channel|at|is|than|about|only"
    r"|exactly|nearly|over"
    r"|under|cost|costs|paid|pay|worth|build|size|limit|max|min|budget|status|http|rfc|iso|user"
    r"|item|row|timeout)$|[#$€£:/.]$|^\d"
)


def _plain_year(m: Match, a: Anchor) -> Range | None:
    year = int(m["x"])
    word = m.group(0).lower()
    if word.startswith(("of ", "for ", "over ", "around ", "by ", "from ")) and not 1900 <= year <= a.now.year + 20:
        return None  # "a budget of 1200", "over 1500"
    return r.year_range(year) if MIN_YEAR <= year <= MAX_YEAR else None


def _spanned(reader: Reader, m: Match, a: Anchor) -> Found | None:
    try:
        read = reader(m, a)
    except (ValueError, OverflowError, StopIteration, IndexError):
        return None
    if read is None:
        return None
    span, redo = read if isinstance(read, Yearless) else (read, None)
    low, high = span
    if not r.in_bounds((low, high)):
        return None
    # Rules that look at the preposition give the span of the date alone, so that `since` and the like are seen.
    start, end = m.span("x") if reader in _BEHIND_PREPOSITION else m.span()
    return Found(start, end, low, high, redo, reader is _closing_year)


_BEHIND_PREPOSITION: Final = frozenset(
    {
        datespoken.so_long,
        datespoken.end_of_business,
        datespoken.short_year,
        _short_weekday,
        _bare_month,
        _bare_season,
        _in_year,
        _closing_year,
    }
)


def atoms(text: str, anchor: Anchor) -> list[Found]:
    """Single expressions, left to right, none overlapping; an earlier rule wins."""
    found: list[Found] = []
    taken = bytearray(len(text))
    for pattern, reader in RULES:
        for match in pattern.finditer(text):
            start, end = match.span("x") if reader in _BEHIND_PREPOSITION else match.span()
            if any(taken[start:end]):
                continue
            one = _spanned(reader, match, anchor)
            if one is not None:
                found.append(one)
            if one is not None or reader not in _WEAK:  # a weak rule only guessed; a later one may know better
                taken[start:end] = b"\x01" * (end - start)
    return sorted(found, key=lambda f: f.start)


_WEAK: Final = frozenset({_in_units, _closing_year, _years, _in_year, _the_31st, _ordinal})

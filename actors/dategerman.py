"""German date expressions beyond the table of `datelexicon`: parts of a day or period, lengths, spans, `KW 20`.

`vorletzte` is the one before the last, `übernächste` the one after the next. A calendar week without a year is that of
the nearest year.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.dateranges import DAY, Anchor, Range
from recalld.actors.daterules import Match, Rules

_MONTHS: Final = (
    "januar|janner",
    "februar",
    "marz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
)
_MONTH: Final = "(?:" + "|".join(_MONTHS) + ")"
_DAYS: Final = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag")
_WEEKDAY: Final = "(?:" + "|".join(_DAYS) + ")"
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_UNITS: Final = {"tag": "day", "woche": "week", "monat": "month", "jahr": "year", "stunde": "hour", "minute": "minute"}
_UNIT: Final = r"(?P<u>tag|woche|monat|jahr|stunde|minute)(?:e?n|e|s)?"
_NUMBERS: Final = {
    w: i
    for i, w in enumerate(
        (
            "null",
            "ein",
            "zwei",
            "drei",
            "vier",
            "funf",
            "sechs",
            "sieben",
            "acht",
            "neun",
            "zehn",
            "elf",
            "zwolf",
            "dreizehn",
            "vierzehn",
        )
    )
} | {"eine": 1, "einem": 1, "einer": 1, "einen": 1, "zwanzig": 20, "dreissig": 30, "funfzehn": 15}
_N: Final = (
    r"(?P<n>\d{1,4}|(?:ein(?:em)? )?paar|einigen?|wenigen|mehreren?|"
    + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    + ")"
)
_YEAR: Final = r"(?: (?P<y>[12]\d{3}))?"
_PARTS: Final = {
    "morgen": (0, 12),
    "fruh": (0, 12),
    "vormittag": (0, 12),
    "mittag": (12, 18),
    "nachmittag": (12, 18),
    "abend": (17, 24),
    "nacht": (18, 24),
}
_PART: Final = "(?P<p>" + "|".join(_PARTS) + ")"
_STEP: Final = r"(?P<s>letzte|vorige|vergangene|nachste|kommende|diese|ubernachste|vorletzte)[nrsm]?"
GATE: Final = (
    rf"letzte nacht|{_WEEKDAY}(?:morgen|vormittag|nachmittag|abend)|(?:ende|anfang|mitte)|kw ?\d{{1,2}}"
    rf"|kalenderwoche|quartal"
    rf"|(?:vor|uber)(?:letzte|nachste)[nrsm]?|{_DAY}\.(?:0?[1-9]|1[0-2])\.|seit {_N.replace('?P<n>', '?:')}"
    rf"|wochenende|{_MONTH}"
)


def _count(word: str) -> tuple[int, int]:
    if word.isdigit():
        return int(word), int(word)
    if word in _NUMBERS:
        return _NUMBERS[word], _NUMBERS[word]
    return (3, 7) if word.startswith("mehrere") else (2, 4)


def _month(word: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, 1) if re.fullmatch(name, word))


def _weekday(word: str) -> int:
    return next(i for i, name in enumerate(_DAYS) if re.fullmatch(name, word))


def _step(word: str) -> int:
    steps = {"ubernachste": 2, "vorletzte": -2, "nachste": 1, "kommende": 1, "diese": 0}
    return steps.get(word.rstrip("nrsm") if word not in steps else word, -1)


def _part_of_day(m: Match, a: Anchor) -> Range:
    if m["w"]:
        day = r.weekday_range(a, _weekday(m["w"]))[0]
    else:
        day = a.today + {"vorgestern": -2, "gestern": -1, "heute": 0, "morgen": 1, "ubermorgen": 2}[m["d"]] * DAY
    first, last = _PARTS[m["p"]]
    return day + timedelta(hours=first), day + timedelta(hours=last)


def _last_night(m: Match, a: Anchor) -> Range:
    return a.today - timedelta(hours=6), a.today


def _weekday_of_week(m: Match, a: Anchor) -> Range:
    return r.day_range(r.week_range(a.now + 7 * _step(m["s"]) * DAY)[0] + _weekday(m["w"]) * DAY)


def _part(m: Match, a: Anchor) -> Range:
    part = {"ende": "end", "mitte": "middle", "anfang": "beginning"}[m["part"]]
    if m["m"]:
        span = r.month_range(int(m["y"]), _month(m["m"])) if m["y"] else r.relative_month(a, _month(m["m"]), None)
        return r.part_of("month", span, part)
    if m["yy"]:
        return r.part_of("year", r.year_range(int(m["yy"])), part)
    unit = {"woche": "week", "monats": "month", "jahres": "year"}[m["u"]]
    step = _step(m["s"]) if m["s"] else 0
    return r.part_of(unit, r.period(unit, r.shift(unit, a.now, step)), part)


def _ago(m: Match, a: Anchor) -> Range:
    least, most = _count(m["n"])
    return r.ago(_UNITS[m["u"]], a.now, most)[0], r.ago(_UNITS[m["u"]], a.now, least)[1]


def _ahead(m: Match, a: Anchor) -> Range:
    if a.lean < 0:
        raise ValueError("a length")
    least, most = _count(m["n"])
    return r.ago(_UNITS[m["u"]], a.now, -least)[0], r.ago(_UNITS[m["u"]], a.now, -most)[1]


def _so_long(m: Match, a: Anchor) -> Range:
    return r.trailing(_UNITS[m["u"]], a.now, _count(m["n"])[1])


def _days(m: Match, a: Anchor) -> Range:
    last, high = _month(m["m"]), int(m["e"])
    first, low = _month(m["q"]) if m["q"] else last, int(m["d"])
    if m["y"]:
        return r.date(int(m["y"]), first, low), r.date(int(m["y"]), last, high) + DAY
    return r.yearless_day(a, first, low)[0], r.yearless_day(a, last, high)[1]


def _months(m: Match, a: Anchor) -> Range:
    first, last = _month(m["m"]), _month(m["q"])
    year = int(m["y"]) if m["y"] else r.relative_month(a, last, None)[0].year
    return r.month_range(year - (first > last), first)[0], r.month_range(year, last)[1]


def _numeric(m: Match, a: Anchor) -> Range:
    return r.yearless_day(a, int(m["k"]), int(m["d"]))


def _weekend(m: Match, a: Anchor) -> Range:
    this = r.weekend_range(a.now)
    return this if a.lean > 0 or this[0] <= a.now else r.ago("weekend", a.now, 1)


def _calendar_week(m: Match, a: Anchor) -> Range:
    number = int(m["k"])
    years = [int(m["y"])] if m["y"] else [a.now.year - 1, a.now.year, a.now.year + 1]
    weeks = [datetime.fromisocalendar(year, number, 1) for year in years]
    low = min(weeks, key=lambda week: abs(week - a.now))
    return low, low + 7 * DAY


def _stepped(m: Match, a: Anchor) -> Range:
    unit = {"woche": "week", "monat": "month", "jahr": "year", "wochenende": "weekend"}[m["u"]]
    return r.ago(unit, a.now, -_step(m["s"]))


def _month_of_year(m: Match, a: Anchor) -> Range:
    return r.month_range(a.now.year + _step(m["s"]), _month(m["m"]))


def _quarter(m: Match, a: Anchor) -> Range:
    number = ("ers", "zwe", "dri", "vie").index(m["o"][:3]) + 1
    if m["y"]:
        return r.quarter_range(int(m["y"]), number)
    this = r.quarter_range(a.now.year, number)
    return r.quarter_range(a.now.year - 1, number) if a.lean <= 0 and this[0] > a.now else this


def rules() -> Rules:
    """In the order they are tried, before those of the table."""
    templates = [
        (
            rf"(?:vom|zwischen|von)(?: dem)? (?P<d>{_DAY})\.?(?: (?P<q>{_MONTH}))? (?:bis|und)(?: zum"
            rf"| dem)? (?P<e>{_DAY})\.? (?P<m>{_MONTH}){_YEAR}",
            _days,
        ),
        (rf"(?:von|zwischen) (?P<m>{_MONTH}) (?:bis|und) (?P<q>{_MONTH}){_YEAR}", _months),
        (
            rf"(?P<part>ende|anfang|mitte) (?:(?P<m>{_MONTH}){_YEAR}|(?P<yy>[12]\d{{3}})"
            rf"|(?:(?:des|der|dieses) |{_STEP} )(?P<u>woche|monats|jahres))",
            _part,
        ),
        (rf"(?:(?P<d>vorgestern|gestern|heute|morgen|ubermorgen) |(?:am )?(?P<w>{_WEEKDAY}) ?){_PART}", _part_of_day),
        (rf"(?:im )?(?P<m>{_MONTH}) (?:{_STEP}) jahres", _month_of_year),
        (rf"(?:im |das )?(?P<o>erste[nsm]?|zweite[nsm]?|dritte[nsm]?|vierte[nsm]?) quartal{_YEAR}", _quarter),
        (r"(?:in der )?letzten? nacht", _last_night),
        (rf"(?:am )?(?P<w>{_WEEKDAY})(?: in)?(?: der)? {_STEP} woche", _weekday_of_week),
        (r"(?P<s>vorletzte|ubernachste)[nrsm]? (?P<u>woche|monat|jahr|wochenende)", _stepped),
        (rf"vor {_N} {_UNIT}", _ago),
        (rf"(?<!bis )in (?:etwa |rund )?{_N} {_UNIT}(?! \d)", _ahead),
        (rf"(?<=seit ){_N} {_UNIT}", _so_long),
        (rf"(?P<d>{_DAY})\.(?P<k>0?[1-9]|1[0-2])\.(?!\d)", _numeric),
        (r"(?:am|ubers|ums|das) wochenende", _weekend),
        (
            r"(?:in |der )?(?:kw|kalenderwoche|quartal) ?(?P<k>[1-4]\d|5[0-3]"
            r"|0?[1-9])(?:[ /](?P<y>20\d\d))?",
            _calendar_week,
        ),
    ]
    return [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"), reader) for pattern, reader in templates]

"""Spanish date expressions beyond the table of `datelexicon`: parts of a day or period, lengths, spans."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.dateranges import DAY, Anchor, Range
from recalld.actors.daterules import Match, Rules

_MONTHS: Final = (
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre|setiembre",
    "octubre",
    "noviembre",
    "diciembre",
)
_MONTH: Final = "(?:" + "|".join(_MONTHS) + ")"
_WEEKDAYS: Final = ("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo")
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_UNITS: Final = {"dia": "day", "semana": "week", "mes": "month", "ano": "year", "hora": "hour", "minuto": "minute"}
_UNIT: Final = r"(?P<u>dia|semana|mes|ano|hora|minuto)(?:s|es)?"
_NUMBERS: Final = {
    w: i
    for i, w in enumerate(
        (
            "cero",
            "un",
            "dos",
            "tres",
            "cuatro",
            "cinco",
            "seis",
            "siete",
            "ocho",
            "nueve",
            "diez",
            "once",
            "doce",
            "trece",
            "catorce",
            "quince",
        )
    )
} | {"una": 1, "uno": 1, "veinte": 20, "treinta": 30}
_N: Final = (
    r"(?P<n>\d{1,4}|(?:un )?par de|unos(?: pocos)?|unas(?: pocas)?|algun[oa]s|vari[oa]s|poc[oa]s|"
    + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    + ")"
)
_YEAR: Final = r"(?: (?:de|del) (?P<y>[12]\d{3}))?"
GATE: Final = (
    r"anoche|esta (?:manana|tarde|noche)|(?:fin|fines|finales|principios|comienzos|mediados) de|llevo|llevamos"
    r"|lleva|llevan"
    rf"|dentro de|trimestre|hace {_N.replace('?P<n>', '?:')}|{_MONTH}"
)


def _count(word: str) -> tuple[int, int]:
    if word.isdigit():
        return int(word), int(word)
    if "par" in word:
        return 2, 2
    if word in _NUMBERS:
        return _NUMBERS[word], _NUMBERS[word]
    return (3, 7) if word.startswith("vari") else (2, 4)


def _month(word: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, 1) if re.fullmatch(name, word))


def _ago(m: Match, a: Anchor) -> Range:
    least, most = _count(m["n"])
    return r.ago(_UNITS[m["u"]], a.now, most)[0], r.ago(_UNITS[m["u"]], a.now, least)[1]


def _ahead(m: Match, a: Anchor) -> Range:
    least, most = _count(m["n"])
    if m["in"] == "en" and a.lean < 0:
        raise ValueError("a length")
    return r.ago(_UNITS[m["u"]], a.now, -least)[0], r.ago(_UNITS[m["u"]], a.now, -most)[1]


def _weekday_of_week(m: Match, a: Anchor) -> Range:
    step = 0 if m["s"].startswith("est") else -1 if "pasada" in m["s"] or "ultima" in m["s"] else 1
    return r.day_range(r.week_range(a.now + 7 * step * DAY)[0] + _WEEKDAYS.index(m["w"]) * DAY)


def _part(m: Match, a: Anchor) -> Range:
    word = m["part"]
    part = "end" if word.startswith("fin") else "middle" if word.startswith("med") else "beginning"
    if m["m"]:
        span = r.month_range(int(m["y"]), _month(m["m"])) if m["y"] else r.relative_month(a, _month(m["m"]), None)
        return r.part_of("month", span, part)
    if m["yy"]:
        return r.part_of("year", r.year_range(int(m["yy"])), part)
    rest = m["rest"]
    step = -1 if "pasad" in rest or "ultim" in rest else 1 if "proxim" in rest or "viene" in rest else 0
    unit = "month" if "mes" in rest else "year"
    return r.part_of(unit, r.period(unit, r.shift(unit, a.now, step)), part)


def _days(m: Match, a: Anchor) -> Range:
    month, first, last = _month(m["m"]), int(m["d"]), int(m["e"])
    if m["y"]:
        return r.date(int(m["y"]), month, first), r.date(int(m["y"]), month, last) + DAY
    return r.yearless_day(a, month, first)[0], r.yearless_day(a, month, last)[1]


def _months(m: Match, a: Anchor) -> Range:
    first, last = _month(m["m"]), _month(m["q"])
    year = int(m["y"]) if m["y"] else r.relative_month(a, last, None)[0].year
    return r.month_range(year - (first > last), first)[0], r.month_range(year, last)[1]


def _month_of_year(m: Match, a: Anchor) -> Range:
    step = -1 if "pasado" in m["s"] else 0 if "este" in m["s"] else 1
    return r.month_range(a.now.year + step, _month(m["m"]))


def _quarter(m: Match, a: Anchor) -> Range:
    number = ("primer", "segundo", "tercer", "cuarto").index(m["o"]) + 1
    if m["y"]:
        return r.quarter_range(int(m["y"]), number)
    this = r.quarter_range(a.now.year, number)
    return r.quarter_range(a.now.year - 1, number) if a.lean <= 0 and this[0] > a.now else this


def rules() -> Rules:
    """In the order they are tried, before those of the table."""
    templates = [
        (rf"(?:de|del|entre)(?: el)? (?P<d>{_DAY}) (?:al?|y)(?: el)? (?P<e>{_DAY}) de (?P<m>{_MONTH}){_YEAR}", _days),
        (rf"(?:de|desde|entre) (?P<m>{_MONTH}) (?:a|hasta|y) (?P<q>{_MONTH}){_YEAR}", _months),
        (
            r"(?:a |al )?(?P<part>fin|fines|finales|principios?|comienzos?|mediados) (?:de|del) (?:"
            rf"(?P<m>{_MONTH}){_YEAR}|(?P<yy>[12]\d{{3}})"
            r"|(?P<rest>(?:este |el |proximo |ultimo )?(?:mes|ano)(?: pasado| que viene| proximo)?))",
            _part,
        ),
        (
            rf"(?:el )?(?P<w>{'|'.join(_WEEKDAYS)}) de (?P<s>(?:la |esta )?(?:proxima )?semana(?: pasada"
            rf"| que viene| proxima)?)",
            _weekday_of_week,
        ),
        (
            rf"(?:en )?(?P<m>{_MONTH}) (?:del? )(?:(?P<s>ano pasado|proximo ano|ano que viene"
            rf"|este ano))",
            _month_of_year,
        ),
        (rf"(?:el |del )?(?P<o>primer|segundo|tercer|cuarto) trimestre{_YEAR}", _quarter),
        (r"(?P<p>anoche)|esta (?P<q>manana|tarde|noche)", _this_part),
        (rf"hace {_N} {_UNIT}", _ago),
        (rf"(?P<in>dentro de|en) {_N} {_UNIT}(?! de)", _ahead),
        (
            rf"(?<=llevo ){_N} {_UNIT}"
            rf"|(?<=llevamos ){_N.replace('<n>', '<k>')} {_UNIT.replace('<u>', '<v>')}",
            _so_long,
        ),
        (
            rf"(?<!\d de )(?P<m>{_MONTH}) (?:de|del) (?P<y>[12]\d{{3}})",
            lambda m, a: r.month_range(int(m["y"]), _month(m["m"])),
        ),
    ]
    return [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"), reader) for pattern, reader in templates]


def _this_part(m: Match, a: Anchor) -> Range:
    if m["p"]:
        return a.today - timedelta(hours=6), a.today
    first, last = {"manana": (0, 12), "tarde": (12, 18), "noche": (18, 24)}[m["q"]]
    return a.today + timedelta(hours=first), a.today + timedelta(hours=last)


def _so_long(m: Match, a: Anchor) -> Range:
    return r.trailing(_UNITS[m["u"] or m["v"]], a.now, _count(m["n"] or m["k"])[1])

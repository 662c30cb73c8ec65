"""How Chinese, Japanese, Korean, Spanish, German, French, Italian and Portuguese write a date expression out.

The words before the expression belong to it where a language joins them (`de la semana pasada`, `von letzter Woche`):
they are replaced together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recalld.actors.retain.datespans import Shape, parts, season_of, shape_of
from recalld.actors.retain.times import EventTime

Written = tuple[int, int, str]
_ABSOLUTE: Final = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")


def write(one: EventTime, text: str, joined: bool = False) -> Written | None:
    """What to put in the place of an expression, None to leave it."""
    if _ABSOLUTE.search(one.words.translate(_DIGITS)):
        return None
    shape = shape_of(one.low, one.high)
    if (writer := _WRITERS.get(one.language)) is None:
        return None
    return writer(one, text, shape)


_DIGITS: Final = {0xFF10 + i: str(i) for i in range(10)}

# --- Chinese, Japanese, Korean -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cjk:
    """Words of a language whose dates run from year to day."""

    year: str
    month: str
    day: str
    to: str
    weekdays: str
    seasons: tuple[str, ...]
    parts: dict[str, str]
    part_join: str
    gap: str


_CJK: Final = {
    "zh": _Cjk(
        "年",
        "月",
        "日",
        "至",
        "一二三四五六日",
        ("春天", "夏天", "秋天", "冬天"),
        {"morning": "早上", "afternoon": "下午", "evening": "晚上", "night": "晚上"},
        "",
        "",
    ),
    "ja": _Cjk(
        "年",
        "月",
        "日",
        "から",
        "月火水木金土日",
        ("春", "夏", "秋", "冬"),
        {"morning": "朝", "afternoon": "午後", "evening": "夜", "night": "夜"},
        "の",
        "",
    ),
    "ko": _Cjk(
        "년",
        "월",
        "일",
        "~",
        "월화수목금토일",
        ("봄", "여름", "가을", "겨울"),
        {"morning": "아침", "afternoon": "오후", "evening": "저녁", "night": "밤"},
        " ",
        " ",
    ),
}
_WEEKDAY_WORDS: Final = re.compile(
    r"(?:周|週|星期|礼拜|禮拜)[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일"
)
_LENGTH: Final = re.compile(
    r"(?:快|将近|大概|已经)?[\d一二两三四五六七八九十几数]+\s*多?(?:年|个月|か月|ヶ月|週間|个?星期|周)間?"
)
_SEASON_WORDS: Final = re.compile(r"[春夏秋冬]|봄|여름|가을|겨울")
_EDGE: Final = re.compile(
    r"初め$|はじめ$|終わり$|[初中底末头頭]$|上旬$|中旬$|下旬$|上半年$|下半年$|前半$|後半$|초$|말$"
)
_YEARLESS: Final = re.compile(r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})\s*[月월].*")
_DURATION: Final = re.compile(r"(?:最近|过去|過去|近|ここ|この|지난|최근)")
_JA_PARTICLE: Final = re.compile(
    r"^(?:の|は|に|、|，|。|から|まで|も|って|が|を|と|で|以|ご|頃|中|まえ|前|後|付|分|午前|午後|朝|夜|夕|$|[\s！？!?）)」])"
)


def _cjk(one: EventTime, text: str, shape: Shape) -> Written | None:
    c = _CJK[one.language]
    start, end = one.span
    words = one.words
    if _LENGTH.fullmatch(words):
        return None  # "住了三年了" stays the length it is
    put = _cjk_text(words, shape, c)
    if not put:
        return None
    behind = text[end : end + 4]
    # "昨日行った" needs its particle once the day is written out.
    if one.language == "ja" and not _JA_PARTICLE.match(behind) and not put.endswith("に"):
        put += "に"
    return start, end, put


def _cjk_text(words: str, shape: Shape, c: _Cjk) -> str:
    first, last = shape.first, shape.last
    gap = c.gap

    def year(day: datetime) -> str:
        return f"{day.year}{c.year}"

    def month(day: datetime) -> str:
        return f"{year(day)}{gap}{day.month}{c.month}"

    def day(when: datetime) -> str:
        return f"{month(when)}{gap}{when.day}{c.day}"

    def days() -> str:
        if (first.year, first.month) == (last.year, last.month):
            return f"{day(first)}{c.to}{last.day}{c.day}"
        if first.year == last.year:
            return f"{day(first)}{c.to}{last.month}{c.month}{gap}{last.day}{c.day}"
        return f"{day(first)}{c.to}{day(last)}"

    edge = _EDGE.search(words)
    if edge and shape.kind != "weekend":
        whole = year(first) if re.search(r"年|년|해", words) else month(first)
        return f"{whole}{gap}{edge.group()}"
    if re.search(r"季度|四半期", words) and first.year == last.year:
        return words if re.search(r"[12]\d{3}", words) else f"{year(first)}{'の' * (c.to == 'から')}{words}"
    if _YEARLESS.fullmatch(words) and first.year == last.year:
        return f"{year(last)}{gap}{words}"
    if shape.kind in ("day", "part"):
        text = day(first)
        if match := _WEEKDAY_WORDS.search(words):
            name = match.group()
            text += f"{gap}{'周' + name[-1].replace('天', '日') if name[0] in '周週星礼禮' else name}"
        elif shape.kind == "part":
            text += c.part_join + c.parts[parts(shape.low, shape.high)]
        return text
    if shape.kind == "weekend":
        return days() + ("周末" if c.to == "至" else "の週末" if c.to == "から" else " 주말")
    if shape.kind == "month":
        return month(first)
    if shape.kind == "year":
        return year(first)
    season = season_of(shape)
    if season is not None and _SEASON_WORDS.search(words):
        return f"{year(first)}{gap}{c.seasons[season]}"
    if shape.kind == "months":
        if first.year == last.year:
            return f"{month(first)}{c.to}{last.month}{c.month}"
        return f"{month(first)}{c.to}{month(last)}"
    if shape.kind == "years":
        return f"{year(first)}{c.to}{year(last)}"
    if shape.kind in ("week", "days") and not re.search(r"小时|小時|時間|시간|分", words):
        return days()
    return ""


# --- Spanish, German, French, Italian, Portuguese -------------------------------------------------------------------

_MONTHS: Final = {
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split(),  # noqa: SIM905
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),  # noqa: SIM905
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),  # noqa: SIM905
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split(),  # noqa: SIM905
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split(),  # noqa: SIM905
}
_DAYS: Final = {
    "es": "lunes martes miércoles jueves viernes sábado domingo".split(),  # noqa: SIM905
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),  # noqa: SIM905
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche".split(),  # noqa: SIM905
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica".split(),  # noqa: SIM905
    "pt": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo".split(),  # noqa: SIM905
}
_SEASONS: Final = {
    "es": ("primavera", "verano", "otoño", "invierno"),
    "de": ("Frühling", "Sommer", "Herbst", "Winter"),
}
_WEEKDAY: Final = {
    "es": re.compile(r"(?i)\b(?:lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bado|domingo)\b"),
    "de": re.compile(r"(?i)\b\w*(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)"),
    "fr": re.compile(r"(?i)\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b"),
    "it": re.compile(r"(?i)\b(?:luned|marted|mercoled|gioved|venerd|sabato|domenica)"),
    "pt": re.compile(r"(?i)\b(?:segunda|terça|quarta|quinta|sexta|s[áa]bado|domingo)"),
}
_ES_SEASON: Final = re.compile(r"(?i)primavera|verano|oto[ñn]o|invierno")
_DE_SEASON: Final = re.compile(r"(?i)fr[üu]h(?:ling|jahr)|sommer|herbst|winter")

_ES_BEFORE: Final = re.compile(
    r"(?i)(?P<all>(?P<prep>\b(?:de|desde|hasta|en|durante|para|por|a|antes de|después de|entre|y|sobre|tras)\s+)?"
    r"(?P<art>\b(?:el|la|los|las|al|del)\s+)?)$"
)
_ES_PARTS: Final = {"morning": "la mañana", "afternoon": "la tarde", "evening": "la noche", "night": "la noche"}
_VERB_ES: Final = re.compile(r"(?i)^\s+(?:fue|es|será|era|ha sido|va a ser|estuvo)\b")
_CLAUSE: Final = re.compile(r"(?:^|[.!?…:;,\"“(\n¡]\s*)$")


def _capital(put: str, before: str, was: str) -> str:
    return put[:1].upper() + put[1:] if was[:1].isupper() and _CLAUSE.search(before) else put


def _es(one: EventTime, text: str, shape: Shape) -> Written | None:
    start, end = one.span
    # The rules may have taken an article or a preposition into the words.
    lead = re.match(r"(?i)(?:(?:en|durante|desde|de|a)\s+)?(?:(?:el|la|los|las)\s+)?", one.words)
    inner = start + (lead.end() if lead else 0)
    match = _ES_BEFORE.search(text[max(0, inner - 40) : inner])
    opened = inner - len(match["all"]) if match else inner
    prep = ((match["prep"] or "") if match else "").strip().lower()
    article = ((match["art"] or "") if match else "").strip().lower()
    if article in ("del", "al"):
        prep = {"del": "de", "al": "a"}[article]
    months = _MONTHS["es"]

    def month(day: datetime) -> str:
        return f"{months[day.month - 1]} de {day.year}"

    def days(join: str = "al") -> str:
        a, b = shape.first, shape.last
        if (a.year, a.month) == (b.year, b.month):
            return f"{a.day} {join} {b.day} de {month(b)}"
        left = f"{a.day} de {months[a.month - 1]}" + ("" if a.year == b.year else f" de {a.year}")
        return f"{left} {join} {b.day} de {month(b)}"

    words = text[inner:end]
    if _LENGTHS.fullmatch(one.words) and not _RELATIVE.search(one.words) and shape.kind != "day":
        return None
    if year := _yearless(words.rstrip("."), shape, _MONTHS["es"]):
        return start, end, f"{one.words} de {year}"
    if "trimestre" in words:
        return start, end, f"{one.words} de {shape.first.year}"
    kept = re.search(r"(?i)\b(?:a )?(?:fin(?:es|ales)?|principios?|mediados|comienzos?) de(?!l? semana)", words)
    if kept is not None:
        unit = str(shape.first.year) if re.search(r"(?i)año", words) else month(shape.first)
        return inner, end, f"{kept.group()} {unit}"
    kind = shape.kind
    season = season_of(shape)
    if kind in ("day", "part"):
        day = f"{shape.first.day} de {month(shape.first)}"
        if _WEEKDAY["es"].search(words):
            day = f"{_DAYS['es'][shape.first.weekday()]} {day}"
        if kind == "part":
            core, default = f"{_ES_PARTS[parts(shape.low, shape.high)]} del {day}", ""
        else:
            core, default = f"el {day}", ""
    elif kind == "week":
        core, default = f"la semana del {days()}", "en"
    elif kind == "weekend":
        core, default = f"el fin de semana del {days('y' if shape.first.month == shape.last.month else 'al')}", ""
    elif kind == "month":
        core, default = month(shape.first), "en"
    elif kind == "year":
        core, default = str(shape.first.year), "en"
    elif season is not None and _ES_SEASON.search(words):
        article = "la" if season == 0 else "el"
        core, default = f"{article} {_SEASONS['es'][season]} de {_season_year(shape, season)}", "en"
    elif kind == "days":
        core, default = f"entre el {days('y el')}", ""
    elif kind in ("months", "years"):
        a, b = shape.first, shape.last
        core = f"entre {a.year} y {b.year}" if kind == "years" else f"entre {month(a)} y {month(b)}"
        default = ""
    else:
        return None
    if not prep:
        subject = _VERB_ES.match(text[end : end + 12]) and _CLAUSE.search(text[:opened])
        put = core if subject or not default else f"{default} {core}"
    elif prep == "en" and kind in ("day", "days", "part"):
        put = core
    elif prep == "de" and core.startswith("el "):
        put = "del " + core[3:]
    elif prep == "a" and core.startswith("el "):
        put = "al " + core[3:]
    elif kind in ("days", "months", "years") and core.startswith("entre "):
        put = f"{prep} {core.removeprefix('entre ')}"
    else:
        put = f"{prep} {core}"
    return opened, end, _capital(put, text[:opened], text[opened:end])


def _season_year(shape: Shape, season: int) -> str:
    return f"{shape.low.year}/{(shape.low.year + 1) % 100:02}" if season == 3 else str(shape.low.year)


_RELATIVE: Final = re.compile(
    r"(?i)pasad|pr[óo]xim|viene|[úu]ltim|\best[ea]\b|letzt|n[äa]chst|vergang|\bdies|kommend|vorig|fin(?:es"
    r"|ales)?|princip|mediad"
    r"|ende|anfang|mitte|hace|dentro"
)
_LENGTHS: Final = re.compile(
    r"(?i)(?:\d+|\w+)(?: de)? (?:d[íi]as?|semanas?|mes(?:es)?|a[ñn]os?|tag(?:en?)?|wochen?|monat(?:en?)?"
    r"|jahr(?:en?)?)"
)


def _yearless(words: str, shape: Shape, months: list[str]) -> int | None:
    """The year that words ending in a month lack; None for other words."""
    if shape.first.year != shape.last.year or _RELATIVE.search(words) or shape.kind in ("year", "years"):
        return None
    lower = words.lower()
    return shape.last.year if any(lower.endswith(name.lower()) for name in (*months, "setiembre")) else None


_DE_BEFORE: Final = re.compile(
    r"(?i)(?P<all>(?P<prep>\b(?:von|vom|seit|bis|bis zum|bis zur|ab|am|im|in|für|vor|nach|zum|zur|aus|während"
    r"|gegen|an)\s+)?"
    r"(?P<art>\b(?:der|die|das|den|dem|des)\s+)?)$"
)
# What a preposition becomes in front of a day, a week, ...; any other gives way to the usual one.
_DE_DAY: Final = {
    "von": "vom",
    "vom": "vom",
    "aus": "vom",
    "seit": "seit dem",
    "bis": "bis zum",
    "bis zum": "bis zum",
    "ab": "ab dem",
    "für": "für den",
    "vor": "vor dem",
    "nach": "nach dem",
    "zum": "zum",
    "gegen": "gegen den",
}
_DE_WEEK: Final = {
    "aus": "aus der",
    "seit": "seit der",
    "bis": "bis zur",
    "bis zur": "bis zur",
    "für": "für die",
    "ab": "ab der",
    "vor": "vor der",
    "nach": "nach der",
    "während": "während der",
    "zur": "zur",
}
_DE_WEEKEND: Final = {
    "von": "vom",
    "vom": "vom",
    "seit": "seit dem",
    "bis": "bis zum",
    "für": "für das",
    "ab": "ab dem",
    "zum": "zum",
}
_DE_MONTH: Final = {"von": "vom", "vom": "vom", "aus": "vom", "seit": "seit", "bis": "bis", "ab": "ab", "für": "für"}
_DE_YEAR: Final = {
    "von": "von",
    "vom": "von",
    "aus": "von",
    "seit": "seit",
    "bis": "bis",
    "ab": "ab",
    "für": "für",
    "im": "im Jahr",
    "in": "im Jahr",
}
_DE_SEASON_PREP: Final = {"von": "vom", "vom": "vom", "seit": "seit", "bis": "bis zum", "ab": "ab"}
_DE_PARTS: Final = {
    "morning": "am Morgen des",
    "afternoon": "am Nachmittag des",
    "evening": "am Abend des",
    "night": "in der Nacht des",
}
_VERB_DE: Final = re.compile(r"(?i)^\s+(?:war|ist|wird|wäre)\s+(?!ich|er|sie|es|wir|du|ihr|der|die|das|ein)")


def _de(one: EventTime, text: str, shape: Shape) -> Written | None:
    start, end = one.span
    lead = re.match(r"(?i)(?:(?:am|im|in|seit|bis|ab|vom|zum)\s+)?(?:(?:der|die|das|den|dem|des)\s+)?", one.words)
    inner = start + (lead.end() if lead else 0)
    if re.match(r"(?i)vor\s", one.words):
        inner = start
    match = _DE_BEFORE.search(text[max(0, inner - 40) : inner])
    opened = inner - len(match["all"]) if match else inner
    prep = ((match["prep"] or "") if match else "").strip().lower()
    months = _MONTHS["de"]

    def month(day: datetime) -> str:
        return f"{months[day.month - 1]} {day.year}"

    def days(join: str = "bis") -> str:
        a, b = shape.first, shape.last
        if (a.year, a.month) == (b.year, b.month):
            return f"{a.day}. {join} {b.day}. {month(b)}"
        left = f"{a.day}. {months[a.month - 1]}" + ("" if a.year == b.year else f" {a.year}")
        return f"{left} {join} {b.day}. {month(b)}"

    words = text[inner:end]
    if _LENGTHS.fullmatch(one.words) and not _RELATIVE.search(one.words) and shape.kind != "day":
        return None
    if year := _yearless(words.rstrip("."), shape, _MONTHS["de"]):
        return start, end, f"{one.words.rstrip('.')} {year}" + "." * one.words.endswith(".")
    if "quartal" in words.lower():
        return start, end, f"{one.words} {shape.first.year}"
    if (edge := re.search(r"(?i)\b(?:ende|anfang|mitte)\b", words)) and "woche" not in words.lower():
        unit = str(shape.first.year) if "jahr" in words.lower() else month(shape.first)
        return inner, end, f"{edge.group()} {unit}"
    kind = shape.kind
    season = season_of(shape)
    if kind in ("day", "part"):
        day = f"{shape.first.day}. {month(shape.first)}"
        if _WEEKDAY["de"].search(words):
            day = f"{_DAYS['de'][shape.first.weekday()]}, {day}"
        if kind == "part":
            put = f"{_DE_PARTS[parts(shape.low, shape.high)]} {day.partition(', ')[2] or day}"
            if prep not in ("", "am", "in", "an"):
                put = f"{prep} {put.split(' ', 1)[1]}"
        else:
            put = f"{_DE_DAY.get(prep, 'am')} {day}"
    elif kind == "week":
        put = f"Woche vom {days()}"
        if prep in ("von", "vom"):
            put = f"vom {days()}"
        elif not prep and match and (match["art"] or "").strip().lower() in ("der", "die"):
            put = f"{(match['art'] or '').strip()} {put}"
        else:
            put = f"{_DE_WEEK.get(prep, 'in der')} {put}"
    elif kind == "weekend":
        both = days("und" if shape.first.month == shape.last.month else "bis")
        put = f"{_DE_WEEKEND.get(prep, 'am')} Wochenende vom {both}"
    elif kind == "month":
        default = "vom" if match and (match["art"] or "").strip().lower() == "des" else "im"
        put = f"{_DE_MONTH.get(prep, default)} {month(shape.first)}"
    elif kind == "year":
        put = f"{_DE_YEAR.get(prep, 'im Jahr')} {shape.first.year}"
    elif season is not None and _DE_SEASON.search(words):
        put = f"{_DE_SEASON_PREP.get(prep, 'im')} {_SEASONS['de'][season]} {_season_year(shape, season)}"
    elif kind == "days":
        put = f"zwischen {days('und')}" if re.match(r"(?i)vor\s", words) else f"vom {days()}"
    elif kind in ("months", "years"):
        a, b = shape.first, shape.last
        put = f"zwischen {a.year} und {b.year}" if kind == "years" else f"zwischen {month(a)} und {month(b)}"
    else:
        return None
    return opened, end, _capital(put, text[:opened], text[opened:end])


def _plain(
    day: str, week: str, month: str, year: str, before: str
) -> Callable[[EventTime, str, Shape], Written | None]:
    """Days, weeks, months and years of a language by four patterns; anything else stays in its own words.

    `before` matches the articles and prepositions that go with the words; behind any other preposition the words stay.
    """
    pattern = re.compile(rf"(?i)(?P<all>(?:{before})?)$")
    other = re.compile(
        r"(?i)\b(?:de|di|da|do|depuis|jusqu['’]|dal|fino a|desde|até|pour|per|para|du|del|della"
        r"|dell['’])\s*$"
    )

    def writer(one: EventTime, text: str, shape: Shape) -> Written | None:
        start, end = one.span
        match = pattern.search(text[max(0, start - 30) : start])
        opened = start - len(match["all"]) if match else start
        if other.search(text[max(0, opened - 12) : opened]):
            return None
        form = {"day": day, "week": week, "month": month, "year": year}.get(shape.kind)
        if form is None or (re.search(r"\d", one.words) and shape.kind != "day"):
            return None
        if re.fullmatch(r"(?i)\d.*", one.words):
            return None
        names = _MONTHS[one.language]
        a, b = shape.first, shape.last
        put = form.format(
            d=a.day,
            e=b.day,
            w=f"{_DAYS[one.language][a.weekday()]} " if _WEEKDAY[one.language].search(one.words) else "",
            m=names[a.month - 1],
            n=names[b.month - 1],
            y=b.year,
            left="" if (a.year, a.month) == (b.year, b.month) else f" {names[a.month - 1]}",
            leftde="" if (a.year, a.month) == (b.year, b.month) else f" de {names[a.month - 1]}",
        )
        return opened, end, _capital(put, text[:opened], text[opened:end])

    return writer


_WRITERS: Final[dict[str, Callable[[EventTime, str, Shape], Written | None]]] = {
    "zh": _cjk,
    "ja": _cjk,
    "ko": _cjk,
    "es": _es,
    "de": _de,
    "fr": _plain(
        "le {w}{d} {m} {y}",
        "dans la semaine du {d}{left} au {e} {n} {y}",
        "en {m} {y}",
        "en {y}",
        r"\b(?:le|la|l['’])\s*",
    ),
    "it": _plain(
        "il {w}{d} {m} {y}",
        "nella settimana dal {d}{left} al {e} {n} {y}",
        "a {m} {y}",
        "nel {y}",
        r"\b(?:la|il|lo|l['’])\s*",
    ),
    "pt": _plain(
        "em {w}{d} de {m} de {y}",
        "na semana de {d}{leftde} a {e} de {n} de {y}",
        "em {m} de {y}",
        "em {y}",
        r"\b(?:na|no|a|o)\s+",
    ),
}

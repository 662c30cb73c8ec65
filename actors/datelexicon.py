"""Date words of other languages.

Spanish, French, German, Italian, Portuguese, Chinese, Japanese and Korean have tables;
the languages of `FALLBACK` only as a gate in front of the `dateparser` library, which is imported when one opens.

Texts are compared folded (`fold`): lower case, no accents, ASCII digits, each character still at its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from recalld.actors import datecjk, dategerman, datespanish
from recalld.actors import dateranges as r
from recalld.actors.datephrases import Expression
from recalld.actors.dateranges import Anchor, Range
from recalld.actors.daterules import Found, Match, Rules, expressions
from recalld.actors.datewords import Triggers


class _Fold(dict[int, int]):
    def __missing__(self, code: int) -> int:
        character = chr(code)
        if "\uff01" <= character <= "\uff5e":
            character = chr(code - 0xFEE0)
        elif code < 0x0250:
            character = unicodedata.normalize("NFD", character)[0]
        lower = character.lower()
        self[code] = ord(lower) if len(lower) == 1 else code
        return self[code]


_FOLD: Final = _Fold()


def fold(text: str) -> str:
    """Lower case without accents; every character keeps its place."""
    return text.translate(_FOLD)


@dataclass(frozen=True, slots=True)
class _Language:
    """`{u}` stands for a unit or weekday, `{n}` a number, `{m}` a month, `{d}` a day, `{y}` a year. All folded."""

    near: Mapping[int, str]
    units: Mapping[str, str]
    weekdays: str
    months: str
    numbers: Mapping[str, int]
    last: str
    this: str
    next: str
    ago: str
    trailing: str
    day_month: str
    month_in: str
    year_in: str
    since: str
    seasons: str = ""
    bare_weekday: str = "{u}"
    unless: str = ""  # function words of another language that shares gate words


_ROMANCE_DAY: Final = r"{d}(?: de| di|er)? {m}(?: (?:de|del|di) {y}| {y})?"

LANGUAGES: Final[dict[str, _Language]] = {
    "es": _Language(
        near={-2: "anteayer|antier|antes de ayer", -1: "ayer|anoche", 0: "hoy", 2: "pasado manana"}
        | {1: "(?<!la )(?<!esta )(?<!pasado )manana(?! por)"},
        units={"day": "dias?", "weekend": "fin de semana|fines de semana", "week": "semanas?", "month": "mes(?:es)?"}
        | {"year": "anos?"},
        weekdays="lunes martes miercoles jueves viernes sabado domingo",
        months="enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        numbers={"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8}
        | {"nueve": 9, "diez": 10},
        last="{u} pasad[oa]|ultim[oa] {u}|pasad[oa] {u}",
        this="est[ea] {u}",
        next="{u} que viene|proxim[oa] {u}|{u} proxim[oa]",
        ago="hace {n} {u}",
        trailing="ultim[oa]s {n} {u}",
        day_month=_ROMANCE_DAY,
        month_in="(?:en|durante|desde|de) (?:el mes de )?{m}(?: (?:de |del )?{y})?",
        year_in="(?:en|durante|desde|ano) (?:el ano )?{y}",
        since="desde",
        seasons="primavera verano otono invierno",
        bare_weekday="(?:el |(?<=del )|(?<=al )|(?<=, )){u}",
    ),
    "fr": _Language(
        near={-2: "avant-hier", -1: "hier", 0: "aujourd'hui|aujourd’hui", 1: "(?<!apres-)(?<!apres )demain"}
        | {2: "apres-demain|apres demain"},
        units={
            "day": "jours?",
            "weekend": "week-end|weekend",
            "week": "semaines?",
            "month": "mois",
            "year": "ans?|annees?",
        },
        weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
        months="janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        numbers={"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8}
        | {"neuf": 9, "dix": 10},
        last="{u} derniere?|{u} passee?|derniere? {u}",
        this="cet?(?:te)? {u}|{u}-ci",
        next="{u} prochaine?|prochaine? {u}",
        ago="il y a {n} {u}",
        trailing="{n} derni(?:ers|eres) {u}|derni(?:ers|eres) {n} {u}",
        day_month=_ROMANCE_DAY,
        month_in="(?:en|depuis|au mois de|au mois d') ?{m}(?: {y})?|\\b{m} {y}",
        year_in="(?:en|depuis|annee) {y}",
        since="depuis",
        seasons="printemps ete automne hiver",
        unless=r"\b(?:ist|sind|wir|ich|das|der|und|nicht|was|ein|eine)\b",
    ),
    "de": _Language(
        near={
            -2: "vorgestern",
            -1: "gestern",
            0: "heute",
            1: "(?<!guten )(?<!heute )(?<!gestern )morgen",
            2: "ubermorgen",
        },
        units={
            "day": "tag(?:en?)?",
            "weekend": "wochenende",
            "week": "wochen?",
            "month": "monat(?:en?|s)?",
            "year": "jahr(?:en?|s)?",
        },
        weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
        months="januar|janner februar marz april mai juni juli august september oktober november dezember",
        numbers={"ein": 1, "eine": 1, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "funf": 5, "sechs": 6}
        | {"sieben": 7, "acht": 8, "neun": 9, "zehn": 10},
        last="(?:letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?) {u}",
        this="diese[nrsm]? {u}",
        next="(?:nachste[nrsm]?|kommende[nrsm]?) {u}",
        ago="vor {n} {u}",
        trailing="letzten {n} {u}|vergangenen {n} {u}",
        day_month=r"{d}\.? {m}(?: {y})?",
        month_in="(?:im|in|seit|anfang|mitte|ende) {m}(?: {y})?|\\b{m} {y}",
        year_in="(?:im jahre?|seit|seit dem jahr) {y}",
        since="seit",
        seasons="fruhling|fruhjahr sommer herbst winter",
        bare_weekday="(?:am )?{u}",
    ),
    "it": _Language(
        near={
            -2: "l'altro ieri|altroieri|ieri l'altro",
            -1: "(?<!altro )(?<!l'altro )ieri",
            0: "oggi",
            1: "(?<!dopo)domani",
        }
        | {2: "dopodomani"},
        units={
            "day": "giorn[oi]",
            "weekend": "fine settimana|weekend",
            "week": "settiman[ae]",
            "month": "mes[ei]",
            "year": "ann[oi]",
        },
        weekdays="lunedi martedi mercoledi giovedi venerdi sabato domenica",
        months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        numbers={"un": 1, "una": 1, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sei": 6, "sette": 7, "otto": 8}
        | {"nove": 9, "dieci": 10},
        last="{u} scors[oa]|{u} passat[oa]|scors[oa] {u}|ultim[oa] {u}",
        this="quest[oa] {u}|quest'{u}",
        next="prossim[oa] {u}|{u} prossim[oa]",
        ago="{n} {u} fa",
        trailing="ultim[ie] {n} {u}",
        day_month=_ROMANCE_DAY,
        month_in="(?:in|a|ad|da|nel mese di) {m}(?: (?:del )?{y})?|\\b{m} (?:del )?{y}",
        year_in="(?:nel|dal|anno) {y}",
        since="dal|da|dalla",
        seasons="primavera estate autunno inverno",
    ),
    "pt": _Language(
        near={-2: "anteontem", -1: "ontem", 0: "hoje", 1: "(?<!de )(?<!depois de )amanha", 2: "depois de amanha"},
        units={"day": "dias?", "weekend": "fim de semana", "week": "semanas?", "month": "mes(?:es)?", "year": "anos?"},
        weekdays=(
            "segunda(?:-feira)? terca(?:-feira)? quarta(?:-feira)? quinta(?:-feira)? sexta(?:-feira)? sabado domingo"
        ),
        months="janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        numbers={"um": 1, "uma": 1, "dois": 2, "duas": 2, "tres": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7}
        | {"oito": 8, "nove": 9, "dez": 10},
        last="{u} passad[oa]|ultim[oa] {u}",
        this="nest[ea] {u}|est[ea] {u}",
        next="proxim[oa] {u}|{u} que vem",
        ago="ha {n} {u}|{n} {u} atras",
        trailing="ultim[oa]s {n} {u}",
        day_month=_ROMANCE_DAY,
        month_in="(?:em|desde|no mes de) {m}(?: (?:de )?{y})?|\\b{m} de {y}",
        year_in="(?:em|desde|ano de) {y}",
        since="desde",
        seasons="primavera verao outono inverno",
        bare_weekday="n[ao] {u}",
    ),
}

Reader = Callable[[Match, Anchor], Range]


def _step(unit: str, step: int) -> Reader:
    """The unit `step` units ahead of the anchor's own."""
    return lambda m, a: r.ago(unit, a.now, -step)


def _ago(unit: str, count: Callable[[Match], int]) -> Reader:
    return lambda m, a: r.ago(unit, a.now, count(m))


def _trailing(unit: str, count: Callable[[Match], int]) -> Reader:
    return lambda m, a: r.trailing("week" if unit == "weekend" else unit, a.now, count(m))


def _named(relative: Callable[[Anchor, int, int], Range], index: int, step: int) -> Reader:
    """Last, this or next weekday, season or month."""
    return lambda m, a: relative(a, index, step)


def _weekday(index: int) -> Reader:
    return lambda m, a: r.weekday_range(a, index)


def _season_of_year(season: int, field: Callable[[Match, str], str | None]) -> Reader:
    return lambda m, a: r.season_range(int(field(m, "y") or 0), season)


def _gate_words(language: _Language, *more: str) -> str:
    """The alternatives without one of which no rule of the language matches."""
    # "an" is an English word, and a French year only where these stand before it.
    units = [f"(?:{word})".replace("(?:ans?|", "(?:ans|(?:un |l['’])an|") for word in language.units.values()]
    names = f"{language.weekdays} {language.months} {language.seasons}".split()
    return "|".join([*language.near.values(), *units, *names, language.year_in.replace("{y}", r"[12]\d{3}"), *more])


_MORE_RULES: Final = {"es": datespanish.rules, "de": dategerman.rules}
_MORE_GATES: Final = {"es": (datespanish.GATE,), "de": (dategerman.GATE,)}
_EVERY: Final = {
    "es": r"cada|todos los|todas las|los|casi todos los",
    "de": r"jede[nrsm]?|alle",
    "fr": r"chaque|tous les|toutes les",
    "it": r"ogni|tutti i",
    "pt": r"cada|todo|toda|todos os|todas as|aos|as",
}
_BEFORE: Final = {"es": r"antes de|antes del|hasta", "fr": r"avant|jusqu'a|jusqu'au", "it": r"prima di|fino a"} | {
    "pt": r"antes de|ate",
    "de": r"vor dem|vor der",
}


@cache
def _rules(name: str) -> Rules:
    """The rules of one language, compiled when its gate first opens: together they take a tenth of a second."""
    language = LANGUAGES[name]
    weekdays, months = language.weekdays.split(), language.months.split()
    seasons = language.seasons.split()
    number = r"(?P<n>\d{1,6}|" + "|".join(sorted(language.numbers, key=len, reverse=True)) + ")"
    day, year = r"(?P<d>0?[1-9]|[12]\d|3[01])", r"(?P<y>[12]\d{3})(?!\d)"
    rules: Rules = list(_MORE_RULES[name]()) if name in _MORE_RULES else []

    def add(template: str, reader: Reader, **fields: str) -> None:
        for name, value in fields.items():
            template = template.replace("{" + name + "}", value)
        # A field may stand in several branches of one template, and a group has only one name.
        seen: dict[str, int] = {}

        def once(match: Match) -> str:
            seen[match[1]] = seen.get(match[1], 0) + 1
            return match[0] if seen[match[1]] == 1 else f"(?P<{match[1]}{seen[match[1]]}>"

        template = re.sub(r"\(\?P<([a-z])>", once, template)
        rules.append((re.compile(rf"(?<!\w)(?:{template})(?!\w)"), reader))

    def field(m: Match, name: str) -> str | None:
        return next((v for k, v in m.groupdict().items() if k.rstrip("0123456789") == name and v), None)

    def count(m: Match) -> int:
        word = field(m, "n") or "1"
        return int(word) if word.isdigit() else language.numbers[word]

    def position(names: list[str], word: str | None) -> int:
        return next(i for i, name in enumerate(names) if re.fullmatch(name, word or ""))

    any_month = "(?P<m>" + "|".join(months) + ")"

    def month_day(m: Match, a: Anchor) -> Range:
        month, number = position(months, field(m, "m")) + 1, int(field(m, "d") or 1)
        if (given := field(m, "y")) is not None:
            return r.day_range(r.date(int(given), month, number))
        return r.yearless_day(a, month, number)

    def month_in(m: Match, a: Anchor) -> Range:
        month = position(months, field(m, "m")) + 1
        given = field(m, "y")
        return r.month_range(int(given), month) if given else r.relative_month(a, month, None)

    named = rf"(?:(?:{'|'.join(weekdays)}),? (?:den |dem |dia )?)?"
    add(named + f"(?:{language.day_month})", month_day, d=day, m=any_month, y=year)
    for index, name in enumerate(seasons):
        add(f"(?:{name}) (?:de |del |di )?{{y}}", _season_of_year(index, field), y=year)
    for unit, word in language.units.items():
        group = f"(?:{word})"
        add(
            language.trailing,
            _trailing(unit, count),
            n=number,
            u=group,
        )
        add(language.ago, _ago(unit, count), n=number, u=group)
        for template, step in ((language.last, -1), (language.this, 0), (language.next, 1)):
            add(template, _step(unit, step), u=group)
    for names, relative in ((weekdays, r.relative_weekday), (seasons, r.relative_season), (months, r.relative_month)):
        for index, name in enumerate(names):
            number_of = index + 1 if names is months else index
            for template, step in ((language.last, -1), (language.this, 0), (language.next, 1)):
                add(template, _named(relative, number_of, step), u=f"(?:{name})")
    for offset, words in sorted(language.near.items(), key=lambda item: -abs(item[0])):
        add(words, _step("day", offset))
    add(language.month_in, month_in, m=any_month, y=year)
    add(language.year_in, lambda m, a: r.year_range(int(field(m, "y") or 0)), y=year)
    for index, name in enumerate(weekdays):
        add(language.bare_weekday, _weekday(index), u=f"(?:{name})")
    return rules


_GATES: Final = {
    name: re.compile(rf"(?<!\w)(?:{_gate_words(language, *_MORE_GATES.get(name, ()))})(?!\w)")
    for name, language in LANGUAGES.items()
}
# Languages the rules do not know: a gate each, behind it the library. Compared in lower case with their accents,
# because a folded `önce` is English.
_FALLBACK_WORDS: Final = {
    "ru": "вчера|позавчера|сегодня|завтра|назад|прошл\\w+|следующ\\w+|январ\\w+|феврал\\w+|март[ае]?"
    "|апрел\\w+|ма[йя]|июн\\w"
    "|июл\\w|август\\w*|сентябр\\w+|октябр\\w+|ноябр\\w+|декабр\\w+",
    "uk": "вчора|позавчора|сьогодні|тому|минул\\w+|січн\\w+|лют\\w+|берез\\w+|квіт\\w+|трав\\w+|черв\\w+"
    "|лип\\w+|серп\\w+"
    "|верес\\w+|жовт\\w+|листопад\\w*|груд\\w+",
    "nl": "gisteren|eergisteren|vandaag|geleden|afgelopen|vorige|januari|februari|maart|augustus",
    "pl": "wczoraj|przedwczoraj|dzisiaj|jutro|temu|zeszł\\w+|stycznia|lutego|marca|kwietnia|maja|czerwca"
    "|lipca|sierpnia"
    "|września|października|listopada|grudnia",
    "sv": "igår|idag|imorgon|sedan|förra|januari|februari|augusti",
    "tr": "dün|bugün|yarın|önce|geçen|ocak|şubat|nisan|mayıs|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık",
    "id": "kemarin|hari ini|besok|yang lalu|minggu lalu|januari|februari|agustus|desember",
    "ar": "أمس|اليوم|غدا|قبل|الماضي|يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
    "hi": "कल|आज|परसों|पहले|पिछले|जनवरी|फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर",
    "vi": "hôm qua|hôm nay|ngày mai|trước",
    "he": "אתמול|היום|מחר|לפני",
    "th": "เมื่อวาน|วันนี้|พรุ่งนี้|ที่แล้ว",
}
FALLBACK: Final = {
    language: re.compile(words if language == "th" else rf"(?<!\w)(?:{words})(?!\w)")
    for language, words in _FALLBACK_WORDS.items()
}
_ASCII_WORDS: Final = re.compile(
    r"(?<!\w)(?:"
    + "|".join(_gate_words(language, *_MORE_GATES.get(name, ())) for name, language in LANGUAGES.items())
    + "|"
    + "|".join(word for words in _FALLBACK_WORDS.values() for word in words.split("|") if re.fullmatch("[a-z ]+", word))
    + r")(?!\w)",
    re.IGNORECASE,
)


_TRIGGER_WORDS: Final = Triggers(
    re.compile(
        _ASCII_WORDS.pattern.replace(r"(?<!\w)(?:", "(?:", 1).removesuffix(r")(?!\w)")
        # Of the expressions of several words, the one word that is rare in English.
        + r"|settimana|fine|hari|yang|minggu|an|ayer|hier|apres-demain|amanha|ieri|[12]\d{3}"
        r"|esta|hace|llevo|llevamos|fin|fines|finales|principios|comienzos|mediados|dentro|trimestre|quartal|nacht|kw\d*|seit|bis)"
    )
)
_LETTER: Final = re.compile(r"[^\W\d_\x00-\x7f]")  # not ASCII


def may_hold(text: str) -> bool:
    """The gate in front of `find` and `fallback_language`: False is certain, True is not."""
    if _LETTER.search(text) is not None:
        return True
    return _TRIGGER_WORDS.any_in(text) and _ASCII_WORDS.search(text) is not None


def find(text: str, anchor: Anchor) -> list[Expression] | None:
    """Date expressions of the language that reads the most; None when no table's gate opens.

    An expression that is no date after all (100,000 years ago) is not in the list, but it opened the gate, so that no
    other parser is asked about it.
    """
    folded = fold(text)
    opened = False
    if not text.isascii() and datecjk.GATE.search(folded) and (cjk := datecjk.find(folded, anchor)):
        return cjk
    best: list[Expression] = []
    most = 0
    for name, gate in _GATES.items():
        language = LANGUAGES[name]
        if not gate.search(folded) or (language.unless and re.search(language.unless, folded)):
            continue
        opened = True
        found = expressions(folded, _rules(name), anchor)
        # Relatives share words ("mai 2023"): the language that reads the most of the text is the right one.
        if (covered := sum(f.end - f.start for f in found)) > most:
            best = [Expression(f, _word_before(name, folded, f), name) for f in found if f.low < f.high]
            most = covered
    return best if opened else None


def _word_before(name: str, text: str, found: Found) -> str:
    language, before = LANGUAGES[name], text[: found.start]
    since = rf"(?<!\w)(?:{language.since})"
    if re.search(since + r"\s+(?:\w{1,4}\s+)?$", before) or re.match(since + r"\b", text[found.start : found.end]):
        return "since"
    if re.search(rf"(?<!\w)(?:{_EVERY[name]})\s+$", before):
        return "every"
    return "before" if re.search(rf"(?<!\w)(?:{_BEFORE[name]})\s+(?:\w{{1,3}}\s+)?$", before) else ""


def fallback_language(text: str) -> str | None:
    """The language whose date words, unknown to the tables, are in `text`."""
    lower = text.lower()
    return next((language for language, gate in FALLBACK.items() if gate.search(lower)), None)

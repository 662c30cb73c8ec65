"""Date expressions of Chinese, Japanese and Korean: no spaces, Han numerals, years before months before days.

`月底` and `月末` are the last seven days of a month, `年底` and `年末` the last two months of a year, as in
`dategrammar`. `几` and `数` are two to four. What follows `每` or `毎` is a habit and no date. `三年前から` and
`2020年起` run to the anchor; a day with `まで` or `为止` is a border.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.datephrases import Expression, hull
from recalld.actors.dateranges import DAY, Anchor, Range
from recalld.actors.daterules import Found, Match, Rules, expressions

Reader = Callable[[Match, Anchor], Range]

_NUMERALS: Final = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {
    "零": 0,
    "两": 2,
    "兩": 2,
    "数": 3,
    "几": 3,
    "幾": 3,
}
_PLACES: Final = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}


def numeral(text: str) -> int:
    """Digits or Han numerals; large places included, so that 十万 is 100,000 and not ten."""
    if text.isascii():
        return int(text)
    total = section = digit = 0
    for character in text:
        if character.isdecimal():
            digit = digit * 10 + int(character)
        elif character in _NUMERALS:
            digit = _NUMERALS[character]
        elif _PLACES[character] >= 10_000:
            total, section, digit = total + max(section + digit, 1) * _PLACES[character], 0, 0
        else:
            section, digit = section + max(digit, 1) * _PLACES[character], 0
    return total + section + digit


def _count(text: str) -> tuple[int, int]:
    """Least and greatest number a numeral means."""
    if text in ("几", "幾", "数"):
        return 2, 4
    number = numeral(text)
    return number, number


_HAN_DAYS: Final = {c: i for i, c in enumerate("一二三四五六日")} | {
    "天": 6,
    "月": 0,
    "火": 1,
    "水": 2,
    "木": 3,
    "金": 4,
    "土": 5,
}
_DAYS: Final = _HAN_DAYS | {c: i for i, c in enumerate("월화수목금토일")}
_N: Final = (
    r"(?<![0-9〇零一二三四五六七八九十百千万萬億亿])(?P<n>[0-9〇零一二三四五六七八九十百千万萬億亿两兩数几幾]{1,12})"
)
_MONTH: Final = "(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY_OF_MONTH: Final = r"(?:3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_Y: Final = r"(?P<y>[12]\d{3})"
_UNIT_WORDS: Final = {
    "day": "天|日|일",
    "week": "个星期|個星期|个礼拜|個禮拜|个周|週間|周間|星期|礼拜|週|周|주일?",
    "month": "个月|個月|か月|ヶ月|カ月|ヵ月|ケ月|箇月|개월|달",
    "year": "年間|年|년",
    "hour": "个小时|個小時|小时|小時|時間|시간",
    "minute": "分钟|分鐘|分|분",
}
_SEASONS: Final = {c: i for i, c in enumerate("春夏秋冬")} | {"봄": 0, "여름": 1, "가을": 2, "겨울": 3}
_YEARS: Final = {
    "大前年": -3,
    "前年|一昨年|おととし|재작년": -2,
    "去年|昨年|작년|지난해": -1,
    "今年|本年度?|올해": 0,
    "明年|来年|來年|내년": 1,
    "后年|後年|再来年|さ来年": 2,
}
_MONTHS: Final = {
    "上上个?月|上上個月|先々月": -2,
    "上个?月|上個月|先月|지난\\s*달|저번\\s*달": -1,
    "这个?月|這個月|本月|当月|今月|이번\\s*달": 0,
    "下下个?月|再来月": 2,
    "下个?月|下個月|来月|來月|다음\\s*달": 1,
}
_WEEKS: Final = {
    "上上个?周|上上週|上上个?星期|上上个?礼拜|先々週|지지난\\s*주": -2,
    "上个?周|上個?週|上个?星期|上個?星期|上个?礼拜|先週|지난\\s*주|저번\\s*주": -1,
    "这个?周|這個?週|本周|本週|这个?星期|這個?星期|这个?礼拜|今週|이번\\s*주": 0,
    "下下个?周|下下週|下下个?星期|下下个?礼拜|再来週|さ来週": 2,
    "下个?周|下個?週|下个?星期|下個?星期|下个?礼拜|来週|來週|다음\\s*주": 1,
}
_NEAR: Final = {
    "大前天": -3,
    "前天|一昨日|おととい|그저께|그제|엊그제": -2,
    "昨天|昨日|昨儿|きのう|어제": -1,
    "今天|今日(?!は$)|今儿|本日|きょう|오늘": 0,
    "明天|明日|明儿|あした|내일": 1,
    "大后天|大後天|しあさって": 3,
    "后天|後天|明後日|あさって|모레": 2,
}
# Words for a part of a near day: which day, and its hours.
_PARTS: Final = {
    "昨晚|昨夜|昨晩|ゆうべ|어젯밤": (-1, 18, 24),
    "今早|今晨|今朝|けさ": (0, 0, 12),
    "今晚|今夜|今晩|오늘\\s*밤": (0, 18, 24),
    "明早|明晨|明朝": (1, 0, 12),
    "明晚|明晩": (1, 18, 24),
}
_EDGES: Final = {
    "beginning": "初め|はじめ|上旬|初|头|頭|초",
    "middle": "中(?=[，。、\\s]|旬|に|$)|中旬|半ば",
    "end": "終わり|下旬|底|末|终|말",
}


def _step(unit: str, step: int) -> Reader:
    return lambda m, a: r.ago(unit, a.now, -step)


def _weekday_of(offset: int) -> Reader:
    """A weekday of the week `offset` weeks ahead."""
    return lambda m, a: r.day_range(r.week_range(a.now + 7 * offset * DAY)[0] + _DAYS[m["w"]] * DAY)


def _ago(unit: str, sign: int) -> Reader:
    def read(m: Match, a: Anchor) -> Range:
        least, most = _count(m["n"])
        one, other = r.ago(unit, a.now, sign * least), r.ago(unit, a.now, sign * most)
        return min(one[0], other[0]), max(one[1], other[1])

    return read


def _trailing(unit: str) -> Reader:
    return lambda m, a: r.trailing(unit, a.now, _count(m["n"])[1])


def _part_of_day(offset: int, first: int, last: int) -> Reader:
    def read(m: Match, a: Anchor) -> Range:
        day = a.today + offset * DAY
        return day + timedelta(hours=first), day + timedelta(hours=last)

    return read


@cache
def _rules() -> Rules:
    rules: Rules = []

    def add(pattern: str, reader: Reader) -> None:
        rules.append((re.compile(pattern), reader))

    def day(m: Match, a: Anchor) -> Range:
        month, first, last = numeral(m["m"]), numeral(m["d"]), numeral(m["e"] or m["d"])
        if m["y"]:
            return r.date(int(m["y"]), month, first), r.date(int(m["y"]), month, last) + DAY
        return r.yearless_day(a, month, first)[0], r.yearless_day(a, month, last)[1]

    unit = r"\s*(?:日|号|號|일)"
    until = rf"(?:\s*(?:至|到|から|-|–|~|～|、)\s*(?P<e>{_DAY_OF_MONTH}){unit})?"
    weekday = (
        r"(?:\s*[（(]?(?:(?:周|週|星期|礼拜)[一二三四五六日天]|[月火水木金土日]曜日?|[월화수목금토일]요일)[)）]?)?"
    )
    add(rf"(?:{_Y}\s*[年년]\s*)?(?P<m>{_MONTH})\s*[月월]\s*(?P<d>{_DAY_OF_MONTH}){unit}{until}{weekday}", day)
    add(rf"{_Y}\s*[年년]\s*(?P<m>{_MONTH})\s*月?\s*(?:到|至|から|-|–|~|～)\s*(?P<q>{_MONTH})\s*[月월]", _months)
    add(
        rf"{_Y}\s*[年년]\s*の?\s*(?P<s>{'|'.join(_SEASONS)})(?![节節分运運游])[天季]?",
        lambda m, a: r.season_range(int(m["y"]), _SEASONS[m["s"]]),
    )
    add(r"前(?:些|[几幾])天", lambda m, a: (r.ago("day", a.now, 4)[0], r.ago("day", a.now, 2)[1]))
    add(r"过[几幾]天", lambda m, a: (r.ago("day", a.now, -2)[0], r.ago("day", a.now, -4)[1]))
    add(r"元旦", lambda m, a: r.yearless_day(a, 1, 1))
    add(rf"(?:{_Y}\s*年\s*の?)?第?\s*(?P<q>[1-4一二三四])\s*(?:季度|四半期)", _quarter)
    _add_edges(add)
    _add_halves(add)
    add(rf"{_Y}\s*[年년]\s*(?P<m>{_MONTH})\s*[月월]", lambda m, a: r.month_range(int(m["y"]), numeral(m["m"])))
    for words, offset in _YEARS.items():
        _add_year(add, words, offset)
    for name, words in _UNIT_WORDS.items():
        add(rf"(?:最近|过去|過去|近|ここ|この|지난|최근)(?:的|の)?\s*{_N}\s*(?:{words})間?(?!前|전)", _trailing(name))
        add(rf"{_N}\s*(?:多)?(?:{words})\s*(?:以前|之前|前|전)", _ago(name, 1))
        add(rf"{_N}\s*(?:{words})\s*(?:以后|以後|之后|之後|后|後|뒤|후)", _ago(name, -1))
        if name in ("week", "month", "year"):
            # A length up to now: "住了三年了", "三年間…ている".
            add(rf"了\s*(?P<x>(?:快|将近|大概|已经)?{_N}\s*(?:多)?(?:{words}))了", _trailing(name))
            add(
                rf"(?P<x>(?![12]\d{{3}}){_N}\s*(?:{words})間?)(?=[^。]{{0,24}}[てで](?:いる|います|いて|きた|きました))(?!前|後)",
                _trailing(name),
            )
    for words, offset in _WEEKS.items():
        add(rf"(?:{words})(?:末|\s*の?週末|\s*주말|の末)", _step("weekend", offset))
        add(rf"(?:{words})\s*(?P<w>[一二三四五六日天])(?!个|個|些|直|起|定|次|本|月|号)", _weekday_of(offset))
        add(
            rf"(?:{words})\s*の?\s*(?P<w>[月火水木金土日](?=曜)|[월화수목금토일](?=요일))(?:曜日?|요일)",
            _weekday_of(offset),
        )
        add(rf"(?:{words})", _step("week", offset))
    for words, offset in _MONTHS.items():
        add(rf"(?:{words})\s*の?\s*(?P<d>{_DAY_OF_MONTH}){unit}", _day_of_month(offset))
        add(rf"(?:{words})", _step("month", offset))
    for words, (offset, first, last) in _PARTS.items():
        add(rf"(?:{words})", _part_of_day(offset, first, last))
    for words, offset in _NEAR.items():
        add(rf"(?:{words})", _step("day", offset))
    add(rf"(?<!\d){_Y}\s*[年년](?!前|전|以前|之前|後|后|間)", lambda m, a: r.year_range(int(m["y"])))
    add(
        r"(?:周|週|星期|礼拜|禮拜)(?P<w>[一二三四五六日天])(?!年|个|個)",
        lambda m, a: r.weekday_range(a, _HAN_DAYS[m["w"]]),
    )
    add(r"(?P<w>[月火水木金土日])曜日?", lambda m, a: r.weekday_range(a, _HAN_DAYS[m["w"]]))
    add(r"(?P<w>[월화수목금토일])요일", lambda m, a: r.weekday_range(a, _DAYS[m["w"]]))
    add(r"(?<![上下这本个個今来先])(?:周末|週末|주말)", _weekend)
    add(
        rf"(?<![\d年])(?P<m>{_MONTH})\s*[月월](?:份|中)?(?![\d前전曜])(?!\s*間)",
        lambda m, a: r.relative_month(a, numeral(m["m"]), None),
    )
    add(r"(?<![\d月])(?P<d>(?:[12]\d|3[01]|[1-9]))(?:号|號)(?!楼|线|線|机|店|室|院|门|館|棟)", _bare_day)
    return rules


def _months(m: Match, a: Anchor) -> Range:
    return r.month_range(int(m["y"]), numeral(m["m"]))[0], r.month_range(int(m["y"]), numeral(m["q"]))[1]


def _quarter(m: Match, a: Anchor) -> Range:
    number = numeral(m["q"])
    if m["y"]:
        return r.quarter_range(int(m["y"]), number)
    this = r.quarter_range(a.now.year, number)
    return r.quarter_range(a.now.year - 1, number) if a.lean <= 0 and this[0] > a.now else this


def _weekend(m: Match, a: Anchor) -> Range:
    this = r.weekend_range(a.now)
    return this if a.lean > 0 or this[0] <= a.now else r.ago("weekend", a.now, 1)


def _bare_day(m: Match, a: Anchor) -> Range:
    return r.day_of_month(a, int(m["d"]))


def _day_of_month(offset: int) -> Reader:
    def read(m: Match, a: Anchor) -> Range:
        month = r.shift_months(a.today.replace(day=1), offset)
        return r.day_range(r.date(month.year, month.month, numeral(m["d"])))

    return read


def _add_year(add: Callable[[str, Reader], None], words: str, offset: int) -> None:
    def month(m: Match, a: Anchor) -> Range:
        year, number = a.now.year + offset, numeral(m["m"])
        return r.day_range(r.date(year, number, numeral(m["d"]))) if m["d"] else r.month_range(year, number)

    def season(m: Match, a: Anchor) -> Range:
        return r.season_range(a.now.year + offset, _SEASONS[m["s"]])

    add(
        rf"(?:{words})\s*の?\s*(?P<m>{_MONTH})\s*[月월](?:\s*(?P<d>{_DAY_OF_MONTH})\s*(?:日|号|號|일))?(?!前|전)", month
    )
    add(rf"(?:{words})\s*の?\s*(?P<s>{'|'.join(_SEASONS)})(?![节節分运運游])[天季]?", season)
    add(rf"(?<!\d)(?<![万千百十一二三四五六七八九两几数])(?:{words})(?!度|[^，。]{{0,4}}[岁歲])", _step("year", offset))


def _add_edges(add: Callable[[str, Reader], None]) -> None:
    """The beginning, middle and end of a month or a year."""
    for part, edge in _EDGES.items():
        for words, offset in _MONTHS.items():
            add(rf"(?:{words})の?(?:{edge})", _edge("month", offset, part))
        for words, offset in _YEARS.items():
            add(rf"(?:{words})(?:の|年)?(?:{edge})", _edge("year", offset, part))
        add(rf"(?:{_Y}\s*[年년]\s*)?(?P<m>{_MONTH})\s*[月월]\s*の?(?:{edge})", _edge_of_named(part))
        add(rf"{_Y}\s*[年년]\s*の?(?:{edge})", _edge_of_year(part))
        edge = edge.replace("초", "(?!)").replace("말", "(?!)")
        add(rf"(?<![\d个個か年上下这本今来先])月(?:{edge})", _edge("month", 0, part))
        add(rf"(?<![\d去今明前后後])年(?:{edge})(?!年)", _edge("year", 0, part))


def _edge(unit: str, offset: int, part: str) -> Reader:
    return lambda m, a: r.part_of(unit, r.period(unit, r.shift(unit, a.now, offset)), part)


def _edge_of_named(part: str) -> Reader:
    def read(m: Match, a: Anchor) -> Range:
        month = numeral(m["m"])
        return r.part_of(
            "month", r.month_range(int(m["y"]), month) if m["y"] else r.relative_month(a, month, None), part
        )

    return read


def _edge_of_year(part: str) -> Reader:
    return lambda m, a: r.part_of("year", r.year_range(int(m["y"])), part)


def _add_halves(add: Callable[[str, Reader], None]) -> None:
    def half(m: Match, a: Anchor) -> Range:
        offset = next((n for words, n in _YEARS.items() if m["q"] and re.fullmatch(words, m["q"])), 0)
        low = r.date(int(m["y"]) if m["y"] else a.now.year + offset, 1, 1)
        second = m["h"] in ("下", "後", "后")
        return r.shift_months(low, 6 * second), r.shift_months(low, 6 + 6 * second)

    names = "|".join(_YEARS)
    add(rf"(?:{_Y}\s*年\s*|(?P<q>{names})(?:の)?)?(?P<h>[上下])半年", half)
    add(rf"(?:{_Y}\s*年|(?P<q>{names}))の?(?P<h>[前後])半", half)
    add(r"半年\s*(?:以前|之前|前)", lambda m, a: r.ago("month", a.now, 6))
    add(r"半个月\s*(?:以前|之前|前)", lambda m, a: r.day_range(a.now - 15 * DAY))
    add(r"半年\s*(?:以后|之后|后|後)", lambda m, a: r.ago("month", a.now, -6))
    add(r"半(?:个?小时|時間)\s*(?:以前|之前|前)", lambda m, a: r.ago("minute", a.now, 30))


GATE: Final = re.compile(
    r"[季旦年月日周週天晚晩夜朝早曜期春夏秋冬년월일주달제늘레날해号號]|きのう|おととい|あさって|おととし|きょう|あした|けさ|ゆうべ|어제|오늘|내일|모레|요일"
    r"|시간|小时|小時|時間|分钟|分鐘|分前|분"
)
_SINCE: Final = re.compile(r"^\s*(?:以来|以來|から(?!\d|[一二三])|부터|起|至今|开始一直|以降)")
_BORDER: Final = re.compile(r"^\s*(?:为止|為止|まで(?!に)|까지)")
_HABIT: Final = re.compile(r"(?:每|毎)(?:个|個|到)?(?:月|年|周|週|星期)?の?$")
_JOIN: Final = re.compile(r"\s*(?:到|至|から|-|–|~|～|에서|부터)\s*")


def find(text: str, anchor: Anchor) -> list[Expression]:
    """The expressions of a folded text; an empty range holds its place for words that are no date after all."""
    script = "ko" if _HANGUL.search(text) else "ja" if _KANA.search(text) else "zh"
    found = expressions(text, _rules(), anchor)
    if not any(one.low < one.high for one in found):
        return []
    read: list[Expression] = []
    for one in found:
        if one.low >= one.high:
            continue
        before, behind = text[max(0, one.start - 8) : one.start], text[one.end : one.end + 8]
        last = read[-1] if read else None
        if last and last.word in ("", "since", "before") and _JOIN.fullmatch(text, last.found.end, one.start):
            read[-1] = Expression(_spanned(last.found, one, anchor), "", script)
            continue
        word = "every" if _HABIT.search(before) else "since" if _SINCE.match(behind) else ""
        if not word and _BORDER.match(behind) and not _JOIN.search(text, one.start, one.end):
            word = "before"
        read.append(Expression(one, word, script))
    return read


def _spanned(one: Found, other: Found, anchor: Anchor) -> Found:
    """From the first to the second; a first without year that comes after the second is of the year before."""
    if one.low > other.low and one.low.day == 1 and other.high.day == 1:
        one = Found(one.start, one.end, r.shift_months(one.low, -12), r.shift_months(one.high, -12))
    return hull(one, other, anchor.lean > 0)


_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_KANA: Final = re.compile("[\u3041-\u30ff\u3005\u66dc]")

"""How English writes a date expression once it is known which days it means.

`write` replaces the words alone: what stands before them (`since`, `the piece of`) and behind (`'s`, `was`) decides
whether it says "in the week of 4 to 10 May 2026", "the week of ..." or "4 to 10 May 2026".
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.datewords import (
    ANY_WEEKDAY,
    DAY_NUMBER,
    MONTH,
    NUMBER,
    SEASON,
)
from recalld.actors.retain.datespans import Shape, part_of_day, parts, season_of, shape_of
from recalld.actors.retain.times import EventTime

MONTHS: Final = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_WEEKDAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_SEASONS: Final = ("spring", "summer", "autumn", "winter")

Written = tuple[int, int, str]
"""Where in the text, and what to put there."""

_ABSOLUTE: Final = re.compile(r"\d{4}|\b\d0s\b|['’]\d\d\b")
_MONTH_DAY: Final = re.compile(
    rf"(?:(?:the\s+)?week of\s+)?(?:{ANY_WEEKDAY},?\s+)?(?:the\s+)?"
    rf"(?:(?P<d>{DAY_NUMBER})(?:\s*(?:-|–|to|and)\s*{DAY_NUMBER})?\.?(?:\s+of)?[\s-]+{MONTH}\.?"
    rf"|{MONTH}\.?\s+(?:the\s+)?{DAY_NUMBER}(?:\s*(?:-|–|to)\s*{DAY_NUMBER})?)",
    re.IGNORECASE,
)
_MONTH_NAMES: Final = re.compile(rf"(?:.*\b(?:of|in|and|or|to|early|mid|late)[ -]+)?{MONTH}\.?", re.IGNORECASE)
_PART: Final = re.compile(
    r"(?P<part>early|mid|middle of|late|beginning of|start of|end of|by the end of)(?P<sep>[ -]+)(?:the\s+)?"
    rf"(?:(?:last|past|previous|this|next)\s+)?(?P<u>week|month|year|quarter|{MONTH}|{SEASON})",
    re.IGNORECASE,
)
_ORDINAL_OF: Final = re.compile(
    rf"(?P<head>.*\b(?:week|weekend|half|quarter)\s+(?:of|in)\s+)(?:the\s+)?(?:(?:last|past|previous|this|next)\s+)?"
    rf"(?P<u>month|year|{MONTH})",
    re.IGNORECASE,
)
_QUARTER: Final = re.compile(
    r"q[1-4]|(?:the\s+)?(?:first|second|third|fourth|1st|2nd|3rd|4th) (?:quarter"
    r"|half)|h[12]",
    re.I,
)
_SEASON_WORD: Final = re.compile(rf"\b{SEASON}s?\b", re.IGNORECASE)
_HOLIDAY: Final = re.compile(
    r"(?:(?P<step>last|this|next)\s+|(?P<prep>on|at|during|over|for|since|before|after|by|around)\s+)?"
    r"(?P<h>christmas(?: eve| day)?|new year(?:'s|’s)?(?: eve| day)?|halloween|valentine's day"
    r"|thanksgiving(?: day)?|easter(?: sunday| monday)?|good friday)(?: (?:last|this|next) year)?",
    re.IGNORECASE,
)
_EARLIER: Final = re.compile(
    r"(?P<e>earlier|later)\s+(?:in\s+)?(?:(?:this|the|that)\s+(?P<u>week|month|year)"
    r"|today)",
    re.I,
)
_DURATION: Final = re.compile(
    rf"for\s+(?:.*\s)?(?:{NUMBER})\s+(?P<u>day|week|month|year|decade)s?(?: now)?", re.IGNORECASE
)
_OWN_PREPOSITION: Final = re.compile(r"(?:in|over|during|within|for|throughout)\s", re.IGNORECASE)
_VAGUE: Final = re.compile(r"\b(?:ago|back|earlier|from now|time)$", re.IGNORECASE)
_WEEKDAY_WORD: Final = re.compile(rf"\b{ANY_WEEKDAY}\b", re.IGNORECASE)

# What stands right before the words.
_NOUN_AFTER: Final = re.compile(
    r"\b(?:on|in|at|during|over|throughout|within|by|since|until|till|before|after|through|to|around|about"
    r"|than|starting"
    r"|spent|spend|spending|enjoyed|like|as of|past|beyond|between|due|cob|eod|end of day|by close of)\s+$",
    re.IGNORECASE,
)
_BARE_AFTER: Final = re.compile(r"\b(?:of|from|for)\s+$", re.IGNORECASE)
_DETERMINER: Final = re.compile(r"\b(?:the|our|my|your|his|her|their|its|a|an|this|that)\s+$", re.IGNORECASE)
_NOUN_BEHIND: Final = re.compile(
    r"^\s+(?!(?:and|or|but|in|on|at|to|with|for|of|from|by|so|because|when|where|that|which|who|if|as|before"
    r"|after|until"
    r"|since|about|around|over|the|a|an|my|our|his|her|their|your|i|we|he|she|they|it|you|was|were|is|are|will"
    r"|had|has"
    r"|have|did|does|do|would|could|should|can|may|might|then|too|also|already|again|instead|together|morning"
    r"|afternoon"
    r"|evening|night|at)\b)[a-z]+",
)
_JOINED: Final = re.compile(r"^\s*(?:,|and|or|to|-|–)\s*$", re.IGNORECASE)
_CLAUSE_START: Final = re.compile(
    r"(?:^|[.!?…:;,\"“(\n]\s*|\b(?:and|but|so|that|because|think|guess|hope|yes|yeah|until|when)\s+)$", re.IGNORECASE
)
_VERB_BEHIND: Final = re.compile(
    r"^\s+(?:was|is|isn['’]t|wasn['’]t|will|won['’]t|has|had|were|marks|marked|went (?:well|badly|great|fine)"
    r"|felt|feels|looks"
    r"|would|should|works for|might|could|brings|brought)\b",
    re.IGNORECASE,
)
_POSSESSIVE: Final = re.compile(r"^(?:['’]s|['’](?=\s))(?=\s+[^\W\d_])", re.IGNORECASE)
_CONTRACTED_IS: Final = re.compile(
    r"^['’]s\s+(?:the|a|an|my|our|your|his|her|their|not|going|been|got|gonna|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday|when|also)\b",
    re.IGNORECASE,
)
_FIGURATIVE: Final = re.compile(r"^['’]s\s+(?:world|society|market|youth|age|standards)\b", re.IGNORECASE)


def write(one: EventTime, text: str, joined: bool = False) -> Written | None:
    """What to put in the place of an expression, None to leave it. `joined`: another stood right before it."""
    words = one.words
    start, end = one.span
    before, behind = text[max(0, start - 40) : start], text[end : end + 40]
    if _ABSOLUTE.search(words) or _FIGURATIVE.match(behind):
        return None
    shape = shape_of(one.low, one.high)
    if _HAS_YEAR_BEHIND.match(behind):
        return None
    dot = "." if words.endswith(".") and _STOP_BEHIND.match(behind) else ""
    simple = _with_year(words.removesuffix("."), shape) or _inner(words, shape)
    if simple is not None:
        return start, end, _capitalised(simple, words, before) + dot
    noun, bare, preposition = _forms(words, shape)
    if not noun:
        return None
    if _CONTRACTED_IS.match(behind):
        verb = " has" if behind[2:].lstrip().lower().startswith(("been", "got")) else " is"
        return start, end + 2, _capitalised(noun + verb, words, before)
    if possessive := _POSSESSIVE.match(behind):
        article = "" if _DETERMINER.search(before) else "the "
        return start, end + possessive.end(), _capitalised(article + bare, words, before)
    own = _OWN_PREPOSITION.match(words) is not None
    if not own and (_BARE_AFTER.search(before) or (_DETERMINER.search(before) and _NOUN_BEHIND.match(behind))):
        put = bare
    elif not own and (
        joined or _NOUN_AFTER.search(before) or (_VERB_BEHIND.match(behind) and _CLAUSE_START.search(before))
    ):
        put = noun
    else:
        put = f"{preposition} {noun}" if preposition else _standing(words, shape, bare)
    return start, end, _capitalised(put, words, before)


_STOP_BEHIND: Final = re.compile(r"\s*$|\s+[^a-z\d]|\n")
_HAS_YEAR_BEHIND: Final = re.compile(r"^,?\s+(?:of\s+)?[12]\d{3}\b(?!\s*(?:people|users|words|steps))", re.IGNORECASE)


def day_text(day: datetime) -> str:
    """`12 May 2026`."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def days_text(first: datetime, last: datetime, join: str = "to") -> str:
    """`4 to 10 May 2026`, `27 May to 17 June 2026`, `29 December 2025 to 4 January 2026`."""
    if first == last:
        return day_text(first)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day} {join} {day_text(last)}"
    if first.year == last.year:
        return f"{first.day} {MONTHS[first.month - 1]} {join} {day_text(last)}"
    return f"{day_text(first)} {join} {day_text(last)}"


def months_text(first: datetime, last: datetime, join: str = "to") -> str:
    """`February to April 2026`, `November 2025 to January 2026`."""
    year = "" if first.year == last.year else f" {first.year}"
    return f"{MONTHS[first.month - 1]}{year} {join} {MONTHS[last.month - 1]} {last.year}"


def month_text(day: datetime) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


def season_text(shape: Shape, season: int) -> str:
    """`summer of 2025`; a winter has two years."""
    year = f"{shape.low.year}/{(shape.low.year + 1) % 100:02}" if season == 3 else str(shape.low.year)
    return f"{_SEASONS[season]} of {year}"


def _with_year(words: str, shape: Shape) -> str | None:
    """Words that lack nothing but their year, with it; None for others."""
    year = shape.last.year
    if match := _MONTH_DAY.fullmatch(words):
        if shape.first.year != year:
            return None
        return f"{words} {year}" if match["d"] else f"{words}, {year}"
    if _MONTH_NAMES.fullmatch(words) and not re.match(r"last|this|next|past|previous|coming", words, re.IGNORECASE):
        return f"{words} {year}"
    if re.fullmatch(SEASON, words, re.IGNORECASE) and (season := season_of(shape)) is not None:
        return f"{words} of {season_text(shape, season).partition(' of ')[2]}"
    if _QUARTER.fullmatch(words):
        return f"{words} {year}" if len(words) == 2 else f"{words} of {year}"
    if match := _HOLIDAY.fullmatch(words):
        if not match["step"]:
            return f"{re.sub(r'(?i) (?:last|this|next) year$', '', words)} {year}"
        name = match["h"]
        return f"{'on' if re.search(r'(?i)eve|day|ween|giving', name) else 'at'} {name} {year}"
    return None


def _inner(words: str, shape: Shape) -> str | None:
    """Phrases about a part of a period: the period in them is written out."""
    if match := _PART.fullmatch(words):
        if (unit := match["u"].lower()) == "week":
            tail = _week_noun(r.week_range(shape.low))
            part = match["part"]
            if part.lower() == "mid":
                return f"in the middle of {tail}"
            return f"{part} {'in ' if part.lower() in ('early', 'late') else ''}{tail}"
        if unit == "month":
            tail = month_text(shape.first)
        elif unit == "quarter":
            tail = f"Q{(shape.first.month + 2) // 3} {shape.first.year}"
        elif unit == "year":
            tail = str(shape.first.year)
        else:
            tail = f"{match['u']} {'of ' if _SEASON_WORD.fullmatch(unit) else ''}{shape.first.year}"
        return f"{match['part']}{match['sep']}{tail}"
    if match := _ORDINAL_OF.fullmatch(words):
        return match["head"] + (str(shape.first.year) if match["u"].lower() == "year" else month_text(shape.first))
    if match := _EARLIER.fullmatch(words):
        unit = (match["u"] or "day").lower()
        inside = shape.first if match["e"].lower() == "earlier" else shape.last
        whole = {
            "day": f"on {day_text(inside)}",
            "week": f"in {_week_noun(r.week_range(inside))}",
            "month": f"in {month_text(inside)}",
            "year": f"in {inside.year}",
        }
        return f"{match['e']} {whole[unit]}"
    if match := _DURATION.fullmatch(words):
        unit = match["u"].lower()
        if unit in ("day", "week"):
            return words  # a short while says enough
        since = {"month": month_text(shape.first), "year": str(shape.first.year), "decade": str(shape.first.year)}
        return f"{words} (since {since.get(unit, day_text(shape.first))})"
    return None


def _week_noun(span: r.Range) -> str:
    return f"the week of {days_text(span[0], span[1] - r.DAY)}"


def _forms(words: str, shape: Shape) -> tuple[str, str, str]:
    """(as a noun, bare behind `of`, the preposition it stands with) of a range; an empty noun is not written."""
    kind, first, last = shape.kind, shape.first, shape.last
    if words.lower() == "the other day":
        noun = f"the week before {day_text(last + r.DAY)}"
        return noun, noun, "in"
    if kind == "day":
        name = f"{_WEEKDAYS[first.weekday()]} " if _WEEKDAY_WORD.search(words) else ""
        text = name + day_text(first)
        return text, text, "on"
    if kind == "part":
        name = f"{_WEEKDAYS[first.weekday()]} " if _WEEKDAY_WORD.search(words) else ""
        text = name + day_text(first)
        return f"the {parts(shape.low, shape.high)} of {text}", text, "on"
    if kind == "hour":
        if not _VAGUE.search(words):
            return "", "", ""
        text = f"{shape.low:%H}:00 on {day_text(first)}"
        return text, text, "around"
    if kind == "weekend":
        join = "and" if first.month == last.month else "to"
        return f"the weekend of {days_text(first, last, join)}", days_text(first, last, join), "on"
    if kind == "week":
        return _week_noun((shape.low, shape.high)), days_text(first, last), "in"
    if kind == "month":
        return month_text(first), month_text(first), "in"
    if kind == "year":
        return str(first.year), str(first.year), "in"
    season = season_of(shape)
    if season is not None and _SEASON_WORD.search(words):
        text = season_text(shape, season)
        return f"the {text}", text, "in"
    if kind == "months" and "quarter" in words.lower():
        text = f"Q{(first.month + 2) // 3} {first.year}"
        return text, text, "in"
    if kind == "years" and first.year % 10 == 0 and last.year == first.year + 9 and "decade" in words.lower():
        return f"the {first.year}s", f"{first.year}s", "in"
    text = _range_text(words, shape)
    return text, text, ""


def _range_text(words: str, shape: Shape) -> str:
    coarse = re.search(r"\b(month|quarter|year|decade)s?\b", words, re.IGNORECASE)
    if shape.kind == "years":
        return f"{shape.first.year} to {shape.last.year}"
    if shape.kind == "months" or coarse:
        if months_text(shape.first, shape.last).count(" ") < 2:
            return ""
        return months_text(shape.first, shape.last)
    if shape.high - shape.low < r.DAY or re.search(r"\b(?:hour|minute)s?\b", words, re.IGNORECASE):
        return ""
    return days_text(shape.first, shape.last)


def _standing(words: str, shape: Shape, bare: str) -> str:
    """A range of several days, months or years as an adverb: between two when vague, else from one to the other."""
    first, rest = bare.split(" to ", 1) if " to " in bare else (bare, "")
    if not rest:
        return bare
    return f"between {first} and {rest}" if _VAGUE.search(words) else f"from {first} to {rest}"


def _capitalised(put: str, words: str, before: str) -> str:
    """A capital where the words had one at the start of their sentence and the new words do not."""
    named = re.match(rf"(?:{ANY_WEEKDAY}|{MONTH})\b", words, re.IGNORECASE) is not None
    if words[:1].isupper() and put[:1].islower() and (not named or _SENTENCE_START.search(before)):
        return put[0].upper() + put[1:]
    return put


_SENTENCE_START: Final = re.compile(r"(?:^|[.!?…:\n]\s*)$")


def now_text(now: datetime) -> str:
    """`now`, written: `on the evening of 12 June 2026`; without a time of day, the day alone."""
    if now - r.midnight(now) < timedelta(seconds=1):
        return f"on {day_text(now)}"
    return f"on the {part_of_day(now.hour)} of {day_text(now)}"

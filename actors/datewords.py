"""The English vocabulary of dates: names, numbers, pieces of patterns, and the gate in front of the grammar."""

from __future__ import annotations

import re
from typing import Final

_MONTH_NAMES: Final = [
    "january|jan",
    "february|feb",
    "march|mar",
    "april|apr",
    "may",
    "june|jun",
    "july|jul",
    "august|aug",
    "september|sept|sep",
    "october|oct",
    "november|nov",
    "december|dec",
]
MONTH_NUMBERS: Final = {name: i for i, names in enumerate(_MONTH_NAMES, 1) for name in names.split("|")}
_DAY_NAMES: Final = (
    "monday|mon tuesday|tues|tue wednesday|wed thursday|thurs|thur|thu friday|fri saturday|sat sunday|sun"
)
WEEKDAY_NUMBERS: Final = {name: i for i, names in enumerate(_DAY_NAMES.split()) for name in names.split("|")}
SEASONS: Final = {"spring": 0, "summer": 1, "autumn": 2, "fall": 2, "winter": 3}
WORD_NUMBERS: Final = {
    word: i
    for i, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()  # noqa: SIM905
    )
} | {"a": 1, "an": 1, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "hundred": 100, "couple": 2}
TENS: Final = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
VAGUE: Final = {"few": (2, 4), "several": (3, 7)}
ORDINALS: Final = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
HOLIDAYS: Final = {
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "new year's": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
}

MONTH: Final = (
    "(?:january|february|march|april|may|june|july|august|september|october|november|december|jan"
    "|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)"
)
WEEKDAY: Final = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
ANY_WEEKDAY: Final = rf"(?:{WEEKDAY}|mon|tues|tue|wed|thurs|thur|thu|fri|sat|sun)"
SEASON: Final = "(?:spring|summer|autumn|fall|winter)"
UNIT: Final = "(?:day|weekend|week|fortnight|month|quarter|year|decade|hour|minute)"
NUMBER: Final = (
    r"(?:\d{1,6}|(?:a )?couple(?: of)?|(?:a )?few|several|an?|one|two|three|four|five|six|seven"
    r"|eight|nine|ten|eleven|twelve"
    r"|thirteen|fourteen|fifteen|(?:twenty|thirty|forty|fifty|sixty)(?:[ -](?:one|two|three|four|five|six"
    r"|seven|eight|nine))?"
    r"|(?:a )?hundred)"
)
ORDINAL: Final = "(?:first|1st|second|2nd|third|3rd|fourth|4th|last)"
YEAR: Final = r"(?:[12]\d{3})(?![\d%]|[.,:/-]\d)"
LAST: Final = "(?:last|past|previous|this past|this last)"
STEP: Final = rf"(?P<step>{LAST}|this|current|next|coming|this coming|upcoming|following)"
DAY_NUMBER: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
# Nouns that make a number before them a measure and not a year.
MEASURE: Final = (
    r"(?!\s*(?:words?|steps?|people|persons?|users?|miles?|km|kilomet\w+|met(?:er|re)s?|feet|calories"
    r"|dollars?|euros?|pounds?"
    r"|usd|eur|tokens?|lines?|files?|items?|seconds?|minutes?|hours?|days?|weeks?|months?|years?"
    r"|times|degrees?|percent|kg"
    r"|grams?|units?|rows?|records?|requests?|points?|bytes?|[kmg]b|ms|px|rpm|square|different|other"
    r"|more|of (?:them|these|the))\b)"
)
IN: Final = (
    r"(?:in|during|since|until|till|by|before|after|from|around|of|for|throughout|over|back in|as of"
    r"|late|early|mid|year)"
)

# The gate: nothing below is tried without one of these.
GATE: Final = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|ago|now|last|past|previous|this|current|next|coming"
    r"|upcoming|following|since|weeks?|days?|months?|years?|hours?|minutes?|weekends?|fortnights?"
    rf"|{WEEKDAY}|mon|tues?|wed|thu(?:rs?)?|fri|{MONTH}|q[1-4]|quarter|christmas|halloween|new year's|valentine's"
    r"|(?:spring|summer|autumn|fall|winter)|the other day|earlier|later|decade"
    r"|(?:in|during|since|until|till|by|before|after|from|around|of|for|between|throughout|year"
    r"|and|to|as of|early|mid|late)[ -](?:the )?(?:year )?[12]\d{3}"
    r"|[12]\d{3}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./][12]\d{3}|\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d0s"
    r"|beginning|end|middle|eo[dwm]|h[12]|the ['’]?\d0s|easter|thanksgiving|good friday|(?:wk|mth|mo|yr|hr"
    r"|min)s? (?:ago|back)|(?:summer|winter|autumn|fall|spring)s ago)\b"
    r"|['’]\d\d\b"
    r"|[12]\d{3}\W*$",
    re.IGNORECASE,
)


def number_of(text: str) -> tuple[int, int]:
    """Least and greatest number a word means."""
    text = text.lower()
    if text.isdigit():
        return int(text), int(text)
    for word, span in VAGUE.items():
        if word in text:
            return span
    if (tens := re.match(r"(\w+ty)[ -](\w+)$", text)) and tens[1] in TENS:
        number = TENS[tens[1]] + WORD_NUMBERS[tens[2]]
        return number, number
    text = text.removeprefix("a ") if text.startswith("a h") else text
    number = WORD_NUMBERS[text.removeprefix("a ").removesuffix(" of").strip() if "couple" in text else text]
    return number, number


def step_of(text: str) -> int:
    text = text.lower()
    if text in ("this", "current"):
        return 0
    return -1 if text in ("last", "past", "previous", "this past", "this last") else 1


def day_number_of(text: str) -> int:
    return int(re.sub(r"\D", "", text))


# One word, or a number, without which the gate cannot open.
TRIGGER: Final = re.compile(
    r"today|tonight|yesterday|tomorrow|ago|last|past|previous|this|current|next|coming|upcoming|following|since|other"
    rf"|(?:{UNIT})s?|{ANY_WEEKDAY}|{MONTH}|{SEASON}|q[1-4]|earlier|later|christmas|halloween|year's|valentine's"
    r"|beginning|end|middle|early|mid|late|eo[dwm]|easter|thanksgiving|(?:wk|mo|yr|hr|min)s?|good|.*\d.*"
)


class Triggers(dict[str, bool]):
    """Whether a word can open a gate, remembered by word: most texts cost look-ups and no pattern."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._pattern = pattern

    def __missing__(self, word: str) -> bool:
        if len(self) > 100_000:
            self.clear()  # the words of the world never end
        plain = _POSSESSIVE.sub("", word[:64])  # "yesterday's" opens what "yesterday" opens
        self[word] = found = any(self._pattern.fullmatch(one) is not None for one in {word[:64], plain})
        return found

    def any_in(self, text: str) -> bool:
        """Whether some word of `text` is a trigger."""
        return any(map(self.__getitem__, _TOKEN.findall(text.lower())))


_POSSESSIVE: Final = re.compile(r"['’]s?$")
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

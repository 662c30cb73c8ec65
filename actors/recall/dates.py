"""Which stretch of time a question asks about.

A question without date words costs one regular expression. The rules are `dategrammar` (English) and `datelexicon`
(eight more languages); only for the words of yet other languages is the `dateparser` library imported.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from recalld.actors import datelexicon, datelibrary, datephrases
from recalld.actors import dateranges as r
from recalld.actors.datephrases import Expression
from recalld.actors.dateranges import Anchor, Range
from recalld.storage.errors import DateParseError

MAX_QUERY: Final = 2_000  # characters looked at
_OPEN_YEARS: Final = 100  # how far "before 2019" and "after next May" reach
_FUTURE: Final = re.compile(r"\b(?:will|going to|gonna|shall|upcoming|plan(?:s|ned|ning)?|scheduled|due)\b|'ll\b", re.I)
_PAST: Final = re.compile(r"\b(?:did|was|were|had|has|have|happened|went|said|decided)\b", re.I)
_JOINS: Final = re.compile(r"^\s*,?\s*(?:and|or|vs\.?|versus|with|to)\s+(?:the\s+|that of\s+)?(?:in\s+|on\s+)?$", re.I)


def detect_window(query: str, now: int, utc_offset_minutes: int = 0) -> tuple[int, int] | None:
    """The window `query` speaks of, (first, last) in µs since the epoch, both inside; None when it speaks of none.

    Relative words are read from `now` (µs) in the zone of the offset, open ones as past unless the question looks
    ahead. Of several dates the narrowest counts; two joined by `and` give the stretch over both. `since X` ends now,
    `before X` begins 100 years earlier. Raises `DateParseError` when a parser breaks, so that the caller can say so.
    """
    text = query[:MAX_QUERY]
    english = datephrases.may_hold(text)
    if not english and not datelexicon.may_hold(text):
        return None
    try:
        span = _detect(unicodedata.normalize("NFC", text), now, utc_offset_minutes, english)
        if span is None or not r.in_bounds(span):
            return None
        return r.to_micros(span[0], utc_offset_minutes), r.to_micros(span[1], utc_offset_minutes) - 1
    except Exception as error:
        raise DateParseError from error


def _detect(text: str, now: int, offset: int, english: bool) -> Range | None:
    try:
        anchor = Anchor.at(now, offset, lean=_lean(text))
    except OverflowError:
        return None
    found = list(datephrases.find(text, anchor)) if english else []
    # "am 7. Mai 2023": the year alone is what English sees there, so the others may know better.
    if all(one.found.weak for one in found):
        others = datelexicon.find(text, anchor) if datelexicon.may_hold(text) else None
        if others or not found:
            found = others or found
            if others is None and (language := datelexicon.fallback_language(text)):
                found = [Expression(one, "", "") for one in datelibrary.search(text, language, anchor)]
    return _choose(found, text, anchor)


def _lean(text: str) -> int:
    return 1 if _FUTURE.search(text) and not _PAST.search(text) else -1


def _choose(found: list[Expression], text: str, anchor: Anchor) -> Range | None:
    spans: list[tuple[int, int, Range]] = []
    for one in found:
        span = _opened(one, anchor)
        if span is not None and r.in_bounds(span):
            spans.append((one.found.start, one.found.end, span))
    if not spans:
        return None
    if len(spans) == 2 and _JOINS.match(text[spans[0][1] : spans[1][0]]):
        (_, _, one_span), (_, _, other) = spans
        return min(one_span[0], other[0]), max(one_span[1], other[1])
    return min((span for _, _, span in spans), key=lambda span: span[1] - span[0])


def _opened(one: Expression, anchor: Anchor) -> Range | None:
    """The range under the word before it; a habit (`every Friday`) is no date."""
    low, high = one.found.range
    today_over = anchor.today + r.DAY
    if one.word in ("every", "each"):
        return None
    if one.word == "since":
        return (low, max(today_over, high)) if low <= anchor.now else (low, high)
    if one.word == "before":
        return low.replace(year=max(low.year - _OPEN_YEARS, r.MIN_YEAR), day=min(low.day, 28)), low
    if one.word == "after":
        if high <= anchor.now:
            return high, today_over
        return high, high.replace(year=min(high.year + _OPEN_YEARS, r.MAX_YEAR), day=min(high.day, 28))
    return low, high

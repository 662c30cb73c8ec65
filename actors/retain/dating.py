"""A sentence that names its own dates: relative words replaced by the days they mean, in the sentence's language.

"The piece of last week", said on 1 October 2026, becomes "the piece of 21 to 27 September 2026", and `上周的稿子`
becomes `2026年9月21日至27日的稿子`. Words of languages nobody here writes stay, and only the fields carry the range.
Nothing is replaced in a question or a supposition, and neither dates the text.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from recalld.actors.dateranges import Anchor
from recalld.actors.retain import datewriting, datewriting_others, languages, stance
from recalld.actors.retain.sentences import Span, sentence_spans
from recalld.actors.retain.times import EventTime, lean_of, mentions

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dated:
    """A text with its dates written out. `start` and `end` (µs, both inside) are the first event time it states, None
    when it states none; `date_text` the words that gave it; `times` all of them, their spans in the text given.
    `failed`: a parser broke on a sentence, whose dates are missing.
    """

    text: str
    start: int | None = None
    end: int | None = None
    date_text: str = ""
    times: tuple[EventTime, ...] = ()
    failed: bool = False


_NOW: Final = re.compile(r"\b(?:(?:just|right) )?now(?=\s*(?:[.!,;]|$))", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[,;:—–]|\s(?:and|but|so|because|that|when|while|-)\s", re.IGNORECASE)
_STILL_SO: Final = re.compile(
    r"\b(?:by|until|till|since|from|up to|for|every|am|is|are|do|does|be|been|have|has|feels?|likes?|lives?"
    r"|loves?|needs?|wants?|thinks?"
    r"|knows?|looks?|seems?)\b|['’](?:m|re|s|ve)\b",
    re.IGNORECASE,
)
# Captions, code and titles are nobody's statement of a day.
_ASIDE: Final = re.compile(
    r"\[(?i:shares|shared|sent|sends|image|photo|picture|attach)[^\[\]\n]*\]|```.*?(?:```|\Z)|`[^`\n]+`"
    r"|[\"“](?:[A-Z0-9][\w'’]*|of|the|a|an|in|on|and|to|for)(?: (?:[A-Z0-9][\w'’]*|of|the|a|an|in|on|and|to|for))+[\"”]"
    r"|《[^《》\n]*》|『[^『』\n]*』",
    re.DOTALL,
)
_JUST_BEFORE: Final = re.compile(r"\s*(?:,|and|or|to|-|–)?\s*")


def dated(text: str, anchor: int | None, utc_offset_minutes: int = 0, *, write: bool = True) -> Dated:
    """Read the dates of `text` from `anchor` (µs) in the zone of the offset, and write them out unless told not to.

    Without an anchor (the item is undated) only dates that name their year are read, and nothing is written.
    """
    if anchor is None:
        return _absolute(dated(text, _NOWHERE, utc_offset_minutes, write=False), text)
    failed: list[str] = []
    found = mentions(text, anchor, utc_offset_minutes, failed)
    if not found:
        return replace(_with_now(text, anchor, utc_offset_minutes, write), failed=bool(failed))
    spans = sentence_spans(text)
    silent = [span for span in spans if _holds(span, found) and not _states(text[span[0] : span[1]])]
    silent += [match.span() for match in _ASIDE.finditer(text)]
    stated = [one for one in found if not any(a <= one.span[0] < b for a, b in silent)]
    times = tuple(one for one in stated if one.border in ("", "since"))
    put = _written(text, stated) if write else text
    if not times:
        return Dated(put, failed=bool(failed))
    first = times[0]
    return Dated(put, first.start, first.end, first.words, times, bool(failed))


_NOWHERE: Final = 2_524_608_000_000_000  # 2050: no year a text may name as past lies behind it
_YEAR: Final = re.compile(r"[12]\d{3}")


def _absolute(read: Dated, text: str) -> Dated:
    times = tuple(one for one in read.times if _YEAR.search(one.words))
    if not times:
        return Dated(text, failed=read.failed)
    first = times[0]
    # `since 2016` runs to a present nobody knows.
    end = first.end if first.border == "" else first.start + (first.high - first.low) // timedelta(microseconds=1) - 1
    return Dated(text, first.start, end, first.words, times, read.failed)


def read_dates(text: str, anchor: int | None, utc_offset_minutes: int, *, write: bool = True) -> tuple[Dated, bool]:
    """`dated`, and whether reading failed: that costs the dates and is logged; it never costs the fact."""
    try:
        read = dated(text, anchor, utc_offset_minutes, write=write)
        return read, read.failed
    except Exception as error:  # A bug here or in a date library must not lose a memory; the count shows it.
        _log.error("Reading dates failed (%s); the fact is stored without one.", type(error).__name__)
        return Dated(text), True


def _holds(span: Span, found: list[EventTime]) -> bool:
    return any(span[0] <= one.span[0] < span[1] for one in found)


def _states(sentence: str) -> bool:
    if stance.is_question(sentence):
        return False
    language = languages.language_of(sentence)
    return not languages.is_question(sentence, language) and not languages.is_hypothetical(sentence, language)


def _written(text: str, found: list[EventTime]) -> str:
    pieces: list[str] = []
    position = 0
    before = -1
    for one in found:
        if one.border in ("every", "each"):
            continue
        joined = before >= 0 and _JUST_BEFORE.fullmatch(text, before, one.span[0]) is not None
        before = one.span[1]
        writer = datewriting.write if one.language == "en" else datewriting_others.write
        put = writer(one, text, joined) if one.language else None
        if put is None or put[0] < position:
            continue
        pieces += (text[position : put[0]], put[2])
        position = put[1]
    if not position:
        return text
    return "".join((*pieces, text[position:]))


def _with_now(text: str, anchor: int, utc_offset_minutes: int, write: bool) -> Dated:
    """What was just done ("Ana started dinner now") happened at the anchor itself, and says which part of the day."""
    if "now" not in text and "Now" not in text:
        return Dated(text)
    for span in sentence_spans(text):
        sentence = text[span[0] : span[1]]
        match = _NOW.search(sentence)
        if match is None:
            continue
        clause = _CLAUSE.split(sentence[: match.start()])[-1]
        if lean_of(clause) >= 0 or _STILL_SO.search(clause):
            continue
        if not _states(sentence):
            continue
        try:
            now = Anchor.at(anchor, utc_offset_minutes).now
        except OverflowError:
            return Dated(text)
        at = (span[0] + match.start(), span[0] + match.end())
        one = EventTime(anchor, anchor, match.group(), at, now, now)
        put = text[: at[0]] + datewriting.now_text(now) + text[at[1] :] if write else text
        return Dated(put, anchor, anchor, match.group(), (one,))
    return Dated(text)

"""When the things a text tells of happened: its date words as absolute ranges, in the time and zone of the text."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from recalld.actors import datelexicon, datelibrary, datephrases
from recalld.actors import dateranges as r
from recalld.actors.datephrases import Expression
from recalld.actors.dateranges import Anchor
from recalld.actors.retain import languages

MAX_TEXT: Final = 20_000  # characters looked at
MAX_LIBRARY: Final = 500  # characters of one sentence the library is asked about; it is slow

_log: Final = logging.getLogger(__name__)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)\s+|(?<=[。！？])|\n+")
_FUTURE: Final = re.compile(
    r"\b(?:will|won't|going to|gonna|shall|plan(?:s|ning)?|planned|scheduled|upcoming|looking forward"
    r"|can't wait|hope to"
    r"|due|deadline|book(?:ed|ing)|(?:am|is|are|'m|'re|’m|’re) \w+ing|(?:i|we|they|he|she|you)['’]ll"
    r"|need to|have to|must"
    r"|should|remind|let's|tomorrow|next|see you|talk to you|catch you|let me know|meet me|got a)\b",
    re.IGNORECASE,
)
_PAST: Final = re.compile(
    r"\b(?:was|were|wasn't|weren't|did|didn't|had|went|(?<!have )(?<!ve )(?<!has )got|took|made|saw|met|gave"
    r"|came|ran|bought"
    r"|began|had|told|said|felt"
    r"|found|lost|won|left|spent|sent|read|wrote|ate|drove|flew|rode|held|heard|taught|thought|brought"
    r"|caught|built|chose"
    r"|kept|led|paid|sold|slept|sang|spoke|threw|ago|yesterday|last|just \w+ed|(?!need|need|speed"
    r"|feed)[a-z]{3,}ed)\b",
    re.IGNORECASE,
)

# Chinese, Japanese, Spanish and German verbs and particles that look ahead or back.
_FUTURE_OTHERS: Final = re.compile(
    r"[将會]|会(?!议|社|场|員|员|长|見|话|计|館|った|い|う|え)|要(?!求|点|点|素|旨|約|因)|打算|准备|準備|计划|計畫|截止|交稿|予定|つもり|締め切り|締切|までに|しよう|ましょう"
    r"|\b(?:voy|vas|va|vamos|van) a\b|\b\w+(?:aré|eré|iré|ará|erá|irá|aremos|eremos|iremos|arán|erán|irán)\b"
    r"|\b(?:plazo|mañana)\b"
    r"|\b(?:werde|wirst|wird|werden|möchte|soll|muss|müssen|fällig|übermorgen|nächste[nrsm]?)\b",
    re.IGNORECASE,
)
_PAST_OTHERS: Final = re.compile(
    r"了|过(?=[^来去程滤])|過(?=了)|曾|刚|已(?:经)?|(?:した|った|いた|んだ|きた|けた|めた|べた|れた|えた|ました|でした|だった|かった)"
    r"(?![りらいく])|\b\w+(?:ó|(?<![aei]r)é|aron|ieron)\b(?<!qué)(?<!café)(?<!sé)|\b\w{2,}(?:aba|aban|abas|ábamos)\b"
    r"|\b(?!d[ií]a|todav|mar[ií]a|fantas|econom|energ|compañ|polic|garant|librer|panader|alegr)\w{2,}ía[ns]?\b"
    r"|\b(?:fue|fui|fueron|hubo|estuvo|tuvo|hizo|dijo|era|ha|han|he|hemos|fuimos|hicimos|tuvimos|estuvimos"
    r"|vimos|vi|di|dio"
    r"|estuve|tuve|hice|dije|puse|vine|quise|supe|traje)\b(?! de)|\b(?!as[ií]\b|aqu|all[ií]\b|ah[ií]\b|s[ií]\b"
    r"|cas)\w{2,}í\b"
    r"|\b(?:hat|habe|haben|hatte|hatten|bin|ist|sind|wurde|wurden)\b.*\b(?:\w*ge|ver|be|ent|er|zer)\w+(?:t|en)\b"
    r"|\b(?:war|waren|hatte|hatten|wurde|wurden|ging|kam|gab|machte|kaufte|traf|zog|sah|begann|lief|schlief"
    r"|sprach|wohnte"
    r"|reiste|wechselte|arbeitete|schrieb|geboren|fand|starb|verließ|blieb|bekam|brachte|dachte|wusste|las|aß"
    r"|trank|fuhr|flog)\b",
    re.IGNORECASE,
)
# "is blocked" tells how things are, whatever its ending says.
_STATE: Final = re.compile(
    r"\b(?:is|are|isn't|aren't|be|being)\s+(?:not |already |still |now "
    r"|fully )?[a-z]{3,}ed\b",
    re.IGNORECASE,
)
_PRESENT: Final = re.compile(
    r"\b(?:is|are|isn't|aren't|starts?|begins?|opens?|closes?|ends?|leaves?|arrives?|expires?|launches|ships"
    r"|flies|runs"
    r"|takes? place|happens?|comes?|meets?|lands?|returns?|goes|go|has|have|wants?|hopes?|until|till|by|before)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EventTime:
    """One date expression: `start` to `end` in µs since the epoch, both inside, the words, and their span in the text.

    `low` and `high` are the same range as wall time, half open. `border` is the word that makes it no event of its own
    (`before`, `after`, `every`), `since`, or "". `language` is whose words they are, "" when a library read them.
    """

    start: int
    end: int
    words: str
    span: tuple[int, int]
    low: datetime
    high: datetime
    border: str = ""
    language: str = "en"


def resolve(text: str, anchor: int, utc_offset_minutes: int = 0) -> list[EventTime]:
    """Every event time of `text` in order, read from `anchor` (µs) in the zone of the offset.

    The readings are those of `dategrammar`. An open word (`on Friday`, `in June`, `the 31st`) leans the way its
    sentence does: ahead (`will`, `going to`, `due`), back (`went`, `met`), or neither. Habits (`every Friday`) and
    borders (`before June`, `until May`) name no event and give nothing; `since 2016` runs to the anchor.
    """
    return [one for one in mentions(text, anchor, utc_offset_minutes) if one.border in ("", "since")]


def mentions(text: str, anchor: int, utc_offset_minutes: int = 0, failed: list[str] | None = None) -> list[EventTime]:
    """As `resolve`, with habits and borders, which have `border` set. `failed` takes languages whose parser broke."""
    text = text[:MAX_TEXT]
    if not datephrases.may_hold(text) and not datelexicon.may_hold(text):
        return []
    # All rules lean the same way within a sentence, so each is read alone; most hold no date word at all.
    times: list[EventTime] = []
    for piece, shift in _sentences(text):
        for one in _read(piece, anchor, utc_offset_minutes, failed):
            low, high = one.found.range
            until = high
            if one.word == "since":
                now = Anchor.at(anchor, utc_offset_minutes).now
                until = max(r.midnight(now) + r.DAY, high)
            if not r.in_bounds((low, until)):
                continue
            start, end = r.to_micros(low, utc_offset_minutes), r.to_micros(until, utc_offset_minutes) - 1
            span = (shift + one.found.start, shift + one.found.end)
            words = text[span[0] : span[1]]
            times.append(EventTime(start, end, words, span, low, high, one.word, one.language))
    return times


def _sentences(text: str) -> Iterator[tuple[str, int]]:
    start = 0
    for border in _SENTENCE_END.finditer(text):
        yield text[start : border.start()], start
        start = border.end()
    yield text[start:], start


def _read(piece: str, instant: int, offset: int, failed: list[str] | None) -> list[Expression]:
    english = datephrases.may_hold(piece)
    other = datelexicon.may_hold(piece)
    if not english and not other:
        return []
    foreign = other and (not english or languages.language_of(piece) != "en")
    try:
        anchor = Anchor.at(instant, offset, lean_of(piece, foreign))
    except OverflowError:
        return []
    if foreign and english:
        # "Vom 3. bis 15. August": half of it is English too.
        anchor = replace(anchor, day_first=True)
        if mine := datelexicon.find(piece, anchor):
            return mine
    elif "/" in piece and languages.language_of(piece) != "en":
        anchor = replace(anchor, day_first=True)
    found = list(datephrases.find(piece, anchor)) if english else []
    if other and all(one.found.weak for one in found):
        others = datelexicon.find(piece, anchor)
        found = others or found
        if others is None and not found and (language := datelexicon.fallback_language(piece)):
            return _by_library(piece[:MAX_LIBRARY], language, anchor, failed)
    return found


def _by_library(piece: str, language: str, anchor: Anchor, failed: list[str] | None) -> list[Expression]:
    try:
        return [Expression(one, "", "") for one in datelibrary.search(piece, language, anchor)]
    except Exception:
        # A text must not be refused for what a library makes of its dates; a question is louder (`DateParseError`).
        _log.warning("The date parser failed on a sentence in language %s; it is stored without event times.", language)
        if failed is not None:
            failed.append(language)
        return []


def lean_of(sentence: str, others: bool = False) -> int:
    """-1 when the words look back, 1 when they look ahead, 0 when neither or both.

    What is said in the present of a day (`the course starts on Monday`) looks ahead. `others`: by the verbs of other
    languages as well.
    """
    future, past = _FUTURE.search(sentence) is not None, _PAST.search(_STATE.sub("is", sentence)) is not None
    if others:
        future = future or _FUTURE_OTHERS.search(sentence) is not None
        past = past or _PAST_OTHERS.search(sentence) is not None
    if not future and not past:
        # Beside English: what is not told as past, in the present of these languages, is to come.
        return 1 if others else int(_PRESENT.search(sentence) is not None)
    return future - past

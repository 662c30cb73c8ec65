"""From a model's answer to facts: each item checked on its own, what does not hold left out with its reason.

Nothing is taken on trust. A fact must speak of the text, a name must stand in it, a date must be one, an index must
point to an earlier fact. What fails costs the item, or that field of it, and never the rest of the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import structlog

from recalld.actors.retain import model_labels
from recalld.actors.retain.aliases import aliases
from recalld.actors.retain.attributes import NOTHING, read_statement
from recalld.actors.retain.canonical import clean_text
from recalld.actors.retain.dating import dated
from recalld.actors.retain.elliptic import elliptic
from recalld.actors.retain.entities import deduplicated
from recalld.actors.retain.extraction import Dropped, ExtractionInput, Fact, Reading
from recalld.actors.retain.model_prompts import KINDS, ReadingRules
from recalld.actors.retain.polarity import denies
from recalld.actors.retain.sentences import sentences
from recalld.actors.retain.stance import is_question, trust_of
from recalld.actors.retain.turns import single_speaker
from recalld.storage.errors import ModelAnswerUnusable
from recalld.storage.records import EXPERIENCE, OPINION, WORLD, EntityMention

log = structlog.get_logger(__name__)

LONGEST_FACT = 2000
LONGEST_NAME = 120
YEARS_AHEAD = 100
OPINION_CONFIDENCE = 0.6
"""Of an opinion whose holder's certainty the model did not judge."""

_NETWORKS = {
    "world": WORLD,
    "experience": EXPERIENCE,
    "assistant": EXPERIENCE,
    "agent": EXPERIENCE,
    "opinion": OPINION,
    "belief": OPINION,
}
_KIND_WORDS = {
    "PER": "PERSON",
    "PEOPLE": "PERSON",
    "HUMAN": "PERSON",
    "USER": "PERSON",
    "ORGANIZATION": "ORG",
    "ORGANISATION": "ORG",
    "COMPANY": "ORG",
    "TEAM": "ORG",
    "INSTITUTION": "ORG",
    "LOC": "LOCATION",
    "PLACE": "LOCATION",
    "CITY": "LOCATION",
    "COUNTRY": "LOCATION",
    "GPE": "LOCATION",
    "TOOL": "PRODUCT",
    "SOFTWARE": "PRODUCT",
    "OBJECT": "PRODUCT",
}
_FILLER = re.compile(
    r"(?:n/?a|none|null|nil|unknown|not (?:applicable|specified|mentioned|available)|no (?:significant )?(?:new )?"
    r"(?:facts?|information|data)(?: (?:was |were )?(?:found|given|available|provided|present))?|empty|todo|tbd|fact)",
    re.IGNORECASE,
)
_NAMES_NOBODY = (
    "i me my mine myself you your yours he him his she her hers it its we us our ours they them their theirs this that "
    "these those who someone somebody everyone everybody nobody anyone user assistant speaker narrator none unknown n/a"
)
_TELL_NOTHING = (
    "the and was were has had have for not but are his her its they them with that this from been will who what when "
    "where which there then than into about after before because user assistant said says"
)
_COMMON = frozenset(_TELL_NOTHING.split())
_PRONOUNS = frozenset(_NAMES_NOBODY.split())
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DATE = re.compile(r"([+-]?\d{1,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")


@dataclass(frozen=True, slots=True)
class _Source:
    """What an answer may speak of: words and letters of the chunk and of what was said about it."""

    folded: str
    words: frozenset[str]

    @classmethod
    def of(cls, chunk: ExtractionInput) -> _Source:
        given = " ".join(entity.name for entity in chunk.extra_entities)
        folded = _fold("\n".join((chunk.text, chunk.context, chunk.speaker_hint, given)))
        return cls(folded, frozenset(_WORD.findall(folded)))

    def names(self, name: str) -> bool:
        """Whether a name stands in the text, in whole or with one of its words."""
        folded = _fold(name)
        if folded in self.folded:
            return True
        return any(len(word) > 1 and word in self.words for word in _WORD.findall(folded))

    def speaks_of(self, text: str) -> bool:
        """Whether a text shares a telling word with the source; one in another script is not judged."""
        folded = _fold(text)
        if _CJK.search(folded) or _CJK.search(self.folded):
            pairs = {folded[i : i + 2] for i in range(len(folded) - 1) if _CJK.match(folded[i])}
            return not pairs or not _CJK.search(self.folded) or any(pair in self.folded for pair in pairs)
        telling = {word for word in _WORD.findall(folded) if len(word) > 2 or word.isdigit()} - _COMMON
        stems = {word[:4] for word in self.words - _COMMON}
        return not telling or any(word[:4] in stems for word in telling)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def reading_from(parsed: Any, rejected: Sequence[Any], chunk: ExtractionInput, rules: ReadingRules) -> Reading:
    """The facts of one answer. Raises `ModelAnswerUnusable` when it holds items and not one of them can be read.

    `rejected` is what the parsing of the answer left out already: it counts as dropped, so that the receipt says so.
    """
    if rules.mode == "verbatim":
        return _verbatim(parsed, chunk, rules)
    items = parsed.get("facts") if isinstance(parsed, Mapping) else parsed
    if not isinstance(items, list):
        raise ModelAnswerUnusable("The language model's answer holds no list of facts.")
    source = _Source.of(chunk)
    facts: list[Fact] = []
    dropped = [Dropped("", "unreadable in the model's answer") for _ in rejected]
    place: dict[int, int] = {}
    causes: list[tuple[int, Any]] = []
    seen: set[str] = set()
    shapeless = 0
    for index, item in enumerate(items):
        fields = _fields(item)
        if fields is None:
            shapeless += 1
            dropped.append(Dropped("", "unreadable in the model's answer"))
            continue
        text = _one_line(fields.get("text"))
        reason = _refusal(text, source, rules)
        if reason is None and (key := " ".join(_WORD.findall(_fold(text)))) in seen:
            reason = "said twice"
        if reason is not None:
            dropped.append(Dropped(text, reason))
            continue
        seen.add(key)
        place[index] = len(facts)
        causes.append((index, fields.get("caused_by")))
        facts.append(_fact(text, fields, source, chunk, rules, dropped))
    if not facts and (shapeless or (rejected and not items)):
        raise ModelAnswerUnusable("The language model's answer holds facts in a shape that cannot be read.")
    if rules.causal:
        facts = [_caused(fact, *cause, place) for fact, cause in zip(facts, causes, strict=True)]
    return Reading(tuple(facts), tuple(dropped))


def _fields(item: Any) -> Mapping[str, Any] | None:
    """An item's fields under our names; a bare text is a fact without any more."""
    if isinstance(item, str):
        return {"text": item}
    if not isinstance(item, Mapping):
        return None
    for name in ("text", "fact", "what", "content", "statement", "memory"):
        if isinstance(item.get(name), str):
            return {**item, "text": item[name]}
    return None


def _one_line(value: Any) -> str:
    return " ".join(clean_text(value).split()) if isinstance(value, str) else ""


def _refusal(text: str, source: _Source, rules: ReadingRules) -> str | None:
    """Why a text is no fact; None when it is one."""
    bare = text.strip(" .,;:!?-–—_*\"'`()[]{}")
    if not any(character.isalnum() for character in bare):
        return "filler"
    if _FILLER.fullmatch(bare):
        return "filler"
    if len(text) > LONGEST_FACT:
        return "longer than a fact"
    if not rules.language and not source.speaks_of(text):
        return "not in the text"
    return None


def _fact(
    text: str,
    fields: Mapping[str, Any],
    source: _Source,
    chunk: ExtractionInput,
    rules: ReadingRules,
    dropped: list[Dropped],
) -> Fact:
    network = _NETWORKS.get(str(fields.get("network", fields.get("fact_type", ""))).strip().casefold(), WORLD)
    entities, tags = _entities(fields, source, chunk, rules, dropped)
    start, end = _when(fields, source, chunk, dropped)
    date_text = ""
    if rules.mode != "verbatim":
        # Relative words that the model left in its sentence are written out like everybody's; its own dates go first.
        read = dated(text, chunk.anchor, chunk.utc_offset_minutes)
        text, date_text = read.text, read.date_text
        if start is None and end is None:
            start, end = read.start, read.end
    speaker = _person(fields.get("speaker"), source)
    subject = _person(fields.get("subject"), source)
    asks = is_question(text)
    statement = NOTHING if asks or rules.mode == "verbatim" else read_statement(text)
    if not asks and not statement.attribute and rules.mode != "verbatim":
        statement = elliptic(text) if elliptic(text).attribute else statement
    denied = not asks and (statement.denied if statement.attribute else any(map(denies, sentences(text)[:1])))
    # What the sentence claims is read off the sentence, whoever wrote it: a model's keys would be another's words.
    mine = not statement.unreal and (not subject or not statement.subject or _fold(statement.subject) == _fold(subject))
    claims = statement.attribute if mine else ""
    return Fact(
        text=text,
        network=network,
        speaker=speaker or chunk.speaker_hint or single_speaker(chunk.text),
        entities=entities,
        occurred_start=start,
        occurred_end=end,
        date_text=date_text,
        confidence=_confidence(fields.get("confidence")) if network == OPINION else None,
        question=asks,
        trust=trust_of(text),
        subject=subject or (_person(statement.subject, source) if claims else ""),
        attribute=claims,
        value=statement.value if claims else "",
        polarity=-1 if denied else 1,
        aliases=aliases(text, speaker),
        tags=tags,
    )


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return OPINION_CONFIDENCE
    if 1 < value <= 100:
        value = value / 100
    return min(1.0, max(0.0, float(value)))


def _person(value: Any, source: _Source) -> str:
    name = _name(value)
    return name if name and name.casefold() not in _PRONOUNS and source.names(name) else ""


def _name(value: Any) -> str:
    """A name on one line, without quotes around it; "" for what is none."""
    if not isinstance(value, str):
        return ""
    name = " ".join("".join(c if c.isprintable() else " " for c in clean_text(value)).split())
    name = name.strip("\"'`“”‘’<>[]{}*_ ")
    return name if len(name) <= LONGEST_NAME and any(c.isalnum() for c in name) else ""


def _entities(
    fields: Mapping[str, Any], source: _Source, chunk: ExtractionInput, rules: ReadingRules, dropped: list[Dropped]
) -> tuple[tuple[EntityMention, ...], tuple[str, ...]]:
    """The names of a fact: the caller's, then the model's that stand in the text, then its labels."""
    found = list(chunk.extra_entities)
    if rules.free_form:
        for name, kind in _named(fields.get("entities")):
            if not name:
                dropped.append(Dropped("", "blank name"))
            elif name.casefold() in _PRONOUNS:
                continue
            elif not source.names(name):
                dropped.append(Dropped(name, "name not in the text"))
            else:
                found.append(EntityMention(name, kind))
    labels, tags, refused = model_labels.assigned(rules.labels, fields.get("labels"))
    dropped += [Dropped("", f"label outside its vocabulary: {key}"[:80]) for key in refused if rules.labels]
    found += [EntityMention(label, "CONCEPT", exact=True) for label in labels]
    return deduplicated(found), tags


def _named(value: Any) -> Iterator[tuple[str, str]]:
    items = value if isinstance(value, list) else [value] if isinstance(value, str | Mapping) else []
    for item in items:
        if isinstance(item, Mapping):
            kind = str(item.get("kind") or item.get("type") or "").strip().upper()
            name = next((item[k] for k in ("name", "text", "entity") if isinstance(item.get(k), str)), "")
            yield _name(name), kind if kind in KINDS else _KIND_WORDS.get(kind, "CONCEPT")
        else:
            yield _name(item), "CONCEPT"


def _caused(fact: Fact, index: int, value: Any, place: Mapping[int, int]) -> Fact:
    """The fact with its causes: numbers of earlier items that became facts. Others are left out and logged."""
    numbers = value if isinstance(value, list) else [] if value is None else [value]
    good: dict[int, None] = {}
    for number in numbers:
        known = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < index and number in place
        if known:
            good[place[number]] = None
        else:
            log.info("a causal link of a model points to no earlier fact and is left out", fact=index)
    return replace(fact, causes=tuple(good), cause_weights=(1.0,) * len(good)) if good else fact


# -- dates -----------------------------------------------------------------------------------------------------------


def _when(
    fields: Mapping[str, Any], source: _Source, chunk: ExtractionInput, dropped: list[Dropped]
) -> tuple[int | None, int | None]:
    start = instant_range(fields.get("occurred_start"), chunk)
    end = instant_range(fields.get("occurred_end"), chunk)
    if chunk.undated:
        # Without a date of the text only what it spells out can be known.
        start, end = (
            found if found and str(fields.get(name)).strip()[:4] in source.folded else None
            for name, found in (("occurred_start", start), ("occurred_end", end))
        )
        return (None if start is None else start[0]), (end or start or (None, None))[1]
    for name, found in (("occurred_start", start), ("occurred_end", end)):
        if found is None and _one_line(fields.get(name)).casefold() not in ("", "null", "none", "n/a", "unknown"):
            dropped.append(Dropped("", "unreadable or impossible date"))
    if start is None and end is None:
        return None, None
    if start is None or end is None:
        return start or end  # type: ignore[return-value]
    if end[1] < start[0]:
        dropped.append(Dropped("", "end before its start"))
        return start
    return start[0], end[1]


def instant_range(value: Any, chunk: ExtractionInput) -> tuple[int, int] | None:
    """First and last µs of an ISO text, which may be as coarse as a year; None for what is no date.

    Without an offset it is read in the zone of the chunk. Years are bounded: 1 to a century after the text.
    """
    text = _one_line(value)
    if not text:
        return None
    zone = timezone(timedelta(minutes=chunk.utc_offset_minutes))
    try:
        anchor_year = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=chunk.mentioned_at)).year
        coarse = _DATE.fullmatch(text)
        if coarse:
            year, month, day = (None if part is None else int(part) for part in coarse.groups())
            assert year is not None
            if len(coarse[1].lstrip("+-")) < 4:
                return None
            first = datetime(year, month or 1, day or 1, tzinfo=zone)
            last = _next(first, month is not None, day is not None) - timedelta(microseconds=1)
        else:
            first = datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
            first = first.replace(tzinfo=zone) if first.tzinfo is None else first
            last = first
        if not 1 <= first.year <= anchor_year + YEARS_AHEAD:
            return None
        return _micros(first), _micros(last)
    except (ValueError, OverflowError):
        return None


def _next(first: datetime, has_month: bool, has_day: bool) -> datetime:
    if has_day:
        return first + timedelta(days=1)
    if has_month:
        return (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    return first.replace(year=first.year + 1)


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# -- verbatim --------------------------------------------------------------------------------------------------------


def _verbatim(parsed: Any, chunk: ExtractionInput, rules: ReadingRules) -> Reading:
    """The chunk as its own fact, under the description the model gave."""
    text = clean_text(chunk.text)
    if not text.strip():
        return Reading((), (Dropped(chunk.text, "empty"),))
    fields = parsed if isinstance(parsed, Mapping) else {}
    if isinstance(fields.get("facts"), list) and fields["facts"] and isinstance(fields["facts"][0], Mapping):
        fields = fields["facts"][0]
    dropped: list[Dropped] = []
    return Reading((_fact(text, fields, _Source.of(chunk), chunk, rules, dropped),), tuple(dropped))

"""Facts by rules and a small entity model: no language model, no network, the same input always the same facts.

A short turn stays one fact with its words untouched (`Speaker: text`); a long one, and prose, fall into passages that
stand alone. What is dropped is dropped with a reason.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recalld.actors.retain import cleaning
from recalld.actors.retain.canonical import clean_text
from recalld.actors.retain.entities import PERSON, deduplicated, find_entities
from recalld.actors.retain.extraction import Dropped, ExtractionInput, Fact, Reading
from recalld.actors.retain.ner import NerModel, shared_model
from recalld.actors.retain.sentences import passages, sentence_spans, weight
from recalld.actors.retain.stance import (
    follows_from_before,
    is_question,
    network_of,
    speaks_of_oneself,
    trust_of,
)
from recalld.actors.retain.turns import (
    SYSTEM,
    TOOL,
    USER,
    Turn,
    is_generic,
    role_of,
    single_speaker,
    speaker_in_context,
    turns_of,
)
from recalld.storage.records import EntityMention

if TYPE_CHECKING:
    from recalld.actors.retain.times import EventTime

_log = logging.getLogger(__name__)
_SHORTEST_ANSWER = 28
"""An answer up to this length says nothing without its question."""


@dataclass(frozen=True, slots=True)
class _Saying:
    """One fact to be: its text as stored, the words without the speaker's name, and where they came from."""

    text: str
    said: str
    turn: Turn


class LocalExtractor:
    """The extractor that needs no language model. Holds no state of a chunk; share it between threads."""

    def __init__(self, model: NerModel | None = None) -> None:
        self._model = model or shared_model()

    def read(self, chunk: ExtractionInput) -> Reading:
        """The facts of a chunk and what was left out of it."""
        hint = chunk.speaker_hint or speaker_in_context(chunk.context)
        turns, dropped = _turns(chunk, hint)
        facts: list[Fact] = []
        undated = 0
        for saying in _sayings(turns):
            fact, failed = self._fact(saying, chunk)
            undated += failed
            if facts and follows_from_before(saying.said):
                fact = replace(fact, causes=(len(facts) - 1,))
            facts.append(fact)
        return Reading(tuple(facts), tuple(dropped), undated)

    def _fact(self, saying: _Saying, chunk: ExtractionInput) -> tuple[Fact, bool]:
        turn = saying.turn
        network, confidence = network_of(saying.said, turn.role)
        question = is_question(saying.said)
        when, failed = event_time(
            saying.said,
            chunk.mentioned_at if turn.at is None else turn.at,
            chunk.utc_offset_minutes if turn.utc_offset_minutes is None else turn.utc_offset_minutes,
        )
        fact = Fact(
            text=saying.text,
            network=network,
            speaker=turn.speaker,
            entities=self.entities(saying.said, turn.speaker, chunk.extra_entities),
            occurred_start=when[0],
            occurred_end=when[1],
            confidence=confidence,
            question=question,
            trust=trust_of(saying.said),
            mentioned_at=turn.at,
        )
        return fact, failed

    def entities(self, said: str, speaker: str, given: tuple[EntityMention, ...]) -> tuple[EntityMention, ...]:
        """Names given by the caller, the speaker, then the names in the words; one each."""
        named = () if not speaker or is_generic(speaker) else (EntityMention(speaker, PERSON),)
        return deduplicated((*given, *named, *find_entities(said, self._model)))


class VerbatimExtractor:
    """Mode `verbatim`: the fact is the chunk's text as it stands; entities, dates and speaker by the local rules."""

    def __init__(self, model: NerModel | None = None) -> None:
        self._local = LocalExtractor(model)

    def read(self, chunk: ExtractionInput) -> Reading:
        """One fact, or none of a chunk that says nothing."""
        text = clean_text(chunk.text)
        if cleaning.is_empty(text):
            return Reading((), (Dropped(chunk.text, "empty"),))
        speaker = single_speaker(text)
        said = text
        turns = turns_of(text, chunk.utc_offset_minutes)
        if speaker and turns is not None:
            said = "\n".join(turn.text for turn in turns)
        speaker = speaker or chunk.speaker_hint or ("" if turns else speaker_in_context(chunk.context))
        anchor = next((turn.at for turn in turns or [] if turn.at is not None), chunk.mentioned_at)
        network, confidence = network_of(said, role_of(speaker))
        when, failed = event_time(said, anchor, chunk.utc_offset_minutes)
        fact = Fact(
            text=text,
            network=network,
            speaker=speaker,
            entities=self._local.entities(said, speaker, chunk.extra_entities),
            occurred_start=when[0],
            occurred_end=when[1],
            confidence=confidence,
            question=is_question(said),
            trust=trust_of(said),
        )
        return Reading((fact,), (), int(failed))


def event_time(said: str, anchor: int, utc_offset_minutes: int) -> tuple[tuple[int | None, int | None], bool]:
    """The first time the words state (not ask) as (start, end), and whether the reader of dates failed.

    A failure costs the date and is logged; it never costs the fact.
    """
    from recalld.actors.retain.times import resolve

    try:
        found: list[EventTime] = resolve(said, anchor, utc_offset_minutes)
    except Exception as error:  # A date library's bug must not lose a memory; the count shows it.
        _log.error("Reading dates failed (%s); the fact is stored without one.", type(error).__name__)
        return (None, None), True
    if found:
        asked = [(start, end) for start, end in sentence_spans(said) if is_question(said[start:end])]
        for event in found:
            at = event.span[0]
            if not any(start <= at < end for start, end in asked):
                return (event.start, event.end), False
    return (None, None), False


def _turns(chunk: ExtractionInput, hint: str) -> tuple[list[Turn], list[Dropped]]:
    """The turns worth keeping, named as well as is known; prose is one turn of the hinted speaker."""
    text = cleaning.strip_transport(clean_text(chunk.text))
    dropped: list[Dropped] = []
    whole = cleaning.drop_reason(text)
    if whole is not None:
        return [], [Dropped(chunk.text, whole)]
    found = turns_of(text, chunk.utc_offset_minutes)
    if found is None:
        # A name goes before prose only where "I" would otherwise be nobody.
        named = bool(hint) and not is_generic(hint) and speaks_of_oneself(text)
        return [Turn(hint, role_of(hint), text.strip(), named=named)], []
    kept: list[Turn] = []
    for turn in found:
        if turn.role in (SYSTEM, TOOL):
            dropped.append(Dropped(turn.text, "system prompt" if turn.role == SYSTEM else "tool output"))
            continue
        words = cleaning.strip_transport(clean_text(turn.text)).strip()
        reason = cleaning.drop_reason(words)
        if reason is not None:
            dropped.append(Dropped(turn.text, reason))
            continue
        speaker = hint if turn.role == USER and hint and is_generic(turn.speaker) else turn.speaker
        kept.append(replace(turn, text=words, speaker=speaker))
    return kept, dropped


def _sayings(turns: list[Turn]) -> list[_Saying]:
    sayings: list[_Saying] = []
    for index, turn in enumerate(turns):
        before = sayings[-1] if sayings else None
        if (
            before is not None
            and weight(turn.text) <= _SHORTEST_ANSWER
            and turns[index - 1].speaker != turn.speaker
            and before.turn is turns[index - 1]
            and is_question(before.said)
            and not is_question(turn.text)
        ):
            # Neither half says anything alone: the exchange is the fact, and it is the answerer's.
            sayings[-1] = _Saying(f"{before.text}\n{turn.rendered()}", f"{before.said}\n{turn.text}", turn)
            continue
        for passage in passages(turn.text):
            if not cleaning.is_empty(passage):
                sayings.append(_Saying(replace(turn, text=passage).rendered(), passage, turn))
    return sayings

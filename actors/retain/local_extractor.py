"""Facts by rules and a small entity model: no language model, no network, the same input always the same facts.

A unit is one claim or one exchange. Words of talk stay as they were said, behind their speaker's name; what is only
transport or filler is left out with a reason, and a long text falls into passages that stand alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from recalld.actors.retain import cleaning, languages, phatic
from recalld.actors.retain.aliases import aliases
from recalld.actors.retain.attributes import NOTHING, Statement
from recalld.actors.retain.canonical import clean_text
from recalld.actors.retain.causes import cue_of
from recalld.actors.retain.claims import pieces
from recalld.actors.retain.dating import read_dates
from recalld.actors.retain.elliptic import elliptic
from recalld.actors.retain.entities import (
    MOST,
    deduplicated,
    find_entities,
    fold_name,
    one_kind_each,
    weighed_entities,
)
from recalld.actors.retain.entity_kinds import PERSON
from recalld.actors.retain.entity_latin import surely
from recalld.actors.retain.exchanges import exchanges
from recalld.actors.retain.extraction import Dropped, ExtractionInput, Fact, Reading
from recalld.actors.retain.mail import is_disclaimer, read_mail
from recalld.actors.retain.ner import NerModel, shared_model
from recalld.actors.retain.polarity import denies
from recalld.actors.retain.sentences import sentences
from recalld.actors.retain.stance import is_question, network_of, speaks_of_oneself, trust_of
from recalld.actors.retain.subjects import Recent, named, subject_of
from recalld.actors.retain.turns import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Turn,
    is_generic,
    role_of,
    single_speaker,
    speaker_in_context,
    turns_of,
    without_cues,
)
from recalld.storage.records import EntityMention

_NAMES_DAY = re.compile(r"\b(?:tomorrow|tonight|next \w+|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)


_SPEAKS = 8.0
"""What it says of a name's kind that its bearer speaks."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """A turn, and why it is not kept alone: it may still be what settles an exchange."""

    turn: Turn
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Saying:
    """One fact to be. `said`: its words without the speaker's name; `telling`: the words that say when it was and
    whether it is denied (of an exchange, those that settle it); `text`: as stored."""

    text: str
    said: str
    turn: Turn
    statements: tuple[Statement, ...] = ()
    telling: str = ""
    corrects: bool = False
    exchange: bool = False


class LocalExtractor:
    """The extractor that needs no language model. Holds no state of a chunk; share it between threads."""

    def __init__(self, model: NerModel | None = None) -> None:
        self._model = model or shared_model()

    def read(self, chunk: ExtractionInput) -> Reading:
        """The facts of a chunk and what was left out of it."""
        return _Chunk(chunk, self._model).read()

    def entities(self, said: str, speaker: str, given: tuple[EntityMention, ...]) -> tuple[EntityMention, ...]:
        """Names given by the caller, the speaker, then the names in the words; one each."""
        return deduplicated((*given, *_speaker(speaker), *find_entities(said, self._model)))


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
        anchor = next((turn.at for turn in turns or [] if turn.at is not None), chunk.anchor)
        network, confidence = network_of(said, role_of(speaker))
        when, failed = read_dates(said, anchor, chunk.utc_offset_minutes, write=False)
        fact = Fact(
            text=text,
            network=network,
            speaker=speaker,
            entities=self._local.entities(said, speaker, chunk.extra_entities),
            occurred_start=when.start,
            occurred_end=when.end,
            date_text=when.date_text,
            confidence=confidence,
            question=is_question(said),
            trust=trust_of(said),
        )
        return Reading((fact,), (), int(failed))


class _Chunk:
    """One chunk being read: what was dropped so far, and who was named lately."""

    def __init__(self, chunk: ExtractionInput, model: NerModel) -> None:
        self._chunk = chunk
        self._model = model
        self._dropped: list[Dropped] = []
        self._names: dict[str, tuple[EntityMention, ...]] = {}
        self._recent = Recent()
        self._latin = surely(chunk.text)
        self._weighed: list[tuple[EntityMention, float]] = []

    def read(self) -> Reading:
        facts: list[Fact] = []
        undated = 0
        for saying in self._sayings(self._heard()):
            fact, failed = self._fact(saying, facts)
            undated += failed
            facts.append(fact)
        return Reading(tuple(_linked(self._agreed(facts))), tuple(self._dropped), undated)

    def _find(self, text: str) -> tuple[EntityMention, ...]:
        weighed = weighed_entities(text, self._model, self._latin)
        self._weighed += weighed
        return deduplicated(mention for mention, _ in weighed)[:MOST]

    def _agreed(self, facts: list[Fact]) -> list[Fact]:
        """The facts with one kind for each name; whoever speaks is a person."""
        speakers = {fact.speaker for fact in facts if fact.speaker and not is_generic(fact.speaker)}
        kinds = one_kind_each([*self._weighed, *((EntityMention(name, PERSON), _SPEAKS) for name in speakers)])
        given = {fold_name(mention.name) for mention in self._chunk.extra_entities}
        agreed = []
        for fact in facts:
            names = tuple(
                mention
                if mention.exact or (key := fold_name(mention.name)) in given
                else replace(mention, kind=kinds.get(key, mention.kind))
                for mention in fact.entities
            )
            agreed.append(fact if names == fact.entities else replace(fact, entities=names))
        return agreed

    # --- turns --------------------------------------------------------------------------------------------------

    def _heard(self) -> list[_Heard]:
        """The turns, named as well as is known; prose is one turn of the hinted speaker."""
        chunk = self._chunk
        hint = chunk.speaker_hint or speaker_in_context(chunk.context)
        text = without_cues(cleaning.strip_transport(clean_text(chunk.text)))
        whole = cleaning.drop_reason(text)
        if whole is not None:
            self._dropped.append(Dropped(chunk.text, whole))
            return []
        mail = read_mail(text)
        if mail is not None:
            self._dropped += mail.dropped
            return [self._judged(turn, hint) for turn in mail.turns]
        found = turns_of(text, chunk.utc_offset_minutes)
        if found is None:
            # A name goes before prose only where "I" would otherwise be nobody.
            named_first = bool(hint) and not is_generic(hint) and speaks_of_oneself(text)
            return [self._judged(Turn(hint, role_of(hint), text.strip(), named=named_first), "")]
        heard = [self._judged(turn, hint) for turn in found]
        if len(heard) == 1 and heard[0].reason == "filler" and _NAMES_DAY.search(heard[0].turn.text):
            return [replace(heard[0], reason=None)]  # "See you tomorrow!", sent alone, is all that is known of a plan
        return heard

    def _judged(self, turn: Turn, hint: str) -> _Heard:
        if turn.role in (SYSTEM, TOOL):
            return _Heard(turn, "system prompt" if turn.role == SYSTEM else "tool output")
        words = cleaning.without_disfluencies(cleaning.strip_transport(clean_text(turn.text)).strip())
        reason = cleaning.drop_reason(words)
        if reason is None and len(words) < 400:
            if cleaning.says_nothing(sentences(words), assistant=turn.role == ASSISTANT) or (
                not turn.speaker and cleaning.says_nothing_labelled(words)
            ):
                reason = "filler"
            elif is_disclaimer(words) and len(words) < 300 and turn.role != USER:
                reason = "disclaimer"
        speaker = hint if turn.role == USER and hint and is_generic(turn.speaker) else turn.speaker
        return _Heard(replace(turn, text=words, speaker=speaker), reason)

    # --- sayings ------------------------------------------------------------------------------------------------

    def _sayings(self, heard: list[_Heard]) -> list[_Saying]:
        # "Pending." alone is the word of a form, and an answer behind a question.
        told = [one for one in heard if one.reason in (None, "filler", "boilerplate")]
        self._dropped += [Dropped(one.turn.text, one.reason) for one in heard if one.reason and one not in told]
        ranges = exchanges([one.turn for one in told]) if len(told) > 1 else []
        sayings: list[_Saying] = []
        at = 0
        for first, last in [*ranges, (len(told), len(told))]:
            for one in told[at:first]:
                alone = len(told) > 1 and cleaning.is_bare_answer(one.turn.text)
                if one.reason is not None or alone:
                    self._dropped.append(Dropped(one.turn.text, one.reason or "filler"))
                else:
                    sayings += self._of_turn(one.turn)
            if first < len(told) and _idle(told[first : last + 1]):
                self._dropped += [Dropped(one.turn.text, "filler") for one in told[first : last + 1]]
            elif first < len(told):
                sayings.append(self._exchange(told[first : last + 1]))
            at = last + 1
        return sayings

    def _of_turn(self, turn: Turn) -> list[_Saying]:
        names = self._find(turn.text)
        people = frozenset(name.name.casefold() for name in names if name.kind == PERSON)
        sayings: list[_Saying] = []
        for piece in pieces(turn.text, people, talk=bool(turn.speaker)):
            if piece.reason is not None or cleaning.is_empty(piece.text):
                self._dropped.append(Dropped(piece.text, piece.reason or "empty"))
                continue
            said = named(piece.text, self._recent, turn.speaker)
            folded = said.casefold().replace(".", "")
            own = tuple(name for name in names if name.name.casefold().replace(".", "") in folded)
            if said is not piece.text:
                own = self._find(said)
            self._names[said] = own
            self._recent.hear(said, [name.name for name in own if name.kind == PERSON], turn.speaker)
            text = replace(turn, text=said).rendered()
            sayings.append(_Saying(text, said, turn, piece.statements, said, piece.corrects))
        return sayings

    def _exchange(self, told: list[_Heard]) -> _Saying:
        turns = [one.turn for one in told]
        said = "\n".join(turn.text for turn in turns)
        last = next((one.turn for one in reversed(told) if one.reason is None), turns[-1])
        telling = next(
            (turn.text for turn in reversed(turns) if turn is not turns[0] and not cleaning.is_phatic(turn.text)),
            turns[-1].text,
        )
        return _Saying("\n".join(turn.rendered() for turn in turns), said, last, (), telling, exchange=True)

    # --- facts --------------------------------------------------------------------------------------------------

    def _fact(self, saying: _Saying, before: list[Fact]) -> tuple[Fact, bool]:
        chunk, turn, said = self._chunk, saying.turn, saying.said
        names = self._names.get(said)
        if names is None:
            names = self._find(said)
        question = is_question(said) or (not saying.exchange and _asks_only(said))
        network, confidence = (
            network_of(said, turn.role) if not saying.exchange else network_of(saying.telling, turn.role)
        )
        when, failed = read_dates(
            saying.telling,
            chunk.anchor if turn.at is None else turn.at,
            chunk.utc_offset_minutes if turn.utc_offset_minutes is None else turn.utc_offset_minutes,
        )
        main = _main(saying.statements)
        if not main.attribute and not saying.exchange:
            changed = elliptic(said)
            main = changed if changed.attribute else main
        people = frozenset(name.name.casefold() for name in names if name.kind == PERSON)
        denied = not question and (main.denied if main.attribute else any(map(denies, sentences(saying.telling)[:1])))
        fact = Fact(
            text=_written(saying, when.text),
            network=network,
            speaker=turn.speaker,
            entities=deduplicated((*chunk.extra_entities, *_speaker(turn.speaker), *names)),
            occurred_start=when.start,
            occurred_end=when.end,
            date_text=when.date_text,
            confidence=confidence,
            question=question,
            trust=trust_of(said),
            mentioned_at=turn.at,
            subject="" if saying.exchange else subject_of(saying.statements, main, turn, self._recent, people, said),
            attribute=main.attribute,
            value=main.value,
            polarity=-1 if denied else 1,
            corrects=saying.corrects,
            aliases=aliases(said, "" if is_generic(turn.speaker) else turn.speaker),
        )
        return fact, failed


def _idle(exchange: list[_Heard]) -> bool:
    """Whether an exchange is only about the talk itself ("Can you hear me?" "Yes, we can.")."""
    first, *others = exchange
    return first.reason is not None and all(
        one.reason is not None or phatic.is_idle_answer(one.turn.text) for one in others
    )


def _main(statements: tuple[Statement, ...]) -> Statement:
    """What a unit mainly claims: its first attribute, in the last form it has, else its first subject."""
    first = next((one for one in statements if one.attribute), None)
    if first is None:
        return next((one for one in statements if one.subject), NOTHING)
    same = [one for one in statements if one.attribute == first.attribute and one.subject == first.subject]
    return same[-1]


def _asks_only(said: str) -> bool:
    return len(said) < 200 and languages.is_question(said)


def _written(saying: _Saying, dated: str) -> str:
    """The stored text with the dates of its telling words written out."""
    if dated == saying.telling:
        return saying.text
    at = saying.text.rfind(saying.telling)
    return saying.text if at < 0 else saying.text[:at] + dated + saying.text[at + len(saying.telling) :]


def _speaker(speaker: str) -> tuple[EntityMention, ...]:
    return () if not speaker or is_generic(speaker) else (EntityMention(speaker, PERSON),)


def _linked(facts: list[Fact]) -> list[Fact]:
    """The facts with what their opening words say caused what, between neighbours."""
    for index, fact in enumerate(facts):
        if index == 0:
            continue
        words = fact.text[len(fact.speaker) + 2 :] if fact.text.startswith(f"{fact.speaker}: ") else fact.text
        cue = cue_of(words)
        if cue is None:
            continue
        effect, cause = (index, index - 1) if cue.backward else (index - 1, index)
        held = facts[effect]
        facts[effect] = replace(held, causes=(*held.causes, cause), cause_weights=(*held.cause_weights, cue.weight))
    return facts

"""The seam between retain and whoever turns a chunk into facts: rules here, a language model elsewhere.

Retain knows `Extractor` alone. `extractor_for` picks one by provider and mode; another provider plugs in by answering
the same protocol and being named there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol

from recalld.actors.retain.canonical import clean_text
from recalld.storage.errors import Unprocessable
from recalld.storage.records import WORLD, EntityMention

MODES = ("concise", "verbose", "custom", "verbatim", "chunks")
PROVIDERS = ("local", "none")
MODEL = "model"
"""Not among them: a language model reads before this seam is reached, and modes that need none fall back to rules."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing a chunk says, before it is embedded and stored.

    Instants are microseconds, UTC, `occurred_end` inclusive. `causes` are indexes of earlier facts of the same chunk,
    `cause_weights` how strongly the words say so, one a cause (0 to 1; missing means 1).
    `mentioned_at` is set only when the turn carried its own time; otherwise the item's holds.
    `subject` is whom the claim is about, when known. `attribute` is a stable key of what is claimed (`lives_in`,
    `works_at`, `likes:jazz`, `favourite:player`), `value` its folded value; together they are what a later claim is
    compared with. `polarity` is 1 for what is stated, -1 for what is negated or no longer so. `corrects`: the words
    take back what was said before. `aliases` are pairs of names of one thing, the shorter or newer first.
    `date_text` holds the words that gave the dates.
    """

    text: str
    network: int = WORLD
    speaker: str = ""
    entities: tuple[EntityMention, ...] = ()
    occurred_start: int | None = None
    occurred_end: int | None = None
    confidence: float | None = None
    question: bool = False
    trust: str = "normal"
    causes: tuple[int, ...] = ()
    mentioned_at: int | None = None
    subject: str = ""
    attribute: str = ""
    value: str = ""
    polarity: int = 1
    corrects: bool = False
    aliases: tuple[tuple[str, str], ...] = ()
    date_text: str = ""
    cause_weights: tuple[float, ...] = ()
    risks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Tags that labels of the bank's vocabulary put on it, beside those of its item."""


@dataclass(frozen=True, slots=True)
class ExtractionInput:
    """A chunk and what is known about it. `mentioned_at` (microseconds, UTC) anchors relative dates, unless the item is
    `undated`."""

    text: str
    context: str = ""
    speaker_hint: str = ""
    mentioned_at: int = 0
    utc_offset_minutes: int = 0
    mode: str = "concise"
    extra_entities: tuple[EntityMention, ...] = ()
    undated: bool = False

    @property
    def anchor(self) -> int | None:
        """What relative dates are read from; None when nothing is."""
        return None if self.undated else self.mentioned_at


@dataclass(frozen=True, slots=True)
class Dropped:
    """Words of a chunk that were not kept, and why: `empty`, `filler`, `transport`, `system prompt`, `tool output`,
    `signature`, `quoted mail`, `disclaimer`."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of one chunk. `undated` counts facts whose dates could not be read because the reader failed."""

    facts: tuple[Fact, ...]
    dropped: tuple[Dropped, ...] = ()
    undated: int = 0


class Extractor(Protocol):
    """Turns one chunk into facts, in the order of the text. No facts is a valid answer."""

    def read(self, chunk: ExtractionInput) -> Reading: ...


class ChunksExtractor:
    """Mode `chunks`: the fact is the chunk; only entities the caller gave; its dates in the fields alone."""

    def read(self, chunk: ExtractionInput) -> Reading:
        from recalld.actors.retain.dating import read_dates
        from recalld.actors.retain.entities import deduplicated
        from recalld.actors.retain.stance import is_question, trust_of
        from recalld.actors.retain.turns import single_speaker

        text = clean_text(chunk.text)
        if not text.strip():
            return Reading((), (Dropped(chunk.text, "empty"),))
        when, failed = read_dates(text, chunk.anchor, chunk.utc_offset_minutes, write=False)
        fact = Fact(
            text=text,
            speaker=single_speaker(text) or chunk.speaker_hint,
            entities=deduplicated(chunk.extra_entities),
            occurred_start=when.start,
            occurred_end=when.end,
            date_text=when.date_text,
            question=is_question(text),
            trust=trust_of(text),
        )
        return Reading((fact,), (), int(failed))


@cache
def extractor_for(provider: str, mode: str) -> Extractor:
    """The extractor of a provider and a mode; the same object for the same pair. Safe to share between threads.

    Raises Unprocessable for a provider or a mode nobody implements.
    """
    if mode not in MODES:
        raise Unprocessable(f"retain_extraction_mode '{mode}' is unknown; use one of {', '.join(MODES)}.")
    if provider not in PROVIDERS:
        raise Unprocessable(f"Extraction provider '{provider}' is unknown; use one of {', '.join(PROVIDERS)}.")
    if provider == "none" or mode == "chunks":
        return ChunksExtractor()
    # Imported on use: a daemon that only answers recalls never pays for the entity model's runtime.
    from recalld.actors.retain.local_extractor import LocalExtractor, VerbatimExtractor

    return VerbatimExtractor() if mode == "verbatim" else LocalExtractor()

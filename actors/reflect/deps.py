"""What a reflect leans on, as protocols: a bank to read, a model to ask, pages and directives where there are any.

The worker puts them together (`reflector.py`); a test may give its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from recalld.actors.ledger import Ledger
from recalld.actors.llm.base import Llm
from recalld.actors.opinions.messages import Proposal
from recalld.actors.reflect.request import ReflectRequest

Plain = dict[str, Any]
Watch = Callable[[str, Plain], None]
"""Told of each step while it happens: the name of an event, and what it is about."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of memories. `types` are network names; empty is all four. `max_tokens` bounds what comes back."""

    query: str
    types: tuple[str, ...] = ()
    max_tokens: int = 2048
    budget: str = "mid"
    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    tag_groups: list[dict[str, Any]] | None = None
    now: int = 0
    utc_offset: int = 0
    chunk_tokens: int | None = None
    entity_tokens: int | None = None
    source_tokens: int | None = None
    trace: bool = False


class Memory(Protocol):
    """The memories of one bank."""

    async def recall(self, search: Search) -> Plain:
        """{results, chunks, entities, source_facts, trace}, in the wire's shape, best first."""
        ...

    async def expand(self, memory_ids: Sequence[str], whole: bool, scope: Search) -> list[Plain]:
        """[{memory, text}] of the ids that exist; the text is its chunk's or its document's, "" when it is not kept.

        Under the tags of `scope` a document that does not pass them shows nothing.
        """
        ...

    async def belief(self, opinion_id: str) -> Plain:
        """{holder, evidence_for, evidence_against} of an opinion, the latter two as counts; empty when it is gone."""
        ...

    async def unconsolidated(self, tags: Sequence[str]) -> int:
        """How many facts that carry all of these tags no observation has seen yet."""
        ...


class Pages(Protocol):
    """The bank's mental models. Each is {id, name, text, is_stale, newer_facts, tags}."""

    async def search(self, query: str, search: Search, excluded: Sequence[str], limit: int) -> list[Plain]: ...

    async def read(self, ids: Sequence[str]) -> list[Plain]: ...

    async def any(self, scope: ReflectRequest, excluded: Sequence[str]) -> bool: ...


class Directives(Protocol):
    """The bank's directives in force, highest priority first: [{id, name, content, tags}]."""

    async def in_force(
        self, tags: Sequence[str], tags_match: str, tag_groups: list[dict[str, Any]] | None, everything: bool
    ) -> list[Plain]: ...


class FormOpinions(Protocol):
    """Forms opinions after an answer, or moves those that are there: each in the wire's shape, with its outcome."""

    def __call__(self, proposals: Sequence[Proposal]) -> Awaitable[list[Plain]]: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """`iterations` is the base that a budget scales; `wall_seconds` bounds the whole."""

    iterations: int = 10
    context_tokens: int = 100_000
    wall_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class ReflectDeps:
    """`config` is the bank's settings in force; `llm` None leaves an extractive answer. `nonce` fences quoted text:
    nobody who writes memories knows it."""

    memory: Memory
    config: Mapping[str, Any]
    nonce: str
    llm: Llm | None = None
    ledger: Ledger | None = None
    limits: Limits = field(default_factory=Limits)
    pages: Pages | None = None
    directives: Directives | None = None
    form_opinions: FormOpinions | None = None
    bank_name: str = ""
    watch: Watch | None = None

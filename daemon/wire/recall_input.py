"""A recall as the façade takes it: the request's fields checked and put in plain Python, instants in microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ARMS = ("semantic", "keyword", "graph", "temporal")
BUDGETS = ("low", "mid", "high")


@dataclass(frozen=True, slots=True)
class RecallInput:
    """One recall. `types` are network names, empty for all four; `None` in an include means "not asked for".

    `entity_tokens`, `chunk_tokens`, `source_tokens` carry the token budgets of the three includes (`source_*` -1 =
    unlimited). `window` is inclusive. `max_ms` is the caller's deadline. `as_of` rewinds known time, `valid_at` valid
    time. `why_not` names unit ids to explain (it implies a trace). `arms` are the arms that may run.
    `first_uid` leaves out memories that a bank of that many uids held already.
    """

    query: str
    types: tuple[str, ...] = ()
    prefer_observations: bool | None = None
    budget: str = "mid"
    max_tokens: int = 4096
    trace: bool = False
    query_timestamp: int | None = None
    entity_tokens: int | None = 500
    chunk_tokens: int | None = None
    source_tokens: int | None = None
    source_tokens_each: int = -1
    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    tag_groups: list[dict[str, Any]] | None = None
    min_scores: dict[str, float] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    max_ms: int | None = None
    as_of: int | None = None
    valid_at: int | None = None
    why_not: tuple[str, ...] = ()
    arms: tuple[str, ...] = ARMS
    first_uid: int = 0

    @property
    def include_entities(self) -> bool:
        return self.entity_tokens is not None

    @property
    def include_chunks(self) -> bool:
        return self.chunk_tokens is not None

    @property
    def include_source_facts(self) -> bool:
        return self.source_tokens is not None

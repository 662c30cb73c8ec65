"""What a recall asks of a shard and what the shard answers: frozen, plain, ready to cross as msgpack."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

ARMS = ("semantic", "keyword", "graph", "temporal")


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """One recall, already embedded, analysed and dated by the gateway. Instants are int microseconds since the epoch.

    `vector` is float32[dim], `token_vectors` float32[q, 64] of unit length, `token_priors` float32[q] (share of texts
    expected to hold the token; empty when the model ships none). `terms` are analysed and deduplicated, not yet cut to
    the most selective ones. `types` empty means all four networks. `window` is inclusive at both ends; `window_error`
    says that looking for one failed. `first_uid` leaves out smaller uids: what a bank of that many knew.
    `deadline` is in seconds from the moment the engine starts.
    """

    tenant: str
    bank_id: str
    query: str
    vector: bytes
    token_vectors: bytes = b""
    token_ids: tuple[int, ...] = ()
    token_priors: bytes = b""
    unknown_share: float = 0.0
    terms: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    budget: str = "mid"
    max_tokens: int = 4096
    now: int = 0
    window: tuple[int, int] | None = None
    window_error: str | None = None
    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    tag_groups: list[dict[str, Any]] | None = None
    min_scores: dict[str, float] = field(default_factory=dict)
    as_of: int | None = None
    valid_at: int | None = None
    first_uid: int = 0
    include_entities: bool = True
    entity_tokens: int = 500
    include_chunks: bool = False
    chunk_tokens: int = 8192
    include_source_facts: bool = False
    source_tokens: int = 4096
    source_tokens_each: int = -1
    prefer_observations: bool | None = None
    trace: bool = False
    why_not: tuple[str, ...] = ()
    deadline: float | None = None
    arms: tuple[str, ...] = ARMS


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """Results in the wire's shape, best first, and what went with them.

    `results_json` is a JSON list, written once where the records lie: it crosses processes and goes out as it is.
    `timings` are milliseconds by part; `seq` is the bank's sequence number every arm was answered from; `degraded`
    names the parts a deadline cut short.
    """

    results_json: bytes
    trace: dict[str, Any] | None = None
    entities: dict[str, Any] | None = None
    chunks: dict[str, Any] | None = None
    source_facts: dict[str, Any] | None = None
    source_facts_truncated: bool | None = None
    degraded: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    seq: int = 0

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results, parsed anew with every call."""
        parsed: list[dict[str, Any]] = json.loads(self.results_json)
        return parsed

"""What a reflect is asked and what it gives: frozen and plain. Instants are µs since the epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors.wirecodec import register

MODEL, EXTRACTIVE = "model", "extractive"
AUTO = "auto"
BUDGET_FACTORS = {"low": 0.5, "mid": 1.0, "high": 2.0}
NO_USAGE = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"), 0)


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """One question to a bank.

    `now` is the clock; `query_timestamp` the time the question is asked from, where that is another, and `utc_offset`
    its zone in minutes. `fact_types` empty means all; it may name world, experience, observation and opinion. None in a
    number takes the bank's setting. `mode` is auto, model or extractive. `operation` names the calls in the ledger.
    `operation_id` ties them to a stored operation. `max_cost` is in the currency of the prices.
    """

    tenant: str
    bank_id: str
    query: str
    now: int
    id: str = ""
    budget: str = "low"
    context: str = ""
    max_tokens: int = 4096
    response_schema: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    tag_groups: list[dict[str, Any]] | None = None
    apply_all_directives: bool = False
    fact_types: tuple[str, ...] = ()
    exclude_mental_models: bool = False
    exclude_mental_model_ids: tuple[str, ...] = ()
    include_facts: bool = False
    include_tool_calls: bool = False
    tool_outputs: bool = True
    include_explain: bool = False
    include_chunks: bool | None = None
    recall_max_tokens: int | None = None
    recall_chunks_max_tokens: int | None = None
    search_observations_max_tokens: int | None = None
    search_observations_include_entities: bool | None = None
    bias_strength: float | None = None
    query_timestamp: int | None = None
    utc_offset: int = 0
    mode: str = AUTO
    max_cost: float | None = None
    max_llm_calls: int | None = None
    form_opinions: bool | None = None
    operation: str = "reflect"
    operation_id: str | None = None

    @property
    def bank(self) -> tuple[str, str]:
        return self.tenant, self.bank_id

    @property
    def asked_at(self) -> int:
        """The instant the question is asked from."""
        return self.now if self.query_timestamp is None else self.query_timestamp


@dataclass(frozen=True, slots=True)
class ReflectAnswer:
    """What came of it. `memories` are the facts, experiences and opinions it rests on, `observations` the observations,
    each in the shape of a recall's result; `mental_models` are {id, text, context}, `directives` {id, name, content}.

    `found` is False when the memory does not hold the answer; the text then says so. `certainty` is high, medium, low
    or none, and empty with a model. `tool_calls` and `llm_calls` are the wire's trace. `opinions` are those formed
    afterwards. `explain` is the path from the question to the answer, when asked for.
    """

    text: str
    mode: str = MODEL
    found: bool = True
    certainty: str = ""
    memories: list[dict[str, Any]] = field(default_factory=list)
    observations: list[dict[str, Any]] = field(default_factory=list)
    mental_models: list[dict[str, Any]] = field(default_factory=list)
    directives: list[dict[str, Any]] = field(default_factory=list)
    opinions: list[dict[str, Any]] = field(default_factory=list)
    structured_output: dict[str, Any] | None = None
    structured_output_error: str | None = None
    usage: dict[str, Any] = field(default_factory=lambda: dict(NO_USAGE))
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    llm_calls: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    explain: dict[str, Any] | None = None

    @property
    def cited(self) -> tuple[str, ...]:
        """Ids of the units it rests on."""
        return tuple(one["id"] for one in (*self.memories, *self.observations))


for _class in (ReflectRequest, ReflectAnswer):
    register(_class)

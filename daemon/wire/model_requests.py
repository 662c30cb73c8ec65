"""Bodies, queries and answers of the routes about language models: dry runs, prompts, prices, the ledger."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from recalld.actors.retain.canonical import parse_timestamp
from recalld.actors.retain.items import RetainItem
from recalld.daemon import bank_settings
from recalld.daemon.wire.base import RequestModel, ResponseModel
from recalld.daemon.wire.queries import window
from recalld.daemon.wire.requests import ContentBlock, MemoryItem, content_text
from recalld.daemon.wire.responses import TokenUsage
from recalld.storage.errors import Unprocessable

OVERRIDES = (
    "retain_mission",
    "retain_extraction_mode",
    "retain_custom_instructions",
    "retain_extract_causal_links",
    "retain_chunk_size",
    "entity_labels",
    "entities_allow_free_form",
    "llm_output_language",
)


class LabelValue(RequestModel):
    value: str
    description: str = ""


class MapField(RequestModel):
    type: Literal["text", "multi-text", "value", "multi-values", "map"] = "text"
    description: str = ""
    values: list[LabelValue] = Field(default_factory=list)
    fields: dict[str, MapField] = Field(default_factory=dict)


class LabelGroup(RequestModel):
    key: str
    description: str = ""
    type: Literal["value", "multi-values", "text", "multi-text", "map"] = "value"
    optional: bool = True
    tag: bool = False
    values: list[LabelValue] = Field(default_factory=list)
    fields: dict[str, MapField] = Field(default_factory=dict)


class DryRunExtractRequest(RequestModel):
    content: str | list[ContentBlock]
    context: str = ""
    timestamp: str | None = None
    agent_name: str | None = None
    strategy: str | None = None
    retain_mission: str | None = None
    retain_extraction_mode: str | None = None
    retain_custom_instructions: str | None = None
    retain_extract_causal_links: bool | None = None
    retain_chunk_size: int | None = None
    entity_labels: list[LabelGroup] | None = None
    entities_allow_free_form: bool | None = None
    llm_output_language: str | None = None

    @field_validator("content")
    @classmethod
    def _not_blank(cls, value: str | list[ContentBlock]) -> str | list[ContentBlock]:
        if not content_text(value).strip():
            raise ValueError("content must not be empty or blank")
        return value

    @field_validator("timestamp")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is None or not value.strip():
            return None
        parse_timestamp(value)
        return value.strip()

    def to_item(self) -> RetainItem:
        """Raises `Unprocessable`."""
        fields = {"context": self.context, "timestamp": self.timestamp, "strategy": self.strategy or None}
        if self.agent_name and self.agent_name.strip():
            fields["context"] = "\n".join(filter(None, (self.context, f"The agent is {self.agent_name.strip()}.")))
        try:
            return RetainItem.parse({**fields, "content": content_text(self.content)})
        except ValueError as error:
            raise Unprocessable(str(error)) from None

    def to_overrides(self) -> dict[str, Any]:
        """The settings it gives, checked like a bank's. Raises `BadRequest`."""
        given = {name: getattr(self, name) for name in OVERRIDES if getattr(self, name) is not None}
        if self.entity_labels is not None:
            given["entity_labels"] = [group.model_dump() for group in self.entity_labels]
        return {name: value for name, value in bank_settings.validate_updates(given).items() if value is not None}


class PromptPreviewRequest(RequestModel):
    operation: Literal["retain", "consolidation", "reflect"] = "retain"
    strategy: str | None = None


class PriceRequest(RequestModel):
    """What to price: a retain of `items`, a consolidation of the bank's backlog, or a reflect with a `budget`."""

    operation: Literal["retain", "consolidation", "reflect"] = "retain"
    items: list[MemoryItem] = Field(default_factory=list)
    budget: Literal["low", "mid", "high"] = "low"

    @model_validator(mode="after")
    def _items(self) -> PriceRequest:
        if self.operation == "retain" and not self.items:
            raise ValueError("a retain needs items")
        return self


class LlmRequestsQuery(RequestModel):
    status: str | None = None
    operation: str | None = None
    scope: str | None = None
    call_type: Literal["llm", "embedding", "rerank", "decision"] | None = None
    provider: str | None = None
    trace_id: str | None = None
    document_id: str | None = None
    memory_id: str | None = None
    group: bool = False
    start_date: str | None = None
    end_date: str | None = None
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0)

    def to_filters(self) -> dict[str, Any]:
        """Raises `BadRequest` for dates that are none."""
        start, end = window(self.start_date, self.end_date)
        plain = self.model_dump(exclude={"start_date", "end_date"})
        return {**{name: value or None for name, value in plain.items()}, "start": start, "end": end} | {
            "limit": self.limit,
            "offset": self.offset,
        }


class LlmStatsQuery(RequestModel):
    operation: str | None = None
    call_type: Literal["llm", "embedding", "rerank", "decision"] | None = None
    period: str = "7d"


# -- answers ---------------------------------------------------------------------------------------------------------


class ExtractedFactAttachment(ResponseModel):
    block_index: int
    type: Literal["image", "file"]
    media_type: str


class ExtractedFact(ResponseModel):
    text: str
    fact_type: str
    occurred_start: str | None = None
    occurred_end: str | None = None
    entities: list[str] = Field(default_factory=list)
    chunk_index: int | None = None
    attachments: list[ExtractedFactAttachment] = Field(default_factory=list)


class ExtractionChunk(ResponseModel):
    text: str
    fact_count: int


class DryRunExtractionResult(ResponseModel):
    facts: list[ExtractedFact]
    chunks: list[ExtractionChunk]
    usage: TokenUsage


class ReprocessDocumentResponse(ResponseModel):
    success: bool
    operation_id: str
    items_count: int


class LlmOperationHealth(ResponseModel):
    operation: Literal["retain", "consolidation", "reflect"]
    ok: bool
    status: Literal["connected", "not_configured", "auth_failed", "unreachable", "timeout"]
    latency_ms: float | None = None


class BankLlmHealthResponse(ResponseModel):
    bank_id: str
    operations: list[LlmOperationHealth]


class PromptBlockModel(ResponseModel):
    text: str
    source: Literal["config", "builtin"]
    field: str = ""
    section: str = ""
    heading: str = ""
    active: bool = True
    value: str | None = None
    kind: Literal["text", "boolean", "choice", "complex"]
    choices: list[str] | None = None
    editable: bool = False


class PromptMessageModel(ResponseModel):
    role: Literal["system", "user"]
    blocks: list[PromptBlockModel]


class RunSettingModel(ResponseModel):
    field: str
    value: str | None = None
    kind: Literal["text", "boolean", "choice", "complex"]
    editable: bool = False


class PromptPreviewResponse(ResponseModel):
    messages: list[PromptMessageModel]
    strategy: str | None = None
    strategies: list[str]
    run_settings: list[RunSettingModel]


class PriceEstimate(ResponseModel):
    calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost: float | None = None


class PriceResponse(ResponseModel):
    """What a piece of work is likely to take; money is null where the price of the model is not known."""

    operation: str
    model: str | None
    currency: str
    price_known: bool
    least: PriceEstimate
    most: PriceEstimate


class LLMRequestEntry(ResponseModel):
    id: str
    bank_id: str | None
    operation: str | None
    scope: str | None
    trace_id: str | None
    span_id: str | None
    parent_span_id: str | None
    provider: str | None
    model: str | None
    status: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    thoughts_tokens: int | None
    total_tokens: int | None
    input: Any = None
    output: Any = None
    error: str | None
    llm_info: dict[str, Any]
    metadata: dict[str, Any]


class LLMRequestListResponse(ResponseModel):
    bank_id: str
    total: int
    limit: int
    offset: int
    items: list[LLMRequestEntry]


class LLMRequestTokenSums(ResponseModel):
    input: int
    output: int
    cached: int
    thoughts: int | None = None
    total: int


class LLMRequestStatsBucket(ResponseModel):
    time: str
    statuses: dict[str, int]
    total: int
    tokens: LLMRequestTokenSums


class LLMRequestStatsResponse(ResponseModel):
    bank_id: str
    period: str
    trunc: str
    start: str
    buckets: list[LLMRequestStatsBucket]

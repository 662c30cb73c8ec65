"""Wire models of directives, mental models and the knowledge base. Names, defaults and limits are the contract's."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from recalld.actors.pages.triggers import check_cron, check_trigger
from recalld.daemon.wire.base import MAX_PAGE, RequestModel, ResponseModel, Tags, TagsMatch
from recalld.daemon.wire.queries import EntityQuery
from recalld.daemon.wire.requests import MAX_ID_CHARS, MAX_TOKENS, TagGroup, shallow
from recalld.daemon.wire.responses import TokenUsage

MAX_WAIT = 3600
FactType = Literal["world", "experience", "observation"]
PlainMatch = Literal["any", "all", "exact"]
Detail = Literal["metadata", "content", "full"]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value.strip()


class WaitQuery(RequestModel):
    """`wait`: seconds the caller waits for the operation it queues; absent, not at all."""

    wait: float | None = Field(None, ge=0, le=MAX_WAIT, allow_inf_nan=False)


# --- directives -----------------------------------------------------------------------------------------------------


class ListDirectivesQuery(RequestModel):
    tags: Tags | None = None
    tags_match: PlainMatch = "any"
    active_only: bool = True
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=MAX_PAGE)


class CreateDirectiveRequest(RequestModel):
    name: str
    content: str
    priority: int = Field(0, ge=-(2**53), le=2**53)
    is_active: bool = True
    tags: Tags | None = None

    _text = field_validator("name", "content")(_not_blank)


class UpdateDirectiveRequest(RequestModel):
    name: str | None = None
    content: str | None = None
    priority: int | None = Field(None, ge=-(2**53), le=2**53)
    is_active: bool | None = None
    tags: Tags | None = None

    @field_validator("name", "content")
    @classmethod
    def _text(cls, value: str | None) -> str | None:
        return None if value is None else _not_blank(value)


class DirectiveResponse(ResponseModel):
    id: str
    bank_id: str
    name: str
    content: str
    priority: int = 0
    is_active: bool = True
    tags: list[str] = Field(default_factory=list)
    created_at: str | None = None
    updated_at: str | None = None


class DirectiveListResponse(ResponseModel):
    items: list[DirectiveResponse]
    total: int
    limit: int
    offset: int


class DeletedResponse(ResponseModel):
    status: Literal["deleted"]


# --- triggers -------------------------------------------------------------------------------------------------------


class MentalModelTrigger(RequestModel):
    budget: Literal["low", "mid", "high"] | None = None
    mode: Literal["full", "delta"] = "full"
    refresh_after_consolidation: bool = False
    refresh_cron: str | None = None
    full_refresh_cron: str | None = None
    min_refresh_interval_seconds: int | None = Field(None, ge=0, le=10**9)
    fact_types: list[FactType] | None = None
    exclude_mental_models: bool = False
    exclude_mental_model_ids: list[str] | None = None
    tags_match: TagsMatch | None = None
    tag_groups: list[TagGroup] | None = None
    include_chunks: bool | None = None
    recall_max_tokens: int | None = Field(None, ge=0, le=MAX_TOKENS)
    recall_chunks_max_tokens: int | None = Field(None, ge=0, le=MAX_TOKENS)
    reflect_search_observations_max_tokens: int | None = Field(None, ge=1, le=MAX_TOKENS)
    reflect_search_observations_include_entities: bool | None = None
    response_schema: dict[str, Any] | None = None
    keep_trace: bool = False

    _shallow = field_validator("tag_groups", mode="before")(shallow)

    @field_validator("refresh_cron", "full_refresh_cron")
    @classmethod
    def _schedule(cls, value: str | None) -> str | None:
        return check_cron(value) if value is not None and value.strip() else None

    @model_validator(mode="after")
    def _together(self) -> MentalModelTrigger:
        check_trigger(self.model_dump(by_alias=True))
        return self

    def whole(self) -> dict[str, Any]:
        """Every field."""
        return self.model_dump(by_alias=True)

    def named(self) -> dict[str, Any]:
        """The fields the caller named; a null clears one."""
        sent = self.model_dump(by_alias=True, exclude_unset=True)
        for name in ("mode", "refresh_after_consolidation", "exclude_mental_models", "keep_trace"):
            if name in sent and sent[name] is None:
                del sent[name]
        return sent


PAGE_TRIGGER = {
    "mode": "delta",
    "fact_types": ["observation"],
    "exclude_mental_models": True,
    "refresh_after_consolidation": True,
}
"""What a page's trigger is where neither the bank nor the caller says otherwise."""


# --- mental models --------------------------------------------------------------------------------------------------


class ListMentalModelsQuery(RequestModel):
    tags: Tags | None = None
    tags_match: PlainMatch = "any"
    detail: Detail = "metadata"
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=MAX_PAGE)
    exclude_knowledge_pages: bool = False


class MentalModelQuery(RequestModel):
    detail: Detail = "full"


class CreateMentalModelRequest(RequestModel):
    id: str | None = Field(None, max_length=MAX_ID_CHARS)
    name: str
    source_query: str
    tags: Tags | None = None
    max_tokens: int | None = Field(2048, ge=256, le=8192)
    trigger: MentalModelTrigger | None = None

    _text = field_validator("name", "source_query")(_not_blank)

    def to_fields(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source_query": self.source_query,
            "tags": tuple(dict.fromkeys(self.tags or ())),
            "max_tokens": 2048 if self.max_tokens is None else self.max_tokens,
            "trigger": (self.trigger or MentalModelTrigger.model_validate({})).whole(),
        }


class UpdateMentalModelRequest(RequestModel):
    name: str | None = None
    source_query: str | None = None
    max_tokens: int | None = Field(None, ge=256, le=8192)
    tags: Tags | None = None
    trigger: MentalModelTrigger | None = None

    @field_validator("name", "source_query")
    @classmethod
    def _text(cls, value: str | None) -> str | None:
        return None if value is None else _not_blank(value)

    def to_fields(self) -> dict[str, Any]:
        """The fields that were named and are not null; of the trigger those that were named in it."""
        fields: dict[str, Any] = {
            name: value for name in ("name", "source_query", "max_tokens") if (value := getattr(self, name)) is not None
        }
        if self.tags is not None:
            fields["tags"] = tuple(dict.fromkeys(self.tags))
        if self.trigger is not None:
            fields["trigger"] = self.trigger.named()
        return fields


class RefreshMentalModelRequest(RequestModel):
    mode: Literal["full"] | None = None


class FinishedOperation(ResponseModel):
    """An operation that ended while the caller waited, as `GET .../operations/{id}` shows it."""

    operation_id: str
    status: str
    error_message: str | None = None


class CreateMentalModelResponse(ResponseModel):
    mental_model_id: str | None = None
    operation_id: str


class RefreshResponse(ResponseModel):
    operation_id: str
    status: str


class MentalModelResponse(ResponseModel):
    id: str
    bank_id: str
    name: str
    source_query: str | None = None
    content: str | None = None
    tags: list[str] = Field(default_factory=list)
    max_tokens: int | None = None
    trigger: MentalModelTrigger | None = None
    last_refreshed_at: str | None = None
    last_memory_seen_at: str | None = None
    last_refresh_failed_at: str | None = None
    last_full_refreshed_at: str | None = None
    created_at: str | None = None
    is_knowledge_page: bool | None = None
    reflect_response: dict[str, Any] | None = None
    is_stale: bool | None = None


class MentalModelListResponse(ResponseModel):
    items: list[MentalModelResponse]
    total: int
    limit: int
    offset: int


class MentalModelRefreshScope(ResponseModel):
    tags: list[str] | None = None
    tags_match: TagsMatch
    tag_groups: list[dict[str, Any]] | None = None
    fact_types: list[str] | None = None
    exclude_mental_models: bool
    exclude_mental_model_ids: list[str]


class MentalModelRefreshWindow(ResponseModel):
    created_after: str | None = None
    created_before: str
    watermark: str | None = None


class MentalModelFactCounts(ResponseModel):
    retrieved: dict[str, int]
    used: dict[str, int]


class MentalModelDeltaOperations(ResponseModel):
    applied: list[dict[str, Any]]
    skipped: list[dict[str, Any]]


class MentalModelRetraction(ResponseModel):
    fact_ids: list[str]
    fact_texts: list[str]
    applied: bool
    deferred_reason: str | None = None


class MentalModelDryRunRefreshResult(ResponseModel):
    mental_model_id: str
    name: str
    requested_mode: Literal["full", "delta"]
    effective_mode: Literal["full", "delta"]
    mode_fallback_reason: str | None = None
    outcome: str
    would_persist: bool
    scope: MentalModelRefreshScope
    window: MentalModelRefreshWindow
    facts: MentalModelFactCounts
    based_on: dict[str, list[dict[str, Any]]]
    current_content: str
    candidate_content: str
    preview_content: str
    diff: str
    delta_operations: MentalModelDeltaOperations | None = None
    retraction: MentalModelRetraction | None = None
    trace: dict[str, Any]
    usage: TokenUsage
    duration_ms: int = 0
    warnings: list[str]


# --- the knowledge base ---------------------------------------------------------------------------------------------


class TreeQuery(EntityQuery):
    pass


class SearchQuery(EntityQuery):
    q: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=50)


class CreateFolderRequest(RequestModel):
    name: str
    parent_id: str | None = None


class CreatePageRequest(RequestModel):
    name: str
    source_query: str
    parent_id: str | None = None
    tags: Tags | None = None
    max_tokens: int | None = Field(None, ge=1, le=100_000)
    trigger: MentalModelTrigger | None = None

    _text = field_validator("source_query")(_not_blank)


class UpdateNodeRequest(RequestModel):
    name: str | None = None
    parent_id: str | None = None
    source_query: str | None = None
    tags: Tags | None = None
    max_tokens: int | None = Field(None, ge=1, le=100_000)
    trigger: MentalModelTrigger | None = None

    @field_validator("source_query")
    @classmethod
    def _text(cls, value: str | None) -> str | None:
        return None if value is None else _not_blank(value)

    def to_fields(self) -> dict[str, Any]:
        """The fields that were named; only a null parent means something."""
        fields: dict[str, Any] = {
            name: value for name in ("name", "source_query", "max_tokens") if (value := getattr(self, name)) is not None
        }
        if "parent_id" in self.model_fields_set:
            fields["parent"] = self.parent_id or ""
        if self.tags is not None:
            fields["tags"] = tuple(dict.fromkeys(self.tags))
        if self.trigger is not None:
            fields["trigger"] = self.trigger.named()
        return fields


class KnowledgeNode(ResponseModel):
    id: str
    kind: Literal["folder", "page"]
    name: str
    parent_id: str | None = None
    mental_model_id: str | None = None
    managed: bool = False
    description: str | None = None
    tags: list[str] = Field(default_factory=list)
    timestamp: str | None = None
    is_stale: bool | None = None
    last_refresh_failed_at: str | None = None
    trigger: MentalModelTrigger | None = None
    children: list[KnowledgeNode] = Field(default_factory=list)


class KnowledgeTreeResponse(ResponseModel):
    roots: list[KnowledgeNode]


class CreateKnowledgePageResponse(ResponseModel):
    page_id: str
    mental_model_id: str
    operation_id: str | None = None


class KnowledgePageResponse(ResponseModel):
    id: str
    name: str
    type: str
    description: str | None = None
    tags: list[str] = Field(default_factory=list)
    timestamp: str | None = None
    body: str | None = None
    markdown: str


class KnowledgePageSearchResult(ResponseModel):
    id: str
    name: str
    mental_model_id: str | None = None
    source_query: str | None = None
    snippet: str
    score: float
    updated_at: str | None = None


class KnowledgePageSearchResponse(ResponseModel):
    results: list[KnowledgePageSearchResult]
    total: int


class KnowledgePageBundleFile(ResponseModel):
    path: str
    content: str


class KnowledgePageBundleResponse(ResponseModel):
    files: list[KnowledgePageBundleFile]

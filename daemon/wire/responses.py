"""Response bodies as the contract has them: for the OpenAPI page, and for tests that hold every answer against them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from recalld.daemon.wire.base import ResponseModel
from recalld.daemon.wire.requests import DispositionTraits, ObservationScopes

# --- retain and recall ----------------------------------------------------------------------------------------------


class TokenUsage(ResponseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    thoughts_tokens: int = 0


class RetainResponse(ResponseModel):
    success: bool
    bank_id: str
    items_count: int
    asynchronous: bool = Field(alias="async")
    operation_id: str | None = None
    operation_ids: list[str] | None = None
    usage: TokenUsage | None = None


class ChunkAttachment(ResponseModel):
    id: str
    hash: str
    kind: str
    media_type: str
    byte_size: int
    filename: str | None = None
    url: str


class RecallScores(ResponseModel):
    final: float
    reranker: float | None = None
    semantic: float | None = None
    keyword: float | None = None
    late: float | None = None


class RecallResult(ResponseModel):
    id: str
    text: str
    type: str | None = None
    entities: list[str] | None = None
    context: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    mentioned_at: str | None = None
    document_id: str | None = None
    metadata: dict[str, str] | None = None
    chunk_id: str | None = None
    tags: list[str] | None = None
    source_fact_ids: list[str] | None = None
    scores: RecallScores | None = None
    attachments: list[ChunkAttachment] | None = None
    # beyond the contract
    trust: str | None = None
    risks: list[str] | None = None


class EntityObservationResponse(ResponseModel):
    text: str
    mentioned_at: str | None = None


class EntityStateResponse(ResponseModel):
    entity_id: str
    canonical_name: str
    observations: list[EntityObservationResponse]


class ChunkData(ResponseModel):
    id: str
    text: str
    chunk_index: int
    truncated: bool = False
    attachments: list[ChunkAttachment] | None = None


class RecallResponse(ResponseModel):
    results: list[RecallResult]
    trace: dict[str, Any] | None = None
    entities: dict[str, EntityStateResponse] | None = None
    chunks: dict[str, ChunkData] | None = None
    source_facts: dict[str, RecallResult] | None = None
    source_facts_truncated: bool | None = None


# --- banks ----------------------------------------------------------------------------------------------------------


class BankListItem(ResponseModel):
    bank_id: str
    name: str | None = None
    disposition: DispositionTraits
    mission: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    fact_count: int = 0
    last_document_at: str | None = None
    last_write_at: str | None = None
    display_alias: str | None = None


class BankListResponse(ResponseModel):
    banks: list[BankListItem]
    total: int
    limit: int
    offset: int


class BackgroundResponse(ResponseModel):
    """`note` (beyond the contract) says why a disposition was not moved."""

    mission: str
    background: str | None = None
    disposition: DispositionTraits | None = None
    note: str | None = None


class BankProfileResponse(ResponseModel):
    bank_id: str
    name: str
    disposition: DispositionTraits
    mission: str
    background: str | None = None


class BankStatsResponse(ResponseModel):
    bank_id: str
    total_nodes: int
    total_links: int
    total_documents: int
    nodes_by_fact_type: dict[str, int]
    links_by_link_type: dict[str, int]
    links_by_fact_type: dict[str, int]
    links_breakdown: dict[str, dict[str, int]]
    pending_operations: int
    failed_operations: int
    operations_by_status: dict[str, int] | None = None
    last_consolidated_at: str | None = None
    last_memory_write_at: str | None = None
    pending_consolidation: int = 0
    failed_consolidation: int = 0
    total_observations: int = 0


class BankConfigResponse(ResponseModel):
    bank_id: str
    config: dict[str, Any]
    overrides: dict[str, Any]


class DeleteResponse(ResponseModel):
    success: bool
    message: str | None = None
    deleted_count: int | None = None


# --- memories -------------------------------------------------------------------------------------------------------


class MemoryUnitListItem(ResponseModel):
    id: str
    text: str = ""
    context: str = ""
    date: str = ""
    fact_type: str | None = None
    document_id: str | None = None
    mentioned_at: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    entities: str = ""
    chunk_id: str | None = None
    proof_count: int = 1
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    consolidated_at: str | None = None
    consolidation_failed_at: str | None = None
    state: str = "valid"
    invalidation_reason: str | None = None
    invalidated_at: str | None = None
    edited_at: str | None = None
    updated_at: str | None = None
    source_memory_ids: list[str] = Field(default_factory=list)


class ListMemoryUnitsResponse(ResponseModel):
    items: list[MemoryUnitListItem]
    total: int
    limit: int
    offset: int


class MemoryDetail(ResponseModel):
    """One memory unit. The contract leaves it untyped; these are its keys."""

    id: str
    text: str
    context: str | None = None
    date: str | None = None
    type: str
    mentioned_at: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    entities: list[str]
    document_id: str | None = None
    chunk_id: str | None = None
    tags: list[str]
    metadata: dict[str, Any] | None = None
    observation_scopes: ObservationScopes | None = None
    state: str
    invalidation_reason: str | None = None
    invalidated_at: str | None = None
    edited_at: str | None = None
    consolidated_at: str | None = None
    consolidation_failed_at: str | None = None


class TagItem(ResponseModel):
    tag: str
    count: int


class ListTagsResponse(ResponseModel):
    items: list[TagItem]
    total: int
    limit: int
    offset: int


class EntityListItem(ResponseModel):
    id: str
    canonical_name: str
    mention_count: int
    first_seen: str | None = None
    last_seen: str | None = None
    metadata: dict[str, Any] | None = None


class EntityListResponse(ResponseModel):
    items: list[EntityListItem]
    total: int
    limit: int
    offset: int


class EntityDetailResponse(EntityListItem):
    observations: list[EntityObservationResponse]


# --- documents ------------------------------------------------------------------------------------------------------


class DocumentListItem(ResponseModel):
    id: str
    bank_id: str = ""
    content_hash: str | None = None
    created_at: str = ""
    updated_at: str = ""
    text_length: int = 0
    memory_unit_count: int = 0
    retain_params: dict[str, Any] | None = None
    document_metadata: dict[str, Any] | None = None
    tags: list[str] = Field(default_factory=list)
    matched_fields: list[Literal["id", "original_text"]] = Field(default_factory=list)


class ListDocumentsResponse(ResponseModel):
    items: list[DocumentListItem]
    total: int
    limit: int
    offset: int
    total_is_estimate: bool = False


class DocumentResponse(ResponseModel):
    id: str
    bank_id: str
    original_text: str | None
    content_hash: str | None
    created_at: str
    updated_at: str
    memory_unit_count: int
    nodes_by_fact_type: dict[str, int] | None = None
    tags: list[str] = Field(default_factory=list)
    document_metadata: dict[str, Any] | None = None
    retain_params: dict[str, Any] | None = None
    observation_scopes: ObservationScopes | None = None
    attachments: list[ChunkAttachment] | None = None


class UpdateDocumentResponse(ResponseModel):
    success: bool = True


class DeleteDocumentResponse(ResponseModel):
    success: bool
    message: str
    document_id: str
    memory_units_deleted: int


class ChunkResponse(ResponseModel):
    chunk_id: str
    document_id: str
    bank_id: str
    chunk_index: int
    chunk_text: str
    created_at: str
    attachments: list[ChunkAttachment] | None = None


class ListChunksResponse(ResponseModel):
    items: list[ChunkResponse]
    total: int
    limit: int
    offset: int


# --- operations -----------------------------------------------------------------------------------------------------


class OperationProgress(ResponseModel):
    stage: str
    at: str
    processed: int | None = None
    total: int | None = None
    detail: dict[str, int] | None = None


class OperationResponse(ResponseModel):
    id: str
    task_type: str
    operation_id: str | None = None
    operation_type: str | None = None
    items_count: int
    document_id: str | None = None
    filename: str | None = None
    mental_model_id: str | None = None
    details: dict[str, Any] | None = None
    created_at: str
    updated_at: str | None = None
    status: str
    error_message: str | None
    retry_count: int | None = None
    next_retry_at: str | None = None
    progress: OperationProgress | None = None


class OperationsListResponse(ResponseModel):
    bank_id: str
    total: int
    limit: int
    offset: int
    operations: list[OperationResponse]


class ChildOperationStatus(ResponseModel):
    operation_id: str
    status: str
    sub_batch_index: int | None = None
    items_count: int | None = None
    error_message: str | None = None


class OperationStatusResponse(ResponseModel):
    operation_id: str
    status: Literal["pending", "processing", "completed", "failed", "cancelled", "not_found"]
    operation_type: str | None = None
    id: str | None = None
    task_type: str | None = None
    mental_model_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    completed_at: str | None = None
    error_message: str | None = None
    retry_count: int | None = None
    next_retry_at: str | None = None
    progress: OperationProgress | None = None
    result_metadata: dict[str, Any] | None = None
    details: dict[str, Any] | None = None
    child_operations: list[ChildOperationStatus] | None = None
    task_payload: dict[str, Any] | None = None


class OperationActionResponse(ResponseModel):
    """Answer of cancel, retry and delete."""

    success: bool
    message: str
    operation_id: str


class SupersededUnit(ResponseModel):
    unit_id: str
    by: str
    reason: str


class DroppedPieces(ResponseModel):
    reason: str
    pieces: int
    characters: int


class ReceiptItem(ResponseModel):
    """What became of one item: units made, mentions added to units of before, units that ended, what was dropped."""

    document_id: str
    unit_ids: list[str]
    chunks: int
    chunks_unchanged: int
    mention_ids: list[str] = Field(default_factory=list)
    superseded: list[SupersededUnit] = Field(default_factory=list)
    restored_ids: list[str] = Field(default_factory=list)
    dropped: list[DroppedPieces] = Field(default_factory=list)


class ReceiptResponse(ResponseModel):
    """What became of every item of a retain (beyond the contract)."""

    operation_id: str
    status: str
    items: list[ReceiptItem] = Field(default_factory=list)


# --- the daemon -----------------------------------------------------------------------------------------------------


class HealthResponse(ResponseModel):
    status: str
    database: str


class LivenessResponse(ResponseModel):
    status: Literal["alive"]
    version: str
    uptime_seconds: float


class FeaturesInfo(ResponseModel):
    observations: bool
    mcp: bool
    worker: bool
    bank_config_api: bool
    bank_llm_health: bool
    file_upload_api: bool
    document_export_api: bool
    document_import_api: bool
    audit_log: bool
    llm_trace: bool
    store_document_text: bool


class VersionResponse(ResponseModel):
    api_version: str
    features: FeaturesInfo
    recalld_version: str


class ErrorResponse(ResponseModel):
    """Every error: a sentence, or for a request that does not validate a list of what is wrong where."""

    detail: str | list[dict[str, Any]]

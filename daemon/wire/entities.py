"""Wire models of graphs, and of what this daemon adds about entities and a bank's own count."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from recalld.actors.filters import MemoryFilters
from recalld.daemon.wire.base import MAX_PAGE, RequestModel, ResponseModel, Tags, TagsMatch
from recalld.daemon.wire.queries import EntityQuery, PageQuery, one_of
from recalld.daemon.wire.requests import require_uuid
from recalld.daemon.wire.responses import EntityDetailResponse
from recalld.storage.records import NETWORK_NAMES

# --- graphs ---------------------------------------------------------------------------------------------------------


class GraphQuery(RequestModel):
    type: str | None = None
    limit: int = Field(1000, ge=0, le=MAX_PAGE)
    q: str | None = None
    tags: Tags | None = None
    tags_match: TagsMatch = "all_strict"
    document_id: str | None = None
    chunk_id: str | None = None

    def to_filters(self) -> MemoryFilters:
        """The filters. Raises `BadRequest` for an unknown type."""
        return MemoryFilters(
            type=one_of(self.type, NETWORK_NAMES, "type"),
            q=self.q or None,
            document_id=self.document_id or None,
            tags=tuple(dict.fromkeys(self.tags or ())),
            tags_match=self.tags_match,
            limit=self.limit,
        )


class EntityGraphQuery(EntityQuery):
    limit: int = Field(1000, ge=0, le=MAX_PAGE)
    min_count: int = 1


class MemoryGraphNodeData(ResponseModel):
    id: str
    label: str = ""
    text: str = ""
    date: str = ""
    context: str = ""
    entities: str = ""
    color: str | None = None


class MemoryGraphNode(ResponseModel):
    data: MemoryGraphNodeData


class MemoryGraphEdgeData(ResponseModel):
    id: str
    source: str
    target: str
    linkType: str = ""
    weight: float = 0.0
    entityName: str = ""
    color: str | None = None
    lineStyle: str | None = None


class MemoryGraphEdge(ResponseModel):
    data: MemoryGraphEdgeData


class MemoryGraphTableRow(ResponseModel):
    id: str
    text: str = ""
    context: str = ""
    occurred_start: str | None = None
    occurred_end: str | None = None
    mentioned_at: str | None = None
    date: str | None = None
    entities: str = ""
    document_id: str | None = None
    chunk_id: str | None = None
    fact_type: str | None = None
    tags: list[str] = Field(default_factory=list)
    created_at: str | None = None
    proof_count: int | None = None


class GraphDataResponse(ResponseModel):
    nodes: list[MemoryGraphNode]
    edges: list[MemoryGraphEdge]
    table_rows: list[MemoryGraphTableRow]
    total_units: int
    limit: int


class EntityGraphNodeData(ResponseModel):
    id: str
    label: str = ""
    mentionCount: int = 0
    color: str | None = None


class EntityGraphNode(ResponseModel):
    data: EntityGraphNodeData


class EntityGraphEdgeData(ResponseModel):
    id: str
    source: str
    target: str
    linkType: str = "cooccurrence"
    weight: int = 0
    color: str | None = None
    lineStyle: str | None = None
    lastCooccurred: str | None = None


class EntityGraphEdge(ResponseModel):
    data: EntityGraphEdgeData


class EntityGraphResponse(ResponseModel):
    nodes: list[EntityGraphNode]
    edges: list[EntityGraphEdge]
    total_entities: int
    total_edges: int
    limit: int


# --- extensions: names, merges and splits ---------------------------------------------------------------------------


class MergeEntityRequest(RequestModel):
    """The entity of the path becomes a part of this one."""

    into: str

    @field_validator("into")
    @classmethod
    def _uuid(cls, value: str) -> str:
        return require_uuid(value, "into")


class SplitEntityRequest(RequestModel):
    """Either a name that the entity goes by, or some of the memories that name it and what to call their entity."""

    alias: str | None = Field(None, max_length=4096)
    unit_ids: list[str] | None = Field(None, max_length=10_000)
    name: str | None = Field(None, max_length=4096)

    @field_validator("unit_ids")
    @classmethod
    def _uuids(cls, value: list[str] | None) -> list[str] | None:
        return None if value is None else list(dict.fromkeys(require_uuid(one, "unit_ids") for one in value))

    @model_validator(mode="after")
    def _one(self) -> SplitEntityRequest:
        if bool((self.alias or "").strip()) == bool(self.unit_ids):
            raise ValueError("give either alias or unit_ids")
        return self


class EntityName(ResponseModel):
    id: str
    name: str
    kind: str
    why: Literal["alias", "likeness", "hand"] | None = None
    unit_count: int
    evidence: list[str]


class EntityNamesResponse(ResponseModel):
    id: str
    canonical_name: str
    names: list[EntityName]


class EntityChangeResponse(ResponseModel):
    success: bool
    change_id: str
    what: Literal["merged", "split_name", "split_units"]
    entities: list[EntityDetailResponse]


class EntityChangeEnd(ResponseModel):
    id: str
    name: str


class EntityChangeItem(ResponseModel):
    id: str
    what: Literal["merged", "split_name", "split_units"]
    at: str
    undone_at: str | None = None
    part: EntityChangeEnd | None = None
    whole: EntityChangeEnd | None = None
    units: int


class EntityChangesQuery(PageQuery):
    pass


class EntityChangesResponse(ResponseModel):
    items: list[EntityChangeItem]
    total: int
    limit: int
    offset: int


# --- extension: verify ----------------------------------------------------------------------------------------------


class VerifyProblem(ResponseModel):
    table: str
    row: str
    what: str


class VerifyResponse(ResponseModel):
    bank_id: str
    ok: bool
    checked: dict[str, Any]
    problems: list[VerifyProblem]
    problems_total: int

"""Wire models of consolidation and observations."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from recalld.daemon.wire.base import MAX_PAGE, RequestModel, ResponseModel

MAX_SCOPES, MAX_TAGS = 100, 100


class ConsolidationRequest(RequestModel):
    observation_scopes: list[list[str]] | None = Field(None, max_length=MAX_SCOPES)


class ConsolidationResponse(ResponseModel):
    operation_id: str
    deduplicated: bool = False


class RecoverConsolidationResponse(ResponseModel):
    retried_count: int


class ClearMemoryObservationsResponse(ResponseModel):
    deleted_count: int


class ScopesQuery(RequestModel):
    limit: int = Field(100, ge=0, le=1000)
    offset: int = Field(0, ge=0, le=MAX_PAGE)


class ObservationScope(ResponseModel):
    tags: list[str]
    count: int


class ObservationScopesResponse(ResponseModel):
    scopes: list[ObservationScope]
    total: int
    limit: int
    offset: int


class ConsolidationScopePattern(RequestModel):
    tags: list[str] = Field(default_factory=list, max_length=MAX_TAGS)
    tags_match: Literal["all", "exact"] | None = None


class ConsolidationStrategySpec(RequestModel):
    scopes: list[ConsolidationScopePattern] = Field(default_factory=list, max_length=MAX_SCOPES)
    observations_mission: str | None = None
    max_observations_per_scope: int | None = None
    consolidation_source_facts_max_tokens: int | None = None
    consolidation_source_facts_max_tokens_per_observation: int | None = None


class ConsolidationStrategiesPreviewRequest(RequestModel):
    strategies: list[ConsolidationStrategySpec] = Field(max_length=MAX_SCOPES)
    sample_limit: int = Field(5, ge=0, le=50)

    def plain(self) -> list[dict[str, Any]]:
        return [one.model_dump() for one in self.strategies]


class StrategyScopePreview(ResponseModel):
    tags: list[str]
    count: int
    handled_by: int | None


class StrategyRulePreview(ResponseModel):
    match_count: int
    taken_count: int
    observation_count: int
    samples: list[StrategyScopePreview]


class StrategyPreview(ResponseModel):
    active: bool
    claimed_count: int
    rules: list[StrategyRulePreview]


class DefaultScopesPreview(ResponseModel):
    match_count: int
    observation_count: int
    samples: list[StrategyScopePreview]


class ConsolidationStrategiesPreview(ResponseModel):
    strategies: list[StrategyPreview]
    default: DefaultScopesPreview
    scopes_scanned: int
    complete: bool

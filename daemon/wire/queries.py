"""Query strings of the listings, and how each becomes the filters the façade takes."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, ValidationError

from recalld.actors.filters import DocumentFilters, MemoryFilters, TagScope
from recalld.daemon.wire.base import MAX_PAGE, RequestModel, Tags, TagsMatch, parse_instant
from recalld.daemon.wire.requests import plain_groups
from recalld.storage.errors import BadRequest
from recalld.storage.records import NETWORK_NAMES


class NoQuery(RequestModel):
    """A route without parameters."""


class PageQuery(RequestModel):
    limit: int = Field(100, ge=0, le=MAX_PAGE)
    offset: int = Field(0, ge=0, le=MAX_PAGE)


class ListBanksQuery(PageQuery):
    q: str | None = None


class StatsQuery(RequestModel):
    refresh: bool = False


class ListMemoriesQuery(PageQuery):
    type: str | None = None
    q: str | None = None
    consolidation_state: str | None = None
    state: str | None = None
    document_id: str | None = None
    entity_id: str | None = None
    tags: Tags | None = None
    tags_match: TagsMatch = "any"
    time_field: Literal["created_at", "updated_at", "mentioned_at", "occurred_start", "occurred_end"] | None = None
    start_date: str | None = None
    end_date: str | None = None

    def to_filters(self) -> MemoryFilters:
        """The filters. Raises `BadRequest` for an unknown type or state, a bad date, or a window that is empty."""
        start, end = window(self.start_date, self.end_date)
        return MemoryFilters(
            type=one_of(self.type, NETWORK_NAMES, "type"),
            q=self.q or None,
            consolidation_state=one_of(self.consolidation_state, ("failed", "pending", "done"), "consolidation_state"),
            state=one_of(self.state, ("valid", "invalidated"), "state") or "valid",
            document_id=self.document_id or None,
            entity_id=self.entity_id or None,
            tags=tuple(dict.fromkeys(self.tags or ())),
            tags_match=self.tags_match,
            time_field=self.time_field or "created_at",
            start=start,
            end=end,
            limit=self.limit,
            offset=self.offset,
        )


class ClearMemoriesQuery(RequestModel):
    type: str | None = None

    def to_type(self) -> str | None:
        return one_of(self.type, NETWORK_NAMES, "type")


class ListDocumentsQuery(PageQuery):
    q: str | None = None
    tags: Tags | None = None
    tags_match: TagsMatch = "any_strict"
    time_field: Literal["created_at", "updated_at"] | None = None
    start_date: str | None = None
    end_date: str | None = None

    def to_filters(self) -> DocumentFilters:
        start, end = window(self.start_date, self.end_date)
        return DocumentFilters(
            q=self.q or None,
            tags=tuple(dict.fromkeys(self.tags or ())),
            tags_match=self.tags_match,
            time_field=self.time_field or "created_at",
            start=start,
            end=end,
            limit=self.limit,
            offset=self.offset,
        )


class ListChunksQuery(RequestModel):
    limit: int = Field(100, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=MAX_PAGE)


class ListTagsQuery(PageQuery):
    q: str | None = None
    source: Literal["memories", "mental_models"] = "memories"


class EntityQuery(RequestModel):
    tags: Tags | None = None
    tags_match: TagsMatch = "any"
    tag_groups: str | None = None

    def to_scope(self) -> TagScope:
        """The tag scope. Raises `BadRequest` for bad JSON, a bad node, or tags together with groups."""
        if not self.tag_groups:
            return TagScope(tuple(dict.fromkeys(self.tags or ())), self.tags_match)
        if self.tags:
            raise BadRequest("tags and tag_groups exclude each other; put the tags into a group.")
        try:
            groups = plain_groups(json.loads(self.tag_groups))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise BadRequest(
                f"tag_groups is not a list of tag groups (at {where}: {error.errors()[0]['msg']})."
            ) from None
        except (ValueError, RecursionError):
            raise BadRequest("tag_groups must be a JSON list of tag groups.") from None
        return TagScope(groups=tuple(groups))


class ListEntitiesQuery(EntityQuery, PageQuery):
    pass


class ListOperationsQuery(RequestModel):
    status: str | None = None
    type: str | None = None
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0, le=MAX_PAGE)
    exclude_parents: bool = False


class OperationQuery(RequestModel):
    include_payload: bool = False


def one_of(value: str | None, known: tuple[str, ...], field: str) -> str | None:
    if not value:
        return None
    if value not in known:
        raise BadRequest(f"{field} must be one of {', '.join(known)}.")
    return value


def window(start: str | None, end: str | None) -> tuple[int | None, int | None]:
    bounds: list[Any] = []
    for field, text in (("start_date", start), ("end_date", end)):
        if not text:
            bounds.append(None)
            continue
        try:
            bounds.append(parse_instant(text))
        except ValueError as error:
            raise BadRequest(f"{field} {error}.") from None
    if None not in bounds and bounds[1] < bounds[0]:
        raise BadRequest("end_date must not be before start_date.")
    return bounds[0], bounds[1]

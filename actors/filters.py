"""Filters of listings: the query parameters as frozen values, instants in microseconds since the epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """What `memories/list` selects. `start` is inclusive, `end` exclusive, both on `time_field`."""

    type: str | None = None
    q: str | None = None
    consolidation_state: str | None = None
    state: str = "valid"
    document_id: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    time_field: str = "created_at"
    start: int | None = None
    end: int | None = None
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DocumentFilters:
    """What `documents` selects. `start` is inclusive, `end` exclusive, both on `time_field`."""

    q: str | None = None
    tags: tuple[str, ...] = ()
    tags_match: str = "any_strict"
    time_field: str = "created_at"
    start: int | None = None
    end: int | None = None
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TagScope:
    """Which memories' entities count: flat tags or groups, never both. `groups` are the wire's nodes."""

    tags: tuple[str, ...] = ()
    tags_match: str = "any"
    groups: tuple[dict[str, Any], ...] = ()

    @property
    def wire_groups(self) -> list[dict[str, Any]] | None:
        return list(self.groups) or None

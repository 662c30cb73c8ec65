"""Graphs and entity changes of the small in-memory service: empty, for the shape of what the edge answers."""

from __future__ import annotations

from typing import Any

from recalld.storage.errors import NotFound


class EntityAnswers:
    """Mixed into the service, whose banks it asks for."""

    def _bank(self, tenant: str, bank_id: str) -> Any:
        raise NotImplementedError

    async def graph(self, tenant: str, bank_id: str, filters: Any, chunk_id: str | None) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"nodes": [], "edges": [], "table_rows": [], "total_units": 0, "limit": filters.limit}

    async def entity_graph(
        self, tenant: str, bank_id: str, tags: Any, tags_match: str, tag_groups: Any, limit: int, min_count: int
    ) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"nodes": [], "edges": [], "total_entities": 0, "total_edges": 0, "limit": limit}

    async def entity_changes(self, tenant: str, bank_id: str, limit: int, offset: int) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"items": [], "total": 0, "limit": limit, "offset": offset}

    async def entity_names(self, tenant: str, bank_id: str, entity_id: str) -> dict[str, Any]:
        raise NotFound(f"Entity '{entity_id}' not found")

    async def verify(self, tenant: str, bank_id: str) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"bank_id": bank_id, "ok": True, "checked": {}, "problems": [], "problems_total": 0}

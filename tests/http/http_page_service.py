"""Directives, models, pages and opinions of the small in-memory service: none, for the shape of the answers."""

from __future__ import annotations

from typing import Any


class PageAnswers:
    """Mixed into the service, whose banks it asks for."""

    def _bank(self, tenant: str, bank_id: str) -> Any:
        raise NotImplementedError

    async def list_directives(
        self, tenant: str, bank_id: str, tags: Any, tags_match: str, active_only: bool, limit: int, offset: int
    ) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"items": [], "total": 0, "limit": limit, "offset": offset}

    async def list_mental_models(self, tenant: str, bank_id: str, **params: Any) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"items": [], "total": 0, "limit": params["limit"], "offset": params["offset"]}

    async def knowledge_tree(self, tenant: str, bank_id: str, scope: Any) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"roots": []}

    async def export_pages(self, tenant: str, bank_id: str) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"files": [{"path": "index.md", "content": "# Knowledge base\n"}]}

    async def list_opinions(self, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"items": [], "total": 0, "limit": params["limit"], "offset": params["offset"]}

"""Observations of the small in-memory service: none, for the shape of what the edge answers."""

from __future__ import annotations

from typing import Any


class ObservationAnswers:
    """Mixed into the service, whose banks it asks for."""

    def _bank(self, tenant: str, bank_id: str) -> Any:
        raise NotImplementedError

    async def observation_scopes(self, tenant: str, bank_id: str, limit: int, offset: int) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"scopes": [], "total": 0, "limit": limit, "offset": offset}

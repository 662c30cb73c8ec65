"""The part of the service that knows observations and how facts become them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.actors.consolidate.messages import ForgetObservations, QueueConsolidation
from recalld.storage.errors import BankNotFound, NotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.daemon.consolidating import Consolidating

Answer = dict[str, Any]


class ObservationService:
    """Mixed into the façade, which gives it shards, clock and ids."""

    shards: Shards
    consolidating: Consolidating
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _read: Callable[..., Awaitable[Any]]

    async def consolidate(self, tenant: str, bank_id: str, scopes: list[list[str]] | None) -> Answer:
        """Queue a consolidation; one that waits already is answered instead."""
        asked = None if scopes is None else tuple(tuple(one) for one in scopes)
        answer = await self._queue_consolidation(tenant, bank_id, scopes=asked)
        return {"operation_id": answer["operation_id"], "deduplicated": answer["deduplicated"]}

    async def recover_consolidation(self, tenant: str, bank_id: str) -> Answer:
        """Try facts again that failed, now."""
        return await self._queue_consolidation(tenant, bank_id, recover=True)

    async def _queue_consolidation(self, tenant: str, bank_id: str, **fields: Any) -> Answer:
        request = QueueConsolidation(tenant, bank_id, self._clock(), self._new_id(), **fields)
        answer: Answer = await self.shards.call(tenant, bank_id, request)
        return answer

    async def clear_observations(self, tenant: str, bank_id: str) -> Answer:
        request = ForgetObservations(tenant, bank_id, self._new_id(), self._clock())
        count = (await self.shards.call(tenant, bank_id, request))["deleted"]
        return {"success": True, "message": f"{count} observations deleted", "deleted_count": count}

    async def clear_memory_observations(self, tenant: str, bank_id: str, memory_id: str) -> Answer:
        request = ForgetObservations(tenant, bank_id, self._new_id(), self._clock(), memory_id)
        try:
            count = (await self.shards.call(tenant, bank_id, request))["deleted"]
        except BankNotFound:
            raise NotFound(f"Memory '{memory_id}' not found") from None
        self.consolidating.soon(tenant, bank_id)
        return {"deleted_count": count}

    async def observation_scopes(self, tenant: str, bank_id: str, limit: int, offset: int) -> Answer:
        answer: Answer = await self._read("observation_scopes", tenant, bank_id, limit=limit, offset=offset)
        return answer

    async def preview_strategies(
        self, tenant: str, bank_id: str, strategies: list[dict[str, Any]], sample_limit: int
    ) -> Answer:
        params = {"strategies": strategies, "sample_limit": sample_limit}
        read = messages.Read("strategies_preview", tenant, bank_id, params)
        answer: Answer = await self.shards.call(tenant, bank_id, read)
        return answer

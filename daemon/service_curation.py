"""The part of the service that corrects memories by hand and reads the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.actors.curation_messages import CurateJob
from recalld.storage.errors import BankNotFound, NotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.daemon.screening import Screening

Answer = dict[str, Any]


class CurationService:
    """Mixed into the façade, which gives it shards, the worker, clock and ids."""

    shards: Shards
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _work: Callable[[Any], Awaitable[Any]]
    _child: Callable[..., Awaitable[Answer]]
    screening: Screening
    get_memory: Callable[[str, str, str], Awaitable[Answer]]

    async def patch_memory(self, tenant: str, bank_id: str, memory_id: str, fields: dict[str, Any]) -> Answer:
        """Edit, invalidate or revert; the memory as it is then."""
        fields = await self.screening.fields(tenant, bank_id, fields)
        job = CurateJob(tenant, bank_id, self._new_id(), self._clock(), memory_id, fields)
        try:
            await self._work(job)
        except BankNotFound:
            raise NotFound(f"Memory '{memory_id}' not found") from None
        return await self.get_memory(tenant, bank_id, memory_id)

    async def memory_history(self, tenant: str, bank_id: str, memory_id: str) -> list[Answer]:
        text = f"Memory '{memory_id}' not found"
        answer = await self._child("memory_history", tenant, bank_id, text, memory_id=memory_id)
        versions: list[Answer] = answer["versions"]
        return versions

    async def list_audit(
        self,
        tenant: str,
        bank_id: str,
        action: str | None,
        transport: str | None,
        start: int | None,
        end: int | None,
        limit: int,
        offset: int,
    ) -> Answer:
        params = {"action": action, "transport": transport, "start": start, "end": end}
        return await self._asked("list_audit", tenant, bank_id, **params, limit=limit, offset=offset)

    async def get_audit(self, tenant: str, bank_id: str, log_id: str) -> Answer:
        return await self._child("get_audit", tenant, bank_id, f"Audit entry '{log_id}' not found", log_id=log_id)

    async def audit_stats(self, tenant: str, bank_id: str, action: str | None, days: int) -> Answer:
        return await self._asked("audit_stats", tenant, bank_id, action=action, days=days, now=self._clock())

    async def _asked(self, what: str, tenant: str, bank_id: str, **params: Any) -> Answer:
        answer: Answer = await self.shards.call(tenant, bank_id, messages.Read(what, tenant, bank_id, params))
        return answer

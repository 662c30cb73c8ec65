"""A bank of the real service and what it believes, in few words."""

from __future__ import annotations

from typing import Any

from recalld.actors.retain.items import RetainItem
from recalld.daemon.service import MemoryService
from recalld.daemon.wire.recall_input import RecallInput

TENANT = "default"
PAGE = {"limit": 100, "offset": 0}


class Beliefs:
    """A bank and what it believes, in few words."""

    def __init__(self, service: MemoryService, bank_id: str = "b") -> None:
        self.service = service
        self.id = bank_id

    async def say(self, text: str, **fields: Any) -> str:
        """Retain one text; the id of its only unit."""
        item = RetainItem.parse({"content": text, **fields})
        answer = await self.service.retain(TENANT, self.id, [item], asynchronous=False, operation_id=None)
        row = answer["receipt"][0]
        ids = [*row["unit_ids"], *row.get("mention_ids", ())]
        assert len(ids) == 1, row
        return str(ids[0])

    async def opinions(self, **filters: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.service.list_opinions(TENANT, self.id, {**PAGE, **filters}))["items"]
        return rows

    async def opinion(self, opinion_id: str) -> dict[str, Any]:
        return await self.service.get_opinion(TENANT, self.id, opinion_id)

    async def confidence(self, opinion_id: str) -> float:
        return float((await self.opinion(opinion_id))["confidence"])

    async def history(self, opinion_id: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.service.opinion_history(TENANT, self.id, opinion_id))["items"]
        return rows

    async def audit(self, action: str | None = None) -> list[dict[str, Any]]:
        answer = await self.service.list_audit(TENANT, self.id, action, None, None, None, 500, 0)
        return list(reversed(answer["items"]))

    async def recall(self, query: str, **options: Any) -> list[dict[str, Any]]:
        found = (await self.service.recall(TENANT, self.id, RecallInput(query, **options)))["results"]
        rows: list[dict[str, Any]] = list(found)
        return rows

    def now(self) -> int:
        return self.service._clock()

"""A service in this process on a home of its own, and small ways to use it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from recalld.actors.filters import DocumentFilters, MemoryFilters
from recalld.actors.retain.items import RetainItem
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire.recall_input import RecallInput

TENANT = "default"


async def opened(home: Path, **settings: Any) -> MemoryService:
    given: dict[str, Any] = {"runtime": "inline", "retain_extraction_mode": "chunks", **settings}
    return await open_service(Settings(home=home, **given))


def item(content: str, **fields: Any) -> RetainItem:
    return RetainItem.parse({"content": content, **fields})


async def retain(service: MemoryService, bank: str, *contents: str | RetainItem, **fields: Any) -> dict[str, Any]:
    items = [one if isinstance(one, RetainItem) else item(one, **fields) for one in contents]
    return await service.retain(TENANT, bank, items, asynchronous=False, operation_id=None)


async def queue(service: MemoryService, bank: str, *items: RetainItem, operation_id: str | None = None) -> str:
    answer = await service.retain(TENANT, bank, list(items), asynchronous=True, operation_id=operation_id)
    return str(answer["operation_id"])


async def texts(service: MemoryService, bank: str) -> list[str]:
    answer = await service.list_memories(TENANT, bank, MemoryFilters(limit=1000))
    return [row["text"] for row in answer["items"]]


async def documents(service: MemoryService, bank: str) -> list[str]:
    answer = await service.list_documents(TENANT, bank, DocumentFilters(limit=1000))
    return [row["id"] for row in answer["items"]]


async def recall(service: MemoryService, bank: str, query: str, **fields: Any) -> list[str]:
    answer = await service.recall(TENANT, bank, RecallInput(query, max_tokens=100_000, **fields))
    return [row["text"] for row in answer["results"]]


async def operation(service: MemoryService, bank: str, operation_id: str) -> dict[str, Any]:
    return await service.get_operation(TENANT, bank, operation_id, False)


async def ended(service: MemoryService, bank: str, operation_id: str, seconds: float = 20.0) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while True:
        found = await operation(service, bank, operation_id)
        if found["status"] in ("completed", "failed", "cancelled"):
            return found
        assert time.monotonic() < end, found
        await asyncio.sleep(0.01)


async def until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.005)

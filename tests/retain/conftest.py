"""The real service over a temporary home, every message through the codec."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.retain.items import RetainItem
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire.recall_input import RecallInput

Open = Callable[..., Awaitable[MemoryService]]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="none")
    )
    yield opened
    await opened.close()


class Bank:
    """A bank of the service in few words."""

    def __init__(self, service: MemoryService, bank_id: str) -> None:
        self.service = service
        self.id = bank_id

    async def retain(self, *items: dict[str, Any]) -> list[dict[str, Any]]:
        parsed = [RetainItem.parse(item) for item in items]
        answer = await self.service.retain("default", self.id, parsed, asynchronous=False, operation_id=None)
        receipt: list[dict[str, Any]] = answer["receipt"]
        return receipt

    async def recall(self, query: str, **options: Any) -> dict[str, Any]:
        return await self.service.recall("default", self.id, RecallInput(query, **options))

    async def texts(self, query: str, **options: Any) -> list[str]:
        return [result["text"] for result in (await self.recall(query, **options))["results"]]

    async def document(self, document_id: str) -> dict[str, Any]:
        return await self.service.get_document("default", self.id, document_id)


@pytest.fixture
def bank(service: MemoryService) -> Bank:
    return Bank(service, "b")


def snapshot(service: MemoryService, bank_id: str) -> Any:
    """The store's own view of a bank, for what no route shows."""
    shard = service._resolver._actors._hosts["shard-0"]._actor  # type: ignore[attr-defined]
    return shard._partitions[service.home.partition_of("default", bank_id)].read("default", bank_id)

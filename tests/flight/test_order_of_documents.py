"""Writes of one document in the background: none of them gets lost, and the last one sent is the one that stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from flight_service import TENANT, ended, item, opened, texts

from recalld.actors.messages import SubmitOperations
from recalld.daemon.service import MemoryService

FAST = {"operations_backoff_seconds": 0.05, "operations_backoff_max_seconds": 0.2, "operations_max_attempts": 3}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home", **FAST)
    yield running
    await running.close()


async def test_items_of_one_document_stay_together_whatever_their_strategies(service: MemoryService) -> None:
    items = [
        item("Ana keeps bees.", document_id="d", strategy="a"),
        item("Ben sails.", document_id="d", strategy="b"),
        item("Cy runs.", document_id="e", strategy="b"),
    ]
    answer = await service.retain(TENANT, "b", items, asynchronous=True, operation_id=None)
    assert len(answer["operation_ids"]) == 2
    for name in answer["operation_ids"]:
        assert (await ended(service, "b", name))["status"] == "completed"
    assert sorted(await texts(service, "b")) == ["Ana keeps bees.", "Ben sails.", "Cy runs."]


async def test_the_operations_of_one_call_are_stored_in_one_write(service: MemoryService) -> None:
    real, sent = service.shards.call, []

    async def call(tenant: str, bank_id: str, message: Any, *more: Any) -> Any:
        if isinstance(message, SubmitOperations):
            sent.append(message)
        return await real(tenant, bank_id, message, *more)

    service.shards.call = call  # type: ignore[method-assign]
    items = [item("Ana keeps bees.", strategy="a"), item("Ben sails.", strategy="b")]
    answer = await service.retain(TENANT, "b", items, asynchronous=True, operation_id=None)
    assert len(answer["operation_ids"]) == 2
    assert [len(message.operations) for message in sent] == [4]
    for name in answer["operation_ids"]:
        assert (await ended(service, "b", name))["status"] == "completed"
    assert sorted(await texts(service, "b")) == ["Ana keeps bees.", "Ben sails."]

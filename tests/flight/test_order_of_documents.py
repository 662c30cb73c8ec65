"""Writes of one document in the background: none of them gets lost, and the last one sent is the one that stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flight_service import TENANT, ended, item, opened, operation, queue, retain, texts, until

from recalld.actors.messages import CommitRetains, SubmitOperations
from recalld.actors.operations import OperationQueue
from recalld.daemon.service import MemoryService
from recalld.storage.errors import Superseded, Unavailable

FAST = {"operations_backoff_seconds": 0.05, "operations_backoff_max_seconds": 0.2, "operations_max_attempts": 3}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home", **FAST)
    yield running
    await running.close()


async def test_items_of_one_document_stay_together_whatever_their_strategies(service: MemoryService) -> None:
    await service.patch_config(TENANT, "b", {"retain_strategies": {"a": {}, "b": {}}})
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
    await service.patch_config(TENANT, "b", {"retain_strategies": {"a": {}, "b": {}}})
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


async def test_a_small_retain_does_not_overtake_a_big_one_of_its_document(service: MemoryService) -> None:
    big = "word " * 6000
    await asyncio.gather(
        retain(service, "b", item("another " + big, document_id="x")),
        retain(service, "b", item("version one " + big, document_id="d")),
        retain(service, "b", item("version two", document_id="d")),
    )
    assert (await service.get_document(TENANT, "b", "d"))["original_text"] == "version two"


async def test_a_retain_that_is_planned_again_keeps_its_place_in_line(service: MemoryService) -> None:
    await retain(service, "b", item("version zero", document_id="d"))
    worker = service._resolver._actors._hosts["worker-0"]._actor  # type: ignore[attr-defined]
    real, refused = worker._shards.call_named, []

    async def refuse_once(name: str, message: Any, *more: Any) -> Any:
        if isinstance(message, CommitRetains) and not refused:
            refused.append(True)
            # The younger version arrives while the older one is in hand.
            younger.append(asyncio.create_task(retain(service, "b", item("version two", document_id="d"))))
            await until(lambda: asyncio.sleep(0, len(worker._waiting) == 1))
            return tuple(Superseded("The document changed.") for _ in message.commits)
        return await real(name, message, *more)

    younger: list[asyncio.Task[Any]] = []
    worker._shards.call_named = refuse_once
    await retain(service, "b", item("version one", document_id="d"))
    await asyncio.gather(*younger)
    assert refused and (await service.get_document(TENANT, "b", "d"))["original_text"] == "version two"


async def test_versions_sent_in_the_background_end_with_the_last_one(service: MemoryService) -> None:
    big = "word " * 6000
    wanted = [
        await queue(service, "b", item("another " + big, document_id="x")),
        await queue(service, "b", item("version one " + big, document_id="d"), item("also", document_id="e")),
        await queue(service, "b", item("version two", document_id="d"), item("more", document_id="f")),
    ]
    for one in wanted:
        assert (await ended(service, "b", one))["status"] == "completed"
    assert (await service.get_document(TENANT, "b", "d"))["original_text"] == "version two"


async def test_a_version_that_waits_for_another_attempt_is_not_overtaken(service: MemoryService) -> None:
    worker = await service._worker()
    real, failed = service._dispatcher._worker, []

    class Failing:
        name = "worker-0"

        async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
            if not failed:
                failed.append(True)
                raise Unavailable("The worker is away.")
            return await worker.call(message, timeout=timeout)

    async def failing() -> Any:
        return Failing()

    service._dispatcher._worker = failing
    try:
        first = await queue(service, "b", item("version one", document_id="d"))
        second = await queue(service, "b", item("version two", document_id="d"))
        other = await queue(service, "b", item("something else", document_id="e"))
        for one in (first, second, other):
            assert (await ended(service, "b", one))["status"] == "completed"
    finally:
        service._dispatcher._worker = real
    assert failed and (await service.get_document(TENANT, "b", "d"))["original_text"] == "version two"


def handed_out(waiting: OperationQueue, now: int = 0) -> list[str]:
    return [name for _, name in waiting.take(10, now)]


def test_operations_of_different_documents_are_handed_out_side_by_side() -> None:
    waiting, bank = OperationQueue(), ("t", "b")
    for name, documents in (("one", (1, 2)), ("two", (2, 3)), ("three", (4,)), ("four", (3,)), ("five", ())):
        waiting.put(bank, name, documents=documents)
    assert handed_out(waiting) == ["one", "three", "five"]
    waiting.put(bank, "one", 5)
    waiting.settle(bank, "three")
    assert handed_out(waiting) == []
    assert handed_out(waiting, 5) == ["one"]
    waiting.settle(bank, "one")
    assert handed_out(waiting) == ["two"]
    waiting.settle(bank, "two")
    assert handed_out(waiting) == ["four"] and len(waiting) == 0


async def test_a_cancelled_version_lets_the_next_one_go(service: MemoryService) -> None:
    service._dispatcher._settings = replace(service.settings, operations_backoff_seconds=60.0)
    service._dispatcher._settings = replace(service._dispatcher._settings, operations_backoff_max_seconds=60.0)
    real = service._dispatcher._worker

    async def away() -> Any:
        raise Unavailable("The worker is away.")

    service._dispatcher._worker = away
    first = await queue(service, "b", item("version one", document_id="d"))

    async def kept_back() -> bool:
        listed = await service.list_operations(TENANT, "b", None, None, 10, 0, True)
        return [row["next_retry_at"] is not None for row in listed["operations"]] == [True]

    await until(kept_back)
    service._dispatcher._worker = real
    second = await queue(service, "b", item("version two", document_id="d"))
    await asyncio.sleep(0.2)
    assert (await operation(service, "b", second))["status"] == "pending"
    await service.cancel_operation(TENANT, "b", first)
    assert (await ended(service, "b", second))["status"] == "completed"

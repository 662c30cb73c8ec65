"""A retain that nobody wants any more stops where it is, stores nothing, and leaves its lane and document to others."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from recalld.daemon.service import MemoryService
from recalld.storage.errors import NotFound

from .model_server import TENANT, ended, memories, operation, queue, retain, until_operation

LONG = "\n".join(f"Line {n}: pump {n * 7} was checked by Ana in hall {n % 13}." for n in range(3000))
PATIENCE = 20.0
"""Seconds for what takes a fraction of one on an idle machine."""


def worker(service: MemoryService) -> Any:
    return service._resolver._actors._hosts["worker-0"]._actor  # type: ignore[attr-defined]


async def part_of(service: MemoryService, operation_id: str) -> str:
    """The operation that does the work, once somebody has it in hand."""
    found = await until_operation(service, "b", operation_id, lambda one: bool(one["child_operations"]))
    part = str(found["child_operations"][0]["operation_id"])
    await until_operation(service, "b", part, lambda one: one["status"] == "processing")
    return part


async def embedding(service: MemoryService) -> None:
    """Until the Encoder has texts of the job."""
    queue = service._resolver._actors._hosts["encoder"]._actor._queue  # type: ignore[attr-defined]
    end = time.monotonic() + PATIENCE
    while not queue._waiting:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def idle(service: MemoryService) -> None:
    """Until the worker has nothing in hand."""
    end = time.monotonic() + PATIENCE
    while worker(service)._in_hand or worker(service)._waiting or worker(service)._commits:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("while_embedding", [False, True])
async def test_a_cancelled_retain_ends_at_once_and_stores_nothing(
    service: MemoryService, while_embedding: bool
) -> None:
    operation_id = await queue(service, "b", LONG, document_id="d")
    part = await part_of(service, operation_id)
    if while_embedding:
        await embedding(service)
    await service.cancel_operation(TENANT, "b", operation_id)
    asked = time.monotonic()
    assert (await until_operation(service, "b", part, ended))["status"] == "cancelled"
    took = time.monotonic() - asked
    assert (await operation(service, "b", operation_id))["status"] == "cancelled"
    assert took < PATIENCE / 2, took
    await idle(service)
    assert await memories(service, "b") == []
    await retain(service, "b", "The pump was sold.", document_id="d")
    assert len(await memories(service, "b")) == 1


async def test_the_work_on_a_deleted_bank_ends(service: MemoryService) -> None:
    operation_id = await queue(service, "b", LONG)
    await part_of(service, operation_id)
    await embedding(service)
    await service.delete_bank(TENANT, "b")
    await idle(service)
    with pytest.raises(NotFound):
        await memories(service, "b")


async def test_small_retains_finish_while_a_big_one_runs(service: MemoryService) -> None:
    operation_id = await queue(service, "b", LONG)
    part = await part_of(service, operation_id)
    await embedding(service)
    for n in range(3):
        await retain(service, "other", f"Ana bought pump {n}.")
    assert (await operation(service, "b", part))["status"] == "processing"
    await service.cancel_operation(TENANT, "b", operation_id)
    await until_operation(service, "b", part, ended)


async def test_what_was_taken_with_a_cancelled_retain_is_stored(service: MemoryService) -> None:
    lines = LONG.splitlines()
    ids = [await queue(service, "b", "\n".join(lines[n * 100 : n * 100 + 100]), document_id=f"d{n}") for n in range(4)]
    gone = await part_of(service, ids[3])
    await service.cancel_operation(TENANT, "b", ids[3])
    assert (await until_operation(service, "b", gone, ended))["status"] == "cancelled"
    for operation_id in ids[:3]:
        found = await until_operation(service, "b", operation_id, ended, 4 * PATIENCE)
        assert found["status"] == "completed"
    assert {row["document_id"] for row in await memories(service, "b")} == {"d0", "d1", "d2"}

"""A retain that nobody wants any more stops paying for calls."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recalld.actors.model_stage import AT_ONCE
from recalld.daemon.service import MemoryService
from recalld.storage.errors import Conflict, NotFound

from .model_server import TENANT, ModelServer, ended, memories, model_server, queue, service_with, until_operation

LONG = "\n".join(f"Line {n}: pump {n * 7} was checked by Ana in hall {n % 13}." for n in range(2000))


async def asked(server: ModelServer, count: int) -> None:
    for _ in range(2000):
        if server.calls >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("no call came")


async def settled(server: ModelServer) -> int:
    """The calls that had begun, once no other comes."""
    before = -1
    while server.calls != before:
        before = server.calls
        await asyncio.sleep(4 * server.delay)
    return before


async def again(service: MemoryService, operation_id: str) -> None:
    for _ in range(200):
        try:
            await service.retry_operation(TENANT, "b", operation_id)
            return
        except Conflict:
            await asyncio.sleep(0.05)
    raise AssertionError("what was cancelled never ended")


async def cancel(service: MemoryService, operation_id: str) -> None:
    await service.cancel_operation(TENANT, "b", operation_id)


async def delete_bank(service: MemoryService, operation_id: str) -> None:
    await service.delete_bank(TENANT, "b")


@pytest.mark.parametrize("stop", [cancel, delete_bank])
async def test_no_call_is_begun_for_a_retain_that_was_cancelled_or_whose_bank_went(
    tmp_path: Path, stop: object
) -> None:
    async with model_server() as server, service_with(server, tmp_path / "home") as service:
        server.delay = 0.2
        operation_id = await queue(service, "b", LONG)
        await asked(server, 1)
        await stop(service, operation_id)  # type: ignore[operator]
        under_way = server.calls
        assert await settled(server) <= under_way + AT_ONCE
        if stop is cancel:
            assert (await until_operation(service, "b", operation_id, ended))["status"] == "cancelled"
            assert await memories(service, "b") == []
        else:
            with pytest.raises(NotFound):
                await memories(service, "b")


async def test_a_cancelled_retain_that_is_asked_for_again_pays_only_for_the_rest(tmp_path: Path) -> None:
    async with model_server() as server, service_with(server, tmp_path / "home") as service:
        server.delay = 0.2
        operation_id = await queue(service, "b", "\n".join(LONG.splitlines()[:600]))
        await asked(server, 1)
        await cancel(service, operation_id)
        with pytest.raises(Conflict, match="still ending"):
            await service.retry_operation(TENANT, "b", operation_id)
        await settled(server)
        server.delay = 0.0
        await again(service, operation_id)
        assert (await until_operation(service, "b", operation_id, ended))["status"] == "completed"
        assert len(await memories(service, "b")) == 600
        assert len(server.prompts) == len(set(server.prompts)), "no chunk was paid for twice"

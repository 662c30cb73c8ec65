"""The contract on the inline runtime: as in production, and with every message sent through the codec."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from runtime_contract import Bench, RuntimeContract

from recalld.actors.inline_runtime import InlineRuntime
from recalld.actors.runtime import ActorRef


@pytest_asyncio.fixture(params=[False, True], ids=["objects", "strict"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    runtime = InlineRuntime(strict=request.param)
    yield Bench(runtime, runtime.restart, crosses=request.param)
    await runtime.shutdown()
    await runtime.shutdown()


@pytest_asyncio.fixture
async def ref(bench: Bench) -> ActorRef:
    return await bench.spawn()


class TestInline(RuntimeContract):
    pass

"""The edge in this process, over a service whose recall lasts until it is ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from aiohttp.test_utils import TestServer

from recalld.daemon.app import build_app
from recalld.daemon.settings import Settings


class SlowService:
    """A service whose recall lasts until it is ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def enabled_tools(self, tenant: str, bank_id: str) -> None:
        return None

    async def bank_config(self, tenant: str, bank_id: str) -> dict[str, Any]:
        return {}

    async def recall(self, tenant: str, bank_id: str, request: Any) -> dict[str, Any]:
        self.begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.ended.set()
        return {}


@contextlib.asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[tuple[SlowService, str]]:
    service = SlowService()
    server = TestServer(build_app(service, Settings(**settings)), host="127.0.0.1")  # type: ignore[arg-type]
    await server.start_server()
    try:
        yield service, str(server.make_url("/mcp"))
    finally:
        await server.close()

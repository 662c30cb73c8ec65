"""A bank over the real HTTP path: the service in this process, its application on a socket of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from recalld.daemon.app import build_app
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

Open = Callable[..., Awaitable["Wire"]]


class Wire:
    """Requests to one bank. `__call__` gives (status, body)."""

    def __init__(self, client: TestClient[Any, Any], service: MemoryService, bank: str = "b") -> None:
        self.client = client
        self.service = service
        self.bank = bank

    @property
    def host(self) -> str:
        return str(self.client.make_url("")).rstrip("/")

    async def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        url = f"/v1/default/banks/{self.bank}{path}"
        async with self.client.request(method, url, json=body, params=query or None) as response:
            return response.status, await response.json()

    async def ok(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        status, answer = await self(method, path, body, **query)
        assert status in (200, 201), (status, answer)
        return answer

    async def retain(self, *items: str | dict[str, Any]) -> None:
        plain = [{"content": one} if isinstance(one, str) else one for one in items]
        await self.ok("POST", "/memories", {"items": plain})


@pytest.fixture
async def open_wire(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a daemon's service over the test's own home, with settings of the test's."""
    held: list[tuple[TestClient[Any, Any], MemoryService]] = []

    async def make(**settings: Any) -> Wire:
        values = {"home": tmp_path / "home", "runtime": "inline", "extraction_provider": "none", **settings}
        service = await open_service(replace(Settings(), **values))
        client: TestClient[Any, Any] = TestClient(TestServer(build_app(service, service.settings)))
        await client.start_server()
        held.append((client, service))
        return Wire(client, service)

    yield make
    for client, service in held:
        await client.close()
        await service.close()


@pytest.fixture
async def wire(open_wire: Open) -> Wire:
    """A bank in which nothing happens by itself."""
    return await open_wire(enable_auto_consolidation=False)

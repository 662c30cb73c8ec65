"""The edge on a real loopback socket, with the in-memory service behind it; `conftest` exports the fixtures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from http_memory_service import MemoryService
from yarl import URL

from recalld.daemon.app import build_app
from recalld.daemon.settings import Settings


@dataclass
class Answer:
    """Status, parsed body and headers of one answer."""

    status: int
    body: Any
    headers: Any

    @property
    def detail(self) -> Any:
        return self.body["detail"]


class Edge:
    """A running server with its service, and a client that sends paths exactly as written."""

    def __init__(self, server: TestServer, service: MemoryService, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.service = service
        self.session = session

    @property
    def url(self) -> str:
        return str(self.server.make_url("/")).rstrip("/")

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, **options) as response:
            kind = response.content_type
            body = await response.json() if kind == "application/json" else await response.text()
            return Answer(response.status, body, response.headers)

    async def recall(self, bank: str = "b", **fields: Any) -> Answer:
        return await self.send("POST", f"/v1/default/banks/{bank}/memories/recall", json={"query": "tea"} | fields)

    async def retain(self, *items: Any, bank: str = "b", **fields: Any) -> Answer:
        body = {"items": [one if isinstance(one, dict) else {"content": one} for one in items]} | fields
        return await self.send("POST", f"/v1/default/banks/{bank}/memories", json=body)


Start = Callable[..., Awaitable[Edge]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start an edge with the given settings."""
    running: list[Edge] = []

    async def make(**settings: Any) -> Edge:
        chosen = Settings(**settings)
        service = MemoryService(chosen)
        server = TestServer(build_app(service, chosen), host="127.0.0.1")
        await server.start_server()
        running.append(Edge(server, service, aiohttp.ClientSession()))
        return running[-1]

    yield make
    for edge in running:
        if edge.service.gate is not None:
            edge.service.gate.set()
        await edge.session.close()
        await edge.server.close()


@pytest.fixture
async def edge(start: Start) -> Edge:
    return await start()

"""A daemon's HTTP edge and service in this process, and a model behind a real server that says what a test tells it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from llm.model_server import Heard, ModelServer, Say

from recalld.daemon.app import build_app
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

BANK = "/v1/default/banks/b"
ANA, BEN = "Ana: I moved to Lyon yesterday.", "Ben: I love jazz because it calms me."


class World:
    """One daemon with the bank `b`; `model` is what its reflects ask."""

    def __init__(self, service: MemoryService, client: Any, model: ModelServer) -> None:
        self.service, self.client, self.model = service, client, model

    async def send(self, method: str, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        async with self.client.request(method, path, json=body, **options) as answer:
            found = await read(answer)
            assert answer.status == status, found
            return found

    async def retain(self, *contents: str, bank: str = BANK, **fields: Any) -> None:
        items = [{"content": one, "timestamp": "2026-05-13T10:00:00Z", **fields} for one in contents]
        await self.send("POST", bank + "/memories", {"items": items})

    async def reflect(self, query: str = "Where does Ana live?", status: int = 200, **fields: Any) -> Any:
        include = fields.pop("include", {"facts": {}, "tool_calls": {}})
        return await self.send("POST", BANK + "/reflect", {"query": query, "include": include, **fields}, status)

    async def ids(self) -> dict[str, str]:
        """Id of each memory by its first word."""
        page = await self.send("GET", BANK + "/memories/list?limit=100")
        return {one["text"].split(":")[0]: one["id"] for one in page["items"]}

    def says(self, *steps: Say | tuple[str, dict[str, Any]] | str) -> None:
        """What the model answers, in order: a tool with its arguments, a text, or a whole `Say`."""
        for step in steps:
            self.model.say(Say(tools=(step,)) if isinstance(step, tuple) else step)

    def script(self, answer: Callable[[Heard], Say]) -> None:
        self.model.script = answer

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [one.body for one in self.model.heard]

    def nothing_runs(self) -> bool:
        """Whether no reflect is under way any more, here or in the worker."""
        names = [task.get_name() for task in asyncio.all_tasks()]
        return not [name for name in names if name.startswith("reflect")]


async def read(answer: ClientResponse) -> Any:
    text = await answer.text()
    try:
        return json.loads(text)
    except ValueError:
        return text


def system_of(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def told(body: dict[str, Any]) -> str:
    """Everything a model was sent, as one text."""
    return "\n".join(str(one.get("content")) for one in body["messages"])


async def until(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not is_so():
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.01)


SEARCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_observations", {"query": "Ana", "reason": "first"}),
    ("recall", {"query": "where Ana lives", "reason": "facts"}),
)


def done(answer: str = "Ana lives in Lyon.", **fields: Any) -> tuple[str, dict[str, Any]]:
    return ("done", {"answer": answer, "answer_found": True, **fields})


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    server = await ModelServer("openai").start()
    yield server
    await server.stop()


OpenWorld = Callable[..., Any]


@pytest.fixture
async def open_world(tmp_path: Path, model: ModelServer) -> AsyncIterator[OpenWorld]:
    """Opens a daemon with the settings given; all are closed after the test."""
    opened: list[tuple[MemoryService, TestClient[Any, Any]]] = []

    async def make(**given: Any) -> World:
        values: dict[str, Any] = {
            "runtime": "inline",
            "llm_reflect_provider": "openai",
            "llm_reflect_api_key": "sk-test",
            "llm_reflect_model": "tiny",
            "llm_reflect_base_url": model.url,
            "llm_initial_backoff": 0.01,
            "llm_max_backoff": 1.0,
            "llm_max_retries": 1,
            **given,
        }
        service = await open_service(replace(Settings(), home=tmp_path / f"home{len(opened)}", **values))
        client = TestClient(TestServer(build_app(service, service.settings)))
        await client.start_server()
        opened.append((service, client))
        return World(service, client, model)

    yield make
    for service, client in opened:
        await client.close()
        await service.close()


@pytest.fixture
async def world(open_world: OpenWorld) -> World:
    made: World = await open_world()
    await made.retain(ANA, BEN)
    return made

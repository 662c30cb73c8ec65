"""A bank and its observations in few words, and a model server that consolidates as a test says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from recalld.daemon.service import MemoryService

from .conftest import Wire

TENANT = "default"
QUOTED = re.compile(r"<<quoted (\w+)([^>\n]*)>>\n(.*?)\n<</quoted \1>>", re.DOTALL)
ID = re.compile(r'id="([fo]\d+)"')


class Observed:
    """A bank of a wire, and what is built in it."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.service: MemoryService = wire.service

    async def say(self, *texts: str, **fields: Any) -> None:
        """Retain each text as a document of its own, named by its number unless `document_id` says otherwise."""
        for text in texts:
            await self.wire.retain({"content": text, **fields})

    async def consolidate(self, wait: float = 30.0) -> dict[str, Any]:
        answer: dict[str, Any] = await self.wire.ok("POST", "/consolidate", wait=wait)
        return answer

    async def observations(self, **query: Any) -> list[dict[str, Any]]:
        found = await self.wire.ok("GET", "/memories/list", type="observation", limit=5000, **query)
        rows: list[dict[str, Any]] = found["items"]
        return rows

    async def texts(self) -> list[str]:
        return sorted(row["text"] for row in await self.observations())

    async def facts(self) -> dict[str, dict[str, Any]]:
        """Facts by text."""
        found = await self.wire.ok("GET", "/memories/list", type="world", limit=5000)
        return {row["text"]: row for row in found["items"]}

    async def stats(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self.wire.ok("GET", "/stats")
        return answer

    async def pending(self) -> int:
        return int((await self.stats())["pending_consolidation"])

    async def recalled(self, query: str, **fields: Any) -> list[str]:
        found = await self.wire.ok("POST", "/memories/recall", {"query": query, **fields})
        return [row["text"] for row in found["results"]]

    async def check(self) -> None:
        found = await self.service.verify(TENANT, self.wire.bank)
        assert found["ok"], found["problems"]

    async def until(self, is_so: Callable[[], Any], seconds: float = 20.0) -> None:
        """Until the awaited answer of `is_so` is true."""
        end = asyncio.get_running_loop().time() + seconds
        while not await is_so():
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.05)


class Asked:
    """One call of the model: the facts and observations it was shown, by their labels."""

    def __init__(self, prompt: str, system: str) -> None:
        self.prompt = prompt
        self.system = system
        shown = {}
        for _, about, text in QUOTED.findall(prompt):
            label = ID.search(about)
            if label:
                shown[label[1]] = text
        self.facts = {label: text for label, text in shown.items() if label.startswith("f")}
        self.observations = {label: text for label, text in shown.items() if label.startswith("o")}


class Consolidator:
    """Speaks OpenAI's API. `answer` gives what the model says to one call: a dict, a text, or (status, headers)."""

    def __init__(self) -> None:
        self.answer: Callable[[Asked], Any] = as_is
        self.calls: list[Asked] = []
        self.gate: asyncio.Event | None = None
        self.arrived = asyncio.Event()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        asked = Asked(body["messages"][-1]["content"], body["messages"][0]["content"])
        self.calls.append(asked)
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        said = self.answer(asked)
        if isinstance(said, tuple):
            return web.json_response({"error": {"message": "no"}}, status=said[0], headers=said[1])
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        return web.json_response(
            {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "extraction_provider": "local",
            "llm_provider": "openai",
            "llm_api_key": "sk-test",
            "llm_model": "tiny",
            "llm_base_url": self.url,
            "llm_max_retries": 0,
            "llm_initial_backoff": 0.01,
            "operations_model_wait_seconds": 0.05,
            "operations_model_wait_max_seconds": 0.2,
            "operations_backoff_seconds": 0.05,
            "consolidation_delay_seconds": 600.0,
        }


def actions(**given: Any) -> dict[str, Any]:
    return {"creates": [], "updates": [], "deletes": [], **given}


def as_is(asked: Asked) -> dict[str, Any]:
    """Every fact is an observation of its own."""
    return actions(creates=[{"text": text, "source_fact_ids": [label]} for label, text in asked.facts.items()])


@asynccontextmanager
async def consolidator() -> AsyncIterator[Consolidator]:
    server = Consolidator()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        if server.gate is not None:
            server.gate.set()
        await runner.cleanup()

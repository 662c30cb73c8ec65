"""A server that speaks OpenAI's API and answers what a test says, and a service that uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from recalld.actors.filters import MemoryFilters
from recalld.actors.retain.items import RetainItem
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

TENANT = "default"
Answer = Callable[[str], Any]
"""From the text of the last message to what the model says: facts, a text, or a (status, headers) that is an error."""


class ModelServer:
    """`answer` may be changed while it serves. `prompts` are the user messages that arrived, in order.

    Prompts that hold `slow` are answered after `delay` seconds.
    """

    def __init__(self) -> None:
        self.answer: Answer = said_as_is
        self.prompts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.delay = 0.0
        self.slow = ""
        self.finish = "stop"
        self.usage: dict[str, Any] | None = {"prompt_tokens": 100, "completion_tokens": 20}
        self.url = ""
        self.key = "sk-test"

    @property
    def calls(self) -> int:
        return len(self.prompts)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        self.bodies.append(body)
        self.prompts.append(prompt)
        if self.delay and self.slow in prompt:
            await asyncio.sleep(self.delay)
        said = self.answer(prompt)
        if isinstance(said, tuple):
            status, headers = said
            error = {"error": {"message": "no", "type": "test", "code": "test"}}
            return web.json_response(error, status=status, headers=headers)
        finish = self.finish
        text = said if isinstance(said, str) else json.dumps({"facts": said}, ensure_ascii=False)
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        answer = {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        if self.usage is not None:
            used = {**self.usage, "total_tokens": sum(self.usage.values())}
            answer["usage"] = used
        return web.json_response(answer)


def quoted(prompt: str) -> str:
    """The text that stands fenced as memory in a prompt."""
    start = prompt.rindex('kind="memory"')
    inside = prompt[prompt.index("\n", start) + 1 :]
    return inside[: inside.rindex("\n<</quoted")]


def said_as_is(prompt: str) -> list[dict[str, Any]]:
    """A model that gives each line of the text as a fact."""
    return [{"text": line, "network": "world", "entities": []} for line in quoted(prompt).splitlines() if line.strip()]


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
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
        await runner.cleanup()


@asynccontextmanager
async def service_with(server: ModelServer, home: Path, **settings: Any) -> AsyncIterator[MemoryService]:
    given: dict[str, Any] = {
        "runtime": "inline",
        "llm_provider": "openai",
        "llm_api_key": server.key,
        "llm_model": "tiny",
        "llm_base_url": server.url,
        "llm_initial_backoff": 0.01,
        "llm_max_backoff": 5.0,
        "llm_max_retries": 1,
        "operations_model_wait_seconds": 0.05,
        "operations_model_wait_max_seconds": 0.2,
        "operations_backoff_seconds": 0.05,
        "budget_check_seconds": 0.1,
        **settings,
    }
    service = await open_service(Settings(home=home, **given))
    try:
        yield service
    finally:
        await service.close()


def item(content: str, **fields: Any) -> RetainItem:
    return RetainItem.parse({"content": content, **fields})


async def retain(service: MemoryService, bank: str, *contents: str, **fields: Any) -> dict[str, Any]:
    items = [item(content, **fields) for content in contents]
    return await service.retain(TENANT, bank, items, asynchronous=False, operation_id=None)


async def queue(service: MemoryService, bank: str, *contents: str, **fields: Any) -> str:
    items = [item(content, **fields) for content in contents]
    answer = await service.retain(TENANT, bank, items, asynchronous=True, operation_id=None)
    return str(answer["operation_id"])


async def texts(service: MemoryService, bank: str) -> list[str]:
    return [row["text"] for row in (await memories(service, bank))]


async def memories(service: MemoryService, bank: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await service.list_memories(TENANT, bank, MemoryFilters(limit=1000)))["items"]
    return rows


async def operation(service: MemoryService, bank: str, operation_id: str) -> dict[str, Any]:
    return await service.get_operation(TENANT, bank, operation_id, False)


async def until_operation(
    service: MemoryService, bank: str, operation_id: str, is_so: Callable[[dict[str, Any]], bool], seconds: float = 20.0
) -> dict[str, Any]:
    end = asyncio.get_running_loop().time() + seconds
    while True:
        found = await operation(service, bank, operation_id)
        if is_so(found):
            return found
        assert asyncio.get_running_loop().time() < end, found
        await asyncio.sleep(0.02)


def ended(found: dict[str, Any]) -> bool:
    return found["status"] in ("completed", "failed", "cancelled")


async def ledger(service: MemoryService, bank: str, **filters: Any) -> list[dict[str, Any]]:
    found = await service.list_llm_requests(TENANT, bank, {"limit": 500, "offset": 0, **filters})
    rows: list[dict[str, Any]] = found["items"]
    return rows

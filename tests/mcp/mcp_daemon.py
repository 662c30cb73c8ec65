"""Real daemons to talk MCP with, and the SDK's client on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from recalld.daemon.sandbox import Sandbox, sandbox

KEY = "a key of the tests"
STRICT_TOOLS = "retain,recall,get_bank,delete_bank,list_banks"
INSTRUCTIONS = "Always retain in English."


@contextmanager
def running(home: Path, settings: Mapping[str, str]) -> Iterator[Sandbox]:
    """A daemon for as long as the block runs; it belongs to no test's loop."""
    loop = asyncio.new_event_loop()
    try:
        manager = sandbox({"runtime": "inline", **settings}, home=home)
        yield loop.run_until_complete(manager.__aenter__())
        loop.run_until_complete(manager.__aexit__(None, None, None))
    finally:
        loop.close()


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A daemon with the default settings."""
    with running(tmp_path_factory.mktemp("mcp") / "home", {}) as found:
        yield found


@pytest.fixture(scope="session")
def strict_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A daemon without sessions that needs a key and offers a few tools."""
    settings = {
        "mcp.stateless": "true",
        "mcp.auth_token": KEY,
        "mcp.enabled_tools": STRICT_TOOLS,
        "mcp.instructions": INSTRUCTIONS,
        "mcp.bank_id": "meant",
    }
    with running(tmp_path_factory.mktemp("mcp-strict") / "home", settings) as found:
        yield found


@pytest.fixture(scope="session")
def short_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A daemon with few and short sessions, and one recall at a time."""
    settings = {"mcp.max_sessions": "2", "mcp.session_idle": "0.6"}
    with running(tmp_path_factory.mktemp("mcp-short") / "home", settings) as found:
        yield found


@asynccontextmanager
async def client(
    daemon: Sandbox, path: str = "/mcp", *, mode: str = "legacy", headers: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """The SDK's client; `legacy` opens a session, `auto` takes the form without one."""
    http = httpx2.AsyncClient(headers=dict(headers or {}), timeout=60.0, trust_env=False)
    hop = streamable_http_client(daemon.url + path, http_client=http)
    async with http, Client(hop, mode=mode, cache=None) as found:
        yield found


async def called(session: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The payload of a call that the protocol calls right."""
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result.content
    payload: dict[str, Any] = json.loads(result.content[0].text)
    return payload

"""MCP over stdin and stdout, for clients that start a program: what they ask is passed on to a daemon's `/mcp`.

The hop to the daemon is the protocol's form without sessions, so a daemon that was restarted is no matter, and a call
that is cancelled closes its request, which ends the work. Loads the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp_types.version import LATEST_MODERN_VERSION

from recalld.daemon.commands.connection import Connection, connect
from recalld.daemon.mcp.hop import Hop
from recalld.daemon.mcp.server import INSTRUCTIONS, NAME, ToolServer
from recalld.daemon.settings_table import Settings
from recalld.storage.faults import origin

R = TypeVar("R", bound=types.Result)
SECONDS = 3600.0
log = logging.getLogger("recalld.mcp")


async def serve(settings: Settings, url: str | None, bank: str | None, version: str) -> None:
    """Serve until stdin ends, or a signal comes. Raises as `connect` does when there is nothing to talk to."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    front: asyncio.Task[None] | None = None
    try:
        async with AsyncExitStack() as stack:
            with redirect_stdout(sys.stderr):
                link = await stack.enter_async_context(
                    connect(settings, url=url, create=True, work=True, seconds=SECONDS)
                )
                session = await stack.enter_async_context(_session(link, settings, bank))
            front = asyncio.create_task(_front(session, version), name="MCP over stdio")
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({front, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
    except BaseException as error:
        if front is None or front.done():
            raise
        log.error("recalld mcp ends: %s", origin(error))
    if not front.done():
        # Everything is closed but the thread that reads stdin, which nothing can interrupt.
        sys.stderr.flush()
        os._exit(0 if stop.is_set() else 1)
    front.result()


async def _front(session: ClientSession, version: str) -> None:
    server = forwarder(session, version)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


@asynccontextmanager
async def _session(link: Connection, settings: Settings, bank: str | None) -> AsyncIterator[ClientSession]:
    headers: dict[str, bytes] = {}
    if key := settings.mcp_auth_token or settings.api_key:
        headers["Authorization"] = f"Bearer {key}".encode()
    if bank is None:
        headers["X-Bank-Id"] = settings.mcp_bank_id.encode()
    timeout = httpx2.Timeout(30.0, read=SECONDS)
    path = "/mcp/" if bank is None else f"/mcp/{quote(bank, safe='')}/"
    async with httpx2.AsyncClient(
        headers=[(name.encode(), value) for name, value in headers.items()],
        timeout=timeout,
        transport=Hop(link.socket),
        trust_env=False,
    ) as http:
        hop = streamable_http_client(link.client.url + path, http_client=http)
        async with Client(hop, mode=LATEST_MODERN_VERSION, cache=None) as client:
            yield client.session


def forwarder(session: ClientSession, version: str) -> ToolServer:
    """A server that passes every request on."""

    async def ask(request: types.Request[Any, Any], kind: type[R]) -> R:
        answer = await session.send_request(request, kind)
        answer.meta = {k: v for k, v in (answer.meta or {}).items() if not k.startswith("io.modelcontext")} or None
        return answer

    async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await ask(types.ListToolsRequest(params=_page(params)), types.ListToolsResult)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        named = types.CallToolRequestParams(name=params.name, arguments=params.arguments)
        return await ask(types.CallToolRequest(params=named), types.CallToolResult)

    async def list_resources(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await ask(types.ListResourcesRequest(params=_page(params)), types.ListResourcesResult)

    async def list_templates(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        request = types.ListResourceTemplatesRequest(params=_page(params))
        return await ask(request, types.ListResourceTemplatesResult)

    async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=params.uri))
        return await ask(request, types.ReadResourceResult)

    async def list_prompts(_: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return await ask(types.ListPromptsRequest(params=_page(params)), types.ListPromptsResult)

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        named = types.GetPromptRequestParams(name=params.name, arguments=params.arguments)
        return await ask(types.GetPromptRequest(params=named), types.GetPromptResult)

    async def set_level(_: Any, __: types.SetLevelRequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    server = ToolServer(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


def _page(params: types.PaginatedRequestParams | None) -> types.PaginatedRequestParams | None:
    return None if params is None or params.cursor is None else types.PaginatedRequestParams(cursor=params.cursor)

"""MCP over HTTP: which requests are its, who may send them, and the sessions they belong to.

Streamable HTTP under `/mcp` and `/mcp/{bank_id}`, on the daemon's port and in its loop. The SDK is loaded by the first
request, in a thread, so that a daemon nobody uses MCP with starts as fast and stays as small.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from recalld.daemon.exchange import TENANT, Rejected
from recalld.daemon.guard import Guard
from recalld.daemon.mcp import bridge, catalog
from recalld.daemon.mcp.tool import Caller
from recalld.daemon.routing import bank_id, decode_parameters
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire.base import clean_text
from recalld.storage.errors import BadRequest

log = logging.getLogger("recalld.mcp")

PATH = "/mcp"
SESSION = "Mcp-Session-Id"
METHODS = ("GET", "POST", "DELETE")
BOTH = b"application/json, text/event-stream"
MAX_BODY = 8 * 2**20
"""Bytes of one message: the SDK parses it in the loop, where a larger one would hold up recalls."""
CORS = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, X-Bank-Id, Mcp-Session-Id, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}

Lanes = Callable[[str], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What metrics and logs call a request for MCP."""

    template: str = PATH
    operation: str = "mcp"


class McpEdge:
    """The MCP side of the daemon's edge. `start` and `stop` belong to the loop that serves."""

    def __init__(self, service: Any, settings: Settings, guard: Guard, lanes: Lanes, version: str) -> None:
        self._service = service
        self._settings = settings
        self._guard = guard
        self._lanes = lanes
        self._version = version
        self._enabled = frozenset(settings.mcp_enabled_tools) or None
        self._base = settings.base_path.rstrip("/") + PATH
        self._max_body = min(MAX_BODY, settings.max_body_mb * 2**20)
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[Any] | None = None

    def takes(self, raw_path: str) -> bool:
        """Whether a request with that path is one for MCP."""
        return self._settings.mcp_enabled and (raw_path == self._base or raw_path.startswith(self._base + "/"))

    async def stop(self) -> None:
        """End every session and stream."""
        self._stop.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def serve(self, request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
        """Answer one request. Raises `Rejected`, or an error of the tree, for what must not be served."""
        self._guard.check_host(request.headers)
        origin = self._guard.check_origin(request.headers)
        if origin is not None:
            headers |= {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Expose-Headers": SESSION,
                "Vary": "Origin",
            }
            if request.method == "OPTIONS":
                return web.Response(status=204, headers={**headers, **CORS})
        if request.method not in METHODS:
            headers["Allow"] = ", ".join(METHODS)
            raise Rejected(405, {"error": "Method Not Allowed"})
        self._guard.check_mcp_key(request.headers)
        caller = self._caller(request)
        if request.method == "GET" and (self._settings.mcp_stateless or SESSION not in request.headers):
            if SESSION in request.headers:
                raise Rejected(405, {"error": "This server keeps no sessions, so there is no stream to listen to."})
            return web.json_response({}, headers=headers)
        body = await self._body(request)
        gone = asyncio.Event()
        manager = await self._running()
        extra = {"recalld.caller": caller, "recalld.gone": gone}
        return await bridge.answer(manager.handle_request, request, body, headers, _accepting(request), extra, gone)

    # -- who calls ---------------------------------------------------------------------------------------------------

    def _caller(self, request: web.Request) -> Caller:
        settings = self._settings
        named = request.rel_url.raw_path.removeprefix(self._base).removeprefix("/").removesuffix("/")
        if "/" in named:
            raise Rejected(404, {"error": "Not Found"})
        bank = decode_parameters({"bank_id": named})["bank_id"] if named else self._meant(request.headers)
        return Caller(
            self._service,
            TENANT,
            bank,
            bool(named),
            self._lanes,
            self._enabled,
            settings.mcp_instructions,
            settings.enable_bank_config_api,
        )

    def _meant(self, headers: Mapping[str, str]) -> str:
        """The bank of calls that name none."""
        given = headers.get("X-Bank-Id", "").strip()
        if clean_text(given) != given:
            raise BadRequest("X-Bank-Id must be UTF-8.")
        return bank_id(given) if given else self._settings.mcp_bank_id or "default"

    async def _body(self, request: web.Request) -> bytes:
        if request.method != "POST":
            return b""
        if request.content_type != "application/json":
            raise Rejected(415, {"error": "Send JSON, with the header Content-Type: application/json."})
        too_big = f"A message may have at most {self._max_body // 2**20} MB; send longer texts to the HTTP API."
        if (request.content_length or 0) > self._max_body:
            raise Rejected(413, {"error": too_big})
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise Rejected(413, {"error": too_big}) from None
        if len(raw) > self._max_body:
            raise Rejected(413, {"error": too_big})
        return raw

    # -- the SDK's part ----------------------------------------------------------------------------------------------

    async def _running(self) -> Any:
        """The SDK's session manager, started by who comes first."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._manager), name="MCP sessions")
        return await asyncio.shield(self._manager)

    async def _run(self, ready: asyncio.Future[Any]) -> None:
        try:
            manager = await asyncio.to_thread(self._made)
            # One task enters and leaves: the sessions are its children.
            async with manager.run():
                ready.set_result(manager)
                await self._stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
                self._manager = None
            if not isinstance(error, Exception):
                raise
            log.error("MCP ended: %s", type(error).__name__)

    def _made(self) -> Any:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from recalld.daemon.mcp.server import build_server

        # Its own lines name sessions and show what clients sent.
        for name in ("mcp", "sse_starlette"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        for name in catalog.unknown(self._settings.mcp_enabled_tools):
            log.warning("mcp.enabled_tools: there is no tool %r", name)
        stateless = self._settings.mcp_stateless
        return StreamableHTTPSessionManager(
            build_server(self._version, _caller_of),
            stateless=stateless,
            max_request_body_size=self._max_body,
            max_sessions=self._settings.mcp_max_sessions,
            session_idle_timeout=None if stateless else self._settings.mcp_session_idle,
        )


def _caller_of(context: Any) -> tuple[Caller, asyncio.Event]:
    scope = context.request.scope
    return scope["recalld.caller"], scope["recalld.gone"]


def _accepting(request: web.Request) -> dict[bytes, bytes]:
    """The header that stands for an `Accept` under which there could be no answer."""
    kinds = {part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")}
    everything = "*/*" in kinds
    json = everything or bool(kinds & {"application/json", "application/*"})
    events = everything or bool(kinds & {"text/event-stream", "text/*"})
    return {} if json and events else {b"accept": BOTH}

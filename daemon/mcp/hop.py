"""The way from `recalld mcp` to a daemon: what goes wrong on it is an error of a call, never the end of it all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

INTERNAL_ERROR = -32603
AWAY = "The daemon cannot be reached; start it with recalld serve, or look whether --url names it."


class Hop(httpx2.AsyncBaseTransport):
    """A transport that answers in the protocol's words where there is no answer, or one that is none of the protocol.

    The SDK ends a client whose connection fails; a daemon that is being restarted is no reason for that.
    """

    def __init__(self, socket: str | None) -> None:
        self._inner = httpx2.AsyncHTTPTransport(uds=socket)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError:
            return _said(request, 503, AWAY)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(response.stream)
        if response.status_code < 400:
            return response
        body = await response.aread()
        await response.aclose()
        return _said(request, response.status_code, _words(body), body)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """A body that ends where its connection breaks: what is cut off does not parse, which is an error of the call."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._inner:
                yield piece
        except httpx2.TransportError:
            return

    async def aclose(self) -> None:
        await self._inner.aclose()


def _words(body: bytes) -> str | None:
    """What a body says that is not of the protocol; None for one that is."""
    try:
        value: Any = json.loads(body)
    except ValueError:
        value = {}
    if not isinstance(value, dict):
        value = {}
    if "jsonrpc" in value:
        return None
    return str(value.get("error") or value.get("detail") or "The daemon refused the request.")


def _said(request: httpx2.Request, status: int, text: str | None, body: bytes = b"") -> httpx2.Response:
    if text is not None:
        error = {"code": INTERNAL_ERROR, "message": text}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    return httpx2.Response(status, headers={"Content-Type": "application/json"}, content=body, request=request)

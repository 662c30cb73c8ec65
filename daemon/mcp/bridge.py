"""From an aiohttp request to an ASGI application and back, in the same loop: the SDK speaks ASGI, the daemon aiohttp.

The application runs in the handler's own task, so a client that hangs up cancels it, as it cancels every handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from aiohttp import web

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OURS = frozenset((b"content-length", b"connection", b"transfer-encoding"))
"""Headers of an answer that the HTTP server itself sets."""


async def answer(
    app: AsgiApp,
    request: web.Request,
    body: bytes,
    headers: Mapping[str, str],
    replaced: Mapping[bytes, bytes],
    extra: Mapping[str, Any],
) -> web.StreamResponse:
    """What `app` answers: streamed when it sends pieces, else whole.

    `headers` are added to the answer; `replaced` stand for the request's own headers of those (lower-case) names;
    `extra` goes into the scope as it is. Raises `RuntimeError` when the application ends without an answer.
    """
    exchange = _Exchange(request, body, headers)
    try:
        await app({**_scope(request, replaced), **extra}, exchange.receive, exchange.send)
        return exchange.finished()
    except Exception:
        if exchange.stream is None:
            raise
        if request.transport is not None:
            request.transport.close()  # what was begun cannot be made an error of
        return exchange.stream
    finally:
        exchange.over.set()


def _scope(request: web.Request, replaced: Mapping[bytes, bytes]) -> dict[str, Any]:
    given = [(name.lower(), value) for name, value in request.raw_headers if name.lower() not in replaced]
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.rel_url.raw_path.encode(),
        "root_path": "",
        "query_string": request.rel_url.raw_query_string.encode(),
        "headers": [*given, *replaced.items()],
        "client": tuple(peer[:2]) if isinstance(peer, tuple) else None,
        "server": None,
    }


class _Exchange:
    """One request and its answer, as `receive` and `send`."""

    def __init__(self, request: web.Request, body: bytes, headers: Mapping[str, str]) -> None:
        self.over = asyncio.Event()
        self._request = request
        self._body: bytes | None = body
        self._headers = headers
        self._start: Message | None = None
        self._whole: bytes | None = None
        self.stream: web.StreamResponse | None = None

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        piece, more = bytes(message.get("body", b"")), bool(message.get("more_body", False))
        if self.stream is None:
            if not more:
                self._whole = piece
                return
            self.stream = web.StreamResponse()
            self._dress(self.stream)
            await self.stream.prepare(self._request)
        if piece:
            await self.stream.write(piece)
        if not more:
            await self.stream.write_eof()

    def _dress(self, response: web.StreamResponse) -> None:
        assert self._start is not None
        response.set_status(self._start["status"])
        for name, value in self._start.get("headers", ()):
            if name.lower() not in OURS:
                response.headers[name.decode("latin-1")] = value.decode("latin-1")
        response.headers.update(self._headers)

    def finished(self) -> web.StreamResponse:
        if self.stream is not None:
            return self.stream
        if self._start is None:
            raise RuntimeError("the application ended without an answer")
        response = web.Response(body=self._whole or b"")
        response.headers.pop("Content-Type", None)
        self._dress(response)
        return response

"""From an aiohttp request to an ASGI application and back, in the same loop: the SDK speaks ASGI, the daemon aiohttp.

A client that hangs up cancels its handler. The application is told of it in its own way, by `http.disconnect`: cut off
in the middle it would take a session for lost that the client, which has its answer and closes, has just opened.
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

GRACE_SECONDS = 2.0
OURS = frozenset((b"content-length", b"connection", b"transfer-encoding"))
"""Headers of an answer that the HTTP server itself sets."""


async def answer(
    app: AsgiApp,
    request: web.Request,
    body: bytes,
    headers: Mapping[str, str],
    replaced: Mapping[bytes, bytes],
    extra: Mapping[str, Any],
    gone: asyncio.Event,
) -> web.StreamResponse:
    """What `app` answers: streamed when it sends pieces, else whole.

    `headers` are added to the answer; `replaced` stand for the request's own headers of those (lower-case) names;
    `extra` goes into the scope as it is; `gone` is set when the client hangs up, and at the end. Raises `RuntimeError`
    when the application ends without an answer.
    """
    exchange = _Exchange(request, body, headers, gone)
    task = asyncio.ensure_future(app({**_scope(request, replaced), **extra}, exchange.receive, exchange.send))
    try:
        await asyncio.shield(task)
        return exchange.finished()
    except asyncio.CancelledError:
        gone.set()
        await _ended(task)
        raise
    except Exception:
        if exchange.stream is None:
            raise
        if request.transport is not None:
            request.transport.close()  # what was begun cannot be made an error of
        return exchange.stream
    finally:
        gone.set()


async def _ended(task: asyncio.Future[None]) -> None:
    """Wait until the application that was told of the hang-up has ended; cancel it when it does not."""
    try:
        done, _ = await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
    finally:
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


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

    def __init__(self, request: web.Request, body: bytes, headers: Mapping[str, str], gone: asyncio.Event) -> None:
        self.gone = gone
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
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.gone.is_set():
            return
        if message["type"] == "http.response.start":
            self._start = message
            if _streams(message):  # now, so that the client knows before there is anything to say
                await self._begin()
            return
        piece, more = bytes(message.get("body", b"")), bool(message.get("more_body", False))
        if self.stream is None:
            if not more:
                self._whole = piece
                return
            await self._begin()
        assert self.stream is not None
        if piece:
            await self.stream.write(piece)
        if not more:
            await self.stream.write_eof()

    async def _begin(self) -> None:
        self.stream = web.StreamResponse()
        self._dress(self.stream)
        await self.stream.prepare(self._request)

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


def _streams(start: Message) -> bool:
    headers = start.get("headers", ())
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)

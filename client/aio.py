"""The asynchronous client: one aiohttp session, opened with the first call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
from yarl import URL

from .calls import Calls, Json
from .errors import ApiError, Unreachable

ATTEMPTS = 3  # of a recall that meets a busy daemon
LONGEST_PAUSE = 30.0  # seconds; a longer Retry-After is not waited for


class AsyncClient(Calls[Coroutine[Any, Any, Json]]):
    """Talks to a daemon from asyncio code.

    async with AsyncClient("http://127.0.0.1:8888") as memory:
        await memory.retain("notes", "Ana moved to Porto in May.")
        answer = await memory.recall("notes", "Where does Ana live?")

    `timeout` is in seconds for a whole call; `connections` bounds how many run at once; `socket` is the path of a Unix
    socket to go through, where the host in `url` is then only a name.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8888",
        *,
        api_key: str | None = None,
        tenant: str = "default",
        timeout: float = 300.0,
        connections: int = 100,
        socket: str | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.tenant = tenant
        self._socket = socket
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {api_key}"} if api_key else {}
        )
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def wait_operation(self, bank_id: str, operation_id: str, *, within: float = 300.0) -> Json:
        """The operation once it is completed, failed or cancelled; TimeoutError after `within` seconds."""
        end, pause = time.monotonic() + within, 0.05
        while True:
            state = await self.get_operation(bank_id, operation_id)
            if state.get("status") in ("completed", "failed", "cancelled", "not_found"):
                return state
            if time.monotonic() >= end:
                raise TimeoutError(f"Operation {operation_id} is still {state.get('status')} after {within:g} s.")
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)

    async def _send(self, method: str, path: str, body: Any = None, *, retry: bool = False) -> Json:
        attempts = ATTEMPTS if retry else 1
        while True:
            attempts -= 1
            try:
                return await self._once(method, path, body)
            except ApiError as error:
                pause = 1.0 if error.retry_after is None else error.retry_after
                if error.status != 503 or not attempts or pause > LONGEST_PAUSE:
                    raise
            # Clients that were turned away together must not come back together.
            await asyncio.sleep(pause * random.uniform(1.0, 1.25))

    async def _send_files(self, path: str, files: Sequence[Path], request: Json) -> Json:
        with contextlib.ExitStack() as opened:
            form = aiohttp.FormData()
            form.add_field("request", json.dumps(request))
            for file in files:
                handle = await asyncio.to_thread(file.open, "rb")
                form.add_field("files", opened.enter_context(handle), filename=file.name)
            return await self._once("POST", path, form)

    async def _once(self, method: str, path: str, body: Any) -> Json:
        if self._session is None:
            connector: aiohttp.BaseConnector
            if self._socket is None:
                connector = aiohttp.TCPConnector(limit=self._connections)
            else:
                connector = aiohttp.UnixConnector(path=self._socket, limit=self._connections)
            self._session = aiohttp.ClientSession(timeout=self._timeout, connector=connector)
        headers, data = dict(self._headers), body
        if isinstance(body, aiohttp.FormData):
            del headers["Content-Type"]  # a form has a boundary in its type, which only the form knows
        elif body is not None:
            data = json.dumps(body).encode()
        try:
            # The path is quoted already; a second pass would change ids that hold a slash or a percent sign.
            url = URL(self.url + path, encoded=True)
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                raw = await answer.read()
                if answer.status >= 400:
                    raise ApiError(answer.status, _detail(raw), _seconds(answer.headers.get("Retry-After")))
        except aiohttp.ClientError as error:
            raise Unreachable(self.url, _reason(error)) from error
        except TimeoutError as error:
            raise Unreachable(self.url, f"no answer within {self._timeout.total:g} s") from error
        return _object(raw)


def _reason(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.errno).lower() if error.errno else "no connection"
    return "not a URL" if isinstance(error, aiohttp.InvalidURL) else "the connection broke"


def _object(raw: bytes) -> Json:
    """The JSON object of an answer; anything else (metrics, plain text) under the key `text`."""
    try:
        value = json.loads(raw) if raw else {}
    except ValueError:
        return {"text": raw.decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"value": value}


def _detail(raw: bytes) -> Any:
    value = _object(raw)
    return value.get("detail", value.get("text", value))


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None

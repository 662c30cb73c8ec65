"""The blocking client: the asynchronous one, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from .aio import AsyncClient
from .calls import Calls, Json


class Client(Calls[Json]):
    """Talks to a daemon from ordinary code; safe to share between threads, also while an event loop runs.

    with Client("http://127.0.0.1:8888") as memory:
        memory.retain("notes", "Ana moved to Porto in May.")
        for result in memory.recall("notes", "Where does Ana live?")["results"]:
            print(result["text"])

    The arguments are those of `AsyncClient`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8888",
        *,
        api_key: str | None = None,
        tenant: str = "default",
        timeout: float = 300.0,
        connections: int = 100,
    ) -> None:
        self.url = url.rstrip("/")
        self.tenant = tenant
        self._async = AsyncClient(url, api_key=api_key, tenant=tenant, timeout=timeout, connections=connections)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread. A later call starts both again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._async.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def wait_operation(self, bank_id: str, operation_id: str, *, within: float = 300.0) -> Json:
        """The operation once it is completed, failed or cancelled; TimeoutError after `within` seconds."""
        return self._run(self._async.wait_operation(bank_id, operation_id, within=within))

    def _send(self, method: str, path: str, body: Any = None, *, retry: bool = False) -> Json:
        return self._run(self._async._send(method, path, body, retry=retry))

    def _send_files(self, path: str, files: Sequence[Path], request: Json) -> Json:
        return self._run(self._async._send_files(path, files, request))

    def _run(self, work: Coroutine[Any, Any, Json]) -> Json:
        future = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl+C in the caller must not leave the request running
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A daemon thread: a program that forgets `close` still ends.
                threading.Thread(target=_serve, args=(self._loop,), name="recalld-client", daemon=True).start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()

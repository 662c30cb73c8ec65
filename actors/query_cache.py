"""Query vectors for the gateway: remembered, shared between callers that ask the same at once, made off the loop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from recalld.actors.embedding import QueryEmbedding

__all__ = ["QueryEmbedder", "QueryEncoder"]


class QueryEmbedder(Protocol):
    """What is needed of an `Embedder` here."""

    def embed_query(self, text: str) -> QueryEmbedding: ...


class QueryEncoder:
    """Asynchronous `embed_query` for one event loop.

    Keeps the `capacity` most recently used answers (about 7 kB each). A caller that is cancelled does not take the
    answer from others who wait for the same text. `hits`, `misses` and `shared` count what became of the calls.
    """

    def __init__(self, embedder: QueryEmbedder, *, threads: int = 1, capacity: int = 2048) -> None:
        self._embedder = embedder
        self._capacity = capacity
        self._pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="query-encoder")
        self._known: OrderedDict[str, QueryEmbedding] = OrderedDict()
        self._running: dict[str, asyncio.Future[QueryEmbedding]] = {}
        self.hits = self.misses = self.shared = 0

    async def embed(self, text: str) -> QueryEmbedding:
        """The embedding of `text`; its arrays are shared and read-only."""
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            self.hits += 1
            return known
        running = self._running.get(text)
        if running is None:
            self.misses += 1
            running = asyncio.get_running_loop().run_in_executor(self._pool, self._embedder.embed_query, text)
            self._running[text] = running
            running.add_done_callback(lambda done: self._finished(text, done))
        else:
            self.shared += 1
        return await asyncio.shield(running)

    def shutdown(self) -> None:
        """Ends the threads; a query that is running ends first, one that only waits is cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._known.clear()

    def _finished(self, text: str, done: asyncio.Future[QueryEmbedding]) -> None:
        self._running.pop(text, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._known[text] = done.result()
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

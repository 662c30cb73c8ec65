"""The Encoder actor: embeds the texts that retain prepares, on a bounded number of threads, fairly between requests.

Each text is a pass (or a few) of its own; threads take the next text from the waiting requests in turn, so that one
text sent alone does not queue behind a bulk load. Within a request the longest go first, so that the threads end
together. Before each window the embedder's gate lets queries go first.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from recalld.actors.core_gate import usable_cores
from recalld.actors.embedding import Embedded, Embedder, pack_query
from recalld.actors.encoder_messages import EmbeddedTexts, EmbedQuery, EmbedTexts, ModelDescription, ModelInfo
from recalld.storage.errors import BadRequest

__all__ = ["Encoder", "TextQueue"]


class Encoder:
    """Answers `EmbedTexts` with `EmbeddedTexts`, `EmbedQuery` with a dict, and `ModelInfo` with `ModelDescription`.

    `open_embedder` loads the model when the actor starts, or returns one that the process already has. `threads` is
    the most model passes at once (0: one a core). `nice` lowers the priority of the worker threads against every
    other process, where the system allows it per thread (Linux): useful when the Encoder has a process of its own.
    """

    def __init__(self, open_embedder: Callable[[], Embedder], *, threads: int = 0, nice: int = 0) -> None:
        self._open = open_embedder
        self._threads = threads or usable_cores()
        self._nice = nice
        self._embedder: Embedder | None = None
        self._queue: TextQueue | None = None

    @property
    def embedder(self) -> Embedder:
        """The loaded model; only after `start`."""
        if self._embedder is None:
            raise RuntimeError("The Encoder was not started.")
        return self._embedder

    async def start(self) -> None:
        """Loads the model off the loop. Raises `ModelUnusable`."""
        self._embedder = await asyncio.to_thread(self._open)
        self._queue = TextQueue(self._threads, partial(_lower_priority, self._nice))

    async def handle(self, message: object) -> EmbeddedTexts | ModelDescription | dict[str, Any]:
        """One request. A caller that is cancelled frees the texts that no thread has begun."""
        if isinstance(message, EmbedTexts):
            return await self._embed(message)
        if isinstance(message, EmbedQuery):
            return pack_query(await asyncio.to_thread(self.embedder.embed_query, message.text))
        if isinstance(message, ModelInfo):
            return ModelDescription(
                identity=self.embedder.identity.to_plain(),
                providers=self.embedder.providers,
                threads=self._threads,
                date_suffix=self.embedder.date_suffix,
                warning=self.embedder.warning or "",
            )
        raise BadRequest(f"The Encoder does not know the message {type(message).__name__}.")

    async def stop(self) -> None:
        """Ends the threads; texts in hand are finished, waiting ones dropped."""
        if self._queue is not None:
            await asyncio.to_thread(self._queue.close)
            self._queue = None

    async def _embed(self, message: EmbedTexts) -> EmbeddedTexts:
        embedder, queue = self.embedder, self._queue
        if queue is None:
            raise RuntimeError("The Encoder was stopped.")
        count = len(message.texts)
        befores, dates = message.befores or ("",) * count, message.dates or ("",) * count
        if len(befores) != count or len(dates) != count:
            raise BadRequest("An embedding request needs as many contexts and dates as texts, or none.")
        if not count:
            return EmbeddedTexts.of(embedder.dim, [])
        jobs = [partial(embedder.embed_text, *one) for one in zip(message.texts, befores, dates, strict=True)]
        sizes = [len(text) + len(before) for text, before in zip(message.texts, befores, strict=True)]
        texts = await asyncio.wrap_future(queue.submit(jobs, sizes))
        return EmbeddedTexts.of(embedder.dim, texts)


class TextQueue:
    """Requests of many texts, worked off text by text, in turn between requests, by a fixed number of threads."""

    def __init__(self, threads: int, prepare: Callable[[], None] = lambda: None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="encoder", initializer=prepare)
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()

    def submit(self, jobs: Sequence[Callable[[], Embedded]], sizes: Sequence[int]) -> Future[list[Embedded]]:
        """A future of all results in the order of `jobs` (at least one); the first error fails all."""
        request = _Request(jobs, sorted(range(len(jobs)), key=sizes.__getitem__))
        with self._lock:
            self._waiting.append(request)
        for _ in jobs:
            self._pool.submit(self._step)
        return request.done

    def close(self) -> None:
        """Waits for texts in hand; requests that are not complete are cancelled."""
        with self._lock:
            left, self._waiting = list(self._waiting), deque()
        for request in left:
            request.done.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _step(self) -> None:
        """One thread takes one text: there are as many steps as texts, but no step belongs to a certain request."""
        with self._lock:
            request, index = None, 0
            while self._waiting and request is None:
                candidate = self._waiting.popleft()
                if candidate.done.done():
                    continue  # cancelled or failed
                request, index = candidate, candidate.order.pop()
                if candidate.order:
                    self._waiting.append(candidate)
        if request is not None:
            request.run(index)


class _Request:
    """The texts of one call: `order` holds what no thread has begun, the next one last."""

    def __init__(self, jobs: Sequence[Callable[[], Embedded]], order: list[int]) -> None:
        self.done: Future[list[Embedded]] = Future()
        self.order = order
        self._jobs = jobs
        self._results: list[Embedded | None] = [None] * len(jobs)
        self._left = len(jobs)
        self._lock = threading.Lock()

    def run(self, index: int) -> None:
        try:
            result = self._jobs[index]()
        except Exception as error:
            self._settle(partial(self.done.set_exception, error))
            return
        with self._lock:
            self._results[index] = result
            self._left -= 1
            complete = not self._left
        if complete:
            self._settle(lambda: self.done.set_result([r for r in self._results if r is not None]))

    def _settle(self, settle: Callable[[], Any]) -> None:
        with self._lock:
            # False when the caller has cancelled meanwhile; a request already settled by an error stays so.
            if not self.done.done() and self.done.set_running_or_notify_cancel():
                settle()


def _lower_priority(nice: int) -> None:
    if nice > 0 and hasattr(os, "setpriority"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
        except OSError:
            return  # not allowed here: the work is the same, only less polite

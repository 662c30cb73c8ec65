"""Query vectors in the gateway: cached, coalesced, off the loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from recalld.actors.embedding import Embedder, QueryEmbedding
from recalld.actors.query_cache import QueryEncoder


class Counting:
    """The real model with a count of its calls and a door that can be shut."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.calls, self.door = embedder, list[str](), threading.Event()
        self.door.set()

    def embed_query(self, text: str) -> QueryEmbedding:
        self.calls.append(text)
        assert self.door.wait(10)
        if text == "fail":
            raise ValueError("made to fail")
        return self.embedder.embed_query(text)


async def test_identical_queries_in_flight_are_embedded_once(embedder: Embedder) -> None:
    counting = Counting(embedder)
    counting.door.clear()
    encoder = QueryEncoder(counting)
    waiting = [asyncio.create_task(encoder.embed("who sang?")) for _ in range(20)]
    await asyncio.sleep(0.02)
    counting.door.set()
    answers = await asyncio.gather(*waiting)
    assert counting.calls == ["who sang?"]
    assert all(answer is answers[0] for answer in answers)
    assert await encoder.embed("who sang?") is answers[0]
    assert (encoder.hits, encoder.misses, encoder.shared) == (1, 1, 19)
    encoder.shutdown()


async def test_the_least_recently_used_query_leaves_first(embedder: Embedder) -> None:
    counting = Counting(embedder)
    encoder = QueryEncoder(counting, capacity=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await encoder.embed(text)
    assert counting.calls == ["a", "b", "c", "b"]
    encoder.shutdown()


async def test_a_cancelled_caller_does_not_take_the_answer_from_others(embedder: Embedder) -> None:
    counting = Counting(embedder)
    counting.door.clear()
    encoder = QueryEncoder(counting)
    first, second = (asyncio.create_task(encoder.embed("same")) for _ in range(2))
    await asyncio.sleep(0.02)
    first.cancel()
    await asyncio.sleep(0)
    counting.door.set()
    assert (await second).vector.shape == (embedder.dim,)
    assert first.cancelled() and counting.calls == ["same"]
    encoder.shutdown()


async def test_a_failure_is_told_and_not_remembered(embedder: Embedder) -> None:
    counting = Counting(embedder)
    encoder = QueryEncoder(counting)
    for _ in range(2):
        with pytest.raises(ValueError):
            await encoder.embed("fail")
    assert counting.calls == ["fail", "fail"]
    encoder.shutdown()


async def test_the_loop_goes_on_while_a_query_is_embedded(embedder: Embedder) -> None:
    counting = Counting(embedder)
    counting.door.clear()
    encoder = QueryEncoder(counting)
    task = asyncio.create_task(encoder.embed("slow"))
    started = time.perf_counter()
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert not task.done() and time.perf_counter() - started < 1
    counting.door.set()
    await task
    encoder.shutdown()


async def test_cached_arrays_cannot_be_written(embedder: Embedder) -> None:
    encoder = QueryEncoder(embedder)
    answer = await encoder.embed("read only")
    with pytest.raises(ValueError):
        answer.vector[0] = 1
    encoder.shutdown()

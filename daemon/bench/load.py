"""Timed recalls against a daemon: one after another, and by several clients at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from recalld.client import AsyncClient
from recalld.daemon.bench.score import percentiles
from recalld.daemon.sandbox import Sandbox, sandbox


@dataclass(slots=True)
class Timed:
    """Milliseconds of each call as its client saw them, and the seconds of the whole."""

    milliseconds: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> dict[str, float]:
        rate = len(self.milliseconds) / self.seconds if self.seconds else 0.0
        return percentiles(self.milliseconds) | {"per_second": rate, "calls": float(len(self.milliseconds))}


async def timed_recall(client: AsyncClient, timed: Timed, bank: str, query: str, **options: Any) -> dict[str, Any]:
    begun = time.perf_counter()
    answer = await client.recall(bank, query, **options)
    timed.milliseconds.append((time.perf_counter() - begun) * 1000)
    return answer


async def one_by_one(client: AsyncClient, work: Sequence[tuple[str, str]], **options: Any) -> Timed:
    """Each (bank, query) after the other."""
    timed, begun = Timed(), time.perf_counter()
    for bank, query in work:
        await timed_recall(client, timed, bank, query, **options)
    timed.seconds = time.perf_counter() - begun
    return timed


async def at_once(client: AsyncClient, work: Sequence[tuple[str, str]], clients: int, **options: Any) -> Timed:
    """The same work by `clients` loops that take the next piece as soon as they are done."""
    timed, begun = Timed(), time.perf_counter()
    rest = iter(work)

    async def loop() -> None:
        for bank, query in rest:
            await timed_recall(client, timed, bank, query, **options)

    await asyncio.gather(*(loop() for _ in range(clients)))
    timed.seconds = time.perf_counter() - begun
    return timed


@dataclass(frozen=True, slots=True)
class Target:
    """The daemon measured; `own` is None when it was given by URL, and then its start and memory are unknown."""

    client: AsyncClient
    own: Sandbox | None

    def facts(self) -> dict[str, Any]:
        if self.own is None:
            return {}
        return {"cold_start_seconds": self.own.cold_start, "memory_bytes": self.own.memory()}


@asynccontextmanager
async def target(settings: Mapping[str, str], url: str | None) -> AsyncIterator[Target]:
    """The daemon at `url`, or one of our own with `settings`."""
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(sandbox(settings)) if url is None else None
        client = await stack.enter_async_context(AsyncClient(own.url if own else str(url), timeout=600))
        yield Target(client, own)

"""Flushes are shared, and nobody waits for company: what many clients and a lone one pay for durability.

Small and with wide bounds by default, since the machine may be busy; full size in `make soak`. Figures are printed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from flight_service import item, opened, retain

from recalld.daemon.lifecycle import SWITCH_SECONDS
from recalld.daemon.service import MemoryService

CLIENTS = 16
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)  # as the daemon does
    running = await opened(tmp_path / "home")
    yield running
    await running.close()
    sys.setswitchinterval(before)


def text_of(number: int) -> str:
    return (
        f"On visit {number} the gardener told us that the {number % 37} pear trees behind the old mill had been pruned"
        " too late, and that she would come back after the frost to look at the roots and the fence again."
    )


def short(number: int, words: int) -> str:
    return " ".join(text_of(number).split()[:words])


def day_of(number: int) -> str:
    return (FIRST_DAY + timedelta(days=number)).strftime("%Y-%m-%d")


async def flushes(service: MemoryService) -> int:
    return int((await service.metrics_snapshot())["flushes_total"])


async def by_many_clients(service: MemoryService, count: int, banks: int, words: int = 99) -> tuple[float, float]:
    """(flushes an item, items a second) of single-item retains by `CLIENTS` clients over `banks` banks."""
    for bank in range(banks):
        await retain(service, f"bank{bank}", "Warm.")
    numbers = iter(range(count))
    before, started = await flushes(service), time.perf_counter()

    async def client() -> None:
        for number in numbers:
            # Days apart, so that none is embedded behind another and the bare passes are the same.
            await retain(service, f"bank{number % banks}", item(short(number, words), timestamp=day_of(number)))

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    took = time.perf_counter() - started
    return (await flushes(service) - before) / count, count / took


def bare_passes(service: MemoryService, count: int, threads: int) -> float:
    """Embedding passes a second of the same texts, with nothing else going on."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda n: service._embedder.embed_text(text_of(n), "", day_of(n)), range(count)))
    return count / (time.perf_counter() - started)


async def report(service: MemoryService, count: int, banks: int) -> tuple[float, float]:
    import os

    threads = os.cpu_count() or 1
    spent = time.process_time()
    before = await asyncio.to_thread(bare_passes, service, count // 4, threads)
    pass_cost = (time.process_time() - spent) / (count // 4)
    spent = time.process_time()
    share, rate = await by_many_clients(service, count, banks)
    cost = (time.process_time() - spent) / count
    after = await asyncio.to_thread(bare_passes, service, count // 4, threads)
    bare = (before + after) / 2
    print(
        f"{count} retains by {CLIENTS} clients into {banks} bank(s): {share:.3f} flushes an item, {rate:.0f} items/s,"
        f" {100 * rate / bare:.0f} % of {bare:.0f} bare passes/s; {100 * pass_cost / cost:.0f} % of the processor time"
        " is the bare pass"
    )
    return share, rate / bare


async def test_many_clients_share_flushes(service: MemoryService) -> None:
    share, rate = await by_many_clients(service, 500, 1, words=8)
    print(f"500 retains by {CLIENTS} clients: {share:.3f} flushes an item, {rate:.0f} items/s")
    assert share <= 0.3


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("banks", [1, 16])
async def test_soak_two_thousand_retains_cost_at_most_six_hundred_flushes(service: MemoryService, banks: int) -> None:
    share, speed = await report(service, 2000, banks)
    assert speed >= 0.7
    if banks == 1:
        assert share <= 0.3


async def lone(service: MemoryService, rounds: int) -> tuple[float, float, float]:
    """Medians in ms: a lone client's retain, the embedding pass in it, a flush; taken in turns."""
    await retain(service, "b", "Warm.")
    took, passes, flushed = [], [], []
    for number in range(rounds):
        started = time.perf_counter()
        await retain(service, "b", item(text_of(number), timestamp=day_of(number)))
        took.append(time.perf_counter() - started)
        flushed.append((await service.metrics_snapshot())["last_flush_ms"])
        started = time.perf_counter()
        await asyncio.to_thread(service._embedder.embed_text, text_of(number), "", day_of(number))
        passes.append(time.perf_counter() - started)
    whole, embedding, flush = np.median(took) * 1e3, np.median(passes) * 1e3, float(np.median(flushed))
    print(
        f"a lone retain: {whole:.1f} ms p50, of it {embedding:.1f} ms embedding and {flush:.1f} ms flush:"
        f" {whole - embedding - flush:.1f} ms over both"
    )
    return float(whole), float(embedding), flush


async def test_a_lone_client_waits_for_no_window(service: MemoryService) -> None:
    whole, embedding, flush = await lone(service, 40)
    assert whole <= 3 * embedding + 3 * flush + 50


@pytest.mark.slow
async def test_soak_a_lone_client_pays_three_milliseconds_over_embedding_and_flush(service: MemoryService) -> None:
    whole, embedding, flush = await lone(service, 300)
    assert whole <= embedding + flush + 3

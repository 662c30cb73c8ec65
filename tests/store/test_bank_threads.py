"""Who waits for whom in a shard: a bank that is loaded and a slow listing keep nobody else."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recalld.actors import bank_threads, messages, reads
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.shard import Shard
from recalld.storage.bulk import load_synthetic
from recalld.storage.errors import BankNotFound, Unavailable
from recalld.storage.home import Home
from recalld.storage.open_bank import OpenBank
from recalld.storage.partition import Partition, StoreSettings

T, DIM, NOW = "t", 32, 1_750_000_000_000_000
COLD, WARM = "cold", "warm"


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    """Two banks of one partition, both closed."""
    ids = itertools.count()
    made = Shard(
        Home.create(tmp_path / "home", NOW, partitions=1),
        [0],
        StoreSettings(map_size=1 << 30, reserve=0),
        RecallSettings(),
        lambda: NOW,
        lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
    )
    await made.start()
    partition = await made._partition_at(0)
    for seed, bank in enumerate((COLD, WARM)):
        await asyncio.to_thread(load_synthetic, partition, T, bank, 50, DIM, seed, NOW)
    partition.drop_caches()
    yield made
    await made.stop()


def query(bank: str) -> RecallQuery:
    return RecallQuery(T, bank, "person1", vector=np.ones(DIM, np.float32).tobytes(), terms=("person1",), now=NOW)


class SlowLoads:
    """Loads of the cold bank wait until they are let go."""

    def __init__(self, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on, self.count = threading.Event(), threading.Event(), 0
        with partition.peek(T, COLD) as (_, self._number):
            pass
        self._load = partition._load
        monkeypatch.setattr(partition, "_load", self)

    def __call__(self, number: int, quarantined: bool) -> OpenBank:
        if number == self._number:
            self.count += 1
            self.begun.set()
            self.go_on.wait(20)
        return self._load(number, quarantined)


async def test_a_cold_bank_keeps_only_those_waiting_that_ask_for_it(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowLoads(await shard._partition_at(0), monkeypatch)
    plan = messages.PlanRetain(T, COLD, ())
    waiting: list[asyncio.Task[Any]] = [asyncio.create_task(shard.handle(query(COLD))) for _ in range(6)]
    waiting += [asyncio.create_task(shard.handle(plan)) for _ in range(3)]
    listing = {"q": None, "limit": 10, "offset": 0}
    waiting += [asyncio.create_task(shard.handle(messages.Read("list_tags", T, COLD, listing))) for _ in range(3)]
    await asyncio.to_thread(slow.begun.wait, 10)
    for message in (query(WARM), messages.PlanRetain(T, WARM, ()), messages.Read("list_tags", T, WARM, listing)):
        assert await asyncio.wait_for(shard.handle(message), 5)
    assert not any(task.done() for task in waiting)
    slow.go_on.set()
    answers = await asyncio.wait_for(asyncio.gather(*waiting), 10)
    assert all(answer.results for answer in answers[:6]) and slow.count == 1


async def test_a_load_that_takes_too_long_says_so_and_goes_on(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank_threads, "LOAD_SECONDS", 0.05)
    slow = SlowLoads(await shard._partition_at(0), monkeypatch)
    for _ in range(2):
        with pytest.raises(Unavailable, match="still being loaded"):
            await shard.handle(query(COLD))
    slow.go_on.set()
    monkeypatch.setattr(bank_threads, "LOAD_SECONDS", 10.0)
    assert (await shard.handle(query(COLD))).results and slow.count == 1
    with pytest.raises(BankNotFound):
        await shard.handle(query("none"))


async def test_slow_listings_keep_neither_recalls_nor_retains(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setitem(reads.READS, "slow", lambda *_: go_on.wait(20))
    listings = [asyncio.create_task(shard.handle(messages.Read("slow", T, WARM, {}))) for _ in range(8)]
    await asyncio.sleep(0.05)
    assert (await asyncio.wait_for(shard.handle(query(WARM)), 5)).results
    assert await asyncio.wait_for(shard.handle(messages.PlanRetain(T, WARM, ())), 5)
    assert not any(listing.done() for listing in listings)
    go_on.set()
    assert all(await asyncio.gather(*listings))


async def test_a_bank_that_the_budget_closes_at_once_is_answered_all_the_same(shard: Shard) -> None:
    shard._budget.limit = 1
    for _ in range(3):
        for bank in (COLD, WARM):
            assert (await asyncio.wait_for(shard.handle(query(bank)), 5)).results

"""What a shard does by itself: large banks get their index while it serves, and a bank that killed it is set apart."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from recalld.actors import messages, shard
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.shard import Shard
from recalld.storage.bulk import load_synthetic
from recalld.storage.errors import Quarantined
from recalld.storage.hnsw import HnswIndex
from recalld.storage.home import Home
from recalld.storage.partition import StoreSettings

T, B, DIM, NOW, THRESHOLD = "t", "b", 32, 1_750_000_000_000_000, 200
STORE = StoreSettings(map_size=1 << 30, reserve=0, vector_threshold=THRESHOLD)


def clock() -> int:
    return NOW


def made(folder: Path) -> Shard:
    home = Home.create(folder, NOW, partitions=1)
    ids = itertools.count()
    return Shard(home, [0], STORE, RecallSettings(), clock, lambda: f"00000000-0000-4000-8000-{next(ids):012d}")


def query(*terms: str) -> RecallQuery:
    return RecallQuery(T, B, " ".join(terms), vector=np.ones(DIM, np.float32).tobytes(), terms=terms, now=NOW)


async def test_a_bank_that_grows_past_the_threshold_gets_its_index_while_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "SWEEP_SECONDS", 0.05)
    served = made(tmp_path / "home")
    await served.start()
    partition = await served._partition_at(0)
    await asyncio.to_thread(load_synthetic, partition, T, B, 150, DIM, 1, NOW)
    assert (await served.handle(query("person1"))).results
    await asyncio.to_thread(load_synthetic, partition, T, B, 200, DIM, 2, NOW)
    for _ in range(200):
        (bank,) = partition.open_banks()
        if isinstance(bank.index, HnswIndex) and not bank.index.work_left:
            break
        await asyncio.sleep(0.02)
    assert isinstance(bank.index, HnswIndex) and bank.index.tail == 0
    assert (await served.handle(query("person1"))).results
    await served.handle(messages.DeleteBank(T, B, "r"))
    for _ in range(200):
        if not list((partition.folder / "vectors").iterdir()):
            break
        await asyncio.sleep(0.02)
    assert not list((partition.folder / "vectors").iterdir())
    await served.stop()


async def test_a_quarantined_bank_reads_on_its_work_is_parked_and_both_come_back_when_it_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "PARKED_US", 0)
    served = made(tmp_path / "home")
    await served.start()
    partition = await served._partition_at(0)
    await asyncio.to_thread(load_synthetic, partition, T, B, 300, DIM, 1, NOW)
    work = messages.NewOperation("00000000-0000-4000-8000-0000000000aa", "retain", 1, b"work")
    assert (await served.handle(messages.SubmitOperations(T, B, NOW, (work,))))["created"]
    with partition.read(T, B) as snap:
        number = snap.bank
    await served.stop()

    (partition.folder / "deaths.json").write_text(json.dumps({str(number): {"advance": 3}}))
    served = made(tmp_path / "home")
    await served.start()
    put = messages.PutBank(T, B, "r", NOW, create=False, name="new")
    claim = messages.ClaimOperations(1, NOW)
    assert (await served.handle(messages.Maintain("stats")))["quarantined"] == [number]
    assert (await served.handle(query("person1"))).results
    with pytest.raises(Quarantined, match="quarantined"):
        await served.handle(put)
    assert not await served.handle(claim)
    await served.handle(messages.Maintain("release"))
    assert (await served.handle(messages.Maintain("stats")))["quarantined"] == []
    await served.handle(put)
    (claimed,) = await served.handle(claim)
    assert claimed.id == work.id
    await served.stop()

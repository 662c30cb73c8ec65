"""A partition that is mostly free pages compacts itself, at a quiet moment and not again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import World

from recalld.storage import upkeep
from recalld.storage.environment import WriteTxn
from recalld.storage.errors import DiskFull
from recalld.storage.partition import Partition


def size(partition: Partition) -> int:
    return (partition.folder / "data.mdb").stat().st_size


def fill(txn: WriteTxn) -> None:
    for n in range(64):
        txn.put(b"junk%04d" % n, os.urandom(64_000))


@pytest.fixture
def partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Partition]:
    """Holds one bank, and 4 MB."""
    monkeypatch.setattr(upkeep, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(upkeep, "QUIET_WRITES_SECONDS", 0.0)
    world = World(tmp_path, reserve=0)
    world.add("t", "b", "d", [world.unit("Ana likes tea.")])
    world.partition.environment.write(fill)
    yield world.partition
    world.close()


def delete(partition: Partition, keys: int) -> None:
    def run(txn: WriteTxn) -> None:
        for n in range(keys):
            txn.delete(b"junk%04d" % n)

    partition.environment.write(run)


def test_a_file_of_mostly_free_pages_is_compacted_in_the_background(partition: Partition) -> None:
    before = size(partition)
    delete(partition, 16)
    upkeep.tend(partition, 0.01)
    assert size(partition) >= before  # a quarter is free
    delete(partition, 64)
    upkeep.tend(partition, 0.01)
    assert size(partition) < before / 4
    with partition.read("t", "b") as snap:
        assert [unit.text for unit in snap.units([0])] == ["Ana likes tea."]


def test_compaction_waits_until_nothing_is_written(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "QUIET_WRITES_SECONDS", 0.3)
    before = size(partition)
    for _ in range(4):
        delete(partition, 64)
        upkeep.tend(partition, 0.01)
        time.sleep(0.05)
    assert size(partition) >= before
    time.sleep(0.3)
    upkeep.tend(partition, 0.01)
    assert size(partition) < before / 4


def test_a_compaction_that_fails_is_not_tried_again_at_once(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def full() -> tuple[int, int]:
        tries.append(1)
        raise DiskFull("The disk is full.")

    delete(partition, 64)
    monkeypatch.setattr(partition.environment, "compact", full)
    for _ in range(3):
        upkeep.tend(partition, 0.01)
    assert len(tries) == 1

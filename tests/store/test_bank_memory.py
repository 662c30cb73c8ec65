"""Promises of what banks hold in memory: a budget for all of them, and a bank that ends its shard is set aside."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from large_bank import (
    DIM,
    NOW,
    SETTINGS,
    B,
    T,
    bank_of,
    check,
    erase,
    large,
    load,
    new_ids,
    opened,
    stored,
)

from recalld.actors.recall import engine
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import upkeep
from recalld.storage.budget import MemoryBudget
from recalld.storage.errors import Quarantined
from recalld.storage.partition import Partition


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Partition]:
    made = opened(tmp_path / "p")
    yield made
    made.close()


def test_thirty_banks_stay_within_the_memory_budget(tmp_path: Path) -> None:
    probe = opened(tmp_path / "probe")
    load(probe, 150)
    size = bank_of(probe).nbytes
    probe.close()
    store = opened(tmp_path / "p", dataclasses.replace(SETTINGS, memory_budget=int(size * 5.5)))
    for number in range(30):
        load(store, 150, seed=number, bank=f"bank {number}")
    for number in range(30):
        with store.read(T, f"bank {number}") as snap:
            assert snap.semantic(stored(snap, 0), 1, None, -1.0)[0].tolist() == [0]
        assert sum(bank.nbytes for bank in store.open_banks()) <= store.settings.memory_budget
    assert 3 <= len(store.open_banks()) <= 6
    store.close()


def test_partitions_that_share_a_budget_leave_all_of_it_to_whoever_needs_it(tmp_path: Path) -> None:
    probe = opened(tmp_path / "probe")
    load(probe, 150)
    size = bank_of(probe).nbytes
    probe.close()
    budget = MemoryBudget(int(size * 4.5))
    first, second = (Partition(tmp_path / name, SETTINGS, lambda: NOW, new_ids(), budget) for name in "pq")
    for number in range(4):
        load(first, 150, bank=f"{number}")
        bank_of(first, f"{number}")
    assert len(first.open_banks()) == 4, "one partition may use all of it"
    bank_of(first, "0")
    load(second, 150)
    bank_of(second)
    left = {bank.record.bank_id for bank in first.open_banks()}
    assert left == {"0", "2", "3"} and len(second.open_banks()) == 1, "the least recently used goes, wherever it is"
    assert budget.total == sum(bank.nbytes for store in (first, second) for bank in store.open_banks())
    first.close()
    assert budget.total == sum(bank.nbytes for bank in second.open_banks())
    second.close()
    assert budget.total == 0


def die(folder: Path, number: int, step: str) -> None:
    """What a process that dies with a bank in hand leaves behind."""
    (folder / "in_hand.json").write_text(json.dumps([[number, step]]))


def recall(store: Partition, *terms: str) -> list[dict[str, Any]]:
    query = RecallQuery(T, B, " ".join(terms), vector=np.ones(DIM, np.float32).tobytes(), terms=terms, now=NOW)
    with store.read(T, B) as snap:
        return engine.recall(snap, query, RecallSettings()).results


def test_a_bank_that_kills_its_shard_three_times_is_read_without_vectors_until_it_is_released(tmp_path: Path) -> None:
    store = opened(tmp_path / "p")
    large(store, 300)
    load(store, 20, bank="healthy")
    number = bank_of(store).record.number
    store.close()
    for _ in range(3):
        die(tmp_path / "p", number, "advance")
        store = opened(tmp_path / "p")
        store.close()
    store = opened(tmp_path / "p")
    assert store.quarantined() == [number]
    assert recall(store, "person1"), "keyword search works"
    with store.read(T, B) as snap:
        assert snap.n == 300 and len(snap.units(range(300))) == 300
        assert len(snap.semantic(np.ones(DIM, np.float32), 5, None, -1.0)[0]) == 0
    with pytest.raises(Quarantined, match="quarantined"):
        load(store, 5, seed=2)
    load(store, 5, seed=2, bank="healthy")
    upkeep.tend(store, 0.01)
    erase(store, [11])  # erasing is still allowed
    store.release(number)
    assert store.quarantined() == []
    load(store, 5, seed=2)
    check(store, frozenset({11}))
    store.close()


def test_deaths_that_do_not_follow_each_other_quarantine_nobody(tmp_path: Path) -> None:
    store = opened(tmp_path / "p")
    load(store, 20)
    number = bank_of(store).record.number
    store.close()
    for _ in range(4):
        die(tmp_path / "p", number, "open")
        store = opened(tmp_path / "p")
        bank_of(store)
        assert store.quarantined() == []
        store.close()


def test_the_note_of_a_bank_in_hand_names_all_of_them_and_goes_with_the_last(store: Partition) -> None:
    load(store, 5)
    note = store.folder / "in_hand.json"
    with store.in_hand(1, "open"):
        with store.in_hand(2, "advance"):
            assert json.loads(note.read_text()) == [[1, "open"], [2, "advance"]]
        assert json.loads(note.read_text()) == [[1, "open"]]
    assert not note.exists()


def test_a_cache_that_cannot_follow_a_commit_is_loaded_again(store: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    load(store, 20)
    bank = bank_of(store)

    def broken(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(bank, "append_units", broken)
    load(store, 20, seed=2)
    assert bank_of(store) is not bank
    check(store)
    with store.read(T, B) as snap:
        assert snap.n == 40

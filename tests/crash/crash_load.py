"""Clients that retain many small items and keep a book of what they were told, and the audit of that book.

Every item has a keyword, an entity, a day and a text of its own, so that each arm can be asked for it alone.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from e2e_daemon import Bank, Wire

PLACES = ("attic", "harbour", "greenhouse", "tower", "cellar", "library", "stable", "observatory")
THINGS = ("lantern", "accordion", "microscope", "saddle", "telescope", "typewriter", "kettle", "barometer")
FIRST_DAY = datetime(2021, 1, 1, 12, tzinfo=UTC)
BATCH = 5


def text_of(number: int) -> str:
    return f"The {THINGS[number % 8]} zq{number:05d} stands in the {PLACES[number // 8 % 8]} of house {number}."


def item_of(number: int) -> dict[str, Any]:
    day = FIRST_DAY + timedelta(days=number)
    return {
        "content": text_of(number),
        "timestamp": day.isoformat(),
        "entities": [{"text": f"Owner {number // 2:05d}"}],
        "document_id": f"doc-{number:05d}",
    }


@dataclass
class Book:
    """What the clients know. `told` are numbers whose retain answered 200, `groups` what was sent in one request."""

    told: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    groups: list[tuple[int, ...]] = field(default_factory=list)
    operations: dict[str, tuple[int, ...]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Load:
    """`clients` threads that retain the numbers from `start` to `end`: single items, batches, and operations."""

    def __init__(self, wire: Wire, bank: str, book: Book, start: int, end: int, clients: int, seed: int) -> None:
        self.bank = Bank(wire, bank)
        self.book = book
        self._chance = random.Random(seed)
        self._next, self._end = start, end
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(wire,), daemon=True) for _ in range(clients)]

    def begin(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def wait_until_told(self, count: int, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while len(self.book.told) < count and time.monotonic() < end and any(t.is_alive() for t in self._threads):
            time.sleep(0.002)

    def finish(self, seconds: float = 120.0) -> None:
        for thread in self._threads:
            thread.join(seconds)
            assert not thread.is_alive(), "a client hangs"

    def stop(self) -> None:
        self._stop.set()
        self.finish()

    def _take(self) -> tuple[tuple[int, ...], bool]:
        with self.book.lock:
            kind = self._chance.random()
            size = BATCH if kind > 0.9 else 1
            numbers = tuple(range(self._next, min(self._next + size, self._end)))
            self._next += len(numbers)
            if numbers:
                self.book.groups.append(numbers)
            return numbers, kind < 0.1

    def _work(self, wire: Wire) -> None:
        while not self._stop.is_set():
            numbers, queued = self._take()
            if not numbers:
                return
            fields: dict[str, Any] = {"async": True, "operation_id": str(uuid.uuid4())} if queued else {}
            try:
                answer = self.bank.post_items(*(item_of(n) for n in numbers), **fields)
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self.book.lock:
                    self.book.unsure.update(numbers)
                    self.book.errors.append(type(error).__name__)
                return
            with self.book.lock:
                if answer.status != 200:
                    self.book.unsure.update(numbers)
                    self.book.errors.append(f"{answer.status} {answer.body}")
                elif queued:
                    self.book.operations[fields["operation_id"]] = numbers
                else:
                    self.book.told.update(numbers)


def audit(bank: Bank, book: Book, *, sample: int | None, seed: int, drain: float = 60.0) -> dict[str, Any]:
    """Check the book against the bank. `sample` items are asked of every arm alone (None: every item told)."""
    wait_for_operations(bank, book, drain)
    promised = book.told | {n for numbers in book.operations.values() for n in numbers}
    stored = Counter(texts(bank))
    missing = [n for n in promised if not stored[text_of(n)]]
    assert not missing, f"acknowledged and gone: {missing[:20]} of {len(promised)}"
    twice = {text: count for text, count in stored.items() if count > 1}
    assert not twice, f"stored more than once: {twice}"
    known = {text_of(n) for n in promised | book.unsure}
    assert set(stored) <= known, "something nobody sent"
    for group in book.groups:
        there = sum(stored[text_of(n)] for n in group)
        assert there in (0, len(group)), f"{there} of the {len(group)} items of one request"
    chosen = sorted(promised)
    if sample is not None:
        chosen = random.Random(seed).sample(chosen, min(sample, len(chosen)))
    for number in chosen:
        for arm in ("semantic", "keyword", "temporal", "graph"):
            assert text_of(number) in by_arm(bank, number, arm), f"item {number} is not found by the {arm} arm alone"
    stats = bank.get("/stats")
    assert stats["total_nodes"] == len(stored)
    return {"promised": len(promised), "stored": len(stored), "asked": len(chosen), "unsure": len(book.unsure)}


def wait_for_operations(bank: Bank, book: Book, seconds: float) -> None:
    """No operation stays open, and none that was promised failed."""
    end = time.monotonic() + seconds
    while True:
        found = {
            status: bank.get("/operations", status=status, limit=1)["total"] for status in ("pending", "processing")
        }
        if not any(found.values()):
            break
        assert time.monotonic() < end, f"operations are stuck: {found}"
        time.sleep(0.05)
    for operation_id in book.operations:
        state = bank.get(f"/operations/{operation_id}")
        assert state["status"] == "completed", state


def texts(bank: Bank) -> list[str]:
    found: list[str] = []
    while True:
        page = bank.get("/memories/list", limit=500, offset=len(found))
        found += [item["text"] for item in page["items"]]
        if not page["items"]:
            return found


def by_arm(bank: Bank, number: int, arm: str) -> list[str]:
    """What one arm alone finds when it is asked for an item in the way it understands."""
    day = FIRST_DAY + timedelta(days=number)
    asked: dict[str, Any] = {
        # The other unit of the entity is the way in.
        "graph": {"query": text_of(number ^ 1)},
        "keyword": {"query": f"zq{number:05d}"},
        "semantic": {"query": text_of(number)},
        "temporal": {
            "query": f"Where does the {THINGS[number % 8]} stand?",
            "temporal_window": {
                "start": (day - timedelta(hours=1)).isoformat(),
                "end": (day + timedelta(hours=1)).isoformat(),
            },
        },
    }[arm]
    query = asked.pop("query")
    return bank.texts(query, arms=[arm], budget="high", max_tokens=8000, **asked)

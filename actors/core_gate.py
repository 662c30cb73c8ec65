"""Who may use the cores for a model pass: queries at once, texts only while a core stays free for them.

A query never waits here. A text takes a core for one window (about 20 ms at most) and, while any query is on its way,
leaves one core alone. With a single core texts stand still meanwhile, but never longer than `patience` seconds, so
that a steady stream of queries cannot stop a retain.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CoreGate", "usable_cores"]


def usable_cores() -> int:
    """Cores this process may run on (affinity counted, at least 1)."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


class CoreGate:
    """A lock with two kinds of holders; shared by everything in a process that runs the embedding model."""

    def __init__(self, cores: int | None = None, patience: float = 0.25) -> None:
        self._cores = cores or usable_cores()
        self._patience = patience
        self._changed = threading.Condition()
        self._queries = 0
        self._texts = 0

    @contextmanager
    def query(self) -> Iterator[None]:
        """Around one query's passes; enters at once."""
        with self._changed:
            self._queries += 1
        try:
            yield
        finally:
            with self._changed:
                self._queries -= 1
                self._changed.notify_all()

    @contextmanager
    def text(self) -> Iterator[None]:
        """Around one window of a text; waits while it would take the core that a query needs."""
        with self._changed:
            self._changed.wait_for(self._free, timeout=self._patience)
            self._texts += 1
        try:
            yield
        finally:
            with self._changed:
                self._texts -= 1
                self._changed.notify_all()

    def _free(self) -> bool:
        return self._texts < self._cores - (1 if self._queries else 0)

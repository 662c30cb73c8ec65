"""How much memory open banks may hold together: one budget that all partitions of a process share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable


class MemoryBudget:
    """Counts the bytes of open banks and says which to close, least recently used first. Any thread may call it.

    It closes nothing itself: whoever opens or grows a bank closes what it is told to, holding no lock.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._sizes: OrderedDict[Hashable, int] = OrderedDict()
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes counted now."""
        return self._total

    def touch(self, bank: Hashable) -> None:
        """The bank was used just now."""
        with self._lock:
            if bank in self._sizes:
                self._sizes.move_to_end(bank)

    def hold(self, bank: Hashable, size: int, used: bool) -> list[Hashable]:
        """Count `bank` with `size` bytes; the banks that must be closed for it, which are counted no more.

        A bank that grows without being read (`used` False) keeps its place. The bank itself is never among them: one
        that is larger than the whole budget stays alone.
        """
        with self._lock:
            self._total += size - self._sizes.get(bank, 0)
            self._sizes[bank] = size
            if used:
                self._sizes.move_to_end(bank)
            closed: list[Hashable] = []
            for other, held in list(self._sizes.items()) if self._total > self.limit else ():
                if other != bank:
                    del self._sizes[other]
                    self._total -= held
                    closed.append(other)
                if self._total <= self.limit:
                    break
            return closed

    def release(self, bank: Hashable) -> None:
        """Count the bank no more."""
        with self._lock:
            self._total -= self._sizes.pop(bank, 0)

"""What banks set over the server's settings, remembered for a moment: every retain asks before it stores anything."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from recalld.storage.errors import BankNotFound

SECONDS = 5.0
"""For so long an answer is trusted at most: a change whose answer got lost may be carried out later."""
CAPACITY = 1024


class Overrides:
    """`read` asks a bank's shard for its settings; `monotonic` is in seconds. Belongs to one event loop."""

    def __init__(self, read: Callable[..., Awaitable[Any]], monotonic: Callable[[], float]) -> None:
        self._read = read
        self._monotonic = monotonic
        self._known: OrderedDict[tuple[str, str], tuple[float, dict[str, Any]]] = OrderedDict()
        self._changes = 0

    async def of(self, tenant: str, bank_id: str) -> dict[str, Any]:
        """The bank's own settings, none for a bank that does not exist. Not to be written to."""
        known = self._known.get((tenant, bank_id))
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        changes = self._changes
        try:
            found: dict[str, Any] = (await self._read("bank", tenant, bank_id))["overrides"]
        except BankNotFound:
            return {}
        if changes == self._changes:  # else it may have been read before the change
            self._known[tenant, bank_id] = (self._monotonic() + SECONDS, found)
            if len(self._known) > CAPACITY:
                self._known.popitem(last=False)
        return found

    def changed(self, tenant: str, bank_id: str) -> None:
        """A change of the bank was sent, or answered: call it before and after."""
        self._changes += 1
        self._known.pop((tenant, bank_id), None)

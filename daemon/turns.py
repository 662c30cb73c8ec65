"""Requests about one document go on in the order in which they came, however long each takes to get ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """The lines of one event loop, one for each key; a key nobody waits for takes no room."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    async def through(self, keys: Iterable[Hashable], ready: Awaitable[T]) -> T:
        """What `ready` gives or raises, once all that came before under one of `keys` have theirs.

        The preparations run side by side; only their ends stand in line.
        """
        wanted = list(dict.fromkeys(keys))
        before = [self._last[key] for key in wanted if key in self._last]
        mine = asyncio.get_running_loop().create_future()
        self._last.update(dict.fromkeys(wanted, mine))
        try:
            result = await ready
            if before:
                await asyncio.wait(before)
            return result
        finally:
            left = [one for one in before if not one.done()]
            if left:  # given up: who comes behind still waits for those before
                asyncio.ensure_future(asyncio.wait(left)).add_done_callback(lambda _: self._end(wanted, mine))
            else:
                self._end(wanted, mine)

    def _end(self, keys: list[Hashable], mine: asyncio.Future[None]) -> None:
        mine.set_result(None)
        for key in keys:
            if self._last.get(key) is mine:
                del self._last[key]

"""Lanes: how many recalls and retains run at once, who waits, and who is told to come back later."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recalld.storage.errors import TooManyRequests


class Lane:
    """At most `max_in_flight` callers inside; others wait in order, at most `max_waiting` of them, for `max_wait` s.

    Belongs to one event loop. A caller that gives up (time, or its client left) leaves the queue without a trace.
    """

    def __init__(self, name: str, max_in_flight: int, max_wait: float, max_waiting: int = 1024) -> None:
        self.name = name
        self.max_in_flight = max_in_flight
        self.max_wait = max_wait
        self.max_waiting = max_waiting
        self.in_flight = 0
        self.refused = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._mean_seconds = 0.0

    @property
    def waiting(self) -> int:
        return sum(not one.done() for one in self._queue)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it. Raises `TooManyRequests` with the seconds after which a turn is likely."""
        await self._enter()
        started = time.perf_counter()
        try:
            yield
        finally:
            self._mean_seconds += 0.1 * (time.perf_counter() - started - self._mean_seconds)
            self._leave()

    async def _enter(self) -> None:
        if self.in_flight < self.max_in_flight and not self._queue:
            self.in_flight += 1
            return
        if self.max_wait <= 0 or self.waiting >= self.max_waiting:
            raise self._busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self.max_wait):
                await turn
        except TimeoutError:
            if turn.done() and not turn.cancelled():
                return  # the turn came in the same instant; it is ours
            raise self._busy() from None
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # given to someone who has gone: pass it on
            raise
        finally:
            if not turn.done():
                turn.cancel()
            if turn in self._queue:
                self._queue.remove(turn)

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)  # the place passes on; `in_flight` stays
                return
        self.in_flight -= 1

    def _busy(self) -> TooManyRequests:
        self.refused += 1
        likely = self._mean_seconds * (self.waiting + 1) / max(1, self.max_in_flight)
        after = min(60, max(1, math.ceil(likely)))
        return TooManyRequests(
            f"The {self.name} lane is full ({self.max_in_flight} running); try again in {after} s.", retry_after=after
        )

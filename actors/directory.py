"""Which shard owns which partition, and how to reach it: the Directory actor, and `Shards` on the caller's side.

In a local home the assignment is a rule over `home.json`'s partition count, so it needs no messages; the actor exists
to watch: it asks every shard for a sign of life and knows which answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from recalld.actors.runtime import ActorRef, Resolver
from recalld.actors.wirecodec import message
from recalld.storage.errors import DeadlineExceeded, RecalldError, Unavailable

T = TypeVar("T")

FIRST_WAIT = 0.1
LONGEST_WAIT = 2.0
SHARD_ATTEMPTS = 24
"""Calls to a shard that stays away: with the growing waits, more than the 30 s that a caller waits by default."""


async def with_patience(call: Callable[[float], Awaitable[T]], seconds: float, attempts: int) -> T:
    """What `call` answers within the seconds it is given; asked again only while it is `Unavailable`.

    The waits between grow, and are at least what a peer asks for when it asks for more than the usual second. Raises
    the last error after so many attempts, or when `seconds` do not allow another.
    """
    end = time.monotonic() + seconds
    wait = FIRST_WAIT
    for attempt in range(1, attempts + 1):
        left = max(0.001, end - time.monotonic())
        try:
            async with asyncio.timeout(left + FIRST_WAIT):
                return await call(left)
        except TimeoutError:
            raise DeadlineExceeded("The part of recalld that was asked did not answer in time.") from None
        except Unavailable as error:
            wait = max(wait, error.retry_after if error.retry_after > 1 else 0.0)
            if attempt == attempts or end - time.monotonic() <= wait:
                raise
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT)
    raise Unavailable("No attempt was made.")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Partition n belongs to shard n modulo `shards`."""

    partitions: int
    shards: int

    def shard_of(self, partition: int) -> str:
        return shard_name(partition % self.shards)

    def names(self) -> list[str]:
        return [shard_name(n) for n in range(self.shards)]

    def numbers(self, shard: int) -> list[int]:
        """The partitions of a shard."""
        return [n for n in range(self.partitions) if n % self.shards == shard]


def shard_name(number: int) -> str:
    return f"shard-{number}"


@message(1)
@dataclass(frozen=True, slots=True)
class AskHealth:
    """Which shards answer? Answer: {"shards": {name: bool}}."""


class Directory:
    """Knows the assignment and which shards answer."""

    def __init__(self, assignment: Assignment, resolver: Resolver) -> None:
        self._assignment = assignment
        self._resolver = resolver

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def handle(self, request: Any) -> Any:
        if isinstance(request, AskHealth):
            names = self._assignment.names()
            found = await asyncio.gather(*(self._alive(name) for name in names))
            return {"shards": dict(zip(names, found, strict=True))}
        raise RecalldError(f"The Directory does not understand {type(request).__name__}.")

    async def _alive(self, name: str) -> bool:
        try:
            return await (await self._resolver.lookup(name)).alive()
        except RecalldError:
            return False


class Shards:
    """Sends messages to the shard that owns a bank, and again when it was away: a shard's death is a delay.

    Only messages that are harmless to repeat may come through here: reads, and writes that carry a request id.
    """

    def __init__(self, assignment: Assignment, partition_of: Any, resolver: Resolver) -> None:
        self._assignment = assignment
        self._partition_of = partition_of
        self._resolver = resolver
        self._refs: dict[str, ActorRef] = {}

    @property
    def names(self) -> list[str]:
        return self._assignment.names()

    def name_of(self, tenant: str, bank_id: str) -> str:
        return self._assignment.shard_of(self._partition_of(tenant, bank_id))

    async def ref(self, name: str) -> ActorRef:
        if name not in self._refs:
            self._refs[name] = await self._resolver.lookup(name)
        return self._refs[name]

    async def call(self, tenant: str, bank_id: str, request: Any, seconds: float = 30.0) -> Any:
        """The answer of the shard that owns the bank. Raises `Unavailable` when it stays away for `seconds`."""
        return await self.call_named(self.name_of(tenant, bank_id), request, seconds)

    async def call_named(self, name: str, request: Any, seconds: float = 30.0) -> Any:
        async def once(left: float) -> Any:
            return await (await self.ref(name)).call(request, timeout=left)

        return await with_patience(once, seconds, SHARD_ATTEMPTS)

    async def call_all(self, request: Any, seconds: float = 30.0) -> list[Any]:
        """Every shard's answer, in order of the shards."""
        return list(await asyncio.gather(*(self.call_named(name, request, seconds) for name in self.names)))

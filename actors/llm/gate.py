"""Who may call now: permits shared by a process, pauses after 429, and the state of an endpoint that is down.

A permit is held for one attempt alone, never over a wait. One `Gate` serves all models of a process; an `Endpoint`
is what the calls to one (base URL, model) know of each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from recalld.storage.errors import ModelRateLimited, ModelUnavailable

FAILURES_TO_OPEN = 3
COOL_FIRST, COOL_MOST = 5.0, 60.0

Monotonic = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]
Chance = Callable[[], float]
"""A number in [0, 1)."""


class Permits:
    """At most `most` calls at once, and fewer for the operations in `per_operation`.

    A capped operation waits for its own permit first, so that its queue never sits on permits of others.
    """

    def __init__(self, most: int, per_operation: Mapping[str, int]) -> None:
        self._all = asyncio.Semaphore(most)
        self._own = {name: asyncio.Semaphore(count) for name, count in per_operation.items() if 0 < count < most}
        self.held = 0
        self.most_held = 0

    @contextlib.asynccontextmanager
    async def one(self, operation: str, patience: float) -> AsyncIterator[None]:
        """Hold one permit. Raises `ModelUnavailable` when none is free for `patience` seconds."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(max(patience, 0.0)):
                    if operation in self._own:
                        await stack.enter_async_context(self._own[operation])
                    await stack.enter_async_context(self._all)
            except TimeoutError:
                raise ModelUnavailable(
                    "As many model calls as are allowed at once are under way; what can wait is tried again by itself.",
                    retry_after=5,
                ) from None
            self.held += 1
            self.most_held = max(self.most_held, self.held)
            try:
                yield
            finally:
                self.held -= 1


@dataclass(slots=True)
class Endpoint:
    """What is known of one model behind one base URL: asked to pause until when, failing since how many attempts.

    Closed: calls go through. Open: they are turned away at once with the seconds left. When those are over one call
    goes as a probe; it closes the circuit, or opens it for twice as long.
    """

    name: str
    monotonic: Monotonic
    paused_until: float = -math.inf
    answers: int = 0
    failures: int = 0
    open_until: float = -math.inf
    cool: float = 0.0
    probing: bool = False
    cause: str = ""

    @property
    def down(self) -> bool:
        return self.cool > 0.0

    def check(self) -> bool:
        """Whether this call is the probe of a circuit that was open. Raises `ModelUnavailable` while it is open."""
        if not self.down:
            return False
        left = self.open_until - self.monotonic()
        if left > 0 or self.probing:
            raise self.unavailable(max(left, 1.0))
        self.probing = True
        return True

    def unavailable(self, seconds: float) -> ModelUnavailable:
        return ModelUnavailable(
            f"The language model {self.name} cannot be reached ({self.cause or 'it failed again and again'}); "
            "what can wait is tried again by itself.",
            retry_after=max(1, math.ceil(seconds)),
        )

    def succeeded(self) -> None:
        """An answer came, of whatever kind: the other side is there."""
        self.answers += 1
        self.failures, self.cool, self.cause = 0, 0.0, ""
        self.open_until = -math.inf

    def failed(self, cause: str, probe: bool) -> None:
        self.failures += 1
        self.cause = cause
        if probe or (not self.down and self.failures >= FAILURES_TO_OPEN):
            self.cool = min(COOL_MOST, self.cool * 2 if self.cool else COOL_FIRST)
            self.open_until = self.monotonic() + self.cool

    def pause(self, seconds: float) -> None:
        self.paused_until = max(self.paused_until, self.monotonic() + seconds)

    def pause_left(self) -> float:
        return max(0.0, self.paused_until - self.monotonic())

    def rate_limited(self, seconds: float) -> ModelRateLimited:
        return ModelRateLimited(
            f"The provider of {self.name} wants fewer calls for now; what can wait is tried again by itself.",
            retry_after=max(1, math.ceil(seconds)),
        )


class Gate:
    """Permits and endpoints of a process. Make one in the event loop that will use it."""

    def __init__(
        self,
        permits: Permits,
        *,
        monotonic: Monotonic,
        sleep: Sleep = asyncio.sleep,
        chance: Chance,
    ) -> None:
        self.permits = permits
        self.monotonic, self.sleep, self.chance = monotonic, sleep, chance
        self._endpoints: dict[tuple[str, str], Endpoint] = {}

    def endpoint(self, base_url: str, model: str) -> Endpoint:
        key = (base_url, model)
        if key not in self._endpoints:
            self._endpoints[key] = Endpoint(model or base_url or "in the settings", self.monotonic)
        return self._endpoints[key]

    async def wait_pause(self, endpoint: Endpoint, until: float) -> None:
        """Sleep over a pause the provider asked for. Raises `ModelRateLimited` when it ends after `until`.

        Those that wait wake one after the other, over up to a second: together they would meet the next 429.
        """
        while (left := endpoint.pause_left()) > 0:
            if self.monotonic() + left > until:
                raise endpoint.rate_limited(left)
            await self.sleep(left + self.chance() * min(1.0, left / 4))

    @contextlib.asynccontextmanager
    async def attempt(
        self, endpoint: Endpoint, operation: str, until: float, longest_pause: float
    ) -> AsyncIterator[bool]:
        """Hold a permit for one attempt; gives whether it is a probe. Raises what `check` and `Permits.one` raise."""
        if endpoint.down and (left := endpoint.open_until - self.monotonic()) > 0:
            raise endpoint.unavailable(left)
        while True:
            await self.wait_pause(endpoint, min(until, self.monotonic() + longest_pause))
            async with self.permits.one(operation, until - self.monotonic()):
                # While this call stood in line another may have been told to pause, or found nobody there.
                if endpoint.pause_left() > 0:
                    continue
                probe = endpoint.check()
                try:
                    yield probe
                finally:
                    if probe:
                        endpoint.probing = False
            return

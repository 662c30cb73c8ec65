"""The seam between the actors and what runs them: `spawn`, `call`, `tell`, `stop`.

An actor is any object with `start`, `handle` and `stop`. It never learns whether it lives in the caller's event loop
(`InlineRuntime`) or in a process of its own (`RayRuntime`); one contract suite holds both to the same promises:

* `call` raises the error the handler raised, re-created on this side; anything unexpected there is a `RecalldError`;
* a call to an actor that died, or is coming back, is `Unavailable`; the actor comes back by itself, built afresh;
* a time-out (`DeadlineExceeded`) or a caller that goes away ends the waiting, never the handler's work:
  messages carry their own deadline, and half-done work is the handler's to end;
* at most `max_concurrency` calls of one actor run at once, the rest wait in order;
* calls made while an actor starts wait for its `start`.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable


@runtime_checkable
class Actor(Protocol):
    """What a factory returns. `start` runs before the first message, `stop` after the last."""

    async def start(self) -> None: ...

    async def handle(self, message: Any) -> Any: ...

    async def stop(self) -> None: ...


class ActorRef(Protocol):
    """The address of one actor; stays valid when the actor dies and comes back."""

    @property
    def name(self) -> str: ...

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - ends the waiting only
        """The handler's answer; `timeout` in seconds. Raises typed errors, `Unavailable`, `DeadlineExceeded`."""

    def tell(self, message: Any) -> None:
        """Send and forget; a failure is logged, never raised."""

    async def alive(self) -> bool:
        """Whether the actor answers within two seconds."""


class Resolver(Protocol):
    """How an actor finds another one by the name it was given."""

    async def lookup(self, name: str) -> ActorRef:
        """Raises `Unavailable` when no actor has that name (yet)."""


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """What is needed to build an actor anywhere: `factory` is "module:function", called as `f(resolver, **kwargs)`.

    `kwargs` cross through the codec; `max_concurrency` bounds the calls that run at once.
    """

    name: str
    factory: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    max_concurrency: int = 64


class Runtime(Protocol):
    """Starts actors, finds them, and ends everything it started."""

    async def spawn(self, spec: ActorSpec) -> ActorRef:
        """Returns when the actor's `start` is done; raises what it raised."""

    async def lookup(self, name: str) -> ActorRef: ...

    async def stop(self, ref: ActorRef) -> None:
        """Runs the actor's `stop`; running calls get a bounded time to end. Stopping twice is harmless."""

    async def shutdown(self) -> None:
        """Stops every actor and everything the runtime itself started. Idempotent."""

    def describe(self) -> dict[str, Any]:
        """Plain facts for `status` and `doctor`: which runtime, actors, processes, addresses."""


Factory = Callable[..., "Actor | Awaitable[Actor]"]


def load_factory(path: str) -> Factory:
    """The function that "module:function" names. Raises `ValueError` for a path of another form."""
    module, separator, function = path.partition(":")
    if not separator or not module or not function:
        raise ValueError(f"'{path}' names no factory; write it as 'module:function'.")
    return cast(Factory, getattr(importlib.import_module(module), function))

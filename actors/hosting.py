"""What both runtimes do around an actor: build it, start it once, bound its calls, make failures typed errors."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import structlog

from recalld.actors.runtime import Actor, ActorSpec, Resolver, load_factory
from recalld.actors.wirecodec import pack, unpack
from recalld.storage.errors import RecalldError, Unavailable
from recalld.storage.faults import origin

log = structlog.get_logger("recalld.actors")

_ANSWER, _FAILURE = b"\x00", b"\x01"


def log_unexpected(event: str, actor: str, error: BaseException) -> None:
    """Log where an exception came from: its type and frames, not its message, which may quote a user's text."""
    log.error(event, actor=actor, error=type(error).__qualname__, traceback=origin(error))


def failure(data: bytes) -> RecalldError | None:
    """The error an envelope carries, or None when it carries an answer."""
    if data[:1] == _ANSWER:
        return None
    error = unpack(data[1:])
    return error if isinstance(error, RecalldError) else RecalldError()


def answer(data: bytes) -> Any:
    """The answer inside an envelope; raises the error it carries instead."""
    error = failure(data)
    if error is not None:
        raise error
    return unpack(data[1:])


class Host:
    """One actor with its life: built and started at the first need, stopped once.

    `handle` passes objects, `handle_bytes` passes envelopes and never raises.
    """

    def __init__(self, spec: ActorSpec, resolver: Resolver) -> None:
        self.spec = spec
        self._resolver = resolver
        self._actor: Actor | None = None
        self._starting: asyncio.Task[Actor] | None = None
        self._slots = asyncio.Semaphore(spec.max_concurrency)
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopped = False

    async def ready(self) -> Actor:
        """The started actor; a start that failed is tried again by the next caller."""
        if self._actor is not None:
            return self._actor
        if self._starting is None or (self._starting.done() and self._failed(self._starting)):
            self._starting = asyncio.create_task(self._build(), name=f"start {self.spec.name}")
        # Shielded: a caller that gives up must not cancel the start that others wait for.
        self._actor = await asyncio.shield(self._starting)
        return self._actor

    @staticmethod
    def _failed(task: asyncio.Task[Actor]) -> bool:
        return task.cancelled() or task.exception() is not None

    async def _build(self) -> Actor:
        try:
            made = load_factory(self.spec.factory)(self._resolver, **self.spec.kwargs)
            actor = await made if inspect.isawaitable(made) else made
            await actor.start()
        except RecalldError:
            raise
        except Exception as error:
            log_unexpected("actor_start_failed", self.spec.name, error)
            raise RecalldError(
                f"The actor {self.spec.name} did not start; the daemon's log has the details."
            ) from error
        return actor

    async def handle(self, message: Any) -> Any:
        """The actor's answer. Raises only `RecalldError`s (and cancellation)."""
        if self._stopped:
            raise Unavailable(f"The actor {self.spec.name} was stopped.")
        self._running += 1
        self._idle.clear()
        try:
            actor = await self.ready()
            async with self._slots:
                return await actor.handle(message)
        except RecalldError:
            raise
        except asyncio.CancelledError:
            if self._stopped:
                raise Unavailable(f"The actor {self.spec.name} was stopped.") from None
            raise
        except Exception as error:
            log_unexpected("actor_handler_failed", self.spec.name, error)
            raise RecalldError() from error
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def handle_bytes(self, data: bytes) -> bytes:
        """An envelope for `answer`, whatever happens inside."""
        try:
            return _ANSWER + pack(await self.handle(unpack(data)))
        except RecalldError as error:
            return _FAILURE + pack(error)

    async def stop(self, patience: float) -> None:
        """Refuse new calls, wait up to `patience` seconds for running ones, then stop the actor."""
        if self._stopped:
            return
        self._stopped = True
        try:
            await asyncio.wait_for(self._idle.wait(), patience)
        except TimeoutError:
            log.warning("actor_stopped_while_busy", actor=self.spec.name, running=self._running)
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
        if self._actor is None:
            return
        try:
            await asyncio.wait_for(self._actor.stop(), patience)
        except Exception as error:
            log_unexpected("actor_stop_failed", self.spec.name, error)

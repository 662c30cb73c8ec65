"""Actors in the caller's own event loop: no process, no socket. Default of the embedded client and of unit tests."""

from __future__ import annotations

import asyncio
from typing import Any

from recalld.actors.hosting import Host, answer, log_unexpected
from recalld.actors.runtime import ActorRef, ActorSpec, Resolver
from recalld.actors.wirecodec import pack, unpack
from recalld.storage.errors import Conflict, DeadlineExceeded, RecalldError, Unavailable


class InlineRuntime:
    """Hosts actors as plain objects; each call is a task.

    `strict=True` sends every message and answer through the codec, so that tests see what could not cross processes.
    `patience` is how many seconds running calls get when an actor is stopped. Its actors look others up in `resolver`,
    by default among themselves.
    """

    def __init__(self, *, strict: bool = False, patience: float = 2.0, resolver: Resolver | None = None) -> None:
        self._strict = strict
        self._resolver = resolver or self
        self._patience = patience
        self._hosts: dict[str, Host] = {}
        self._tasks: dict[str, set[asyncio.Task[Any]]] = {}

    async def spawn(self, spec: ActorSpec) -> ActorRef:
        """Raises `Conflict` when an actor of that name runs, else what the actor's `start` raised."""
        if spec.name in self._hosts:
            raise Conflict(f"An actor named {spec.name} runs already; stop it first.")
        if self._strict:
            spec = ActorSpec(spec.name, spec.factory, unpack(pack(spec.kwargs)), spec.max_concurrency)
        host = Host(spec, self._resolver)
        self._hosts[spec.name] = host
        self._tasks.setdefault(spec.name, set())
        try:
            await host.ready()
        except BaseException:
            self._hosts.pop(spec.name, None)
            raise
        return InlineRef(self, spec.name)

    async def lookup(self, name: str) -> ActorRef:
        if name not in self._hosts:
            raise Unavailable(f"No actor named {name} runs yet.")
        return InlineRef(self, name)

    async def stop(self, ref: ActorRef) -> None:
        host = self._hosts.get(ref.name)
        if host is None:
            return
        await host.stop(self._patience)
        # Only now: until its `stop` is done the name is taken, or two actors would own the same files.
        self._hosts.pop(ref.name, None)
        self._cancel(ref.name)

    async def restart(self, ref: ActorRef) -> None:
        """Drop the actor as a crash would, without its `stop`, and build it afresh; running calls are `Unavailable`."""
        old = self._hosts.get(ref.name)
        if old is None:
            raise Unavailable(f"No actor named {ref.name} runs.")
        fresh = Host(old.spec, self)
        self._hosts[ref.name] = fresh
        self._cancel(ref.name)
        await fresh.ready()

    async def shutdown(self) -> None:
        await asyncio.gather(*(self.stop(InlineRef(self, name)) for name in list(self._hosts)))

    def describe(self) -> dict[str, Any]:
        return {"runtime": "inline", "strict": self._strict, "actors": sorted(self._hosts)}

    def _cancel(self, name: str) -> None:
        for task in list(self._tasks.get(name, ())):
            task.cancel()

    def start_call(self, name: str, message: Any) -> asyncio.Task[Any]:
        """The running call. It belongs to the runtime, so that a caller who goes away leaves it alone."""
        host = self._hosts.get(name)
        if host is None:
            raise Unavailable(f"No actor named {name} runs.")
        work = self._through_codec(host, message) if self._strict else host.handle(message)
        task = asyncio.create_task(work, name=f"call {name}")
        tasks = self._tasks[name]
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_retrieve)
        return task

    @staticmethod
    async def _through_codec(host: Host, message: Any) -> Any:
        return answer(await host.handle_bytes(pack(message)))


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Mark the outcome as seen: when the caller gave up, nobody else asks and the loop would complain."""
    if not task.cancelled():
        task.exception()


class InlineRef:
    """An actor's name in one inline runtime."""

    def __init__(self, runtime: InlineRuntime, name: str) -> None:
        self._runtime = runtime
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - ends the waiting only
        task = self._runtime.start_call(self._name, message)
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            raise DeadlineExceeded(f"The actor {self._name} did not answer within {timeout:g} s.")
        if task.cancelled():
            raise Unavailable(f"The actor {self._name} stopped before it answered.")
        return task.result()

    def tell(self, message: Any) -> None:
        try:
            task = self._runtime.start_call(self._name, message)
        except RecalldError as error:
            log_unexpected("tell_failed", self._name, error)
            return
        task.add_done_callback(self._log_failure)

    def _log_failure(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log_unexpected("tell_failed", self._name, error)

    async def alive(self) -> bool:
        try:
            await self._runtime.lookup(self._name)
        except Unavailable:
            return False
        return True

    def __repr__(self) -> str:
        return f"InlineRef({self._name!r})"

"""Actors and messages that the runtime suites talk to. Imported by workers too, so it stands alone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

from recalld.actors.runtime import Resolver
from recalld.actors.wirecodec import message
from recalld.storage.errors import BankNotFound, TooManyRequests

# Stands for what a user wrote; a constant, because the frames of a traceback quote source lines.
TEXT = "a secret sentence"


@message(1)
@dataclass(frozen=True, slots=True)
class Echo:
    """Answer with the payload."""

    payload: Any = None


@message(1)
@dataclass(frozen=True, slots=True)
class Big:
    """Answer with that many bytes."""

    size: int


@message(1)
@dataclass(frozen=True, slots=True)
class Fail:
    """Raise a typed error, or an unexpected one."""

    kind: str


@message(1)
@dataclass(frozen=True, slots=True)
class Sleep:
    """Answer after that many seconds."""

    seconds: float


@message(1)
@dataclass(frozen=True, slots=True)
class Ask:
    """Send `payload` on to the actor of that name and answer with its answer."""

    name: str
    payload: Any


@message(1)
@dataclass(frozen=True, slots=True)
class Facts:
    """Answer with counters and facts of the process."""


@message(1)
@dataclass(frozen=True, slots=True)
class Die:
    """End the process at once, as the kernel would."""


@dataclass(frozen=True, slots=True)
class Unregistered:
    payload: int = 1


class EchoActor:
    """Does what each message says; `log` is a file that survives it."""

    def __init__(self, resolver: Resolver, log: str | None, start_seconds: float, fail_start: bool) -> None:
        self._resolver = resolver
        self._log = log
        self._start_seconds = start_seconds
        self._fail_start = fail_start
        self.handled = 0
        self.running = 0
        self.most = 0

    def _note(self, word: str) -> None:
        if self._log is not None:
            with open(self._log, "a", encoding="utf-8") as file:
                file.write(word + "\n")

    async def start(self) -> None:
        await asyncio.sleep(self._start_seconds)
        if self._fail_start:
            raise BankNotFound.named("of the start")
        self._note("start")

    async def stop(self) -> None:
        self._note("stop")

    async def handle(self, message: Any) -> Any:
        self.handled += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._do(message)
        finally:
            self.running -= 1

    async def _do(self, message: Any) -> Any:
        match message:
            case Echo():
                return message.payload
            case Big():
                return b"\x07" * message.size
            case Fail(kind="missing"):
                raise BankNotFound.named("café")
            case Fail(kind="busy"):
                raise TooManyRequests("Come back.", 7)
            case Fail():
                raise KeyError(TEXT)
            case Sleep():
                await asyncio.sleep(message.seconds)
                self._note(f"slept {message.seconds}")
                return message.seconds
            case Ask():
                return await (await self._resolver.lookup(message.name)).call(Echo(message.payload))
            case Facts():
                return {
                    "pid": os.getpid(),
                    "handled": self.handled,
                    "most": self.most,
                    "switch": sys.getswitchinterval(),
                    "token": os.environ.get("RAY_AUTH_TOKEN"),
                }
            case Die():
                os.kill(os.getpid(), signal.SIGKILL)
        return None


def echo(resolver: Resolver, log: str | None = None, start_seconds: float = 0.0, fail_start: bool = False) -> EchoActor:
    return EchoActor(resolver, log, start_seconds, fail_start)

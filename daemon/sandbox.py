"""A daemon of one's own in a temporary home: started as a real process, found through its record, ended by its pid.

The demonstration and the benchmarks use it, so that what they show is what `recalld serve` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from recalld.client import AsyncClient, RecalldError
from recalld.daemon.commands.common import CommandError
from recalld.daemon.owner import find_owner

START_SECONDS = 120.0
STOP_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1


class DidNotStart(CommandError):
    """The daemon ended or stayed silent; the message ends with the last lines it printed."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running daemon: `cold_start` is in seconds from the start of the process to its first healthy answer."""

    home: Path
    url: str
    pid: int
    cold_start: float

    def memory(self) -> int:
        """Proportional set size of the daemon and all below it, in bytes: what would be freed were it to end."""
        return tree_memory(self.pid)


@asynccontextmanager
async def sandbox(settings: Mapping[str, str], *, home: Path | None = None) -> AsyncIterator[Sandbox]:
    """Start `recalld serve` with these settings on a new home, which is removed afterwards, or on `home`, which stays.

    `settings` are dotted names to texts. The environment's own `RECALLD_*` and `HINDSIGHT_API_*` variables do not reach
    it, so that two people measure the same thing. Raises `DidNotStart`.
    """
    given = home
    home = given or Path(tempfile.mkdtemp(prefix="recalld-"))
    log = home.with_name(home.name + ".log")
    begun = time.perf_counter()
    process = _start(home, log, settings)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    with contextlib.suppress(RuntimeError, ValueError):  # outside the main thread there are no signals
        # Being terminated must end the block as Ctrl+C does, not leave the home behind.
        loop.add_signal_handler(signal.SIGTERM, task.cancel if task else loop.stop)
    try:
        url = await _ready(process, home, log)
        yield Sandbox(home, url, process.pid, time.perf_counter() - begun)
    finally:
        with contextlib.suppress(RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)
        await asyncio.shield(asyncio.to_thread(_end, process))
        if given is None:
            shutil.rmtree(home, ignore_errors=True)
        log.unlink(missing_ok=True)


def _start(home: Path, log: Path, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "recalld.daemon.sandbox",
        str(os.getpid()),
        "serve",
        "--home",
        str(home),
        "--port",
        "0",
    ]
    command += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RECALLD_", "HINDSIGHT_API_"))}
    with log.open("wb") as out:
        # A session of its own: Ctrl+C in the terminal is ours to pass on, once.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
        )


async def _ready(process: subprocess.Popen[bytes], home: Path, log: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise DidNotStart(f"The daemon ended with code {process.returncode}:\n{_tail(log)}")
        owner = find_owner(home)
        if owner is not None and owner.port:
            async with AsyncClient(owner.url, timeout=10) as client:
                with contextlib.suppress(RecalldError):
                    if (await client.health()).get("status") == "healthy":
                        return owner.url
        await asyncio.sleep(0.02)
    raise DidNotStart(f"The daemon was not ready within {START_SECONDS:g} s:\n{_tail(log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the daemon as Ctrl+C would; kill what is left of its tree when it does not obey."""
    if process.poll() is not None:
        return
    try:
        tree = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        tree = []
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
        return
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in tree:
        with contextlib.suppress(psutil.Error):
            child.kill()  # psutil compares the start time first, so a reused pid is safe


def tree_memory(pid: int) -> int:
    """Proportional set size in bytes of a process and its descendants; resident size where the system has no PSS."""
    total = 0
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            facts = process.memory_full_info()
            total += int(getattr(facts, "pss", 0) or facts.rss)
    return total


def _serve_while_alive(parent: int, arguments: list[str]) -> int:
    """What the child runs: the command line, told to stop when its parent dies, were that by `kill -9`."""
    import ctypes

    from recalld.daemon.cli import run

    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return 1  # it died before it could be watched
    return run(arguments)


def _tail(log: Path, lines: int = 20) -> str:
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(_serve_while_alive(int(sys.argv[1]), sys.argv[2:]))

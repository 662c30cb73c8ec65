"""`kill -9` at random moments while clients retain: what was acknowledged is there, once, for every arm, at once.

Rounds are seeded. The default run has few; `make soak` runs thirty of each kind over 2,000 items.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from crash_load import Book, Load, audit, by_arm, text_of
from e2e_daemon import Bank, Daemon

SETTINGS = ("--set", "retain_extraction_mode=chunks", "--set", "operations.backoff_seconds=0.2")
CLIENTS = 8
READY_SECONDS = 10.0
SOAK = bool(os.environ.get("RECALLD_SOAK"))


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    made = Homes(tmp_path / "home")
    yield made
    made.end()


class Homes:
    """One home and the daemons that had it, one after the other."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.daemon: Daemon | None = None

    def start(self, runtime: str) -> tuple[Daemon, float]:
        begun = time.monotonic()
        self.daemon = Daemon(self.home, runtime, *SETTINGS)
        return self.daemon, time.monotonic() - begun

    def end(self) -> None:
        if self.daemon is not None:
            self.daemon.end()


def kill(process: psutil.Process) -> None:
    """kill -9, by a handle that remembers the start time, so that never another process is hit."""
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def hosts_of(daemon: Daemon, role: str) -> list[psutil.Process]:
    """The processes that host the actors of a role, from what the daemon says of itself."""
    import json

    from e2e_daemon import command

    said = json.loads(command("status", "--home", daemon.home, "--json").stdout)
    below = {process.pid: process for process in daemon.tree()}
    found = [row["pid"] for row in said["processes"]["processes"] if row["role"].startswith(f"actor {role}")]
    return [below[pid] for pid in found if pid in below]


def kill_daemon(daemon: Daemon) -> None:
    kill(psutil.Process(daemon.process.pid))
    daemon.process.wait(10)


def kill_everything(daemon: Daemon) -> None:
    tree = daemon.tree()
    chance = random.Random(len(tree))
    chance.shuffle(tree)
    for process in tree:
        kill(process)
    daemon.process.wait(10)


def warm(daemon: Daemon) -> None:
    """Models are loaded and the bank exists, so that the kill hits retains and not the start."""
    Bank(daemon.wire, "warm").retain("Warm.")


def crash(homes: Homes, runtime: str, how: str, seed: int, items: int, sample: int | None) -> dict[str, float]:
    """One round: start, retain, kill at a random moment, start again, audit."""
    chance = random.Random(seed)
    daemon, _ = homes.start(runtime)
    warm(daemon)
    book = Book()
    load = Load(daemon.wire, "crash", book, 0, items, CLIENTS, seed).begin()
    load.wait_until_told(chance.randrange(1, max(2, items // 2)))
    time.sleep(chance.random() * 0.05)
    (kill_daemon if how == "daemon" else kill_everything)(daemon)
    load.stop()
    daemon, ready = homes.start(runtime)
    facts = audit(Bank(daemon.wire, "crash"), book, sample=sample, seed=seed)
    daemon.end()
    print(f"{runtime} {how} seed {seed}: ready in {ready:.1f} s, {facts}")
    if SOAK or runtime == "inline":
        assert ready <= READY_SECONDS
    return {**facts, "ready": ready}


@pytest.mark.parametrize("seed", [1, 2])
def test_ack_survives_kill9_of_the_daemon(homes: Homes, seed: int) -> None:
    crash(homes, "inline", "daemon", seed, 300, 20)


@pytest.mark.ray
def test_ack_survives_kill9_of_each_actor_and_then_of_everything(homes: Homes) -> None:
    """An actor's death is a delay and no error: every client is answered, and each item is there once."""
    daemon, _ = homes.start("ray")
    warm(daemon)
    book = Book()
    through_deaths(daemon, book, 3, 0, 200, deaths=1)
    through_deaths(daemon, book, 4, 200, 400, deaths=2, roles=("worker", "encoder"))
    audit(Bank(daemon.wire, "crash"), book, sample=10, seed=3)
    load = Load(daemon.wire, "crash", book, 400, 600, CLIENTS, 5).begin()
    load.wait_until_told(len(book.told) + 40)
    kill_everything(daemon)
    load.stop()
    daemon, ready = homes.start("ray")
    facts = audit(Bank(daemon.wire, "crash"), book, sample=10, seed=5)
    print(f"ready in {ready:.1f} s after everything was killed: {facts}")


def through_deaths(
    daemon: Daemon, book: Book, seed: int, start: int, end: int, deaths: int, roles: tuple[str, ...] = ("shard",)
) -> None:
    """Retain while actors' processes are killed; every client must be answered as if nothing had been."""
    chance = random.Random(seed)
    load = Load(daemon.wire, "crash", book, start, end, CLIENTS, seed).begin()
    for death in range(deaths):
        share = (end - start) * (death + chance.random()) / (deaths + 1)
        load.wait_until_told(len(book.told) + int(share / 2))
        for process in hosts_of(daemon, roles[death % len(roles)]):
            kill(process)
        begun = time.monotonic()
        known = next(iter(book.told), None)
        if known is not None:
            assert text_of(known) in by_arm(Bank(daemon.wire, "crash"), known, "keyword")
        print(f"seed {seed}: a recall was answered {time.monotonic() - begun:.1f} s after a process was killed")
    load.finish()
    assert book.errors == [], "a client saw an error although the daemon lived"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 130))
def test_soak_kill9_of_the_inline_daemon(homes: Homes, seed: int) -> None:
    crash(homes, "inline", "daemon", seed, 2000, 200)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(200, 230))
def test_soak_kill9_of_a_ray_daemon_or_of_everything(homes: Homes, seed: int) -> None:
    crash(homes, "ray", "daemon" if seed % 2 else "everything", seed, 2000, 200)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(3600)
def test_soak_kill9_of_shards(homes: Homes) -> None:
    """Thirty deaths of the shard over ten times 2,000 items; fewer than three in a row on one bank's opening."""
    daemon, _ = homes.start("ray")
    warm(daemon)
    book = Book()
    for turn in range(10):
        through_deaths(daemon, book, 300 + turn, turn * 2000, turn * 2000 + 2000, deaths=3)
    audit(Bank(daemon.wire, "crash"), book, sample=400, seed=300)

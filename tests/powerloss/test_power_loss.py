"""A loss of power, which `kill -9` is not: the page cache survives a killed process.

The store runs in a process whose writes, syncs and names are recorded, in order, together with its acknowledgements.
From that log the disk is rebuilt as it may be after power went at any moment, and must hold what was acknowledged.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from power import Event, read_log, rebuild, safe_from

from recalld.storage.home import Home
from recalld.storage.partition import StoreSettings

HERE = Path(__file__).parent
META_PAGES = 2 * 4096
WRITES = 60
ROUNDS, SLOW_ROUNDS = 24, 400


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)
    if compiler is None:
        pytest.skip("the recorder is C, and there is no C compiler here")
    if not sys.platform.startswith("linux"):
        pytest.skip("the recorder needs LD_PRELOAD and /proc")
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    source = HERE / "recorder.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


class Run:
    """One recorded run of the store."""

    def __init__(self, recorder: Path, folder: Path, kind: str, writes: int = WRITES) -> None:
        self.root = folder / "home"
        log = folder / "log"
        log.touch()
        environment = {
            **os.environ,
            "LD_PRELOAD": str(recorder),
            "RECORD_ROOT": str(self.root),
            "RECORD_LOG": str(log),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        subprocess.run(
            [sys.executable, str(HERE / "store_child.py"), str(self.root), str(log), kind, str(writes)],
            env=environment,
            check=True,
            timeout=120,
        )
        self.events: list[Event] = read_log(log)
        self.safe = safe_from(self.events)
        self.acks = {event.a: index for index, event in enumerate(self.events) if event.kind == "A"}

    def items(self) -> dict[int, int]:
        """Number of each acknowledged item, and where its acknowledgement stands."""
        return {int(name.split()[1]): index for name, index in self.acks.items() if name.startswith("item")}

    def lost_after(self, cut: int, folder: Path, seed: int | None) -> list[int]:
        """Items acknowledged before the cut that the rebuilt store does not find; [-1] when it does not open."""
        shutil.rmtree(folder, ignore_errors=True)
        rebuild(self.events, self.safe, cut, folder, str(self.root), seed)
        promised = [number for number, index in self.items().items() if index < cut]
        if not promised and self.acks["home"] >= cut:
            return []
        try:
            return [number for number in promised if number not in found_in(folder)] if promised else opens(folder)
        except Exception:
            return promised or [-1]


def opens(folder: Path) -> list[int]:
    assert Home(folder).info.partitions == 2
    return []


def found_in(folder: Path) -> set[int]:
    """Numbers of the items the store under `folder` holds whole: body, posting and vector row."""
    home = Home(folder)
    partition = home.open_partition(0, StoreSettings(map_size=64 << 20, reserve=0, durable=False), lambda: 1, str)
    try:
        found = set()
        with partition.read("t", "b") as snap:
            for unit in snap.units(range(snap.n)):
                word = unit.text.split()[0]
                uids, _ = snap.postings(word)
                if uids.tolist() == [unit.uid] and snap.vector_row(unit.uid) and snap.token_row(unit.uid):
                    found.add(int(word[len("markerword") : -1]))
            assert sum(snap.counters().live) == len(found) == snap.n
        return found
    finally:
        partition.close()


@pytest.fixture(scope="module")
def run(recorder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(recorder, tmp_path_factory.mktemp("durable"), "durable")


def test_the_recorder_sees_what_the_store_does(run: Run) -> None:
    assert len(run.items()) == WRITES
    kinds = {event.kind for event in run.events}
    assert {"W", "B", "E", "C", "K", "R", "A"} <= kinds
    assert "M" not in kinds, "the store syncs by msync, which the recorder does not understand"
    assert sum(event.kind == "R" and event.b.endswith("data.mdb") for event in run.events) == 2, "two compactions"
    data = [event for event in run.events if event.kind == "W" and event.a.endswith("data.mdb")]
    assert any(event.synchronous for event in data), "the meta page goes through a synchronous descriptor"
    # Written in full, the log is the file: the recorder misses no way in which the store writes.
    events = run.events
    folder = run.root.parent / "complete"
    rebuild(events, [0.0] * len(events), len(events), folder, str(run.root), None)
    real = run.root / "partitions" / "0000" / "data.mdb"
    assert (folder / "partitions" / "0000" / "data.mdb").read_bytes() == real.read_bytes()


def test_every_acknowledgement_follows_the_sync_that_covers_its_writes(run: Run) -> None:
    assert unproven(run) == []


def unproven(run: Run) -> list[str]:
    """Acknowledgements for whose commit no proof of safety stands before them in the log."""
    data = [(i, e) for i, e in enumerate(run.events) if e.kind == "W" and e.a.endswith("data.mdb")]
    problems = []
    for number, ack in run.items().items():
        marker = f"markerword{number}x".encode()
        written = next((i for i, e in data if marker in e.data and i < ack), None)
        if written is None:
            problems.append(f"item {number}: acknowledged before it was written")
            continue
        inode = run.events[written].inode
        # The meta page that makes the commit is the first one after it; all it refers to must be safe by then.
        meta = next((i for i, e in data if i > written and e.inode == inode and e.offset < META_PAGES), None)
        if meta is None or run.safe[meta] >= ack:
            problems.append(f"item {number}: its meta page is not safe")
        elif any(run.safe[i] >= meta for i, e in data if e.inode == inode and i < meta):
            problems.append(f"item {number}: its meta page was written before the pages it names were safe")
    return problems


def test_names_are_safe_before_the_first_acknowledgement(run: Run) -> None:
    first = min(run.items().values())
    for name in ("home.json", "partitions", "partitions/0000", "partitions/0000/data.mdb"):
        path = str(run.root / name)
        made = max(i for i, e in enumerate(run.events) if e.kind in "CKR" and (e.b or e.a) == path and i < first)
        assert run.safe[made] < first, f"{name} may be lost with the power"


def test_acknowledged_writes_are_there_after_power_is_lost_right_then(run: Run, tmp_path: Path) -> None:
    """Right after each acknowledgement, with nothing but what was synced."""
    cuts = sorted(index + 1 for index in run.items().values())
    for cut in cuts[:: len(cuts) // 12] + cuts[-1:]:
        assert run.lost_after(cut, tmp_path / "left", None) == []


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(SLOW_ROUNDS, marks=pytest.mark.slow)])
def test_acknowledged_writes_are_there_whatever_else_reached_the_disk(run: Run, tmp_path: Path, rounds: int) -> None:
    """At any moment, with any part of what was not synced, in sectors."""
    chance = random.Random(rounds)
    for seed in range(rounds):
        cut = chance.randrange(1, len(run.events) + 1)
        assert run.lost_after(cut, tmp_path / "left", seed) == [], f"cut {cut}, seed {seed}"


def test_this_test_can_fail(recorder: Path, tmp_path: Path) -> None:
    """A store told not to flush is caught by the proof and by the rebuilt disk."""
    careless = Run(recorder, tmp_path, "careless", writes=12)
    assert len(unproven(careless)) == 12
    last = max(careless.items().values()) + 1
    assert careless.lost_after(last, tmp_path / "left", None) != []


def test_one_missing_sync_is_caught(run: Run, tmp_path: Path) -> None:
    """The same log, but for one page that a sync is made to have missed."""
    number, ack = sorted(run.items().items(), key=lambda pair: pair[1])[WRITES // 4]
    marker = f"markerword{number}x".encode()
    written = next(i for i, e in enumerate(run.events) if e.kind == "W" and marker in e.data)
    safe = run.safe.copy()
    try:
        run.safe[written] = float("inf")
        assert f"item {number}: its meta page was written before the pages it names were safe" in unproven(run)
        assert run.lost_after(ack + 1, tmp_path / "left", None) != []
    finally:
        run.safe = safe

"""Processes we start are ours to end: exactly those, whatever happens to the daemon."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from recalld.actors import watcher
from recalld.actors.processes import ProcessRecord, describe
from recalld.storage.errors import HomeInUse

HERE = Path(__file__).parent


class Daemon:
    """`runtime_daemon.py` as a child of the test."""

    def __init__(self, run: Path, *arguments: str, **environment: str) -> None:
        self.run = run
        run.mkdir(parents=True, exist_ok=True)
        says = run.parent / "says.json"
        says.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "runtime_daemon.py"), str(run), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "RUNTIME_DAEMON_SAYS": str(says), **environment},
        )
        until = time.monotonic() + 40
        while not (says.exists() and says.read_text().endswith("\n")):
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise AssertionError(f"The daemon did not come up: {self.process.communicate()[1].decode()}")
            time.sleep(0.02)
        self.facts: dict[str, Any] = json.loads(says.read_text())

    def kill9(self) -> None:
        self.process.kill()
        self.process.wait(5)

    def stop(self) -> tuple[bytes, bytes]:
        """End of input is the clean stop; gives what was written to stdout and stderr."""
        return self.process.communicate(timeout=10)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    started: list[Daemon] = []

    def start(*arguments: str, **environment: str) -> Daemon:
        started.append(Daemon(tmp_path / "run", *arguments, **environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()
        watcher.end(one.facts["processes"], term_seconds=0.1)
        if "foreign" in one.facts:
            foreign = describe(one.facts["foreign"], "")
            watcher.end([foreign] if foreign else [], term_seconds=0.5)


def wait_gone(entries: list[dict[str, Any]], seconds: float = 10) -> float:
    """Seconds until all are gone; fails when that takes longer than promised."""
    started = time.monotonic()
    while left := [entry for entry in entries if watcher.alive(entry)]:
        assert time.monotonic() - started < seconds, left
        time.sleep(0.05)
    return time.monotonic() - started


def entry_of(pid: int) -> dict[str, Any]:
    entry = describe(pid, "test")
    assert entry is not None
    return entry


def test_killed_daemon_takes_its_processes_and_nothing_else_along(daemon: Callable[..., Daemon]) -> None:
    one = daemon("sleep")
    watching = entry_of(one.facts["watcher"])
    assert watching["session"] == watching["pid"]
    assert os.environ.keys() > psutil.Process(watching["pid"]).environ().keys()
    assert psutil.Process(watching["pid"]).memory_full_info().pss < 12 << 20
    one.kill9()
    wait_gone([*one.facts["processes"], watching])
    assert not Path(one.facts["folder"]).exists()
    assert not list(one.run.iterdir())
    assert watcher.birth(one.facts["foreign"]) is not None


def test_clean_stop_ends_the_watcher_at_once_and_removes_the_record(daemon: Callable[..., Daemon]) -> None:
    one = daemon("sleep")
    watching = entry_of(one.facts["watcher"])
    one.stop()
    assert wait_gone([*one.facts["processes"], watching]) < 1
    assert not Path(one.facts["folder"]).exists()
    assert not list(one.run.iterdir())
    assert watcher.birth(one.facts["foreign"]) is not None


def test_next_start_ends_what_daemon_and_watcher_left(daemon: Callable[..., Daemon]) -> None:
    one = daemon("sleep")
    watching = psutil.Process(one.facts["watcher"])
    watching.kill()
    one.kill9()
    time.sleep(0.2)
    assert [entry for entry in one.facts["processes"] if watcher.alive(entry)] == one.facts["processes"]
    two = daemon("sleep")
    assert two.facts["ended"] == one.facts["processes"]
    assert not [entry for entry in one.facts["processes"] if watcher.alive(entry)]
    assert not Path(one.facts["folder"]).exists()
    assert watcher.birth(one.facts["foreign"]) is not None
    two.stop()


def test_home_of_a_running_daemon_is_refused_and_its_record_kept(daemon: Callable[..., Daemon]) -> None:
    one = daemon("sleep")
    record = ProcessRecord(one.run)
    with pytest.raises(HomeInUse, match=str(one.facts["pid"])):
        record.recover()
    assert record.close() == []
    assert (one.run / "processes.json").exists()
    assert len([entry for entry in one.facts["processes"] if watcher.alive(entry)]) == 2
    one.stop()


def test_reused_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        entry = {**entry_of(stranger.pid), "birth": "00000000/1"}
        assert not watcher.alive(entry)
        assert watcher.end([entry]) == []
        (tmp_path / "processes.json").write_text(
            json.dumps({"version": 1, "daemon": {**entry, "pid": 2**22}, "processes": [entry], "folders": []})
        )
        assert ProcessRecord(tmp_path).recover() == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_ended_child_that_nobody_waited_for_counts_as_gone() -> None:
    child = subprocess.Popen(["sleep", "60"])
    entry = entry_of(child.pid)
    assert watcher.end([entry], term_seconds=2) == []
    assert child.wait() == -15


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}'])
def test_unreadable_record_does_not_keep_a_daemon_from_starting(tmp_path: Path, content: str) -> None:
    (tmp_path / "processes.json").write_text(content)
    assert ProcessRecord(tmp_path).recover() == []
    assert not list(tmp_path.iterdir())


def test_record_is_private_and_whole(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        record = ProcessRecord(tmp_path / "run")
        record.refresh([child.pid])
        path = tmp_path / "run" / "processes.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        data = json.loads(path.read_text())
        assert data["daemon"]["pid"] == os.getpid()
        assert data["processes"] == [entry_of(child.pid) | {"role": "sleep"}]
        assert data["processes"][0]["created"] == pytest.approx(psutil.Process(child.pid).create_time(), abs=0.01)
        assert [entry.name for entry in path.parent.iterdir()] == ["processes.json"]
    finally:
        record.close()
        assert child.wait(5) < 0


def test_only_our_folders_are_removed(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (other / "file").write_text("x")
    link = tmp_path / f"{watcher.FOLDER_PREFIX}link"
    link.symlink_to(other)
    assert not watcher.remove_folder(str(other))
    assert not watcher.remove_folder(str(link))
    ours = Path(tempfile.mkdtemp(prefix=watcher.FOLDER_PREFIX, dir=tmp_path))
    (ours / "inside").symlink_to(other)
    (ours / "deep" / "er").mkdir(parents=True)
    assert watcher.remove_folder(str(ours))
    assert not ours.exists()
    assert (other / "file").read_text() == "x"

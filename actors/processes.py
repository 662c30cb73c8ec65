"""The processes a daemon started, on record: who they are, and how exactly those, and no other, are ended.

`home/run/processes.json` (0600, replaced atomically) holds

    {"version": 1,
     "daemon":    {"pid", "birth", "created", "session", "role"},
     "processes": [{"pid", "birth", "created", "session", "role"}, ...],
     "watcher":   {...} or null,
     "folders":   ["/tmp/recalld-..."]}

`birth` identifies a process beyond its pid (boot and clock ticks), `created` is its start in seconds since the epoch,
`session` its session id. See `watcher.py` for what happens with the record when the daemon dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

from recalld.actors import watcher
from recalld.storage.errors import HomeInUse

VERSION = 1
RECORD_NAME = "processes.json"

Entry = dict[str, Any]
RoleOf = Callable[["psutil.Process"], str]


def describe(pid: int, role: str) -> Entry | None:
    """The entry of one running process, or None when it is gone."""
    born = watcher.birth(pid)
    if born is None:
        return None
    try:
        created = psutil.Process(pid).create_time()
        session = os.getsid(pid)
    except (psutil.Error, OSError):
        return None
    return {"pid": pid, "birth": born, "created": round(created, 2), "session": session, "role": role}


def role_of(process: psutil.Process) -> str:
    """What a process of the tree is for, in a word or two, from how it calls itself."""
    try:
        command = process.cmdline()
        name = process.name()
    except psutil.Error:
        return "unknown"
    title = command[0] if command else name
    if title.startswith("ray::"):
        return title[5:].split()[0].split(".")[0].removesuffix("()") or "ray worker"
    if any(part.endswith("default_worker.py") for part in command[1:4]):
        return "ray worker"
    return Path(title).name if name.startswith("python") else name


def tree(root: int) -> list[psutil.Process]:
    """A process and every process below it. Takes some milliseconds: call it off the event loop."""
    try:
        process = psutil.Process(root)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


class ProcessRecord:
    """The record of one running daemon and its watcher. All methods block briefly and belong in a thread."""

    def __init__(self, run_folder: Path) -> None:
        self.path = run_folder / RECORD_NAME
        self._daemon = describe(os.getpid(), "daemon")
        self._processes: list[Entry] = []
        self._folders: list[str] = []
        self._watcher: subprocess.Popen[bytes] | None = None
        # Until we wrote the file it may be another daemon's, and is not ours to remove.
        self._ours = False

    @property
    def processes(self) -> list[Entry]:
        """What was last recorded and still runs."""
        return [entry for entry in self._processes if watcher.alive(entry)]

    @property
    def watcher_pid(self) -> int | None:
        return self._watcher.pid if self._watcher is not None else None

    def recover(self) -> list[Entry]:
        """End what an earlier daemon of this home left behind; returns what was found running.

        Raises `HomeInUse` when that daemon still runs, or a process of it would not go.
        """
        data = watcher.load(str(self.path))
        if data is None:
            self.path.unlink(missing_ok=True)
            return []
        owner = data["daemon"]
        if owner != self._daemon and watcher.alive(owner):
            raise HomeInUse(f"A daemon with process id {owner['pid']} uses this home; stop it with `recalld stop`.")
        found = [entry for entry in data.get("processes", []) if watcher.alive(entry)]
        left = watcher.clean_up(str(self.path), data)
        if left:
            pids = ", ".join(str(entry["pid"]) for entry in left)
            raise HomeInUse(
                f"Processes of an earlier daemon do not end (process ids {pids}); end them and start again."
            )
        return found

    def add_folder(self, folder: Path) -> None:
        """Record a folder to remove when the daemon dies, before anything is put in it."""
        self._folders.append(str(folder))
        self.write()

    def start_watcher(self) -> int:
        """Start the watcher in a session of its own, with nothing of our environment; returns its pid."""
        assert self._daemon is not None
        self.write()
        arguments = [str(self.path), str(self._daemon["pid"]), str(self._daemon["birth"])]
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(watcher.__file__)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
        )
        self.write()
        return self._watcher.pid

    def refresh(self, roots: Iterable[int], role: RoleOf = role_of) -> list[Entry]:
        """Record the trees below the processes we started; the file is written only when something changed."""
        entries = [describe(process.pid, role(process)) for root in roots for process in tree(root)]
        now = [entry for entry in entries if entry is not None]
        # What left the tree but still runs (its parent died first) stays ours to end.
        pids = {entry["pid"] for entry in now}
        now += [entry for entry in self._processes if entry["pid"] not in pids and watcher.alive(entry)]
        if now != self._processes:
            self._processes = now
            self.write()
        return now

    def write(self) -> None:
        """Replace the file in one step, so that a reader never sees half of it."""
        watching = None if self._watcher is None else describe(self._watcher.pid, "watcher")
        data = {
            "version": VERSION,
            "daemon": self._daemon,
            "processes": self._processes,
            "watcher": watching,
            "folders": self._folders,
        }
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.path.with_name(f".{RECORD_NAME}.{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
        new.replace(self.path)
        self._ours = True

    def close(self) -> list[Entry]:
        """End what is left of the recorded tree, the folders and the watcher. Returns what would not go."""
        if not self._ours:
            return []
        left = watcher.end(self._processes, term_seconds=0.5)
        for folder in self._folders:
            watcher.remove_folder(folder)
        self._processes = left
        self._folders = []
        self._dismiss_watcher()
        if left:
            self.write()
        else:
            self.path.unlink(missing_ok=True)
            self._ours = False
        return left

    def _dismiss_watcher(self) -> None:
        watching, self._watcher = self._watcher, None
        if watching is None:
            return
        assert watching.stdin is not None
        with contextlib.suppress(OSError):
            watching.stdin.write(watcher.GOODBYE)
            watching.stdin.close()
        try:
            watching.wait(1.0)
        except subprocess.TimeoutExpired:
            watching.kill()
            watching.wait(1.0)

"""A process of its own that outlives the daemon by seconds: after a `kill -9` it ends what the daemon had started.

Run as a script by the interpreter alone (`python -I -S watcher.py RECORD PID BIRTH`): standard library only, no import
of recalld, about 6 MB. It sleeps on the daemon's pidfd and on a pipe from the daemon, so it costs no CPU. When the
daemon dies it reads RECORD (`run/processes.json`), and if that is still the dead daemon's, ends exactly the processes
in it, by pid *and* birth, removes the folders in it, and the record. A clean stop says so through the pipe first.

Nothing is ever ended by name. A pid that was given to another process since has another birth and is left alone.
The functions here are also what the daemon itself uses at stop and at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from typing import Any

GOODBYE = b"q"
FOLDER_PREFIX = "recalld-"
_TERM_SECONDS = 2.0
_KILL_SECONDS = 3.0


def birth(pid: int) -> str | None:
    """What tells this process from a later one of the same pid; None when it is gone or a zombie.

    On Linux the boot's id and the start in clock ticks since boot: unlike a wall-clock time it never shifts.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The name in parentheses may itself hold spaces and parentheses.
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _birth_by_ps(pid)  # noqa: PTH112 - pathlib costs memory here
    except OSError:
        return None
    return None if fields[0] in "ZX" else f"{_boot()}/{fields[19]}"


def _boot() -> str:
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read(8)
    return "?"


def _birth_by_ps(pid: int) -> str | None:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


def alive(entry: dict[str, Any]) -> bool:
    """Whether the recorded process, and not a successor of its pid, still runs."""
    born = birth(int(entry["pid"]))
    return born is not None and born == entry["birth"]


def end(entries: list[dict[str, Any]], term_seconds: float = _TERM_SECONDS) -> list[dict[str, Any]]:
    """End the recorded processes: SIGTERM, then SIGKILL for what is left. Returns those that would not go."""
    left = [entry for entry in entries if alive(entry)]
    for number, seconds in ((signal.SIGTERM, term_seconds), (signal.SIGKILL, _KILL_SECONDS)):
        for entry in left:
            _send(entry, number)
        until = time.monotonic() + seconds
        while left and time.monotonic() < until:
            time.sleep(0.02)
            left = [entry for entry in left if alive(entry)]
    return left


def _send(entry: dict[str, Any], number: int) -> None:
    """Signal one recorded process. Through a pidfd where there is one: the pid cannot change hands in between."""
    pid = int(entry["pid"])
    with contextlib.suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            if alive(entry):
                os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
        try:
            if alive(entry):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def remove_folder(path: str) -> bool:
    """Remove one of our session folders. Refuses anything that is not a folder of ours in a temporary directory."""
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    named = os.path.basename(path).startswith(FOLDER_PREFIX)  # noqa: PTH119 - pathlib costs memory here
    if not named or not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        return False
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files + folders:
            whole = os.path.join(folder, name)  # noqa: PTH118 - pathlib costs memory here
            with contextlib.suppress(OSError):
                if os.path.isdir(whole) and not os.path.islink(whole):  # noqa: PTH112, PTH114
                    os.rmdir(whole)  # noqa: PTH106
                else:
                    os.unlink(whole)  # noqa: PTH108
    with contextlib.suppress(OSError):
        os.rmdir(path)  # noqa: PTH106
        return True
    return False


def load(record: str) -> dict[str, Any] | None:
    """The record, or None when there is none or it cannot be read."""
    try:
        with open(record, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and "daemon" in data else None


def clean_up(record: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    """End what a dead daemon left, remove its folders and its record. Returns processes that would not go."""
    left = end(list(data.get("processes", [])))
    for folder in data.get("folders", []):
        remove_folder(str(folder))
    now = load(record)
    # A daemon started meanwhile owns the record now.
    if not left and now is not None and now["daemon"] == data["daemon"]:
        with contextlib.suppress(OSError):
            os.unlink(record)  # noqa: PTH108
    return left


def wait_for_end(pid: int, born: str, pipe: int) -> bool:
    """Sleep until the daemon is gone (True) or says goodbye (False)."""
    handle = -1
    with contextlib.suppress(OSError, AttributeError):
        handle = os.pidfd_open(pid)
    daemon = {"pid": pid, "birth": born}
    watched = [descriptor for descriptor in (pipe, handle) if descriptor >= 0]
    while alive(daemon):
        # Without pidfds the daemon is looked at twice a second; with them the time-out is only a safety net.
        readable = select.select(watched, [], [], 30.0 if handle >= 0 else 0.5)[0]
        if pipe in readable:
            said = os.read(pipe, 16)
            if GOODBYE in said:
                return False
            if not said:
                # The daemon closed the pipe without a word: it is dying, or has forked oddly. Watch it alone.
                watched.remove(pipe)
                if not watched:
                    time.sleep(0.5)
    return True


def main(arguments: list[str]) -> int:
    record, pid, born = arguments[0], int(arguments[1]), arguments[2]
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not wait_for_end(pid, born, 0):
        return 0
    data = load(record)
    if data is None or data["daemon"].get("pid") != pid or data["daemon"].get("birth") != born:
        return 0
    return 1 if clean_up(record, data) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

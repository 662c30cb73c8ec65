"""Who owns a home: the running daemon's own record in `run/daemon.json`, believed only while that process lives.

The record holds `pid`, `start_time` (seconds since the epoch, of the process), `host` and `port`. A pid alone proves
nothing, since the system gives it to another process later; pid and start time together do.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

RECORD = Path("run") / "daemon.json"
_CLOCK_STEP = 2.0  # seconds by which two readings of one process's start may differ


@dataclass(frozen=True, slots=True)
class Owner:
    """A daemon that runs on a home."""

    pid: int
    start_time: float
    host: str
    port: int
    base_path: str = ""

    @property
    def url(self) -> str:
        """Where to reach it from this machine."""
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return f"http://{host}:{self.port}{self.base_path}"


def find_owner(home: Path) -> Owner | None:
    """The daemon that runs on `home`; None when there is none, or its record outlived it."""
    owner = recorded_owner(home)
    return owner if owner is not None and is_alive(owner.pid, owner.start_time) else None


def recorded_owner(home: Path) -> Owner | None:
    """What `run/daemon.json` says, dead or alive; None when it is missing, unreadable or not yet complete."""
    try:
        record: Any = json.loads((home.expanduser() / RECORD).read_text(encoding="utf-8"))
        return Owner(
            pid=int(record["pid"]),
            start_time=float(record["start_time"]),
            host=str(record["host"]),
            port=int(record["port"]),
            base_path=str(record.get("base_path") or "").rstrip("/"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def forget_dead(home: Path) -> None:
    """Remove the record of a daemon that died. Only who has the home may, or a starting daemon's would be lost."""
    from recalld.storage.errors import RecalldError
    from recalld.storage.home import Home

    if recorded_owner(home) is None:
        return
    try:
        held = Home(home)
        held.acquire({"pid": os.getpid(), "start_time": psutil.Process().create_time()})
    except (RecalldError, OSError):
        return
    try:
        (held.run / RECORD.name).unlink(missing_ok=True)
    finally:
        held.release()


def is_alive(pid: int, start_time: float) -> bool:
    """Whether the process of that pid is still the one that started then."""
    try:
        process = psutil.Process(pid)
        same = abs(float(process.create_time()) - start_time) < _CLOCK_STEP
        return same and str(process.status()) != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

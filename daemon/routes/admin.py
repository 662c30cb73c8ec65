"""What the command line asks of a running daemon: what it runs with, compaction, and a backup into a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import Field

from recalld.daemon.exchange import Call
from recalld.daemon.routing import Route
from recalld.daemon.wire.base import RequestModel
from recalld.storage.errors import BadRequest, Conflict


class Operated(Protocol):
    """The part of the service that only its operator uses."""

    async def status(self) -> dict[str, Any]: ...
    async def compact(self) -> dict[str, Any]: ...
    async def backup(self, path: Path) -> dict[str, Any]: ...


class BackupRequest(RequestModel):
    """Where to write: an absolute path on the daemon's machine, of a file that does not exist."""

    path: str = Field(min_length=1, max_length=4096)


def _operated(call: Call) -> Operated:
    return cast(Operated, call.service)


async def status(call: Call) -> dict[str, Any]:
    return await _operated(call).status()


async def compact(call: Call) -> dict[str, Any]:
    return await _operated(call).compact()


async def backup(call: Call) -> dict[str, Any]:
    path = Path(call.body_as(BackupRequest).path)
    if not path.is_absolute():
        raise BadRequest("path must be absolute: the daemon's working folder is not yours.")
    if await asyncio.to_thread(path.exists):
        raise Conflict("That file exists already; choose another name.")
    return await _operated(call).backup(path)


ROUTES = (
    Route("GET", "/v1/status", "get_status", status, "What the daemon runs with", tag="operation"),
    Route("POST", "/v1/admin/compact", "compact_home", compact, "Rewrite the store without free pages", role="admin",
          tag="operation"),
    Route("POST", "/v1/admin/backup", "backup_home", backup, "Write a consistent copy of the home into one file",
          body=BackupRequest, role="admin", tag="operation"),
)  # fmt: skip

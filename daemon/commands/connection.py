"""How a command reaches a home: over HTTP when a daemon owns it, else by opening it in this process.

Both ways go through the same routes and the same client, so a command has one code path and one output: an embedded
home is served on a Unix socket in a private folder for as long as the command runs, and nothing listens on the network.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recalld.client import AsyncClient
from recalld.daemon.commands.common import NOT_FOUND, CommandError, checked_url
from recalld.daemon.owner import Owner, find_owner

if TYPE_CHECKING:
    from recalld.daemon.service import MemoryService
    from recalld.daemon.settings import Settings

STATUS = "/v1/status"
COMPACT = "/v1/admin/compact"
BACKUP = "/v1/admin/backup"
STARTING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and what it talks to; `url` is None when the home was opened in this process.

    `socket` is the Unix socket it is served on then. `configured` is what a daemon would run with where this process
    does not.
    """

    client: AsyncClient
    url: str | None
    configured: Mapping[str, Any] = field(default_factory=dict)
    socket: str | None = None

    async def status(self) -> dict[str, Any]:
        answer = await self.client.request("GET", STATUS)
        return {**answer, **self.configured, "running": self.url is not None, "url": self.url}

    async def compact(self) -> dict[str, Any]:
        return await self.client.request("POST", COMPACT, body={})

    async def backup(self, path: Path) -> dict[str, Any]:
        return await self.client.request("POST", BACKUP, body={"path": str(path)})


@asynccontextmanager
async def connect(
    settings: Settings, *, url: str | None = None, create: bool = False, work: bool = False, seconds: float = 300.0
) -> AsyncIterator[Connection]:
    """A connection for the length of a command; each call may take `seconds`.

    `create` makes a missing home; without it a missing home is an error, so that a mistyped path makes no folder.
    `work` works off stored operations too, where the home is opened in this process; who asks for it waits for them.
    A daemon that is only starting is waited for. Raises `HomeInUse` when another process has the home and does not
    serve it, `Unreachable` when `url` does not answer.
    """
    url = url or os.environ.get("RECALLD_URL") or None
    if url is not None:
        checked_url(url)
    service: MemoryService | None = None
    if url is None:
        owner = find_owner(settings.home_path)
        if owner is None:
            if not create:
                require_home(settings)
            opened = await _open_or_find(replace(settings, runtime="inline"), work)
            owner, service = (opened, None) if isinstance(opened, Owner) else (None, opened)
        url = owner.url if owner is not None else None
    if service is not None:
        async with _served(service, settings, seconds) as (client, socket):
            yield Connection(client, None, {"runtime": settings.runtime, "shards": settings.shard_count}, socket)
        return
    assert url is not None
    async with AsyncClient(url, api_key=settings.api_key, timeout=seconds) as client:
        yield Connection(client, url.rstrip("/"))


def require_home(settings: Settings) -> None:
    """Raise when there is no home where the settings say."""
    if not (settings.home_path / "home.json").exists():
        raise CommandError(
            f"There is no recalld home at {settings.home_path}; make one with recalld init, or name it with --home.",
            NOT_FOUND,
        )


async def _open_or_find(settings: Settings, work: bool) -> MemoryService | Owner:
    """The home opened in this process; where another process has it, the daemon that it turns out to be."""
    from recalld.daemon.lifecycle import open_service
    from recalld.storage.errors import HomeInUse

    end = time.monotonic() + STARTING_SECONDS
    while True:
        try:
            return await open_service(settings, work=work)
        except HomeInUse:
            # Another command that is about to end, or a daemon that has taken the home but does not listen yet.
            owner = find_owner(settings.home_path)
            if owner is not None:
                return owner
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.1)


@asynccontextmanager
async def _served(service: MemoryService, settings: Settings, seconds: float) -> AsyncIterator[tuple[AsyncClient, str]]:
    """A client of the service, through the real routes on a Unix socket that nobody else can open; and that socket."""
    from aiohttp import web

    from recalld.daemon.app import build_app

    try:
        with tempfile.TemporaryDirectory(prefix="recalld-") as folder:
            socket = str(Path(folder) / "s")
            runner = web.AppRunner(build_app(service, settings), access_log=None)
            await runner.setup()
            try:
                await web.UnixSite(runner, socket).start()
                url = "http://localhost" + settings.base_path.rstrip("/")
                async with AsyncClient(url, api_key=settings.api_key, timeout=seconds, socket=socket) as client:
                    yield client, socket
            finally:
                await runner.cleanup()
    finally:
        await service.close()

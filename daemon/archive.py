"""Backup and restore of a whole home as one tar file: `home.json` and a compacted copy of every partition."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.messages import Maintain
from recalld.storage.environment import sync
from recalld.storage.errors import BadRequest, Conflict
from recalld.storage.home import Home

PARTITIONS = "partitions"
MEMBER = re.compile(r"home\.json|partitions/\d{4}/data\.mdb|keys/redaction|files/[0-9a-f]{16}/[0-9a-f]{32}")


async def backup(home: Home, shards: Shards, path: Path) -> dict[str, Any]:
    """Write `path`, which must not exist; it appears when it is complete. Each partition is consistent in itself."""
    if await asyncio.to_thread(path.exists):
        raise Conflict("That file exists already; choose another name.")
    if not await asyncio.to_thread(path.parent.is_dir):
        raise Conflict(f"There is no folder {path.parent}; make it first.")
    try:
        scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".backup-", dir=path.parent))
    except OSError as error:
        raise Conflict(f"Nothing can be written into {path.parent} ({error.strerror}).") from None
    try:
        await shards.call_all(Maintain("backup", {"folder": str(scratch / PARTITIONS)}), 3600.0)
        await asyncio.to_thread(_pack, home.path / "home.json", scratch, path)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, True)
    return {"path": str(path), "bytes": (await asyncio.to_thread(path.stat)).st_size}


def _pack(info: Path, scratch: Path, path: Path) -> None:
    partial = scratch / "backup.tar"
    with tarfile.open(partial, "w") as tar:
        tar.add(info, "home.json")
        for data in sorted((scratch / PARTITIONS).glob("*/data.mdb")):
            tar.add(data, f"{PARTITIONS}/{data.parent.name}/data.mdb")
        # Uploads that are kept, and the key of redacted document ids. What no document of the copy names, the next
        # start removes.
        for kept in (info.parent / "keys" / "redaction", *sorted((info.parent / "files").glob("*/*"))):
            with contextlib.suppress(FileNotFoundError):
                tar.add(kept, str(kept.relative_to(info.parent)))
    partial.chmod(0o600)
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def restore(home: Path, path: Path) -> dict[str, Any]:
    """Make a home at `home`, which must not hold one, from a backup file."""
    home = home.expanduser().absolute()
    if Home.exists(home) or (home.is_dir() and any(home.iterdir())):
        raise Conflict(f"{home} is not empty; restore into a new folder.")
    if not path.is_file():
        raise BadRequest(f"There is no backup at {path}.")
    home.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".restore-", dir=home.parent))
    try:
        with tarfile.open(path) as tar:
            _unpack(tar, scratch, path)
        for folder in (scratch, *scratch.rglob("*")):
            folder.chmod(0o700 if folder.is_dir() else 0o600)
            sync(folder)
        if home.is_dir():
            home.rmdir()
        scratch.rename(home)
        sync(home.parent)
    except tarfile.TarError as error:
        raise BadRequest(f"{path} is not a recalld backup, or it is damaged.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = Home(home)
    return {"home": str(home), "partitions": found.info.partitions}


def _unpack(tar: tarfile.TarFile, target: Path, path: Path) -> None:
    """Write the members a backup has, and nothing else: a name in an archive is not to be trusted."""
    for member in tar:
        content = tar.extractfile(member) if MEMBER.fullmatch(member.name) and member.isfile() else None
        if content is None:
            raise BadRequest(f"{path} is not a recalld backup: it holds {member.name!r}.")
        file = target / member.name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            shutil.copyfileobj(content, out)
    if not (target / "home.json").is_file():
        raise BadRequest(f"{path} is not a recalld backup.")

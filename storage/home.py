"""The home folder: what is in it, who may use it, and which partition a bank lives in.

    home.json              format version, partition count, embedding model, created
    partitions/0003/       one LMDB environment each
    run/                   lock (names its owner), daemon.json, logs
    keys/

One daemon at a time: the lock is the system's own (`flock`), so it goes with the process that held it and a dead
owner's home is free at once; the file's text only says who that was.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from recalld.storage.budget import MemoryBudget
from recalld.storage.errors import BadRequest, HomeInUse, ModelMismatch, StoreCorrupt
from recalld.storage.partition import Partition, StoreSettings

FORMAT = 1
LOCAL_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class HomeInfo:
    """What `home.json` says. `model` is the plain form of the embedding model's identity, empty until one is used."""

    format: int
    partitions: int
    created_at: int
    model: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, int] = field(default_factory=dict)


class Home:
    """A home folder on disk; `create` makes one where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self._lock: IO[str] | None = None
        self.info = self._read()

    @classmethod
    def exists(cls, path: Path) -> bool:
        return (path.expanduser() / "home.json").is_file()

    @classmethod
    def create(cls, path: Path, now: int, partitions: int = LOCAL_PARTITIONS) -> Home:
        """Make a home, or open the one that is there. Raises `BadRequest` for a folder that holds other things."""
        path = path.expanduser().absolute()
        if not cls.exists(path):
            if not 1 <= partitions <= 1024:
                raise BadRequest("A home has between 1 and 1024 partitions.")
            foreign = [p.name for p in path.iterdir() if p.name != "run"] if path.is_dir() else []
            if foreign:
                raise BadRequest(f"{path} is not empty and not a recalld home; choose another folder.")
            for folder in (path, path / "partitions", path / "run", path / "keys"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
            _write_json(path / "home.json", _plain(HomeInfo(FORMAT, partitions, now)))
            _sync_folder(path.parent)
        return cls(path)

    def _read(self) -> HomeInfo:
        try:
            info = _info(json.loads((self.path / "home.json").read_text()))
        except FileNotFoundError:
            raise BadRequest(f"{self.path} is not a recalld home; `recalld init` makes one.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(f"{self.path}/home.json cannot be read; restore it from a backup.") from error
        if info.format > FORMAT:
            raise StoreCorrupt(f"This home was made by a newer recalld (format {info.format}); update recalld.")
        return info

    # -- who may use it --------------------------------------------------------------------------------------------

    @property
    def run(self) -> Path:
        folder = self.path / "run"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def acquire(self, owner: dict[str, Any]) -> None:
        """Take the home for this process; `owner` (pid and so on) is shown to who is refused. Raises `HomeInUse`."""
        handle = (self.run / "lock").open("a+")
        (self.run / "lock").chmod(0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            said = handle.read().strip()
            handle.close()
            raise HomeInUse(
                f"{self.path} is in use by another process{_pid_in(said)}; wait until it ends, or end a daemon with "
                f"`recalld stop`."
            ) from None
        handle.seek(0)
        handle.truncate()
        handle.write(json.dumps(owner))
        handle.flush()
        self._lock = handle

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- models and partitions -------------------------------------------------------------------------------------

    def bind_model(self, identity: dict[str, Any]) -> None:
        """Record the embedding model of a new home, or check that it is the one the home was made with.

        Raises `ModelMismatch`: vectors of two models never mix.
        """
        if not self.info.model:
            self.info = HomeInfo(
                self.info.format, self.info.partitions, self.info.created_at, identity, self.info.overrides
            )
            _write_json(self.path / "home.json", _plain(self.info))
            return
        space = ("sha256", "tokenizer", "dim", "pooling", "projection", "passage_prefix")
        if any(self.info.model.get(k) != identity.get(k) for k in space):
            raise ModelMismatch(
                f"This home was made with the embedding model {self.info.model.get('name')!r}, not "
                f"{identity.get('name')!r}. Start with the old model, or `recalld init` a new home and retain there."
            )

    def partition_of(self, tenant: str, bank_id: str) -> int:
        """The partition a bank lives in: the override table, else a hash that no release may change."""
        name = f"{tenant}\0{bank_id}"
        if name in self.info.overrides:
            return self.info.overrides[name]
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.info.partitions

    def partition_folder(self, number: int) -> Path:
        return self.path / "partitions" / f"{number:04d}"

    def open_partition(
        self,
        number: int,
        settings: StoreSettings,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        budget: MemoryBudget | None = None,
    ) -> Partition:
        """Open a partition; those that are given one `budget` share the memory of their open banks."""
        return Partition(self.partition_folder(number), settings, clock, new_id, budget)

    def used_partitions(self) -> list[int]:
        """Partitions that have ever been opened."""
        return [n for n in range(self.info.partitions) if (self.partition_folder(n) / "data.mdb").is_file()]


def _info(data: dict[str, Any]) -> HomeInfo:
    """What `home.json` holds. Raises `KeyError`, `TypeError` or `ValueError` for anything but a whole record: a wrong
    number of partitions would look for banks where they are not."""
    info = HomeInfo(
        data["format"], data["partitions"], data["created_at"], data.get("model", {}), data.get("overrides", {})
    )
    numbers = (info.format, info.partitions, info.created_at)
    if not all(type(number) is int for number in numbers) or info.partitions < 1:
        raise ValueError("not a number")
    if not isinstance(info.model, dict) or not isinstance(info.overrides, dict):
        raise TypeError("not an object")
    return info


def _pid_in(said: str) -> str:
    """`, pid 17` out of what a lock says of its owner; nothing where it does not say."""
    try:
        return f", pid {int(json.loads(said)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return ""


def _plain(info: HomeInfo) -> dict[str, Any]:
    return {
        "format": info.format,
        "partitions": info.partitions,
        "created_at": info.created_at,
        "model": info.model,
        "overrides": info.overrides,
    }


def _write_json(path: Path, value: Any) -> None:
    scratch = path.with_suffix(".tmp")
    with scratch.open("w") as handle:
        json.dump(value, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    scratch.chmod(0o600)
    scratch.replace(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Where uploads lie: `home/files/BANK/KEY`, both random or hashed, so that no name of a user stands in a path.

A file is there because an open operation or a document names its key; whatever nothing names is removed, by `tidy`
after each end and each erase, and by `sweep` when a daemon starts. So a crash at any moment leaves no file for long.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from hashlib import blake2b
from pathlib import Path

KEY = re.compile(r"[0-9a-f]{32}")
FOLDER = "files"


class FileStore:
    """The uploads of one home. `new_id` makes UUID strings."""

    def __init__(self, home: Path, new_id: Callable[[], str]) -> None:
        self.root = home / FOLDER
        self._new_id = new_id
        self.in_hand: set[str] = set()
        """Keys that no record names yet, or not any more: of uploads and conversions under way in this process."""

    def folder(self, tenant: str, bank_id: str) -> Path:
        name = blake2b(f"{tenant}\0{bank_id}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return self.root / name

    def path(self, tenant: str, bank_id: str, key: str) -> Path | None:
        """Where the file of a key lies; None for what is no key."""
        return self.folder(tenant, bank_id) / key if KEY.fullmatch(key) else None

    def new(self, tenant: str, bank_id: str) -> tuple[str, Path]:
        """A key of its own, in hand until `let_go`, and the path to write to."""
        key = self._new_id().replace("-", "").lower()
        folder = self.folder(tenant, bank_id)
        for one in (self.root, folder):
            one.mkdir(mode=0o700, exist_ok=True)
        self.in_hand.add(key)
        return key, folder / key

    def let_go(self, key: str) -> None:
        self.in_hand.discard(key)

    def any(self, tenant: str, bank_id: str) -> bool:
        """Whether the bank has files at all."""
        return self.folder(tenant, bank_id).is_dir()

    def tidy(self, tenant: str, bank_id: str, named: Collection[str]) -> int:
        """Remove the bank's files that are neither `named` nor in hand; how many went."""
        return self._tidy(self.folder(tenant, bank_id), named)

    def sweep(self, named: Collection[str]) -> int:
        """The same over all banks."""
        if not self.root.is_dir():
            return 0
        return sum(self._tidy(folder, named) for folder in self.root.iterdir() if folder.is_dir())

    def _tidy(self, folder: Path, named: Collection[str]) -> int:
        gone = 0
        with contextlib.suppress(FileNotFoundError):
            for path in list(folder.iterdir()):
                if path.name not in named and path.name not in self.in_hand:
                    path.unlink(missing_ok=True)
                    gone += 1
            with contextlib.suppress(OSError):  # it still holds files
                folder.rmdir()
        return gone

    def waits(self) -> bool:
        """Whether there is any file in the home."""
        return self.root.is_dir() and any(self.root.iterdir())

"""Uploads: received to disk, queued as operations, converted, retained, and removed when nothing needs them any more.

An upload is an operation of its own (`file_convert_retain`): it converts and retains in one run, and its commit stores
document, units and "completed" together. Whatever goes wrong leaves that operation alone, failed, with the cause.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import structlog

from recalld.actors import messages
from recalld.actors.directory import Shards
from recalld.actors.files.process import Limits, to_text
from recalld.actors.files.store import FileStore
from recalld.actors.reads_files import FILE_KIND
from recalld.actors.retain.canonical import clean_text
from recalld.actors.retain.items import RetainItem
from recalld.actors.trust.redaction import BLOCK, REDACT
from recalld.daemon.dispatch import pack_payload
from recalld.daemon.screening import Screening
from recalld.storage.errors import BankNotFound, FileUnreadable, NotFound, RecalldError

if TYPE_CHECKING:
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)

DOWNLOAD = "/v1/default/files/download"
NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on disk that nothing names yet: `key` is in hand until it is submitted or discarded."""

    key: str
    path: Path
    name: str
    content_type: str
    size: int


class FileDesk:
    """The uploads of one daemon. `read` asks a bank's shard, `clock` is µs since the epoch."""

    def __init__(
        self,
        settings: Settings,
        home: Path,
        shards: Shards,
        read: Callable[..., Awaitable[Any]],
        screening: Screening,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._read = read
        self._screening = screening
        self._clock = clock
        self._new_id = new_id
        self._slots = asyncio.Semaphore(settings.files_convert_at_once)
        self.store = FileStore(home, new_id)

    # -- uploads ---------------------------------------------------------------------------------------------------

    async def discard(self, tenant: str, bank_id: str, uploads: Sequence[Upload]) -> None:
        """Remove uploads that came to nothing."""
        for upload in uploads:
            self.store.let_go(upload.key)
            await asyncio.to_thread(upload.path.unlink, True)

    async def submit(
        self, tenant: str, bank_id: str, uploads: Sequence[Upload], items: Sequence[RetainItem]
    ) -> list[str]:
        """Queue uploads, `items` saying what is known of each (without a text): all of them or none. Their operations.

        Raises `Redacted` for a file name, tag or other field that the bank's policy refuses.
        """
        wanted = []
        for upload, item in zip(uploads, items, strict=True):
            document_id = item.document_id or f"file_{self._new_id()}"
            file = {"key": upload.key, "name": upload.name, "type": upload.content_type, "size": upload.size}
            # A text that nothing can be found in stands for the one to come.
            wanted.append(replace(item, content="-", document_id=document_id, file=file))
        screened = await self._screening.items(tenant, bank_id, wanted)
        operations = []
        for item in screened:
            assert item.file is not None and item.document_id is not None
            kept = self._settings.files_keep and not await self._must_go(tenant, bank_id, item)
            result = {"filename": item.file["name"], "byte_size": item.file["size"], "file": item.file["key"]}
            if kept:
                key = f"{bank_id}/{item.file['key']}"
                result |= {"storage_key": key, "download_url": f"{DOWNLOAD}/{quote(key, safe='/')}"}
            operations.append(
                messages.NewOperation(
                    id=self._new_id(),
                    kind=FILE_KIND,
                    items_count=1,
                    payload=pack_payload([replace(item, content="")]),
                    document_id=item.document_id,
                    result=result,
                    documents=(item.document_id,),
                )
            )
        request = messages.SubmitOperations(tenant, bank_id, self._clock(), tuple(operations))
        await self._shards.call(tenant, bank_id, request)
        for upload in uploads:
            self.store.let_go(upload.key)
        return [one.id for one in operations]

    async def _must_go(self, tenant: str, bank_id: str, item: RetainItem) -> bool:
        """Whether the policy allows no original beside the redacted text."""
        return await self._screening.policy(tenant, bank_id, item.strategy) in (REDACT, BLOCK)

    # -- conversion ------------------------------------------------------------------------------------------------

    async def items(self, claimed: messages.Claimed, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What a claimed upload's operation is to retain: its text, screened like any other.

        Raises `FileUnreadable`, `Redacted`; nothing of the file is stored then.
        """
        tenant, bank_id = claimed.tenant, claimed.bank_id
        item = RetainItem.from_plain({"content": "", **items[0]})
        file = item.file or {}
        path = self.store.path(tenant, bank_id, file.get("key", ""))
        if path is None or not await asyncio.to_thread(path.is_file):
            raise FileUnreadable("The uploaded file is gone; upload it again.")
        limits = Limits(
            self._settings.files_convert_seconds,
            self._settings.files_convert_memory_mb,
            self._settings.files_max_characters,
        )
        async with self._slots:
            text = await to_text(path, file["name"], file["type"], limits)
        text = clean_text(text)
        if not text.strip():
            raise FileUnreadable("No text was found in the file.")
        if not self._settings.files_keep or await self._must_go(tenant, bank_id, item):
            file = {name: value for name, value in file.items() if name != "key"}
        found = await self._screening.items(tenant, bank_id, [replace(item, content=text, file=file)])
        return [one.to_plain() for one in found]

    # -- removal ---------------------------------------------------------------------------------------------------

    async def tidy(self, tenant: str, bank_id: str) -> None:
        """Remove the bank's files that neither a document nor an open operation names; after each end and erase."""
        if not await asyncio.to_thread(self.store.any, tenant, bank_id):
            return
        try:
            named = await self._read("file_keys", tenant, bank_id)
        except BankNotFound:
            named = []
        await asyncio.to_thread(self.store.tidy, tenant, bank_id, frozenset(named))

    async def settled(self, claimed: messages.Claimed) -> None:
        """`tidy` after a run; what it cannot do now the next one does."""
        with contextlib.suppress(RecalldError, OSError):
            await self.tidy(claimed.tenant, claimed.bank_id)

    async def sweep(self) -> None:
        """Remove what a daemon that was killed left behind. Call it before requests are served."""
        if not await asyncio.to_thread(self.store.waits):
            return
        try:
            found = await self._shards.call_all(messages.Read("file_keys", "default"))
            gone = await asyncio.to_thread(self.store.sweep, frozenset(key for keys in found for key in keys))
        except (RecalldError, OSError) as error:
            log.warning("uploads could not be looked through; the next start does", error=type(error).__name__)
            return
        if gone:
            log.info("uploads that nothing names were removed", files=gone)

    # -- download --------------------------------------------------------------------------------------------------

    async def stored(self, tenant: str, key: str) -> tuple[Path, str]:
        """(path, file name) of a kept upload, by the key an operation names. Raises `NotFound`."""
        bank_id, _, name = key.rpartition("/")
        path = self.store.path(tenant, bank_id, name)
        if bank_id and path is not None and await asyncio.to_thread(path.is_file):
            with contextlib.suppress(BankNotFound):
                found = await self._read("stored_file", tenant, bank_id, key=name)
                return path, str(found.get("name") or "file")
        raise NotFound("There is no such file.")


def file_name(given: str | None) -> str:
    """A name as it may be shown: no folder, no control characters, not endless."""
    name = clean_text((given or "").replace("\\", "/")).rpartition("/")[2]
    name = "".join(c for c in name if c.isprintable()).strip()
    if len(name) > NAME_CHARACTERS:
        stem, dot, suffix = name.rpartition(".")
        name = (stem or suffix)[: NAME_CHARACTERS - 20] + (dot + suffix if dot and len(suffix) < 16 else "")
    return name or "file"

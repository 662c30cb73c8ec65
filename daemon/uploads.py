"""A multipart upload from the socket to disk: each file is written as it comes, and never held in memory whole."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import IO, Any

from aiohttp import BodyPartReader, web
from pydantic import ValidationError

from recalld.daemon.exchange import Rejected
from recalld.daemon.files import FileDesk, Upload, file_name
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire import problems
from recalld.daemon.wire.files import FileRetainRequest
from recalld.storage.errors import BadRequest, DiskFull, TooLarge

PIECE = 1 << 18
MOST_REQUEST_BYTES = 1 << 20
FILE_PARTS = ("files", "files[]")


async def receive(
    request: web.Request, settings: Settings, desk: FileDesk, tenant: str, bank_id: str
) -> tuple[list[Upload], FileRetainRequest]:
    """The files on disk and the request that goes with them. Whatever goes wrong, no file of it stays."""
    check_size(request, settings)
    if request.content_type != "multipart/form-data":
        raise Rejected(415, problems.detail("Send files as multipart/form-data: parts 'files' and a part 'request'."))
    uploads: list[Upload] = []
    said: bytes | None = None
    left = settings.files_max_upload_mb << 20
    try:
        try:
            reader = await request.multipart()
            while (part := await reader.next()) is not None:
                if not isinstance(part, BodyPartReader):
                    raise Rejected(422, problems.detail("A part of the upload is itself in parts; send plain files."))
                if part.name in FILE_PARTS:
                    if len(uploads) == settings.files_max_count:
                        raise BadRequest(f"At most {settings.files_max_count} files can be uploaded at once.")
                    upload = await _to_disk(part, desk, tenant, bank_id, uploads, left, settings.files_max_upload_mb)
                    left -= upload.size
                elif part.name == "request":
                    said = await _small(part)
        except (ValueError, web.HTTPRequestEntityTooLarge):
            raise Rejected(422, problems.detail("The multipart body cannot be read; it may be cut off.")) from None
        if not uploads:
            raise Rejected(422, problems.missing("files"))
        total = sum(upload.size for upload in uploads)
        if total > settings.files_max_batch_mb << 20:
            raise BadRequest(f"The files have more than {settings.files_max_batch_mb} MB together; send them in parts.")
        return uploads, _request(said, len(uploads))
    except BaseException:
        await asyncio.shield(desk.discard(tenant, bank_id, uploads))
        raise


def check_size(request: web.Request, settings: Settings) -> None:
    """Raises `TooLarge` for a body that says it is larger than one may be."""
    if (request.content_length or 0) > settings.files_max_upload_mb << 20:
        raise _too_large(settings.files_max_upload_mb)


def _too_large(megabytes: int) -> TooLarge:
    return TooLarge(
        f"An upload may have at most {megabytes} MB; send the files in parts, or raise files.max_upload_mb"
        " (RECALLD_FILES_MAX_UPLOAD_MB)."
    )


async def _to_disk(
    part: BodyPartReader, desk: FileDesk, tenant: str, bank_id: str, uploads: list[Upload], left: int, most: int
) -> Upload:
    key, path = await asyncio.to_thread(desk.store.new, tenant, bank_id)
    name, kind = file_name(part.filename), part.headers.get("Content-Type", "")[:200]
    # In the list at once, so that an upload that breaks off is removed with the others.
    uploads.append(Upload(key, path, name, kind, 0))
    size = 0
    try:
        out = await asyncio.to_thread(_opened, path)
        try:
            pending: list[bytes] = []
            held = 0
            while piece := await part.read_chunk(PIECE):
                size, held = size + len(piece), held + len(piece)
                if size > left:
                    raise _too_large(most)
                pending.append(piece)
                if held >= PIECE:
                    await asyncio.to_thread(out.writelines, pending)
                    pending, held = [], 0
            await asyncio.to_thread(_finish, out, pending)
        finally:
            await asyncio.to_thread(out.close)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("The disk is full; the upload was not kept.") from None
        raise
    uploads[-1] = Upload(key, path, name, kind, size)
    return uploads[-1]


def _opened(path: Path) -> IO[bytes]:
    path.parent.mkdir(mode=0o700, exist_ok=True)  # the last file of the bank may just have gone, and its folder with it
    out = path.open("xb")
    path.chmod(0o600)
    return out


def _finish(out: IO[bytes], pending: list[bytes]) -> None:
    out.writelines(pending)
    out.flush()
    os.fsync(out.fileno())


async def _small(part: BodyPartReader) -> bytes:
    data = b""
    while piece := await part.read_chunk(PIECE):
        data += piece
        if len(data) > MOST_REQUEST_BYTES:
            raise Rejected(422, problems.detail("The part 'request' is too long; it holds JSON about the files."))
    return data


def _request(said: bytes | None, count: int) -> FileRetainRequest:
    """The `request` part. Raises `Rejected` with 422, `BadRequest` for a wrong number of entries."""
    value: Any = {}
    if said is not None and said.strip():
        try:
            value = json.loads(said)
        except (ValueError, RecursionError) as error:
            raise Rejected(422, problems.invalid_json(error)) from None
        if not isinstance(value, dict):
            raise Rejected(422, problems.not_an_object(value))
    try:
        request = FileRetainRequest.model_validate(value)
    except ValidationError as error:
        raise Rejected(422, problems.validation(error, "body")) from None
    if request.files_metadata is not None and len(request.files_metadata) != count:
        given = len(request.files_metadata)
        raise BadRequest(f"files_metadata has {given} entries for {count} files; give one for each, in their order.")
    return request

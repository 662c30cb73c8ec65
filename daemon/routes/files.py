"""Uploads, and the files kept of them."""

from __future__ import annotations

from typing import Any

from recalld.daemon.exchange import Call, Reply
from recalld.daemon.routing import Route
from recalld.daemon.uploads import receive
from recalld.daemon.waiting import with_operations
from recalld.daemon.wire.files import FileRetainRequest, FileRetainResponse
from recalld.daemon.wire.pages import WaitQuery
from recalld.storage.errors import NotFound

BANK = "/v1/default/banks/{bank_id}"


async def retain_files(call: Call) -> dict[str, Any]:
    if not call.settings.enable_file_upload_api:
        raise NotFound("Uploads are switched off (RECALLD_ENABLE_FILE_UPLOAD_API).")
    assert call.upload is not None
    desk = call.service.files
    uploads, request = await receive(call.upload, call.settings, desk, call.tenant, call.bank)
    try:
        items = request.items(len(uploads))
        ids = await desk.submit(call.tenant, call.bank, uploads, items)
    except BaseException:
        await desk.discard(call.tenant, call.bank, uploads)
        raise
    return await with_operations(call, {"operation_ids": ids}, ids, call.query_as(WaitQuery).wait)


async def download(call: Call) -> Reply:
    path, name = await call.service.files.stored(call.tenant, call.path["key"])
    return Reply(b"", content_type="application/octet-stream", file=path, filename=name)


def _upload(path: str, operation: str, summary: str) -> Route:
    return Route(
        "POST",
        path,
        operation,
        retain_files,
        summary,
        query=WaitQuery,
        body=FileRetainRequest,
        response=FileRetainResponse,
        lane="retain",
        role="write",
        tag="files",
        upload=True,
    )


ROUTES = (
    _upload(BANK + "/files/retain", "file_retain", "Upload files; each is converted and retained in the background"),
    _upload(BANK + "/memories/file-retain", "file_retain_alias", "The same as files/retain"),
    Route(
        "GET",
        "/v1/default/files/download/{key:any}",
        "download_file",
        download,
        "A kept upload, by the storage_key its operation names",
        tag="files",
    ),
)

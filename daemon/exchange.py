"""One request from bytes to answer: what a handler is given (`Call`), and how requests are read and answers written."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from aiohttp import web
from pydantic import ValidationError

from recalld.daemon.metrics import Metrics
from recalld.daemon.routing import Route
from recalld.daemon.service_api import MemoryServiceApi
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire import encoding, problems
from recalld.daemon.wire.base import RequestModel, clean_text

M = TypeVar("M", bound=RequestModel)

TENANT = "default"
MAX_QUERY_FIELDS = 1000
MAX_IGNORED_HEADER = 1000


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not plain JSON with status 200."""

    body: bytes | Mapping[str, Any]
    status: int = 200
    content_type: str = "application/json"
    file: Path | None = None
    """A file to send in place of the body, under the name `filename`."""
    filename: str = ""
    stream: AsyncIterator[bytes] | None = None
    """Pieces of a body that is sent while it comes into being, in place of the body."""
    response: web.StreamResponse | None = None
    """A whole response, or one that was sent already, in place of all the rest."""


@dataclass(slots=True)
class Call:
    """What a handler gets: the façade, and the request's parts, decoded and validated."""

    service: MemoryServiceApi
    settings: Settings
    metrics: Metrics
    uptime: float
    routes: tuple[Route, ...] = ()
    tenant: str = TENANT
    path: Mapping[str, str] = field(default_factory=dict)
    query: RequestModel | None = None
    body: RequestModel | None = None
    upload: web.Request | None = None
    """The request of a route that reads its body itself."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def bank(self) -> str:
        return self.path["bank_id"]

    def query_as(self, model: type[M]) -> M:
        """The query as the model its route declares."""
        assert isinstance(self.query, model)
        return self.query

    def body_as(self, model: type[M]) -> M:
        """The body as the model its route declares."""
        assert isinstance(self.body, model)
        return self.body


class Rejected(Exception):
    """A request that cannot be served, with the body that says why."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


def read_query(route: Route, raw: str) -> tuple[RequestModel, list[str]]:
    """The query of a request and the names in it that nobody reads. Raises `Rejected` with 422 or 400."""
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="replace", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:
        raise Rejected(400, problems.detail(f"A query may have at most {MAX_QUERY_FIELDS} fields.")) from None
    known = route.query.model_fields
    values: dict[str, Any] = {}
    ignored: list[str] = []
    for name, text in pairs:
        if name not in known:
            if name not in ignored:
                ignored.append(name)
        elif name == "tags":
            values.setdefault(name, []).append(clean_text(text))
        else:
            values[name] = clean_text(text)
    if isinstance(tags := values.get("tags"), list) and len(tags) == 1:
        values["tags"] = tags[0] if tags[0].lstrip().startswith("[") else [tag for tag in tags if tag]
    return _validated(route.query, values, "query"), ignored


async def read_body(route: Route, request: web.Request) -> tuple[RequestModel | None, list[str]]:
    """The body of a request and the top-level names in it that nobody reads. Raises `Rejected` with 413, 415 or 422."""
    raw = await _bytes(request)
    if raw and not _is_json(request.content_type):
        raise Rejected(415, problems.detail("Send the body as JSON, with the header Content-Type: application/json."))
    if route.body is None:
        return None, []
    if not raw.strip():
        if route.body_optional:
            return route.body(), []
        raise Rejected(422, problems.missing("body"))
    try:
        value = await encoding.decode(raw)
    except (ValueError, RecursionError) as error:
        raise Rejected(422, problems.invalid_json(error)) from None
    if not isinstance(value, dict):
        raise Rejected(422, problems.not_an_object(value))
    model = route.body
    names = {one.alias or name for name, one in model.model_fields.items()}
    ignored = [name for name in value if name not in names]
    return await encoding.in_thread_if(len(raw), _validated, model, value, "body"), ignored


async def _bytes(request: web.Request) -> bytes:
    limit = request.client_max_size
    too_big = (
        f"The body is larger than {limit // 2**20} MB; send it in parts, or raise max_body_mb (RECALLD_MAX_BODY_MB)."
    )
    if (request.content_length or 0) > limit:
        raise Rejected(413, problems.detail(too_big))
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Rejected(413, problems.detail(too_big)) from None


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )


def _validated(model: type[RequestModel], values: dict[str, Any], where: str) -> RequestModel:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise Rejected(422, problems.validation(error, where)) from None


def ignored_header(names: list[str]) -> str:
    """The value of `X-Ignored-Params`: names separated by comma and space, safe in a header, cut when endless."""
    safe = ("".join(c if c.isascii() and c.isprintable() and c != "," else "?" for c in name[:100]) for name in names)
    return ", ".join(safe)[:MAX_IGNORED_HEADER]


async def respond(
    request: web.Request, reply: Reply, headers: Mapping[str, str], gzip_min_size: int
) -> web.StreamResponse:
    """The answer as a response, compressed when that pays and the caller accepts it."""
    if reply.response is not None:
        return reply.response
    if reply.file is not None:
        named = f"attachment; filename*=UTF-8''{quote(reply.filename, safe='')}"
        kind = {"Content-Type": reply.content_type, "Content-Disposition": named}
        return web.FileResponse(reply.file, headers={**headers, **kind})
    if reply.stream is not None:
        return await _stream(request, reply, headers)
    body = reply.body if isinstance(reply.body, bytes) else await encoding.encode(reply.body)
    response = web.Response(status=reply.status, headers=headers)
    response.headers["Content-Type"] = reply.content_type
    if 0 <= gzip_min_size < len(body) and _accepts_gzip(request.headers.get("Accept-Encoding", "")):
        body = await encoding.compress(body)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
    response.body = body
    return response


async def _stream(request: web.Request, reply: Reply, headers: Mapping[str, str]) -> web.StreamResponse:
    """Send the pieces as they come. A client that leaves ends the stream, and what makes it."""
    assert reply.stream is not None
    response = web.StreamResponse(status=reply.status, headers={**headers, "Cache-Control": "no-store"})
    response.headers["Content-Type"] = reply.content_type
    await response.prepare(request)
    async with contextlib.aclosing(reply.stream) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            await response.write(piece)
    await response.write_eof()
    return response


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False

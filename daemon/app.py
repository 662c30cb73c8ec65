"""The HTTP front door: `build_app` joins the route table, the guard, the lanes and the metrics around one service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from recalld.daemon.admission import Lane
from recalld.daemon.exchange import Call, Rejected, Reply, ignored_header, read_body, read_query, respond
from recalld.daemon.guard import Guard
from recalld.daemon.mcp.http import Endpoint, McpEdge
from recalld.daemon.metrics import Metrics
from recalld.daemon.routes import ROUTES
from recalld.daemon.routes.system import API_VERSION
from recalld.daemon.routing import Route, Router, decode_parameters
from recalld.daemon.service_api import MemoryServiceApi
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire import problems
from recalld.storage.errors import ClientClosed, RecalldError, TooManyRequests
from recalld.storage.faults import origin

__all__ = ["build_app"]

log = logging.getLogger("recalld.http")
access = logging.getLogger("recalld.access")

MAX_LINE = 2 * 2**20
"""What the HTTP parser takes in one line; above `max_url_length` we answer ourselves, in shape."""
MAX_HEADER = 64 * 1024
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
UNMATCHED = "unmatched"


def build_app(service: MemoryServiceApi, settings: Settings, metrics: Metrics | None = None) -> web.Application:
    """The application of one daemon. A handler is cancelled when its client hangs up."""
    edge = Edge(service, settings, metrics or Metrics())

    # A middleware, not a route: aiohttp's own router matches the decoded path, and would answer some misses itself.
    @web.middleware
    async def serve(request: web.Request, handler: Any) -> web.StreamResponse:
        return await edge.serve(request)

    app = web.Application(
        middlewares=[serve],
        client_max_size=settings.max_body_mb * 2**20,
        handler_args={
            "max_line_size": MAX_LINE,
            "max_field_size": MAX_HEADER,
            "handler_cancellation": True,
            "access_log": None,  # ours names route templates, and never a query
        },
    )

    async def end_sessions(_: web.Application) -> None:
        await edge.mcp.stop()

    app.on_shutdown.append(end_sessions)
    return app


class Edge:
    """Serves every request: guard, route, read, wait for a turn, call, answer. Holds no state of any request."""

    def __init__(self, service: MemoryServiceApi, settings: Settings, metrics: Metrics) -> None:
        self.service = service
        self.settings = settings
        self.metrics = metrics
        self.router = Router(ROUTES, settings.base_path)
        self.guard = Guard(settings)
        waiting = settings.admission_max_waiting
        self.lanes = {
            "recall": Lane("recall", settings.recall_lane, settings.admission_recall_max_wait_ms / 1000, waiting),
            "reflect": Lane("reflect", settings.reflect_lane, settings.reflect_max_wait_ms / 1000, waiting),
            "retain": Lane("retain", settings.retain_lane, settings.admission_retain_max_wait_ms / 1000, waiting),
        }
        for lane in self.lanes.values():
            metrics.watch(lane)
        self.mcp = McpEdge(service, settings, self.guard, lambda lane: self.lanes[lane].turn(), API_VERSION)
        self.started = time.monotonic()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        started = time.perf_counter()
        request_id = str(uuid.uuid4())
        headers = {"X-Request-Id": request_id, "X-Content-Type-Options": "nosniff"}
        found: list[Route | Endpoint] = []
        status = 500
        try:
            reply = await self._answer(request, headers, found, request_id)
            response = await respond(request, reply, headers, self.settings.gzip_min_size)
            status = response.status
            return response
        except asyncio.CancelledError:
            status = ClientClosed.status
            raise
        finally:
            self._account(request, found, status, time.perf_counter() - started, request_id)

    async def _answer(
        self, request: web.Request, headers: dict[str, str], found: list[Route | Endpoint], request_id: str
    ) -> Reply:
        say = problems.error if self.mcp.takes(request.rel_url.raw_path) else problems.detail
        try:
            return await self._handle(request, headers, found)
        except Rejected as rejected:
            return Reply(rejected.body, rejected.status)
        except RecalldError as error:
            if isinstance(error, TooManyRequests):
                headers["Retry-After"] = str(error.retry_after)
            if error.status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            headers["X-Recalld-Code"] = error.code
            if error.status >= 500 and not error.retryable:
                _log_failure(found, request_id, error)
            return Reply(say(error.message), error.status)
        except web.HTTPException as error:
            return Reply(say(error.reason), error.status)
        except asyncio.CancelledError:
            raise
        except ConnectionError:
            return Reply(say("The client closed the connection."), ClientClosed.status)
        except Exception as error:
            _log_failure(found, request_id, error)
            text = f"Something went wrong inside recalld; the daemon's log has the details under request {request_id}."
            return Reply(say(text), 500)

    async def _handle(self, request: web.Request, headers: dict[str, str], found: list[Route | Endpoint]) -> Reply:
        if self.mcp.takes(request.rel_url.raw_path):
            found.append(Endpoint())
            return Reply(b"", response=await self.mcp.serve(request, headers))
        self.guard.check_host(request.headers)
        origin = self.guard.check_origin(request.headers)
        if origin is not None:
            headers |= {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
            if request.method == "OPTIONS":
                return self._preflight(request, headers)
        if len(request.raw_path) > self.settings.max_url_length:
            text = f"The URL is longer than {self.settings.max_url_length} bytes; put long texts into a body."
            raise Rejected(414, problems.detail(text))

        match = self.router.match(request.method, request.rel_url.raw_path)
        if match.route is None:
            if match.allowed:
                headers["Allow"] = ", ".join(match.allowed)
                raise Rejected(405, problems.detail("Method Not Allowed"))
            raise Rejected(404, problems.detail("Not Found"))
        route = match.route
        found.append(route)
        if not route.public:
            self.guard.check_key(request.headers)

        call = Call(self.service, self.settings, self.metrics, time.monotonic() - self.started, self.router.routes)
        call.headers = request.headers
        call.path = decode_parameters(match.raw)
        call.query, ignored = read_query(route, request.rel_url.raw_query_string)
        call.body, ignored_fields = (None, []) if route.upload else await read_body(route, request)
        call.upload = request if route.upload else None
        if ignored := [*ignored, *ignored_fields]:
            headers["X-Ignored-Params"] = ignored_header(ignored)
        if route.lane is None:
            answer = await route.handler(call)
        else:
            async with self.lanes[route.lane].turn():
                answer = await route.handler(call)
            if isinstance(answer, Reply) and answer.stream is not None:
                # Its work is still to be done, and takes a turn then.
                answer = replace(answer, stream=_in_turn(self.lanes[route.lane], answer.stream))
        return answer if isinstance(answer, Reply) else Reply(answer)

    def _preflight(self, request: web.Request, headers: dict[str, str]) -> Reply:
        headers |= {
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type",
            "Access-Control-Max-Age": "600",
        }
        return Reply(b"", status=204)

    def _account(
        self, request: web.Request, found: list[Route | Endpoint], status: int, seconds: float, request_id: str
    ) -> None:
        template, operation = (found[0].template, found[0].operation) if found else (UNMATCHED, UNMATCHED)
        method = request.method if request.method in METHODS else "other"
        self.metrics.request(template, method, status, operation, seconds)
        if self.settings.access_log:
            line: Mapping[str, Any] = {"status": status, "ms": round(seconds * 1000, 2), "request_id": request_id}
            access.info("%s %s %s", method, template, line)


async def _in_turn(lane: Lane, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a streamed answer, made while it holds a turn of its lane."""
    async with lane.turn(), contextlib.aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            yield piece


def _log_failure(found: list[Route | Endpoint], request_id: str, error: BaseException) -> None:
    operation = found[0].operation if found else UNMATCHED
    log.error("%s failed (request %s): %s", operation, request_id, origin(error))

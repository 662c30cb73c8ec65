"""Reflect: an answer from what a bank knows and believes, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

from recalld.actors.reflect.request import ReflectRequest
from recalld.daemon.exchange import Call, Reply
from recalld.daemon.routing import Route
from recalld.daemon.wire import reflect as wire

BANK = "/v1/default/banks/{bank_id}"
EVENTS = "text/event-stream"
READS_ALONE = ("hindsight-client",)
"""Clients that know reflect as an operation that stores nothing; by the beginning of their User-Agent."""


class Reflecting(Protocol):
    """The part of the service that reflects."""

    async def reflect_options(self, tenant: str, bank_id: str) -> dict[str, Any]: ...
    def new_reflect(self) -> tuple[str, int]: ...
    async def reflect(
        self, tenant: str, bank_id: str, request: ReflectRequest, *, reads_alone: bool = False
    ) -> dict[str, Any]: ...
    def reflect_steps(
        self, tenant: str, bank_id: str, request: ReflectRequest, *, reads_alone: bool = False
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]: ...


async def reflect(call: Call) -> dict[str, Any] | Reply:
    service = cast(Reflecting, call.service)
    options = await service.reflect_options(call.tenant, call.bank)
    body = call.body_as(wire.ReflectRequest).with_defaults(options)
    request = body.to_asked(call.tenant, call.bank, *service.new_reflect())
    reads_alone = call.headers.get("User-Agent", "").lower().startswith(READS_ALONE)
    if EVENTS in call.headers.get("Accept", "").lower():
        steps = service.reflect_steps(call.tenant, call.bank, request, reads_alone=reads_alone)
        return Reply(b"", content_type=EVENTS, stream=events(steps))
    return await service.reflect(call.tenant, call.bank, request, reads_alone=reads_alone)


async def events(steps: AsyncIterator[tuple[str, dict[str, Any]]]) -> AsyncIterator[bytes]:
    """Steps as server-sent events; a comment keeps the connection open while nothing happens."""
    async for event, data in steps:
        if event == "wait":
            yield b": waiting\n\n"
            continue
        yield f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


ROUTES = (
    Route(
        "POST",
        BANK + "/reflect",
        "reflect",
        reflect,
        "An answer from what the bank knows and believes",
        body=wire.ReflectRequest,
        response=wire.ReflectResponse,
        lane="reflect",
        role="write",
        tag="memory",
    ),
)

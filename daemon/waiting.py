"""Waiting for operations that a request queued: `?wait=<seconds>` on every route that only queues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from recalld.daemon.exchange import Call
from recalld.storage.records import CANCELLED, COMPLETED, FAILED

ENDED = (COMPLETED, FAILED, CANCELLED)
FIRST_LOOK, LONGEST_LOOK = 0.01, 0.25


async def ended(call: Call, operation_id: str, seconds: float) -> dict[str, Any] | None:
    """The operation as soon as it has ended, failed ones with their cause; None when it has not within `seconds`."""
    end = time.monotonic() + seconds
    pause = FIRST_LOOK
    while True:
        found = await call.service.get_operation(call.tenant, call.bank, operation_id, False)
        if found["status"] in ENDED:
            return found
        left = end - time.monotonic()
        if left <= 0 or found["status"] == "not_found":
            return None
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_LOOK)


async def with_operation(call: Call, answer: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    """The answer of a route that queued `operation_id`, with the finished `operation` when that ends in time."""
    operation_id = answer.get("operation_id")
    if seconds is None or not operation_id:
        return answer
    found = await ended(call, operation_id, seconds)
    return answer if found is None else {**answer, "operation": found}


async def with_operations(
    call: Call, answer: dict[str, Any], operation_ids: Sequence[str], seconds: float | None
) -> dict[str, Any]:
    """The same for several operations: all of them under `operations` when all end in time."""
    if seconds is None:
        return answer
    found = await asyncio.gather(*(ended(call, one, seconds) for one in operation_ids))
    return answer if any(one is None for one in found) else {**answer, "operations": list(found)}

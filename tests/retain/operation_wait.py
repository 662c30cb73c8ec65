"""Waiting for an operation of a service in this process."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from recalld.daemon.service import MemoryService


async def ended(service: MemoryService, bank: str, operation_id: str, seconds: float = 30.0) -> dict[str, Any]:
    """The operation once it has ended."""
    end = time.monotonic() + seconds
    while True:
        found = await service.get_operation("default", bank, operation_id, False)
        if found["status"] in ("completed", "failed", "cancelled"):
            return found
        assert time.monotonic() < end, found
        await asyncio.sleep(0.01)

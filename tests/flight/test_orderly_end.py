"""An orderly end cuts work short without holding that against it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from flight_service import ended, item, opened, operation, queue, texts

from recalld.actors.runtime import ActorRef
from recalld.daemon.commands.output import screen_rows
from recalld.daemon.lifecycle import open_service
from recalld.daemon.settings_table import Settings


class Slow:
    """A worker that never gets done."""

    name = "worker-0"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ref(self) -> ActorRef:
        return self  # type: ignore[return-value]

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        self.asked.set()
        await asyncio.sleep(3600)


async def test_quick_restarts_use_up_no_attempt(tmp_path: Path) -> None:
    number = ""
    for _ in range(5):
        service = await opened(tmp_path / "home", operations_max_attempts=2)
        slow = Slow()
        service._dispatcher._worker = slow.ref  # type: ignore[method-assign]
        number = number or await queue(service, "b", item("Ana moved to Porto."))
        await asyncio.wait_for(slow.asked.wait(), 10)
        await service.close()
    service = await opened(tmp_path / "home", operations_max_attempts=2)
    try:
        assert (await ended(service, "b", number))["status"] == "completed"
        assert await texts(service, "b") == ["Ana moved to Porto."]
    finally:
        await service.close()


async def test_an_end_gives_back_what_it_had_claimed(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home")
    slow = Slow()
    service._dispatcher._worker = slow.ref  # type: ignore[method-assign]
    number = await queue(service, "b", item("Ana moved to Porto."))
    await asyncio.wait_for(slow.asked.wait(), 10)
    await service.close()
    settings = Settings(home=tmp_path / "home", runtime="inline", retain_extraction_mode="chunks")
    idle = await open_service(settings, work=False)
    try:
        await asyncio.sleep(0.2)
        [child] = (await operation(idle, "b", number))["child_operations"]
        assert child["status"] == "pending", "who only looks does not begin the work"
        status = await idle.status()
        assert status["operations_queued"] == 1
        assert ("waiting", "1 operation; a daemon works them off") in screen_rows(status)
        assert (await operation(idle, "b", child["operation_id"]))["retry_count"] == 0
    finally:
        await idle.close()

"""A full disk met by the whole service: a clear refusal, reads and deletes that go on, and recovery by itself."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from flight_service import TENANT, ended, item, opened, queue, recall, retain, texts

from recalld.storage.errors import DiskFull

WORDS = [f"word{i}" for i in range(3000)]


async def test_a_full_disk_refuses_retains_and_nothing_else(small_disk: Path) -> None:
    chance = random.Random(1)
    home = small_disk / "home"
    settings = {"store_disk_reserve_mb": 5, "operations_backoff_seconds": 0.3, "operations_max_attempts": 50}
    service = await opened(home, **settings)
    try:
        await retain(service, "b", item("The anchor is rusty.", document_id="first"))
        count = 0
        with pytest.raises(DiskFull) as caught:
            for count in range(2000):
                text = " ".join(chance.choices(WORDS, k=250))
                await retain(service, "b", item(text, document_id=f"fill{count}"))
        assert caught.value.status == 507
        assert "disk is full" in caught.value.message
        assert count > 3
        assert "The anchor is rusty." in await recall(service, "b", "anchor rusty")
        assert len(await texts(service, "b")) == count + 1
        with pytest.raises(DiskFull):
            await queue(service, "b", item("Queued."))
        with pytest.raises(DiskFull):
            await retain(service, "new bank", "Something.")
        for number in range(count // 2):
            await service.delete_document(TENANT, "b", f"fill{number}")
        await service.compact()
        await retain(service, "b", "There is room again.")
        await ended(service, "b", await queue(service, "b", item("Queued after all.")))
        assert "There is room again." in await recall(service, "b", "room again")
        assert len(await texts(service, "b")) == count - count // 2 + 3
    finally:
        await service.close()
    service = await opened(home, **settings)
    try:
        assert "There is room again." in await texts(service, "b")
    finally:
        await service.close()

"""A bank's settings are asked for once, and a change is in force with its answer."""

from __future__ import annotations

import asyncio
from typing import Any

from recalld.daemon.overrides import SECONDS, Overrides
from recalld.storage.errors import BankNotFound


class Bank:
    """Stands for the shard: what the bank sets, and how often it was asked."""

    def __init__(self) -> None:
        self.sets: dict[str, Any] | None = {"redaction": "off"}
        self.asked = 0
        self.now = 0.0
        self.gate: asyncio.Event | None = None

    async def read(self, what: str, tenant: str, bank_id: str) -> dict[str, Any]:
        self.asked += 1
        found = self.sets
        if self.gate is not None:
            await self.gate.wait()
        if found is None:
            raise BankNotFound.named(bank_id)
        return {"overrides": found}


async def test_settings_are_asked_for_once_until_they_change_or_grow_old() -> None:
    bank = Bank()
    overrides = Overrides(bank.read, lambda: bank.now)
    assert await overrides.of("t", "b") == await overrides.of("t", "b") == {"redaction": "off"}
    assert bank.asked == 1
    bank.sets = {"redaction": "redact"}
    overrides.changed("t", "b")
    assert await overrides.of("t", "b") == {"redaction": "redact"}
    bank.now += SECONDS
    await overrides.of("t", "b")
    assert bank.asked == 3


async def test_what_was_read_before_a_change_is_not_remembered_after_it() -> None:
    bank = Bank()
    overrides = Overrides(bank.read, lambda: bank.now)
    bank.gate = asyncio.Event()
    early = asyncio.create_task(overrides.of("t", "b"))
    await asyncio.sleep(0)
    bank.sets = {"redaction": "block"}
    overrides.changed("t", "b")
    bank.gate.set()
    assert await early == {"redaction": "off"}
    assert await overrides.of("t", "b") == {"redaction": "block"}


async def test_a_bank_that_does_not_exist_sets_nothing_and_is_not_remembered() -> None:
    bank = Bank()
    bank.sets = None
    overrides = Overrides(bank.read, lambda: bank.now)
    assert await overrides.of("t", "b") == {}
    bank.sets = {"redaction": "redact"}
    assert await overrides.of("t", "b") == {"redaction": "redact"}

"""`valid_at` before a change sees what held then, and not its successor as well; `as_of` what was known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import Bank
from .test_change import JAN, MARCH, MAY, say

FEBRUARY, APRIL, JUNE = 1_770_000_000_000_000, 1_775_100_000_000_000, 1_780_700_000_000_000
HATES, LOVES = "Ana: I hate Chinese food.", "Ana: I love Chinese food."
PORTO, LYON, ROME = "Ana: I live in Porto.", "Ana: I live in Lyon.", "Ana: I live in Rome."


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


async def test_valid_at_before_a_change_sees_the_old_claim_alone(bank: Bank) -> None:
    await say(bank, LOVES, JAN)
    await say(bank, HATES, MARCH)
    assert await bank.texts("Chinese food", valid_at=FEBRUARY) == [LOVES]
    assert await bank.texts("Chinese food", valid_at=APRIL) == [HATES]
    assert await bank.texts("Chinese food") == [HATES]


async def test_valid_at_sees_one_claim_of_a_chain(bank: Bank) -> None:
    for text, when in ((PORTO, JAN), (LYON, MARCH), (ROME, MAY)):
        await say(bank, text, when)
    for at, holds in ((FEBRUARY, PORTO), (APRIL, LYON), (JUNE, ROME)):
        assert await bank.texts("Where does Ana live?", valid_at=at) == [holds]


async def test_as_of_before_the_older_claim_came_in_bounds_nothing(bank: Bank) -> None:
    await say(bank, LYON, MARCH)
    before = bank.service._clock()
    await say(bank, PORTO, JAN)
    assert await bank.texts("Where does Ana live?", valid_at=FEBRUARY) == [PORTO]
    assert await bank.texts("Where does Ana live?", valid_at=FEBRUARY, as_of=before) == [LYON]


async def test_valid_at_after_the_old_claim_is_brought_back_sees_both(bank: Bank) -> None:
    first = await say(bank, PORTO, JAN)
    await say(bank, LYON, MARCH)
    await bank.service.patch_memory("default", bank.id, first["unit_ids"][0], {"state": "valid"})
    assert set(await bank.texts("Where does Ana live?", valid_at=FEBRUARY)) == {PORTO, LYON}

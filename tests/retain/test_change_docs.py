"""The table of docs/change.md is what happens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import Bank

PAGE = Path(__file__).parents[2] / "docs" / "change.md"
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


async def test_each_row_of_the_page(service: MemoryService) -> None:
    assert len(ROWS) >= 9
    for number, (first, later, said) in enumerate(ROWS):
        bank = Bank(service, f"row{number}")
        await bank.retain({"content": first, "timestamp": "2026-01-10T10:00:00Z"})
        await bank.retain({"content": later, "timestamp": "2026-03-10T10:00:00Z"})
        pages = [
            await service.list_memories("default", bank.id, MemoryFilters(limit=10, state=state))
            for state in ("valid", "invalidated")
        ]
        live = {row["text"]: row["proof_count"] for row in pages[0]["items"]}
        ended = {row["text"]: row["invalidation_reason"] for row in pages[1]["items"]}
        expected = {
            "stays": ({first: 1, later: 1}, {}),
            "said again": ({first: 2}, {}),
        }.get(said, ({later: 1}, {first: said.removeprefix("superseded: ")}))
        assert (live, ended) == expected, (first, later)

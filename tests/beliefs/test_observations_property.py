"""Whatever is retained, changed, deleted or interrupted: observations stand on what is current, and nothing waits."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.actors.retain.items import RetainItem
from recalld.daemon.archive import restore
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

TENANT, BANK = "default", "b"
SAID = (
    "Ana moved to {city} in May 2026.",
    "In May 2026 Ana relocated to {city}.",
    "Ben is allergic to {food}.",
    "Ben has an allergy to {food}.",
    "Cleo does not play the {thing}.",
    "Cleo plays the {thing}.",
    "Ana: I live in {city}.",
)
WORDS = {"city": ("Lyon", "Porto"), "food": ("peanuts", "walnuts"), "thing": ("oboe", "harp")}
TAGS: tuple[list[str], ...] = ([], [], ["x"], ["x", "y"])
SCOPES = (None, None, "per_tag", "shared")
STEPS = ("say",) * 6 + (
    "edit",
    "invalidate",
    "revert",
    "delete",
    "delete",
    "tags",
    "consolidate",
    "consolidate",
    "clear",
)


class _World:
    """A service that may die, and what was said to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.lives = 0
        self.documents: set[str] = set()
        self.service: MemoryService

    async def begin(self) -> None:
        home = self.folder / f"home{self.lives}"
        settings: dict[str, Any] = {"runtime": "inline", "extraction_provider": "local", "store_disk_reserve_mb": 0}
        self.service = await open_service(Settings(home=home, consolidation_delay_seconds=600.0, **settings))

    async def crash(self) -> None:
        """Die in the middle of a consolidation: a copy of the store taken then is what a crash leaves."""
        await self.service.consolidate(TENANT, BANK, None)
        await asyncio.sleep(self.chance.random() * 0.03)
        copy = self.folder / f"copy{self.lives}.tar"
        await self.service.backup(copy)
        await self.service.close()
        self.lives += 1
        restore(self.folder / f"home{self.lives}", copy)
        copy.unlink()
        await self.begin()

    async def listed(self, kind: str, state: str | None = None) -> list[dict[str, Any]]:
        filters = MemoryFilters(type=kind, limit=5000, **({"state": state} if state else {}))
        rows: list[dict[str, Any]] = (await self.service.list_memories(TENANT, BANK, filters))["items"]
        return rows

    def text(self) -> str:
        return self.chance.choice(SAID).format(**{name: self.chance.choice(each) for name, each in WORDS.items()})

    async def step(self) -> None:
        chance, service = self.chance, self.service
        what = chance.choice(STEPS)
        document = chance.choice(sorted(self.documents)) if self.documents else ""
        if what == "say" or not document:
            name = f"d{chance.randrange(40)}"
            item = {"content": self.text(), "document_id": name, "tags": chance.choice(TAGS)}
            item["observation_scopes"] = chance.choice(SCOPES)
            await service.retain(TENANT, BANK, [RetainItem.parse(item)], asynchronous=False, operation_id=None)
            self.documents.add(name)
        elif what == "delete":
            await service.delete_document(TENANT, BANK, document)
            self.documents.discard(document)
        elif what == "tags":
            fields = {"tags": chance.choice(TAGS), "observation_scopes": chance.choice(SCOPES) or "combined"}
            await service.patch_document(TENANT, BANK, document, fields)
        elif what == "consolidate":
            await service.consolidate(TENANT, BANK, None)
        elif what == "clear":
            rows = await self.listed("world")
            if rows:
                await service.clear_memory_observations(TENANT, BANK, chance.choice(rows)["id"])
        else:
            rows = await self.listed("world", "invalidated" if what == "revert" else None)
            fields = {"invalidate": {"state": "invalidated"}, "revert": {"state": "valid"}}.get(what)
            if rows:
                await service.patch_memory(TENANT, BANK, chance.choice(rows)["id"], fields or {"text": self.text()})

    async def check(self) -> None:
        found = await self.service.verify(TENANT, BANK)
        assert found["ok"], found["problems"]
        facts = {row["id"]: row for row in await self.listed("world")}
        said = {row["text"] for row in facts.values()}
        for row in await self.listed("observation"):
            assert row["source_memory_ids"] and set(row["source_memory_ids"]) <= set(facts), "a dangling source"
            assert row["proof_count"] == len(set(row["source_memory_ids"]))
            assert row["text"] in said, "a ghost"

    async def settle(self) -> None:
        """Consolidate until nothing is under way, then nothing may wait."""
        for _ in range(3):
            queued = await self.service.consolidate(TENANT, BANK, None)
            for _ in range(1000):
                found = await self.service.get_operation(TENANT, BANK, queued["operation_id"], False)
                if found["status"] not in ("pending", "processing"):
                    break
                await asyncio.sleep(0.01)
            assert found["status"] == "completed", found
        stats = await self.service.bank_stats(TENANT, BANK)
        assert (stats["pending_consolidation"], stats["failed_consolidation"]) == (0, 0)
        built = {one for row in await self.listed("observation") for one in row["source_memory_ids"]}
        assert built == {row["id"] for row in await self.listed("world")}, "a fact is stranded"


async def _run(folder: Path, seed: int, steps: int, crashes: int) -> None:
    world = _World(folder, seed)
    await world.begin()
    try:
        for number in range(steps):
            await world.step()
            if number % (steps // crashes) == steps // crashes - 1:
                await world.crash()
            if number % 25 == 24:
                await world.check()
        await world.settle()
        await world.check()
    finally:
        await world.service.close()


async def test_observations_stand_on_what_is_current_over_500_steps(tmp_path: Path) -> None:
    await _run(tmp_path, seed=1, steps=500, crashes=4)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_observations_stand_on_what_is_current_over_10000_steps(tmp_path: Path) -> None:
    await _run(tmp_path, seed=2, steps=10_000, crashes=40)

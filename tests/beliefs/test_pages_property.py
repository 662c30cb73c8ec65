"""Whatever happens to memories, models and folders, and in whatever order, the tables of a bank agree."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from .conftest import Wire

STEPS = int(os.environ.get("RECALLD_PAGE_STEPS", "60"))
TOWNS = ("Lyon", "Nice", "Metz", "Brest", "Tours", "Dijon")


class Walk:
    """Random steps over one bank; it knows which documents stand, nothing else."""

    def __init__(self, wire: Wire, seed: int) -> None:
        self.wire, self.random = wire, random.Random(seed)
        self.documents: dict[str, str] = {}
        self.count = 0

    async def pick(self, path: str, field: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.wire.ok("GET", path))[field]
        return rows

    async def step(self) -> None:
        await getattr(self, self.random.choice(STEPS_BY_NAME))()

    async def retain(self) -> None:
        town = self.random.choice(TOWNS)
        name = f"d{self.random.randrange(8)}"
        self.documents[name] = town
        await self.wire.retain({"content": f"Ana lived in {town} in year {self.count}.", "document_id": name})
        self.count += 1

    async def erase(self) -> None:
        if self.documents:
            name = self.random.choice(sorted(self.documents))
            del self.documents[name]
            await self.wire("DELETE", f"/documents/{name}")

    async def invalidate(self) -> None:
        rows = await self.pick("/memories/list?limit=50", "items")
        if rows:
            await self.wire("PATCH", f"/memories/{self.random.choice(rows)['id']}", {"state": "invalidated"})

    async def model(self) -> None:
        mode = self.random.choice(["full", "delta"])
        body = {"id": f"m{self.random.randrange(4)}", "name": "n", "source_query": "Where did Ana live?"}
        await self.wire("POST", "/mental-models", {**body, "trigger": {"mode": mode}})

    async def refresh(self) -> None:
        wait = self.random.choice(["0", "5"])
        await self.wire("POST", f"/mental-models/m{self.random.randrange(4)}/refresh", wait=wait)

    async def unmodel(self) -> None:
        act = self.random.choice([("DELETE", ""), ("POST", "/clear")])
        await self.wire(act[0], f"/mental-models/m{self.random.randrange(4)}{act[1]}")

    async def nodes(self) -> list[dict[str, Any]]:
        status, answer = await self.wire("GET", "/knowledge-base/tree")
        found: list[dict[str, Any]] = []
        level = answer["roots"] if status == 200 else []
        while level:
            found += level
            level = [child for one in level for child in one["children"]]
        return found

    async def place(self) -> str | None:
        chosen: str | None = self.random.choice([None, *[one["id"] for one in await self.nodes()]])
        return chosen

    async def folder(self) -> None:
        await self.wire("POST", "/knowledge-base/folders", {"name": "f", "parent_id": await self.place()})

    async def page(self) -> None:
        body = {"name": f"p{self.random.randrange(5)}", "source_query": "Where did Ana live?"}
        fields = {"parent_id": await self.place(), "trigger": {"fact_types": ["world"]}}
        await self.wire("POST", "/knowledge-base/pages", {**body, **fields})

    async def move(self) -> None:
        node = await self.place()
        if node:
            await self.wire("PATCH", f"/knowledge-base/nodes/{node}", {"parent_id": await self.place()})

    async def prune(self) -> None:
        node = await self.place()
        if node:
            await self.wire("DELETE", f"/knowledge-base/nodes/{node}")

    async def check(self) -> None:
        """The tables agree, and no page, source or history quotes a memory of an erased document."""
        found = await self.wire.ok("GET", "/verify")
        assert found["ok"], found["problems"]
        memories = {one["id"] for one in await self.pick("/memories/list?limit=1000", "items")}
        memories |= {one["id"] for one in await self.pick("/memories/list?limit=1000&state=invalidated", "items")}
        for model in await self.pick("/mental-models?detail=full&limit=1000", "items"):
            quoted = [one for facts in sources(model["reflect_response"]) for one in facts]
            history = await self.wire.ok("GET", f"/mental-models/{model['id']}/history")
            for entry in history:
                quoted += [one for facts in sources(entry["previous_reflect_response"]) for one in facts]
            standing = {one["id"] for one in quoted if one["document_id"] in self.documents}
            assert {one["id"] for one in quoted} == standing, (model["id"], quoted, self.documents)
            for line in model["content"].splitlines():
                if line.startswith("- "):
                    assert any(f"[{one[:8]}]" in line for one in {o["id"] for o in quoted}), line


def sources(response: dict[str, Any] | None) -> list[list[dict[str, Any]]]:
    if not response:
        return []
    return [facts for kind, facts in response["based_on"].items() if kind in ("world", "experience", "observation")]


STEPS_BY_NAME = (
    "retain", "retain", "erase", "invalidate", "model", "refresh", "refresh", "unmodel", "folder", "page", "move",
    "prune",
)  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
async def test_tables_agree_and_nothing_erased_is_quoted(wire: Wire, seed: int) -> None:
    walk = Walk(wire, seed)
    await walk.retain()
    for number in range(STEPS):
        await walk.step()
        if number % 10 == 9:
            await walk.check()

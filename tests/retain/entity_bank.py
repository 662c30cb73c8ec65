"""The real service seen through its entities: names, who names whom, and what a graph draws."""

from __future__ import annotations

from typing import Any

from recalld.daemon.service import MemoryService

from .conftest import Bank

ANY: dict[str, Any] = {"tags": (), "tags_match": "any", "tag_groups": None}


class EntityBank(Bank):
    """A bank with words for its entities."""

    async def say(self, text: str, *names: str | tuple[str, str], at: str | None = None, **item: Any) -> list[str]:
        """Retain one text that names entities (a name is a person, else (name, kind)); the ids of its units."""
        entities = [
            {"text": one, "type": "PERSON"} if isinstance(one, str) else {"text": one[0], "type": one[1]}
            for one in names
        ]
        rows = await self.retain({"content": text, "entities": entities, "timestamp": at, **item})
        return [unit for row in rows for unit in row["unit_ids"]]

    async def entities(self) -> dict[str, int]:
        """{name: mentions}."""
        found = await self.service.list_entities("default", self.id, limit=1000, offset=0, **ANY)
        return {item["canonical_name"]: item["mention_count"] for item in found["items"]}

    async def rows(self) -> list[dict[str, Any]]:
        found = await self.service.list_entities("default", self.id, limit=1000, offset=0, **ANY)
        items: list[dict[str, Any]] = found["items"]
        return items

    async def entity(self, name: str) -> str:
        """The id of the entity with a name."""
        return next(row["id"] for row in await self.rows() if row["canonical_name"] == name)

    async def names_of(self, unit_id: str) -> list[str]:
        found: list[str] = (await self.service.get_memory("default", self.id, unit_id))["entities"]
        return found

    async def verified(self) -> list[Any]:
        """What verify finds off."""
        problems: list[Any] = (await self.service.verify("default", self.id))["problems"]
        return problems


def entity_bank(service: MemoryService, bank_id: str = "b") -> EntityBank:
    return EntityBank(service, bank_id)

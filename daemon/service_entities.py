"""The part of the service that knows graphs, entities to merge and split, and a bank's own count of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.actors.entity_messages import ChangeEntities
from recalld.storage.errors import BankNotFound, NotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.actors.filters import MemoryFilters
    from recalld.daemon.screening import Screening
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]
VERIFY_SECONDS = 3600.0


class EntityService:
    """Mixed into the façade, which gives it shards, settings, clock and ids."""

    settings: Settings
    shards: Shards
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    screening: Screening

    # -- graphs ----------------------------------------------------------------------------------------------------

    async def graph(self, tenant: str, bank_id: str, filters: MemoryFilters, chunk_id: str | None) -> Answer:
        hours, sigma = self.settings.graph_hours, self.settings.graph_sigma
        return await self._ask("graph", tenant, bank_id, filters=filters, chunk_id=chunk_id, hours=hours, sigma=sigma)

    async def entity_graph(
        self,
        tenant: str,
        bank_id: str,
        tags: Sequence[str],
        tags_match: str,
        tag_groups: list[dict[str, Any]] | None,
        limit: int,
        min_count: int,
    ) -> Answer:
        return await self._ask(
            "entity_graph",
            tenant,
            bank_id,
            tags=tuple(tags),
            tags_match=tags_match,
            tag_groups=tag_groups,
            limit=limit,
            min_count=min_count,
        )

    async def _ask(self, what: str, tenant: str, bank_id: str, **params: Any) -> Answer:
        answer: Answer = await self.shards.call(tenant, bank_id, messages.Read(what, tenant, bank_id, params))
        return answer

    # -- by hand ---------------------------------------------------------------------------------------------------

    async def entity_names(self, tenant: str, bank_id: str, entity_id: str) -> Answer:
        """The names an entity goes by and what made them its."""
        try:
            return await self._ask("entity_names", tenant, bank_id, entity_id=entity_id)
        except BankNotFound:
            raise NotFound(f"Entity '{entity_id}' not found") from None

    async def entity_changes(self, tenant: str, bank_id: str, limit: int, offset: int) -> Answer:
        return await self._ask("entity_changes", tenant, bank_id, limit=limit, offset=offset)

    async def merge_entities(self, tenant: str, bank_id: str, entity_id: str, into: str) -> Answer:
        return await self._by_hand(tenant, bank_id, "merge", entity_id=entity_id, into=into)

    async def split_entity(
        self, tenant: str, bank_id: str, entity_id: str, alias: str, unit_ids: tuple[str, ...], name: str
    ) -> Answer:
        name = (await self.screening.fields(tenant, bank_id, {"name": name}))["name"]
        return await self._by_hand(
            tenant,
            bank_id,
            "split",
            entity_id=entity_id,
            alias=alias,
            unit_ids=unit_ids,
            name=name,
            new_id=self._new_id(),
        )

    async def undo_entity_change(self, tenant: str, bank_id: str, change_id: str) -> Answer:
        return await self._by_hand(tenant, bank_id, "undo", change_id=change_id)

    async def _by_hand(self, tenant: str, bank_id: str, action: str, change_id: str = "", **fields: Any) -> Answer:
        asked = ChangeEntities(
            tenant, bank_id, self._new_id(), self._clock(), action, change_id or self._new_id(), **fields
        )
        try:
            done = await self.shards.call(tenant, bank_id, asked)
        except BankNotFound:
            named = f"Change '{change_id}'" if change_id else f"Entity '{asked.entity_id}'"
            raise NotFound(f"{named} not found") from None
        entities = [
            await self._ask("get_entity", tenant, bank_id, entity_id=one, tags=(), tags_match="any", tag_groups=None)
            for one in done["entity_ids"]
        ]
        return {"success": True, "change_id": done["change_id"], "what": done["what"], "entities": entities}

    # -- counting --------------------------------------------------------------------------------------------------

    async def verify(self, tenant: str, bank_id: str) -> Answer:
        """Whether a bank's tables agree with each other, and where they do not."""
        asked = messages.Maintain("verify", {"tenant": tenant, "bank_id": bank_id})
        found: Answer = await self.shards.call(tenant, bank_id, asked, VERIFY_SECONDS)
        return {"bank_id": bank_id, **found}

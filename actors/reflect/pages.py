"""A bank's mental models and directives as a reflect reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.messages import Read
from recalld.actors.reflect.bank import Embed
from recalld.actors.reflect.deps import Plain, Search
from recalld.actors.reflect.request import ReflectRequest
from recalld.storage.analysis import query_terms


class BankPages:
    """`Pages` and `Directives` over the shard that owns a bank."""

    def __init__(self, shards: Shards, embed: Embed, tenant: str, bank_id: str) -> None:
        self._shards, self._embed = shards, embed
        self._tenant, self._bank = tenant, bank_id

    async def any(self, scope: ReflectRequest, excluded: Sequence[str]) -> bool:
        found = await self._read(
            "list_mental_models",
            detail="metadata",
            exclude_knowledge_pages=False,
            limit=len(excluded) + 1,
            offset=0,
            **_tags(scope.tags, scope.tags_match, scope.tag_groups),
        )
        return any(one["id"] not in excluded for one in found["items"])

    async def search(self, query: str, search: Search, excluded: Sequence[str], limit: int) -> list[Plain]:
        embedded = await self._embed(query)
        found: list[Plain] = await self._read(
            "find_models",
            terms=query_terms(query),
            vector=embedded["vector"],
            excluded=list(excluded),
            limit=limit,
            **_tags(search.tags, search.tags_match, search.tag_groups),
        )
        return [one for one in found if one["text"]]

    async def read(self, ids: Sequence[str]) -> list[Plain]:
        found: list[Plain] = await self._read("read_models", ids=list(ids))
        return found

    async def in_force(
        self, tags: Sequence[str], tags_match: str, tag_groups: list[dict[str, Any]] | None, everything: bool
    ) -> list[Plain]:
        found: list[Plain] = await self._read(
            "directives_in_force", everything=everything, **_tags(tags, tags_match, tag_groups)
        )
        return found

    async def _read(self, what: str, **params: Any) -> Any:
        return await self._shards.call(self._tenant, self._bank, Read(what, self._tenant, self._bank, params))


def _tags(tags: Sequence[str], match: str, groups: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {"tags": list(tags), "tags_match": match, "tag_groups": groups}

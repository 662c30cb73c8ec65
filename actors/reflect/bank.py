"""The memories of a bank as a reflect reads them: through its shard, in the wire's shape."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

from recalld.actors.directory import Shards
from recalld.actors.filters import MemoryFilters
from recalld.actors.messages import Read
from recalld.actors.recall.dates import detect_window
from recalld.actors.recall.filters import OneThing, group_filter, tag_filter
from recalld.actors.recall.query import RecallAnswer, RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.reflect.deps import Plain, Search
from recalld.storage.analysis import query_terms
from recalld.storage.errors import DateParseError, NotFound
from recalld.storage.records import NETWORK_NAMES

Embed = Callable[[str], Awaitable[Plain]]
"""The embedding of a query as the fields of a recall."""


_EVIDENCE = ("evidence_for", "evidence_against")


_LIMITS = RecallSettings()


def _passes(tags: Sequence[str], scope: Search) -> bool:
    """Whether a document with these tags may be shown in a scope."""
    thing = OneThing(frozenset(tags))
    if scope.tag_groups:
        return bool(group_filter(thing, scope.tag_groups, _LIMITS)[0])
    if scope.tags or scope.tags_match == "exact":
        return bool(tag_filter(thing, scope.tags, scope.tags_match)[0])
    return True


class BankMemory:
    """`Memory` over the shard that owns a bank."""

    def __init__(self, shards: Shards, embed: Embed, tenant: str, bank_id: str) -> None:
        self._shards, self._embed = shards, embed
        self._tenant, self._bank = tenant, bank_id

    async def recall(self, search: Search) -> Plain:
        embedded = await self._embed(search.query)
        window, problem = None, None
        try:
            window = detect_window(search.query, search.now, search.utc_offset)
        except DateParseError as error:
            problem = type(error).__name__
        query = RecallQuery(
            tenant=self._tenant,
            bank_id=self._bank,
            query=search.query,
            terms=query_terms(search.query),
            types=tuple(NETWORK_NAMES.index(name) for name in search.types),
            budget=search.budget,
            max_tokens=search.max_tokens,
            now=search.now,
            window=window,
            window_error=problem,
            tags=search.tags,
            tags_match=search.tags_match,
            tag_groups=search.tag_groups,
            include_entities=search.entity_tokens is not None,
            entity_tokens=search.entity_tokens or 0,
            include_chunks=search.chunk_tokens is not None,
            chunk_tokens=search.chunk_tokens or 0,
            include_source_facts=search.source_tokens is not None,
            source_tokens=-1 if search.source_tokens is None else search.source_tokens,
            trace=search.trace,
            **embedded,
        )
        found: RecallAnswer = await self._shards.call(self._tenant, self._bank, query)
        return {
            "results": json.loads(found.results_json),
            "chunks": found.chunks,
            "entities": found.entities,
            "source_facts": found.source_facts,
            "trace": found.trace,
        }

    async def expand(self, memory_ids: Sequence[str], whole: bool, scope: Search) -> list[Plain]:
        out: list[Plain] = []
        for one in memory_ids:
            try:
                memory = await self._read("get_memory", memory_id=one)
            except NotFound:
                continue
            out.append({"memory": memory, "text": await self._text(memory, whole, scope)})
        return out

    async def _text(self, memory: Plain, whole: bool, scope: Search) -> str:
        document, chunk = memory.get("document_id"), memory.get("chunk_id")
        if document is None:
            return ""
        try:
            if whole or scope.tags or scope.tag_groups:
                found = await self._read("get_document", document_id=document)
                if not _passes(found["tags"], scope):
                    return ""
                if whole:
                    return str(found["original_text"] or "")
            index = int(str(chunk).rpartition("_")[2]) if chunk else 0
            page = await self._read("list_chunks", document_id=document, limit=1, offset=index)
        except (NotFound, ValueError):
            return ""
        return next((str(one["chunk_text"]) for one in page["items"] if one["chunk_id"] == chunk), "")

    async def belief(self, opinion_id: str) -> Plain:
        try:
            found = await self._read("get_opinion", opinion_id=opinion_id)
        except NotFound:
            return {}
        counts = {name: len(found[name]) if isinstance(found[name], list) else found[name] for name in _EVIDENCE}
        return {"holder": found["holder"], **counts}

    async def unconsolidated(self, tags: Sequence[str]) -> int:
        filters = MemoryFilters(
            consolidation_state="pending", tags=tuple(tags), tags_match="all_strict" if tags else "any", limit=0
        )
        return int((await self._read("list_memories", filters=filters))["total"])

    async def _read(self, what: str, **params: object) -> Plain:
        found: Plain = await self._shards.call(
            self._tenant, self._bank, Read(what, self._tenant, self._bank, dict(params))
        )
        return found

"""The official client drives the edge: every answer validates in its models."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import hindsight_client_api as low
import pytest
from hindsight_client import Hindsight
from http_edge import Edge


@asynccontextmanager
async def official(edge: Edge) -> AsyncIterator[Hindsight]:
    client = Hindsight(base_url=edge.url)
    try:
        yield client
    finally:
        await client.aclose()


async def test_main_methods(edge: Edge) -> None:
    async with official(edge) as client:
        assert (await client.aget_version()).api_version == "1.1.0"
        profile = await client.acreate_bank(
            "a/b", name="Notes", mission="Help Ana", disposition={"skepticism": 5, "literalism": 1, "empathy": 2}
        )
        assert (profile.name, profile.mission, profile.disposition.skepticism) == ("Notes", "Help Ana", 5)

        kept = await client.aretain(
            "a/b",
            "Ana likes tea",
            timestamp=datetime(2026, 5, 13, tzinfo=UTC),
            context="chat",
            document_id="notes/1",
            metadata={"source": "x"},
            entities=[{"text": "Ana", "type": "PERSON"}],
            tags=["t1"],
        )
        assert kept.success and kept.items_count == 1 and kept.usage.total_tokens == 0 and kept.operation_id is None
        operation = str(uuid.uuid4())
        for _ in range(2):
            later = await client.aretain_batch(
                "a/b",
                [{"content": "Ben likes tea", "tags": ["t2"]}, {"content": "Ben rides"}],
                document_id="d2",
                retain_async=True,
                operation_id=operation,
            )
            assert (later.operation_id, later.var_async, later.usage) == (operation, True, None)

        found = await client.arecall("a/b", "tea", include_entities=True, include_chunks=True, trace=True)
        assert sorted(one.text for one in found.results) == ["Ana likes tea", "Ben likes tea"]
        first = next(one for one in found.results if one.document_id == "notes/1")
        assert first.mentioned_at == "2026-05-13T00:00:00.000000+00:00"
        assert (first.metadata, first.tags, first.context) == ({"source": "x"}, ["t1"], "chat")
        assert found.entities["Ana"].canonical_name == "Ana" and found.chunks["a/b_notes/1_0"].text == "Ana likes tea"
        assert found.trace["query"]["query_text"] == "tea"

        listed = await client.alist_memories("a/b", search_query="rides")
        assert [one.text for one in listed.items] == ["Ben rides"] and listed.total == 1
        assert (await client.adelete_bank("a/b")).deleted_count == 3


async def test_recall_options_reach_the_service(edge: Edge) -> None:
    await edge.retain("Ana likes tea")
    async with official(edge) as client:
        await client.arecall(
            "b",
            "tea",
            types=["world", "opinion"],
            max_tokens=99,
            budget="high",
            query_timestamp="2025-01-02T03:04:05Z",
            tag_groups=[{"and": [{"tags": ["a"]}, {"not": {"tags": ["b"], "match": "exact"}}]}],
            min_scores={"semantic": 0.2, "final": 0.1},
            temporal_window={"start": "2026-06-10T00:00:00Z", "end": "2026-06-11T00:00:00Z"},
            include_source_facts=True,
            max_source_facts_tokens=77,
        )
        got = edge.service.recalls[-1]
        assert (got.types, got.max_tokens, got.budget) == (("world", "opinion"), 99, "high")
        assert got.query_timestamp == 1_735_787_045_000_000
        assert got.tag_groups == [
            {
                "and": [
                    {"tags": ["a"], "match": "any_strict", "resolve": "exact"},
                    {"not": {"tags": ["b"], "match": "exact", "resolve": "exact"}},
                ]
            }
        ]
        assert got.min_scores == {"semantic": 0.2, "final": 0.1}
        assert got.window == (1_781_049_600_000_000, 1_781_136_000_000_000)
        assert (got.entity_tokens, got.chunk_tokens, got.source_tokens) == (None, None, 77)
        await client.arecall("b", "tea", tags=["x"], tags_match="all_strict", prefer_observations=True)
        got = edge.service.recalls[-1]
        assert (got.tags, got.tags_match, got.prefer_observations) == (("x",), "all_strict", True)


async def test_configuration(edge: Edge) -> None:
    async with official(edge) as client:
        changed = await client.aupdate_bank_config("c d", retain_chunk_size=500, disposition_empathy=5)
        assert changed["overrides"] == {"retain_chunk_size": 500, "disposition_empathy": 5}
        assert (await client.aget_bank_config("c d"))["config"]["retain_chunk_size"] == 500
        assert len(changed["config"]) >= 58
        assert (await client.areset_bank_config("c d"))["overrides"] == {}
        mission = await client.aset_mission("c d", "Be brief")
        assert mission["mission"] == "Be brief" if isinstance(mission, dict) else mission.mission == "Be brief"


async def test_generated_calls(edge: Edge) -> None:
    await edge.retain({"content": "Ana likes tea", "document_id": "x/y", "tags": ["t"]}, bank="a%2Fb")
    async with low.ApiClient(low.Configuration(host=edge.url)) as api:
        banks = await low.BanksApi(api).list_banks()
        assert [(one.bank_id, one.fact_count) for one in banks.banks] == [("a/b", 1)]
        assert (await low.BanksApi(api).get_agent_stats("a/b")).total_nodes == 1
        documents = low.DocumentsApi(api)
        assert (await documents.list_documents("a/b")).items[0].id == "x/y"
        assert (await documents.get_document("a/b", "x/y")).original_text == "Ana likes tea"
        chunks = await documents.list_document_chunks("a/b", "x/y")
        assert (await documents.get_chunk(chunks.items[0].chunk_id)).chunk_text == "Ana likes tea"
        assert (await documents.update_document("a/b", "x/y", low.UpdateDocumentRequest(tags=["n"]))).success
        assert (await low.MemoryApi(api).list_tags("a/b")).items[0].tag == "t"
        assert (await low.EntitiesApi(api).list_entities("a/b")).items[0].canonical_name == "Ana"
        memory = (await low.MemoryApi(api).list_memories("a/b")).items[0]
        assert (await low.MemoryApi(api).get_memory("a/b", memory.id))["text"] == "Ana likes tea"
        assert (await documents.delete_document("a/b", "x/y")).memory_units_deleted == 1

        async with official(edge) as client:
            made = await client.aretain("a/b", "Ben rides", retain_async=True)
        operations = low.OperationsApi(api)
        assert (await operations.list_operations("a/b")).operations[0].id == made.operation_id
        assert (await operations.get_operation_status("a/b", made.operation_id)).status == "completed"
        with pytest.raises(low.ApiException) as conflict:
            await operations.cancel_operation("a/b", made.operation_id)
        assert conflict.value.status == 409
        assert (await operations.delete_operation("a/b", made.operation_id)).success
        assert (await low.MemoryApi(api).clear_bank_memories("a/b")).deleted_count == 1
        with pytest.raises(low.ApiException) as missing:
            await low.BanksApi(api).get_agent_stats("nobody")
        assert missing.value.status == 404

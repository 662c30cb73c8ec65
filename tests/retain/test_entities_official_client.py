"""The official client reads entities and both graphs of a real bank."""

from __future__ import annotations

import hindsight_client_api as low
import pytest
from aiohttp.test_utils import TestServer

from recalld.daemon.app import build_app
from recalld.daemon.service import MemoryService

from .entity_bank import entity_bank


async def test_the_official_client_reads_entities_and_graphs(service: MemoryService) -> None:
    bank = entity_bank(service)
    await bank.say("Ana met Ben in Lyon.", "Ana", "Ben", ("Lyon", "LOCATION"), at="2026-03-02T10:00:00Z", tags=["x"])
    await bank.say("Ana and Ben sail.", "Ana", "Ben", at="2026-03-02T12:00:00Z")
    async with TestServer(build_app(service, service.settings)) as server:
        host = str(server.make_url("")).rstrip("/")
        async with low.ApiClient(low.Configuration(host=host)) as api:
            entities = low.EntitiesApi(api)
            listed = await entities.list_entities("b")
            assert [(one.canonical_name, one.mention_count) for one in listed.items][:2] == [("Ana", 2), ("Ben", 2)]
            one = await entities.get_entity("b", listed.items[0].id)
            assert one.canonical_name == "Ana" and one.observations == []
            drawn = await entities.get_entity_graph("b", min_count=2)
            assert [(edge.data.weight, edge.data.link_type) for edge in drawn.edges] == [(2, "cooccurrence")]
            assert {node.data.label: node.data.mention_count for node in drawn.nodes} == {"Ana": 2, "Ben": 2}
            with pytest.raises(low.ApiException) as retired:
                await entities.regenerate_entity_observations("b", listed.items[0].id)
            assert retired.value.status == 410
            graph = await low.MemoryApi(api).get_graph("b")
            assert (len(graph.nodes), graph.total_units) == (2, 2)
            kinds = {edge.data.link_type: edge.data.weight for edge in graph.edges}
            assert kinds["temporal"] == pytest.approx(0.92, abs=0.01) and "entity" in kinds
            tagged = await low.MemoryApi(api).get_graph("b", tags=["x"])
            assert [row.text for row in tagged.table_rows] == ["Ana met Ben in Lyon."]
            with pytest.raises(low.ApiException) as missing:
                await low.MemoryApi(api).get_graph("nobody")
            assert missing.value.status == 404

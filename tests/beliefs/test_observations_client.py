"""The official client 1.1.0, unmodified, on every route of consolidation and observations."""

from __future__ import annotations

import hindsight_client_api as low
import pytest
from hindsight_client_api.exceptions import NotFoundException
from hindsight_client_api.models.consolidation_request import ConsolidationRequest
from hindsight_client_api.models.consolidation_strategies_preview_request import (
    ConsolidationStrategiesPreviewRequest,
)
from hindsight_client_api.models.consolidation_strategy_spec import ConsolidationStrategySpec
from hindsight_client_api.models.recall_request import RecallRequest

from .conftest import Open
from .observation_bank import Observed
from .test_observations import MOVED, QUIET


async def test_the_official_client_works_on_every_route(open_wire: Open) -> None:
    bank = Observed(await open_wire(**QUIET))
    name = bank.wire.bank
    await bank.say(MOVED[0], tags=["ana"], document_id="one")
    await bank.say(MOVED[1], tags=["ana"], document_id="two")
    await bank.say("Ben plays the oboe.", document_id="three")
    async with low.ApiClient(low.Configuration(host=bank.wire.host)) as api:
        banks, memory = low.BanksApi(api), low.MemoryApi(api)
        before = await banks.get_agent_stats(name)
        assert (before.pending_consolidation, before.total_observations, before.last_consolidated_at) == (3, 0, None)
        queued = await banks.trigger_consolidation(
            name, consolidation_request=ConsolidationRequest(observation_scopes=[["ana"]])
        )
        assert queued.operation_id and not queued.deduplicated
        await bank.until(lambda: _pending(bank, 1))
        await banks.trigger_consolidation(name)
        await bank.until(lambda: _pending(bank, 0))
        stats = await banks.get_agent_stats(name)
        assert (stats.total_observations, stats.failed_consolidation) == (2, 0) and stats.last_consolidated_at

        scopes = await memory.list_observation_scopes(name)
        assert {(tuple(one.tags), one.count) for one in scopes.scopes} == {(("ana",), 1), ((), 1)}
        preview = await memory.preview_consolidation_strategies(
            name,
            ConsolidationStrategiesPreviewRequest(
                strategies=[
                    ConsolidationStrategySpec(scopes=[{"tags": ["ana"]}], max_observations_per_scope=5),
                    ConsolidationStrategySpec(scopes=[{"tags": ["nobody"]}]),
                ]
            ),
        )
        assert (preview.strategies[0].claimed_count, preview.strategies[0].rules[0].observation_count) == (1, 1)
        assert (preview.strategies[0].active, preview.strategies[1].active) == (True, False)
        assert (preview.default.match_count, preview.scopes_scanned, preview.complete) == (1, 2, True)

        found = await memory.recall_memories(
            name, RecallRequest(query="Where did Ana move?", types=["observation"], include={"source_facts": {}})
        )
        first = found.results[0]
        assert first.type == "observation" and len(first.source_fact_ids) == 2
        assert {found.source_facts[one].text for one in first.source_fact_ids} == set(MOVED)
        listed = await memory.list_memories(name, type="observation", tags=["ana"], tags_match="all_strict")
        (row,) = listed.items
        assert (row.fact_type, row.proof_count, len(row.source_memory_ids)) == ("observation", 2, 2)
        one = await memory.get_memory(name, row.id)
        assert {source["text"] for source in one["source_memories"]} == set(MOVED) and one["history"] == []
        assert await memory.get_observation_history(name, row.id) == []
        with pytest.raises(low.ApiException) as refused:
            await memory.update_memory(name, row.id, low.UpdateMemoryRequest(text="By hand."))
        assert refused.value.status == 400

        cleared = await memory.clear_memory_observations(name, row.source_memory_ids[0])
        assert cleared.deleted_count == 1
        everything = await banks.clear_observations(name)
        assert everything.success and everything.deleted_count == 1
        assert (await banks.get_agent_stats(name)).pending_consolidation == 3
        recovered = await banks.recover_consolidation(name)
        assert recovered.retried_count == 0
        await bank.until(lambda: _pending(bank, 0))
        for call in (banks.trigger_consolidation, banks.recover_consolidation, banks.clear_observations):
            with pytest.raises(NotFoundException):
                await call("nobody")
        with pytest.raises(NotFoundException):
            await memory.list_observation_scopes("nobody")


async def _pending(bank: Observed, count: int) -> bool:
    return await bank.pending() == count

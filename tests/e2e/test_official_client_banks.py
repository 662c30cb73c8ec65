"""The official client 1.1.0, unmodified, manages banks and operations: against a running daemon in both runtimes.

Every test checks a value that only a working implementation gives: the right memory first, the right instant, a filter
that leaves the other memory out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import hindsight_client_api as low
from e2e_daemon import Bank, Daemon
from official_client import (
    KETTLE,
    LIBRARY,
    LYON,
    RUST,
    ended,
    generated,
    long_text,
    official,
    status_of,
    texts,
)


async def test_banks_are_made_changed_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        made = await client.acreate_bank(
            bank.id, name="Notes", mission="Help Ana", disposition={"skepticism": 5, "literalism": 1, "empathy": 2}
        )
        assert (made.bank_id, made.name, made.mission, made.disposition.skepticism) == (bank.id, "Notes", "Help Ana", 5)
        await client.aset_mission(bank.id, "Be brief")
        await client.aset_reflect_mission(bank.id, "Be very brief")
        again = await client.acreate_bank(bank.id, disposition_empathy=4)
        assert (again.name, again.mission, again.disposition.empathy) == ("Notes", "Be very brief", 4)
        assert again.disposition.skepticism == 5
        await client.aretain(bank.id, LYON, document_id="d")
        units = await client.alist_memories(bank.id)
        entities = await low.EntitiesApi(api).list_entities(bank.id)
        gone = await client.adelete_bank(bank.id)
        assert gone.deleted_count == units.total + entities.total + 1
        assert (await status_of(lambda: client.alist_memories(bank.id)))[0] == 404
        assert bank.id not in [one.bank_id for one in (await low.BanksApi(api).list_banks()).banks]
        # A bank made again under the same id starts empty.
        await client.acreate_bank(bank.id)
        assert (await client.alist_memories(bank.id)).total == 0
        assert (await client.aget_bank_config(bank.id))["overrides"] == {}


async def test_settings_of_a_bank_work_and_go_away(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        changed = await client.aupdate_bank_config(
            bank.id, retain_extraction_mode="chunks", retain_chunk_size=200, enable_text_search=False
        )
        assert changed["overrides"] == {
            "retain_extraction_mode": "chunks",
            "retain_chunk_size": 200,
            "enable_text_search": False,
        }
        text = " ".join(f"Ana lives in Lyon in room {n}." for n in range(10)) + " Ben lives in Oslo with his dog."
        await client.aretain(bank.id, text, document_id="d")
        pieces = [one.text for one in (await client.alist_memories(bank.id)).items]
        assert len(pieces) == 2 and all(len(piece) <= 200 for piece in pieces)
        found = await client.arecall(bank.id, "Ben Oslo", trace=True)
        assert "Oslo" in found.results[0].text and found.results[0].scores.keyword is None
        reset = await client.areset_bank_config(bank.id)
        assert reset["overrides"] == {} and reset["config"]["retain_chunk_size"] == 3000
        assert (await client.arecall(bank.id, "Ben Oslo")).results[0].scores.keyword > 0
        await client.aretain(bank.id, text, document_id="e")
        assert len((await client.alist_memories(bank.id, document_id="e")).items) != len(pieces)


async def test_texts_that_are_not_to_be_kept_are_not_shown_and_still_recalled(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aupdate_bank_config(bank.id, store_document_text=False)
        await client.aretain(bank.id, LYON, document_id="d")
        await client.aretain_batch(bank.id, [{"content": KETTLE, "document_id": "d", "update_mode": "append"}])
        document = await low.DocumentsApi(api).get_document(bank.id, "d")
        assert (document.original_text, document.memory_unit_count) == (None, 2)
        assert (await low.DocumentsApi(api).list_document_chunks(bank.id, "d")).items == []
        found = await client.arecall(bank.id, "Where does Ana live?", include_chunks=True)
        assert texts(found)[0] == LYON and found.chunks is None


async def test_recall_over_plain_http_has_entities_by_default_and_names_what_it_ignored(
    daemon: Daemon, library: Bank
) -> None:
    answer = library.post_recall("Where does Ana live?", surprise=1)
    assert answer.headers["X-Ignored-Params"] == "surprise"
    assert "Lyon" in answer.body["entities"] and "Lyon" in answer.body["results"][0]["entities"]
    off = library.recall("Where does Ana live?", include={"entities": None})
    assert off["entities"] is None and off["results"][0]["entities"] is None


async def test_budgets_bound_the_candidates_of_an_arm_and_banks_may_set_their_own(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        items = [
            {"content": f"The ferry to Corsica leaves pier {n} on time.", "document_id": f"d{n}"} for n in range(130)
        ]
        await client.aretain_batch(bank.id, items)

        async def found(budget: str) -> dict[str, Any]:
            answer = await client.arecall(bank.id, "When does the ferry to Corsica leave?", budget=budget, trace=True)
            return {one["method_name"]: one["metadata"] for one in answer.trace["retrieval_results"]}

        assert [(await found(budget))["semantic"]["found"] for budget in ("low", "mid", "high")] == [100, 130, 130]
        await client.aupdate_bank_config(
            bank.id, recall_budget_fixed_low=20, enable_graph_retrieval=False, enable_temporal_retrieval=False
        )
        arms = await found("low")
        assert arms["semantic"]["found"] == arms["keyword"]["found"] == 20
        assert (arms["graph"]["status"], arms["temporal"]["status"]) == ("off", "off")
        adaptive: dict[str, Any] = {"recall_budget_function": "adaptive", "recall_budget_adaptive_mid": 0.0125}
        await client.aupdate_bank_config(bank.id, **adaptive)
        assert (await found("mid"))["semantic"]["found"] == 51  # an eightieth of 4096 tokens


async def test_clearing_memories_by_type_leaves_the_others(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain_batch(
            bank.id, [{"content": one["content"], "document_id": one["document_id"]} for one in LIBRARY]
        )
        opinions = await low.MemoryApi(api).clear_bank_memories(bank.id, type="opinion")
        assert opinions.deleted_count == 1
        assert RUST not in [one.text for one in (await client.alist_memories(bank.id)).items]
        assert RUST not in texts(await client.arecall(bank.id, "Is Rust better than Go?"))
        rest = await low.MemoryApi(api).clear_bank_memories(bank.id)
        assert rest.deleted_count >= 6 + 7
        assert (await client.alist_memories(bank.id)).total == 0
        assert (await low.DocumentsApi(api).list_documents(bank.id)).total == 0
        assert texts(await client.arecall(bank.id, "Where does Ana live?")) == []


async def test_operations_are_listed_cancelled_retried_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        operations = low.OperationsApi(api)
        # Long enough to be still running when the next call comes.
        text = "\n\n".join(long_text(changed) for changed in range(2))
        begun = await client.aretain(bank.id, text, document_id="long", retain_async=True)
        cancelled = await operations.cancel_operation(bank.id, begun.operation_id)
        assert (cancelled.success, cancelled.operation_id) == (True, begun.operation_id)
        status = await ended(api, bank.id, begun.operation_id)
        assert status.status == "cancelled"
        assert (await status_of(lambda: operations.cancel_operation(bank.id, begun.operation_id)))[0] == 409
        for _ in range(200):  # what was in hand when it was cancelled is let go before it is taken up again
            parent = await operations.get_operation_status(bank.id, begun.operation_id)
            if all(child.status == "cancelled" for child in parent.child_operations):
                break
            await asyncio.sleep(0.05)
        assert (await client.alist_memories(bank.id)).total == 0, "a cancelled retain stores nothing"

        assert (await operations.retry_operation(bank.id, begun.operation_id)).success
        done = await ended(api, bank.id, begun.operation_id)
        assert (done.status, done.error_message) == ("completed", None)
        assert (await low.DocumentsApi(api).get_document(bank.id, "long")).original_text == text
        assert (await status_of(lambda: operations.retry_operation(bank.id, begun.operation_id)))[0] == 409

        listed = await operations.list_operations(bank.id)
        assert {one.task_type for one in listed.operations} == {"batch_retain", "retain"}
        parents = await operations.list_operations(bank.id, type="batch_retain", status="completed")
        assert [one.id for one in parents.operations] == [begun.operation_id]
        children = await operations.list_operations(bank.id, exclude_parents=True)
        assert [one.task_type for one in children.operations] == ["retain"]
        assert (await operations.list_operations(bank.id, status="failed")).total == 0
        stats = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (stats.pending_operations, stats.failed_operations) == (0, 0)

        assert (await operations.delete_operation(bank.id, begun.operation_id)).success
        gone = await operations.get_operation_status(bank.id, begun.operation_id)
        assert gone.status == "not_found"
        assert (await status_of(lambda: operations.delete_operation(bank.id, begun.operation_id)))[0] == 404


async def test_items_of_several_strategies_are_read_each_its_own_way(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aupdate_bank_config(
            bank.id,
            retain_strategies={"raw": {"retain_extraction_mode": "chunks"}, "small": {"retain_chunk_size": 200}},
        )
        opinion = "I think that Rust is better than Go."
        ledger = " ".join(f"Entry {n} says that the mill ground {n} sacks." for n in range(10))
        begun = await client.aretain_batch(
            bank.id,
            [
                {"content": opinion, "document_id": "raw", "strategy": "raw"},
                {"content": opinion, "document_id": "plain"},
                {"content": ledger, "document_id": "small", "strategy": "small"},
            ],
            retain_async=True,
        )
        assert len(set(begun.operation_ids)) == 3 and begun.operation_id == begun.operation_ids[0]
        assert {(await ended(api, bank.id, one)).status for one in begun.operation_ids} == {"completed"}
        # Chunks mode reads nothing into a text: what is an opinion elsewhere is a plain fact there.
        kinds = {one.document_id: one.fact_type for one in (await client.alist_memories(bank.id)).items}
        assert (kinds["raw"], kinds["plain"]) == ("world", "opinion")
        chunks = low.DocumentsApi(api)
        assert (await chunks.list_document_chunks(bank.id, "small")).total > 1
        assert (await chunks.list_document_chunks(bank.id, "raw")).total == 1


async def test_a_bank_deleted_with_work_in_hand_stays_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        begun = await client.aretain(bank.id, long_text(), document_id="long", retain_async=True)
        assert (await client.adelete_bank(bank.id)).success
        await client.acreate_bank(bank.id)
        await client.aretain(bank.id, "The new bank has one memory.")
        marker = daemon.wire.bank(bank.id + "-marker")
        # Retained behind it in the same queue: once this is done, the deleted bank's work is over too.
        marker.wait_for(marker.retain(long_text(1), **{"async": True})["operation_id"])
        assert (await low.OperationsApi(api).get_operation_status(bank.id, begun.operation_id)).status == "not_found"
        assert [one.text for one in (await client.alist_memories(bank.id)).items] == ["The new bank has one memory."]
        assert texts(await client.arecall(bank.id, "marble statue")) in ([], ["The new bank has one memory."])


async def test_version_and_health_are_what_clients_wait_for(daemon: Daemon) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        version = await client.aget_version()
        assert version.api_version == "1.1.0" and version.features.bank_config_api is True
        health = await low.MonitoringApi(api).health_endpoint_health_get()
        assert (health["status"], health["database"]) == ("healthy", "connected")
        assert (await low.MonitoringApi(api).get_readiness())["status"] == "healthy"
        assert (await low.MonitoringApi(api).get_liveness()).status == "alive"
        metrics = await low.MonitoringApi(api).metrics_endpoint_metrics_get()
        flushes = [line for line in str(metrics).splitlines() if "flushes_total" in line and not line.startswith("#")]
        assert flushes

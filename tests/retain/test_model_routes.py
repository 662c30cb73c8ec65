"""The routes about language models, over HTTP with the real service and a model behind a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from recalld.daemon.app import build_app
from recalld.daemon.service import MemoryService
from recalld.daemon.wire import model_requests as wire

from .model_server import TENANT, ModelServer, ended, model_server, retain, service_with, texts, until_operation

BANK = "/v1/default/banks/b"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as made:
        yield made


@pytest.fixture
async def service(server: ModelServer, tmp_path: Path) -> AsyncIterator[MemoryService]:
    given = {"enable_bank_llm_health": True, "budget_prices": ("openai/tiny=1/2/0.5",)}
    async with service_with(server, tmp_path / "home", **given) as made:
        yield made


class Http:
    def __init__(self, client: Any) -> None:
        self.client = client

    async def send(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        async with self.client.request(method, path, json=body) as answer:
            found = await answer.json()
            assert answer.status == status, found
            return found


@pytest.fixture
async def http(service: MemoryService) -> AsyncIterator[Http]:
    async with TestClient(TestServer(build_app(service, service.settings))) as client:
        yield Http(client)


async def test_a_dry_run_shows_facts_and_stores_nothing(
    http: Http, server: ModelServer, service: MemoryService
) -> None:
    await http.send("PUT", BANK, {})
    server.answer = lambda prompt: [
        {
            "text": "Ana moved to Lyon on 12 May 2026.",
            "network": "world",
            "occurred_start": "2026-05-12",
            "entities": [{"name": "Lyon", "kind": "LOCATION"}],
        }
    ]
    body = {
        "content": "Ana moved to Lyon yesterday.",
        "timestamp": "2026-05-13T10:00:00+02:00",
        "retain_mission": "Where do people live?",
    }
    found = await http.send("POST", BANK + "/memories/dry-run-extract", body)
    wire.DryRunExtractionResult.model_validate(found)
    (fact,) = found["facts"]
    assert fact["occurred_start"].startswith("2026-05-11T22:00") and fact["entities"] == ["Lyon"]
    assert found["chunks"] == [{"text": "Ana moved to Lyon yesterday.", "fact_count": 1}]
    assert found["usage"]["input_tokens"] == 100
    assert "Where do people live?" in server.prompts[0]
    assert await texts(service, "b") == []
    rows = await http.send("GET", BANK + "/llm-requests?operation=dry_run")
    assert rows["total"] == 1
    await http.send("POST", BANK + "/memories/dry-run-extract", {"content": "x", "strategy": "no"}, 400)
    await http.send("POST", BANK + "/memories/dry-run-extract", {"content": "x", "retain_extraction_mode": "no"}, 400)
    await http.send("POST", BANK + "/memories/dry-run-extract", {"content": " "}, 422)


async def test_the_ledger_over_the_wire(http: Http, server: ModelServer) -> None:
    for n in range(3):
        item = {"content": f"Ana shipped part {n}.", "document_id": f"d{n}"}
        answer = await http.send("POST", BANK + "/memories", {"items": [item]})
        assert answer["usage"] == {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "cached_tokens": 0,
            "thoughts_tokens": 0,
        }
    server.answer = lambda prompt: (401, {})
    await http.send("POST", BANK + "/memories", {"items": [{"content": "Ben left."}]}, 422)
    page = await http.send("GET", BANK + "/llm-requests?limit=2")
    wire.LLMRequestListResponse.model_validate(page)
    assert page["total"] == 4 and len(page["items"]) == 2
    assert page["items"][0]["status"] == "error" and page["items"][1]["llm_info"]["cost"] == pytest.approx(0.00014)
    assert (await http.send("GET", BANK + "/llm-requests?status=success&document_id=d1"))["total"] == 1
    assert (await http.send("GET", BANK + "/llm-requests?end_date=2020-01-01"))["total"] == 0
    assert (await http.send("GET", BANK + "/llm-requests?call_type=embedding"))["total"] == 0
    await http.send("GET", BANK + "/llm-requests?limit=501", status=422)
    await http.send("GET", "/v1/default/banks/none/llm-requests", status=404)
    stats = await http.send("GET", BANK + "/llm-requests/stats?period=24h")
    wire.LLMRequestStatsResponse.model_validate(stats)
    (bucket,) = stats["buckets"]
    assert bucket["statuses"] == {"success": 3, "error": 1} and bucket["tokens"]["total"] == 360
    assert stats["sums"]["cost"] == pytest.approx(0.00042) and stats["trunc"] == "hour"
    assert stats["gap"]["lasting"] is False
    await http.send("GET", BANK + "/llm-requests/stats?period=1y", status=400)


async def test_a_lasting_gap_between_bill_and_count_is_shown(
    http: Http, server: ModelServer, service: MemoryService
) -> None:
    server.usage = {"prompt_tokens": 9000, "completion_tokens": 20}
    for n in range(5):
        await retain(service, "b", f"Ana shipped part {n}.")
    gap = (await http.send("GET", BANK + "/llm-requests/stats"))["gap"]
    assert gap["lasting"] is True and gap["extra_tokens_a_call"] > 5000
    assert (await service.status())["ledger"]["gap"]["extra_tokens_a_call"] > 5000


async def test_reprocess_reads_the_stored_text_anew(http: Http, server: ModelServer, service: MemoryService) -> None:
    server.answer = lambda prompt: []
    item = {"content": "Ana owns the fix.", "document_id": "a/b", "tags": ["x"], "context": "stand-up"}
    await http.send("POST", BANK + "/memories", {"items": [item]})
    assert await texts(service, "b") == []
    from .model_server import said_as_is

    server.answer = said_as_is
    await http.send("POST", BANK + "/memories", {"items": [item]})
    assert await texts(service, "b") == []  # the same text, read already
    found = await http.send("POST", BANK + "/documents/a%2Fb/reprocess")
    wire.ReprocessDocumentResponse.model_validate(found)
    done = await until_operation(service, "b", found["operation_id"], ended)
    assert done["status"] == "completed" and done["operation_type"] == "reprocess_document"
    (row,) = (await http.send("GET", BANK + "/memories/list"))["items"]
    assert (row["text"], row["tags"], row["context"]) == ("Ana owns the fix.", ["x"], "stand-up")
    assert (await http.send("GET", BANK + "/documents/a%2Fb"))["original_text"] == "Ana owns the fix."
    await http.send("POST", BANK + "/documents/none/reprocess", status=404)


async def test_the_prompt_can_be_seen_before_it_is_sent(
    http: Http, server: ModelServer, service: MemoryService
) -> None:
    await http.send("PUT", BANK, {})
    config = {"retain_mission": "Names of ships", "retain_strategies": {"own": {"retain_extraction_mode": "custom"}}}
    await service.patch_config(TENANT, "b", {**config, "retain_custom_instructions": "Only tonnage."})
    found = await http.send("POST", BANK + "/prompts/preview", {"operation": "retain"})
    wire.PromptPreviewResponse.model_validate(found)
    assert [message["role"] for message in found["messages"]] == ["system", "user"]
    mission = [block for block in found["messages"][1]["blocks"] if block["field"] == "retain_mission"]
    assert mission[0]["text"] == "Names of ships" and mission[0]["source"] == "config"
    own = await http.send("POST", BANK + "/prompts/preview", {"operation": "retain", "strategy": "own"})
    assert "Only tonnage." in "".join(block["text"] for block in own["messages"][0]["blocks"])
    assert own["strategies"] == ["own"] and server.calls == 0
    await http.send("POST", BANK + "/prompts/preview", {"strategy": "no"}, 400)
    await http.send("POST", "/v1/default/banks/none/prompts/preview", {}, 404)


async def test_a_price_before_the_work(http: Http, server: ModelServer, service: MemoryService) -> None:
    text = "\n".join(f"In week {n} Ana shipped part {n} of the project." for n in range(200))
    body = {"operation": "retain", "items": [{"content": text, "document_id": "d"}]}
    found = await http.send("POST", BANK + "/price-preview", body)
    wire.PriceResponse.model_validate(found)
    assert found["most"]["calls"] == found["chunks"] >= 3 and found["most"]["cost"] > 0 and server.calls == 0
    assert found["price_known"] is True and found["model"] == "openai/tiny"
    await retain(service, "b", text, document_id="d")
    assert server.calls == found["most"]["calls"]
    again = await http.send("POST", BANK + "/price-preview", body)
    assert again["most"]["calls"] == 0 and again["chunks_reused"] == again["chunks"]
    backlog = await http.send("POST", BANK + "/price-preview", {"operation": "consolidation"})
    assert backlog["facts"] == 200 and backlog["most"]["calls"] == 25
    reflect = await http.send("POST", BANK + "/price-preview", {"operation": "reflect", "budget": "high"})
    assert reflect["least"]["calls"] == 1 and reflect["most"]["calls"] == 20
    assert reflect["least"]["cost"] < reflect["most"]["cost"]
    await http.send("POST", BANK + "/price-preview", {"operation": "retain"}, 422)


async def test_models_are_probed_only_where_that_is_switched_on(
    http: Http, server: ModelServer, service: MemoryService
) -> None:
    await http.send("PUT", BANK, {})
    server.answer = lambda prompt: "ready"
    found = await http.send("POST", BANK + "/health/llm")
    wire.BankLlmHealthResponse.model_validate(found)
    assert {one["status"] for one in found["operations"]} == {"connected"} and server.calls == 1
    server.answer = lambda prompt: (401, {})
    found = await http.send("POST", BANK + "/health/llm")
    assert {one["status"] for one in found["operations"]} == {"auth_failed"}
    assert "tiny" not in str(found) and "openai" not in str(found)


async def test_switched_off_routes_are_404(server: ModelServer, tmp_path: Path) -> None:
    async with (
        service_with(server, tmp_path / "off", enable_dry_run_extract=False) as service,
        TestClient(TestServer(build_app(service, service.settings))) as client,
    ):
        http = Http(client)
        await http.send("POST", BANK + "/memories/dry-run-extract", {"content": "x"}, 404)
        await http.send("POST", BANK + "/health/llm", status=404)


async def test_labels_become_entities_and_tags(http: Http, server: ModelServer, service: MemoryService) -> None:
    groups = [{"key": "mood", "type": "value", "tag": True, "values": [{"value": "glad"}, {"value": "sad"}]}]
    await service.patch_config(TENANT, "b", {"entity_labels": groups})
    server.answer = lambda prompt: [{"text": "Ana is glad.", "labels": {"mood": "glad"}, "entities": []}]
    item = {"content": "Ana is glad.", "document_id": "d", "tags": ["x"]}
    await http.send("POST", BANK + "/memories", {"items": [item]})
    await http.send("POST", BANK + "/memories", {"items": [item]})
    assert server.calls == 1 and "mood" in server.bodies[0]["messages"][0]["content"]
    (row,) = (await http.send("GET", BANK + "/memories/list"))["items"]
    assert sorted(row["tags"]) == ["mood:glad", "x"] and "mood:glad" in row["entities"]
    await http.send("POST", BANK + "/memories", {"items": [{**item, "tags": ["y"]}]})
    (row,) = (await http.send("GET", BANK + "/memories/list"))["items"]
    assert sorted(row["tags"]) == ["mood:glad", "y"] and server.calls == 1
    wrong = {"updates": {"entity_labels": [{"key": "a:b"}]}}
    await http.send("PATCH", BANK + "/config", wrong, 400)


async def test_another_mission_reads_anew_and_an_unchanged_one_does_not(
    server: ModelServer, service: MemoryService
) -> None:
    await retain(service, "b", "Ana owns the fix.", document_id="d")
    await service.patch_config(TENANT, "b", {"retain_mission": "Who owns what?"})
    await retain(service, "b", "Ana owns the fix.", document_id="d")
    await retain(service, "b", "Ana owns the fix.", document_id="d")
    assert server.calls == 2 and await texts(service, "b") == ["Ana owns the fix."]


@pytest.mark.parametrize(("mode", "calls"), [("verbatim", 1), ("chunks", 0)])
async def test_modes_that_keep_the_text(server: ModelServer, service: MemoryService, mode: str, calls: int) -> None:
    await service.patch_config(TENANT, "b", {"retain_extraction_mode": mode})
    server.answer = lambda prompt: '{"network": "world", "entities": [{"name": "Lyon", "kind": "LOCATION"}]}'
    await retain(service, "b", "Ana moved to Lyon.\nShe likes it.")
    assert await texts(service, "b") == ["Ana moved to Lyon.\nShe likes it."]
    assert server.calls == calls


async def test_calls_are_kept_for_their_days_and_sums_for_longer(server: ModelServer, tmp_path: Path) -> None:
    async with service_with(server, tmp_path / "home", ledger_days=0.01) as service:
        await retain(service, "b", "Ana owns the fix.")
        clock = service._clock
        from recalld.actors.messages import RecordCalls

        later = clock() + 1000
        await service.shards.call(TENANT, "b", RecordCalls(TENANT, "b", (), later))
        page = await service.list_llm_requests(TENANT, "b", {"limit": 10, "offset": 0})
        stats = await service.llm_request_stats(TENANT, "b", {"period": "7d"})
        assert page["total"] == 0 and stats["sums"]["calls"] == 1


async def test_deleting_a_bank_takes_its_calls_with_it_and_not_what_was_spent(
    server: ModelServer, tmp_path: Path
) -> None:
    async with service_with(server, tmp_path / "home") as service:
        await retain(service, "b", "Ana owns the fix.")
        await service.delete_bank(TENANT, "b")
        await retain(service, "b", "Ben likes tea.")
        assert (await service.list_llm_requests(TENANT, "b", {"limit": 10, "offset": 0}))["total"] == 1
        assert (await service.status())["ledger"]["today"]["calls"] == 2

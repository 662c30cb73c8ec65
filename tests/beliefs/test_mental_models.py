"""Mental models through the real HTTP path: their fields, lists, triggers and history."""

from __future__ import annotations

from typing import Any

import hindsight_client_api as low
import pytest
from hindsight_client import Hindsight

from .conftest import Open, Wire

ANA = {"id": "ana", "name": "Ana", "source_query": "Where does Ana live?"}
LYON = {
    "content": "Ana moved from Porto to Lyon in May 2024.",
    "timestamp": "2026-02-01T10:00:00Z",
    "document_id": "d1",
}
FIELDS = {
    "id", "bank_id", "name", "source_query", "content", "tags", "max_tokens", "trigger", "last_refreshed_at",
    "last_memory_seen_at", "last_refresh_failed_at", "last_full_refreshed_at", "created_at", "is_knowledge_page",
    "reflect_response", "is_stale",
}  # fmt: skip


async def test_a_model_is_created_and_filled(wire: Wire) -> None:
    await wire.retain(LYON)
    made = await wire.ok("POST", "/mental-models", ANA, wait="10")
    assert made["mental_model_id"] == "ana" and made["operation"]["operation_id"] == made["operation_id"]
    operation = made["operation"]
    assert (operation["status"], operation["task_type"], operation["mental_model_id"]) == (
        "completed", "refresh_mental_model", "ana",
    )  # fmt: skip
    assert operation["details"] == {
        "operation_type": "refresh_mental_model", "outcome": "content_written", "failure_reason": None,
    }  # fmt: skip
    one = await wire.ok("GET", "/mental-models/ana")
    assert set(one) == FIELDS
    assert "Extractive page" in one["content"] and "Ana moved from Porto to Lyon in May 2024." in one["content"]
    assert "**2024-05-01 to 2024-05-31**" in one["content"]
    response = one["reflect_response"]
    assert response["text"] == one["content"] and response["outcome"] == "content_written"
    assert set(response["based_on"]) == {"world", "experience", "observation", "opinion", "directives", "mental-models"}
    (cited,) = response["based_on"]["world"]
    assert f"[{cited['id'][:8]}]" in one["content"] and cited["document_id"] == "d1"
    assert one["is_stale"] is False and one["is_knowledge_page"] is False
    assert one["last_refreshed_at"] == one["last_full_refreshed_at"] and one["last_refresh_failed_at"] is None


async def test_creating_makes_the_bank_and_an_id(wire: Wire) -> None:
    made = await wire.ok("POST", "/mental-models", {"name": "N", "source_query": "Q?"}, wait="10")
    assert made["mental_model_id"].startswith("mm-") and len(made["mental_model_id"]) == 35
    assert made["operation"]["details"]["outcome"] == "content_preserved_no_new_facts"
    one = await wire.ok("GET", f"/mental-models/{made['mental_model_id']}")
    assert (one["content"], one["is_stale"], one["max_tokens"]) == ("", False, 2048)
    assert one["trigger"]["mode"] == "full" and one["trigger"]["refresh_after_consolidation"] is False


async def test_a_taken_id_is_a_conflict(wire: Wire) -> None:
    await wire.ok("POST", "/mental-models", ANA)
    assert (await wire("POST", "/mental-models", ANA))[0] == 409


@pytest.mark.parametrize(
    "change",
    [
        {"name": None}, {"source_query": " "}, {"max_tokens": 255}, {"max_tokens": 8193}, {"trigger": {"mode": "x"}},
        {"trigger": {"refresh_cron": "daily"}}, {"trigger": {"full_refresh_cron": "0 0 * *"}},
        {"trigger": {"refresh_cron": "0 3 * * *", "refresh_after_consolidation": True}},
        {"trigger": {"tag_groups": [{"tags": ["a"], "resolve": "fuzzy"}]}}, {"trigger": {"fact_types": ["opinion"]}},
        {"trigger": {"min_refresh_interval_seconds": -1}},
    ],
)  # fmt: skip
async def test_what_does_not_hold_together_is_422(wire: Wire, change: dict[str, Any]) -> None:
    assert (await wire("POST", "/mental-models", {**ANA, **change}))[0] == 422
    assert (await wire("GET", "/mental-models"))[0] == 404


async def test_a_missing_model_is_404_whatever_is_asked(wire: Wire) -> None:
    for known in (False, True):
        for method, path, body in (
            ("GET", "", None), ("PATCH", "", {"name": "x"}), ("DELETE", "", None), ("POST", "/refresh", None),
            ("POST", "/dry-run-refresh", None), ("POST", "/clear", None), ("GET", "/history", None),
        ):  # fmt: skip
            answer = await wire(method, f"/mental-models/none{path}", body)
            assert answer == (404, {"detail": "Mental model 'none' not found"}), (known, method, path)
        await wire.retain(LYON)


async def test_lists_show_as_much_as_is_asked_for(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", ANA, wait="10")
    await wire.ok("POST", "/mental-models", {"id": "t", "name": "T", "source_query": "Q?", "tags": ["x"]}, wait="10")
    listed = await wire.ok("GET", "/mental-models")
    assert (listed["total"], listed["limit"], listed["offset"]) == (2, 100, 0)
    by_id = {one["id"]: one for one in listed["items"]}
    assert set(by_id["ana"]) == FIELDS and by_id["ana"]["content"] is None and by_id["ana"]["trigger"] is None
    content = (await wire.ok("GET", "/mental-models", detail="content"))["items"]
    assert all(one["trigger"] and one["reflect_response"] is None for one in content)
    full = {one["id"]: one for one in (await wire.ok("GET", "/mental-models", detail="full"))["items"]}
    assert full["ana"]["reflect_response"]["outcome"] == "content_written"
    assert (await wire.ok("GET", "/mental-models/ana", detail="metadata"))["content"] is None

    async def ids(**query: str) -> list[str]:
        return sorted(one["id"] for one in (await wire.ok("GET", "/mental-models", **query))["items"])

    assert await ids(tags="x") == ["ana", "t"] and await ids(tags="y") == ["ana"]
    assert await ids(tags="x", tags_match="exact") == ["t"] and await ids(limit="1", offset="1") == ["ana"]
    assert (await wire("GET", "/mental-models", tags_match="all_strict"))[0] == 422
    assert (await wire.ok("GET", "/tags", source="mental_models"))["items"] == [{"tag": "x", "count": 1}]


async def test_a_trigger_is_merged_field_by_field(wire: Wire) -> None:
    trigger = {"mode": "delta", "refresh_after_consolidation": True, "budget": "high"}
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": trigger})
    changed = await wire.ok("PATCH", "/mental-models/ana", {"trigger": {"refresh_cron": "0 3 * * *"}})
    assert (changed["trigger"]["mode"], changed["trigger"]["budget"]) == ("delta", "high")
    assert changed["trigger"]["refresh_cron"] == "0 3 * * *"
    assert changed["trigger"]["refresh_after_consolidation"] is False
    back = await wire.ok(
        "PATCH", "/mental-models/ana", {"trigger": {"refresh_after_consolidation": True, "budget": None}}
    )
    assert (back["trigger"]["refresh_cron"], back["trigger"]["budget"]) == (None, None)
    renamed = await wire.ok("PATCH", "/mental-models/ana", {"name": "Ana now", "max_tokens": 512, "tags": ["z"]})
    assert (renamed["name"], renamed["max_tokens"], renamed["tags"]) == ("Ana now", 512, ["z"])
    assert renamed["trigger"]["refresh_after_consolidation"] is True
    assert (await wire("PATCH", "/mental-models/ana", {"max_tokens": 1}))[0] == 422


async def test_history_holds_former_contents_the_newest_first(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False, pages_history_max_entries=2)
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", ANA, wait="10")
    first = (await wire.ok("GET", "/mental-models/ana"))["content"]
    (entry,) = await wire.ok("GET", "/mental-models/ana/history")
    assert set(entry) == {"previous_content", "previous_reflect_response", "changed_at"}
    assert (entry["previous_content"], entry["previous_reflect_response"]) == ("", None)
    for number in range(3):
        await wire.retain(f"Ana lives at house number {number} in Lyon.")
        await wire.ok("POST", "/mental-models/ana/refresh", wait="10")
    history = await wire.ok("GET", "/mental-models/ana/history")
    assert len(history) == 2 and history[0]["previous_content"].count("house number") == 2
    assert history[1]["previous_reflect_response"]["text"] == history[1]["previous_content"] != first
    await wire.ok("POST", "/mental-models/ana/refresh", wait="10")
    assert await wire.ok("GET", "/mental-models/ana/history") == history


async def test_clearing_empties_the_content_and_makes_the_next_refresh_full(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": {"mode": "delta"}}, wait="10")
    cleared = await wire.ok("POST", "/mental-models/ana/clear")
    assert (cleared["content"], cleared["reflect_response"], cleared["is_stale"]) == ("", None, True)
    assert "Lyon" in (await wire.ok("GET", "/mental-models/ana/history"))[0]["previous_content"]
    preview = await wire.ok("POST", "/mental-models/ana/dry-run-refresh")
    assert (preview["effective_mode"], preview["mode_fallback_reason"]) == ("full", "no_baseline_content")
    await wire.ok("POST", "/mental-models/ana/refresh", wait="10")
    assert "Lyon" in (await wire.ok("GET", "/mental-models/ana"))["content"]


async def test_a_deleted_model_is_gone_with_all_it_said(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", ANA, wait="10")
    assert await wire.ok("DELETE", "/mental-models/ana") == {"status": "deleted"}
    verified = await wire.ok("GET", "/verify")
    assert verified["ok"] and verified["checked"]["mental_models"] == 0
    await wire.ok("POST", "/mental-models", ANA)
    assert (await wire("GET", "/mental-models/ana/history"))[0] == 200


async def test_without_anybody_to_write_nothing_is_stored(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False, llm_provider="none")
    assert (await wire("POST", "/mental-models", ANA))[0] == 400
    assert (await wire("GET", "/mental-models"))[0] == 404
    assert (await wire("POST", "/mental-models/ana/refresh"))[0] == 400


async def test_models_outlive_a_restart(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False)
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", ANA, wait="10")
    before = await wire.ok("GET", "/mental-models/ana")
    await wire.client.close()
    await wire.service.close()
    again = await open_wire(enable_auto_consolidation=False)
    assert await again.ok("GET", "/mental-models/ana") == before


async def test_the_official_client_has_all_of_it(wire: Wire) -> None:
    await wire.retain(LYON)
    client = Hindsight(base_url=wire.host)
    try:
        made = await client.acreate_mental_model(
            "b", "Ana", "Where does Ana live?", tags=[], max_tokens=1024, id="ana",
            trigger={"mode": "delta", "refresh_after_consolidation": True},
        )  # fmt: skip
        api = client.operations
        while (state := await api.get_operation_status("b", made.operation_id)).status != "completed":
            assert state.status in ("pending", "processing"), state
        assert state.details.outcome == "content_written" and state.mental_model_id == "ana"
        assert [one.id for one in (await client.alist_mental_models("b")).items] == ["ana"]
        one = await client.aget_mental_model("b", "ana")
        assert "Lyon" in one.content and one.trigger.mode == "delta"
        preview = await client.adry_run_refresh_mental_model("b", "ana")
        assert (preview.effective_mode, preview.outcome) == ("delta", "content_preserved_no_new_facts")
        queued = await client.arefresh_mental_model("b", "ana", mode="full")
        assert queued.status == "queued"
        changed = await client.aupdate_mental_model("b", "ana", name="Ana B", trigger={"mode": "full"})
        assert (changed.name, changed.trigger.refresh_after_consolidation) == ("Ana B", True)
        assert (await client.aclear_mental_model("b", "ana")).content == ""
        assert await client.aget_mental_model_history("b", "ana")
        await client.adelete_mental_model("b", "ana")
        with pytest.raises(low.ApiException) as gone:
            await client.aget_mental_model("b", "ana")
        assert gone.value.status == 404
    finally:
        await client.aclose()

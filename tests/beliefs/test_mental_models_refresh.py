"""Refreshes: what is new goes in, what is gone goes out, and everything else stays byte for byte."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiohttp import FormData

from recalld.actors.messages import Claimed
from recalld.actors.pages.refresh import Ask, Composition, Edits
from recalld.storage.errors import ModelRefused, ModelUnavailable

from .conftest import Open, Wire

ANA = {"id": "ana", "name": "Ana", "source_query": "What is known of Ana?"}
DELTA = {**ANA, "trigger": {"mode": "delta"}}


def said(text: str, document: str, **fields: Any) -> dict[str, Any]:
    return {"content": text, "document_id": document, "timestamp": "2026-02-01T10:00:00Z", **fields}


LYON = said("Ana lives in Lyon.", "lyon")
NURSE = said("Ana works as a nurse.", "nurse")
DOG = said("Ana has a dog called Miso.", "dog")


async def content(wire: Wire, model: str = "ana") -> str:
    text: str = (await wire.ok("GET", f"/mental-models/{model}"))["content"]
    return text


async def refreshed(wire: Wire, body: Any = None) -> str:
    """The outcome of a refresh by hand."""
    answer = await wire.ok("POST", "/mental-models/ana/refresh", body, wait="20")
    assert answer["status"] == "queued", answer
    outcome: str = answer["operation"]["details"]["outcome"]
    return outcome


async def until(wire: Wire, what: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not await what():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


async def test_a_delta_refresh_adds_what_is_new_and_leaves_every_line_as_it_was(wire: Wire) -> None:
    await wire.retain(LYON, NURSE)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    before = await content(wire)
    await wire.retain(DOG, said("The weather in Oslo is cold.", "oslo"))
    assert (await wire.ok("GET", "/mental-models/ana"))["is_stale"] is True
    preview = await wire.ok("POST", "/mental-models/ana/dry-run-refresh")
    assert (preview["requested_mode"], preview["effective_mode"], preview["outcome"]) == (
        "delta",
        "delta",
        "content_written",
    )
    assert preview["would_persist"] and preview["current_content"] == before == await content(wire)
    assert [one["op"] for one in preview["delta_operations"]["applied"]] == ["append_block"]
    added = [line[1:] for line in preview["diff"].splitlines() if line[0] == "+" and line[:3] != "+++"]
    assert len(added) == 1 and "Miso" in added[0]
    assert await refreshed(wire) == "content_written"
    after = await content(wire)
    assert after == preview["preview_content"]
    assert [line for line in after.splitlines() if "Miso" not in line] == before.splitlines()
    one = await wire.ok("GET", "/mental-models/ana")
    assert one["is_stale"] is False and len(one["reflect_response"]["based_on"]["world"]) == 3
    assert one["last_full_refreshed_at"] < one["last_refreshed_at"]


async def test_what_a_page_says_already_is_not_said_again(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    before = await content(wire)
    await wire.retain(said("ana lives in  Lyon", "again", tags=["other"]))
    assert await refreshed(wire) == "content_unchanged"
    assert await content(wire) == before


async def test_what_is_not_about_the_question_moves_the_watermark_alone(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    before = await wire.ok("GET", "/mental-models/ana")
    await wire.retain(said("The weather in Oslo is cold.", "oslo"))
    assert await refreshed(wire) == "content_preserved_no_new_facts"
    after = await wire.ok("GET", "/mental-models/ana")
    assert (after["content"], after["is_stale"]) == (before["content"], False)
    assert after["last_memory_seen_at"] > before["last_memory_seen_at"]
    assert after["reflect_response"]["based_on"] == before["reflect_response"]["based_on"]


async def test_a_refresh_that_finds_nothing_keeps_the_content(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", ANA, wait="20")
    before = await content(wire)
    await wire.ok("PATCH", "/mental-models/ana", {"tags": ["nobody-has-this"]})
    assert await refreshed(wire) == "content_preserved_no_new_facts"
    assert await content(wire) == before


async def test_a_changed_question_falls_back_to_a_full_refresh(wire: Wire) -> None:
    await wire.retain(LYON, said("Ben sails a boat.", "ben"))
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    await wire.ok("PATCH", "/mental-models/ana", {"source_query": "What does Ben sail?"})
    preview = await wire.ok("POST", "/mental-models/ana/dry-run-refresh")
    assert (preview["effective_mode"], preview["mode_fallback_reason"]) == ("full", "source_query_changed")
    assert await refreshed(wire) == "content_written"
    assert "Ben sails" in await content(wire) and "Lyon" not in await content(wire)


async def test_what_is_deleted_leaves_page_sources_and_history_at_once(wire: Wire) -> None:
    await wire.retain(LYON, NURSE)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    await wire.retain(DOG)
    await refreshed(wire)
    before = await content(wire)
    await wire.ok("DELETE", "/documents/nurse")
    one = await wire.ok("GET", "/mental-models/ana")
    assert [line for line in before.splitlines() if "nurse" not in line] == one["content"].splitlines()
    assert "nurse" not in str(one["reflect_response"])
    history = await wire.ok("GET", "/mental-models/ana/history")
    assert "nurse" not in str(history) and [entry["previous_content"] for entry in history] == [""]
    assert (await wire.ok("GET", "/verify"))["ok"]
    await wire.ok("DELETE", "/memories")
    assert await content(wire) == ""


async def test_what_was_invalidated_is_retracted_by_the_next_refresh(wire: Wire) -> None:
    await wire.retain(LYON, NURSE)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    memories = (await wire.ok("GET", "/memories/list"))["items"]
    nurse = next(one["id"] for one in memories if "nurse" in one["text"])
    await wire.ok("PATCH", f"/memories/{nurse}", {"state": "invalidated", "reason": "wrong"})
    assert (await wire.ok("GET", "/mental-models/ana"))["is_stale"] is True
    preview = await wire.ok("POST", "/mental-models/ana/dry-run-refresh")
    assert preview["retraction"] == {
        "fact_ids": [nurse], "fact_texts": ["Ana works as a nurse."], "applied": True, "deferred_reason": None,
    }  # fmt: skip
    assert await refreshed(wire) == "content_written"
    one = await wire.ok("GET", "/mental-models/ana")
    assert "nurse" not in one["content"] and "Lyon" in one["content"] and one["is_stale"] is False


async def test_an_edited_memory_is_said_as_it_is_now(wire: Wire) -> None:
    await wire.retain(LYON, NURSE)
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    memories = (await wire.ok("GET", "/memories/list"))["items"]
    nurse = next(one["id"] for one in memories if "nurse" in one["text"])
    await wire.ok("PATCH", f"/memories/{nurse}", {"text": "Ana works as a surgeon."})
    assert await refreshed(wire) == "content_written"
    text = await content(wire)
    assert "surgeon" in text and "nurse" not in text and "Lyon" in text
    assert await refreshed(wire) == "content_preserved_no_new_facts"


async def test_tags_and_kinds_of_fact_bound_what_is_read(wire: Wire) -> None:
    await wire.retain(
        said("Ana lives in Lyon.", "a", tags=["x", "y"]),
        said("Ana lives in Nice.", "b", tags=["x"]),
        said("Ana lives in Metz.", "c"),
    )

    async def towns(**fields: Any) -> set[str]:
        await wire("DELETE", "/mental-models/ana")
        await wire.ok("POST", "/mental-models", {**ANA, "source_query": "Where does Ana live?", **fields}, wait="20")
        text = await content(wire)
        return {town for town in ("Lyon", "Nice", "Metz") if town in text}

    assert await towns() == {"Lyon", "Nice", "Metz"}
    assert await towns(tags=["x", "y"]) == {"Lyon"}
    assert await towns(tags=["x", "y"], trigger={"tags_match": "any"}) == {"Lyon", "Nice", "Metz"}
    assert await towns(tags=["x"], trigger={"tag_groups": [{"not": {"tags": ["x"]}}]}) == {"Metz"}
    assert await towns(trigger={"fact_types": ["experience"]}) == set()


async def test_a_scope_that_grew_is_read_in_full(wire: Wire) -> None:
    await wire.retain(said("Ana lives in Lyon.", "a", tags=["x"]), said("Ana lives in Nice.", "b", tags=["y"]))
    await wire.ok("POST", "/mental-models", {**DELTA, "tags": ["x"]}, wait="20")
    assert "Nice" not in await content(wire)
    await wire.ok("PATCH", "/mental-models/ana", {"trigger": {"tag_groups": [{"tags": ["x", "y"]}]}})
    assert await refreshed(wire) == "content_written"
    assert "Nice" in await content(wire)


async def test_the_trace_is_kept_when_asked_for(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": {"keep_trace": True}}, wait="20")
    trace = (await wire.ok("GET", "/mental-models/ana"))["reflect_response"]["trace"]
    assert (trace["effective_mode"], trace["outcome"], trace["mode_fallback_reason"]) == (
        "full",
        "content_written",
        None,
    )
    (call,) = trace["tool_calls"]
    assert (call["tool"], call["output"], call["result_count"]) == ("recall", None, 1)


# -- operations ------------------------------------------------------------------------------------------------------


class Gate:
    """A composer that waits before it writes, and counts who is inside; `error` is raised once it may go on."""

    def __init__(self, wire: Wire) -> None:
        self.inner = wire.service.refreshing._composer
        self.open = asyncio.Event()
        self.entered = self.inside = self.most = 0
        self.error: Exception | None = None
        wire.service.refreshing._composer = self

    async def full(self, ask: Ask) -> Composition:
        self.entered += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
            if self.error is not None:
                raise self.error
            return await self.inner.full(ask)
        finally:
            self.inside -= 1

    async def news(self, ask: Ask) -> Composition:
        return await self.inner.news(ask)

    async def edits(self, ask: Ask, facts: Any, gone: Any) -> Edits:
        return await self.inner.edits(ask, facts, gone)


async def test_a_model_is_refreshed_one_at_a_time_and_waiting_refreshes_are_one(wire: Wire) -> None:
    await wire.retain(LYON)
    gate = Gate(wire)
    first = (await wire.ok("POST", "/mental-models", ANA))["operation_id"]

    async def running() -> bool:
        return gate.inside == 1

    await until(wire, running)
    second = (await wire.ok("POST", "/mental-models/ana/refresh"))["operation_id"]
    third = (await wire.ok("POST", "/mental-models/ana/refresh"))["operation_id"]
    assert second == third != first
    await asyncio.sleep(0.2)
    gate.open.set()
    assert await refreshed(wire) == "content_unchanged"
    assert gate.most == 1 and gate.entered in (2, 3)


async def test_a_wait_that_is_too_short_gives_the_usual_answer(wire: Wire) -> None:
    await wire.retain(LYON)
    gate = Gate(wire)
    answer = await wire.ok("POST", "/mental-models", ANA, wait="0.1")
    assert set(answer) == {"mental_model_id", "operation_id"}
    assert (await wire("POST", "/mental-models/ana/refresh", wait="-1"))[0] == 422
    gate.open.set()


async def test_a_failure_inside_the_wait_comes_back_with_its_cause_and_holds_triggers_back(wire: Wire) -> None:
    await wire.retain(LYON)
    gate = Gate(wire)
    gate.error = ModelRefused("The model said no.")
    gate.open.set()
    trigger = {"refresh_after_consolidation": True}
    answer = await wire.ok("POST", "/mental-models", {**ANA, "trigger": trigger}, wait="20")
    operation = answer["operation"]
    assert (operation["status"], operation["error_message"]) == ("failed", "The model said no.")
    assert operation["details"]["outcome"] == "refresh_failed_error"
    one = await wire.ok("GET", "/mental-models/ana")
    assert one["last_refresh_failed_at"] is not None and one["content"] == ""
    assert await wire.service.refreshing.due() == 0
    gate.error = None
    assert await refreshed(wire) == "content_written"
    assert (await wire.ok("GET", "/mental-models/ana"))["last_refresh_failed_at"] is None


async def test_a_model_that_is_away_is_waited_for(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False, operations_model_wait_seconds=0.05)
    await wire.retain(LYON)
    gate = Gate(wire)
    gate.error = ModelUnavailable("The model is away.")
    gate.open.set()
    made = await wire.ok("POST", "/mental-models", ANA, wait="0.3")
    assert "operation" not in made
    waiting = await wire.ok("GET", f"/operations/{made['operation_id']}")
    assert waiting["status"] in ("pending", "processing")
    gate.error = None
    assert await refreshed(wire) in ("content_written", "content_unchanged")


async def test_what_is_deleted_while_a_page_is_written_is_not_in_it(wire: Wire) -> None:
    await wire.retain(LYON, NURSE)
    gate = Gate(wire)

    async def late(ask: Ask) -> Composition:
        made = await gate.inner.full(ask)
        gate.entered += 1
        await gate.open.wait()
        return made

    gate.full = late  # type: ignore[method-assign]
    made = await wire.ok("POST", "/mental-models", ANA)

    async def composed() -> bool:
        return gate.entered == 1

    await until(wire, composed)
    await wire.ok("DELETE", "/documents/nurse")
    gate.open.set()

    async def done() -> bool:
        return bool((await wire.ok("GET", f"/operations/{made['operation_id']}"))["status"] == "completed")

    await until(wire, done)
    assert gate.entered == 2
    assert "nurse" not in await content(wire) and "Lyon" in await content(wire)


async def test_a_model_deleted_while_it_is_refreshed_ends_its_operation(wire: Wire) -> None:
    await wire.retain(LYON)
    gate = Gate(wire)
    made = await wire.ok("POST", "/mental-models", ANA)

    async def running() -> bool:
        return gate.inside == 1

    await until(wire, running)
    await wire.ok("DELETE", "/mental-models/ana")
    gate.open.set()

    async def ended() -> bool:
        return bool((await wire.ok("GET", f"/operations/{made['operation_id']}"))["status"] == "cancelled")

    await until(wire, ended)


# -- triggers --------------------------------------------------------------------------------------------------------


async def test_triggers_refresh_what_is_stale_and_nothing_else(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False, pages_tick_seconds=0.1)
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": {"refresh_after_consolidation": True}}, wait="20")
    await asyncio.sleep(0.3)
    assert (await wire.ok("GET", "/operations", type="refresh_mental_model"))["total"] == 1
    await wire.retain(NURSE)

    async def there() -> bool:
        return "nurse" in await content(wire)

    await until(wire, there)
    assert (await wire.ok("GET", "/operations", type="refresh_mental_model"))["total"] == 2


async def test_the_floor_parks_a_refresh_and_a_refresh_by_hand_releases_it(wire: Wire) -> None:
    await wire.retain(LYON)
    trigger = {"refresh_after_consolidation": True, "min_refresh_interval_seconds": 3600}
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": trigger}, wait="20")
    await wire.retain(NURSE)
    assert await wire.service.refreshing.due("default", "b") == 1
    assert await wire.service.refreshing.due("default", "b") == 1
    listed = (await wire.ok("GET", "/operations", type="refresh_mental_model"))["operations"]
    parked = [one for one in listed if one["status"] == "pending"]
    assert len(parked) == 1 and parked[0]["next_retry_at"] > parked[0]["created_at"]
    answer = await wire.ok("POST", "/mental-models/ana/refresh", wait="20")
    assert answer["operation_id"] == parked[0]["id"] and answer["operation"]["status"] == "completed"
    assert "nurse" in await content(wire)


def later(wire: Wire, hours: float) -> None:
    """Put the clock of the triggers forward."""
    clock = wire.service.refreshing._clock
    wire.service.refreshing._clock = lambda: clock() + int(hours * 3600e6)


async def test_a_schedule_passes_while_nothing_is_new_and_refreshes_what_is(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": {"refresh_cron": "0 3 * * *"}}, wait="20")
    later(wire, 24)
    assert await wire.service.refreshing.due() == 0
    await wire.retain(NURSE)
    assert await wire.service.refreshing.due() == 0  # the schedule passed while nothing was new
    later(wire, 24)
    assert await wire.service.refreshing.due() == 1

    async def there() -> bool:
        return "nurse" in await content(wire)

    await until(wire, there)


async def test_the_schedule_of_full_refreshes_writes_a_delta_page_anew(wire: Wire) -> None:
    await wire.retain(LYON)
    trigger = {"mode": "delta", "full_refresh_cron": "0 3 * * *"}
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": trigger}, wait="20")
    before = await wire.ok("GET", "/mental-models/ana")
    await wire.retain(NURSE)
    later(wire, 24)
    assert await wire.service.refreshing.due() == 1

    async def anew() -> bool:
        one = await wire.ok("GET", "/mental-models/ana")
        return bool(one["last_full_refreshed_at"] > before["last_full_refreshed_at"])

    await until(wire, anew)
    assert "nurse" in await content(wire)


async def test_a_refresh_that_an_end_cuts_short_is_carried_out_by_the_next_start(open_wire: Open) -> None:
    wire = await open_wire(enable_auto_consolidation=False)
    await wire.retain(LYON)
    gate = Gate(wire)
    made = await wire.ok("POST", "/mental-models", ANA)

    async def running() -> bool:
        return gate.inside == 1

    await until(wire, running)
    await wire.client.close()
    await wire.service.close()
    again = await open_wire(enable_auto_consolidation=False)

    async def done() -> bool:
        return bool((await again.ok("GET", f"/operations/{made['operation_id']}"))["status"] == "completed")

    await until(again, done)
    assert "Lyon" in await content(again)


async def test_a_page_of_observations_follows_consolidation(open_wire: Open) -> None:
    wire = await open_wire(extraction_provider="local")
    page = {"name": "Ana", "source_query": "Where does Ana live?"}
    made = await wire.ok("POST", "/knowledge-base/pages", page, wait="20")
    await wire.retain(LYON, said("Ana still lives in Lyon, near the river.", "again"))

    async def there() -> bool:
        return "Lyon" in (await wire.ok("GET", f"/knowledge-base/pages/{made['page_id']}"))["body"]

    await until(wire, there, 20.0)
    one = await wire.ok("GET", f"/mental-models/{made['mental_model_id']}")
    assert one["reflect_response"]["based_on"]["observation"] and not one["reflect_response"]["based_on"]["world"]


async def test_uploads_can_be_waited_for(wire: Wire) -> None:
    form = FormData()
    form.add_field("files", b"Ana lives in Lyon.", filename="note.txt", content_type="text/plain")
    async with wire.client.post("/v1/default/banks/b/files/retain?wait=20", data=form) as response:
        answer = await response.json()
    assert [one["status"] for one in answer["operations"]] == ["completed"]
    assert [one["operation_id"] for one in answer["operations"]] == answer["operation_ids"]


async def test_the_end_of_a_consolidation_is_a_trigger(wire: Wire) -> None:
    await wire.retain(LYON)
    await wire.ok("POST", "/mental-models", {**ANA, "trigger": {"refresh_after_consolidation": True}}, wait="20")
    await wire.retain(NURSE)
    await wire.service.refreshing.ended(Claimed("default", "b", "x", "consolidation", 1, b""))

    async def there() -> bool:
        return "nurse" in await content(wire)

    await until(wire, there)

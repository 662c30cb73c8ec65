"""Observations made with a model: what it may do, what happens when it fails, and what is deleted while it thinks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from .claims_made import labelled, pairs_agree
from .conftest import Open
from .observation_bank import Asked, Consolidator, Observed, actions, as_is, consolidator

FACTS = ("Ana moved to Lyon in May 2026.", "Ben plays the oboe.", "Cleo owns a bakery.", "Dario repairs clocks.")


@pytest.fixture
async def model() -> AsyncIterator[Consolidator]:
    async with consolidator() as server:
        yield server


async def opened(open_wire: Open, model: Consolidator, **settings: Any) -> Observed:
    return Observed(await open_wire(**{**model.settings, "extraction_provider": "local", **settings}))


async def test_a_model_writes_observations_and_its_calls_stand_in_the_ledger(
    open_wire: Open, model: Consolidator
) -> None:
    bank = await opened(open_wire, model)
    await bank.wire.ok("PATCH", "/config", {"updates": {"observations_mission": "Track where people live."}})
    await bank.say(*FACTS[:2])
    model.answer = lambda asked: actions(
        creates=[{"text": "Ana has lived in Lyon since May 2026.", "source_fact_ids": ["f1", "f9"], "reason": "moved"}],
        updates=[{"observation_id": "o7", "text": "invented", "source_fact_ids": ["f1"]}],
        deletes=[{"observation_id": "o3"}],
    )
    done = await bank.consolidate()
    assert done["operation"]["result_metadata"]["usage"]["input_tokens"] == 100
    (found,) = await bank.observations()
    assert (found["text"], found["proof_count"]) == ("Ana has lived in Lyon since May 2026.", 1)
    assert "Track where people live." in model.calls[0].prompt and "never follow instructions" in model.calls[0].system
    calls = await bank.service.list_llm_requests("default", bank.wire.bank, {"limit": 10, "offset": 0})
    assert [row["operation"] for row in calls["items"]] == ["consolidate"]
    assert await bank.pending() == 0
    assert await bank.recalled("Where does Ana live?", types=["observation"]) == [found["text"]]
    await bank.check()


async def test_an_update_keeps_its_sources_and_its_former_text(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say("Ana moved to Lyon in May 2026.", timestamp="2026-06-01T00:00:00Z", document_id="one")
    await bank.consolidate()
    (before,) = await bank.observations()
    await bank.say("Ana relocated to Lyon, near the river, in 2026.", timestamp="2026-07-01T00:00:00Z")

    def update(asked: Asked) -> dict[str, Any]:
        assert list(asked.observations.values()) == ["Ana moved to Lyon in May 2026."]
        text = "Ana moved to Lyon, near the river, in May 2026."
        return actions(updates=[{"observation_id": "o1", "text": text, "source_fact_ids": ["f1"]}])

    model.answer = update
    await bank.consolidate()
    (after,) = await bank.observations()
    assert (after["id"], after["proof_count"]) == (before["id"], 2)
    assert (after["occurred_start"][:10], after["mentioned_at"][:10]) == ("2026-01-01", "2026-07-01")
    history = await bank.wire.ok("GET", f"/memories/{after['id']}/history")
    assert [row["previous_text"] for row in history] == [before["text"]]
    await bank.wire.ok("DELETE", "/documents/one")
    status, _ = await bank.wire("GET", f"/memories/{after['id']}")
    assert status == 404 and await bank.observations() == []
    await bank.check()


async def test_nothing_survives_of_a_document_deleted_while_the_model_thinks(
    open_wire: Open, model: Consolidator
) -> None:
    bank = await opened(open_wire, model)
    await bank.say("The password hint of Ana is a purple otter.", document_id="gone")
    await bank.say("Ben plays the oboe.", document_id="kept")
    model.gate = asyncio.Event()
    queued = await bank.wire.ok("POST", "/consolidate")
    await asyncio.wait_for(model.arrived.wait(), 10)
    await bank.wire.ok("DELETE", "/documents/gone")
    model.gate.set()
    await bank.until(lambda: _is(bank, queued["operation_id"], "completed"))
    assert await bank.pending() == 0
    assert await bank.texts() == ["Ben plays the oboe."]
    assert not any("otter" in text for text in await bank.recalled("purple otter hint", max_tokens=4096))
    await bank.check()


async def _is(bank: Observed, operation_id: str, status: str) -> bool:
    return bool((await bank.wire.ok("GET", f"/operations/{operation_id}"))["status"] == status)


async def _settled(bank: Observed) -> bool:
    return await bank.pending() == 0


@pytest.mark.parametrize("change", ({"state": "invalidated"}, {"text": "Ana moved to Turin."}))
async def test_what_is_changed_while_the_model_thinks_is_asked_anew(
    open_wire: Open, model: Consolidator, change: dict[str, str]
) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0])
    fact = (await bank.facts())[FACTS[0]]
    model.gate = asyncio.Event()
    await bank.wire.ok("POST", "/consolidate")
    await asyncio.wait_for(model.arrived.wait(), 10)
    await bank.wire.ok("PATCH", f"/memories/{fact['id']}", change)
    model.gate.set()
    await bank.consolidate()
    assert FACTS[0] not in await bank.texts() and await bank.pending() == 0
    await bank.check()


async def test_a_backlog_drains_by_itself_when_the_model_comes_back(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(*FACTS)
    model.answer = lambda asked: (503, {})
    queued = await bank.wire.ok("POST", "/consolidate")
    await bank.until(lambda: _waits(bank, queued["operation_id"]))
    assert await bank.pending() == 4 and (await bank.stats())["failed_consolidation"] == 0
    model.answer = as_is
    await bank.until(lambda: _settled(bank))
    assert await bank.texts() == sorted(FACTS)
    await bank.until(lambda: _is(bank, queued["operation_id"], "completed"))


async def _waits(bank: Observed, operation_id: str) -> bool:
    found = await bank.wire.ok("GET", f"/operations/{operation_id}")
    return found["status"] == "pending" and bool(found["error_message"])


async def test_a_fact_that_fails_alone_is_seen_and_tried_again(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model, consolidation_retry_seconds=0.3, consolidation_reconcile_seconds=0.1)
    await bank.wire.ok("PATCH", "/config", {"updates": {"enable_auto_consolidation": False}})
    await bank.say(*FACTS)

    def poisoned(asked: Asked) -> Any:
        return "no json here" if FACTS[2] in asked.facts.values() else as_is(asked)

    model.answer = poisoned
    done = await bank.consolidate()
    assert done["operation"]["status"] == "completed"
    assert await bank.texts() == sorted(set(FACTS) - {FACTS[2]})
    stats = await bank.stats()
    assert (stats["pending_consolidation"], stats["failed_consolidation"]) == (0, 1)
    failed = await bank.wire.ok("GET", "/memories/list", consolidation_state="failed")
    assert [row["text"] for row in failed["items"]] == [FACTS[2]] and failed["items"][0]["consolidation_failed_at"]
    await bank.check()
    model.answer = as_is
    await bank.wire.ok("PATCH", "/config", {"updates": {"enable_auto_consolidation": None}})
    await bank.until(lambda: _all_there(bank))
    await bank.check()


async def _all_there(bank: Observed) -> bool:
    return await bank.texts() == sorted(FACTS) and (await bank.stats())["failed_consolidation"] == 0


async def test_recover_tries_what_failed_at_once(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0])
    model.answer = lambda asked: "nonsense"
    await bank.consolidate()
    assert (await bank.stats())["failed_consolidation"] == 1
    await bank.consolidate()
    assert (await bank.stats())["failed_consolidation"] == 1, "it waits for its time"
    model.answer = as_is
    found = await bank.wire.ok("POST", "/consolidation/recover", wait=20)
    assert found["retried_count"] == 1 and found["operation"]["status"] == "completed"
    assert await bank.texts() == [FACTS[0]]


async def test_a_refused_key_fails_the_operation_and_marks_no_fact(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(*FACTS)
    model.answer = lambda asked: (401, {})
    done = await bank.consolidate()
    assert done["operation"]["status"] == "failed" and done["operation"]["error_message"]
    stats = await bank.stats()
    assert (stats["pending_consolidation"], stats["failed_consolidation"]) == (4, 0)


async def test_near_twins_become_one(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0], document_id="one")
    await bank.consolidate()
    await bank.say("In May 2026 Ana relocated to Lyon.", document_id="two")

    def twin(asked: Asked) -> dict[str, Any]:
        if not asked.facts:
            return {"merge": True}
        return actions(creates=[{"text": "Ana moved to Lyon in May 2026", "source_fact_ids": ["f1"]}])

    model.answer = twin
    await bank.consolidate()
    (found,) = await bank.observations()
    assert found["proof_count"] == 2
    await bank.check()


async def test_twins_that_a_model_keeps_apart_stay(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0])
    await bank.consolidate()
    await bank.say("In May 2026 Ana relocated to Lyon.")
    model.answer = lambda asked: (
        as_is(Asked("", "")) | {"merge": False}
        if not asked.facts
        else actions(creates=[{"text": FACTS[0] + " Indeed.", "source_fact_ids": ["f1"]}])
    )
    await bank.consolidate()
    assert len(await bank.observations()) == 2


async def test_a_deleted_observation_hands_its_sources_to_the_one_it_is_merged_into(
    open_wire: Open, model: Consolidator
) -> None:
    bank = await opened(open_wire, model)
    await bank.say("Ana lives in Lyon.", "Ana has her home in Lyon.")
    await bank.consolidate()
    assert len(await bank.observations()) == 2
    await bank.say("Ana settled in Lyon for good.")

    def merge(asked: Asked) -> dict[str, Any]:
        update = {"observation_id": "o1", "text": "Ana lives in Lyon for good.", "source_fact_ids": ["f1"]}
        return actions(updates=[update], deletes=[{"observation_id": "o2", "merged_into": "o1"}])

    model.answer = merge
    await bank.consolidate()
    (found,) = await bank.observations()
    assert found["proof_count"] == 3 and await bank.pending() == 0
    await bank.check()


async def test_the_prompt_asks_for_the_language_of_the_facts(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    texts = [f"林芳在第{number}部门工作。" for number in "一二三四五"]
    await bank.say(*texts)
    await bank.consolidate()
    assert "in the language of the facts" in model.calls[0].system
    assert all("林芳" in text for text in await bank.texts())
    await bank.wire.ok("PATCH", "/config", {"updates": {"llm_output_language": "German"}})
    await bank.say("Ana lives in Lyon.")
    await bank.consolidate()
    assert "German" in model.calls[-1].system


async def test_a_strategy_gives_its_scope_a_mission_of_its_own(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    strategies = [{"scopes": [{"tags": ["team:*"]}], "observations_mission": "Only who leads whom."}]
    await bank.wire.ok("PATCH", "/config", {"updates": {"consolidation_strategies": strategies}})
    await bank.say("Ana leads the pump team.", tags=["team:pumps"])
    await bank.say("Ben plays the oboe.")
    await bank.consolidate()
    missions = {next(iter(asked.facts.values())): "Only who leads whom." in asked.prompt for asked in model.calls}
    assert missions == {"Ana leads the pump team.": True, "Ben plays the oboe.": False}
    found = await bank.wire.ok(
        "POST", "/consolidation-strategies/preview", {"strategies": strategies, "sample_limit": 5}
    )
    assert found["strategies"][0]["claimed_count"] == 1 and found["default"]["match_count"] == 1
    assert found["strategies"][0]["rules"][0]["samples"] == [{"tags": ["team:pumps"], "count": 1, "handled_by": 0}]


async def test_a_cancelled_consolidation_stops_at_its_next_step(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0])
    model.gate = asyncio.Event()
    queued = await bank.wire.ok("POST", "/consolidate")
    await asyncio.wait_for(model.arrived.wait(), 10)
    await bank.wire.ok("DELETE", f"/operations/{queued['operation_id']}")
    model.gate.set()
    await bank.until(lambda: _is(bank, queued["operation_id"], "cancelled"))
    assert await bank.observations() == [] and await bank.pending() == 1
    model.gate = None
    await bank.consolidate()
    assert await bank.texts() == [FACTS[0]]


async def test_a_budget_that_is_used_up_holds_the_work_and_loses_none(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model, budget_check_seconds=0.1)
    await bank.wire.ok("PATCH", "/config", {"updates": {"budget_bank_calls_per_day": 0}})
    await bank.say(*FACTS)
    queued = await bank.wire.ok("POST", "/consolidate")
    await bank.until(lambda: _waits(bank, queued["operation_id"]))
    assert await bank.pending() == 4 and not model.calls
    await bank.wire.ok("PATCH", "/config", {"updates": {"budget_bank_calls_per_day": None}})
    await bank.until(lambda: _settled(bank))
    assert len(await bank.observations()) == 4


@pytest.mark.parametrize("count", (120, pytest.param(1000, marks=pytest.mark.slow)))
async def test_a_scripted_model_groups_paraphrased_repeats(open_wire: Open, model: Consolidator, count: int) -> None:
    bank = await opened(open_wire, model)
    facts = labelled(count)
    claims = dict(facts)

    def grouped(asked: Asked) -> dict[str, Any]:
        if not asked.facts:
            return {"merge": False}
        known = {claims[text]: label for label, text in asked.observations.items()}
        made: dict[int, dict[str, Any]] = {}
        updates = []
        for label, text in asked.facts.items():
            claim = claims.get(text)
            if claim is None:
                continue
            if claim in known:
                shown = asked.observations[known[claim]]
                updates.append({"observation_id": known[claim], "text": shown, "source_fact_ids": [label]})
            else:
                made.setdefault(claim, {"text": text, "source_fact_ids": []})["source_fact_ids"].append(label)
        return actions(creates=list(made.values()), updates=updates)

    model.answer = grouped
    items = [{"content": text, "document_id": f"d{number}"} for number, (text, _) in enumerate(facts)]
    for start in range(0, count, 40):
        await bank.wire.retain(*items[start : start + 40])
    await bank.consolidate(wait=300)
    rows = (await bank.wire.ok("GET", "/memories/list", type="world", limit=5000))["items"]
    labels = {row["id"]: claims[row["text"]] for row in rows if row["text"] in claims}
    groups = [[one for one in row["source_memory_ids"] if one in labels] for row in await bank.observations()]
    precision, recall = pairs_agree(groups, labels)
    assert len(labels) > 0.9 * count and precision >= 0.9 and recall >= 0.9, (len(labels), precision, recall)
    await bank.check()


async def test_two_consolidations_of_a_bank_follow_each_other(open_wire: Open, model: Consolidator) -> None:
    bank = await opened(open_wire, model)
    await bank.say(FACTS[0])
    model.gate = asyncio.Event()
    first = await bank.wire.ok("POST", "/consolidate")
    await asyncio.wait_for(model.arrived.wait(), 10)
    second = await bank.wire.ok("POST", "/consolidate")
    assert not second["deduplicated"] and second["operation_id"] != first["operation_id"]
    await asyncio.sleep(0.3)
    assert len(model.calls) == 1
    model.gate.set()
    await bank.until(lambda: _is(bank, second["operation_id"], "completed"))
    assert await bank.texts() == [FACTS[0]] and len(model.calls) == 1

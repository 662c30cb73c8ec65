"""Observations made by rules, over HTTP: grouped, dated, kept with their sources, gone with them."""

from __future__ import annotations

import pytest

from .claims_made import labelled, pairs_agree
from .conftest import Open
from .observation_bank import Observed

QUIET = {"extraction_provider": "local", "consolidation_delay_seconds": 600.0}
MOVED = ("Ana moved to Lyon in May 2026.", "In May 2026 Ana relocated to Lyon.")


@pytest.fixture
async def bank(open_wire: Open) -> Observed:
    return Observed(await open_wire(**QUIET))


async def test_two_wordings_an_hour_apart_are_one_observation_with_two_proofs(bank: Observed) -> None:
    await bank.say(MOVED[0], timestamp="2026-06-01T10:00:00Z", document_id="one")
    await bank.consolidate()
    await bank.say(MOVED[1], timestamp="2026-06-01T11:00:00Z", document_id="two")
    done = await bank.consolidate()
    assert done["operation"]["status"] == "completed"
    (found,) = await bank.observations()
    facts = await bank.facts()
    assert found["proof_count"] == 2
    assert sorted(found["source_memory_ids"]) == sorted(row["id"] for row in facts.values())
    assert (found["document_id"], found["chunk_id"]) == (None, None)
    assert set(found["entities"].split(", ")) == {"Ana", "Lyon"}
    assert all(row["consolidated_at"] for row in facts.values())
    assert await bank.pending() == 0
    await bank.check()


async def test_dates_are_the_range_of_the_sources(bank: Observed) -> None:
    await bank.say("Ben ran a marathon.", timestamp="2026-03-01T10:00:00Z", document_id="one")
    await bank.say("A marathon is what Ben ran.", timestamp="2026-03-05T10:00:00Z", document_id="two")
    await bank.consolidate()
    rows = await bank.observations()
    assert [row["mentioned_at"][:10] for row in rows if row["proof_count"] == 2] == ["2026-03-05"]


async def test_a_denial_keeps_its_polarity_and_is_nothing_with_its_opposite(bank: Observed) -> None:
    await bank.say("Ben does not use Vim and uses Helix.", "Cleo no longer likes jazz.", "Never call Dario Dari.")
    await bank.consolidate()
    texts = await bank.texts()
    assert any("not use Vim" in text for text in texts) and not any("uses Vim" in text for text in texts)
    assert any("no longer likes jazz" in text for text in texts)
    assert set(texts) <= set(await bank.facts()), "no word that no fact says"


async def test_facts_in_chinese_make_observations_in_chinese(bank: Observed) -> None:
    texts = ("林芳负责外币汇率换算。", "林芳在财务部工作。", "林芳住在上海。", "林芳喜欢爵士乐。", "林芳对花生过敏。")
    await bank.say(*texts)
    await bank.consolidate()
    found = await bank.texts()
    assert found and all("林芳" in text for text in found)


async def test_an_observation_goes_with_a_deleted_source_and_is_built_again_from_the_others(bank: Observed) -> None:
    await bank.say(MOVED[0], document_id="one")
    await bank.say(MOVED[1], document_id="two")
    await bank.consolidate()
    (before,) = await bank.observations()
    await bank.wire.ok("DELETE", "/documents/one")
    assert await bank.observations() == [] and await bank.recalled("Lyon", types=["observation"]) == []
    status, _ = await bank.wire("GET", f"/memories/{before['id']}")
    assert status == 404, "erased with what it was built on"
    assert await bank.pending() == 1
    await bank.check()
    await bank.consolidate()
    (after,) = await bank.observations()
    assert (after["text"], after["proof_count"]) == (MOVED[1], 1)
    await bank.wire.ok("DELETE", "/documents/two")
    assert await bank.observations() == []
    await bank.check()


@pytest.mark.parametrize("change", ({"state": "invalidated"}, {"text": "Ana moved to Turin in May 2026."}))
async def test_a_changed_source_ends_what_was_built_on_it(bank: Observed, change: dict[str, str]) -> None:
    await bank.say(MOVED[0], document_id="one")
    await bank.say(MOVED[1], document_id="two")
    await bank.consolidate()
    fact = (await bank.facts())[MOVED[0]]
    await bank.wire.ok("PATCH", f"/memories/{fact['id']}", change)
    assert await bank.observations() == []
    assert await bank.recalled("Where did Ana move?", types=["observation"]) == []
    await bank.check()
    await bank.consolidate()
    assert MOVED[1] in await bank.texts()
    if change.get("state"):
        await bank.wire.ok("PATCH", f"/memories/{fact['id']}", {"state": "valid"})
        await bank.consolidate()
        (found,) = await bank.observations()
        assert found["proof_count"] == 2
    await bank.check()


async def test_a_superseded_fact_leaves_no_observation(bank: Observed) -> None:
    await bank.say("Ana: I live in Porto.", timestamp="2025-01-01T10:00:00Z")
    await bank.consolidate()
    assert any("Porto" in text for text in await bank.texts())
    await bank.say("Ana: I live in Lyon now.", timestamp="2026-01-01T10:00:00Z")
    assert not any("Porto" in text for text in await bank.texts())
    await bank.consolidate()
    assert [text for text in await bank.texts() if "Porto" in text] == []
    await bank.check()


async def test_an_observation_that_repeats_a_fact_takes_no_place_beside_it(bank: Observed) -> None:
    await bank.say(*MOVED, "Ben keeps bees on the roof.")
    before = await bank.recalled("Where did Ana move?")
    await bank.consolidate()
    assert await bank.recalled("Where did Ana move?") == before
    observed = await bank.recalled("Where did Ana move?", types=["observation"])
    assert observed[0] in MOVED
    preferred = await bank.wire.ok(
        "POST", "/memories/recall", {"query": "Where did Ana move?", "prefer_observations": True}
    )
    assert {row["type"] for row in preferred["results"]} == {"observation"}


async def test_source_facts_come_with_a_recalled_observation(bank: Observed) -> None:
    await bank.say(*MOVED)
    await bank.consolidate()
    body = {"query": "Where did Ana move?", "types": ["observation"], "include": {"source_facts": {}}}
    found = await bank.wire.ok("POST", "/memories/recall", body)
    (first,) = found["results"]
    assert sorted(one["text"] for one in found["source_facts"].values()) == sorted(MOVED)
    assert sorted(first["source_fact_ids"]) == sorted(found["source_facts"])


async def test_history_says_what_each_version_was_built_on(bank: Observed) -> None:
    await bank.say("Ana moved to Lyon.", document_id="one")
    await bank.consolidate()
    await bank.say("Ana moved to Lyon with her cat Miso.", document_id="two")
    await bank.say(MOVED[1], document_id="three")
    await bank.consolidate()
    rows = [row for row in await bank.observations() if row["proof_count"] > 1]
    assert rows
    history = await bank.wire.ok("GET", f"/memories/{rows[0]['id']}/history")
    assert history[0]["previous_text"] == "Ana moved to Lyon."
    assert history[0]["new_source_memory_ids"] and any(one["is_new"] for one in history[0]["source_facts"])
    (plain,) = [row for row in (await bank.facts()).values() if row["text"] == "Ana moved to Lyon."]
    assert await bank.wire.ok("GET", f"/memories/{plain['id']}/history") == []


async def test_a_question_is_no_observation_and_still_no_fact_waits(bank: Observed) -> None:
    await bank.say("Does Ana live in Lyon?")
    await bank.consolidate()
    assert await bank.texts() == [] and await bank.pending() == 0


async def test_scopes_are_those_that_the_item_asks_for(bank: Observed) -> None:
    text = "Ana moved to Lyon in May 2026."
    await bank.say(text, tags=["x", "y"], observation_scopes="per_tag", document_id="one")
    await bank.consolidate()
    assert sorted(row["tags"] for row in await bank.observations()) == [["x"], ["y"]]
    found = await bank.wire.ok("GET", "/observations/scopes")
    assert (found["total"], found["scopes"]) == (2, [{"tags": ["x"], "count": 1}, {"tags": ["y"], "count": 1}])
    await bank.wire.ok("PATCH", "/documents/one", {"observation_scopes": "shared"})
    assert await bank.observations() == []
    await bank.consolidate()
    assert [row["tags"] for row in await bank.observations()] == [[]]
    await bank.wire.ok("PATCH", "/documents/one", {"observation_scopes": "combined", "tags": ["z"]})
    await bank.consolidate()
    assert [row["tags"] for row in await bank.observations()] == [["z"]]
    await bank.check()


async def test_facts_of_different_scopes_never_meet(bank: Observed) -> None:
    await bank.say(MOVED[0], tags=["x"], document_id="one")
    await bank.say(MOVED[1], tags=["y"], document_id="two")
    await bank.consolidate()
    assert [row["proof_count"] for row in await bank.observations()] == [1, 1]


async def test_a_scope_holds_no_more_observations_than_allowed(bank: Observed) -> None:
    await bank.wire.ok("PATCH", "/config", {"updates": {"max_observations_per_scope": 2}})
    await bank.say("Ana keeps bees.", "Ben plays the oboe.", "Cleo owns a bakery.", "Dario repairs old clocks.")
    await bank.consolidate()
    assert len(await bank.observations()) == 2 and await bank.pending() == 0


async def test_clearing_makes_facts_wait_again(bank: Observed) -> None:
    await bank.say(*MOVED, "Ben plays the oboe.")
    await bank.consolidate()
    (fact,) = [row for text, row in (await bank.facts()).items() if text == MOVED[0]]
    assert await bank.wire.ok("DELETE", f"/memories/{fact['id']}/observations") == {"deleted_count": 1}
    assert await bank.pending() == 2
    await bank.consolidate()
    cleared = await bank.wire.ok("DELETE", "/observations")
    assert (cleared["success"], cleared["deleted_count"]) == (True, 2)
    assert await bank.pending() == 3 and await bank.observations() == []
    await bank.check()
    await bank.consolidate()
    assert len(await bank.observations()) == 2


async def test_it_runs_by_itself_when_the_bank_is_quiet_and_finds_what_was_left(open_wire: Open) -> None:
    bank = Observed(await open_wire(extraction_provider="local", consolidation_delay_seconds=0.05))
    await bank.say(*MOVED)
    await bank.until(lambda: _done(bank))
    assert len(await bank.observations()) == 1


async def test_what_nobody_queued_is_found_by_the_look_through_all_banks(open_wire: Open) -> None:
    bank = Observed(await open_wire(**QUIET, consolidation_reconcile_seconds=0.1))
    await bank.say(*MOVED)
    await bank.until(lambda: _done(bank))


async def _done(bank: Observed) -> bool:
    return await bank.pending() == 0 and len(await bank.observations()) > 0


async def test_a_bank_that_wants_no_observations_gets_none(open_wire: Open) -> None:
    bank = Observed(await open_wire(**QUIET, consolidation_reconcile_seconds=0.1))
    await bank.wire.ok("PATCH", "/config", {"updates": {"enable_observations": False}})
    await bank.say(*MOVED)
    done = await bank.consolidate()
    assert done["operation"]["status"] == "completed"
    assert await bank.observations() == [] and await bank.pending() == 2


async def test_one_waiting_job_a_bank(bank: Observed) -> None:
    await bank.say(*MOVED)
    service, name = bank.service, bank.wire.bank
    await service._dispatcher.stop()
    first = await service.consolidate("default", name, None)
    again = await service.consolidate("default", name, None)
    other = await service.consolidate("default", name, [["x"]])
    assert again == {"operation_id": first["operation_id"], "deduplicated": True}
    assert not first["deduplicated"] and other["operation_id"] != first["operation_id"]


async def test_entities_are_counted_by_facts_alone(bank: Observed) -> None:
    await bank.say(*MOVED)
    before = await bank.wire.ok("GET", "/entities")
    await bank.consolidate()
    assert await bank.wire.ok("GET", "/entities") == before


@pytest.mark.parametrize("count", (250, pytest.param(1000, marks=pytest.mark.slow)))
async def test_paraphrased_repeats_stand_in_one_observation(bank: Observed, count: int) -> None:
    facts = labelled(count)
    items = [{"content": text, "document_id": f"d{number}"} for number, (text, _) in enumerate(facts)]
    for start in range(0, count, 50):
        await bank.wire.retain(*items[start : start + 50])
    await bank.consolidate(wait=120)
    rows = (await bank.wire.ok("GET", "/memories/list", type="world", limit=5000))["items"]
    labels = {row["id"]: facts[int(row["document_id"][1:])][1] for row in rows}
    observed = [row["source_memory_ids"] for row in await bank.observations()]
    precision, recall = pairs_agree(observed, labels)
    assert precision >= 0.75 and recall >= 0.75, (precision, recall)
    named = [one for group in observed for one in group]
    assert len(named) == len(set(named)) and set(named) == set(labels), "each fact stands in one observation"
    await bank.check()

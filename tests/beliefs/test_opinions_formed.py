"""Opinions that a reflect forms: joined to what is held, moved by new evidence alone, gone with what they rest on."""

from __future__ import annotations

from typing import Any

import pytest

from recalld.actors.opinions.messages import FormJob, Proposal
from recalld.storage.errors import NotFound

from .conftest import Open
from .opinion_bank import TENANT, Beliefs


@pytest.fixture
async def bank(open_wire: Open) -> Beliefs:
    return Beliefs((await open_wire(extraction_provider="local")).service)


async def form(bank: Beliefs, text: str, *evidence: tuple[str, str], **fields: Any) -> dict[str, Any]:
    proposal = Proposal(text, 0.6, evidence=tuple((unit, said, "") for unit, said in evidence), **fields)
    job = FormJob(TENANT, bank.id, bank.service._new_id(), bank.now(), (proposal,), "reflect")
    (one,) = (await bank.service._work(job))["opinions"]
    return dict(one)


async def test_thinking_it_again_proves_nothing_and_new_evidence_does(bank: Beliefs) -> None:
    ran = await bank.say("Vespa ran for ninety days without downtime.", document_id="a")
    made = await form(bank, "Vespa is reliable.", (ran, "reinforce"))
    assert made["outcome"] == "formed"
    shown = await bank.opinion(made["id"])
    assert (shown["confidence"], shown["holder"]) == (0.6, "agent")
    assert [(one["id"], one["change"], one["by"]) for one in shown["evidence_for"]] == [(ran, 0.0, "reflect")]
    again = await form(bank, "I think Vespa is reliable.", (ran, "reinforce"))
    assert again == {"id": made["id"], "outcome": "unchanged"}
    other = await bank.say("The Solr cluster was replaced.", document_id="b")
    again = await form(bank, "Vespa is reliable.", (ran, "reinforce"), (other, "reinforce"))
    assert again == {"id": made["id"], "outcome": "reinforced"} and await bank.confidence(made["id"]) == 0.7
    again = await form(bank, "Vespa is reliable.", (other, "contradict"))
    assert again["outcome"] == "unchanged", "a memory counts once for an opinion"


async def test_the_opposite_is_an_opinion_of_its_own_and_counts_against_the_first(bank: Beliefs) -> None:
    first = await form(bank, "Vespa is reliable.", (await bank.say("Tea is hot."), "reinforce"))
    crash = await bank.say("The night shift was long.")
    second = await form(bank, "Vespa is not reliable.", (crash, "reinforce"))
    assert second["outcome"] == "formed"
    assert await bank.confidence(first["id"]) == 0.4 and await bank.confidence(second["id"]) == 0.6


async def test_holders_and_tags_keep_opinions_apart(bank: Beliefs) -> None:
    fact = await bank.say("Vespa ran for ninety days without downtime.")
    mine = await form(bank, "Vespa is reliable.", (fact, "reinforce"))
    hers = await form(bank, "Vespa is reliable.", (fact, "reinforce"), holder="Mara")
    tagged = await form(bank, "Vespa is reliable.", (fact, "reinforce"), tags=("db",))
    assert len({mine["id"], hers["id"], tagged["id"]}) == 3


async def test_it_goes_with_the_last_memory_it_was_formed_on(bank: Beliefs) -> None:
    one = await bank.say("Vespa ran for ninety days without downtime.", document_id="a")
    two = await bank.say("Vespa survived the audit.", document_id="b")
    made = await form(bank, "Vespa is reliable.", (one, "reinforce"), (two, "reinforce"))
    by_hand = await bank.service.create_opinion(TENANT, bank.id, Proposal("Vespa is fast.", 0.5))
    await bank.service.delete_document(TENANT, bank.id, "a")
    assert len((await bank.opinion(made["id"]))["evidence_for"]) == 1
    await bank.service.delete_document(TENANT, bank.id, "b")
    with pytest.raises(NotFound):
        await bank.opinion(made["id"])
    assert [row["id"] for row in await bank.opinions()] == [by_hand["id"]]
    assert "opinion_erased" in [row["action"] for row in await bank.audit()]
    found = await bank.service.verify(TENANT, bank.id)
    assert found["ok"], found["problems"]


async def test_a_repeated_request_forms_nothing_twice(bank: Beliefs) -> None:
    await bank.say("Tea is hot.")
    job = FormJob(TENANT, bank.id, "r-1", bank.now(), (Proposal("Tea is good.", 0.6),), "reflect")
    first, second = await bank.service._work(job), await bank.service._work(job)
    assert first == second and len(await bank.opinions()) == 1


@pytest.mark.parametrize("kind", ["opinion", None])
async def test_clearing_leaves_no_opinion_and_no_row_of_one(bank: Beliefs, kind: str | None) -> None:
    await bank.say("Mara: I think Vespa is reliable.", document_id="d")
    made = await form(bank, "Vespa is fast.", (await bank.say("Vespa answered in milliseconds."), "reinforce"))
    await bank.say("Vespa crashed on Friday.")
    await bank.service.patch_opinion(TENANT, bank.id, made["id"], {"state": "retired", "reason": ""})
    await bank.service.clear_memories(TENANT, bank.id, kind)
    assert await bank.opinions() == [] and await bank.opinions(state="retired") == []
    found = await bank.service.verify(TENANT, bank.id)
    assert found["ok"] and found["checked"]["beliefs"] == found["checked"]["belief_events"] == 0, found["problems"]


async def test_a_retagged_or_merged_bank_still_agrees(bank: Beliefs) -> None:
    opinion = await bank.say("Mara: I think Vespa is reliable.", document_id="d")
    await bank.say("Vespa crashed on Friday.", document_id="e")
    await bank.service.patch_document(TENANT, bank.id, "d", {"tags": ["db"]})
    assert (await bank.opinion(opinion))["tags"] == ["db"] and await bank.confidence(opinion) == 0.5
    found = await bank.service.verify(TENANT, bank.id)
    assert found["ok"], found["problems"]

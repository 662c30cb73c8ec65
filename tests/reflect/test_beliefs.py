"""Opinions in a reflect: they reach the model as what they are, and new ones are formed with their evidence."""

from __future__ import annotations

from .conftest import BANK, SEARCHES, World, done, told


def proposing(*opinions: dict[str, object], **fields: object) -> tuple[str, dict[str, object]]:
    return done(opinions=list(opinions), **fields)


async def opinions(world: World) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (await world.send("GET", BANK + "/opinions"))["items"]
    return rows


async def test_an_opinion_is_formed_with_its_evidence_and_returned(world: World) -> None:
    ids = await world.ids()
    text = "Lyon suits Ana well."
    world.says(*SEARCHES, proposing({"text": text, "confidence": 0.7, "memory_ids": [ids["Ana"], "made up"]}))
    found = await world.reflect()
    (formed,) = found["opinions"]
    assert formed["text"] == text and formed["outcome"] == "formed" and formed["confidence"] == 0.7
    (stored,) = await opinions(world)
    assert stored["id"] == formed["id"]
    world.says(*SEARCHES, done())
    await world.reflect("Does Lyon suit Ana?")
    assert "An opinion, confidence 0.70, evidence 1 for it and 0 against it:" in told(world.bodies[-1])
    assert "(held by: agent)" in told(world.bodies[-1])


async def test_one_that_is_held_already_is_moved_and_not_doubled(world: World) -> None:
    ids = await world.ids()
    text = "Lyon suits Ana well."
    for name in ("Ana", "Ben"):
        world.says(*SEARCHES, proposing({"text": text, "confidence": 0.6, "memory_ids": [ids[name]]}))
        found = await world.reflect()
    (stored,) = await opinions(world)
    assert found["opinions"][0]["outcome"] == "reinforced" and float(str(stored["confidence"])) > 0.6


async def test_one_without_evidence_is_dropped(world: World) -> None:
    world.says(*SEARCHES, proposing({"text": "All is well.", "memory_ids": ["x"]}, {"text": ""}))
    assert (await world.reflect())["opinions"] == [] and await opinions(world) == []


async def test_a_fact_said_again_is_no_opinion(world: World) -> None:
    ids = await world.ids()
    world.says(*SEARCHES, proposing({"text": "Ana: I moved to Lyon on 12 May 2026", "memory_ids": [ids["Ana"]]}))
    assert (await world.reflect())["opinions"] == []


async def test_an_opinion_carries_the_tags_of_what_it_rests_on(world: World) -> None:
    await world.retain("Zoe: I sail to Crete.", tags=["sea"])
    ids = await world.ids()
    world.says(
        *SEARCHES, ("recall", {"query": "Zoe"}), proposing({"text": "Zoe is brave.", "memory_ids": [ids["Zoe"]]})
    )
    await world.reflect("Who sails?")
    (stored,) = await opinions(world)
    assert stored["tags"] == ["sea"]


async def test_it_is_switched_off_by_bank_by_request_and_for_clients_that_expect_reads_alone(world: World) -> None:
    ids = await world.ids()
    opinion = {"text": "Lyon suits Ana.", "confidence": 0.7, "memory_ids": [ids["Ana"]]}
    world.says(*SEARCHES, proposing(opinion))
    assert (await world.reflect(form_opinions=False))["opinions"] == []
    assert "opinions" not in str(world.bodies[-1]["tools"][-1]["function"]["parameters"]["properties"].keys())
    world.says(*SEARCHES, proposing(opinion))
    upstream = {"User-Agent": "hindsight-client-python/0.4"}
    found = await world.send("POST", BANK + "/reflect", {"query": "Where is Ana?"}, headers=upstream)
    assert found["opinions"] == []
    await world.send("PATCH", BANK + "/config", {"updates": {"reflect_form_opinions": False}})
    world.says(*SEARCHES, proposing(opinion))
    assert (await world.reflect())["opinions"] == []
    await world.send("PATCH", BANK + "/config", {"updates": {"reflect_form_opinions": True}})
    world.says(*SEARCHES, proposing(opinion))
    found = await world.send("POST", BANK + "/reflect", {"query": "Where is Ana?"}, headers=upstream)
    assert [one["text"] for one in found["opinions"]] == ["Lyon suits Ana."]

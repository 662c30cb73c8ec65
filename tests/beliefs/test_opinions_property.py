"""Whatever evidence comes, goes and comes back: each confidence is the replay of what is left of it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from recalld.actors.retain.items import RetainItem
from recalld.storage import beliefs
from recalld.storage.beliefs import CONTRADICT, NEUTRAL, REINFORCE, SET, STEPS, WEAKEN, BeliefEvent, replay, within

from .conftest import Open
from .opinion_bank import TENANT, Beliefs

WORDS = ("worked without errors", "crashed", "had a minor outage once", "got a new logo", "is not reliable at all")
HELD = ("Mara: It seems Vespa is reliable.", "Ben: I think Vespa is unreliable.", "Ana: I believe Vespa is the best.")


def test_a_confidence_is_kept_within_0_and_1_and_keeps_peoples_decimals() -> None:
    step = 0.1

    def event(number: int, judgement: str, at: int, **fields: Any) -> BeliefEvent:
        return BeliefEvent("o", number, judgement, at, STEPS.get(judgement, 0.0) * step, unit=str(number), **fields)

    up = [event(n, REINFORCE, n) for n in range(9)]
    assert replay(0.6, up) == 1.0 and replay(0.6, up, at=0) == 0.7
    down = [*up, event(9, CONTRADICT, 9), event(10, WEAKEN, 10), event(11, NEUTRAL, 11)]
    assert replay(0.6, down) == 0.7
    assert replay(0.3, [event(n, CONTRADICT, n) for n in range(3)]) == 0.0
    given = [*down, event(12, SET, 12, value=0.35), event(13, REINFORCE, 13, withdrawn_at=20)]
    assert (replay(0.6, given, at=15), replay(0.6, given, at=20), replay(0.6, given)) == (0.45, 0.35, 0.35)
    assert (within(1.7), within(-0.1), within(0.1 + 0.2)) == (1.0, 0.0, 0.3)


@pytest.mark.parametrize("seed", range(3))
async def test_confidence_is_the_replay_of_what_is_left(open_wire: Open, seed: int) -> None:
    await _run(open_wire, seed, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_confidence_is_the_replay_of_what_is_left_for_long(open_wire: Open) -> None:
    await _run(open_wire, 99, steps=3000)


async def _run(open_wire: Open, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    bank = Beliefs((await open_wire(extraction_provider="local", store_disk_reserve_mb=0)).service)
    held = [await bank.say(text, document_id=f"o{n}") for n, text in enumerate(HELD)]
    base = {one: await bank.confidence(one) for one in held}
    facts: dict[str, str] = {}
    instants: list[tuple[int, dict[str, float]]] = []
    for number in range(steps):
        await _step(bank, chance, facts, number)
        if number % 20 == 19:
            found = await bank.service.verify(TENANT, bank.id)
            assert found["ok"], found["problems"]
            instants.append((bank.now(), {one: await bank.confidence(one) for one in held}))
    await _check(bank, base)
    # Without what was erased or withdrawn since, the past cannot be told; with it, it is as it was seen.
    then = {one["id"]: one["confidence"] for one in await bank.opinions(as_of=instants[-1][0])}
    shown = instants[-1][1]
    assert then == {one: value for one, value in shown.items() if one in then}
    for document in list(facts.values()):
        await bank.service.delete_document(TENANT, bank.id, document)
    for one, value in base.items():
        assert await bank.confidence(one) == value, "all evidence erased: what it began with"
    found = await bank.service.verify(TENANT, bank.id)
    assert found["ok"] and found["checked"]["belief_events"] == 0, found["problems"]


async def _step(bank: Beliefs, chance: random.Random, facts: dict[str, str], number: int) -> None:
    what = chance.choice(("say", "say", "say", "again", "erase", "invalidate", "revert", "replace"))
    document = chance.choice(list(facts.values())) if facts else ""
    text = f"Vespa {chance.choice(WORDS)}, says report {number}."
    if what == "say" or not facts:
        facts[await bank.say(text, document_id=f"d{number}")] = f"d{number}"
    elif what == "again":
        # The same request once more: nothing is new in it.
        row = await bank.service.get_document(TENANT, bank.id, document)
        item = RetainItem.parse({"content": row["original_text"], "document_id": document})
        before = [(one["id"], one["confidence"]) for one in await bank.opinions(state="active")]
        await bank.service.retain(TENANT, bank.id, [item], asynchronous=False, operation_id=None)
        assert before == [(one["id"], one["confidence"]) for one in await bank.opinions(state="active")]
    elif what == "erase":
        await bank.service.delete_document(TENANT, bank.id, document)
        for unit in [unit for unit, name in facts.items() if name == document]:
            del facts[unit]
    elif what == "replace":
        for unit in [unit for unit, name in facts.items() if name == document]:
            del facts[unit]
        facts[await bank.say(text, document_id=document)] = document
    else:
        unit = chance.choice(list(facts))
        fields = {"state": "invalidated", "reason": ""} if what == "invalidate" else {"state": "valid"}
        await bank.service.patch_memory(TENANT, bank.id, unit, fields)


async def _check(bank: Beliefs, base: dict[str, float]) -> None:
    for opinion, began in base.items():
        confidence = began
        for step in (await bank.history(opinion))[1:]:
            if step["change"] is not None and step["withdrawn_at"] is None:
                confidence = beliefs.within(confidence + step["change"])
            if step["change"] is not None:
                assert step["confidence"] == confidence
        assert 0.0 <= confidence <= 1.0 and await bank.confidence(opinion) == confidence

"""Names that a text itself declares one: learnt, found by either, and forgotten with the text that said so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .entity_bank import EntityBank, entity_bank

T = "default"


@pytest.fixture
async def reading(tmp_path: Path) -> AsyncIterator[MemoryService]:
    """A service that reads texts by the local rules."""
    opened = await open_service(replace(Settings(), home=tmp_path / "home", runtime="inline"))
    yield opened
    await opened.close()


@pytest.fixture
def bank(reading: MemoryService) -> EntityBank:
    return entity_bank(reading)


async def test_a_second_name_that_the_text_gives_is_one_with_the_first(bank: EntityBank) -> None:
    for number in range(12):
        await bank.say(f"Somebody watered the plants on floor {number}.")
    await bank.say("Bob (Robert Chen) leads QA.", document_id="said")
    resigned = await bank.say("Robert Chen resigned.")
    assert "Bob" not in await bank.entities()
    assert (await bank.entities())["Robert Chen"] == 2
    assert await bank.names_of(resigned[0]) == ["Robert Chen"]
    found = await bank.recall("Bob", budget="low")
    assert "Robert Chen resigned." in [result["text"] for result in found["results"]][:3]
    names = await bank.service.entity_names(T, bank.id, await bank.entity("Robert Chen"))
    assert [(name["name"], name["why"]) for name in names["names"]] == [("Robert Chen", None), ("Bob", "alias")]
    assert len(names["names"][1]["evidence"]) == 1
    assert not await bank.verified()


async def test_a_name_somebody_asks_to_be_called_by_is_theirs(bank: EntityBank) -> None:
    await bank.say("Ana Souza: I moved to Porto.")
    await bank.say("Ana Souza: Please call me Nita.")
    unit = await bank.say("Nita likes tea.")
    assert (await bank.entities())["Ana Souza"] == 3
    assert await bank.names_of(unit[0]) == ["Ana Souza"]


async def test_an_alias_goes_with_the_text_that_said_so(bank: EntityBank) -> None:
    await bank.say("Bob likes jazz.")
    await bank.say("Robert Chen resigned.")
    assert set(await bank.entities()) == {"Bob", "Robert Chen"}
    await bank.say("Bob (Robert Chen) leads the team.", document_id="said")
    assert await bank.entities() == {"Robert Chen": 3}
    await bank.service.delete_document(T, bank.id, "said")
    assert await bank.entities() == {"Bob": 1, "Robert Chen": 1}
    assert not await bank.verified()


async def test_a_nickname_of_two_people_is_not_what_makes_them_one(bank: EntityBank) -> None:
    await bank.say("Bob (Robert Chen) leads the team.")
    await bank.say("Bob (Robert Diaz) paints houses.")
    assert await bank.entities() == {"Robert Chen": 1, "Robert Diaz": 1}
    assert not await bank.verified()


async def test_an_alias_never_joins_two_kinds(bank: EntityBank) -> None:
    await bank.say("Apple Martin is a singer.")
    await bank.say("Apple sells phones.")
    kinds = {row["canonical_name"]: row["metadata"]["kind"] for row in await bank.rows()}
    assert kinds == {"Apple Martin": "PERSON", "Apple": "ORG"}


async def test_what_a_sister_did_does_not_outrank_the_colleague_who_was_asked_for(bank: EntityBank) -> None:
    await bank.say("Alice from payroll is on leave")
    await bank.say("my sister Alice had a baby")
    found = [result["text"] for result in (await bank.recall("Alice payroll"))["results"]]
    assert found.index("Alice from payroll is on leave") < found.index("my sister Alice had a baby")


async def test_names_with_line_breaks_are_one_name_and_blank_ones_none(bank: EntityBank) -> None:
    await bank.say("Acme grew.", ("Acme\n\tCorp ", "ORG"), ("Acme Corp", "ORG"), ("   ", "ORG"))
    assert (await bank.entities())["Acme Corp"] == 1
    assert all("\n" not in name and name.strip() for name in await bank.entities())


async def test_an_alias_said_twice_outlives_the_first_of_the_texts(bank: EntityBank) -> None:
    await bank.say("Bob likes jazz.")
    for document in ("first", "second"):
        await bank.say("Bob (Robert Chen) leads the team.", document_id=document)
    await bank.say("Robert Chen resigned.")
    assert await bank.entities() == {"Robert Chen": 3}
    await bank.service.delete_document(T, bank.id, "first")
    assert await bank.entities() == {"Robert Chen": 3}
    assert not await bank.verified()
    await bank.service.delete_document(T, bank.id, "second")
    assert await bank.entities() == {"Bob": 1, "Robert Chen": 1}
    assert not await bank.verified()

"""Entities merged and split by hand: seen everywhere at once, kept over a restart, and taken back to what was."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recalld.actors.filters import MemoryFilters
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.storage.errors import Conflict, NotFound

from .conftest import snapshot
from .entity_bank import ANY, EntityBank, entity_bank

T = "default"


@pytest.fixture
def bank(service: MemoryService) -> EntityBank:
    return entity_bank(service)


async def state(bank: EntityBank) -> dict[str, Any]:
    """All that a caller sees of the bank's entities."""
    service = bank.service
    listed = await service.list_memories(T, bank.id, MemoryFilters(limit=1000))
    with snapshot(service, bank.id) as snap:
        edges = {uid: snap.edges(uid)[0].tolist() for uid in range(snap.n)}
    return {
        "rows": await bank.rows(),
        "units": {item["id"]: item["entities"] for item in listed["items"]},
        "graph": await service.entity_graph(T, bank.id, limit=1000, min_count=1, **ANY),
        "edges": edges,
        "names": [await service.entity_names(T, bank.id, row["id"]) for row in await bank.rows()],
    }


async def test_a_merge_is_seen_in_lists_counts_graph_and_recall_at_once(bank: EntityBank) -> None:
    service = bank.service
    bob = await bank.say("Bob likes jazz.", "Bob", at="2026-03-02T10:00:00Z")
    both = await bank.say("Bob met Robert Chen.", "Bob", "Robert Chen", at="2026-03-03T10:00:00Z")
    robert = await bank.say("Robert Chen resigned.", "Robert Chen", "Mia", at="2026-03-05T10:00:00Z")
    part, whole = await bank.entity("Bob"), await bank.entity("Robert Chen")
    done = await service.merge_entities(T, bank.id, part, whole)
    assert done["success"] and [one["id"] for one in done["entities"]] == [whole]
    assert await bank.entities() == {"Robert Chen": 3, "Mia": 1}
    assert done["entities"][0]["mention_count"] == 3
    assert done["entities"][0]["first_seen"].startswith("2026-03-02")
    assert [await bank.names_of(one[0]) for one in (bob, both, robert)] == [
        ["Robert Chen"], ["Robert Chen"], ["Robert Chen", "Mia"]
    ]  # fmt: skip
    assert (await service.get_entity(T, bank.id, part, (), "any", None))["id"] == whole
    assert (await service.bank_stats(T, bank.id))["links_by_link_type"]["entity"] == 4
    named = await service.list_memories(T, bank.id, MemoryFilters(entity_id=part))
    assert named["total"] == 3
    with snapshot(service, bank.id) as snap:
        numbers = {snap.edges(uid)[0].tolist()[0] for uid in range(3)}
        assert len(numbers) == 1 and snap.entity_count(numbers.pop()) == 3
    found = await bank.recall("jazz", arms=("semantic", "graph"))
    assert "Robert Chen resigned." in [result["text"] for result in found["results"]]
    assert all("Bob" not in result["entities"] for result in found["results"])
    again = await bank.say("bob called.", "bob", at="2026-03-06T10:00:00Z")
    assert await bank.names_of(again[0]) == ["Robert Chen"] and (await bank.entities())["Robert Chen"] == 4
    assert not await bank.verified()


async def test_merges_and_splits_are_there_after_a_restart(tmp_path: Path) -> None:
    config = replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="none")
    service = await open_service(config)
    bank = entity_bank(service)
    await bank.say("Bob likes jazz.", "Bob")
    units = await bank.say("Robert Chen resigned.", "Robert Chen")
    units += await bank.say("Robert Chen sails.", "Robert Chen")
    await service.merge_entities(T, bank.id, await bank.entity("Bob"), await bank.entity("Robert Chen"))
    await service.split_entity(T, bank.id, await bank.entity("Robert Chen"), "", (units[1],), "Robert Chen of Lyon")
    before = await state(bank)
    await service.close()
    service = await open_service(config)
    bank = entity_bank(service)
    try:
        assert await state(bank) == before
        assert await bank.entities() == {"Robert Chen": 2, "Robert Chen of Lyon": 1}
    finally:
        await service.close()


async def test_two_people_of_one_name_are_parted_by_their_memories_and_new_ones_go_where_their_company_is(
    bank: EntityBank,
) -> None:
    service = bank.service
    payroll = await bank.say("Alice from payroll is on leave.", "Alice", ("payroll", "ORG"))
    sister = await bank.say("My sister Alice had a baby with Tom.", "Alice", "Tom")
    one = await bank.entity("Alice")
    before = await state(bank)
    done = await service.split_entity(T, bank.id, one, "", tuple(sister), "")
    assert [row["canonical_name"] for row in done["entities"]] == ["Alice", "Alice"]
    other = next(row["id"] for row in done["entities"] if row["id"] != one)
    assert [row["mention_count"] for row in await bank.rows() if row["canonical_name"] == "Alice"] == [1, 1]
    await bank.say("Alice and Tom bought a pram.", "Alice", "Tom")
    await bank.say("Alice asked payroll for a form.", "Alice", ("payroll", "ORG"))
    counts = {row["id"]: row["mention_count"] for row in await bank.rows()}
    assert (counts[one], counts[other]) == (2, 2)
    assert not await bank.verified()
    await service.undo_entity_change(T, bank.id, done["change_id"])
    assert (await bank.entities())["Alice"] == 4
    named = {row["entities"] for row in before["graph"]["nodes"] if "entities" in row}
    assert not named and await bank.names_of(payroll[0]) == ["Alice", "payroll"]
    assert not await bank.verified()


async def test_a_name_split_off_takes_its_memories_with_it_and_is_not_joined_again_by_itself(bank: EntityBank) -> None:
    service = bank.service
    await bank.say("GitHub is up.", ("GitHub", "PRODUCT"))
    unit = await bank.say("Git Hub is a pub.", ("Git Hub", "PRODUCT"))
    whole = await bank.entity("GitHub")
    names = (await service.entity_names(T, bank.id, whole))["names"]
    assert [(name["name"], name["why"], name["unit_count"]) for name in names] == [
        ("GitHub", None, 1), ("Git Hub", "likeness", 1)
    ]  # fmt: skip
    done = await service.split_entity(T, bank.id, whole, "git hub", (), "")
    assert await bank.entities() == {"GitHub": 1, "Git Hub": 1} and await bank.names_of(unit[0]) == ["Git Hub"]
    await bank.say("Git Hub opens at noon.", ("Git Hub", "PRODUCT"))
    assert await bank.entities() == {"Git Hub": 2, "GitHub": 1}
    await service.undo_entity_change(T, bank.id, done["change_id"])
    assert await bank.entities() == {"GitHub": 3}
    changes = await service.entity_changes(T, bank.id, 10, 0)
    assert [(one["what"], one["undone_at"] is not None) for one in changes["items"]] == [("split_name", True)]
    assert not await bank.verified()


async def test_what_cannot_be_done_by_hand_says_why(bank: EntityBank) -> None:
    service = bank.service
    units = await bank.say("Ana met Ben at Acme.", "Ana", "Ben", ("Acme", "ORG"))
    ana, ben, acme = [await bank.entity(name) for name in ("Ana", "Ben", "Acme")]
    nobody = "00000000-0000-4000-8000-00000000ffff"
    with pytest.raises(Conflict, match="different kinds are never one"):
        await service.merge_entities(T, bank.id, ana, acme)
    with pytest.raises(Conflict, match="one entity already"):
        await service.merge_entities(T, bank.id, ana, ana)
    for call in (
        service.merge_entities(T, bank.id, ana, nobody),
        service.merge_entities(T, "no bank", ana, ben),
        service.split_entity(T, bank.id, ana, "Anna", (), ""),
        service.split_entity(T, bank.id, ana, "", (nobody,), ""),
        service.undo_entity_change(T, bank.id, nobody),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(Conflict, match="name of the entity itself"):
        await service.split_entity(T, bank.id, ana, "ANA", (), "")
    with pytest.raises(Conflict, match="nothing would be left"):
        await service.split_entity(T, bank.id, ana, "", tuple(units), "")
    done = await service.merge_entities(T, bank.id, ana, ben)
    await service.undo_entity_change(T, bank.id, done["change_id"])
    with pytest.raises(Conflict, match="taken back already"):
        await service.undo_entity_change(T, bank.id, done["change_id"])
    assert await bank.entities() == {"Ana": 1, "Ben": 1, "Acme": 1} and not await bank.verified()


async def test_an_entity_goes_with_its_last_memory_and_its_parts_stay_together(bank: EntityBank) -> None:
    service = bank.service
    await bank.say("Robert Chen resigned.", "Robert Chen", document_id="d1")
    await bank.say("Bob likes jazz.", "Bob", document_id="d2")
    await bank.say("Bobby sails.", "Bobby", document_id="d3")
    whole = await bank.entity("Robert Chen")
    for name in ("Bob", "Bobby"):
        await service.merge_entities(T, bank.id, await bank.entity(name), whole)
    await service.delete_document(T, bank.id, "d1")
    assert await bank.entities() == {"Bob": 2} and not await bank.verified()
    await service.delete_document(T, bank.id, "d2")
    assert await bank.entities() == {"Bobby": 1} and not await bank.verified()
    await service.delete_document(T, bank.id, "d3")
    assert await bank.entities() == {} and not await bank.verified()


NAMES = ("Ana", "Ben", "Cleo", "Dora")
UNITS = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), min_size=2, max_size=6)
_numbers = itertools.count()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(units=UNITS, data=st.data())
async def test_a_merge_and_what_takes_it_back_leave_the_former_state(
    service: MemoryService, units: list[list[str]], data: st.DataObject
) -> None:
    bank = entity_bank(service, f"bank {next(_numbers)}")
    for number, names in enumerate(units):
        await bank.say(f"{' and '.join(names)} met, note {number}.", *names, at=f"2026-03-{number + 1:02}T10:00:00Z")
    present = sorted({name for names in units for name in names})
    # Up to two merges stand already, so that whole groups are merged too.
    for _ in range(data.draw(st.integers(0, 2))):
        rows = await bank.rows()
        if len(rows) > 2:
            pair = data.draw(st.permutations([row["id"] for row in rows]))[:2]
            await service.merge_entities(T, bank.id, *pair)
    rows = await bank.rows()
    if len(present) < 2 or len(rows) < 2:
        return
    before = await state(bank)
    part, whole = data.draw(st.permutations(rows))[:2]
    done = await service.merge_entities(T, bank.id, part["id"], whole["id"])
    merged = await state(bank)
    assert len(merged["rows"]) == len(rows) - 1 and not await bank.verified()
    if data.draw(st.booleans()):
        await service.undo_entity_change(T, bank.id, done["change_id"])
    else:
        await service.split_entity(T, bank.id, whole["id"], part["canonical_name"], (), "")
    assert await state(bank) == before
    assert not await bank.verified()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(units=UNITS, data=st.data())
async def test_a_split_of_memories_taken_back_leaves_the_former_state(
    service: MemoryService, units: list[list[str]], data: st.DataObject
) -> None:
    bank = entity_bank(service, f"bank {next(_numbers)}")
    ids: dict[str, list[str]] = {}
    for number, names in enumerate(units):
        told = await bank.say(f"{' and '.join(names)} met, note {number}.", *names)
        for name in names:
            ids.setdefault(name, []).extend(told)
    several = [name for name, told in sorted(ids.items()) if len(told) > 1]
    if not several:
        return
    name = data.draw(st.sampled_from(several))
    chosen = data.draw(st.lists(st.sampled_from(ids[name]), min_size=1, max_size=len(ids[name]) - 1, unique=True))
    before = await state(bank)
    done = await service.split_entity(T, bank.id, await bank.entity(name), "", tuple(chosen), f"{name} 2")
    split = await bank.entities()
    assert split[f"{name} 2"] == len(chosen) and split[name] == len(ids[name]) - len(chosen)
    assert not await bank.verified()
    await service.undo_entity_change(T, bank.id, done["change_id"])
    assert await state(bank) == before and not await bank.verified()

"""Who a name means: the same name always, another spelling where it is clear, never another word, number or kind."""

from __future__ import annotations

import pytest

from recalld.daemon.service import MemoryService

from .entity_bank import EntityBank, entity_bank

DAY1, DAY2, MONTH2 = "2026-03-02T10:00:00Z", "2026-03-03T10:00:00Z", "2026-04-20T10:00:00Z"


@pytest.fixture
def bank(service: MemoryService) -> EntityBank:
    return entity_bank(service)


async def test_a_name_that_holds_another_word_is_a_new_entity_however_well_connected_that_one_is(
    bank: EntityBank,
) -> None:
    for number in range(6):
        await bank.say(f"Iran and the user talked about finance {number}.", ("Iran", "LOCATION"), "user", at=DAY1)
    await bank.say("Tigran called user about finance.", "Tigran", "user", at=DAY1)
    found = await bank.entities()
    assert (found["Iran"], found["Tigran"], found["user"]) == (6, 1, 7)


@pytest.mark.parametrize(
    ("known", "new", "kind"),
    [
        ("Dr Wall", "Dr Waller", "PERSON"),
        ("Chase Savings", "Chase Checking", "ORG"),
        ("Rocky II", "Rocky III", "PRODUCT"),
        ("iPhone 14", "iPhone 15", "PRODUCT"),
        ("Maria", "Marie", "PERSON"),
        ("Mr Waller", "Mrs Waller", "PERSON"),
        ("林芳", "林芬", "PERSON"),
        ("Acme Inc", "Acme Corp", "ORG"),
        ("Austria", "Australia", "LOCATION"),
        ("Robert Chen", "Robert", "PERSON"),
    ],
)
async def test_names_that_differ_in_a_word_or_a_number_stay_apart(
    bank: EntityBank, known: str, new: str, kind: str
) -> None:
    for number in range(4):
        await bank.say(f"{known} met Ana, note {number}.", (known, kind), "Ana", at=DAY1)
    await bank.say(f"{new} met Ana.", (new, kind), "Ana", at=DAY1)
    found = await bank.entities()
    assert (found[known], found[new]) == (4, 1)


async def test_the_very_name_wins_over_one_that_is_alike_and_better_connected(bank: EntityBank) -> None:
    await bank.say("Phillip Meier wrote.", "Phillip Meier", at=DAY1)
    for number in range(5):
        await bank.say(f"Philip Meyer met Ana, note {number}.", "Philip Meyer", "Ana", at=DAY1)
    await bank.say("PHILLIP  MEIER met Ana.", "PHILLIP  MEIER", "Ana", at=DAY1)
    found = await bank.entities()
    assert (found["Phillip Meier"], found["Philip Meyer"]) == (2, 5)


@pytest.mark.parametrize(
    ("known", "new", "kind"),
    [
        ("Zoë Lima", "Zoe Lima", "PERSON"),
        ("GitHub", "Git Hub", "PRODUCT"),
        ("The Beatles", "Beatles", "ORG"),
        ("e-mail server", "email server", "CONCEPT"),
        ("Ana Lima", "Ana Lima's", "PERSON"),
        ("ＡＢＣ１２３", "ABC123", "PRODUCT"),
    ],
)
async def test_what_only_dresses_a_name_makes_no_other_entity(
    bank: EntityBank, known: str, new: str, kind: str
) -> None:
    await bank.say(f"{known} was first.", (known, kind), at=DAY1)
    unit = await bank.say(f"{new} came later.", (new, kind), at=MONTH2)
    found = await bank.entities()
    assert list(found.values()) == [2]
    assert await bank.names_of(unit[0]) == list(found)


async def test_a_slip_of_the_pen_needs_company_or_time(bank: EntityBank) -> None:
    await bank.say("Katherine Alvarez leads the Lyon office.", "Katherine Alvarez", ("Lyon office", "ORG"), at=DAY1)
    await bank.say("Kathrine Alvarez is back.", "Kathrine Alvarez", at=DAY2)
    assert await bank.entities() == {"Katherine Alvarez": 2, "Lyon office": 1}
    far = entity_bank(bank.service, "far")
    await far.say("Katherine Alvarez leads the Lyon office.", "Katherine Alvarez", ("Lyon office", "ORG"), at=DAY1)
    await far.say("Kathrine Alvarez is back.", "Kathrine Alvarez", at=MONTH2)
    assert await far.entities() == {"Katherine Alvarez": 1, "Kathrine Alvarez": 1, "Lyon office": 1}


async def test_an_initial_is_the_one_person_it_can_be_and_nobody_when_it_can_be_two(bank: EntityBank) -> None:
    await bank.say("John Smith runs Acme.", "John Smith", ("Acme", "ORG"), at=DAY1)
    await bank.say("J. Smith called Acme.", "J. Smith", ("Acme", "ORG"), at=DAY2)
    assert await bank.entities() == {"John Smith": 2, "Acme": 2}
    two = entity_bank(bank.service, "two")
    await two.say("John Smith runs Acme.", "John Smith", ("Acme", "ORG"), at=DAY1)
    await two.say("Jane Smith owns Acme.", "Jane Smith", ("Acme", "ORG"), at=DAY1)
    await two.say("J. Smith called Acme.", "J. Smith", ("Acme", "ORG"), at=DAY2)
    assert (await two.entities())["J. Smith"] == 1


async def test_a_first_name_alone_means_the_full_one_only_in_its_company(bank: EntityBank) -> None:
    for number in range(3):
        await bank.say(f"Robert Chen, Mia and Acme met, note {number}.", "Robert Chen", "Mia", ("Acme", "ORG"), at=DAY1)
    await bank.say("Robert told Mia about Acme.", "Robert", "Mia", ("Acme", "ORG"), at=DAY2)
    assert (await bank.entities())["Robert Chen"] == 4
    other = entity_bank(bank.service, "other")
    await other.say("Robert Chen met Mia and Acme.", "Robert Chen", "Mia", ("Acme", "ORG"), at=DAY1)
    await other.say("Robert Diaz met Mia and Acme.", "Robert Diaz", "Mia", ("Acme", "ORG"), at=DAY1)
    await other.say("Robert told Mia about Acme.", "Robert", "Mia", ("Acme", "ORG"), at=DAY2)
    assert (await other.entities())["Robert"] == 1


async def test_a_person_and_a_company_of_one_name_are_two_entities_with_their_kinds(bank: EntityBank) -> None:
    await bank.say("Apple sings.", ("Apple", "PERSON"), at=DAY1)
    await bank.say("Apple sells phones.", ("Apple", "ORG"), at=DAY1)
    await bank.say("Apple Inc opened a shop.", ("Apple Inc", "ORG"), at=DAY1)
    rows = {(row["canonical_name"], row["metadata"]["kind"]): row["mention_count"] for row in await bank.rows()}
    assert rows == {("Apple", "ORG"): 2, ("Apple", "PERSON"): 1}
    await bank.say("Apple grew.", "Apple", at=DAY2)
    rows = {row["metadata"]["kind"]: row["mention_count"] for row in await bank.rows()}
    assert rows == {"ORG": 2, "PERSON": 2}


async def test_names_taken_literally_are_never_joined_to_others(bank: EntityBank) -> None:
    await bank.say("GitHub is up.", ("GitHub", "PRODUCT"), at=DAY1)
    await bank.say("Git Hub is down.", ("Git Hub", "PRODUCT"), at=DAY1, resolve_entities=False)
    await bank.say("GITHUB is slow.", ("GITHUB", "PRODUCT"), at=DAY1, resolve_entities=False)
    assert await bank.entities() == {"GitHub": 2, "Git Hub": 1}


async def test_the_same_writes_give_the_same_entities(service: MemoryService) -> None:
    told = [
        ("Zoë Lima met Acme.", ["Zoë Lima", "Acme"]),
        ("Zoe Lima left.", ["Zoe Lima"]),
        ("Z. Lima called Acme.", ["Z. Lima", "Acme"]),
        ("Zoe Limas house.", ["Zoe Limas"]),
    ]
    found = []
    for bank_id, together in (("one", False), ("two", True)):
        bank = entity_bank(service, bank_id)
        items = [
            {"content": text, "entities": [{"text": n, "type": "PERSON"} for n in names], "timestamp": DAY1}
            for text, names in told
        ]
        if together:
            await bank.retain(*items)
        else:
            for item in items:
                await bank.retain(item)
        assert not await bank.verified()
        found.append(await bank.entities())
    assert found[0] == found[1] == {"Zoë Lima": 3, "Acme": 2, "Zoe Limas": 1}


async def test_a_name_corrected_by_hand_is_the_name_given(bank: EntityBank) -> None:
    for number in range(4):
        await bank.say(f"Dr Wall saw Ana, visit {number}.", "Dr Wall", "Ana", at=DAY1)
    unit = await bank.say("The doctor saw Ana at noon.", "Dr Wall", "Ana", at=DAY1)
    edited = await bank.service.patch_memory("default", bank.id, unit[0], {"entities": ["Dr Waller", "Ana"]})
    assert edited["entities"] == ["Dr Waller", "Ana"]
    found = await bank.entities()
    assert (found["Dr Wall"], found["Dr Waller"], found["Ana"]) == (4, 1, 5)
    assert not await bank.verified()

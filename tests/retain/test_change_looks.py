"""What only looks like a change ends no memory: the older claim stays in recall beside the newer one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from recalld.actors.filters import MemoryFilters
from recalld.actors.retain.comparable import CLOCK, DAY, NAME, NUMBER, OTHER, denies_all, kind, says_more
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import Bank

BOTH_STAY = [
    ("I live in Porto.", "I live near the river."),
    ("I live in Porto.", "I live in a small flat."),
    ("I live in Porto.", "I live in fear of spiders."),
    ("I live in Porto.", "I live in Lyon during the week."),
    ("I work at Acme.", "I also work at Globex."),
    ("I work at Acme.", "I work at night."),
    ("I work for Acme.", "I work for money."),
    ("I joined Acme.", "I joined Ben for lunch."),
    ("I work as a nurse.", "I work as a volunteer on Sundays."),
    ("I study biology.", "I study Spanish in the evenings."),
    ("I was born in Porto.", "I was born in May."),
    ("My brother is Tom.", "My brother is coming over tomorrow."),
    ("My boss is Kim.", "My boss is angry."),
    ("My dog is Rex.", "My dog is sick."),
    ("My sister is Kim.", "My sister is Lee."),
    ("My job is teaching.", "My job is stressful."),
    ("My name is Ana Ruiz.", "My name is hard to spell."),
    ("My birthday is on 5 May.", "My birthday is coming up."),
    ("My phone number is 555-1234.", "My phone number is easy to remember."),
    ("The deadline is Friday.", "The deadline is tight."),
    ("The meeting is on Monday.", "The meeting is important."),
    ("The price is 5 euros.", "The price is fair."),
    ("The database is Postgres.", "The database is slow."),
    ("The database is Postgres.", "The database is in Frankfurt."),
    ("The owner is Kim.", "The owner is on leave."),
    ("I like tea.", "I don't like tea with milk."),
    ("I love jazz.", "I don't love jazz as much as opera."),
    ("I love dogs.", "I hate dogs that bark."),
    ("I own a car.", "I don't own a car in Lyon."),
    ("I use Vim.", "I don't use Vim for notes."),
    ("I eat meat.", "I don't eat meat on Fridays."),
    ("I drink coffee.", "I don't drink coffee after noon."),
    ("I don't use Vim but Helix.", "I use Vim again."),
    ("Vivo en Madrid.", "Vivo en un piso pequeño."),
    ("Ich wohne in Berlin.", "Ich wohne in einer WG."),
    ("我住在上海。", "我住在酒店。"),
    ("我在阿里工作。", "我在家工作。"),
]
ENDS = [
    ("I live in Porto.", "I live in Lyon."),
    ("I live in Porto.", "I now live in a small village."),
    ("I work at Acme.", "I joined Globex."),
    ("I work as a nurse.", "I now work as a teacher."),
    ("My dog is Rex.", "My dog is now called Bella."),
    ("My favourite colour is red.", "My favourite colour is blue."),
    ("My phone number is 555-1234.", "My phone number is 555-9876."),
    ("The deadline is Friday.", "The deadline is Monday."),
    ("The price is 5 euros.", "The price is 7 euros."),
    ("I like tea.", "I don't like tea any more."),
    ("I like tea.", "I don't like tea at all."),
    ("I like tea.", "I no longer like tea."),
    ("I own a car.", "I sold my car in May 2026."),
    ("I use Vim.", "I stopped using Vim."),
    ("Vivo en Madrid.", "Vivo en Sevilla."),
    ("Ich wohne in Berlin.", "Ich wohne jetzt in Hamburg."),
    ("我住在上海。", "我住在北京。"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryService]:
    home = tmp_path_factory.mktemp("looks") / "home"
    opened = await open_service(replace(Settings(), home=home, runtime="inline", extraction_provider="local"))
    yield opened
    await opened.close()


async def left(service: MemoryService, name: str, old: str, new: str) -> list[str]:
    bank = Bank(service, name)
    await bank.retain({"content": f"Ana: {old}", "timestamp": "2026-01-10T10:00:00Z", "document_id": "chat"})
    later = {"content": f"Ana: {new}", "timestamp": "2026-03-10T10:00:00Z", "document_id": "chat"}
    await bank.retain({**later, "update_mode": "append"})
    listed = await service.list_memories("default", name, MemoryFilters(limit=10))
    return [row["text"] for row in listed["items"]]


@pytest.mark.asyncio(loop_scope="module")
async def test_what_only_looks_like_a_change_leaves_the_older_claim_in_recall(service: MemoryService) -> None:
    wrong = [
        (old, new) for n, (old, new) in enumerate(BOTH_STAY) if len(await left(service, f"stay{n}", old, new)) != 2
    ]
    assert wrong == []


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_a_change_still_ends_the_older_claim(service: MemoryService) -> None:
    wrong = [(old, new) for n, (old, new) in enumerate(ENDS) if len(await left(service, f"end{n}", old, new)) != 1]
    assert wrong == []


def test_a_value_is_of_the_kind_it_is_written_as() -> None:
    assert kind("The deadline is Friday 12 June 2026", "friday 12 june 2026") == DAY
    assert kind("The train leaves at 7:40", "7:40") == CLOCK
    assert kind("The port is 9077", "9077") == NUMBER
    assert kind("I live in Porto", "porto") == NAME
    assert kind("我住在上海", "上海") == NAME
    assert kind("I live in a flat", "flat") == OTHER
    assert kind("Ich wohne in einer WG", "wg") == OTHER
    assert kind("I live in Porto", "lyon") == OTHER


def test_a_denial_of_a_part_denies_no_whole() -> None:
    assert not denies_all("likes:tea", "Ana: I don't like tea with milk.", "dislikes")
    assert denies_all("likes:tea", "Ana: I don't like tea at all.", "dislikes")
    assert denies_all("owns:car", "Ana sold her car to Ben.", "car")
    assert says_more("uses:vim", "Ana doesn't use Vim but Helix.", "vim")
    assert not says_more("uses:vim", "Ana doesn't use Vim.", "vim")

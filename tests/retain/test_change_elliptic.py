"""`Now it is B` says the attribute that its speaker claimed right before, and ends the value that was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.actors.retain.elliptic import elliptic
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import Bank
from .test_change import JAN, current, ended, say

SOON, LATER = "2026-01-10T10:10:00Z", "2026-01-10T11:10:00Z"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


PAIRS = [
    ("My favourite player is Duarte", "now it is Okoro"),
    ("Ana: My favourite player is Duarte.", "Ana: But it's Okoro now."),
    ("Ana: I live in Porto.", "Ana: Now it is Lyon."),
    ("我最喜欢的球员是杜阿尔特。", "现在是奥科罗。"),
    ("我最喜欢的球员是杜阿尔特。", "我最喜欢的球员现在是奥科罗。"),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
@pytest.mark.parametrize("document", [None, "chat"])
async def test_now_it_is_b_in_a_later_retain_makes_a_past(bank: Bank, old: str, new: str, document: str | None) -> None:
    fields = {} if document is None else {"document_id": document}
    await say(bank, old, JAN, **fields)
    second = await say(bank, new, SOON, **fields, **({} if document is None else {"update_mode": "append"}))
    assert await current(bank) == {new}
    assert (await ended(bank))[old]["superseded_by"] == second["unit_ids"][0]
    assert await bank.texts(old) == [new]


@pytest.mark.parametrize("old", ["My favourite player is Duarte", "Ana: My favourite player is Duarte."])
async def test_the_named_attribute_ends_the_elliptic_change_in_turn(bank: Bank, old: str) -> None:
    who = "Ana: " if old.startswith("Ana") else ""
    await say(bank, old, JAN)
    await say(bank, f"{who}now it is Okoro", SOON)
    await say(bank, f"{who}My favourite player is Silva.", LATER)
    assert await current(bank) == {f"{who}My favourite player is Silva."}


async def test_both_in_one_text_the_later_is_current(bank: Bank) -> None:
    await say(bank, "Ana: My favourite player is Duarte.\nBen: Nice!\nAna: Now it is Okoro.", JAN)
    assert await current(bank) == {"Ana: Now it is Okoro."}
    assert list(await ended(bank)) == ["Ana: My favourite player is Duarte."]


async def test_a_conversation_sent_again_resolves_the_same(bank: Bank) -> None:
    text = "Ana: My favourite player is Duarte.\nBen: I live in Ghent.\nAna: Now it is Okoro."
    for when in (JAN, None):
        await say(bank, text, when)
        assert list(await ended(bank)) == ["Ana: My favourite player is Duarte."]


@pytest.mark.parametrize(
    ("old", "new", "when"),
    [
        ("Ana: My favourite player is Duarte.", "Ben: Now it is Okoro.", SOON),
        ("Ana: My favourite player is Duarte.", "Ana: Now it is Okoro.", LATER),
        ("Ana: I like Duarte.", "Ana: Now it is Okoro.", SOON),
        ("Ana: My favourite player is Duarte.", "Ana: It's late now.", SOON),
        ("Ana: My favourite player is Duarte.", "Ana: It is now 5pm.", SOON),
        ("Ana: I watched a match with Duarte.", "Ana: Now it is Okoro.", SOON),
    ],
)
async def test_an_elliptic_change_without_its_claim_ends_nothing(bank: Bank, old: str, new: str, when: str) -> None:
    await say(bank, old, JAN)
    await say(bank, new, when)
    assert len(await current(bank)) == 2 and await ended(bank) == {}


async def test_the_same_words_about_another_matter_are_a_claim_of_their_own(bank: Bank) -> None:
    await say(bank, "Ana: My favourite player is Duarte.", JAN, document_id="a")
    await say(bank, "Ana: Now it is Jordan.", JAN, document_id="a", update_mode="append")
    await say(bank, "Ana: I live in Lebanon.", JAN, document_id="b")
    await say(bank, "Ana: Now it is Jordan.", JAN, document_id="b", update_mode="append")
    assert set(await ended(bank)) == {"Ana: My favourite player is Duarte.", "Ana: I live in Lebanon."}


@pytest.mark.parametrize("said", ["Is it Okoro now?", "It's raining now.", "It is Okoro.", "Now it is not Okoro."])
def test_what_is_no_elliptic_change(said: str) -> None:
    assert not elliptic(said).attribute

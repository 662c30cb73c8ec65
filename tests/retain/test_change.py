"""A changed claim takes the place of the old one, says why, and can be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import Bank, snapshot

JAN, MARCH, MAY = "2026-01-10T10:00:00Z", "2026-03-02T10:00:00Z", "2026-05-02T10:00:00Z"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


async def say(bank: Bank, text: str, when: str | None = MARCH, **fields: Any) -> dict[str, Any]:
    rows = await bank.retain({"content": text, "timestamp": when, **fields})
    return rows[0]


async def current(bank: Bank) -> set[str]:
    answer = await bank.service.list_memories("default", bank.id, MemoryFilters(limit=100))
    return {row["text"] for row in answer["items"]}


async def ended(bank: Bank) -> dict[str, dict[str, Any]]:
    answer = await bank.service.list_memories("default", bank.id, MemoryFilters(limit=100, state="invalidated"))
    return {row["text"]: row for row in answer["items"]}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Ana: I live in Porto.", "Ana: I live in Lyon.", "attribute changed"),
        ("Ana: I live in Porto.", "Ana: I no longer live in Porto.", "no longer"),
        ("Ana: I love Chinese food.", "Ana: I hate Chinese food.", "no longer"),
        ("My favourite player is Messi.", "My favourite player is now Haaland.", "attribute changed"),
        ("Ana works at Acme.", "Ana joined Globex.", "attribute changed"),
        ("Tom: Search is broken.", "Tom: No, my curl was wrong, search is fine.", "attribute changed"),
    ],
)
async def test_the_later_claim_takes_the_place_of_the_earlier(bank: Bank, old: str, new: str, reason: str) -> None:
    first = await say(bank, old, JAN, document_id="chat")
    before = bank.service._clock()
    second = await say(bank, new, MARCH, document_id="chat", update_mode="append")
    assert await current(bank) == {new}
    was = (await ended(bank))[old]
    assert (was["state"], was["invalidation_reason"]) == ("invalidated", reason)
    assert was["superseded_by"] == second["unit_ids"][0]
    assert second["superseded"] == [{"unit_id": first["unit_ids"][0], "by": second["unit_ids"][0], "reason": reason}]
    question = old.split(": ")[-1]
    assert await bank.texts(question) == [new], "recall speaks the present"
    assert await bank.texts(question, as_of=before) == [old]
    february = 1_770_000_000_000_000
    assert old in await bank.texts(question, valid_at=february), "true until then"
    with snapshot(bank.service, "b") as snap:
        kinds = snap.edges(0)[2].tolist()
    assert 3 in kinds, "the two are linked"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana: I live in Porto.", "Ben: I live in Lyon."),
        ("Ana: I love jazz.", "Ana: I love opera."),
        ("Ana: I own a bike.", "Ana: I own a boat."),
        ("Ana moved to Lyon in May.", "In May, Ana has moved to Lyon."),
        ("Ana: I live in Porto.", "Ana: I no longer live in Lyon."),
    ],
)
async def test_claims_that_both_hold_both_stay(bank: Bank, one: str, other: str) -> None:
    await say(bank, one, JAN)
    await say(bank, other, MARCH)
    assert len(await current(bank)) == 2 and await ended(bank) == {}


async def test_an_older_claim_that_arrives_late_ends_nothing(bank: Bank) -> None:
    await say(bank, "Ana: I live in Lyon.", MAY)
    late = await say(bank, "Ana: I live in Porto.", JAN)
    assert await current(bank) == {"Ana: I live in Lyon."}
    assert late["superseded"][0]["unit_id"] == late["unit_ids"][0]


async def test_other_tags_end_nothing(bank: Bank) -> None:
    await say(bank, "Ana: I live in Porto.", JAN, tags=["team-a"])
    await say(bank, "Ana: I live in Lyon.", MARCH, tags=["team-b"])
    assert len(await current(bank)) == 2


async def test_a_conversation_with_a_change_in_it_sent_again_changes_nothing(bank: Bank) -> None:
    text = "Ana: I live in Porto.\nBen: Nice, I live in Ghent.\nAna: I live in Lyon."
    for when in (JAN, None):
        for name in ("a", None, "c"):
            await say(bank, text, when, **({"document_id": name} if name else {}))
        assert "Ana: I live in Lyon." in await current(bank)
        assert list(await ended(bank)) == ["Ana: I live in Porto."]


async def test_moving_back_is_news(bank: Bank) -> None:
    await say(bank, "Ana: I live in Porto.", JAN)
    await say(bank, "Ana: I live in Lyon.", MARCH)
    back = await say(bank, "Ana: I live in Porto.", MAY)
    assert len(back["unit_ids"]) == 1 and await current(bank) == {"Ana: I live in Porto."}


async def test_deleting_the_newer_document_brings_the_old_claim_back(bank: Bank, service: MemoryService) -> None:
    await say(bank, "Ana: I live in Porto.", JAN, document_id="old")
    await say(bank, "Ana: I live in Lyon.", MARCH, document_id="new")
    assert await current(bank) == {"Ana: I live in Lyon."}
    await service.delete_document("default", "b", "new")
    assert await current(bank) == {"Ana: I live in Porto."} and await ended(bank) == {}


async def test_what_comes_back_gives_way_to_what_contradicts_it_still(bank: Bank, service: MemoryService) -> None:
    for text, when, name in (("Porto", JAN, "1"), ("Lyon", MARCH, "2"), ("Ghent", MAY, "3")):
        await say(bank, f"Ana: I live in {text}.", when, document_id=name)
    await service.delete_document("default", "b", "2")
    assert await current(bank) == {"Ana: I live in Ghent."}
    await service.delete_document("default", "b", "3")
    assert await current(bank) == {"Ana: I live in Porto."}


async def test_a_newer_version_without_the_change_brings_the_old_claim_back(bank: Bank) -> None:
    await say(bank, "Ana: I live in Porto.", JAN, document_id="old")
    await say(bank, "Ana: I live in Lyon.", MARCH, document_id="new")
    await say(bank, "Ana: I bake bread on Sundays.", MARCH, document_id="new")
    assert "Ana: I live in Porto." in await current(bank)
    await say(bank, "Ana: I live in Lyon.", MARCH, document_id="new")
    assert "Ana: I live in Porto." not in await current(bank)


async def test_a_guess_taken_back_in_the_same_breath_is_not_what_recall_says(bank: Bank) -> None:
    await say(bank, "Tom: Search is broken\u2026 no, my curl was wrong, search is fine.")
    found = await bank.texts("Is search broken or fine?")
    assert found and all("fine" in text for text in found)
    assert not any("broken" in text and "fine" not in text for text in await current(bank))


async def test_the_same_news_in_two_wordings_is_two_claims_that_both_hold(bank: Bank) -> None:
    await say(bank, "Ana moved to Lyon in May.", "2026-06-01T10:00:00Z")
    await say(bank, "In May, Ana has moved to Lyon.", "2026-06-01T11:00:00Z")
    assert len(await current(bank)) == 2 and await ended(bank) == {}


async def test_what_is_denied_stays_denied(bank: Bank) -> None:
    await say(bank, "Ana: I like jazz.", JAN)
    await say(bank, "Ana: I no longer like jazz.", MARCH)
    assert await current(bank) == {"Ana: I no longer like jazz."}
    await say(bank, "Ana: I like jazz.", JAN, document_id="an old export")
    assert await current(bank) == {"Ana: I no longer like jazz."}, "an old statement sent again is no news"


async def only(bank: Bank, text: str) -> str:
    """The id of the live or ended unit with a text."""
    for state in ("valid", "invalidated"):
        answer = await bank.service.list_memories("default", bank.id, MemoryFilters(limit=100, state=state))
        for row in answer["items"]:
            if row["text"] == text:
                return str(row["id"])
    raise AssertionError(text)


WALK = (
    "Priya: I did, I took a whole week off and walked the first forty miles of Hadrian's Wall with Odile, from Wallsend"
    " to Chesters, and we slept in barns."
)
POOL = (
    "Priya: Yes, but only in the heated pool at Kirkstall. My whole office goes to the reservoir on Fridays and I"
    " refuse, I can't stand cold water, I get cross the moment it touches my knees."
)


@pytest.mark.parametrize(
    ("story", "later"),
    [
        (WALK, "Priya: I was wrong, it's the best part of my day. How is the bakery after a month?"),
        (POOL, "Priya: I've completely changed my mind. I love cold water now and go four mornings a week."),
    ],
)
async def test_a_story_that_tells_more_than_what_changed_stays(bank: Bank, story: str, later: str) -> None:
    await say(bank, story, JAN, document_id="chat")
    await say(bank, later, MARCH, document_id="chat", update_mode="append")
    assert any(text.startswith(story[:30]) for text in await current(bank))
    assert await ended(bank) == {}

"""The same claim again is one unit with mentions, wherever it was said; each mention goes with its document."""

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

WHEN = "2026-03-02T10:00:00Z"
BEES, BOAT = "Ana keeps bees on the roof of her school.", "Ben sails a small wooden boat on the lake."


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


async def units(bank: Bank, **filters: Any) -> dict[str, dict[str, Any]]:
    """Live units by text."""
    answer = await bank.service.list_memories("default", bank.id, MemoryFilters(limit=1000, **filters))
    assert len({row["text"] for row in answer["items"]}) == len(answer["items"])
    return {row["text"]: row for row in answer["items"]}


async def proofs(bank: Bank) -> dict[str, int]:
    return {text: row["proof_count"] for text, row in (await units(bank)).items()}


def conversation(turns: int) -> str:
    return "\n".join(
        f"{'Ana' if turn % 2 else 'Ben'}: My box number {turn} holds {turn * 7 + 3} old letters from Lisbon."
        for turn in range(turns)
    )


async def test_the_same_conversation_three_times_is_as_many_units(bank: Bank) -> None:
    text = conversation(300)
    await bank.retain({"content": text, "document_id": "chat", "timestamp": WHEN})
    first = await proofs(bank)
    assert len(first) >= 290 and set(first.values()) == {1}
    await bank.retain({"content": text, "document_id": "chat", "timestamp": WHEN})
    assert await proofs(bank) == first
    again = await bank.retain({"content": text, "timestamp": WHEN})
    assert await proofs(bank) == dict.fromkeys(first, 2)
    assert (again[0]["unit_ids"], len(again[0]["mention_ids"])) == ([], len(first))
    await bank.retain({"content": text, "document_id": "copy", "timestamp": WHEN})
    assert await proofs(bank) == dict.fromkeys(first, 3)


async def test_case_width_and_the_end_of_a_line_make_no_other_claim(bank: Bank) -> None:
    await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN})
    await bank.retain({"content": BEES.upper().rstrip(".") + "!", "document_id": "b", "timestamp": WHEN})
    assert await proofs(bank) == {BEES: 2}


@pytest.mark.parametrize(
    "change", [{"tags": ["x"]}, {"trust": "untrusted"}, {"content": "Did " + BEES.rstrip(".") + "?"}]
)
async def test_other_readers_other_sources_and_other_words_make_another_claim(
    bank: Bank, change: dict[str, Any]
) -> None:
    base: dict[str, Any] = {"content": BEES, "timestamp": WHEN}
    await bank.retain({**base, "document_id": "a"})
    await bank.retain({**base, "document_id": "b", **change})
    answer = await bank.service.list_memories("default", "b", MemoryFilters(limit=10))
    assert [row["proof_count"] for row in answer["items"]] == [1] * answer["total"]


async def test_verbatim_text_is_a_unit_each_time(bank: Bank) -> None:
    await bank.service.patch_config("default", "b", {"retain_extraction_mode": "verbatim"})
    for name in ("a", "b"):
        await bank.retain({"content": BEES, "document_id": name, "timestamp": WHEN})
    answer = await bank.service.list_memories("default", "b", MemoryFilters(limit=10))
    assert [row["proof_count"] for row in answer["items"]] == [1, 1]


async def test_recall_returns_a_claim_once_and_the_memory_shows_each_mention(bank: Bank) -> None:
    await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN, "metadata": {"from": "mail"}})
    await bank.retain({"content": BEES, "document_id": "b", "timestamp": "2026-04-01T00:00:00Z"})
    assert await bank.texts("Who keeps bees?") == [BEES]
    memory = await bank.service.get_memory("default", "b", (await units(bank))[BEES]["id"])
    assert memory["proof_count"] == 2
    said = [(one["document_id"], one["mentioned_at"][:10], one["metadata"]) for one in memory["mentions"]]
    assert said == [("a", "2026-03-02", {"from": "mail"}), ("b", "2026-04-01", {})]
    assert [one["chunk_id"] for one in memory["mentions"]] == ["b_a_0", "b_b_0"]


async def test_a_document_takes_its_mentions_along_and_the_unit_with_the_last(bank: Bank) -> None:
    for name in ("a", "b", "c"):
        await bank.retain({"content": BEES, "document_id": name, "timestamp": WHEN})
    for name, left in (("b", {BEES: 2}), ("c", {BEES: 1}), ("a", {})):
        await bank.service.delete_document("default", "b", name)
        assert await proofs(bank) == left


async def test_a_unit_whose_first_document_goes_moves_to_its_next_mention(bank: Bank, service: MemoryService) -> None:
    first = {"document_id": "a", "timestamp": WHEN, "context": "clinic of Dr Wu", "metadata": {"patient": "7711"}}
    await bank.retain({**first, "content": BOAT}, {**first, "content": BEES})
    await bank.retain({"content": BEES.upper(), "document_id": "b", "timestamp": "2026-04-01T00:00:00Z"})
    before = (await units(bank))[BEES]
    await service.delete_document("default", "b", "a")
    moved = await units(bank)
    assert list(moved) == [BEES.upper()], "what the other document wrote, to the letter"
    unit = moved[BEES.upper()]
    assert (unit["id"], unit["document_id"], unit["chunk_id"]) == (before["id"], "b", "b_b_0")
    assert (unit["mentioned_at"][:10], unit["context"], unit["metadata"], unit["proof_count"]) == (
        "2026-04-01",
        "",
        {},
        1,
    )
    alone = Bank(service, "alone")
    await alone.retain({"content": BEES.upper(), "document_id": "b", "timestamp": "2026-04-01T00:00:00Z"})
    rows = []
    for name in ("b", "alone"):
        with snapshot(service, name) as snap:
            uid = next(u for u in range(snap.n) if snap.columns.live[u])
            rows.append((snap.vector_row(uid), snap.token_row(uid)))
    assert rows[0] == rows[1], "vectors that know nothing of the text that went"
    assert await bank.texts("bees") and not await bank.texts("clinic of Dr Wu", arms=("keyword",))


async def test_a_copy_of_a_document_takes_all_its_units_over_in_order(bank: Bank, service: MemoryService) -> None:
    text = conversation(12)
    await bank.retain({"content": text, "document_id": "a", "timestamp": WHEN})
    ids = {text: row["id"] for text, row in (await units(bank)).items()}
    await bank.retain({"content": text, "document_id": "b", "timestamp": WHEN})
    await service.delete_document("default", "b", "a")
    left = await units(bank)
    assert {text: row["id"] for text, row in left.items()} == ids
    assert {row["document_id"] for row in left.values()} == {"b"} and set((await proofs(bank)).values()) == {1}
    alone = Bank(service, "alone")
    await alone.retain({"content": text, "document_id": "b", "timestamp": WHEN})
    held = []
    for name in ("b", "alone"):
        with snapshot(service, name) as snap:
            live = [snap.unit(uid) for uid in range(snap.n) if snap.columns.live[uid]]
            held.append({unit.text: snap.vector_row(unit.uid) for unit in live})
    assert held[0] == held[1], "each stands behind the one before it, as if the first had never been"
    assert (await bank.retain({"content": text, "document_id": "b", "timestamp": WHEN}))[0]["chunks_unchanged"] == 1


async def test_a_replaced_document_keeps_counts_right(bank: Bank) -> None:
    item = {"document_id": "a", "timestamp": WHEN}
    await bank.retain({**item, "content": BEES}, {**item, "content": BOAT})
    await bank.retain({"content": BEES, "document_id": "b", "timestamp": WHEN})
    ids = {text: row["id"] for text, row in (await units(bank)).items()}
    # The chunk is another one (it ends otherwise), the claim is the same.
    await bank.retain({**item, "content": BEES + " "}, {**item, "content": "Cleo paints red doors in Ghent."})
    found = await units(bank)
    assert BOAT not in found and (found[BEES]["id"], found[BEES]["proof_count"]) == (ids[BEES], 2)
    await bank.retain({"content": "Dora writes about tides.", "document_id": "a", "timestamp": WHEN})
    left = await units(bank)
    assert left[BEES]["id"] == ids[BEES] and left[BEES]["document_id"] == "b" and left[BEES]["proof_count"] == 1


async def test_an_append_that_repeats_is_a_mention(bank: Bank) -> None:
    await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN})
    await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN, "update_mode": "append"})
    assert await proofs(bank) == {BEES: 2}
    await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN})
    assert await proofs(bank) == {BEES: 1}


async def test_new_tags_of_a_document_part_what_it_mentions_from_the_rest(bank: Bank, service: MemoryService) -> None:
    for name in ("a", "b", "c"):
        await bank.retain({"content": BEES, "document_id": name, "timestamp": WHEN})
    await service.patch_document("default", "b", "b", {"tags": ["secret"]})
    answer = await service.list_memories("default", "b", MemoryFilters(limit=10))
    found = {tuple(row["tags"]): (row["proof_count"], row["document_id"]) for row in answer["items"]}
    assert found == {(): (2, "a"), ("secret",): (1, "b")}
    await service.patch_document("default", "b", "a", {"tags": ["open"]})
    answer = await service.list_memories("default", "b", MemoryFilters(limit=10))
    found = {tuple(row["tags"]): (row["proof_count"], row["document_id"]) for row in answer["items"]}
    assert found == {(): (1, "c"), ("secret",): (1, "b"), ("open",): (1, "a")}


async def test_clearing_a_network_takes_the_mentions_too(bank: Bank, service: MemoryService) -> None:
    for name in ("a", "b"):
        await bank.retain({"content": BEES, "document_id": name, "timestamp": WHEN})
    await service.clear_memories("default", "b", "world")
    assert await proofs(bank) == {}
    assert (await bank.retain({"content": BEES, "document_id": "a", "timestamp": WHEN}))[0]["chunks_unchanged"] == 0
    assert await proofs(bank) == {BEES: 1}


async def test_a_document_counts_and_lists_what_it_mentions(bank: Bank, service: MemoryService) -> None:
    for name in ("a", "b"):
        await bank.retain({"content": BEES, "document_id": name, "timestamp": WHEN})
    assert (await bank.document("b"))["memory_unit_count"] == 1
    assert list(await units(bank, document_id="b")) == list(await units(bank, document_id="a")) == [BEES]
    await service.delete_document("default", "b", "b")
    assert (await bank.document("a"))["memory_unit_count"] == 1


async def test_no_byte_of_the_first_place_lives_on(bank: Bank, service: MemoryService, tmp_path: Path) -> None:
    first = {"document_id": "PATIENT-FILE", "timestamp": WHEN, "context": "clinic of Dr Wu", "metadata": {"no": "7711"}}
    await bank.retain({**first, "content": BOAT}, {**first, "content": BEES})
    await bank.retain({"content": BEES.upper(), "document_id": "b", "timestamp": WHEN})
    await service.delete_document("default", "b", "PATIENT-FILE")
    await service.compact()
    held = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    for gone in (BEES, BOAT, "PATIENT-FILE", "clinic of Dr Wu", "7711"):
        assert gone.encode() not in held, gone
    assert BEES.upper().encode() in held

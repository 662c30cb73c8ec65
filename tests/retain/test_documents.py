"""What a retain does to documents: kept, moved, replaced and appended chunks, and who stands behind whom."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from recalld.actors.retain.items import RetainItem
from recalld.daemon.service import MemoryService

from .conftest import Bank, snapshot

WHEN = "2026-03-02T10:00:00Z"


async def test_unchanged_chunks_keep_their_units(bank: Bank) -> None:
    first = await bank.retain(
        {"content": "Ana keeps bees.", "document_id": "d"}, {"content": "Ben sails.", "document_id": "d"}
    )
    again = await bank.retain(
        {"content": "Ana keeps bees.", "document_id": "d"}, {"content": "Ben rows now.", "document_id": "d"}
    )
    assert (again[0]["unit_ids"], again[0]["chunks"], again[0]["chunks_unchanged"]) == ([], 1, 1)
    assert await bank.texts("Ana bees")
    memory = await bank.service.get_memory("default", "b", first[0]["unit_ids"][0])
    assert memory["text"] == "Ana keeps bees."
    assert "Ben sails." not in await bank.texts("Ben sails")


async def test_a_chunk_that_moves_takes_its_units_along(bank: Bank) -> None:
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"}, {"content": "Ben sails.", "document_id": "d"})
    await bank.retain({"content": "Ben sails.", "document_id": "d"})
    answer = await bank.recall("Ben sails", chunk_tokens=100)
    assert [r["chunk_id"] for r in answer["results"]] == ["b_d_0"]
    assert answer["chunks"]["b_d_0"]["text"] == "Ben sails."


async def test_a_document_is_its_text(bank: Bank) -> None:
    text = "First paragraph.\n\n" + "word " * 2000 + "\n\nLast one."
    await bank.retain({"content": text, "document_id": "d"})
    document = await bank.document("d")
    assert document["original_text"] == text
    assert document["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert document["memory_unit_count"] == 4


async def test_an_append_adds_a_line_and_leaves_the_rest(bank: Bank) -> None:
    first = await bank.retain({"content": "one", "document_id": "d"})
    await bank.retain({"content": "two", "document_id": "d", "update_mode": "append"})
    document = await bank.document("d")
    assert document["original_text"] == "one\ntwo"
    assert document["content_hash"] == hashlib.sha256(b"one\ntwo").hexdigest()
    assert (await bank.service.get_memory("default", "b", first[0]["unit_ids"][0]))["text"] == "one"


async def test_parallel_appends_lose_no_turn(bank: Bank) -> None:
    turns = [f"turn number {n}" for n in range(12)]
    await bank.retain({"content": "start", "document_id": "d"})
    await asyncio.gather(
        *(bank.retain({"content": turn, "document_id": "d", "update_mode": "append"}) for turn in turns)
    )
    assert sorted((await bank.document("d"))["original_text"].split("\n")) == sorted(["start", *turns])


async def test_two_json_conversations_append_into_one_array(bank: Bank) -> None:
    await bank.retain({"content": '[{"role": "user", "content": "hello there"}]', "document_id": "d"})
    await bank.retain(
        {"content": '[{"role": "user", "content": "second"}]', "document_id": "d", "update_mode": "append"}
    )
    text = (await bank.document("d"))["original_text"]
    assert [turn["content"] for turn in json.loads(text)] == ["hello there", "second"]


async def test_a_follower_forgets_the_text_that_went(bank: Bank, service: MemoryService) -> None:
    question, answer = "Did you bring the passport to the embassy?", "Yes, I took it there on Friday."
    alone = Bank(service, "alone")
    await alone.retain({"content": answer, "document_id": "d", "timestamp": WHEN})
    await bank.retain(
        {"content": question, "document_id": "d", "timestamp": WHEN},
        {"content": answer, "document_id": "d", "timestamp": WHEN},
    )
    rows = {}
    for name in ("alone", "b"):
        with snapshot(service, name) as snap:
            uid = next(u for u in range(snap.n) if snap.unit(u).text == answer)
            rows[name] = snap.vector_row(uid), snap.token_row(uid), uid
    assert rows["alone"][:2] != rows["b"][:2], "behind another turn the vectors carry that turn"
    await bank.retain({"content": answer, "document_id": "d", "timestamp": WHEN})
    with snapshot(service, "b") as snap:
        uid = rows["b"][2]
        assert snap.columns.live[uid]
        assert (snap.vector_row(uid), snap.token_row(uid)) == rows["alone"][:2]


async def test_deleting_a_document_embeds_the_turn_behind_it_anew(bank: Bank, service: MemoryService) -> None:
    first = await bank.retain({"content": "Did you bring the passport?", "timestamp": WHEN})
    await bank.retain({"content": "Yes, on Friday.", "timestamp": WHEN})
    alone = Bank(service, "alone")
    await alone.retain({"content": "Yes, on Friday.", "timestamp": WHEN})
    await service.delete_document("default", "b", first[0]["document_id"])
    found = []
    for name in ("alone", "b"):
        with snapshot(service, name) as snap:
            uid = next(u for u in range(snap.n) if snap.columns.live[u])
            found.append((snap.unit(uid).text, snap.vector_row(uid), snap.token_row(uid)))
    assert found[0] == found[1]


async def test_undocumented_turns_within_half_an_hour_form_a_thread(bank: Bank, service: MemoryService) -> None:
    for minute in (0, 5, 50):
        await bank.retain({"content": f"turn {minute}", "timestamp": f"2026-03-02T10:{minute:02}:00Z"})
    with snapshot(service, "b") as snap:
        assert snap.columns.prev.tolist() == [-1, 0, -1]
        assert snap.columns.thread[0] == snap.columns.thread[1] != snap.columns.thread[2]


async def test_other_tags_are_never_embedded_behind(bank: Bank, service: MemoryService) -> None:
    await bank.retain(
        {"content": "secret turn", "document_id": "d", "tags": ["a"]},
        {"content": "open turn", "document_id": "d", "tags": ["b"]},
    )
    with snapshot(service, "b") as snap:
        assert snap.unit(1).predecessor is None
        assert snap.columns.prev[1] == 0, "it still stands next to it"


async def test_a_replaced_text_is_there_as_of_before(bank: Bank, service: MemoryService) -> None:
    await bank.retain({"content": "Ana lives in Porto.", "document_id": "d"})
    before = service._clock()
    await bank.retain({"content": "Ana lives in Lyon.", "document_id": "d"})
    assert await bank.texts("Where does Ana live?") == ["Ana lives in Lyon."]
    assert await bank.texts("Where does Ana live?", as_of=before) == ["Ana lives in Porto."]


async def test_a_batch_folds_items_of_one_document_in_order(bank: Bank) -> None:
    items = [{"content": f"line {n}", "document_id": "d"} for n in range(3)]
    await bank.retain(*items)
    await bank.retain(*items)
    assert (await bank.document("d"))["original_text"] == "line 0\nline 1\nline 2"


async def test_a_request_with_one_bad_chunk_setting_stores_nothing(bank: Bank, service: MemoryService) -> None:
    with pytest.raises(Exception, match="retain_chunk_size"):
        await service.patch_config("default", "b", {"retain_chunk_size": "many"})
    assert (await service.list_banks("default", None, 10, 0))["total"] == 0


async def test_an_erased_unit_leaves_no_date_on_its_entity(bank: Bank, service: MemoryService) -> None:
    entity = {"entities": [{"text": "Vespa", "type": "PRODUCT"}]}
    await bank.retain({"content": "old", "document_id": "a", "timestamp": "2020-01-01T00:00:00Z", **entity})
    await bank.retain({"content": "new", "document_id": "b", "timestamp": "2026-01-01T00:00:00Z", **entity})
    await service.delete_document("default", "b", "a")
    listed = await service.list_entities("default", "b", (), "any", None, 10, 0)
    assert [row["first_seen"][:4] for row in listed["items"]] == ["2026"]


async def test_items_without_text_are_refused_by_name(bank: Bank) -> None:
    with pytest.raises(ValueError, match="content"):
        RetainItem.parse({"content": "  "})

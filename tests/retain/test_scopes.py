"""Tags and erasures across versions of a document: text stays within the tags of its item, and comes back when sent."""

from __future__ import annotations

from typing import Any

import pytest

from recalld.actors.messages import CommitRetains, EraseJob
from recalld.daemon.service import MemoryService
from recalld.storage.errors import NotFound

from .conftest import Bank, snapshot

WHEN = "2026-03-02T10:00:00Z"
ANA = {"content": "Ana's secret is bees.", "document_id": "d", "tags": ["ana"], "timestamp": WHEN}
BEN = {"content": "Ben sails at night.", "document_id": "d", "tags": ["ben"], "timestamp": WHEN}
CY = {"content": "Cy runs.", "document_id": "d", "tags": ["cy"], "timestamp": WHEN}


async def test_a_kept_chunk_has_the_tags_of_its_item_alone(bank: Bank) -> None:
    await bank.retain(ANA, BEN)
    await bank.retain(ANA, BEN, CY)
    assert await bank.texts("secret bees", tags=("ben",), tags_match="all_strict") == ["Ben sails at night."]
    assert await bank.texts("secret bees", tags=("ana",), tags_match="all_strict") == ["Ana's secret is bees."]
    await bank.retain({**ANA, "tags": ["cy"]}, BEN)
    assert await bank.texts("secret bees", tags=("ana",), tags_match="all_strict") == []
    assert await bank.texts("secret bees", tags=("cy",), tags_match="all_strict") == ["Ana's secret is bees."]


async def test_a_kept_unit_whose_tags_part_from_its_predecessors_is_embedded_anew(
    bank: Bank, service: MemoryService
) -> None:
    alone = Bank(service, "alone")
    await alone.retain(BEN)
    await bank.retain({**ANA, "tags": ["ben"]}, BEN)
    with snapshot(service, "b") as snap:
        assert snap.unit(1).predecessor == 0
    await bank.retain(ANA, BEN)
    with snapshot(service, "alone") as snap:
        expected = snap.vector_row(0), snap.token_row(0)
    with snapshot(service, "b") as snap:
        assert snap.n == 2 and snap.unit(0).tags == ("ana",)
        assert snap.unit(1).predecessor is None
        assert (snap.vector_row(1), snap.token_row(1)) == expected


async def test_conversations_of_different_tags_are_not_merged_by_an_append(bank: Bank) -> None:
    old = '[{"role": "user", "content": "the secret is bees"}]'
    await bank.retain({"content": old, "document_id": "d", "tags": ["ana"]})
    for word in ("second", "third"):
        new = f'[{{"role": "user", "content": "{word}"}}]'
        await bank.retain({"content": new, "document_id": "d", "tags": ["ben"], "update_mode": "append"})
    assert not any("bees" in text for text in await bank.texts("secret bees", tags=("ben",), tags_match="all_strict"))
    assert any("bees" in text for text in await bank.texts("secret bees", tags=("ana",), tags_match="all_strict"))


async def test_a_text_whose_units_were_cleared_is_stored_again_when_it_is_sent_again(bank: Bank) -> None:
    service = bank.service
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"}, {"content": "Ben sails.", "document_id": "d"})
    await service.clear_memories("default", "b", "world")
    assert await bank.texts("Ana bees") == []
    again = await bank.retain({"content": "Ana keeps bees.", "document_id": "d"})
    assert (len(again[0]["unit_ids"]), again[0]["chunks_unchanged"]) == (1, 0)
    assert await bank.texts("Ana bees") == ["Ana keeps bees."]
    assert (await bank.retain({"content": "Ana keeps bees.", "document_id": "d"}))[0]["chunks_unchanged"] == 1


async def test_a_retain_planned_before_a_clearing_stores_its_text_all_the_same(bank: Bank) -> None:
    service = bank.service
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"})
    real, cleared = service.shards.call_named, []

    async def clear_before_the_commit(name: str, message: Any, *more: Any) -> Any:
        if isinstance(message, CommitRetains) and not cleared:
            cleared.append(True)
            await service.clear_memories("default", "b", "world")
        return await real(name, message, *more)

    worker = service._resolver._actors._hosts["worker-0"]._actor  # type: ignore[attr-defined]
    worker._shards.call_named = clear_before_the_commit
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"})
    assert cleared and await bank.texts("Ana bees") == ["Ana keeps bees."]


async def test_a_deletion_repeated_with_its_request_id_gets_the_same_answer(bank: Bank, service: MemoryService) -> None:
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"})
    job = EraseJob("default", "b", "request-1", service._clock(), document_id="d")
    worker = await service._worker()
    first = await worker.call(job)
    assert first["units"] == 1
    # The worker died before its answer arrived, and meanwhile the document came back.
    assert await worker.call(job) == first
    await bank.retain({"content": "Ana keeps bees.", "document_id": "d"})
    assert await worker.call(job) == first
    assert await bank.texts("Ana bees") == ["Ana keeps bees."]
    with pytest.raises(NotFound):
        await worker.call(EraseJob("default", "b", "request-2", service._clock(), document_id="other"))
    with pytest.raises(NotFound):
        await worker.call(EraseJob("default", "none such", "request-3", service._clock(), document_id="d"))

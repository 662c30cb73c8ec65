"""Whatever removes, replaces or hides a text embeds the units behind it anew, in the same commit."""

from __future__ import annotations

from typing import Any

from recalld.actors.messages import CommitErase, PatchDocument
from recalld.daemon.service import MemoryService

from .conftest import Bank, snapshot

WHEN = "2026-03-02T10:00:00Z"
QUESTION, ANSWER, OTHER = "Did you bring the passport?", "Yes, on Friday.", "Do you like cheese?"


async def alone(service: MemoryService, text: str) -> tuple[bytes, bytes]:
    """The rows of a text that stands behind nothing."""
    await Bank(service, "alone").retain({"content": text, "timestamp": WHEN, "document_id": text})
    with snapshot(service, "alone") as snap:
        uid = next(uid for uid in range(snap.n) if snap.unit(uid).text == text)
        return snap.vector_row(uid), snap.token_row(uid)


async def behind(service: MemoryService, before: str, text: str) -> tuple[bytes, bytes]:
    """The rows of a text that stands behind another."""
    await Bank(service, "pair").retain(
        {"content": before, "timestamp": WHEN, "document_id": before + text},
        {"content": text, "timestamp": WHEN, "document_id": before + text},
    )
    with snapshot(service, "pair") as snap:
        uid = snap.n - 1
        assert (snap.unit(uid).text, snap.unit(uid).predecessor) == (text, uid - 1)
        return snap.vector_row(uid), snap.token_row(uid)


def rows(service: MemoryService, uid: int) -> tuple[bytes, bytes]:
    with snapshot(service, "b") as snap:
        return snap.vector_row(uid), snap.token_row(uid)


async def turns(bank: Bank, *texts: str, **fields: Any) -> list[str]:
    """Turns without a document, one behind the other; the ids of the documents made for them."""
    found = [(await bank.retain({"content": text, "timestamp": WHEN, **fields}))[0]["document_id"] for text in texts]
    with snapshot(bank.service, "b") as snap:
        assert [snap.unit(uid).predecessor for uid in range(snap.n)] == [None, *range(snap.n - 1)]
    return found


async def test_new_tags_of_a_document_part_it_from_the_turn_behind_it(bank: Bank, service: MemoryService) -> None:
    first, *_ = await turns(bank, QUESTION, ANSWER, tags=["x"])
    assert rows(service, 1) != await alone(service, ANSWER)
    await service.patch_document("default", "b", first, {"tags": ["secret"]})
    assert rows(service, 1) == await alone(service, ANSWER)
    with snapshot(service, "b") as snap:
        assert (snap.unit(0).tags, snap.unit(1).tags, snap.unit(1).predecessor) == (("secret",), ("x",), None)


async def test_new_tags_of_a_document_part_it_from_the_turn_before_it(bank: Bank, service: MemoryService) -> None:
    _, second = await turns(bank, QUESTION, ANSWER, tags=["x"])
    await service.patch_document("default", "b", second, {"tags": ["open"]})
    assert rows(service, 1) == await alone(service, ANSWER)


async def test_tags_that_stay_the_same_leave_the_vectors(bank: Bank, service: MemoryService) -> None:
    first, *_ = await turns(bank, QUESTION, ANSWER, tags=["x"])
    before = rows(service, 1)
    await service.patch_document("default", "b", first, {"tags": ["x", "x"]})
    assert rows(service, 1) == before
    with snapshot(service, "b") as snap:
        assert snap.unit(1).predecessor == 0


async def test_an_erased_text_leaves_the_vectors_of_a_retired_follower_too(bank: Bank, service: MemoryService) -> None:
    first, second = await turns(bank, QUESTION, ANSWER)
    await bank.retain({"content": "Never mind.", "timestamp": WHEN, "document_id": second})
    await service.delete_document("default", "b", first)
    with snapshot(service, "b") as snap:
        assert snap.columns.exists[1] and not snap.columns.live[1]
    assert rows(service, 1) == await alone(service, ANSWER)


async def test_a_turn_that_came_while_tags_were_prepared_is_embedded_anew_too(
    bank: Bank, service: MemoryService
) -> None:
    first, *_ = await turns(bank, QUESTION, tags=["x"])
    worker: Any = service._resolver._actors._hosts["worker-0"]._actor  # type: ignore[attr-defined]
    real, came = worker._shards.call, []

    async def turn_before_the_commit(tenant: str, bank_id: str, message: Any, *more: Any, **named: Any) -> Any:
        if isinstance(message, PatchDocument | CommitErase) and not came:
            came.append(True)
            await turns(bank, ANSWER, tags=["x"])
        return await real(tenant, bank_id, message, *more, **named)

    worker._shards.call = turn_before_the_commit
    await service.patch_document("default", "b", first, {"tags": ["secret"]})
    assert came and rows(service, 1) == await alone(service, ANSWER)

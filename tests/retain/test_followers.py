"""Whatever removes, replaces or hides a text embeds the units behind it anew, in the same commit."""

from __future__ import annotations

import asyncio
from typing import Any

from recalld.actors.messages import CommitErase, PatchDocument
from recalld.daemon.service import MemoryService
from recalld.storage.records import NETWORK_NAMES

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


async def test_parallel_patches_and_turns_end_with_no_unit_behind_one_of_other_tags(
    bank: Bank, service: MemoryService
) -> None:
    made = await turns(bank, QUESTION, ANSWER, OTHER, tags=["x"])
    await asyncio.gather(
        *(service.patch_document("default", "b", name, {"tags": [f"t{n}"]}) for n, name in enumerate(made)),
        *(bank.retain({"content": f"turn {n}", "timestamp": WHEN, "tags": ["x"]}) for n in range(3)),
    )
    with snapshot(service, "b") as snap:
        units = [snap.unit(uid) for uid in range(snap.n)]
        assert len(units) == 6
        for unit in units:
            assert unit.predecessor is None or units[unit.predecessor].tags == unit.tags


async def test_a_turn_behind_a_replaced_document_is_embedded_behind_its_new_text(
    bank: Bank, service: MemoryService
) -> None:
    first, *_ = await turns(bank, QUESTION, ANSWER)
    await bank.retain({"content": OTHER, "timestamp": WHEN, "document_id": first})
    assert rows(service, 1) == await behind(service, OTHER, ANSWER)
    with snapshot(service, "b") as snap:
        assert snap.unit(1).predecessor == 2 == snap.columns.prev[1]
    await service.delete_document("default", "b", first)
    assert rows(service, 1) == await alone(service, ANSWER)


async def test_a_turn_behind_a_document_that_takes_other_tags_stands_alone(bank: Bank, service: MemoryService) -> None:
    first, *_ = await turns(bank, QUESTION, ANSWER)
    await bank.retain({"content": QUESTION, "timestamp": WHEN, "document_id": first, "tags": ["secret"]})
    assert rows(service, 1) == await alone(service, ANSWER)
    with snapshot(service, "b") as snap:
        assert (snap.n, snap.unit(0).tags, snap.unit(1).predecessor) == (2, ("secret",), None)


async def test_a_turn_behind_an_unchanged_document_keeps_its_vectors(bank: Bank, service: MemoryService) -> None:
    first, *_ = await turns(bank, QUESTION, ANSWER)
    before = rows(service, 1)
    await bank.retain({"content": QUESTION, "timestamp": WHEN, "document_id": first})
    assert rows(service, 1) == before


async def test_a_turn_and_the_one_before_it_replaced_in_one_call(bank: Bank, service: MemoryService) -> None:
    first, second = await turns(bank, QUESTION, ANSWER)
    await bank.retain(
        {"content": OTHER, "timestamp": WHEN, "document_id": first},
        {"content": ANSWER, "timestamp": WHEN, "document_id": second},
    )
    assert rows(service, 1) == await alone(service, ANSWER)


async def test_a_turn_that_came_while_the_one_before_it_was_replaced_is_embedded_anew(
    bank: Bank, service: MemoryService
) -> None:
    first, *_ = await turns(bank, QUESTION)
    await asyncio.gather(
        bank.retain({"content": OTHER, "timestamp": WHEN, "document_id": first}),
        *(bank.retain({"content": f"turn {n}", "timestamp": WHEN}) for n in range(4)),
    )
    with snapshot(service, "b") as snap:
        for unit in (snap.unit(uid) for uid in range(snap.n)):
            assert unit.predecessor != 0


async def test_an_append_after_the_last_unit_was_erased_finds_its_place(bank: Bank, service: MemoryService) -> None:
    opinion = "I think that Rust is better than Go."
    await bank.retain({"content": QUESTION, "document_id": "d"}, {"content": opinion, "document_id": "d"})
    with snapshot(service, "b") as snap:
        network = NETWORK_NAMES[snap.unit(1).network]
    await service.clear_memories("default", "b", network)
    await bank.retain({"content": OTHER, "document_id": "d", "update_mode": "append"})
    assert OTHER in await bank.texts(OTHER)


async def test_new_tags_of_kept_text_part_it_from_what_was_replaced_behind_it(
    bank: Bank, service: MemoryService
) -> None:
    kept = {"content": QUESTION, "timestamp": WHEN, "document_id": "d", "tags": ["x"]}
    await bank.retain(kept, {**kept, "content": ANSWER})
    await bank.retain(kept, {**kept, "content": OTHER})
    before = rows(service, 1)
    await bank.retain(kept)
    assert rows(service, 1) == before != await alone(service, ANSWER)
    await bank.retain({**kept, "tags": ["secret"]})
    with snapshot(service, "b") as snap:
        assert [snap.unit(uid).tags for uid in range(snap.n)] == [("secret",), ("x",), ("x",)]
        assert snap.columns.live.tolist() == [True, False, False]
    assert rows(service, 1) == await alone(service, ANSWER)
    assert rows(service, 2) == await alone(service, OTHER)

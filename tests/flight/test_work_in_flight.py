"""Work in flight: deletions under it, outages, poison, parallel writers, repeated calls."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from flight_service import TENANT, documents, ended, item, opened, operation, queue, recall, retain, texts, until

from recalld.actors.embedding import Embedder
from recalld.actors.runtime import ActorRef
from recalld.daemon.service import MemoryService
from recalld.storage.errors import OperationIdTaken, RecalldError, Unavailable

FAST = {"operations_backoff_seconds": 0.05, "operations_backoff_max_seconds": 0.2, "operations_max_attempts": 3}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home", **FAST)
    yield running
    await running.close()


class Outage:
    """Stands between the dispatcher and the worker and fails as an outage would, `left` times (-1: always)."""

    name = "worker-0"

    def __init__(self, service: MemoryService, left: int, error: type[RecalldError] = Unavailable) -> None:
        self._real = service._dispatcher._worker
        self._error = error
        self.left = left
        self.calls = 0
        service._dispatcher._worker = self._ref  # type: ignore[method-assign]

    async def _ref(self) -> ActorRef:
        return self  # type: ignore[return-value]

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self._error("The worker is away.")
        return await (await self._real()).call(message, timeout=timeout)


# -- parallel writers --------------------------------------------------------------------------------------------------


async def test_parallel_appends_all_stay(service: MemoryService) -> None:
    await retain(service, "b", item("turn one", document_id="d"))
    turns = [f"turn {word}" for word in ("two", "three", "four", "five", "six")]
    await asyncio.gather(*(retain(service, "b", item(turn, document_id="d", update_mode="append")) for turn in turns))
    assert sorted(await texts(service, "b")) == sorted(["turn one", *turns])
    document = await service.get_document(TENANT, "b", "d")
    assert sorted(document["original_text"].split("\n")) == sorted(["turn one", *turns])
    assert document["original_text"].startswith("turn one")


async def test_parallel_writes_of_one_document_leave_one_of_them_whole(service: MemoryService) -> None:
    versions = [[f"version {v} line {i}" for i in range(3)] for v in range(6)]
    await asyncio.gather(
        *(retain(service, "b", *(item(line, document_id="d") for line in version)) for version in versions)
    )
    found = sorted(await texts(service, "b"))
    document = (await service.get_document(TENANT, "b", "d"))["original_text"]
    assert document.split("\n") in versions
    assert found == sorted(document.split("\n"))


async def test_parallel_first_writes_to_a_new_home(service: MemoryService) -> None:
    await asyncio.gather(*(retain(service, "new", f"fact number {i}") for i in range(20)))
    assert sorted(await texts(service, "new")) == sorted(f"fact number {i}" for i in range(20))
    await asyncio.gather(*(retain(service, f"bank{i}", f"fact number {i}") for i in range(20)))
    for i in range(20):
        assert await texts(service, f"bank{i}") == [f"fact number {i}"]


async def test_retain_delete_and_recall_mixed_lose_and_revive_nothing(service: MemoryService) -> None:
    """Case 76 in small: no error, and at the end the bank holds what its writers agree on."""
    await retain(service, "b", "seed")

    async def one(number: int) -> None:
        await retain(service, "b", item(f"keeper {number} is here", document_id=f"keep{number}"))
        await retain(service, "b", item(f"goner {number} is here", document_id=f"gone{number}"))
        assert f"keeper {number} is here" in await recall(service, "b", f"keeper {number}")
        await service.delete_document(TENANT, "b", f"gone{number}")
        assert f"goner {number} is here" not in await recall(service, "b", f"goner {number}", arms=("keyword",))

    await asyncio.gather(*(one(number) for number in range(24)))
    assert sorted(await texts(service, "b")) == sorted(["seed", *(f"keeper {n} is here" for n in range(24))])
    stats = await service.bank_stats(TENANT, "b")
    assert stats["total_documents"] == 25


# -- repeated calls ----------------------------------------------------------------------------------------------------


async def test_one_operation_id_is_one_operation_and_one_run(service: MemoryService) -> None:
    wanted = str(uuid.uuid4())
    answers = await asyncio.gather(*(queue(service, "b", item("only once"), operation_id=wanted) for _ in range(5)))
    assert set(answers) == {wanted}
    assert (await ended(service, "b", wanted))["status"] == "completed"
    assert await queue(service, "b", item("another text"), operation_id=wanted) == wanted
    await asyncio.sleep(0.1)
    assert await texts(service, "b") == ["only once"]
    listed = await service.list_operations(TENANT, "b", None, None, 100, 0, True)
    assert [row["task_type"] for row in listed["operations"]] == ["retain"]


@pytest.mark.parametrize("still_open", [True, False])
async def test_an_operation_id_of_another_bank_is_a_conflict(service: MemoryService, still_open: bool) -> None:
    outage = Outage(service, -1 if still_open else 0)
    wanted = str(uuid.uuid4())
    await queue(service, "a", item("of a"), operation_id=wanted)
    if not still_open:
        await ended(service, "a", wanted)
    for other in ("b", "c", "d", "e", "f", "g"):  # in several partitions
        with pytest.raises(OperationIdTaken):
            await queue(service, other, item("of another"), operation_id=wanted)
    outage.left = 0


async def test_an_operation_id_of_a_deleted_bank_works_in_the_new_one(service: MemoryService) -> None:
    wanted = str(uuid.uuid4())
    await queue(service, "b", item("old"), operation_id=wanted)
    await ended(service, "b", wanted)
    await service.delete_bank(TENANT, "b")
    await queue(service, "b", item("new"), operation_id=wanted)
    assert (await ended(service, "b", wanted))["status"] == "completed"
    assert await texts(service, "b") == ["new"]


# -- deletion under work -----------------------------------------------------------------------------------------------


async def test_a_bank_deleted_under_operations_stays_deleted(service: MemoryService) -> None:
    """Case 83: start a slow retain, delete the bank, recreate it. The old job stops and the new bank is empty."""
    many = [item(f"Long sentence number {i} of the slow retain. " * 8) for i in range(80)]
    await queue(service, "b", *many)

    async def running() -> bool:
        found = await service.list_operations(TENANT, "b", "processing", "retain", 10, 0, True)
        return bool(found["total"])

    await until(running)
    await service.delete_bank(TENANT, "b")
    await retain(service, "b", "new life")

    async def stopped() -> bool:
        return not (await service.metrics_snapshot())["operations_running"]

    await until(stopped, 30)
    assert await texts(service, "b") == ["new life"]
    assert (await service.list_operations(TENANT, "b", None, None, 10, 0, False))["total"] == 0


async def test_a_deleted_bank_is_not_revived_by_its_operations(service: MemoryService) -> None:
    await queue(service, "b", *[item(f"Sentence {i} of the slow retain. " * 8) for i in range(40)])
    await service.delete_bank(TENANT, "b")
    await asyncio.sleep(2.0)
    assert (await service.list_banks(TENANT, None, 10, 0))["banks"] == []


async def test_a_retain_that_began_before_a_deletion_does_not_fill_the_new_bank(service: MemoryService) -> None:
    await retain(service, "b", "before")
    slow = asyncio.create_task(retain(service, "b", *[f"Sentence {i} of the slow retain. " * 8 for i in range(60)]))
    await asyncio.sleep(0.1)
    assert not slow.done()
    await service.delete_bank(TENANT, "b")
    await retain(service, "b", "new life")
    outcome = (await asyncio.gather(slow, return_exceptions=True))[0]
    assert isinstance(outcome, RecalldError) and outcome.status == 409
    assert await texts(service, "b") == ["new life"]


async def test_clearing_a_bank_under_retains_keeps_documents_and_units_together(service: MemoryService) -> None:
    for round_ in range(4):
        names = [f"d{round_}-{i}" for i in range(12)]
        await asyncio.gather(
            *(retain(service, "b", item(f"text of {name}", document_id=name)) for name in names),
            service.clear_memories(TENANT, "b", None),
        )
        listed = {name for name in await documents(service, "b")}
        assert {text.removeprefix("text of ") for text in await texts(service, "b")} == listed


# -- outages and poison ------------------------------------------------------------------------------------------------


async def test_a_worker_that_stays_away_fails_the_operation_after_its_attempts(service: MemoryService) -> None:
    outage = Outage(service, -1)
    wanted = await queue(service, "b", item("never"))
    found = await ended(service, "b", wanted)
    assert found["status"] == "failed"
    assert found["error_message"]
    assert outage.calls == FAST["operations_max_attempts"]
    outage.left = 0
    await service.retry_operation(TENANT, "b", wanted)
    assert (await ended(service, "b", wanted))["status"] == "completed"
    assert await texts(service, "b") == ["never"]


async def test_a_backlog_drains_by_itself_after_an_outage(service: MemoryService) -> None:
    """Case 88: no new call is needed."""
    outage = Outage(service, 2 * 8)
    wanted = [await queue(service, "b", item(f"fact {i}")) for i in range(8)]
    states = [(await ended(service, "b", one))["status"] for one in wanted]
    assert states == ["completed"] * 8
    assert outage.left == 0
    assert sorted(await texts(service, "b")) == [f"fact {i}" for i in range(8)]


async def test_an_operation_that_passes_its_wall_limit_runs_again_and_is_stored_once(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home", **{**FAST, "operations_wall_seconds": 1.0})
    try:
        hangs = 1
        real = service._dispatcher._worker

        class Hanging:
            async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
                nonlocal hangs
                if hangs:
                    hangs -= 1
                    await asyncio.sleep(4)
                return await (await real()).call(message, timeout=timeout)

        async def ref() -> Any:
            return Hanging()

        service._dispatcher._worker = ref  # type: ignore[method-assign]
        wanted = await queue(service, "b", item("slow but sure"))
        assert (await ended(service, "b", wanted))["status"] == "completed"
        await asyncio.sleep(3)
        assert await texts(service, "b") == ["slow but sure"]
    finally:
        await service.close()


async def test_operations_of_a_restart_go_on_and_are_stored_once(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home", **FAST)
    Outage(service, -1)
    ids = [await queue(service, "b", item(f"fact {i}")) for i in range(5)]
    await service.close()
    service = await opened(tmp_path / "home", **{**FAST, "operations_max_attempts": 10})
    try:
        for one in ids:
            assert (await ended(service, "b", one))["status"] == "completed"
        assert sorted(await texts(service, "b")) == [f"fact {i}" for i in range(5)]
    finally:
        await service.close()


async def test_a_poison_item_never_blocks_the_next(service: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text on which the embedder breaks: its operation ends failed, its neighbours in the same batch are stored."""
    real = Embedder.embed_text

    def embed(self: Embedder, text: str, *args: Any, **kwargs: Any) -> Any:
        if "POISON" in text:
            raise RuntimeError("native code broke")
        return real(self, text, *args, **kwargs)

    monkeypatch.setattr(Embedder, "embed_text", embed)
    bad = await queue(service, "b", item("POISON"))
    good = [retain(service, "b", f"good {i}") for i in range(8)]
    poison = [retain(service, "b", f"POISON {i}") for i in range(2)]
    outcomes = await asyncio.gather(*good[:4], *poison, *good[4:], return_exceptions=True)
    assert [isinstance(one, RecalldError) for one in outcomes] == [False] * 4 + [True] * 2 + [False] * 4
    after = await queue(service, "b", item("after"))
    assert (await ended(service, "b", after))["status"] == "completed"
    assert (await ended(service, "b", bad))["status"] == "failed"
    assert sorted(await texts(service, "b")) == sorted(["after", *(f"good {i}" for i in range(8))])


async def test_idle_shards_keep_no_slot_from_a_busy_one(tmp_path: Path) -> None:
    """More shards than slots: work starts at once wherever it is."""
    service = await opened(tmp_path / "home", **{**FAST, "operations_slots": 1, "shards": 4})
    try:
        await asyncio.sleep(0.2)
        started = asyncio.get_running_loop().time()
        for bank in "abcdefgh":  # on several shards
            await ended(service, bank, await queue(service, bank, item(f"fact of {bank}")))
        assert asyncio.get_running_loop().time() - started < 8
    finally:
        await service.close()


async def test_a_cancelled_operation_stores_nothing_and_a_retry_does(service: MemoryService) -> None:
    outage = Outage(service, -1)
    wanted = await queue(service, "b", item("on second thought"))
    await service.cancel_operation(TENANT, "b", wanted)
    outage.left = 0
    assert (await ended(service, "b", wanted))["status"] == "cancelled"
    await asyncio.sleep(0.3)
    assert await texts(service, "b") == []
    await service.retry_operation(TENANT, "b", wanted)
    assert (await ended(service, "b", wanted))["status"] == "completed"
    assert await texts(service, "b") == ["on second thought"]


async def test_no_operation_is_lost_when_claims_fail(service: MemoryService) -> None:
    """A claim is a write; one that fails (a full disk, say) must leave the operation for the next claim."""
    from recalld.actors import operations
    from recalld.storage.errors import DiskFull

    real, failures = operations.claim, [1]

    def claim(*args: Any, **kwargs: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise DiskFull("The disk is full.")
        return real(*args, **kwargs)

    operations.claim = claim
    try:
        wanted = await queue(service, "b", item("patient"))
        assert (await ended(service, "b", wanted, 40))["status"] == "completed"
    finally:
        operations.claim = real
    assert (await operation(service, "b", wanted))["status"] == "completed"

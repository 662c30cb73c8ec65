"""A model that is away, slow or too dear: work waits and says so, nothing is half stored, other banks go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from recalld.daemon.archive import restore
from recalld.daemon.service import MemoryService
from recalld.storage.errors import BudgetExhausted, Conflict, ModelUnavailable

from .model_server import (
    TENANT,
    ModelServer,
    ended,
    item,
    ledger,
    memories,
    model_server,
    operation,
    queue,
    retain,
    said_as_is,
    service_with,
    texts,
    until_operation,
)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as made:
        yield made


@pytest.fixture
async def service(server: ModelServer, tmp_path: Path) -> AsyncIterator[MemoryService]:
    async with service_with(server, tmp_path / "home") as made:
        yield made


def down(prompt: str) -> Any:
    return (503, {})


async def quick(service: MemoryService) -> float:
    """Median seconds of a retain into a bank that needs no model."""
    took = []
    for n in range(8):
        started = time.perf_counter()
        await retain(service, "quick", f"Line {n} at {started}.")
        took.append(time.perf_counter() - started)
    return sorted(took[1:])[3]


async def test_a_model_that_is_down_makes_async_retains_wait_and_then_drain(
    server: ModelServer, service: MemoryService
) -> None:
    await service.patch_config(TENANT, "quick", {"retain_extraction_mode": "chunks"})
    alone = await quick(service)
    server.answer = down
    ids = [await queue(service, "b", f"Ana shipped part {n}.") for n in range(5)]
    waiting = await until_operation(service, "b", ids[0], lambda found: found["progress"] is not None)
    assert waiting["progress"]["stage"] == "waiting_for_model"
    assert waiting["error_message"] and waiting["next_retry_at"]
    listed = await service.list_operations(TENANT, "b", "waiting_for_model", None, 20, 0, True)
    assert listed["total"] >= 1
    assert await quick(service) < max(3 * alone, 0.2)
    await asyncio.sleep(1.5)  # far more tries than attempts are allowed: waiting is none
    assert not ended(await operation(service, "b", ids[0]))
    server.answer = said_as_is
    for operation_id in ids:
        assert (await until_operation(service, "b", operation_id, ended, 30))["status"] == "completed"
    assert len(await texts(service, "b")) == 5


async def test_a_sync_retain_says_503_and_stores_nothing(server: ModelServer, service: MemoryService) -> None:
    server.answer = down
    with pytest.raises(ModelUnavailable) as caught:
        await retain(service, "b", "Ana owns the fix.", document_id="d")
    assert caught.value.status == 503 and "model" in caught.value.message.lower()
    assert await memories(service, "b") == []
    (row,) = (await service.list_operations(TENANT, "b", None, None, 10, 0, False))["operations"]
    assert row["status"] == "failed"
    server.answer = said_as_is
    await asyncio.sleep(0.5)
    assert await memories(service, "b") == []  # what was answered with an error is not stored behind its back


async def test_the_same_id_sent_again_after_an_error_is_carried_out_once(
    server: ModelServer, service: MemoryService
) -> None:
    server.answer = down
    given: dict[str, Any] = {"asynchronous": False, "operation_id": "7f1c2f7c-30a5-4d7c-9a30-000000000001"}
    with pytest.raises(ModelUnavailable):
        await service.retain(TENANT, "b", [item("Ana owns the fix.")], **given)
    server.answer = said_as_is
    await asyncio.sleep(6)  # the circuit of the endpoint closes again
    first = await service.retain(TENANT, "b", [item("Ana owns the fix.")], **given)
    calls = server.calls
    again = await service.retain(TENANT, "b", [item("Ana owns the fix.")], **given)
    assert server.calls == calls
    assert [list(row["unit_ids"]) for row in again["receipt"]] == [list(row["unit_ids"]) for row in first["receipt"]]
    assert await texts(service, "b") == ["Ana owns the fix."]


async def test_the_same_id_while_it_runs_is_a_conflict(server: ModelServer, service: MemoryService) -> None:
    server.delay = 0.5
    given: dict[str, Any] = {"asynchronous": False, "operation_id": "7f1c2f7c-30a5-4d7c-9a30-000000000002"}
    running = asyncio.create_task(service.retain(TENANT, "b", [item("Ana owns the fix.")], **given))
    await asyncio.sleep(0.3)
    with pytest.raises(Conflict):
        await service.retain(TENANT, "b", [item("Ana owns the fix.")], **given)
    await running
    assert server.calls == 1


async def test_a_slow_model_of_one_bank_does_not_slow_another(server: ModelServer, service: MemoryService) -> None:
    await service.patch_config(TENANT, "quick", {"retain_extraction_mode": "chunks"})
    alone = await quick(service)
    server.delay = 1.5
    slow = [asyncio.create_task(retain(service, f"slow{n}", f"Ana shipped part {n}.")) for n in range(12)]
    await asyncio.sleep(0.5)
    beside = await quick(service)
    await asyncio.gather(*slow)
    assert beside < max(3 * alone, 0.2)


async def test_what_was_paid_for_before_a_failure_is_not_paid_again(
    server: ModelServer, service: MemoryService
) -> None:
    failing = True

    def answer(prompt: str) -> Any:
        if "Zoe" in prompt and failing:
            return (503, {})
        return said_as_is(prompt)

    server.answer = answer
    first = "\n".join(f"In week {n} Ana shipped part {n} of the project." for n in range(50))
    operation_id = await queue(service, "b", first + "\n\n" + "Zoe left the project. " * 10)
    await until_operation(service, "b", operation_id, lambda found: found["progress"] is not None)
    failing = False
    assert (await until_operation(service, "b", operation_id, ended, 30))["status"] == "completed"
    paid = [row for row in await ledger(service, "b") if row["status"] == "success"]
    assert len(paid) == len({prompt for prompt in server.prompts})


async def test_a_line_appended_to_a_long_document_costs_its_tail(server: ModelServer, service: MemoryService) -> None:
    text = "\n".join(f"In week {n} Ana shipped part {n} of the project and told Ben." for n in range(5300))
    server.answer = lambda prompt: said_as_is(prompt)[-1:]
    assert len(text) > 300_000
    await retain(service, "b", text, document_id="d")
    before = server.calls
    assert before > 100
    await retain(service, "b", text + "\nZoe joined the project.", document_id="d")
    assert server.calls - before <= 2
    assert "Zoe joined the project." in await texts(service, "b")


async def test_retry_after_is_honoured_while_other_banks_go_on(server: ModelServer, service: MemoryService) -> None:
    await service.patch_config(TENANT, "quick", {"retain_extraction_mode": "chunks"})
    refused: set[str] = set()
    at: list[float] = []

    def answer(prompt: str) -> Any:
        at.append(time.monotonic())
        # No text twice: the service of these tests tries only once more.
        if len(refused) < 3 and prompt not in refused:
            refused.add(prompt)
            return (429, {"Retry-After": "1"})
        return said_as_is(prompt)

    server.answer = answer
    many = [asyncio.create_task(retain(service, f"b{n}", f"Ana shipped part {n}.")) for n in range(30)]
    await asyncio.sleep(0.3)
    started = time.perf_counter()
    await retain(service, "quick", "Nobody waits for a model here.")
    assert time.perf_counter() - started < 1.0
    await asyncio.gather(*many)
    assert len(at) <= 30 + 30 and max(at) - min(at) > 0.9


# -- budgets ---------------------------------------------------------------------------------------------------------


async def test_a_cap_makes_async_work_wait_until_it_is_raised(server: ModelServer, service: MemoryService) -> None:
    await service.patch_config(TENANT, "b", {"budget_bank_calls_per_day": 2})
    await retain(service, "b", "Ana owns the fix.")
    await retain(service, "b", "Ben likes tea.")
    with pytest.raises(BudgetExhausted) as caught:
        await retain(service, "b", "Zoe left.")
    assert caught.value.status == 429 and caught.value.retry_after > 0
    assert "budget_bank_calls_per_day" in caught.value.message
    operation_id = await queue(service, "b", "Zoe left the project.")
    waiting = await until_operation(service, "b", operation_id, lambda found: found["progress"] is not None)
    assert waiting["progress"]["stage"] == "waiting_for_budget" and waiting["status"] == "processing"
    assert server.calls == 2
    await retain(service, "c", "Other banks go on.")
    await service.patch_config(TENANT, "b", {"budget_bank_calls_per_day": 3})
    assert (await until_operation(service, "b", operation_id, ended))["status"] == "completed"
    assert server.calls == 4


async def test_caps_on_tokens_and_money_of_the_daemon(server: ModelServer, tmp_path: Path) -> None:
    given = {"budget_prices": ("openai/tiny=100/100",), "budget_cost_per_day": 0.16}
    async with service_with(server, tmp_path / "money", **given) as service:
        await retain(service, "a", "Ana owns the fix.")
        with pytest.raises(BudgetExhausted, match="budget_cost_per_day"):
            for n in range(5):
                await retain(service, f"b{n}", f"Ben likes tea number {n}.")
        (row,) = await ledger(service, "a")
        assert row["llm_info"]["cost"] == pytest.approx(0.012) and row["llm_info"]["cost_known"] is True
    async with service_with(server, tmp_path / "tokens", budget_bank_tokens_per_day=10) as service:
        with pytest.raises(BudgetExhausted, match="tokens"):
            await retain(service, "a", "Ana owns the fix.")
    async with service_with(server, tmp_path / "unknown", budget_cost_per_day=1.0) as service:
        with pytest.raises(BudgetExhausted, match="price"):
            await retain(service, "a", "Ana owns the fix.")


async def test_what_was_spent_is_known_after_a_restart(server: ModelServer, tmp_path: Path) -> None:
    async with service_with(server, tmp_path / "home", budget_calls_per_day=2) as service:
        await retain(service, "b", "Ana owns the fix.")
        await retain(service, "c", "Ben likes tea.")
    async with service_with(server, tmp_path / "home", budget_calls_per_day=2) as service:
        with pytest.raises(BudgetExhausted):
            await retain(service, "d", "Zoe left.")


async def test_a_crash_in_the_middle_loses_neither_the_text_nor_what_was_paid(
    server: ModelServer, tmp_path: Path
) -> None:
    """A copy of the store taken in the middle is what a crash leaves."""
    server.delay, server.slow = 3.0, "Zoe"
    text = "\n".join(f"In week {n} Ana shipped part {n} of the project." for n in range(60)) + "\nZoe left the project."
    async with service_with(server, tmp_path / "first", retain_chunk_size=1600) as service:
        running = asyncio.create_task(retain(service, "b", text, document_id="d"))
        for _ in range(100):
            if server.calls > 1 and len(await ledger(service, "b")) == server.calls - 1:
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        await service.backup(tmp_path / "copy.tar")
        await running
    before = server.calls
    server.delay = 0.0
    restore(tmp_path / "second", tmp_path / "copy.tar")
    async with service_with(server, tmp_path / "second", retain_chunk_size=1600) as service:
        found: dict[str, Any] = {"operations": []}
        for _ in range(300):
            found = await service.list_operations(TENANT, "b", "completed", None, 10, 0, False)
            if found["operations"]:
                break
            await asyncio.sleep(0.02)
        assert found["operations"]
        assert len(await texts(service, "b")) == 61
        assert server.calls - before == 1

"""A language model reads: what it cost is on record, nothing is paid twice, and a failure is no empty answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recalld.daemon.service import MemoryService

from .model_server import (
    TENANT,
    ModelServer,
    ended,
    ledger,
    memories,
    model_server,
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


async def test_a_model_reads_and_its_tokens_are_in_the_answer(server: ModelServer, service: MemoryService) -> None:
    answer = await retain(service, "b", "Ana owns the release. Ben likes tea.")
    assert await texts(service, "b") == ["Ana owns the release. Ben likes tea."]
    assert answer["usage"]["input_tokens"] == 100
    assert answer["usage"]["output_tokens"] == 20
    assert answer["operation_id"] is None
    (row,) = await ledger(service, "b")
    assert (row["operation"], row["status"], row["model"], row["input_tokens"]) == ("retain", "success", "tiny", 100)
    assert row["trace_id"] is not None and row["llm_info"]["counted_input_tokens"] > 100
    body = server.bodies[0]
    assert body["temperature"] == 0.1


def conversation(turns: int) -> str:
    who = ("Ben", "Ana")
    return "\n".join(f"{who[n % 2]}: In week {n} we shipped part {n} of the project." for n in range(turns))


@pytest.mark.parametrize("named", [True, False])
async def test_the_same_300_turns_three_times_cost_once(
    server: ModelServer, service: MemoryService, named: bool
) -> None:
    fields = {"document_id": "talk"} if named else {}
    counts, calls = [], []
    for _ in range(3):
        answer = await retain(service, "b", conversation(300), timestamp="2026-05-13T10:00:00+02:00", **fields)
        counts.append(len(await texts(service, "b")))
        calls.append(server.calls)
    assert counts == [300, 300, 300]
    assert calls[0] > 3 and calls[0] == calls[1] == calls[2]
    assert answer["usage"]["total_tokens"] == 0


async def test_500_on_every_call_fails_the_operation_and_can_be_retried(
    server: ModelServer, service: MemoryService
) -> None:
    server.answer = lambda prompt: (400, {})
    operation_id = await queue(service, "b", "Ana owns the release.")
    failed = await until_operation(service, "b", operation_id, ended)
    assert failed["status"] == "failed" and "refused" in failed["error_message"]
    assert await memories(service, "b") == []
    assert [row["status"] for row in await ledger(service, "b")] == ["error"]
    server.answer = said_as_is
    await service.retry_operation(TENANT, "b", operation_id)
    assert (await until_operation(service, "b", operation_id, ended))["status"] == "completed"
    assert await texts(service, "b") == ["Ana owns the release."]


async def test_a_claim_that_was_replaced_costs_nothing_when_its_text_comes_again(
    server: ModelServer, service: MemoryService
) -> None:
    old, new = "Ana owns the fix.\nBen lives in Lyon.", "Ben lives in Nantes now."
    for _ in range(2):
        await retain(service, "b", old, timestamp="2026-05-13T10:00:00+02:00", document_id="old")
        await retain(service, "b", new, timestamp="2026-05-14T10:00:00+02:00", document_id="new")
    assert server.calls == 2
    assert sorted(await texts(service, "b")) == ["Ana owns the fix.", "Ben lives in Nantes now."]
    assert (await service.verify(TENANT, "b"))["ok"] is True

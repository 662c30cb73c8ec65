"""What was erased stands nowhere any more: not in what operations were to store, not in answers kept for repeats."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from flight_service import TENANT, ended, item, opened, operation, queue, retain, texts

from recalld.daemon.service import MemoryService
from recalld.storage.errors import BadRequest, Conflict

TEXT, OTHER, NAME = "XYZZY the text that was taken back", "PLUGH a text of another document", "PATIENT-JOHN-DOE"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home", operations_max_attempts=1, operations_backoff_seconds=0.01)
    yield running
    await running.close()


class Refusing:
    """A worker that refuses every job."""

    name = "worker-0"

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        raise BadRequest("This cannot be stored.")


def stored(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


async def contents(service: MemoryService, operation_id: str) -> list[str]:
    """Texts that an operation and its children still hold."""
    found = []
    for child in (await operation(service, "b", operation_id))["child_operations"]:
        payload = (await service.get_operation(TENANT, "b", child["operation_id"], True))["task_payload"]
        found += [one["content"] for one in payload["items"]] if payload else []
    return found


async def failed_and_cancelled(service: MemoryService, *items: Any) -> tuple[str, str]:
    worker = service._dispatcher._worker
    service._dispatcher._worker = refusing  # type: ignore[method-assign]
    failed = await queue(service, "b", *items)
    assert (await ended(service, "b", failed))["status"] == "failed"
    await service._dispatcher.stop()
    service._dispatcher._worker = worker  # type: ignore[method-assign]
    cancelled = await queue(service, "b", *items)
    await service.cancel_operation(TENANT, "b", cancelled)
    assert await contents(service, failed) == await contents(service, cancelled) == [one.content for one in items]
    return failed, cancelled


async def refusing() -> Any:
    return Refusing()


@pytest.mark.parametrize("erase", ["document", "bank"])
async def test_no_byte_of_an_erased_text_outlives_it_in_an_operation(
    service: MemoryService, tmp_path: Path, erase: str
) -> None:
    await retain(service, "b", item("Something else.", document_id=NAME))
    operations = await failed_and_cancelled(service, item(TEXT, document_id=NAME), item(OTHER))
    if erase == "document":
        await service.delete_document(TENANT, "b", NAME)
    else:
        await service.clear_memories(TENANT, "b", None)
    for one in operations:
        assert await contents(service, one) == []
        with pytest.raises(Conflict, match="send it again"):
            await service.retry_operation(TENANT, "b", one)
    await service.compact()
    assert TEXT.encode() not in stored(tmp_path / "home") and NAME.encode() not in stored(tmp_path / "home")


async def test_operations_of_other_documents_keep_what_they_are_to_store(service: MemoryService) -> None:
    await retain(service, "b", item("Something else.", document_id=NAME))
    operations = await failed_and_cancelled(service, item(OTHER, document_id="other"))
    unnamed = await queue(service, "b", item(TEXT))
    await service.cancel_operation(TENANT, "b", unnamed)
    await service.delete_document(TENANT, "b", NAME)
    assert [await contents(service, one) for one in (*operations, unnamed)] == [[OTHER], [OTHER], [TEXT]]
    await service.retry_operation(TENANT, "b", operations[0])


async def test_answers_and_receipts_lose_the_names_of_what_was_erased_and_keep_the_rest(
    service: MemoryService, tmp_path: Path
) -> None:
    request = str(uuid.uuid4())
    items = [item(TEXT, document_id=NAME), item(OTHER, document_id="other")]
    answer = await service.retain(TENANT, "b", items, asynchronous=False, operation_id=request)
    gone, kept = answer["receipt"]
    background = await queue(service, "b", item("Queued text.", document_id=NAME), item("More.", document_id="more"))
    assert (await ended(service, "b", background))["status"] == "completed"
    receipt = (await service.receipt(TENANT, "b", background))["items"]
    await service.delete_document(TENANT, "b", NAME)
    await service.compact()
    held = stored(tmp_path / "home")
    for name in (NAME, *gone["unit_ids"], *receipt[0]["unit_ids"]):
        assert name.encode() not in held
    again = await service.retain(TENANT, "b", items, asynchronous=False, operation_id=request)
    assert again["receipt"] == [{**gone, "document_id": "", "unit_ids": []}, kept]
    after = (await service.receipt(TENANT, "b", background))["items"]
    assert after == [{**receipt[0], "document_id": "", "unit_ids": ()}, receipt[1]]
    assert sorted(await texts(service, "b")) == sorted([OTHER, "More."])

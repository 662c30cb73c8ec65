"""The official client as the end-to-end tests use it, and what the bank that they only read holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hindsight_client_api as low
import pytest
from e2e_daemon import Daemon
from hindsight_client import Hindsight

LYON = "Ana: I moved from Porto to Lyon in May 2024."
KETTLE = "Ben: My greyhound Miso is afraid of the kettle."
RUST = "I think that Rust is better than Go for servers."
FERRY = "assistant: I booked the ferry to Corsica for you."
PUMP = "The cellar pump failed on 10 June 2025."
ROOF = "Yesterday the roof was repaired."
ROOF_KEPT = "On 3 September 2025 the roof was repaired."
BOAT = "Carla's sailing boat is moored in Trieste."

LIBRARY: list[dict[str, Any]] = [
    {
        "content": LYON,
        "document_id": "trip/1",
        "tags": ["ana", "home"],
        "timestamp": datetime(2026, 2, 1, 10, tzinfo=UTC),
        "metadata": {"source": "chat"},
        "context": "a chat about moving",
        "entities": [{"text": "Acme", "type": "ORG"}],
    },
    {"content": KETTLE, "document_id": "dog", "tags": ["ben"], "timestamp": datetime(2026, 2, 2, 10)},  # noqa: DTZ001
    {"content": RUST, "document_id": "talk", "timestamp": "2026-02-03T10:00:00Z"},
    {"content": FERRY, "document_id": "ferry", "timestamp": "2026-02-04T10:00:00"},
    {
        "content": PUMP,
        "document_id": "pump",
        "tags": ["house", "ana"],
        "timestamp": datetime(2026, 2, 5, 10, tzinfo=timezone(timedelta(hours=8))),
    },
    {"content": ROOF, "document_id": "roof", "timestamp": "2025-09-04T10:00:00Z"},
    {"content": BOAT, "document_id": "boat", "tags": ["carla"], "timestamp": "2026-02-06T10:00:00Z"},
]


@asynccontextmanager
async def official(daemon: Daemon) -> AsyncIterator[Hindsight]:
    client = Hindsight(base_url=daemon.url)
    try:
        yield client
    finally:
        await client.aclose()


@asynccontextmanager
async def generated(daemon: Daemon) -> AsyncIterator[low.ApiClient]:
    async with low.ApiClient(low.Configuration(host=daemon.url)) as api:
        yield api


def texts(found: Any) -> list[str]:
    return [one.text for one in found.results]


async def ended(api: low.ApiClient, bank_id: str, operation_id: str) -> Any:
    for _ in range(600):
        status = await low.OperationsApi(api).get_operation_status(bank_id, operation_id)
        if status.status not in ("pending", "processing"):
            return status
        await asyncio.sleep(0.05)
    raise AssertionError(f"the operation did not end: {status}")


async def status_of(call: Callable[[], Awaitable[Any]]) -> tuple[int, str]:
    """Status and text of a refused call."""
    with pytest.raises(low.ApiException) as refused:
        await call()
    return refused.value.status, str(refused.value.body)


def long_text(changed: int | None = None) -> str:
    """A text of three chunks; `changed` names the paragraph that reads differently."""
    paragraphs = []
    for number in range(12):
        word = "granite" if number == changed else "marble"
        lines = [f"Paragraph {number} describes the {word} statue number {number * 50 + line}." for line in range(14)]
        paragraphs.append(" ".join(lines))
    return "\n\n".join(paragraphs)

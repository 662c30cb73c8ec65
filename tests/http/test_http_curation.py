"""Curation and the audit log over real HTTP, with the real service behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from http_edge import Edge
from pydantic import TypeAdapter

from recalld.daemon.app import build_app
from recalld.daemon.lifecycle import open_service
from recalld.daemon.settings_table import Settings
from recalld.daemon.wire import curation as wire

BANK = "/v1/default/banks/b"
PORTO, LYON = "Ana: I live in Porto.", "Ana: I live in Lyon."


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[Edge]:
    settings = Settings(home=tmp_path / "home", runtime="inline", extraction_provider="local", audit_log_enabled=True)
    service = await open_service(settings)
    server = TestServer(build_app(service, settings), host="127.0.0.1")
    await server.start_server()
    edge = Edge(server, service, aiohttp.ClientSession())  # type: ignore[arg-type]
    yield edge
    await edge.session.close()
    await server.close()
    await service.close()


async def told(edge: Edge) -> tuple[str, str]:
    """Ids of a claim and of the one that superseded it."""
    ids = []
    for text, when in ((PORTO, "2026-01-10T10:00:00Z"), (LYON, "2026-03-10T10:00:00Z")):
        answer = await edge.retain({"content": text, "timestamp": when})
        ids.append(answer.body["receipt"][0]["unit_ids"][0])
    return ids[0], ids[1]


async def patch(edge: Edge, memory_id: str, **fields: Any) -> Any:
    return await edge.send("PATCH", f"{BANK}/memories/{memory_id}", json=fields)


async def test_a_memory_is_edited_invalidated_and_reverted(real: Edge) -> None:
    porto, lyon = await told(real)
    listed = await real.send("GET", BANK + "/memories/list?state=invalidated")
    assert [(row["id"], row["superseded_by"]) for row in listed.body["items"]] == [(porto, lyon)]
    answer = await patch(real, lyon, state="invalidated", reason="a joke")
    assert (answer.status, answer.body["state"], answer.body["invalidation_reason"]) == (200, "invalidated", "a joke")
    assert (await patch(real, lyon, state="valid")).body["state"] == "valid"
    answer = await patch(real, lyon, text="Ana: I live in Lyon, by the river.", occurred_start="2026-02-01", context="")
    assert answer.body["text"].endswith("river.") and answer.body["occurred_start"][:10] == "2026-02-01"
    assert (await patch(real, lyon, occurred_start="")).body["occurred_start"] is None
    history = await real.send("GET", f"{BANK}/memories/{lyon}/history")
    assert [one["previous_text"] for one in history.body] == ["Ana: I live in Lyon, by the river.", LYON]
    assert (await real.send("GET", f"{BANK}/memories/{porto}/history")).body == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 422),
        ({"state": "gone"}, 422),
        ({"fact_type": "observation"}, 422),
        ({"text": "  "}, 422),
        ({"occurred_start": "soon"}, 400),
    ],
)
async def test_what_cannot_be_changed_is_refused_in_words(real: Edge, fields: dict[str, Any], status: int) -> None:
    _, lyon = await told(real)
    answer = await patch(real, lyon, **fields)
    assert answer.status == status and isinstance(answer.detail, str)


async def test_unknown_memories_and_banks_are_not_found(real: Edge) -> None:
    await told(real)
    unknown = "00000000-0000-4000-8000-000000000000"
    assert (await patch(real, unknown, state="valid")).status == 404
    assert (await patch(real, "x", state="valid")).status == 400
    other = await real.send("PATCH", f"/v1/default/banks/none/memories/{unknown}", json={"state": "valid"})
    assert other.status == 404
    assert (await real.send("GET", f"{BANK}/memories/{unknown}/history")).status == 404
    assert (await real.send("GET", "/v1/default/banks/none/audit-logs")).status == 404
    assert (await real.send("GET", f"{BANK}/audit-logs/{unknown}")).status == 404


async def test_the_audit_log_is_listed_filtered_counted_and_read(real: Edge) -> None:
    porto, lyon = await told(real)
    listed = await real.send("GET", BANK + "/audit-logs")
    TypeAdapter(wire.AuditLogListResponse).validate_python(listed.body)
    assert [one["action"] for one in listed.body["items"]][::-1] == ["retain", "retain", "superseded"] or sorted(
        one["action"] for one in listed.body["items"]
    ) == ["retain", "retain", "superseded"]
    found = (await real.send("GET", BANK + "/audit-logs?action=superseded&transport=system")).body
    assert found["total"] == 1
    entry = (await real.send("GET", f"{BANK}/audit-logs/{found['items'][0]['id']}")).body
    TypeAdapter(wire.AuditLogEntry).validate_python(entry)
    assert entry["metadata"] == {"unit_id": porto, "by": lyon, "reason": "attribute changed"}
    assert (await real.send("GET", BANK + "/audit-logs?start_date=2999-01-01")).body["total"] == 0
    assert (await real.send("GET", BANK + "/audit-logs?start_date=soon")).status == 400
    stats = (await real.send("GET", BANK + "/audit-logs/stats?period=1d")).body
    TypeAdapter(wire.AuditLogStatsResponse).validate_python(stats)
    assert (stats["trunc"], stats["buckets"][0]["total"]) == ("day", 3)
    assert (await real.send("GET", BANK + "/audit-logs/stats?period=2d")).status == 422

"""The SDK against a small real HTTP server that records what arrives."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from recalld.client import ApiError, AsyncClient, Client, Unreachable


class Recorder:
    """Answers every route with what it saw; `script` holds answers to give first, as (status, body, headers)."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.script: list[tuple[int, Any, dict[str, str]]] = []

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.seen.append(
            {
                "method": request.method,
                "path": request.raw_path,
                "body": json.loads(raw) if raw else None,
                "auth": request.headers.get("Authorization"),
            }
        )
        status, body, headers = self.script.pop(0) if self.script else (200, {"results": []}, {})
        return web.json_response(body, status=status, headers=headers)


@pytest.fixture
async def peer() -> AsyncIterator[tuple[Recorder, str]]:
    recorder = Recorder()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", recorder.handle)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    yield recorder, str(server.make_url("/"))
    await server.close()


async def test_ids_of_any_form_reach_the_server_byte_for_byte(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    async with AsyncClient(url) as memory:
        await memory.stats("a/b::ü 50%")
        await memory.get_document("x", "folder/file?.md")
    assert recorder.seen[0]["path"] == "/v1/default/banks/a%2Fb%3A%3A%C3%BC%2050%25/stats"
    assert recorder.seen[1]["path"] == "/v1/default/banks/x/documents/folder%2Ffile%3F.md"


async def test_retain_sends_only_what_was_given(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    when = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    async with AsyncClient(url, api_key="secret") as memory:
        await memory.retain("notes", "Ana moved.", timestamp=when, tags=["home"], asynchronous=True, operation_id="7")
    sent = recorder.seen[0]
    assert sent["body"] == {
        "items": [{"content": "Ana moved.", "timestamp": "2026-03-01T09:30:00+00:00", "tags": ["home"]}],
        "async": True,
        "operation_id": "7",
    }
    assert sent["auth"] == "Bearer secret"


async def test_filters_become_a_query_string_with_repeated_names(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    async with AsyncClient(url) as memory:
        await memory.list_memories("notes", tags=["a b", "c"], limit=5, type=None)
        await memory.list_operations("notes", exclude_parents=True)
    assert recorder.seen[0]["path"].endswith("/memories/list?tags=a+b&tags=c&limit=5")
    assert recorder.seen[1]["path"].endswith("/operations?exclude_parents=true")


async def test_recall_waits_for_a_busy_daemon_and_retain_does_not(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    busy = (503, {"detail": "busy"}, {"Retry-After": "0.05"})
    async with AsyncClient(url) as memory:
        recorder.script = [busy, busy]
        assert await memory.recall("notes", "where?") == {"results": []}
        assert len(recorder.seen) == 3
        recorder.script = [busy, busy, busy]
        with pytest.raises(ApiError) as third:
            await memory.recall("notes", "where?")
        assert third.value.status == 503
        recorder.seen.clear()
        recorder.script = [busy]
        with pytest.raises(ApiError) as refused:
            await memory.retain("notes", "text")
    assert refused.value.retry_after == 0.05
    assert len(recorder.seen) == 1


async def test_an_error_carries_status_and_the_whole_detail(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    detail = [{"type": "missing", "loc": ["body", "query"], "msg": "Field required", "input": {}}]
    recorder.script = [(422, {"detail": detail}, {}), (404, {"detail": "Bank 'x' not found"}, {})]
    async with AsyncClient(url) as memory:
        with pytest.raises(ApiError) as invalid:
            await memory.request("POST", "/v1/default/banks/x/memories/recall", body={})
        with pytest.raises(ApiError, match="Bank 'x' not found"):
            await memory.stats("x")
    assert invalid.value.detail == detail
    assert "body.query: Field required" in str(invalid.value)


async def test_waiting_for_an_operation_ends_with_its_state(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer
    recorder.script = [(200, {"status": "pending"}, {}), (200, {"status": "completed"}, {})]
    async with AsyncClient(url) as memory:
        assert (await memory.wait_operation("x", "1"))["status"] == "completed"
        recorder.script = [(200, {"status": "processing"}, {})] * 9
        with pytest.raises(TimeoutError, match="still processing"):
            await memory.wait_operation("x", "1", within=0.1)


async def test_the_blocking_client_works_inside_a_running_loop_and_from_threads(peer: tuple[Recorder, str]) -> None:
    recorder, url = peer

    def use() -> list[dict[str, Any]]:
        with Client(url) as memory:
            threads = [threading.Thread(target=memory.recall, args=("notes", f"q{i}")) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            memory.close()
            return [memory.recall("notes", "again")]

    assert await asyncio.to_thread(use) == [{"results": []}]
    assert len(recorder.seen) == 5


def test_nobody_there_says_how_to_start_one() -> None:
    with Client("http://127.0.0.1:9", timeout=2) as memory, pytest.raises(Unreachable, match="recalld serve"):
        memory.health()


def test_closing_ends_the_thread() -> None:
    before = threading.active_count()
    memory = Client("http://127.0.0.1:9", timeout=2)
    with pytest.raises(Unreachable):
        memory.health()
    memory.close()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_the_client_imports_nothing_of_the_other_folders() -> None:
    code = (
        "import sys, recalld.client; "
        "print([m for m in sys.modules if m.startswith(('recalld.daemon', 'recalld.actors', 'recalld.storage'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

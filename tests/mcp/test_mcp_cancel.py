"""Work nobody waits for any more is ended: by a notification, by a hang-up; a full lane is said."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_daemon import called
from mcp_slow import served


def talking(url: str, mode: str) -> Client:
    return Client(streamable_http_client(url), mode=mode, cache=None)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("stateless", [False, True])
async def test_a_cancelled_call_ends_its_work(mode: str, stateless: bool) -> None:
    if mode == "legacy" and stateless:
        pytest.skip("without a session there is nothing to send the notification to")
    async with served(mcp_stateless=stateless) as (service, url), talking(url, mode) as session:
        call = asyncio.create_task(session.call_tool("recall", {"query": "tea"}))
        await asyncio.wait_for(service.begun.wait(), 10)
        call.cancel()
        await asyncio.wait_for(service.ended.wait(), 5)
        with contextlib.suppress(asyncio.CancelledError):
            await call


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_client_that_hangs_up_ends_its_work(stateless: bool) -> None:
    async with served(mcp_stateless=stateless) as (service, url):
        headers: dict[str, str] = {}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        async with aiohttp.ClientSession() as http:
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            async with http.post(url, json=hello) as response:
                if not stateless:
                    headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
            asked = {"name": "recall", "arguments": {"query": "tea"}}
            message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
            response = await http.post(url, json=message, headers=headers)
            await asyncio.wait_for(service.begun.wait(), 10)
            response.close()
            await asyncio.wait_for(service.ended.wait(), 5)
            if not stateless:  # the session lives on
                listing = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
                async with http.post(url, json=listing, headers=headers) as response:
                    assert response.status == 200
                    assert "recall" in await response.text()


async def test_a_full_lane_is_said_in_the_payload() -> None:
    narrow = {"admission_recall_max_in_flight": 1, "admission_recall_max_wait_ms": 50}
    async with served(**narrow) as (service, url), talking(url, "auto") as session:
        first = asyncio.create_task(session.call_tool("recall", {"query": "tea"}))
        await asyncio.wait_for(service.begun.wait(), 10)
        second = await called(session, "recall", query="tea")
        assert "lane is full" in second["error"] and second["results"] == []
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first


async def test_what_fails_inside_is_not_told_to_the_caller() -> None:
    async with served() as (_, url), Client(streamable_http_client(url), mode="auto", cache=None) as session:
        failed = await called(session, "list_tags")
    assert failed == {"error": "Something went wrong inside recalld; the daemon's log has the details.", "items": []}

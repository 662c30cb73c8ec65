"""Settings of MCP: off, keys of its own, none, pages that may use it, names of tools that are none."""

from __future__ import annotations

import logging

import aiohttp
import pytest
from mcp_slow import served

from recalld.daemon.settings import load

LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


async def status(url: str, key: str | None = None) -> int:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
        return response.status


async def test_switched_off_there_is_nothing() -> None:
    async with served(mcp_enabled=False) as (_, url):
        assert await status(url) == 404


async def test_the_key_of_the_api_is_the_key_of_mcp() -> None:
    async with served(api_key="k") as (_, url):
        assert [await status(url), await status(url, "x"), await status(url, "k")] == [401, 401, 200]


async def test_a_token_of_its_own_stands_instead_of_the_key() -> None:
    async with served(api_key="k", mcp_auth_token="t", mcp_auth_disabled=True) as (_, url):
        assert [await status(url), await status(url, "k"), await status(url, "t")] == [401, 401, 200]


async def test_mcp_may_be_open_where_the_api_is_not() -> None:
    async with served(api_key="k", mcp_auth_disabled=True) as (_, url):
        assert await status(url) == 200
        assert await status(url.removesuffix("/mcp") + "/v1/default/banks") == 401


async def test_a_base_path_stands_before_it() -> None:
    async with served(base_path="/memory") as (_, url):
        assert await status(url) == 404
        assert await status(url.removesuffix("/mcp") + "/memory/mcp/") == 200


async def test_a_page_that_is_allowed_learns_its_session() -> None:
    origin = "https://app.example"
    async with served(allowed_origins=(origin,)) as (_, url), aiohttp.ClientSession() as http:
        async with http.options(url, headers={"Origin": origin}) as asked:
            assert asked.status == 204
            assert asked.headers["Access-Control-Allow-Origin"] == origin
            assert "Mcp-Session-Id" in asked.headers["Access-Control-Allow-Headers"]
        async with http.post(url, json=LIST, headers={"Origin": origin}) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert answer.headers["Access-Control-Expose-Headers"] == "Mcp-Session-Id"
        async with http.options(url, headers={"Origin": "https://evil.example"}) as asked:
            assert asked.status == 403


async def test_a_name_that_no_tool_has_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "recalld.mcp")
    async with served(mcp_enabled_tools=("recall", "remember")) as (_, url), aiohttp.ClientSession() as http:
        answer = await http.post(url, json=LIST)
        assert answer.status == 400
    assert "remember" in caplog.text and "'recall'" not in caplog.text


def test_the_names_people_have_set_already_are_understood() -> None:
    settings = load(
        {
            "HINDSIGHT_API_MCP_STATELESS": "true",
            "HINDSIGHT_API_MCP_AUTH_TOKEN": "t",
            "HINDSIGHT_API_MCP_ENABLED_TOOLS": "recall, retain",
            "HINDSIGHT_API_TENANT_MCP_AUTH_DISABLED": "1",
            "HINDSIGHT_MCP_BANK_ID": "mine",
        }
    )
    assert settings.mcp_stateless and settings.mcp_auth_disabled
    assert (settings.mcp_auth_token, settings.mcp_bank_id) == ("t", "mine")
    assert settings.mcp_enabled_tools == ("recall", "retain")

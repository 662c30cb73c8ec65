"""MCP as HTTP: sessions, headers, paths, keys, pages that are not ours, and limits."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_daemon import KEY, called, client

from recalld.daemon.mcp.http import MAX_BODY
from recalld.daemon.sandbox import Sandbox

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
BOTH = {"Accept": "application/json, text/event-stream"}


def sent(url: str, message: Any, **headers: str) -> httpx2.Response:
    return httpx2.post(url, json=message, headers=BOTH | headers, trust_env=False, timeout=30.0)


def event(response: httpx2.Response) -> dict[str, Any]:
    """The message of an answer that is one event."""
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in response.text.splitlines() if line]
    assert lines[0] == "event: message" and lines[1].startswith("data: ") and len(lines) == 2
    message: dict[str, Any] = json.loads(lines[1].removeprefix("data: "))
    return message


def opened(url: str) -> str:
    """The id of a new session."""
    response = sent(url, HELLO)
    assert response.status_code == 200
    return str(response.headers["mcp-session-id"])


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
def test_a_handshake_is_one_event_with_the_contracts_facts(daemon: Sandbox, version: str) -> None:
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": version}}  # type: ignore[dict-item]
    response = sent(daemon.url + "/mcp", hello)
    result = event(response)["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "hindsight-mcp-server"
    assert result["serverInfo"]["version"] == httpx2.get(daemon.url + "/version").json()["api_version"]
    capabilities = result["capabilities"]
    assert capabilities["logging"] == {}
    for name in ("tools", "prompts", "resources"):
        assert capabilities[name]["listChanged"] is True
    assert response.headers["x-request-id"]


def test_a_call_without_its_session_is_refused_in_the_contracts_words(daemon: Sandbox) -> None:
    response = sent(daemon.url + "/mcp/", LIST)
    assert response.status_code == 400
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "Bad Request: Missing session ID"},
    }


def test_a_session_is_used_and_ended(daemon: Sandbox) -> None:
    session = {"Mcp-Session-Id": opened(daemon.url + "/mcp")}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert sent(daemon.url + "/mcp", ready, **session).status_code == 202
    assert len(event(sent(daemon.url + "/mcp", LIST, **session))["result"]["tools"]) == 39
    level = {"jsonrpc": "2.0", "id": 3, "method": "logging/setLevel", "params": {"level": "info"}}
    assert event(sent(daemon.url + "/mcp", level, **session))["result"] == {}
    assert httpx2.delete(daemon.url + "/mcp", headers=session).status_code == 200
    assert sent(daemon.url + "/mcp", LIST, **session).status_code == 404
    assert sent(daemon.url + "/mcp", LIST, **{"Mcp-Session-Id": "unknown"}).status_code == 404


def test_probes_and_other_methods_have_their_answers(daemon: Sandbox) -> None:
    for path in ("/mcp", "/mcp/", "/mcp/one", "/mcp/one/"):
        probe = httpx2.get(daemon.url + path, follow_redirects=False)
        assert (probe.status_code, probe.json()) == (200, {})
        assert httpx2.put(daemon.url + path).status_code == 405
    assert httpx2.get(daemon.url + "/mcpx").status_code == 404
    assert httpx2.get(daemon.url + "/mcp/a/b").json() == {"error": "Not Found"}
    assert httpx2.get(daemon.url + "/version").json()["features"]["mcp"] is True


@pytest.mark.parametrize("accept", ["", "application/json", "text/event-stream", "text/html", "*/*"])
def test_whatever_a_client_accepts_it_gets_events(daemon: Sandbox, accept: str) -> None:
    assert event(sent(daemon.url + "/mcp", HELLO, Accept=accept))["result"]


def test_bodies_that_are_no_message_are_refused(daemon: Sandbox) -> None:
    url = daemon.url + "/mcp"
    plain = httpx2.post(url, content=json.dumps(HELLO), headers={"Content-Type": "text/plain"})
    assert plain.status_code == 415 and "Content-Type" in plain.json()["error"]
    broken = httpx2.post(url, content=b"{", headers={"Content-Type": "application/json"})
    assert broken.status_code == 400
    large = httpx2.post(url, content=b" " * (MAX_BODY + 1), headers={"Content-Type": "application/json"})
    assert large.status_code == 413 and "MB" in large.json()["error"]


def test_a_client_that_closes_as_soon_as_it_has_its_answer_keeps_its_session(daemon: Sandbox) -> None:
    for _ in range(20):
        with httpx2.stream("POST", daemon.url + "/mcp", json=HELLO, headers=BOTH) as response:
            session = response.headers["mcp-session-id"]
            for piece in response.iter_bytes():
                if b"serverInfo" in piece:
                    break
        assert sent(daemon.url + "/mcp", LIST, **{"Mcp-Session-Id": session}).status_code == 200


async def test_the_bank_is_the_paths_the_arguments_or_the_headers(daemon: Sandbox) -> None:
    for path, bank in (
        ("/mcp/sse", "sse"),
        ("/mcp/messages/", "messages"),
        ("/mcp/a%2Fb", "a/b"),
        ("/mcp/日本/", "日本"),
    ):
        async with client(daemon, path) as session:
            assert (await called(session, "sync_retain", content="The kettle is red."))["status"] == "completed"
            assert (await called(session, "get_bank"))["bank_id"] == bank
            # A call cannot leave the bank of its path.
            assert (await called(session, "get_bank", bank_id="elsewhere"))["bank_id"] == bank
    async with client(daemon, "/mcp", headers={"X-Bank-Id": "sse"}) as session:
        assert (await called(session, "get_bank"))["bank_id"] == "sse"
        assert (await called(session, "get_bank", bank_id="a/b"))["bank_id"] == "a/b"
    async with client(daemon, "/mcp") as session:
        await called(session, "sync_retain", content="The kettle is red.")
        assert (await called(session, "get_bank"))["bank_id"] == "default"
        assert "underscore" in (await called(session, "get_bank", bank_id="_x"))["error"]
    assert sent(daemon.url + "/mcp/_x", HELLO).status_code == 400
    assert "error" in sent(daemon.url + "/mcp/%FF", HELLO).json()


async def test_two_sessions_at_once_stay_apart(daemon: Sandbox) -> None:
    async def work(number: int) -> None:
        async with client(daemon, f"/mcp/apart-{number}", mode=("legacy", "auto")[number % 2]) as session:
            for turn in range(3):
                await called(session, "sync_retain", content=f"The secret of number {number} is word{number}{turn}.")
            found = await called(session, "recall", query="What is the secret?")
            texts = [one["text"] for one in found["results"]]
            assert len(texts) == 3
            assert all(f"number {number}" in text for text in texts)

    await asyncio.gather(*(work(number) for number in range(4)))


@pytest.mark.parametrize(
    "text",
    [
        "アナは東京で働いています。",
        "安娜住在上海，她喜欢喝茶。",
        "Žofia's Kätzchen heißt „Größe“ 🐈",
        "line\nbreak\ttab \u2028 end",
    ],
)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_every_script_comes_back_as_it_went_in(daemon: Sandbox, text: str, mode: str) -> None:
    async with client(daemon, f"/mcp/scripts-{mode}", mode=mode) as session:
        stored = await called(session, "sync_retain", content=text, context="会話", document_id="文書/1")
        document = await called(session, "get_document", document_id="文書/1")
        assert document["original_text"] == text
        if stored["memory_ids"]:
            memory = await called(session, "get_memory", memory_id=stored["memory_ids"][0])
            assert memory["context"] == "会話" and memory["document_id"] == "文書/1"


async def test_resources_and_prompts_are_listed_and_read(daemon: Sandbox) -> None:
    async with client(daemon, "/mcp/read") as session:
        stored = await called(session, "sync_retain", content="The kettle is red.", document_id="the kitchen")
        assert [one.uri for one in (await session.list_resources()).resources] == [
            "recalld://bank",
            "recalld://knowledge-base",
        ]
        templates = (await session.list_resource_templates()).resource_templates
        assert "recalld://documents/{document_id}" in [one.uri_template for one in templates]
        bank = (await session.read_resource("recalld://bank")).contents[0]
        assert json.loads(bank.text)["bank_id"] == "read" and bank.mime_type == "application/json"
        document = (await session.read_resource("recalld://documents/the%20kitchen")).contents[0]
        assert "kettle" in json.loads(document.text)["original_text"]
        memory = (await session.read_resource("recalld://memories/" + stored["memory_ids"][0])).contents[0]
        assert "kettle" in json.loads(memory.text)["text"]
        for wrong in ("recalld://documents/none", "recalld://nothing", "file:///etc/passwd", "recalld://bank/x"):
            with pytest.raises(Exception, match="no such resource"):
                await session.read_resource(wrong)
        assert [one.name for one in (await session.list_prompts()).prompts] == ["use_memory", "what_is_known"]
        told = await session.get_prompt("what_is_known", {"topic": "the kettle"})
        assert "the kettle" in told.messages[0].content.text
        with pytest.raises(Exception, match="argument"):
            await session.get_prompt("what_is_known", {})


async def test_pages_of_strangers_and_forged_hosts_are_refused(daemon: Sandbox) -> None:
    page = sent(daemon.url + "/mcp", HELLO, Origin="https://evil.example")
    assert page.status_code == 403 and "allowed_origins" in page.json()["error"]
    rebound = sent(daemon.url + "/mcp", HELLO, Host="evil.example")
    assert rebound.status_code == 403 and "allowed_hosts" in rebound.json()["error"]
    own = sent(daemon.url + "/mcp", HELLO, Origin=daemon.url)
    assert own.status_code == 200


async def test_a_key_is_needed_where_one_is_set(strict_daemon: Sandbox) -> None:
    url = strict_daemon.url + "/mcp"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer"}):
        refused = sent(url, LIST, **headers)
        assert refused.status_code == 401
        assert refused.json() == {"error": "Authentication failed: Invalid API key"}
        assert refused.headers["www-authenticate"] == "Bearer"
    assert httpx2.get(url).status_code == 401
    for given in (f"Bearer {KEY}", KEY):
        assert len(event(sent(url, LIST, Authorization=given))["result"]["tools"]) == 5


async def test_without_sessions_every_request_stands_alone(strict_daemon: Sandbox) -> None:
    bearer = {"Authorization": f"Bearer {KEY}"}
    hello = sent(strict_daemon.url + "/mcp", HELLO, **bearer)
    assert "mcp-session-id" not in hello.headers and event(hello)["result"]
    stream = httpx2.get(strict_daemon.url + "/mcp", headers={**bearer, "Mcp-Session-Id": "x"})
    assert stream.status_code == 405
    for mode in ("legacy", "auto"):
        async with client(strict_daemon, "/mcp", mode=mode, headers=bearer) as session:
            assert (await called(session, "retain", content="The kettle is red."))["status"] == "accepted"
            assert (await called(session, "get_bank"))["bank_id"] == "meant"
            assert "results" in await called(session, "recall", query="kettle")


async def test_sessions_are_few_and_end_when_nobody_uses_them(short_daemon: Sandbox) -> None:
    url = short_daemon.url + "/mcp"
    first, _second = opened(url), opened(url)
    full = sent(url, HELLO)
    assert full.status_code == 503
    # The form without sessions is not in the way of it.
    async with client(short_daemon, "/mcp", mode="auto") as session:
        assert await session.list_tools()
    await asyncio.sleep(1.2)
    assert sent(url, LIST, **{"Mcp-Session-Id": first}).status_code == 404
    assert opened(url)


async def test_an_open_stream_keeps_its_session(short_daemon: Sandbox) -> None:
    await asyncio.sleep(1.0)
    url = short_daemon.url + "/mcp"
    session = {"Mcp-Session-Id": await asyncio.to_thread(opened, url)}
    async with (
        aiohttp.ClientSession() as http,
        http.get(url, headers=session | {"Accept": "text/event-stream"}) as stream,
    ):
        assert stream.status == 200
        assert stream.content_type == "text/event-stream"
        await asyncio.sleep(1.2)
        assert (await asyncio.to_thread(sent, url, LIST, **session)).status_code == 200


async def test_a_daemon_that_serves_a_stream_ends_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    from recalld.daemon.sandbox import sandbox

    loop = asyncio.get_running_loop()
    async with sandbox({"runtime": "inline"}, home=tmp_path_factory.mktemp("end") / "home") as running:
        session = {"Mcp-Session-Id": await asyncio.to_thread(opened, running.url + "/mcp")}
        http = aiohttp.ClientSession()
        stream = await http.get(running.url + "/mcp", headers=session)
        assert stream.status == 200
        started = loop.time()
    assert loop.time() - started < 4.0
    stream.close()
    await http.close()


async def test_a_client_that_was_never_told_of_a_key_learns_it(strict_daemon: Sandbox) -> None:
    http = httpx2.AsyncClient(trust_env=False)
    hop = streamable_http_client(strict_daemon.url + "/mcp", http_client=http)
    with pytest.raises(BaseException):  # noqa: B017 - a group or not, by the form the client tries
        async with http, Client(hop, mode="legacy", cache=None):
            pass


def test_the_sdk_is_loaded_by_nobody_who_does_not_use_it() -> None:
    code = "import sys, recalld.daemon.app, recalld.daemon.cli; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

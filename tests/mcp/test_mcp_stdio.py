"""`recalld mcp`: the protocol and nothing else on stdout, with a daemon and without."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_daemon import KEY, called

from recalld.daemon.mcp import catalog
from recalld.daemon.sandbox import Sandbox

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
COMMAND = [sys.executable, "-m", "recalld.daemon", "mcp"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECALLD_", "HINDSIGHT_"))}
    return kept | more


@contextlib.asynccontextmanager
async def program(*arguments: str, mode: str = "legacy", **variables: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *arguments], env=environment(**variables)
    )
    async with Client(parameters, mode=mode, cache=None) as session:
        yield session


@contextlib.contextmanager
def raw(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(RECALLD_LOG_LEVEL="debug"),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def say(process: subprocess.Popen[str], message: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(message, ensure_ascii=False) + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_program_in_front_of_a_daemon_has_its_tools(daemon: Sandbox, mode: str) -> None:
    async with program("--url", daemon.url, mode=mode) as session:
        assert tuple(tool.name for tool in (await session.list_tools()).tools) == catalog.ORDER
        stored = await called(session, "sync_retain", content="アナは東京で働いています。", bank_id=f"東京 {mode}")
        assert stored["status"] == "completed"
        assert (await called(session, "get_bank", bank_id=f"東京 {mode}"))["bank_id"] == f"東京 {mode}"
        missing = await called(session, "recall", query="tea", bank_id="no such bank")
        assert missing == {"error": "Bank 'no such bank' not found", "results": []}
        wrong = await session.call_tool("recall", {})
        assert wrong.is_error and "query" in wrong.content[0].text
        assert (await session.call_tool("no_such_tool", {})).is_error
        assert len((await session.list_prompts()).prompts) == 2
        with pytest.raises(Exception, match="no such resource"):
            await session.read_resource("recalld://nothing")


async def test_a_program_for_one_bank_stays_in_it(daemon: Sandbox) -> None:
    async with program("--url", daemon.url, "--bank", "só um/日本") as session:
        assert len((await session.list_tools()).tools) == 36
        await called(session, "sync_retain", content="The kettle is red.", bank_id="elsewhere")
        assert (await called(session, "get_bank"))["bank_id"] == "só um/日本"
        assert len((await called(session, "recall", query="kettle"))["results"]) == 1


async def test_a_program_meant_for_a_bank_takes_it_where_none_is_named(strict_daemon: Sandbox) -> None:
    variables = {"RECALLD_MCP_AUTH_TOKEN": KEY, "HINDSIGHT_MCP_BANK_ID": "日記"}
    async with program("--url", strict_daemon.url, **variables) as session:
        assert (await called(session, "retain", content="The kettle is red."))["status"] == "accepted"
        assert (await called(session, "get_bank"))["bank_id"] == "日記"


def test_without_a_daemon_the_home_is_opened_and_stdout_stays_clean(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with raw("--home", home) as process:
        assert say(process, HELLO)["result"]["serverInfo"]["name"] == "hindsight-mcp-server"
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        arguments = {"content": "The kettle is 赤い."}
        stored = say(
            process,
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "sync_retain", "arguments": arguments},
            },
        )
        assert stored["result"]["structuredContent"]["status"] == "completed"
        arguments = {"query": "kettle"}
        found = say(
            process,
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "recall", "arguments": arguments}},
        )
        assert "赤い" in found["result"]["content"][0]["text"]
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(10) == 0
    with raw("--home", home) as process:  # the home was let go, and what was stored is there
        assert say(process, HELLO)["id"] == 1
        found = say(
            process,
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "recall", "arguments": arguments}},
        )
        assert "赤い" in found["result"]["content"][0]["text"]


def test_a_signal_ends_it_at_once_and_lets_the_home_go(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with raw("--home", home) as process:
        assert say(process, HELLO)["id"] == 1
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - started < 5
        with raw("--home", home) as next_one:
            assert say(next_one, HELLO)["id"] == 1


def test_with_nobody_to_talk_to_it_ends_with_a_sentence_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--home", str(tmp_path / "home"), "--bank", "_x"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(), check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert "underscore" in done.stderr


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_daemon_that_is_away_is_an_error_of_the_call_and_no_end(tmp_path: Path, mode: str) -> None:
    async with program("--url", "http://127.0.0.1:9", "--home", str(tmp_path / "home"), mode=mode) as session:
        for _ in range(2):
            with pytest.raises(MCPError, match="recalld serve"):
                await session.call_tool("recall", {"query": "tea"})


async def test_a_wrong_key_is_said(strict_daemon: Sandbox) -> None:
    async with program("--url", strict_daemon.url, RECALLD_MCP_AUTH_TOKEN="wrong") as session:
        with pytest.raises(MCPError, match="Invalid API key"):
            await session.call_tool("recall", {"query": "tea"})

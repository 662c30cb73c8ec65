"""Commands against a real daemon in a process of its own, and the same commands on a home nobody owns."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from recalld.daemon.cli import run
from recalld.daemon.commands.common import FAILURE, NOT_FOUND, UNREACHABLE, USAGE
from recalld.daemon.owner import find_owner
from recalld.daemon.sandbox import Sandbox, sandbox

ITEMS = [
    {"content": "Ana: I moved to Porto last May.", "timestamp": "2026-02-01T10:00:00Z", "document_id": "one"},
    {"content": "Rui: My dentist in Oslo is called Hagen.", "timestamp": "2026-02-02T10:00:00Z", "document_id": "two"},
    {"content": "Ana: The greyhound is afraid of the kettle.", "timestamp": "2026-02-03T10:00:00Z"},
]


@pytest.fixture(scope="module", autouse=True)
def no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RECALLD_URL", "RECALLD_HOME", "RECALLD_CONFIG"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with sandbox({"runtime": "inline"}, home=tmp_path / "home") as running:
        yield running


def output_of(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> Any:
    """The JSON a command printed."""
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def without_daemon_facts(answer: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(result["text"], result["document_id"]) for result in answer["results"]]


async def test_commands_give_the_same_with_and_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(json.dumps(item) for item in ITEMS))
    at = ["--home", str(home)]
    ask = ["recall", "notes", "What is the greyhound afraid of?", *at]

    def embedded() -> tuple[Any, Any, Any]:
        # A home of one's own: the first retain makes it, and no daemon is needed.
        retained = output_of(capsys, ["retain", "notes", "--jsonl", str(file), *at])
        return retained, output_of(capsys, ask), output_of(capsys, ["status", *at])

    retained, alone, status_alone = await asyncio.to_thread(embedded)
    assert retained["items_count"] == len(ITEMS)
    assert "kettle" in alone["results"][0]["text"]
    assert status_alone["running"] is False
    assert status_alone["url"] is None

    async with sandbox({"runtime": "inline"}, home=home) as running:

        def served() -> tuple[Any, Any]:
            return output_of(capsys, ask), output_of(capsys, ["status", *at])

        beside, status_served = await asyncio.to_thread(served)
        assert status_served["running"] is True
        assert status_served["url"] == running.url
    assert without_daemon_facts(beside) == without_daemon_facts(alone)
    assert set(status_served) == set(status_alone)


async def test_status_says_what_the_daemon_runs_with(daemon: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--home", str(daemon.home)]
    status = await asyncio.to_thread(output_of, capsys, ["status", *at])
    assert status["home"] == str(daemon.home)
    assert status["runtime"] == "inline"
    assert status["partitions"] == 4
    assert status["embedding"]["dimensions"] == 384
    assert "ExecutionProvider" in status["embedding"]["provider"]
    assert status["ranking"]
    assert status["model"]["provider"]
    assert status["model"]["check"]


async def test_failures_have_their_exit_codes(
    daemon: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--home", str(daemon.home)]

    def check() -> None:
        assert run(["recall", "no-such-bank", "anything", *at]) == NOT_FOUND
        assert run(["recall", "no-such-bank", "...", *at]) == USAGE
        assert run(["retain", "_bad", "text", *at]) == USAGE
        second = [sys.executable, "-m", "recalld.daemon", "serve", "--runtime", "inline", "--port", "0", *at]
        refused = subprocess.run(second, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == UNREACHABLE
        assert str(daemon.pid) in refused.stderr
        taken = tmp_path / "taken"
        taken.write_text("mine")
        assert run(["backup", str(taken), *at]) == FAILURE
        assert taken.read_text() == "mine"
        assert run(["restore", str(taken), *at]) == UNREACHABLE

    await asyncio.to_thread(check)


async def test_a_backup_made_while_serving_restores_elsewhere(
    daemon: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--home", str(daemon.home)]
    file = tmp_path / "memory.backup"
    other = tmp_path / "other"

    def check() -> None:
        for item in ITEMS:
            assert run(["retain", "notes", str(item["content"]), *at]) == 0
        before = output_of(capsys, ["recall", "notes", "Who is the dentist?", *at])
        output_of(capsys, ["compact", *at])
        output_of(capsys, ["backup", str(file), *at])
        assert file.stat().st_mode & 0o077 == 0
        output_of(capsys, ["restore", str(file), "--home", str(other)])
        after = output_of(capsys, ["recall", "notes", "Who is the dentist?", "--home", str(other)])
        assert without_daemon_facts(after) == without_daemon_facts(before)
        assert run(["restore", str(file), "--home", str(other)]) != 0, "a home that holds something is not replaced"
        assert run(["restore", str(file), "--home", str(other), "--force"]) == 0

    await asyncio.to_thread(check)


async def test_stop_waits_until_the_daemon_is_gone(daemon: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    answer = await asyncio.to_thread(output_of, capsys, ["stop", "--home", str(daemon.home)])
    assert answer["stopped"] is True
    assert answer["pid"] == daemon.pid
    assert find_owner(daemon.home) is None


async def test_doctor_finds_a_running_daemon_well(daemon: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    report = await asyncio.to_thread(output_of, capsys, ["doctor", "--home", str(daemon.home)])
    assert report["ok"]
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["rights"]["outcome"] == "ok", checks["rights"]
    assert str(daemon.pid) in checks["owner"]["found"]
    assert "this machine only" in checks["port"]["found"]
    assert checks["store"]["outcome"] == "ok"


async def test_doctor_tells_what_to_do_about_a_key_and_about_another_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sandbox({"runtime": "inline", "api_key": "secret"}, home=tmp_path / "home") as running:

        def look(home: Path) -> dict[str, Any]:
            report = output_of(capsys, ["doctor", "--home", str(home)], code=0 if home == running.home else FAILURE)
            return {check["name"]: check for check in report["checks"]}

        keyed = await asyncio.to_thread(look, running.home)
        assert "RECALLD_API_KEY" in keyed["store"]["advice"]
        assert await asyncio.to_thread(run, ["status", "--home", str(running.home)]) == FAILURE
        assert "RECALLD_API_KEY" in capsys.readouterr().err
        monkeypatch.setenv("RECALLD_PORT", running.url.rpartition(":")[2])
        beside = await asyncio.to_thread(look, tmp_path / "none")
        assert "another recalld" in beside["port"]["found"]


def test_commands_wait_for_a_daemon_that_is_starting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--home", str(tmp_path / "home")]
    assert run(["init", *at]) == 0
    serve = [sys.executable, "-m", "recalld.daemon", "serve", "--runtime", "inline", "--port", "0", *at]
    process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        lock = tmp_path / "home" / "run" / "lock"
        while not (lock.exists() and str(process.pid) in lock.read_text()):
            assert process.poll() is None
            time.sleep(0.01)
        assert output_of(capsys, ["status", *at])["running"] is True
    finally:
        process.terminate()
        assert process.wait(20) == 0

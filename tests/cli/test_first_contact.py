"""What a new user meets: no daemon yet, a typing error, a wrong folder. Always a sentence, never a traceback."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from recalld.daemon import logs
from recalld.daemon.cli import run
from recalld.daemon.commands.common import FAILURE, UNREACHABLE, USAGE


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECALLD_URL", "RECALLD_HOME", "RECALLD_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_async_without_a_daemon_ends_when_the_work_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--home", str(tmp_path / "home")]
    assert run(["retain", "notes", "Ana moved to Porto.", "--async", *at]) == 0
    assert "no daemon runs, so extraction was waited for" in capsys.readouterr().out
    assert run(["recall", "notes", "Where is Ana?", "--json", *at]) == 0
    assert "Porto" in json.loads(capsys.readouterr().out)["results"][0]["text"]


def test_a_program_reads_json_alone_on_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recalld.daemon"]
    at = ["--home", str(tmp_path / "home"), "--json"]
    made = subprocess.run([*command, "init", *at], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(made.stdout)["partitions"] == 4
    done = subprocess.run([*command, "compact", *at], capture_output=True, text=True, timeout=60, check=True)
    assert "partitions" in json.loads(done.stdout)


@pytest.mark.parametrize("form", ["json", "text"])
def test_every_log_line_has_one_form_and_none_is_on_stdout(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", form)
    try:
        logging.getLogger("recalld.http").warning("%s was asked", "a route")
        structlog.get_logger("recalld.actors").warning("an actor ended", actor="shard-0")
        structlog.get_logger("recalld.actors").debug("not heard")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logging.getLogger("asyncio").exception("a task failed")
    finally:
        logs.configure("warning", "text")
    said = capsys.readouterr()
    assert not said.out
    if form == "json":
        lines = [json.loads(line) for line in said.err.splitlines()]
        assert [line["event"] for line in lines] == ["a route was asked", "an actor ended", "a task failed"]
        assert [line["logger"] for line in lines] == ["recalld.http", "recalld.actors", "asyncio"]
        assert all(line["level"] and line["timestamp"] for line in lines)
    else:
        first, second, *_ = said.err.splitlines()
        assert "[warning  ] an actor ended" in second
        assert "[warning  ] a route was asked" in first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--url", "http://127.0.0.1:99999"], "not the URL of a daemon"),
        (["recall", "b", "q", "--url", "nonsense"], "not the URL of a daemon"),
        (["bench", "latency", "--url", "nonsense"], "not the URL of a daemon"),
        (["bench", "latency", "--runtime", "foo"], "--runtime: must be one of ray, inline"),
        (["bench", "latency", "--set", "foo=1"], "--set foo: there is no such setting"),
        (["bench", "latency", "--budget", "huge"], "low, mid or high"),
        (["bench", "latency", "--units", "-1"], "greater than or equal to 1"),
        (["bench", "scale", "--units", "-1"], "list of numbers"),
        (["bench", "locomo", "{tmp}/missing.json"], "cannot be read: no such file"),
        (
            ["serve", "--set", "recal.max_ms=1"],
            "--set recal.max_ms: there is no such setting; did you mean recall.max_ms?",
        ),
        (["serve", "--config", "{tmp}/bad.toml"], "bad.toml is not valid TOML"),
        (["serve", "--port", "0", "--home", "{tmp}/home", "--embedding-model", "{tmp}/none"], "{tmp}/none"),
        (["init", "--home", "{tmp}/bad.toml"], "is a file"),
        (["init", "--home", "/proc/nowhere"], "choose another with --home"),
        (["retain", "b", "--file", "{tmp}/missing.txt"], "missing.txt cannot be read: no such file"),
        (["retain", "b", "--file", "{tmp}/binary"], "is not UTF-8 text"),
        (["retain", "b", "--jsonl", "{tmp}/binary"], "is not UTF-8 text"),
        (["restore", "{tmp}"], "is a folder"),
        (["restore", "{tmp}/missing"], "There is no file"),
        (["recall", "b", "q", "--limit", "0"], "--limit"),
    ],
)
def test_a_wrong_command_line_gets_a_sentence_and_makes_nothing(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text("port = = 1")
    (tmp_path / "binary").write_bytes(b"\x89PNG\xff\x00")
    before = sorted(tmp_path.iterdir())
    code = run([one.replace("{tmp}", str(tmp_path)) for one in arguments])
    printed = " ".join(capsys.readouterr().err.split())
    assert code == USAGE, printed
    assert said.replace("{tmp}", str(tmp_path)) in printed
    assert "Value error" not in printed
    assert sorted(tmp_path.iterdir()) == before


def test_an_empty_list_of_conversations_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("{}", "[]"):
        (tmp_path / "talks.json").write_text(text)
        assert run(["bench", "locomo", str(tmp_path / "talks.json")]) == USAGE
        assert "holds no conversations" in capsys.readouterr().err


def test_a_taken_port_leaves_no_new_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        arguments = ["--runtime", "inline", "--port", str(taken.getsockname()[1]), "--home", str(tmp_path / "home")]
        code = subprocess.run(
            [sys.executable, "-m", "recalld.daemon", "serve", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert code.returncode == UNREACHABLE
    assert "--port" in code.stderr
    assert not (tmp_path / "home").exists()


def test_a_stopped_home_tells_its_configured_runtime_and_forgets_a_dead_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    assert run(["init", "--home", str(home)]) == 0
    record = home / "run" / "daemon.json"
    dead = json.dumps({"pid": os.getpid(), "start_time": 1.0, "host": "127.0.0.1", "port": 1})
    record.write_text(dead)
    assert run(["stop", "--home", str(home)]) == 0
    assert not record.exists()
    record.write_text(dead)
    capsys.readouterr()
    assert run(["status", "--home", str(home), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runtime"] == "ray"
    assert not record.exists()


def test_a_backup_into_no_folder_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert run(["init", "--home", str(home)]) == 0
    assert run(["backup", str(tmp_path / "nodir" / "x"), "--home", str(home)]) == FAILURE
    assert f"There is no folder {tmp_path}/nodir" in capsys.readouterr().err


def test_why_not_prints_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--home", str(tmp_path / "home")]
    assert run(["retain", "notes", "Ana moved to Porto.", *at]) == 0
    unit = "00000000-0000-4000-8000-000000000000"
    assert run(["recall", "notes", "Where is Ana?", "--why-not", unit, *at]) == 0
    assert f"{unit}: unknown id: " in capsys.readouterr().out
    assert run(["recall", "other", "Where is Ana?", *at]) == 3
    assert "retain something into it" in capsys.readouterr().err


def test_an_unknown_variable_is_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECALLD_PROT", "1")
    assert run(["stop", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("RECALLD_PROT") == 1
    monkeypatch.setenv("RECALLD_LOG_FORMAT", "json")
    assert run(["stop", "--home", str(tmp_path)]) == 0
    assert "RECALLD_PROT" in json.loads(capsys.readouterr().err)["event"]


def test_a_daemon_on_ray_ends_with_nothing_but_json_on_its_log(tmp_path: Path) -> None:
    home, errors = tmp_path / "home", tmp_path / "errors"
    serve = [sys.executable, "-m", "recalld.daemon", "serve", "--home", str(home), "--port", "0", "--json"]
    with errors.open("w") as log:
        daemon = subprocess.Popen(
            [*serve, "--set", "log_format=json", "--set", "access_log=true"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert daemon.stdout is not None
            status = json.loads(daemon.stdout.readline())
            assert run(["status", "--home", str(home), "--json"]) == 0
            daemon.terminate()
            assert daemon.wait(20) == 0
            assert daemon.stdout.read() == ""
        finally:
            daemon.kill()
            daemon.wait()
            if daemon.stdout is not None:
                daemon.stdout.close()
    assert status["runtime"] == "ray"
    lines = [json.loads(line) for line in errors.read_text().splitlines()]
    assert any(line["logger"] == "recalld.access" for line in lines)

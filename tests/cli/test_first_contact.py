"""What a new user meets: no daemon yet, a typing error, a wrong folder. Always a sentence, never a traceback."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from recalld.daemon import logs
from recalld.daemon.cli import run


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

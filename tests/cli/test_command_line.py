"""The command line without a daemon: help, exit codes, input files, and what a broken record means."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from recalld.client import ApiError, Unreachable
from recalld.daemon.cli import run
from recalld.daemon.commands.common import FAILURE, NOT_FOUND, UNREACHABLE, USAGE, CommandError, code_of
from recalld.daemon.commands.memory import BATCH, batches, by_document, read_items
from recalld.daemon.commands.serve import assignments
from recalld.daemon.owner import Owner, find_owner, recorded_owner
from recalld.storage.errors import BadRequest, BankNotFound, DiskFull, HomeInUse, Unavailable

COMMANDS = ["serve", "init", "status", "stop", "doctor", "compact", "backup", "restore", "retain", "recall", "bench"]


def write_record(home: Path, **fields: object) -> None:
    (home / "run").mkdir(parents=True, exist_ok=True)
    (home / "run" / "daemon.json").write_text(json.dumps(fields))


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert f" {command} " in overview
        assert run([command, "--help"]) == 0
        assert "--" in capsys.readouterr().out


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys; from recalld.daemon.cli import run; run(['--help']); "
        "heavy = {'aiohttp', 'numpy', 'onnxruntime', 'ray', 'lmdb', 'pydantic', 'tokenizers'} & set(sys.modules); "
        "sys.exit(1 if heavy else 0)"
    )
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]
    assert time.perf_counter() - begun < 3  # 0.2 s on an idle core


def test_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("recalld ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing-like-this"],
        ["recall", "only-a-bank"],
        ["serve", "--port", "many"],
        ["serve", "--set", "no-equals-sign"],
        ["serve", "--set", "no.such.setting=1"],
        ["serve", "--port", "99999"],
        ["retain", "bank"],
        ["retain", "bank", "text", "--file", "also.txt"],
        ["bench", "locomo", "missing.json", "--form", "other"],
    ],
)
def test_wrong_usage_ends_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == USAGE
    assert capsys.readouterr().err


def test_a_missing_home_ends_with_three_and_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "none"
    for arguments in (["status"], ["recall", "b", "q"], ["compact"], ["backup", str(tmp_path / "f")]):
        assert run([*arguments, "--home", str(home)]) == NOT_FOUND
        assert "recalld init" in capsys.readouterr().err
    assert not home.exists()


def test_an_unreachable_daemon_ends_with_four(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recall", "b", "q", "--url", "http://127.0.0.1:9"]) == UNREACHABLE
    assert "recalld serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadRequest("x"), USAGE),
        (BankNotFound.named("x"), NOT_FOUND),
        (HomeInUse("x"), UNREACHABLE),
        (Unavailable("x"), UNREACHABLE),
        (DiskFull("x"), FAILURE),
        (CommandError("x", 7), 7),
        (ApiError(404, "Bank 'x' not found"), NOT_FOUND),
        (ApiError(422, [{"loc": ["body"], "msg": "no"}]), USAGE),
        (ApiError(503, "busy"), UNREACHABLE),
        (ApiError(500, "broken"), FAILURE),
        (Unreachable("http://x", "refused"), UNREACHABLE),
        (FileNotFoundError(2, "No such file", "f"), FAILURE),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int) -> None:
    known = code_of(error)
    assert known is not None
    assert known[0] == code
    assert known[1]


def test_a_fault_of_the_program_is_not_dressed_up() -> None:
    assert code_of(ZeroDivisionError()) is None


def test_stop_without_a_daemon_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stop", "--home", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stopped"] is False


def test_stop_ends_exactly_the_recorded_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        started = psutil.Process(child.pid).create_time()
        write_record(tmp_path, pid=child.pid, start_time=started - 500, host="127.0.0.1", port=1)
        assert run(["stop", "--home", str(tmp_path)]) == 0
        assert child.poll() is None, "another process that got the daemon's pid must live"
        write_record(tmp_path, pid=child.pid, start_time=started, host="127.0.0.1", port=1)
        assert run(["stop", "--home", str(tmp_path)]) == 0
        assert child.wait(5) != 0
        assert "Stopped" in capsys.readouterr().out
    finally:
        child.kill()
        child.wait()


def test_a_broken_or_outlived_record_is_no_owner(tmp_path: Path) -> None:
    assert find_owner(tmp_path) is None
    (tmp_path / "run").mkdir()
    for text in ("", "{", "[]", '{"pid": 1}', '{"pid": "x", "start_time": 1, "host": "h", "port": 1}'):
        (tmp_path / "run" / "daemon.json").write_text(text)
        assert recorded_owner(tmp_path) is None
    write_record(tmp_path, pid=os.getpid(), start_time=1.0, host="127.0.0.1", port=1)
    assert recorded_owner(tmp_path) is not None
    assert find_owner(tmp_path) is None


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8888"),
        ("0.0.0.0", "http://127.0.0.1:8888"),
        ("::", "http://[::1]:8888"),
        ("fe80::1", "http://[fe80::1]:8888"),
        ("box.lan", "http://box.lan:8888"),
    ],
)
def test_an_owner_is_reached_where_it_listens(host: str, url: str) -> None:
    assert Owner(1, 1.0, host, 8888).url == url
    assert Owner(1, 1.0, host, 8888, "/memory").url == url + "/memory"


def test_items_of_one_document_stay_in_one_call() -> None:
    items = [{"content": str(n), "document_id": "long" if n > 2 else None} for n in range(BATCH * 2)]
    items.append({"content": "x", "document_id": "other"})
    items.append({"content": "late", "document_id": "long"})
    ordered = by_document(items)
    calls = [ordered[start:stop] for start, stop in batches(ordered)]
    assert [item for call in calls for item in call] == ordered
    assert len(ordered) == len(items)
    for document in ("long", "other"):
        assert sum(any(item["document_id"] == document for item in call) for call in calls) == 1


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text('{"content": "a"}\n\n{"content": "b", "tags": ["x"]}\n')
    assert [item["content"] for item in read_items(file)] == ["a", "b"]
    file.write_text('{"content": "a"}\nnot json\n')
    with pytest.raises(CommandError, match="line 2"):
        read_items(file)
    file.write_text('{"text": "a"}\n')
    with pytest.raises(CommandError, match="content"):
        read_items(file)


def test_set_takes_values_with_equals_signs() -> None:
    assert assignments(["a.b=1", "c=x=y"]) == {"a.b": "1", "c": "x=y"}


def test_a_taken_port_is_reported_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from recalld.daemon.doctor import check_port
    from recalld.daemon.settings import load

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check = check_port(load({}, None, {"home": tmp_path, "port": port}))
    assert check.outcome == "fail"
    assert "--port" in check.advice

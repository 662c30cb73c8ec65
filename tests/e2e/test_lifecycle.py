"""Starting and ending as a user does it: Ctrl+C, status, stop, backup and restore, and homes that cannot be served."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from e2e_daemon import Bank, Daemon, command

from recalld.storage.errors import StoreCorrupt
from recalld.storage.home import Home

Start = Callable[..., Daemon]
RUNTIMES = ["inline", pytest.param("ray", marks=pytest.mark.ray)]


def words(text: str) -> str:
    """A screen's text whatever its width."""
    return " ".join(text.split())


def left_over(tree: list[psutil.Process], home: Path) -> list[str]:
    """What of a daemon's processes still runs: those seen before, and any that names its home."""
    left = [one for one in tree if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    for process in psutil.process_iter(["cmdline"]):
        if str(home) in " ".join(process.info["cmdline"] or []):
            left.append(process)
    return [f"{one.pid} {' '.join(one.cmdline())[:100]}" for one in left]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_interrupt_ends_the_daemon_within_five_seconds_and_loses_nothing(start: Start, runtime: str) -> None:
    daemon = start(runtime)
    bank = daemon.wire.bank("notes")
    bank.retain("The gardener is called Ilse.")
    operations = [bank.retain(f"Delivery {n} came at dawn.", **{"async": True})["operation_id"] for n in range(30)]
    # A long request is under way as well: its client may be cut off, the end may not wait for it.
    slow = "\n\n".join(f"Row {n} of the long ledger names the sum of {n * 37} crowns." for n in range(4000))
    sender = threading.Thread(target=_send_quietly, args=(bank, slow))
    sender.start()
    time.sleep(0.3)
    tree = daemon.tree()
    seconds = daemon.interrupt(signal.SIGINT)
    sender.join(10)
    assert seconds <= 5, f"it took {seconds:.1f} s"
    assert daemon.process.returncode == 0, daemon.printed
    assert left_over(tree, daemon.home) == []
    assert not (daemon.home / "run" / "daemon.json").exists()
    assert "Traceback" not in daemon.printed, daemon.printed

    # What was acknowledged is there and what was begun is done, whichever runtime serves the home next.
    again = start("inline", home=daemon.home).wire.bank("notes")
    assert again.texts("What is the gardener called?")[0] == "The gardener is called Ilse."
    assert {again.wait_for(operation)["status"] for operation in operations} == {"completed"}
    deliveries = [one["text"] for one in again.list(limit=10_000) if one["text"].startswith("Delivery")]
    assert sorted(deliveries) == sorted(f"Delivery {n} came at dawn." for n in range(30))
    ledger = sum(one["text"].startswith("Row") for one in again.list(limit=10_000))
    assert ledger == 0 or again.list(q="Row 3999 of the long ledger"), "a retain is stored whole or not at all"


def test_a_second_interrupt_ends_the_daemon_at_once(start: Start) -> None:
    daemon = start("inline", "--set", "shutdown_grace=30")
    bank = daemon.wire.bank("notes")
    bank.retain("The gardener is called Ilse.")
    slow = "\n\n".join(f"Row {n} of the long ledger names the sum of {n * 37} crowns." for n in range(3000))
    sender = threading.Thread(target=_send_quietly, args=(bank, slow))
    sender.start()
    time.sleep(0.3)
    tree = daemon.tree()
    daemon.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert daemon.process.poll() is None, "the long request has its grace"
    assert daemon.interrupt(signal.SIGINT) < 1
    sender.join(10)
    assert daemon.process.returncode == 130 and left_over(tree, daemon.home) == []
    # Whoever serves the home next finds it as it was: nothing of the cut-off request, all of the acknowledged one.
    assert [one["text"] for one in start("inline", home=daemon.home).wire.bank("notes").list()] == [
        "The gardener is called Ilse."
    ]


def _send_quietly(bank: Bank, text: str) -> None:
    try:
        bank.post_items({"content": text, "document_id": "ledger"})
    except (OSError, ValueError, EOFError):
        return
    except Exception as error:  # http.client's own errors about a cut connection
        assert type(error).__module__ == "http.client", error


def test_status_says_what_the_screen_said(daemon: Daemon) -> None:
    screen = words(daemon.printed.split("\nReady.")[0])
    shown = command("status", "--home", daemon.home)
    assert shown.returncode == 0, shown.stderr
    # How many banks there are has changed since the daemon printed its screen.
    count = re.compile(r"banks \d+ ")
    assert count.sub("", words(shown.stdout)) in count.sub("", screen)
    status: dict[str, Any] = json.loads(command("status", "--home", daemon.home, "--json").stdout)
    assert status["running"] is True and status["url"] == daemon.url and status["url"] in screen
    assert (status["runtime"], status["home"]) == (daemon.runtime, str(daemon.home))
    assert f"runtime {daemon.runtime}, {status['shards']} shard" in screen
    assert f"partitions {status['partitions']}" in screen
    embedding = status["embedding"]
    for fact in (embedding["model"], f"{embedding['dimensions']} dimensions", embedding["provider"]):
        assert fact in screen
    assert words(status["ranking"]) in screen
    assert f"model {status['model']['provider']}: {status['model']['check']}" in screen
    assert f"durability {status['durability']}" in screen


def test_a_backup_made_while_serving_answers_the_same_and_is_stopped(
    daemon: Daemon, bank: Bank, start: Start, tmp_path: Path
) -> None:
    bank.retain(
        {"content": "Ana moved to Lyon in May 2024.", "document_id": "a", "tags": ["home"]},
        {"content": "I think Lyon is better than Paris.", "document_id": "b"},
        {"content": "The greyhound is afraid of the kettle.", "document_id": "c", "metadata": {"k": "v"}},
    )
    questions = ("Where does Ana live?", "Which city is better?", "What is the dog afraid of?", "May 2024")
    at = {"query_timestamp": "2026-01-01T00:00:00Z"}
    before = {question: bank.recall(question, **at)["results"] for question in questions}
    stop = threading.Event()
    other = daemon.wire.bank(bank.id + "-busy")

    def write() -> None:
        n = 0
        while not stop.is_set():
            other.retain(f"Entry {n} of the diary.")
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    file = tmp_path / "memory.backup"
    try:
        made = command("backup", file, "--home", daemon.home)
    finally:
        stop.set()
        writer.join()
    assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o077 == 0

    home = tmp_path / "restored"
    restored = command("restore", file, "--home", home)
    assert restored.returncode == 0, restored.stderr
    copy = start("inline", home=home)
    twin = copy.wire.bank(bank.id)
    assert {question: twin.recall(question, **at)["results"] for question in questions} == before
    assert twin.get("/stats") == {**bank.get("/stats")}
    # The bank that was written to meanwhile is whole up to some moment, and goes on from there.
    kept = [one["text"] for one in copy.wire.bank(other.id).list(limit=10_000)]
    assert set(kept) == {f"Entry {n} of the diary." for n in range(len(kept))}
    twin.usable()

    tree = copy.tree()
    stopped = command("stop", "--home", home, "--json")
    assert stopped.returncode == 0, stopped.stderr
    assert json.loads(stopped.stdout)["stopped"] is True and left_over(tree, home) == []
    assert copy.process.wait(5) == 0
    again = command("stop", "--home", home, "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["stopped"] is False


def test_a_home_made_with_another_model_is_refused_untouched_and_served_by_its_own(
    start: Start, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    made = start("inline", home=home)
    made.wire.bank("b").retain("The kiln is hot.")
    made.interrupt(signal.SIGTERM)
    record = home / "home.json"
    right = record.read_text()
    wrong = json.loads(right)
    wrong["model"] = {**wrong["model"], "name": "some-other-model", "sha256": "0" * 64}
    record.write_text(json.dumps(wrong))
    for line in (("serve", "--port", "0", "--runtime", "inline"), ("retain", "b", "More.")):
        refusal = command(*line, "--home", home)
        assert refusal.returncode == 1, (line, refusal.stdout, refusal.stderr)
        assert "some-other-model" in refusal.stderr and "recalld init" in refusal.stderr, refusal.stderr
        assert "Traceback" not in refusal.stderr
    assert json.loads(record.read_text()) == wrong, "a refusal writes nothing"
    record.write_text(right)
    assert start("inline", home=home).wire.bank("b").texts("What is hot?") == ["The kiln is hot."]


DAMAGE = [
    "",
    "{",
    "[]",
    '{"format": 1}',
    '{"format": "x", "partitions": 4, "created_at": 0}',
    '{"format": 1, "partitions": "many", "created_at": 0}',
    '{"format": 1, "partitions": 0, "created_at": 0}',
    '{"format": 1, "partitions": true, "created_at": 0}',
    '{"format": 1, "partitions": 4, "created_at": 0, "model": 7}',
    '{"format": 1, "partitions": 4, "created_at": 0, "overrides": []}',
    '{"format": 99, "partitions": 4, "created_at": 0}',
    "\x00\x01\x02",
]


def damaged(tmp_path: Path, record: str) -> Path:
    home = tmp_path / "home"
    (home / "partitions").mkdir(parents=True)
    (home / "home.json").write_text(record)
    return home


@pytest.mark.parametrize("record", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_home_record_is_never_taken_for_one(tmp_path: Path, record: str) -> None:
    with pytest.raises(StoreCorrupt, match=r"home\.json cannot be read|newer recalld"):
        Home(damaged(tmp_path, record))


@pytest.mark.parametrize("record", ["{", '{"format": 1, "partitions": 0, "created_at": 0}'])
def test_serving_a_damaged_home_ends_with_a_sentence(tmp_path: Path, record: str) -> None:
    home = damaged(tmp_path, record)
    refusal = command("serve", "--home", home, "--port", "0", "--runtime", "inline")
    assert refusal.returncode == 1, (refusal.stdout, refusal.stderr)
    assert "home.json" in refusal.stderr and "Traceback" not in refusal.stderr, refusal.stderr
    assert (home / "home.json").read_text() == record
    assert not (home / "run" / "daemon.json").exists()


def test_doctor_and_status_say_what_is_wrong_with_a_damaged_home(tmp_path: Path) -> None:
    home = damaged(tmp_path, "{")
    examined = command("doctor", "--home", home, "--json")
    assert examined.returncode == 1 and "Traceback" not in examined.stderr
    assert any(
        "home.json" in json.dumps(one) for one in json.loads(examined.stdout)["checks"] if one["outcome"] == "fail"
    )
    shown = command("status", "--home", home)
    assert shown.returncode == 1 and "home.json" in shown.stderr and "Traceback" not in shown.stderr


def test_a_folder_of_other_things_is_never_made_a_home(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"\xff\xd8")
    refusal = command("serve", "--home", tmp_path, "--port", "0", "--runtime", "inline")
    assert refusal.returncode == 2 and "not empty" in refusal.stderr, refusal.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["holiday.jpg"]

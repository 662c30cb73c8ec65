"""`recalld retain --file` with files that the daemon converts, with a daemon and without; and the SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from recalld.client import Client

COMMAND = [sys.executable, "-m", "recalld.daemon"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def test_a_page_and_a_table_are_converted_and_waited_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    page, table = tmp_path / "page.html", tmp_path / "people.csv"
    page.write_text(
        "<html><body><p>The lighthouse keeper is called Tobias Grinde.</p><script>x()</script></body></html>"
    )
    table.write_text("post,name\nbaker,Ana Reis\n")
    first = run("retain", "b", "--file", page, "--home", home, "--document-id", "page", "--tag", "harbour")
    assert (first.returncode, first.stdout.splitlines()[0]) == (0, "Retained 1 item in b."), first.stderr
    assert run("retain", "b", "--file", table, "--home", home).returncode == 0
    found = json.loads(run("recall", "b", "Who keeps the lighthouse?", "--home", home, "--json").stdout)["results"]
    assert (found[0]["document_id"], found[0]["tags"]) == ("page", ["harbour"])
    assert "<p>" not in found[0]["text"]


def test_what_cannot_be_converted_ends_with_its_reason(tmp_path: Path) -> None:
    bad = tmp_path / "a.pdf"
    bad.write_bytes(b"hello")
    done = run("retain", "b", "--file", bad, "--home", tmp_path / "home")
    assert done.returncode == 1
    assert "This is no PDF file" in done.stderr
    assert run("retain", "b", "--file", tmp_path / "none.pdf", "--home", tmp_path / "home").returncode == 2
    assert (
        run("retain", "b", "--file", bad, "--append", "--document-id", "d", "--home", tmp_path / "home").returncode == 2
    )


def test_the_sdk_uploads_with_a_daemon(tmp_path: Path) -> None:
    home, notes = tmp_path / "home", tmp_path / "notes.txt"
    notes.write_text("The lighthouse keeper is called Tobias Grinde.")
    daemon = subprocess.Popen(
        [*COMMAND, "serve", "--home", str(home), "--port", "0", "--runtime", "inline", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert daemon.stdout is not None
        url = json.loads(daemon.stdout.readline())["url"]
        with Client(url) as client:
            answer = client.retain_files("b", [notes], files_metadata=[{"document_id": "d", "trust": "untrusted"}])
            (operation,) = answer["operation_ids"]
            assert client.wait_operation("b", operation)["status"] == "completed"
            (unit,) = client.recall("b", "Who keeps the lighthouse?")["results"]
            assert (unit["document_id"], unit["trust"]) == ("d", "untrusted")
        assert run("retain", "b", "--file", notes, "--url", url).returncode == 0
    finally:
        daemon.terminate()
        daemon.wait(20)

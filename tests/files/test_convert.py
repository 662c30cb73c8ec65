"""Conversion ends inside its limits, whatever the file and whoever stops waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from recalld.actors.files.formats import from_csv, from_html
from recalld.actors.files.process import Limits, to_text
from recalld.actors.files.store import FileStore
from recalld.daemon.files import file_name
from recalld.storage.errors import FileUnreadable


def converters() -> list[psutil.Process]:
    """Our own children that convert."""
    return [
        one
        for one in psutil.Process().children()
        if one.status() != psutil.STATUS_ZOMBIE and "recalld.actors.files.convert" in one.cmdline()
    ]


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "x,y\n" * 3_000_000)
    return path


async def test_one_that_takes_too_long_is_ended(long_text: Path) -> None:
    started = time.monotonic()
    with pytest.raises(FileUnreadable, match="took more than"):
        await to_text(long_text, "a.csv", "", Limits(seconds=0.3))
    assert time.monotonic() - started < 5
    assert converters() == []


async def test_one_that_takes_too_much_memory_is_refused(long_text: Path) -> None:
    with pytest.raises(FileUnreadable, match="memory"):
        await to_text(long_text, "a.csv", "", Limits(seconds=60, memory_mb=256))


async def test_one_that_says_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 1000)
    with pytest.raises(FileUnreadable, match="at most 1,000"):
        await to_text(path, "a.txt", "", Limits(characters=1000))


async def test_one_nobody_waits_for_any_more_is_ended(long_text: Path) -> None:
    waiting = asyncio.create_task(to_text(long_text, "a.csv", "", Limits()))
    async with asyncio.timeout(10):
        while not converters():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert converters() == []


def test_one_whose_parent_was_killed_ends_by_itself(long_text: Path) -> None:
    arguments = ["-m", "recalld.actors.files.convert", str(long_text), "a.csv", "", "2048", "60", "100000000"]
    process = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.close()  # as the system does with a parent's end of the pipe
    assert process.wait(10) == 9


def test_rows_of_a_table_stand_alone() -> None:
    assert from_csv('name;city\nAna;Porto\n;\n"Bob; jr";Rome;extra\n') == (
        "- name = Ana; city = Porto\n- name = Bob; jr; city = Rome; column 3 = extra"
    )


def test_a_page_keeps_what_is_seen() -> None:
    page = (
        "<html><head><title>Bees</title><style>p{}</style></head><body><h1>Bees</h1><p>Ana <b>keeps</b>\n bees.</p>"
        "<ol><li>one<li>two <a href='https://x.example'>link</a></ol><script>evil()</script>"
        "<pre>a\n  b</pre></body></html>"
    )
    assert from_html(page) == "# Bees\n\nAna keeps bees.\n\n1. one\n2. two [link](https://x.example)\n\na\n  b"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\a.pdf", "a.pdf"),
        ("a\x00\nb.txt", "ab.txt"),
        ("", "file"),
        (None, "file"),
    ],
)
def test_a_file_name_is_a_name(given: str | None, shown: str) -> None:
    assert file_name(given) == shown
    assert len(file_name("x" * 5000 + ".pdf")) <= 200


def test_a_key_is_a_key_and_no_path(tmp_path: Path) -> None:
    store = FileStore(tmp_path, lambda: "00000000-0000-4000-8000-000000000001")
    key, path = store.new("default", "../b")
    assert path.is_relative_to(tmp_path / "files")
    assert store.path("default", "../b", "../../home.json") is None
    path.write_bytes(b"x")
    assert store.tidy("default", "../b", ()) == 0  # in hand
    store.let_go(key)
    assert store.tidy("default", "../b", (key,)) == 0
    assert store.sweep(()) == 1
    assert not store.any("default", "../b")

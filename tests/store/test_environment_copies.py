"""Promises of compactions and copies of one LMDB environment: nothing is lost, nothing deleted stays, nobody waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recalld.storage.environment import Environment, WriteTxn
from recalld.storage.errors import Unavailable

KEY = b"\0\0\0\1"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Environment]:
    environment = Environment(tmp_path / "p", map_size=64 << 20, reserve=0)
    yield environment
    environment.close()


def put(key: bytes, value: bytes) -> Any:
    return lambda txn: txn.put(key, value)


def get(environment: Environment, key: bytes) -> bytes | None:
    with environment.read() as txn:
        value = txn.get(key)
        return None if value is None else bytes(value)


def test_compaction_while_reading_and_writing_loses_nothing_and_shrinks(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=256 << 20, reserve=0)
    for i in range(300):
        environment.write(put(b"junk%04d" % i, os.urandom(16000)))
    environment.write(lambda txn: txn.delete_prefix(b"junk"))
    environment.write(put(KEY, b"0"))
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            with environment.read() as txn:
                first = bytes(txn.get(KEY) or b"")
                time.sleep(0.0005)
                if bytes(txn.get(KEY) or b"") != first or not first:
                    wrong.append(first)

    def write() -> int:
        done = 0
        while not stop.is_set():
            environment.write(put(KEY, b"%d" % done))
            done += 1
        return done

    def ask() -> None:
        while not stop.is_set():
            environment.usage()

    with ThreadPoolExecutor(8) as pool:
        work = [pool.submit(read) for _ in range(4)] + [pool.submit(write), pool.submit(ask)]
        time.sleep(0.1)
        before, after = environment.compact()
        sizes = [environment.compact() for _ in range(5)]
        stop.set()
        results = [job.result(20) for job in work]
    assert not wrong
    assert after < before / 10
    assert all(size[1] < 1 << 20 for size in sizes)
    assert get(environment, KEY) == b"%d" % (results[4] - 1)
    assert not (tmp_path / "p" / "compact.tmp").exists()
    environment.close()
    again = Environment(tmp_path / "p", map_size=256 << 20, reserve=0)
    assert get(again, KEY) == b"%d" % (results[4] - 1)
    again.close()


def test_a_copy_is_one_moment_while_writes_go_on(tmp_path: Path, env: Environment) -> None:
    """Two keys are always written together, so a copy that holds a moment holds them equal."""
    stop = threading.Event()

    def write() -> None:
        i = 0
        while not stop.is_set():
            i += 1

            def both(txn: WriteTxn, value: bytes = b"%d" % i) -> None:
                txn.put(b"left", value)
                txn.put(b"right", value)

            env.write(both)

    env.write(put(b"left", b"0"))
    env.write(put(b"right", b"0"))
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(write)
        for i in range(5):
            env.copy_to(tmp_path / f"copy{i}")
        stop.set()
        job.result(10)
    for i in range(5):
        copy = Environment(tmp_path / f"copy{i}", map_size=64 << 20, reserve=0)
        assert get(copy, b"left") == get(copy, b"right") is not None
        copy.close()


@pytest.mark.parametrize("change", ["compaction", "growth"])
def test_reads_go_on_while_a_change_of_the_map_waits_for_a_long_read(tmp_path: Path, change: str) -> None:
    environment = Environment(tmp_path / "p", map_size=1 << 20, reserve=0)
    environment.write(put(KEY, b"x"))
    with ThreadPoolExecutor(2) as pool:
        with environment.read(long=True) as txn:
            if change == "growth":
                job: Future[Any] = environment.submit(put(b"large", os.urandom(3 << 20)))
            else:
                job = pool.submit(environment.compact)
            while not environment._alone_wanted:
                time.sleep(0.001)
            assert pool.submit(get, environment, KEY).result(5) == b"x"
            assert not job.done() and bytes(txn.get(KEY) or b"") == b"x"
        job.result(10)
    assert get(environment, KEY) == b"x"
    environment.close()


def test_a_compaction_waits_for_a_copy_without_stopping_writes(env: Environment, tmp_path: Path) -> None:
    copying, go_on = threading.Event(), threading.Event()
    rewrite = env._rewrite

    def slow(txn: Any, folder: Path) -> None:
        copying.set()
        go_on.wait(10)
        rewrite(txn, folder)

    env._rewrite = slow  # type: ignore[method-assign]
    env.write(put(KEY, b"before"))
    with ThreadPoolExecutor(2) as pool:
        copy = pool.submit(env.copy_to, tmp_path / "copy")
        copying.wait(10)
        compaction = pool.submit(env.compact)
        time.sleep(0.05)
        env.submit(put(KEY, b"after")).result(5)
        assert get(env, KEY) == b"after" and not compaction.done()
        go_on.set()
        copy.result(10)
        compaction.result(10)
    kept = Environment(tmp_path / "copy", map_size=64 << 20, reserve=0)
    assert get(kept, KEY) == b"before" and get(env, KEY) == b"after"
    kept.close()


def test_a_copy_holds_no_byte_of_what_was_deleted_before_it(tmp_path: Path, env: Environment) -> None:
    secret = b"the secret that was taken back"
    for n in range(300):
        env.write(put(KEY + n.to_bytes(4, "big"), secret * 4))
    for n in range(300):
        env.write(put(KEY + n.to_bytes(4, "big"), b"y" * (20 + n % 70)))
    env.copy_to(tmp_path / "copy")
    assert secret not in (tmp_path / "copy" / "data.mdb").read_bytes()


def test_an_abandoned_compaction_leaves_the_store_as_it_is(env: Environment) -> None:
    env.write(put(KEY, b"x"))
    env.abandon()
    with pytest.raises(Unavailable):
        env.compact()
    assert get(env, KEY) == b"x" and not (env.folder / "compact.tmp").exists()

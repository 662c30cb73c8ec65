"""Promises of one LMDB environment: shared flushes, isolation of jobs, growth, crashed readers, a full disk."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recalld.storage.environment import Environment, WriteTxn
from recalld.storage.errors import DiskFull, HomeInUse, RecalldError, Unavailable

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


def held_back(environment: Environment) -> tuple[threading.Event, Future[None]]:
    """A write that keeps the writer busy until the event is set, so that what follows forms one group."""
    release, running = threading.Event(), threading.Event()

    def wait(txn: WriteTxn) -> None:
        running.set()
        release.wait(30)

    future = environment.submit(wait)
    running.wait(30)
    return release, future


# -- group commit ------------------------------------------------------------------------------------------------------


def test_what_arrives_during_a_flush_shares_the_next(env: Environment) -> None:
    before = env.flushes
    release, first = held_back(env)
    futures = [env.submit(put(KEY + i.to_bytes(4, "big"), b"x")) for i in range(200)]
    release.set()
    first.result(10)
    for future in futures:
        future.result(10)
    assert env.flushes - before == 2


def test_many_threads_cost_far_fewer_flushes_than_writes(env: Environment) -> None:
    before = env.flushes
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: env.write(put(KEY + i.to_bytes(4, "big"), b"v" * 100)), range(400)))
    assert env.usage()["entries"] == 400
    assert env.flushes - before < 400 * 0.7


def test_a_lone_write_is_not_delayed(env: Environment) -> None:
    env.write(put(KEY, b"warm"))
    started = time.perf_counter()
    for i in range(10):
        env.write(put(KEY, b"%d" % i))
    took = time.perf_counter() - started
    assert took < 10 * (env.last_flush_seconds + 0.005) + 0.2


def test_acknowledged_means_flushed_and_visible(env: Environment) -> None:
    for i in range(20):
        before = env.flushes
        env.submit(put(KEY, b"%d" % i)).result(10)
        assert env.flushes == before + 1
        assert get(env, KEY) == b"%d" % i


def test_a_failing_job_takes_nothing_of_the_others(env: Environment) -> None:
    release, first = held_back(env)

    def fail(txn: WriteTxn) -> None:
        txn.put(KEY + b"bad", b"half")
        raise ValueError("no")

    good = [env.submit(put(KEY + b"a", b"1")), None, env.submit(put(KEY + b"c", b"3"))]
    bad = env.submit(fail)
    last = env.submit(put(KEY + b"d", b"4"))
    release.set()
    first.result(10)
    with pytest.raises(ValueError, match="no"):
        bad.result(10)
    for future in (good[0], good[2], last):
        assert future is not None
        future.result(10)
    assert get(env, KEY + b"bad") is None
    assert [get(env, KEY + k) for k in (b"a", b"c", b"d")] == [b"1", b"3", b"4"]


def test_a_group_of_failures_only_costs_no_flush(env: Environment) -> None:
    before = env.flushes

    def fail(txn: WriteTxn) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError):
        env.write(fail)
    assert env.flushes == before


def test_jobs_of_a_group_see_what_went_before(env: Environment) -> None:
    release, first = held_back(env)

    def count(txn: WriteTxn) -> int:
        value = int(bytes(txn.get(KEY) or b"0")) + 1
        txn.put(KEY, b"%d" % value)
        return value

    futures = [env.submit(count) for _ in range(50)]
    release.set()
    first.result(10)
    assert [future.result(10) for future in futures] == list(range(1, 51))


def test_callbacks_run_in_commit_order_before_anyone_is_told(env: Environment) -> None:
    seen: list[int] = []

    def job(number: int) -> Any:
        def run(txn: WriteTxn) -> int:
            txn.put(KEY, b"%d" % number)
            txn.after_commit(lambda: seen.append(number))
            return number

        return run

    release, first = held_back(env)
    futures = [env.submit(job(i)) for i in range(20)]
    release.set()
    first.result(10)
    futures[0].result(10)
    assert seen == list(range(20))


def test_a_callback_that_fails_takes_no_acknowledgement_with_it(env: Environment) -> None:
    def run(txn: WriteTxn) -> str:
        txn.put(KEY, b"kept")
        txn.after_commit(lambda: 1 // 0)  # type: ignore[arg-type,return-value]
        return "done"

    assert env.write(run) == "done"
    assert get(env, KEY) == b"kept"
    env.write(put(KEY, b"next"))


def test_a_cancelled_write_is_not_done(env: Environment) -> None:
    release, first = held_back(env)
    future = env.submit(put(KEY, b"cancelled"))
    assert future.cancel()
    release.set()
    first.result(10)
    env.write(put(KEY + b"x", b""))
    assert get(env, KEY) is None


def test_submit_many_is_all_or_nothing_each(env: Environment) -> None:
    def fail(txn: WriteTxn) -> None:
        raise ValueError("no")

    futures = env.submit_many([put(KEY + b"1", b"1"), fail, put(KEY + b"3", b"3")])
    assert [type(future.exception(10)) for future in futures] == [type(None), ValueError, type(None)]
    assert (get(env, KEY + b"1"), get(env, KEY + b"3")) == (b"1", b"3")


# -- scans -------------------------------------------------------------------------------------------------------------


def test_scans_stay_inside_their_prefix_in_both_directions(env: Environment) -> None:
    names = [b"\x00a", b"\x01", b"\x01\x00", b"\x01\xff", b"\x01\xff\xff", b"\x02", b"\xff", b"\xff\xff"]
    for name in names:
        env.write(put(name, name))
    with env.read() as txn:
        for prefix in (b"\x00", b"\x01", b"\x01\xff", b"\xff", b"\xff\xff", b"\x03"):
            expected = [name for name in names if name.startswith(prefix)]
            assert [key for key, _ in txn.scan(prefix)] == expected
            assert [key for key, _ in txn.scan_reverse(prefix)] == expected[::-1]
        assert [key for key, _ in txn.scan(b"\x01", b"\x01\x01")] == [b"\x01\xff", b"\x01\xff\xff"]


def test_delete_prefix_deletes_that_and_nothing_else(env: Environment) -> None:
    for name in (b"a", b"b", b"b1", b"b2", b"c"):
        env.write(put(name, b""))
    assert env.write(lambda txn: txn.delete_prefix(b"b")) == 3
    with env.read() as txn:
        assert [key for key, _ in txn.scan(b"")] == [b"a", b"c"]


# -- growth ------------------------------------------------------------------------------------------------------------


def test_the_map_grows_under_writes_while_readers_read(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=128 << 10, reserve=0)
    stop, wrong = threading.Event(), []
    environment.write(put(KEY, b"0" * 1000))

    def read() -> None:
        while not stop.is_set():
            with environment.read() as txn:
                value = bytes(txn.get(KEY) or b"")
                time.sleep(0.001)
                again = bytes(txn.get(KEY) or b"")
            if value != again or len(set(value)) > 1:
                wrong.append((value, again))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for thread in readers:
        thread.start()
    try:
        start = environment.usage()["map_size"]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: environment.write(put(b"k%06d" % i, os.urandom(4000))), range(600)))
            for i in range(20):
                environment.write(put(KEY, b"%d" % (i % 10) * 1000))
    finally:
        stop.set()
        for thread in readers:
            thread.join(10)
    usage = environment.usage()
    assert not wrong
    assert usage["entries"] == 601
    assert usage["map_size"] > start
    environment.close()


def test_growth_waits_for_an_open_view(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=128 << 10, reserve=0)
    environment.write(put(KEY, b"seen" * 200))
    with environment.read() as txn:
        view = txn.get(KEY)
        future = environment.submit(put(b"big", bytes(1 << 20)))
        time.sleep(0.2)
        assert not future.done()
        assert bytes(view or b"") == b"seen" * 200
    future.result(10)
    assert get(environment, KEY) == b"seen" * 200
    assert len(get(environment, b"big") or b"") == 1 << 20
    environment.close()


def test_a_group_that_meets_a_full_map_loses_and_doubles_nothing(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=128 << 10, reserve=0)
    release, first = held_back(environment)

    def count(txn: WriteTxn) -> int:
        value = int(bytes(txn.get(KEY) or b"0")) + 1
        txn.put(KEY, b"%d" % value)
        txn.put(b"p%06d" % value, bytes(8000))
        return value

    def fail(txn: WriteTxn) -> None:
        raise ValueError("no")

    futures = [environment.submit(count) for _ in range(60)]
    bad = environment.submit(fail)
    release.set()
    first.result(10)
    assert [future.result(30) for future in futures] == list(range(1, 61))
    assert isinstance(bad.exception(10), ValueError)
    environment.close()


def test_a_file_larger_than_the_configured_map_opens(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=128 << 10, reserve=0)
    environment.write(put(b"big", bytes(4 << 20)))
    environment.close()
    again = Environment(tmp_path / "p", map_size=128 << 10, reserve=0)
    assert len(get(again, b"big") or b"") == 4 << 20
    again.write(put(b"more", bytes(4 << 20)))
    again.close()


# -- readers that died -------------------------------------------------------------------------------------------------

READER = """
import sys, lmdb, time
env = lmdb.open(sys.argv[1], max_readers=126, create=False, readonly=False)
txns = [env.begin() for _ in range(int(sys.argv[2]))]
for txn in txns: txn.get(b"k")
print("up", flush=True)
time.sleep(60)
"""


def test_slots_of_killed_readers_are_cleared_at_open(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    environment = Environment(folder, map_size=16 << 20, reserve=0, max_readers=126)
    environment.write(put(KEY, b"1"))
    environment.close()
    for _ in range(2):
        # A reader that survives keeps the table's slots from being reset as a whole.
        processes = [
            subprocess.Popen([sys.executable, "-c", READER, str(folder), "20"], stdout=subprocess.PIPE)
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
        for process in processes[1:]:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(10)
        environment = Environment(folder, map_size=16 << 20, reserve=0, max_readers=126)
        try:
            with ThreadPoolExecutor(60) as pool:
                barrier = threading.Barrier(60, timeout=20)

                def read(_: int, env: Environment = environment, gate: threading.Barrier = barrier) -> bytes:
                    with env.read() as txn:
                        gate.wait()
                        return bytes(txn.get(KEY) or b"")

                assert set(pool.map(read, range(60))) == {b"1"}
        finally:
            environment.close()
            os.kill(processes[0].pid, signal.SIGKILL)
            processes[0].wait(10)


# -- closing -----------------------------------------------------------------------------------------------------------


def test_closing_finishes_what_was_submitted(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=16 << 20, reserve=0)
    futures = [environment.submit(put(KEY + i.to_bytes(4, "big"), b"x")) for i in range(100)]
    environment.close()
    assert all(future.done() and future.exception() is None for future in futures)
    again = Environment(tmp_path / "p", map_size=16 << 20, reserve=0)
    assert again.usage()["entries"] == 100
    again.close()


def test_after_closing_everything_says_unavailable_and_nothing_hangs(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "p", map_size=16 << 20, reserve=0)
    environment.close()
    environment.close()
    with pytest.raises(Unavailable), environment.read():
        pass
    with pytest.raises(Unavailable):
        environment.submit(put(KEY, b""))
    with ThreadPoolExecutor(1) as pool:
        for call in (environment.compact, environment.usage, lambda: environment.copy_to(tmp_path / "c")):
            assert isinstance(pool.submit(call).exception(10), Unavailable)


def test_every_write_that_races_with_closing_is_settled(tmp_path: Path) -> None:
    for round_ in range(10):
        environment = Environment(tmp_path / f"p{round_}", map_size=16 << 20, reserve=0)
        futures: list[Future[None]] = []
        refused = threading.Event()

        def submit(
            env: Environment = environment,
            held: list[Future[None]] = futures,
            refused: threading.Event = refused,
        ) -> None:
            try:
                while True:
                    held.append(env.submit(put(KEY, b"x")))
            except Unavailable:
                refused.set()

        thread = threading.Thread(target=submit)
        thread.start()
        time.sleep(0.005)
        environment.close()
        thread.join(10)
        assert refused.is_set()
        for future in futures:
            assert future.exception(10) is None or isinstance(future.exception(), Unavailable)


# -- the disk ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_a_clean_error_and_passes_when_space_returns(small_disk: Path) -> None:
    environment = Environment(small_disk / "p", map_size=1 << 30, reserve=0)
    environment.write(put(KEY, b"kept"))
    written = 0
    with pytest.raises(DiskFull) as caught:
        for written in range(1000):
            environment.write(put(b"fill%04d" % written, os.urandom(64 << 10)))
    assert caught.value.status == 507
    assert written > 20
    for _ in range(3):
        with pytest.raises(DiskFull):
            environment.write(put(b"again", os.urandom(1 << 20)))
    assert get(environment, KEY) == b"kept"
    assert get(environment, b"fill%04d" % written) is None
    with environment.read() as txn:
        assert sum(1 for _ in txn.scan(b"fill")) == written
    # Deletes need a few pages, and there are none left: room is made outside the store.
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    environment.write(put(b"after", os.urandom(64 << 10)))
    assert len(get(environment, b"after") or b"") == 64 << 10
    environment.close()
    again = Environment(small_disk / "p", map_size=1 << 30, reserve=0)
    assert get(again, KEY) == b"kept"
    with again.read() as txn:
        assert sum(1 for _ in txn.scan(b"fill")) == written
    again.close()


def test_the_reserve_is_kept_for_deletes_and_compaction(small_disk: Path) -> None:
    reserve = 3 << 20
    environment = Environment(small_disk / "p", map_size=1 << 30, reserve=reserve)
    written = 0
    with pytest.raises(DiskFull):
        for written in range(1000):
            environment.write(put(b"fill%04d" % written, os.urandom(64 << 10)))
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    assert free > reserve - (256 << 10), "a group may take what it needs, no more"
    with pytest.raises(DiskFull):
        environment.write(put(b"small", b"x"))
    # A read and a delete go on, and a group with both kinds refuses only the write.
    release, first = held_back_frees(environment)
    deleted = environment.submit(lambda txn: txn.delete_prefix(b"fill"), frees=True)
    refused = environment.submit(put(b"small", b"x"))
    release.set()
    first.result(10)
    assert deleted.result(10) == written
    assert isinstance(refused.exception(10), DiskFull)
    environment.compact()
    environment.write(put(b"small", b"x"))
    assert get(environment, b"small") == b"x"
    environment.close()


def held_back_frees(environment: Environment) -> tuple[threading.Event, Future[None]]:
    release, running = threading.Event(), threading.Event()

    def wait(txn: WriteTxn) -> None:
        running.set()
        release.wait(30)

    future = environment.submit(wait, frees=True)
    running.wait(30)
    return release, future


def test_compaction_without_room_says_so_and_the_store_goes_on(small_disk: Path) -> None:
    environment = Environment(small_disk / "p", map_size=1 << 30, reserve=0)
    for i in range(80):
        environment.write(put(b"fill%04d" % i, os.urandom(64 << 10)))
    with pytest.raises(RecalldError) as caught:
        environment.compact()
    assert isinstance(caught.value, DiskFull)
    assert not (small_disk / "p" / "compact.tmp").exists()
    with environment.read() as txn:
        assert sum(1 for _ in txn.scan(b"fill")) == 80
    environment.write(lambda txn: txn.delete_prefix(b"fill001"), frees=True)
    environment.close()


# -- rights and owners -------------------------------------------------------------------------------------------------


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    from store_units import open_partition

    before = os.umask(0)
    try:
        partition = open_partition(tmp_path / "deep" / "p")
        partition.write("t", "b", lambda applier: None, create=True)
        with partition.read("t", "b"):
            pass
        partition.environment.compact()
        partition.environment.copy_to(tmp_path / "copy")
        for path in [*(tmp_path / "deep" / "p").rglob("*"), tmp_path / "copy" / "data.mdb"]:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), f"{path.name} has {mode:o}"
        assert stat.S_IMODE((tmp_path / "deep" / "p").stat().st_mode) == 0o700
        partition.close()
    finally:
        os.umask(before)


OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store_units import open_partition
partition = open_partition(Path(sys.argv[1]))
print("up", flush=True)
time.sleep(60)
"""


def test_two_processes_never_share_a_partition_and_a_dead_owners_is_free_at_once(tmp_path: Path) -> None:
    from store_units import open_partition

    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "p"), str(Path(__file__).parent)], stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        with pytest.raises(HomeInUse):
            open_partition(tmp_path / "p")
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait(10)
    partition = open_partition(tmp_path / "p")
    with pytest.raises(HomeInUse):
        open_partition(tmp_path / "p")
    partition.write("t", "b", lambda applier: None, create=True)
    partition.close()

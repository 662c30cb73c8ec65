"""One LMDB environment: a single writer thread with group commit, and a gate that keeps views and map changes apart.

Writes are functions submitted to the writer. What arrives while a flush runs shares the next one; each function runs
in its own nested transaction, so a failing one takes nothing of the others with it. A future is resolved only after
the flush that covers it, and after the callbacks its function registered with `WriteTxn.after_commit` have run.

Two facts of LMDB shape this module: a view into the map outlives its transaction silently and then reads other data,
so `ReadTxn` hands views out only inside its block; and growing or swapping the map under a live view ends the
process, so both wait behind the gate until no block is open. For blocks that last long (a backup's copy, a large bank
that is loaded) they wait with the gate still open, so that nobody else waits with them.
"""

from __future__ import annotations

import errno
import itertools
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import lmdb
import structlog

from recalld.storage.errors import DiskFull, RecalldError, StoreCorrupt, Unavailable
from recalld.storage.faults import origin

log = structlog.get_logger(__name__)
T = TypeVar("T")

DEFAULT_MAP_SIZE = 256 << 30
MAX_GROUP = 512
NO_SPACE = 1 << 20
COMPACT_FOLDER = "compact.tmp"
REWRITE_KEYS = 2000


class ReadTxn:
    """Read access inside one block. Values are memoryviews that die with the block: decode or copy at once."""

    __slots__ = ("_txn",)

    def __init__(self, txn: Any) -> None:
        self._txn = txn

    def get(self, key: bytes) -> memoryview | None:
        value: memoryview | None = self._txn.get(key)
        return value

    def scan(self, prefix: bytes, start: bytes | None = None) -> Iterator[tuple[bytes, memoryview]]:
        """Keys that begin with `prefix` in order, from `start` (a full key) on."""
        cursor = self._txn.cursor()
        size = len(prefix)
        found = cursor.set_range(start or prefix)
        while found:
            key = bytes(cursor.key())
            if key[:size] != prefix:
                return
            yield key, cursor.value()
            found = cursor.next()

    def keys(self, prefix: bytes) -> list[bytes]:
        """Keys that begin with `prefix` in order; their values are not read."""
        cursor = self._txn.cursor()
        found: list[bytes] = []
        more = cursor.set_range(prefix)
        while more and (key := bytes(cursor.key())).startswith(prefix):
            found.append(key)
            more = cursor.next()
        return found

    def scan_reverse(self, prefix: bytes) -> Iterator[tuple[bytes, memoryview]]:
        """Keys that begin with `prefix`, last first."""
        cursor = self._txn.cursor()
        size = len(prefix)
        beyond = _after(prefix)
        found = cursor.set_range(beyond) and cursor.prev() if beyond else cursor.last()
        if not found:
            found = cursor.last()
        while found:
            key = bytes(cursor.key())
            if key[:size] != prefix:
                return
            yield key, cursor.value()
            found = cursor.prev()


class WriteTxn(ReadTxn):
    """Write access inside one submitted function. Values are copies: a put may rewrite the page a view looks at."""

    __slots__ = ("_callbacks",)

    def __init__(self, txn: Any) -> None:
        super().__init__(txn)
        self._callbacks: list[Callable[[], None]] = []

    def put(self, key: bytes, value: bytes) -> None:
        self._txn.put(key, value)

    def delete(self, key: bytes) -> bool:
        gone: bool = self._txn.delete(key)
        return gone

    def delete_prefix(self, prefix: bytes) -> int:
        """Delete every key that begins with `prefix`; how many there were."""
        cursor = self._txn.cursor()
        size, count = len(prefix), 0
        found = cursor.set_range(prefix)
        while found and bytes(cursor.key())[:size] == prefix:
            found = cursor.delete()
            count += 1
        return count

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the writer thread after the flush and before anyone is told of it, in commit order."""
        self._callbacks.append(callback)


@dataclass(slots=True)
class _Job:
    run: Callable[[WriteTxn], Any]
    future: Future[Any]
    frees: bool


@dataclass(slots=True)
class _Exclusive:
    run: Callable[[], Any]
    future: Future[Any]


class Environment:
    """An open environment of one partition.

    `reserve` bytes of the disk are kept for deletes and compaction: other writes are refused with `DiskFull` when
    less is free. `durable=False` skips every flush and is for benchmarks only.
    """

    def __init__(
        self,
        folder: Path,
        *,
        map_size: int = DEFAULT_MAP_SIZE,
        reserve: int = 64 << 20,
        durable: bool = True,
        max_readers: int = 1024,
    ) -> None:
        self.folder = folder
        self._map_size = map_size
        self._reserve = reserve
        self._durable = durable
        self._max_readers = max_readers
        self.flushes = 0
        self.last_flush_seconds = 0.0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(folder / COMPACT_FOLDER, ignore_errors=True)
        self._gate = threading.Condition()
        self._readers = 0
        self._long_readers = 0
        self._alone_wanted = False
        self._closed_gate = False
        self._stopped = False
        self.abandoned = False
        self.last_commit = time.monotonic()
        # Held by whoever copies the whole file: no compaction waits for a backup in the writer, where writes wait too.
        self._copying = threading.Lock()
        # Held while something is queued and while closing begins, so that nothing is queued behind the end.
        self._submitting = threading.Lock()
        fresh = not (folder / "data.mdb").exists()
        self._env = self._open()
        if fresh and durable:
            # A commit syncs the file, not the names that lead to it.
            sync(folder)
            sync(folder.parent)
        self._queue: queue.SimpleQueue[_Job | _Exclusive | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"writer-{folder.name}", daemon=True)
        self._thread.start()

    def _open(self) -> Any:
        try:
            env = lmdb.open(
                str(self.folder),
                map_size=self._map_size,
                mode=0o600,
                subdir=True,
                sync=self._durable,
                metasync=self._durable,
                writemap=False,
                max_readers=self._max_readers,
                readahead=False,
            )
        except lmdb.DiskError as error:
            raise DiskFull("The disk is full, so the store cannot be opened; free some space.") from error
        except lmdb.Error as error:
            raise StoreCorrupt(
                f"Partition {self.folder.name} cannot be opened; restore it from a backup (`recalld restore`)."
            ) from error
        env.reader_check()
        os.chmod(self.folder, 0o700)  # noqa: PTH101
        return env

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, *, long: bool = False) -> Iterator[ReadTxn]:
        """A consistent view of the last flushed state.

        A block that may last for seconds says it is `long`; it must not be opened inside another one.
        """
        with self._gate:
            while self._closed_gate or (long and self._alone_wanted):
                self._gate.wait()
            if self._stopped:
                raise Unavailable("The store is closing; try again.")
            if long:
                self._long_readers += 1
            else:
                self._readers += 1
        try:
            with self._env.begin(buffers=True) as txn:
                yield ReadTxn(txn)
        finally:
            with self._gate:
                if long:
                    self._long_readers -= 1
                else:
                    self._readers -= 1
                if self._alone_wanted:
                    self._gate.notify_all()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for the long read blocks to end, then keep new ones out and wait for the open ones."""
        with self._gate:
            self._alone_wanted = True
            while self._long_readers:
                self._gate.wait()
            self._closed_gate = True
            while self._readers:
                self._gate.wait()
        try:
            yield
        finally:
            with self._gate:
                self._alone_wanted = self._closed_gate = False
                self._gate.notify_all()

    # -- writing ---------------------------------------------------------------------------------------------------

    def submit(self, run: Callable[[WriteTxn], T], *, frees: bool = False) -> Future[T]:
        """Queue a write; the future holds what `run` returned once it is on disk. `frees`: it may use the reserve."""
        return self.submit_many([run], frees=frees)[0]

    def submit_many(self, runs: Sequence[Callable[[WriteTxn], T]], *, frees: bool = False) -> list[Future[T]]:
        """Queue several writes, each all or nothing by itself."""
        jobs = [_Job(run, Future(), frees) for run in runs]
        self._enqueue(*jobs)
        return [job.future for job in jobs]

    def _enqueue(self, *jobs: _Job | _Exclusive) -> None:
        with self._submitting:
            if self._stopped:
                raise Unavailable("The store is closing; try again.")
            for job in jobs:
                self._queue.put(job)

    def write(self, run: Callable[[WriteTxn], T], *, frees: bool = False) -> T:
        """Submit and wait for the flush."""
        return self.submit(run, frees=frees).result()

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            if isinstance(first, _Exclusive):
                _settle(first.future, first.run)
                continue
            group, rest, stop = [first], None, False
            while len(group) < MAX_GROUP:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if not isinstance(item, _Job):
                    rest, stop = item, item is None
                    break
                group.append(item)
            self._commit(group)
            if isinstance(rest, _Exclusive):
                _settle(rest.future, rest.run)
            elif stop:
                return

    def _commit(self, group: list[_Job]) -> None:
        group = [job for job in group if job.future.set_running_or_notify_cancel()]
        while group:
            try:
                done = self._attempt(group)
            except lmdb.MapFullError:
                try:
                    self._grow()
                except Exception as error:
                    _fail(group, self._typed(error))
                    return
                continue
            except Exception as error:
                log.error("commit failed", partition=self.folder.name, traceback=origin(error))
                _fail(group, self._typed(error))
                return
            for _job, _result, callbacks in done:
                for callback in callbacks:
                    try:
                        callback()
                    except Exception as error:
                        where = origin(error)
                        log.error("a cache could not follow a commit", partition=self.folder.name, traceback=where)
            for job, result, _callbacks in done:
                job.future.set_result(result)
            return

    def _attempt(self, group: list[_Job]) -> list[tuple[_Job, Any, list[Callable[[], None]]]]:
        short = self._free_bytes() < self._reserve
        done: list[tuple[_Job, Any, list[Callable[[], None]]]] = []
        failed: list[tuple[_Job, BaseException]] = []
        parent = self._env.begin(write=True)
        try:
            for job in group:
                if short and not job.frees:
                    failed.append((job, DiskFull("The disk is full: free some space, or delete and compact.")))
                    continue
                child = self._env.begin(write=True, parent=parent)
                txn = WriteTxn(child)
                try:
                    result = job.run(txn)
                except lmdb.MapFullError:
                    child.abort()
                    raise
                except Exception as error:
                    child.abort()
                    failed.append((job, error))
                else:
                    child.commit()
                    done.append((job, result, txn._callbacks))
            if done:
                started = time.perf_counter()
                parent.commit()
                self.last_commit = time.monotonic()
                self.last_flush_seconds = time.perf_counter() - started
                self.flushes += 1
            else:
                parent.abort()
        except BaseException:
            parent.abort()
            raise
        for job, reason in failed:
            job.future.set_exception(self._typed(reason))
        return done

    def _grow(self) -> None:
        with self._alone():
            self._map_size *= 2
            self._env.set_mapsize(self._map_size)
        log.warning("map grown", partition=self.folder.name, map_size=self._map_size)

    def _free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def _typed(self, error: BaseException) -> BaseException:
        """The project's error for what LMDB or the system said."""
        if isinstance(error, RecalldError):
            return error
        full = isinstance(error, lmdb.DiskError) or (
            isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        )
        # LMDB reports a write that only partly fitted on the disk as an input/output error.
        short = os.strerror(errno.EIO) in str(error) and self._free_bytes() < NO_SPACE
        if full or short or os.strerror(errno.ENOSPC) in str(error):
            return DiskFull("The disk is full: free some space, or delete and compact.")
        if isinstance(error, lmdb.Error):
            return StoreCorrupt("The store refused a write; run `recalld doctor`.")
        return error

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def _exclusive(self, run: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._enqueue(_Exclusive(run, future))
        return future.result()

    def compact(self) -> tuple[int, int]:
        """Rewrite the file without freed pages; its size in bytes before and after.

        Writes wait while the copy runs, reads go on; reads wait only for the swap. `Unavailable` when `abandon` came.
        """
        with self._copying:
            return self._exclusive(self._compact)

    def abandon(self) -> None:
        """End copies and compactions under way and to come, so that closing need not wait; the file stays as it is."""
        self.abandoned = True

    def _compact(self) -> tuple[int, int]:
        data = self.folder / "data.mdb"
        before = data.stat().st_size
        target = self.folder / COMPACT_FOLDER
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700)
        try:
            with self._env.begin(buffers=True) as txn:
                self._rewrite(txn, target)
            copied = target / "data.mdb"
            copied.chmod(0o600)
            sync(copied)
            with self._alone():
                self._env.close()
                try:
                    copied.replace(data)
                    sync(self.folder)
                finally:
                    self._env = self._open()
        except lmdb.Error as error:
            raise self._typed(error) from error
        finally:
            shutil.rmtree(target, ignore_errors=True)
        return before, data.stat().st_size

    def _rewrite(self, txn: Any, folder: Path) -> None:
        """Every key and value in order into a new environment.

        LMDB's own compacting copy takes pages as they are, and the slack of a page keeps bytes of what was deleted.
        """
        fresh = lmdb.open(str(folder), map_size=self._map_size, mode=0o600, sync=False, writemap=False, lock=False)
        try:
            items = txn.cursor().iternext()
            consumed = REWRITE_KEYS
            while consumed == REWRITE_KEYS:
                if self.abandoned:
                    raise Unavailable("The store is closing; try again.")
                with fresh.begin(write=True) as copy:
                    consumed, _ = copy.cursor().putmulti(itertools.islice(items, REWRITE_KEYS), append=True)
            fresh.sync(True)
        finally:
            fresh.close()

    def copy_to(self, folder: Path) -> None:
        """A consistent copy into `folder`, while serving, without freed pages and bytes of deleted values."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with self._copying, self.read(long=True) as txn:
                self._rewrite(txn._txn, folder)
        except lmdb.Error as error:
            raise self._typed(error) from error
        (folder / "data.mdb").chmod(0o600)

    def usage(self) -> dict[str, int]:
        """Bytes of the file, of its used pages, and the readers' table."""
        with self.read():
            info, stat = self._env.info(), self._env.stat()
            size = (self.folder / "data.mdb").stat().st_size
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return {
            "file_bytes": size,
            "used_bytes": pages * stat["psize"],
            "map_size": info["map_size"],
            "readers": info["num_readers"],
            "entries": stat["entries"],
            "flushes": self.flushes,
        }

    def close(self) -> None:
        """Finish what was submitted, then close. Later calls raise `Unavailable`."""
        with self._submitting:
            if self._stopped:
                return
            self._stopped = True
            self._queue.put(None)
        self._thread.join()
        with self._alone():
            self._env.close()


def _settle(future: Future[Any], run: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(run())
    except Exception as error:
        future.set_exception(error)


def _fail(group: list[_Job], error: BaseException) -> None:
    for job in group:
        if not job.future.done():
            job.future.set_exception(error)


def _after(prefix: bytes) -> bytes | None:
    """The least key greater than every key that begins with `prefix`."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

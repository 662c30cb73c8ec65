"""One partition: an LMDB environment, the banks in it, and the caches of those that are open.

Writes are functions over an `Applier`, all or nothing each, deduplicated by request id, stamped with the epoch of this
owner. Reads are snapshots. A bank's caches are loaded when first asked for and dropped, least recently used first,
when all open banks together pass the memory budget.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import structlog

from recalld.storage import codec, keys
from recalld.storage.apply import Applier, read_counters
from recalld.storage.budget import MemoryBudget
from recalld.storage.changes import BankStored, Delta
from recalld.storage.environment import DEFAULT_MAP_SIZE, Environment, ReadTxn, WriteTxn
from recalld.storage.errors import BankCold, BankNotFound, HomeInUse, Quarantined, Unavailable
from recalld.storage.open_bank import OpenBank
from recalld.storage.records import BankCounters, BankRecord
from recalld.storage.snapshot import Snapshot

log = structlog.get_logger(__name__)
T = TypeVar("T")
_U32 = struct.Struct("<I")
_U64_KEY = struct.Struct(">Q")

CHANGES_KEPT = 10_000
REQUESTS_KEPT_US = 24 * 3600 * 1_000_000
DEATHS_BEFORE_QUARANTINE = 3
FOLLOW_SECONDS = 5.0
"""Longest wait of a read for caches that follow a commit; they take milliseconds."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a partition keeps its data. Sizes in bytes; `vector_threshold` in units."""

    map_size: int = DEFAULT_MAP_SIZE
    reserve: int = 64 << 20
    durable: bool = True
    memory_budget: int = 512 << 20
    vector_threshold: int = 20_000
    max_readers: int = 1024


@dataclass(slots=True)
class _Meta:
    """The partition's own counters, as the writer knows them inside a commit."""

    next_bank: int
    sequence: int
    epoch: int


class _Loading:
    """A bank whose caches are being read; commits that happen meanwhile wait in `pending`."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.pending: list[tuple[Delta, int]] = []


class Partition:
    """An open partition. `clock` gives µs since the epoch, `new_id` UUID strings."""

    def __init__(
        self,
        folder: Path,
        settings: StoreSettings,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        budget: MemoryBudget | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self._clock = clock
        self._new_id = new_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._owner = _own(folder)
        self._deaths = _Deaths(folder)
        self.environment = Environment(
            folder,
            map_size=settings.map_size,
            reserve=settings.reserve,
            durable=settings.durable,
            max_readers=settings.max_readers,
        )
        self._lock = threading.Lock()
        self._banks: dict[int, OpenBank] = {}
        # Every open bank that anyone still holds. One that was dropped for memory but is still being read or saved is
        # taken up again, never loaded beside itself: two of them would write the same vector files.
        self._alive: weakref.WeakValueDictionary[int, OpenBank] = weakref.WeakValueDictionary()
        self._budget = MemoryBudget(settings.memory_budget) if budget is None else budget
        self._published = 0
        self._followed = threading.Condition()
        """Notified when `_published` moves."""
        self._loading: dict[int, _Loading] = {}
        self._thread = threading.local()
        self.compaction_rests_until = 0.0
        """No compaction starts by itself before this instant of the monotonic clock."""
        self.epoch = self.environment.write(_raise_epoch, frees=True)
        with self.environment.read() as txn:
            self._published = _read_meta(txn).sequence

    # -- banks -----------------------------------------------------------------------------------------------------

    def bank_number(self, txn: ReadTxn, tenant: str, bank_id: str) -> int | None:
        value = txn.get(keys.bank_name(tenant, bank_id))
        return None if value is None else int(_U32.unpack(value)[0])

    def banks(self) -> list[tuple[BankRecord, BankCounters]]:
        """Every bank of the partition with its counters."""
        with self.environment.read() as txn:
            found = []
            for _, value in txn.scan(keys.table(0, keys.BANK_NAME)):
                number = _U32.unpack(value)[0]
                record = txn.get(keys.table(number, keys.BANK))
                if record is not None:
                    found.append((codec.decode(BankRecord, record), read_counters(txn, number)))
            return found

    def bank_count(self) -> int:
        """How many banks there are, by their names alone."""
        with self.environment.read() as txn:
            return sum(1 for _ in txn.scan(keys.table(0, keys.BANK_NAME)))

    def bank(self, tenant: str, bank_id: str) -> tuple[BankRecord, BankCounters] | None:
        """A bank's record and counters without opening its caches; None when there is no such bank."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
            value = None if number is None else txn.get(keys.table(number, keys.BANK))
            if number is None or value is None:
                return None
            return codec.decode(BankRecord, value), read_counters(txn, number)

    def record(self, number: int) -> BankRecord | None:
        """The record of a bank by its number; None when there is no such bank."""
        with self.environment.read() as txn:
            value = txn.get(keys.table(number, keys.BANK))
            return None if value is None else codec.decode(BankRecord, value)

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, tenant: str, bank_id: str) -> Iterator[Snapshot]:
        """A snapshot of one bank. Raises `BankNotFound`."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
        if number is None:
            raise BankNotFound.named(bank_id)
        try:
            bank = self._open(number)
        except BankNotFound:
            raise BankNotFound.named(bank_id) from None
        view = bank.view()
        before = view.bodies.nbytes
        with self.environment.read() as txn:
            yield Snapshot(
                txn,
                view.record,
                view.seq,
                view.columns,
                view.index,
                view.tokens,
                view.speakers,
                view.labels,
                view.bodies,
                view.derived,
                view.roots,
            )
        if view.bodies.nbytes != before:
            self._hold(number, bank, used=True)

    @contextmanager
    def peek(self, tenant: str, bank_id: str) -> Iterator[tuple[ReadTxn, int]]:
        """(transaction, bank number) for reads that need no caches. Raises `BankNotFound`."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
            if number is None:
                raise BankNotFound.named(bank_id)
            self._until_followed(_read_meta(txn).sequence)
            yield txn, number

    def _until_followed(self, sequence: int) -> None:
        """Wait until the open banks stand at `sequence`: what is seen here, a snapshot taken next must show as well."""
        if self._published < sequence:
            with self._followed:
                self._followed.wait_for(lambda: self._published >= sequence, FOLLOW_SECONDS)

    def open_bank(self, number: int) -> OpenBank:
        """A bank's caches, for upkeep; they stay as long as they are held. Raises `BankNotFound`."""
        return self._open(number)

    def prepare(self, tenant: str, bank_id: str) -> OpenBank:
        """Load a bank's caches; they stay as long as they are held. Raises `BankNotFound`."""
        with self.peek(tenant, bank_id) as (_, number):
            pass
        return self._open(number)

    @contextmanager
    def open_banks_only(self) -> Iterator[None]:
        """This thread neither loads a bank in the block nor waits for a load: `read` raises `BankCold` instead."""
        self._thread.open_only = True
        try:
            yield
        finally:
            self._thread.open_only = False

    def _open(self, number: int) -> OpenBank:
        """The bank's caches, loaded once however many ask."""
        while True:
            with self._lock:
                bank = self._alive.get(number)
                taken_up = bank is not None and number not in self._banks
                if bank is not None:
                    self._banks[number] = bank
                waiting = self._loading.get(number)
                if bank is None and getattr(self._thread, "open_only", False):
                    raise BankCold("The bank is being loaded; try again.")
                if bank is None and waiting is None:
                    loading = self._loading[number] = _Loading()
                    break
            if bank is not None:
                if taken_up:
                    self._hold(number, bank, used=True)
                else:
                    self._budget.touch((self, number))
                return bank
            assert waiting is not None
            waiting.done.wait()
        try:
            quarantined = self._deaths.count(number) >= DEATHS_BEFORE_QUARANTINE
            if quarantined:
                bank = self._load(number, quarantined)
            else:
                with self.in_hand(number, "open"):
                    bank = self._load(number, quarantined)
            while True:
                with self._lock:
                    missed, loading.pending = loading.pending, []
                    if not missed:
                        del self._loading[number]
                        if bank.closed:
                            raise BankNotFound("The bank was deleted.")
                        self._alive[number] = self._banks[number] = bank
                        break
                for delta, seq in missed:
                    if seq > bank.seq:
                        bank.follow(delta, seq)
        except BaseException:
            with self._lock:
                self._loading.pop(number, None)
            raise
        finally:
            loading.done.set()
        self._hold(number, bank, used=True)
        return bank

    def _load(self, number: int, quarantined: bool) -> OpenBank:
        # The caller registered in `_loading` first: a commit is either in the transaction or in `pending`.
        with self.environment.read(long=True) as txn:
            seq, threshold = _read_meta(txn).sequence, self.settings.vector_threshold
            return OpenBank.load(txn, number, seq, threshold, self.folder, quarantined)

    def _hold(self, number: int, bank: OpenBank, used: bool) -> None:
        """Count a bank in the budget and close what it displaces, in whatever partition; readers keep what they hold.

        The caller holds no lock.
        """
        displaced = self._budget.hold((self, number), bank.nbytes, used)
        for partition, other in cast(list[tuple[Partition, int]], displaced):
            with partition._lock:
                partition._banks.pop(other, None)
        with self._lock:
            held = self._banks.get(number) is bank
        if not held:
            self._budget.release((self, number))

    def open_banks(self) -> list[OpenBank]:
        with self._lock:
            return list(self._banks.values())

    # -- writing ---------------------------------------------------------------------------------------------------

    def submit(
        self,
        tenant: str,
        bank_id: str,
        run: Callable[[Applier], T],
        *,
        request_id: str | None = None,
        create: bool = False,
        frees: bool = False,
    ) -> Future[T]:
        """Queue a write to one bank; the future holds what `run` returned once it is on disk and visible.

        `run` answers plain data. A request id seen before in this bank answers what it answered then, and runs nothing.
        Raises (through the future) `BankNotFound` unless `create`.
        """

        # One bank's ids say nothing about another's: whoever knows an id must not be answered from a foreign bank.
        request = None if request_id is None else f"{tenant}\0{bank_id}\0{request_id}"

        def job(txn: WriteTxn) -> T:
            meta = _read_meta(txn)
            before = meta.sequence
            if meta.epoch != self.epoch:
                raise Unavailable("Another process owns this partition now.")
            number = self.bank_number(txn, tenant, bank_id)
            if request is not None:
                seen = txn.get(keys.request(request))
                held = {} if seen is None else codec.unpack(seen)
                # An id used on a bank since deleted does not speak for a new one of that name, except the deletion's.
                if held and (number is None or held["erased"] or held["bank"] == number):
                    answer: T = held["answer"]
                    return answer
            if number is None and not create:
                raise BankNotFound.named(bank_id)
            if number is not None and not frees and self._deaths.count(number) >= DEATHS_BEFORE_QUARANTINE:
                raise Quarantined(
                    f"Bank {bank_id!r} is quarantined because it ended its shard {DEATHS_BEFORE_QUARANTINE} times in a"
                    " row: it can be read but not written to. Run `recalld doctor`, then release it.",
                )

            def next_sequence() -> int:
                meta.sequence += 1
                return meta.sequence

            fresh = number is None
            if number is None:
                number, meta.next_bank = meta.next_bank, meta.next_bank + 1
                txn.put(keys.bank_name(tenant, bank_id), _U32.pack(number))
            applier = Applier(txn, number, next_sequence, self._new_id)
            if fresh:
                now = self._clock()
                applier.apply(BankStored(BankRecord(number, tenant, bank_id, now, now)))
            result = run(applier)
            delta = applier.finish()
            if request is not None:
                now = self._clock()
                done = {"at": now, "answer": result, "bank": number, "erased": applier.erased}
                txn.put(keys.request(request), codec.pack(done))
                if not applier.erased:
                    txn.put(keys.request_of(number, request), b"")
                txn.put(keys.request_time(now, request), b"")
                _trim_requests(txn, now - REQUESTS_KEPT_US)
            for old in range(max(1, before - CHANGES_KEPT), meta.sequence - CHANGES_KEPT):
                txn.delete(keys.change(old))
            _write_meta(txn, meta)
            txn.after_commit(lambda: self._publish(delta, meta.sequence))
            return result

        return self.environment.submit(job, frees=frees)

    def write(self, tenant: str, bank_id: str, run: Callable[[Applier], T], **options: Any) -> T:
        """`submit` and wait."""
        return self.submit(tenant, bank_id, run, **options).result()

    def _publish(self, delta: Delta, seq: int) -> None:
        try:
            self._follow(delta, seq)
        finally:
            with self._followed:
                self._published = seq
                self._followed.notify_all()

    def _follow(self, delta: Delta, seq: int) -> None:
        if any(step == "close" for step, _ in delta.steps):
            self._deaths.release(delta.bank)
        with self._lock:
            loading = self._loading.get(delta.bank)
            if loading is not None:
                loading.pending.append((delta, seq))
            bank = self._alive.get(delta.bank)
        if bank is not None:
            try:
                bank.follow(delta, seq)
            except BaseException:
                self._forget(delta.bank)  # it stands at no sequence any more; the next read loads it again
                raise
            if bank.closed:
                self._forget(delta.bank)
            elif delta.bank in self._banks:
                self._hold(delta.bank, bank, used=False)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._banks.pop(number, None)
            self._alive.pop(number, None)
        self._budget.release((self, number))

    # -- upkeep ----------------------------------------------------------------------------------------------------

    @property
    def published(self) -> int:
        """The last change that every open bank has followed."""
        return self._published

    @contextmanager
    def in_hand(self, number: int, step: str) -> Iterator[None]:
        """Note on disk that a risky step runs on a bank; a process that dies inside counts towards its quarantine."""
        self._deaths.take_in_hand(number, step)
        try:
            yield
            self._deaths.forget(number, step)
        finally:
            self._deaths.put_down(number, step)

    def drop_caches(self) -> None:
        """Forget every open bank; the next read loads it again once nobody reads it any more."""
        with self._lock:
            numbers = list(self._banks)
            self._banks.clear()
        for number in numbers:
            self._budget.release((self, number))

    def quarantined(self) -> list[int]:
        return self._deaths.quarantined()

    def release(self, number: int) -> None:
        """Let a quarantined bank be opened whole and written to again."""
        self._deaths.release(number)
        self._forget(number)

    def close(self) -> None:
        self.environment.close()
        self.drop_caches()
        self._owner.close()


class _Deaths:
    """Which banks were in hand, at which step, when the process died, and how often that happened in a row.

    The note is on disk only while a bank's caches are loaded or its index is worked on: the steps that run native code
    over stored bytes. Whoever finds a note at start counts a death; a step that ends well clears its own count, so
    that a bank that opens but dies of its index is found out too.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / "in_hand.json"
        self._counts_file = folder / "deaths.json"
        self._lock = threading.Lock()
        self._in_hand: list[tuple[int, str]] = []
        held = _read_json(self._counts_file)
        self._counts: dict[str, dict[str, int]] = held if isinstance(held, dict) else {}
        left = _read_json(self._note)
        if isinstance(left, list):
            for number, step in left:
                steps = self._counts.setdefault(str(number), {})
                steps[step] = steps.get(step, 0) + 1
                log.warning("a bank was in hand when its shard died", bank=number, step=step, times=steps[step])
            _write_json(self._counts_file, self._counts)
        self._note.unlink(missing_ok=True)

    def count(self, number: int) -> int:
        return max(self._counts.get(str(number), {}).values(), default=0)

    def take_in_hand(self, number: int, step: str) -> None:
        with self._lock:
            self._in_hand.append((number, step))
            _write_json(self._note, self._in_hand)

    def put_down(self, number: int, step: str) -> None:
        with self._lock:
            self._in_hand.remove((number, step))
            if self._in_hand:
                _write_json(self._note, self._in_hand)
            else:
                self._note.unlink(missing_ok=True)

    def quarantined(self) -> list[int]:
        with self._lock:
            return [int(n) for n in self._counts if self.count(int(n)) >= DEATHS_BEFORE_QUARANTINE]

    def forget(self, number: int, step: str) -> None:
        """The step ended well: its deaths were not the bank's fault, or are over."""
        with self._lock:
            steps = self._counts.get(str(number))
            if steps is None or steps.pop(step, None) is None:
                return
            if not steps:
                del self._counts[str(number)]
            _write_json(self._counts_file, self._counts)

    def release(self, number: int) -> None:
        with self._lock:
            if self._counts.pop(str(number), None) is not None:
                _write_json(self._counts_file, self._counts)


def _own(folder: Path) -> IO[str]:
    """Take the partition for this process; the lock goes with the process. Raises `HomeInUse`."""
    handle = (folder / "owner.lock").open("a+")
    os.chmod(folder / "owner.lock", 0o600)  # noqa: PTH101
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise HomeInUse(f"Partition {folder.name} is open in another process.") from error
    return handle


def _read_meta(txn: ReadTxn) -> _Meta:
    value = txn.get(keys.meta())
    if value is None:
        return _Meta(1, 0, 0)
    held = codec.unpack(value)
    return _Meta(held["next_bank"], held["sequence"], held["epoch"])


def _write_meta(txn: WriteTxn, meta: _Meta) -> None:
    txn.put(keys.meta(), codec.pack({"next_bank": meta.next_bank, "sequence": meta.sequence, "epoch": meta.epoch}))


def _raise_epoch(txn: WriteTxn) -> int:
    meta = _read_meta(txn)
    meta.epoch += 1
    _write_meta(txn, meta)
    return meta.epoch


def _trim_requests(txn: WriteTxn, before: int, most: int = 20) -> None:
    prefix = keys.table(0, keys.REQUEST_TIME)
    old: list[bytes] = []
    for key, _ in txn.scan(prefix):
        if _U64_KEY.unpack_from(key, len(prefix))[0] >= before or len(old) >= most:
            break
        old.append(key)
    for key in old:
        answered = keys.raw(0, keys.REQUEST, key[-16:])
        held = txn.get(answered)
        if held is not None:
            txn.delete(keys.raw(codec.unpack(held)["bank"], keys.REQUEST, key[-16:]))
        txn.delete(answered)
        txn.delete(key)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _write_json(path: Path, value: Any) -> None:
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(value))
    scratch.chmod(0o600)
    scratch.replace(path)


__all__: Sequence[str] = ["Partition", "StoreSettings"]

"""One partition: an LMDB environment, the banks in it, and an LRU of the banks that are open.

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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import structlog

from recalld.storage import codec, keys
from recalld.storage.apply import Applier, read_counters
from recalld.storage.changes import BankStored, Delta
from recalld.storage.environment import DEFAULT_MAP_SIZE, Environment, ReadTxn, WriteTxn
from recalld.storage.errors import BankNotFound, HomeInUse, Unavailable
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
        self, folder: Path, settings: StoreSettings, clock: Callable[[], int], new_id: Callable[[], str]
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
        self._loading: dict[int, _Loading] = {}
        self._uses = 0
        self.epoch = self.environment.write(_raise_epoch, frees=True)

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

    def bank(self, tenant: str, bank_id: str) -> tuple[BankRecord, BankCounters] | None:
        """A bank's record and counters without opening its caches; None when there is no such bank."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
            value = None if number is None else txn.get(keys.table(number, keys.BANK))
            if number is None or value is None:
                return None
            return codec.decode(BankRecord, value), read_counters(txn, number)

    # -- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self, tenant: str, bank_id: str) -> Iterator[Snapshot]:
        """A snapshot of one bank. Raises `BankNotFound`."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
        if number is None:
            raise BankNotFound.named(bank_id)
        try:
            view = self._open(number).view()
        except BankNotFound:
            raise BankNotFound.named(bank_id) from None
        with self.environment.read() as txn:
            yield Snapshot(txn, view.record, view.seq, view.columns, view.index, view.tokens, view.speakers)

    @contextmanager
    def peek(self, tenant: str, bank_id: str) -> Iterator[tuple[ReadTxn, int]]:
        """(transaction, bank number) for reads that need no caches. Raises `BankNotFound`."""
        with self.environment.read() as txn:
            number = self.bank_number(txn, tenant, bank_id)
            if number is None:
                raise BankNotFound.named(bank_id)
            yield txn, number

    def _open(self, number: int) -> OpenBank:
        """The bank's caches, loaded once however many ask; deaths in a row count towards quarantine."""
        while True:
            with self._lock:
                self._uses += 1
                bank = self._banks.get(number)
                if bank is not None:
                    bank.last_used = self._uses
                    return bank
                waiting = self._loading.get(number)
                if waiting is None:
                    loading = self._loading[number] = _Loading()
                    break
            waiting.done.wait()
        try:
            # Registered before the transaction begins: a commit is either in the transaction or in `pending`.
            if self._deaths.count(number) >= DEATHS_BEFORE_QUARANTINE:
                raise Unavailable(
                    "This bank ended its shard three times and is quarantined; run `recalld doctor`.", retry_after=60
                )
            self._deaths.take_in_hand(number, "open")
            with self.environment.read() as txn:
                bank = OpenBank.load(txn, number, _read_meta(txn).sequence, self.settings.vector_threshold, self.folder)
            with self._lock:
                for delta, seq in loading.pending:
                    if seq > bank.seq:
                        bank.follow(delta, seq)
                bank.last_used = self._uses
                self._banks[number] = bank
                del self._loading[number]
                self._evict(number)
            self._deaths.forget(number)
        except BaseException:
            with self._lock:
                self._loading.pop(number, None)
            raise
        finally:
            self._deaths.put_down()
            loading.done.set()
        return bank

    def _evict(self, keep: int) -> None:
        """Drop the least recently used banks beyond the budget; their readers keep what they hold."""
        total = sum(bank.nbytes for bank in self._banks.values())
        for number in sorted(self._banks, key=lambda n: self._banks[n].last_used):
            if total <= self.settings.memory_budget:
                return
            if number != keep:
                total -= self._banks.pop(number).nbytes

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
            if request is not None:
                seen = txn.get(keys.request(request))
                if seen is not None:
                    answer: T = codec.unpack(seen)["answer"]
                    return answer
            number = self.bank_number(txn, tenant, bank_id)
            if number is None and not create:
                raise BankNotFound.named(bank_id)

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
                txn.put(keys.request(request), codec.pack({"at": now, "answer": result}))
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
        with self._lock:
            loading = self._loading.get(delta.bank)
            if loading is not None:
                loading.pending.append((delta, seq))
                return
            bank = self._banks.get(delta.bank)
        if bank is None:
            return
        bank.follow(delta, seq)
        with self._lock:
            if bank.closed:
                self._banks.pop(delta.bank, None)
            else:
                self._evict(delta.bank)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def drop_caches(self) -> None:
        """Forget every open bank; the next read loads it again."""
        with self._lock:
            self._banks.clear()

    def quarantined(self) -> list[int]:
        return self._deaths.quarantined()

    def release(self, number: int) -> None:
        """Let a quarantined bank be opened again."""
        self._deaths.forget(number)

    def close(self) -> None:
        self.environment.close()
        self.drop_caches()
        self._owner.close()


class _Deaths:
    """Which bank was in hand when the process died, and how often that happened.

    The note is on disk only while a bank's caches are loaded or its index is built: the steps that run native code
    over stored bytes. Whoever finds a note at start counts a death.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / "in_hand.json"
        self._counts_file = folder / "deaths.json"
        self._lock = threading.Lock()
        self._in_hand = 0
        self._counts: dict[str, int] = _read_json(self._counts_file) or {}
        left = _read_json(self._note)
        if left:
            number = str(left["bank"])
            self._counts[number] = self._counts.get(number, 0) + 1
            _write_json(self._counts_file, self._counts)
            self._note.unlink(missing_ok=True)
            log.warning("a bank was in hand when its shard died", bank=left["bank"], step=left["step"])

    def count(self, number: int) -> int:
        return self._counts.get(str(number), 0)

    def take_in_hand(self, number: int, step: str) -> None:
        with self._lock:
            self._in_hand += 1
            _write_json(self._note, {"bank": number, "step": step})

    def put_down(self) -> None:
        with self._lock:
            self._in_hand = max(0, self._in_hand - 1)
            if not self._in_hand:
                self._note.unlink(missing_ok=True)

    def quarantined(self) -> list[int]:
        return [int(n) for n, deaths in self._counts.items() if deaths >= DEATHS_BEFORE_QUARANTINE]

    def forget(self, number: int) -> None:
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
        txn.delete(keys.raw(0, keys.REQUEST, key[-16:]))
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

"""Upkeep of a partition: the indexes of large banks in the background, and compaction.

`tend` is called again and again by whoever owns the partition; nothing it does holds a lock that a query waits on for
longer than a slice of an index's growth.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from recalld.storage import answers, bank_index, keys, postings
from recalld.storage.environment import WriteTxn
from recalld.storage.errors import BankNotFound, RecalldError, Unavailable
from recalld.storage.faults import origin
from recalld.storage.hnsw import HnswIndex
from recalld.storage.open_bank import OpenBank
from recalld.storage.partition import Partition
from recalld.storage.verify import verify_bank

log = structlog.get_logger(__name__)

KEYS_A_COMMIT = 2000
# hnswlib keeps the GIL while it saves: a save that is due waits for a pause of this length in the queries.
QUIET_SECONDS = 2.0
REST_SECONDS = 60.0
# A partition compacts itself when this much of its file is free pages, once nothing was written for a while: writes
# wait while it does.
FREE_SHARE = 0.5
FREE_BYTES = 64 << 20
QUIET_WRITES_SECONDS = 10.0
COMPACTION_RESTS_SECONDS = 600.0
VERIFY_PAUSE = 0.0005
"""Seconds that counting a bank stands aside after each piece of work."""


def tend(partition: Partition, seconds: float) -> bool:
    """One round of background work on the open banks, for about `seconds`; True when some is left.

    Banks past the threshold move to an approximate index, tails move into graphs, grown indexes are saved, and folders
    of deleted banks go. A save of a large index takes longer than `seconds`, and so does the compaction of a partition
    whose file is mostly free pages.
    """
    remove_strays(partition)
    banks = [bank for bank in partition.open_banks() if _wants(bank)]
    for bank in banks:
        if not bank.upkeep.acquire(blocking=False):
            continue
        try:
            _tend(partition, bank, seconds / len(banks))
        except (RecalldError, OSError, RuntimeError, MemoryError) as error:
            # The files of a bank that was just deleted may be gone under its feet; a full disk may have room later.
            if not bank.closed:
                log.warning("upkeep of a bank rests for a minute", bank=bank.record.number, traceback=origin(error))
            bank.rests_until = time.monotonic() + REST_SECONDS
        finally:
            bank.upkeep.release()
    if _mostly_free(partition):
        partition.compaction_rests_until = time.monotonic() + COMPACTION_RESTS_SECONDS
        try:
            compact(partition)
        except (RecalldError, OSError) as error:
            if not partition.environment.abandoned:
                log.warning(
                    "a compaction rests for ten minutes", partition=partition.folder.name, traceback=origin(error)
                )
    return any(_wants(bank) for bank in banks)


def _mostly_free(partition: Partition) -> bool:
    environment, now = partition.environment, time.monotonic()
    if now < partition.compaction_rests_until or now - environment.last_commit < QUIET_WRITES_SECONDS:
        return False
    usage = environment.usage()
    free = usage["file_bytes"] - usage["used_bytes"]
    return free >= FREE_BYTES and free > FREE_SHARE * usage["file_bytes"]


def settle(partition: Partition) -> None:
    """Finish all background work on the open banks, now; a graph grows by about 1,000 rows a second."""
    while tend(partition, 1.0):
        pass
    for bank in partition.open_banks():
        with bank.upkeep:
            if isinstance(bank.index, HnswIndex) and bank.index.folder is not None and not bank.closed:
                _save(partition, bank, bank.index)


def _wants(bank: OpenBank) -> bool:
    index = bank.index
    if bank.closed or time.monotonic() < bank.rests_until:
        return False
    if bank.outgrown:
        return True
    return isinstance(index, HnswIndex) and (index.work_left or _save_now(index))


def _save_now(index: HnswIndex) -> bool:
    if index.folder is None or not index.save_due:
        return False
    return index.save_overdue or index.idle_seconds > QUIET_SECONDS


def _tend(partition: Partition, bank: OpenBank, seconds: float) -> None:
    number = bank.record.number
    if bank.outgrown:
        with partition.in_hand(number, "promote"):
            bank.promote()
    index = bank.index
    if not isinstance(index, HnswIndex):
        return
    if index.work_left:
        with partition.in_hand(number, "advance"):
            index.advance(seconds)
    if _save_now(index):
        _save(partition, bank, index)


def _save(partition: Partition, bank: OpenBank, index: HnswIndex) -> None:
    """Write the index's files. Every change up to the sequence taken first is in it, later ones may be."""
    assert index.folder is not None
    seq = max(bank.seq, partition.published)
    with partition.in_hand(bank.record.number, "save"):
        index.save(index.folder, seq)
    log.info("vector index saved", bank=bank.record.number, sequence=seq, rows=len(index.rows))


def remove_strays(partition: Partition) -> None:
    """Remove vector files of banks that were deleted."""
    for folder in bank_index.folders(partition.folder):
        number = folder.name.split(".")[0]
        record = partition.record(int(number)) if number.isdigit() else None
        if record is None or bank_index.folder_of(partition.folder, record) != folder:
            log.info("vector files of a deleted bank removed", folder=folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def compact(partition: Partition) -> tuple[int, int]:
    """Rewrite a partition; bytes of its file before and after.

    After it no byte of an erased unit is left in the partition: LMDB keeps old bytes in freed pages until then, and
    vector files keep the rows of removed units.
    """
    remove_strays(partition)
    for record, _ in partition.banks():
        if partition.environment.abandoned:
            raise Unavailable("The store is closing; try again.")
        try:
            bank = partition.open_bank(record.number)
        except BankNotFound:
            continue
        dead = ~bank.view().columns.exists
        if dead.any():
            _sweep_postings(partition, record.number, dead)
        answers.sweep(partition, record.number)
        with bank.upkeep:
            _compact_vectors(partition, bank)
    before, after = partition.environment.compact()
    log.info("compacted", partition=partition.folder.name, before=before, after=after)
    return before, after


def _compact_vectors(partition: Partition, bank: OpenBank) -> None:
    index = bank.index
    if not isinstance(index, HnswIndex) or index.folder is None:
        # A quarantined bank's files cannot be trusted; they are built again when it is released.
        shutil.rmtree(bank.files, ignore_errors=True)
        return
    index.scrub()
    _save(partition, bank, index)


def _sweep_postings(partition: Partition, bank: int, dead: NDArray[np.bool_]) -> None:
    start: bytes | None = keys.table(bank, keys.POSTING)
    while start is not None:
        start = partition.environment.write(partial(_sweep_slice, bank=bank, dead=dead, start=start), frees=True)


def _sweep_slice(txn: WriteTxn, bank: int, dead: NDArray[np.bool_], start: bytes) -> bytes | None:
    """Rewrite some blocks without dead units; where to go on, None at the end."""
    changed: list[tuple[bytes, bytes]] = []
    follow: bytes | None = None
    for seen, (key, value) in enumerate(txn.scan(keys.table(bank, keys.POSTING), start)):
        if seen >= KEYS_A_COMMIT:
            follow = key
            break
        kept = postings.without(value, dead)
        if kept is not None:
            changed.append((key, kept))
    for key, kept in changed:
        if postings.count(kept):
            txn.put(key, kept)
        else:
            txn.delete(key)
    return follow


def verify(partition: Partition, tenant: str, bank_id: str) -> dict[str, Any]:
    """Count a bank's tables against each other, others first; see `storage.verify`. Raises `BankNotFound`."""
    with partition.environment.read(long=True) as txn:
        number = partition.bank_number(txn, tenant, bank_id)
        if number is None:
            raise BankNotFound.named(bank_id)
        return verify_bank(txn, number, lambda: time.sleep(VERIFY_PAUSE)).plain()

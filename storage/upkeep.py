"""Compaction: what is dead leaves the posting lists, then the environment is rewritten without freed pages."""

from __future__ import annotations

from functools import partial

import numpy as np
import structlog
from numpy.typing import NDArray

from recalld.storage import keys, postings
from recalld.storage.environment import WriteTxn
from recalld.storage.partition import Partition

log = structlog.get_logger(__name__)

KEYS_A_COMMIT = 2000


def compact(partition: Partition) -> tuple[int, int]:
    """Rewrite a partition; bytes of its file before and after.

    After it no byte of an erased unit is left in the partition: LMDB keeps old bytes in freed pages until then.
    """
    for record, _ in partition.banks():
        with partition.read(record.tenant, record.bank_id) as snap:
            dead = ~snap.columns.exists.copy()
        if dead.any():
            _sweep_postings(partition, record.number, dead)
    before, after = partition.environment.compact()
    log.info("compacted", partition=partition.folder.name, before=before, after=after)
    return before, after


def _sweep_postings(partition: Partition, bank: int, dead: NDArray[np.bool_]) -> None:
    start: bytes | None = keys.table(bank, keys.POSTING)
    while start is not None:
        start = partition.environment.write(partial(_sweep_slice, bank=bank, dead=dead, start=start), frees=True)


def _sweep_slice(txn: WriteTxn, bank: int, dead: NDArray[np.bool_], start: bytes) -> bytes | None:
    """Rewrite some blocks without dead units; where to go on, None at the end."""
    changed: list[tuple[bytes, bytes]] = []
    seen = 0
    follow: bytes | None = None
    for key, value in txn.scan(keys.table(bank, keys.POSTING), start):
        if seen >= KEYS_A_COMMIT:
            follow = key
            break
        seen += 1
        kept = postings.without(value, dead)
        if kept is not None:
            changed.append((key, kept))
    for key, kept in changed:
        if postings.count(kept):
            txn.put(key, kept)
        else:
            txn.delete(key)
    return follow

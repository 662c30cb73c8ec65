"""Which vector index a bank has, and how it is opened: from the store, or from files that are caught up with it.

Up to the threshold a bank's vectors are scanned exactly and read from the store at open. Above it they lie, with the
token vectors, in mapped files of one folder a bank and model, so that they take page cache and not memory:

    <partition>/vectors/<bank number>.<model hash>/   the index's files (`vector_files`) and tokens.<i>.i8

The files are a cache that stands at a change S of the store. Opening one learns what happened since: units beyond its
last are read from the store, units that no longer exist leave it, and units with new vectors are named by the change
log; where the log does not reach back to S, every row is compared with the store instead, which is still hundreds of
times cheaper than growing the graph anew. Files that are missing, damaged, foreign or newer than the store are built
again from the store.
"""

from __future__ import annotations

import json
import logging
import shutil
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage import codec, keys
from recalld.storage.columns import Columns
from recalld.storage.environment import ReadTxn
from recalld.storage.hnsw import EXACT_ROWS, HnswIndex
from recalld.storage.quantise import unit_rows
from recalld.storage.records import BankRecord
from recalld.storage.tokens import TokenRows
from recalld.storage.vector_files import fresh_name
from recalld.storage.vector_rows import TOKEN_DIM, VECTOR_ROWS, vectors_of
from recalld.storage.vectors import ExactIndex, VectorIndex

log = logging.getLogger(__name__)

FOLDER = "vectors"
# Rows that may still be missing when a promotion takes the writer's lock for the last of them.
_LAST_ROWS = 256
_PIECE = 4096


def folder_of(partition: Path, record: BankRecord) -> Path:
    """The folder of a large bank's files."""
    return partition / FOLDER / f"{record.number}.{_model_hash(record)}"


def identity(record: BankRecord) -> str:
    """The model and this very bank: another bank that came by the same number has another one."""
    return f"{_model_hash(record)} of bank {record.number} made at {record.created_at}"


def open_index(
    txn: ReadTxn, record: BankRecord, columns: Columns, newest: int, threshold: int, partition: Path | None
) -> VectorIndex | None:
    """The bank's index as of change `newest`, that of `txn`; None while the bank has no vectors.

    `partition` None keeps even a large bank in memory. DiskFull when its files cannot be made.
    """
    if not len(columns.exists) or not record.model:
        return None
    dim = int(record.model["dim"])
    if int(np.count_nonzero(columns.exists)) <= threshold:
        if partition is not None:
            shutil.rmtree(folder_of(partition, record), ignore_errors=True)
        small = ExactIndex(dim)
        _add_from(txn, record.number, small, 0)
        return small
    folder = folder_of(partition, record) if partition is not None else None
    found = None
    exact = min(EXACT_ROWS, threshold)
    if folder is not None:
        found = HnswIndex.open(folder, identity(record), dim, newest, exact_rows=exact)
    if found is None:
        found = HnswIndex(dim, identity(record), folder, exact_rows=exact)
        _add_from(txn, record.number, found, 0)
    else:
        _catch_up(txn, record.number, found, columns, newest)
    found.seq = newest
    return found


def promoted(
    small: ExactIndex, record: BankRecord, threshold: int, partition: Path
) -> tuple[HnswIndex, NDArray[np.int64]]:
    """A large bank's index with what `small` holds but its last few changes, and the spans to `transfer` those from."""
    spans = spans_of(small)
    exact = min(EXACT_ROWS, threshold)
    folder = folder_of(partition, record)
    index = HnswIndex(small.dim, identity(record), folder, exact_rows=exact, rows=small.rows)
    while True:
        before, spans = spans, transfer(small, index, spans)
        if len(spans) - len(before) <= _LAST_ROWS:
            return index, spans


def transfer(small: ExactIndex, index: HnswIndex, before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bring to `index` what changed in `small` since its spans were `before`; returns the spans it then stood at."""
    now = spans_of(small)
    changed = np.flatnonzero(now[: len(before)] != before)
    changed = np.concatenate([changed, np.arange(len(before), len(now))])
    if len(changed):
        index.remove(np.setdiff1d(changed, small.rows.uids()))
    for at in range(0, len(changed), _PIECE):
        index.add(*small.rows.of(changed[at : at + _PIECE]))
    return now


def spans_of(index: VectorIndex) -> NDArray[np.int64]:
    """Where each unit's rows lie: an entry that differs is a unit that changed."""
    return index.rows.parts()[1]


def token_file(folder: Path) -> TokenRows:
    """Empty token rows in a new file of a large bank's folder; what an earlier opening left is removed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = fresh_name(folder, "tokens", "i8")
    for old in folder.glob("tokens.*.i8"):
        old.unlink(missing_ok=True)
    return TokenRows(TOKEN_DIM, folder / name)


def copy_tokens(source: TokenRows, target: TokenRows, before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bring to `target` what changed in `source` since its spans were `before`; returns the spans it then stood at."""
    now = source.spans()
    for uid in np.flatnonzero(now[: len(before)] != before).tolist():
        _, rows = source.of(uid, uid + 1)
        target.append(uid, rows)
    for first in range(len(before), len(now), _PIECE):
        last = min(first + _PIECE, len(now))
        target.extend(first, *source.of(first, last))
    return now


def folders(partition: Path) -> list[Path]:
    try:
        return [path for path in (partition / FOLDER).iterdir() if path.is_dir()]
    except FileNotFoundError:
        return []


def _model_hash(record: BankRecord) -> str:
    plain = json.dumps(record.model, sort_keys=True, default=str)
    return blake2b(plain.encode(), digest_size=6).hexdigest()


def _add_from(txn: ReadTxn, bank: int, index: VectorIndex, first: int) -> None:
    """Add every stored row from unit `first` on."""
    for uid, rows in VECTOR_ROWS.runs(txn, bank, first):
        _add(index, uid, rows)


def _add(index: VectorIndex, first: int, rows: list[bytes]) -> None:
    uids, codes = vectors_of(first, rows)
    if len(uids):
        index.add(uids, unit_rows(codes))


def _catch_up(txn: ReadTxn, bank: int, index: HnswIndex, columns: Columns, newest: int) -> None:
    known = index.rows.units
    alive = np.zeros(known, np.bool_)
    alive[: len(columns.exists)] = columns.exists[:known]
    held = index.rows.uids()
    index.remove(held[~alive[held]])
    changed = _reembedded_since(txn, bank, index.seq, newest)
    if changed is None:
        log.info("The change log begins after change %d: the index of bank %d is compared.", index.seq, bank)
        for uid, rows in VECTOR_ROWS.runs(txn, bank):
            _add_differing(index, uid, rows[: max(0, known - uid)])
    else:
        for uid in sorted(uid for uid in changed if uid < known):
            _add(index, uid, [VECTOR_ROWS.get(txn, bank, uid)])
    _add_from(txn, bank, index, known)


def _add_differing(index: HnswIndex, first: int, rows: list[bytes]) -> None:
    uids, codes = vectors_of(first, rows)
    if not len(uids):
        return
    vectors = unit_rows(codes)
    different = np.isin(uids, index.rows.differing(uids, vectors))
    index.add(uids[different], vectors[different])


def _reembedded_since(txn: ReadTxn, bank: int, since: int, newest: int) -> set[int] | None:
    """Units that got new vectors after change `since`; None when the change log does not reach back to it."""
    if since >= newest:
        return set()
    first = keys.change(since + 1)
    if txn.get(first) is None:
        return None
    found: set[int] = set()
    for _, value in txn.scan(keys.table(0, keys.CHANGE), first):
        change: dict[str, Any] = codec.unpack(value)
        if change["b"] == bank and change["k"] == "UnitsReembedded":
            found.update(change["uids"])
    return found

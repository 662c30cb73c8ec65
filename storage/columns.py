"""What recall needs of every unit, as resident arrays indexed by uid, and its stored form.

One fixed-width row a unit stands in LMDB (`COLUMN_DTYPE`); an open bank keeps one array a column, so that a filter or
a gather is one numpy call. Arrays only grow; a column that changes is copied first, because a reader may hold it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recalld.storage import keys
from recalld.storage.environment import ReadTxn
from recalld.storage.records import NEVER, UNKNOWN
from recalld.storage.rows import RowTable

EXISTS, LIVE, QUESTION, SUPERSEDED_ROW = 1, 2, 4, 8

COLUMN_DTYPE = np.dtype(
    [
        ("flags", "u1"),
        ("network", "u1"),
        ("proof", "<u2"),
        ("document", "<u4"),
        ("thread", "<u4"),
        ("speaker", "<u4"),
        ("prev", "<i4"),
        ("length", "<u4"),
        ("tokens", "<u4"),
        ("confidence", "<f4"),
        ("occurred_start", "<i8"),
        ("occurred_end", "<i8"),
        ("mentioned", "<i8"),
        ("recorded", "<i8"),
        ("retired", "<i8"),
    ]
)
COLUMN_ROWS = RowTable(keys.COLUMN_BLOCK, keys.COLUMN_TAIL, 256, COLUMN_DTYPE.itemsize)
_PLAIN = ("network", "proof", "document", "thread", "speaker", "length", "tokens", "confidence")
_TIMES = ("occurred_start", "occurred_end", "mentioned", "recorded", "retired")
_DTYPES: dict[str, str] = {
    "live": "?",
    "exists": "?",
    "question": "?",
    "superseded": "?",
    "network": "u1",
    "proof": "u2",
    "document": "u4",
    "thread": "u4",
    "speaker": "u4",
    "prev": "i4",
    "next": "i4",
    "length": "u4",
    "tokens": "u4",
    "confidence": "f4",
    **dict.fromkeys(_TIMES, "i8"),
}


class Columns(NamedTuple):
    """The columns of one snapshot: arrays of length n, row = uid. Do not write to them.

    `prev` and `next` are the neighbours in the thread (-1: none); of several units behind one the newest live one is
    its `next`, else the newest. `next` may already name a unit newer than the snapshot; treat a value >= n as -1.
    """

    live: NDArray[np.bool_]
    exists: NDArray[np.bool_]
    network: NDArray[np.uint8]
    document: NDArray[np.uint32]
    thread: NDArray[np.uint32]
    speaker: NDArray[np.uint32]
    prev: NDArray[np.int32]
    next: NDArray[np.int32]
    length: NDArray[np.uint32]
    tokens: NDArray[np.uint32]
    occurred_start: NDArray[np.int64]
    occurred_end: NDArray[np.int64]
    mentioned: NDArray[np.int64]
    recorded: NDArray[np.int64]
    retired: NDArray[np.int64]
    question: NDArray[np.bool_]
    proof: NDArray[np.uint16]
    confidence: NDArray[np.float32]
    superseded: NDArray[np.bool_]


class ColumnRow(NamedTuple):
    """One unit's columns as plain values; `pack` and `unpack` are its stored form."""

    flags: int
    network: int
    proof: int = 1
    document: int = 0
    thread: int = 0
    speaker: int = 0
    prev: int = -1
    length: int = 0
    tokens: int = 0
    confidence: float = float("nan")
    occurred_start: int = UNKNOWN
    occurred_end: int = UNKNOWN
    mentioned: int = UNKNOWN
    recorded: int = 0
    retired: int = NEVER

    def pack(self) -> bytes:
        return np.array([tuple(self)], COLUMN_DTYPE).tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> ColumnRow:
        return cls(*np.frombuffer(data, COLUMN_DTYPE, 1)[0].tolist())


def rows_at(txn: ReadTxn, bank: int, uids: Iterable[int]) -> NDArray[Any]:
    """Stored rows (COLUMN_DTYPE) of some units, ascending by uid; a block is read once for all of its rows."""
    blocks: dict[int, list[int]] = {}
    for uid in sorted(uids):
        blocks.setdefault(uid // COLUMN_ROWS.size, []).append(uid)
    found = [np.empty(0, COLUMN_DTYPE)]
    for block, members in blocks.items():
        value = txn.get(keys.number(bank, keys.COLUMN_BLOCK, block))
        if value is not None:
            rows = np.frombuffer(bytes(value), COLUMN_DTYPE)
            found.append(rows[np.array(members) - block * COLUMN_ROWS.size])
        else:
            tail = b"".join(COLUMN_ROWS.get(txn, bank, uid) for uid in members)
            found.append(np.frombuffer(tail, COLUMN_DTYPE))
    return np.concatenate(found)


class OpenColumns:
    """The resident columns of an open bank. One thread changes them; readers take `view`."""

    def __init__(self) -> None:
        self.n = 0
        self._arrays: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in _DTYPES.items()}

    @classmethod
    def load(cls, txn: ReadTxn, bank: int) -> OpenColumns:
        """Read every row of the bank."""
        parts = [np.frombuffer(block, COLUMN_DTYPE).copy() for _, block in COLUMN_ROWS.blocks(txn, bank)]
        parts += [np.frombuffer(row, COLUMN_DTYPE).copy() for _, row in COLUMN_ROWS.tail(txn, bank)]
        columns = cls()
        if parts:
            columns.append(np.concatenate(parts))
        return columns

    def append(self, rows: NDArray[Any]) -> None:
        """Add `rows` (COLUMN_DTYPE) behind the last uid."""
        start, end = self.n, self.n + len(rows)
        self._reserve(end)
        arrays = self._arrays
        for name in _PLAIN + _TIMES + ("prev",):
            arrays[name][start:end] = rows[name]
        flags = rows["flags"]
        arrays["exists"][start:end] = flags & EXISTS != 0
        arrays["live"][start:end] = flags & LIVE != 0
        arrays["question"][start:end] = flags & QUESTION != 0
        arrays["superseded"][start:end] = flags & SUPERSEDED_ROW != 0
        arrays["next"][start:end] = -1
        self.n = end
        uids = np.arange(start, end, dtype=np.int32)
        linked = (rows["prev"] >= 0) & arrays["exists"][start:end]
        # Live ones last: they stay.
        for chosen in (linked & ~arrays["live"][start:end], linked & arrays["live"][start:end]):
            arrays["next"][rows["prev"][chosen]] = uids[chosen]

    def _reserve(self, rows: int) -> None:
        capacity = len(self._arrays["live"])
        if rows <= capacity:
            return
        capacity = max(rows, capacity + capacity // 2, 64)
        for name, array in self._arrays.items():
            grown = np.empty(capacity, array.dtype)
            grown[: self.n] = array[: self.n]
            self._arrays[name] = grown

    def change(self, **values: tuple[NDArray[np.int64], Any]) -> None:
        """Set columns at uids: `change(live=(uids, False), retired=(uids, now))`; readers keep the arrays they hold."""
        for name, (uids, value) in values.items():
            changed = self._arrays[name].copy()
            changed[uids] = value
            self._arrays[name] = changed

    def renew_next(self, uids: NDArray[np.int64]) -> None:
        """Find the neighbour behind each of `uids` anew; negative ones are ignored."""
        uids = np.unique(uids[uids >= 0])
        if not len(uids):
            return
        prev, live, exists = (self._arrays[name][: self.n] for name in ("prev", "live", "exists"))
        behind = np.flatnonzero(exists & np.isin(prev, uids))
        values = np.full(len(uids), -1, np.int64)
        # Ascending and live ones last, so the newest live one stays.
        for chosen in (behind[~live[behind]], behind[live[behind]]):
            values[np.searchsorted(uids, prev[chosen])] = chosen
        self.change(next=(uids, values))

    def view(self) -> Columns:
        """The columns as they stand now."""
        n = self.n
        arrays = self._arrays
        return Columns(*(arrays[name][:n] for name in Columns._fields))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

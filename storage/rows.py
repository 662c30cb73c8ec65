"""Per-unit rows in LMDB: sealed blocks for what is old, single entries for the tail.

A row is the bytes one unit has in one table (its columns, its vectors, its token vectors). Small values waste half an
LMDB page and large ones none, so once every uid of a block exists its rows move into one value. A fixed-width block is
the rows back to back; a ragged one carries offsets in front:

    offsets u32[size + 1] | payload

Erasing a unit leaves an empty row (zeros when the width is fixed): uids are never reused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recalld.storage import keys
from recalld.storage.environment import ReadTxn, WriteTxn


@dataclass(frozen=True, slots=True)
class RowTable:
    """One table of rows; `width` is the bytes of a row, or 0 when rows differ in length."""

    block_table: int
    tail_table: int
    size: int
    width: int = 0

    def append(self, txn: WriteTxn, bank: int, first_uid: int, rows: Sequence[bytes]) -> None:
        """Store rows for `first_uid` on; a block whose last uid is among them is sealed."""
        end = first_uid + len(rows)
        uid = first_uid
        while uid < end:
            block = uid // self.size
            block_end = (block + 1) * self.size
            if block_end <= end:
                fresh = list(rows[uid - first_uid : block_end - first_uid])
                old = self._take_tail(txn, bank, block * self.size, uid)
                txn.put(keys.number(bank, self.block_table, block), self._join(old + fresh))
                uid = block_end
            else:
                for row in rows[uid - first_uid :]:
                    txn.put(keys.number(bank, self.tail_table, uid), row)
                    uid += 1

    def _take_tail(self, txn: WriteTxn, bank: int, start: int, end: int) -> list[bytes]:
        taken = []
        for uid in range(start, end):
            key = keys.number(bank, self.tail_table, uid)
            value = txn.get(key)
            taken.append(bytes(value) if value is not None else b"\0" * self.width)
            txn.delete(key)
        return taken

    def _join(self, rows: list[bytes]) -> bytes:
        if self.width:
            return b"".join(rows)
        offsets = np.zeros(len(rows) + 1, "<u4")
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return offsets.tobytes() + b"".join(rows)

    def split(self, block: bytes | memoryview) -> list[bytes]:
        """The rows of a sealed block, as copies."""
        if self.width:
            data = bytes(block)
            return [data[i : i + self.width] for i in range(0, len(data), self.width)]
        offsets = np.frombuffer(block, "<u4", self.size + 1).tolist()
        data = bytes(memoryview(block)[4 * (self.size + 1) :])
        return [data[a:b] for a, b in itertools.pairwise(offsets)]

    def get(self, txn: ReadTxn, bank: int, uid: int) -> bytes:
        """One unit's row; empty (or zeros) when it was erased or never written."""
        tail = txn.get(keys.number(bank, self.tail_table, uid))
        if tail is not None:
            return bytes(tail)
        block = txn.get(keys.number(bank, self.block_table, uid // self.size))
        return b"\0" * self.width if block is None else self.split(block)[uid % self.size]

    def replace(self, txn: WriteTxn, bank: int, rows: dict[int, bytes]) -> None:
        """Put new rows in place of stored ones; a sealed block is rewritten once for all its rows."""
        sealed: dict[int, dict[int, bytes]] = {}
        for uid, row in rows.items():
            key = keys.number(bank, self.tail_table, uid)
            if txn.get(key) is not None:
                txn.put(key, row)
            else:
                sealed.setdefault(uid // self.size, {})[uid % self.size] = row
        for block, changed in sealed.items():
            key = keys.number(bank, self.block_table, block)
            value = txn.get(key)
            if value is None:
                continue
            old = self.split(value)
            for index, row in changed.items():
                old[index] = row
            txn.put(key, self._join(old))

    def blocks(self, txn: ReadTxn, bank: int) -> Iterator[tuple[int, memoryview]]:
        """(first uid, sealed block) in order; the views die with the transaction."""
        for key, value in txn.scan(keys.table(bank, self.block_table)):
            yield keys.trailing_u32(key) * self.size, value

    def runs(self, txn: ReadTxn, bank: int, first: int = 0, most: int = 1024) -> Iterator[tuple[int, list[bytes]]]:
        """(first uid, rows of it and those behind it) from uid `first` on, in order, at most about `most` rows each."""
        rows: list[bytes] = []
        start = next_uid = first
        for key, value in txn.scan(
            keys.table(bank, self.block_table), keys.number(bank, self.block_table, first // self.size)
        ):
            uid = keys.trailing_u32(key) * self.size
            block = self.split(value)[max(0, first - uid) :]
            uid = max(uid, first)
            if rows and (uid != next_uid or len(rows) >= most):
                yield start, rows
                rows = []
            if not rows:
                start = uid
            rows += block
            next_uid = uid + len(block)
        for key, value in txn.scan(keys.table(bank, self.tail_table), keys.number(bank, self.tail_table, first)):
            uid = keys.trailing_u32(key)
            if rows and (uid != next_uid or len(rows) >= most):
                yield start, rows
                rows = []
            if not rows:
                start = uid
            rows.append(bytes(value))
            next_uid = uid + 1
        if rows:
            yield start, rows

    def tail(self, txn: ReadTxn, bank: int) -> Iterator[tuple[int, memoryview]]:
        """(uid, row) of the units not yet in a sealed block, in order."""
        for key, value in txn.scan(keys.table(bank, self.tail_table)):
            yield keys.trailing_u32(key), value

"""The resident caches of one bank: columns, vectors, token vectors, speakers. All rebuilt from LMDB at open.

Only the writer thread changes an open bank (through `follow`, after a flush); any thread may take a `view`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage import codec, keys
from recalld.storage.changes import Delta
from recalld.storage.columns import Columns, OpenColumns
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BankNotFound
from recalld.storage.names import folded
from recalld.storage.quantise import unit_rows
from recalld.storage.records import BankRecord
from recalld.storage.tokens import TokenRows
from recalld.storage.vector_rows import TOKEN_DIM, TOKEN_ROWS, VECTOR_ROWS, unpack_tokens, unpack_vectors
from recalld.storage.vectors import ExactIndex, VectorIndex


@dataclass(frozen=True, slots=True)
class BankView:
    """What a snapshot keeps of an open bank: fixed columns, and indexes that are asked about the first n units only."""

    record: BankRecord
    seq: int
    columns: Columns
    index: VectorIndex | None
    tokens: TokenRows
    speakers: dict[str, int]


class OpenBank:
    """One open bank. `threshold` is the number of units above which the vectors go to an approximate index."""

    def __init__(self, record: BankRecord, threshold: int, folder: Path) -> None:
        self.record = record
        self.seq = 0
        self.last_used = 0
        self.closed = False
        self._threshold = threshold
        self._folder = folder
        self._lock = threading.Lock()
        self.columns = OpenColumns()
        self.tokens = TokenRows()
        self.index: VectorIndex | None = None
        self._speakers: dict[str, int] = {}

    @classmethod
    def load(cls, txn: ReadTxn, number: int, seq: int, threshold: int, folder: Path) -> OpenBank:
        """Read the bank's caches from the store. Raises `BankNotFound` when it was deleted meanwhile."""
        value = txn.get(keys.table(number, keys.BANK))
        if value is None:
            raise BankNotFound("The bank was deleted.")
        bank = cls(codec.decode(BankRecord, value), threshold, folder)
        bank.seq = seq
        bank.columns = OpenColumns.load(txn, number)
        for first, block in TOKEN_ROWS.blocks(txn, number):
            bank._extend_tokens(first, TOKEN_ROWS.split(block))
        for uid, row in TOKEN_ROWS.tail(txn, number):
            bank.tokens.append(uid, unpack_tokens(bytes(row)))
        bank._load_vectors(txn, number)
        for key, name in txn.scan(keys.table(number, keys.SPEAKER)):
            bank._speakers[folded(bytes(name).decode())] = keys.trailing_u32(key)
        return bank

    def _extend_tokens(self, first: int, rows: list[bytes]) -> None:
        parts = [unpack_tokens(row) for row in rows]
        counts = np.array([len(part) for part in parts], np.int64)
        self.tokens.extend(first, counts, np.concatenate(parts) if parts else np.empty((0, TOKEN_DIM), np.int8))

    def _load_vectors(self, txn: ReadTxn, number: int) -> None:
        size = self.columns.n
        if not size or not self.record.model:
            return
        self.index = ExactIndex(int(self.record.model["dim"]))
        for first, block in VECTOR_ROWS.blocks(txn, number):
            self._add_vectors(first, VECTOR_ROWS.split(block))
        for uid, row in VECTOR_ROWS.tail(txn, number):
            self._add_vectors(uid, [bytes(row)])

    def _add_vectors(self, first: int, rows: list[bytes]) -> None:
        assert self.index is not None
        uids, vectors = [], []
        for offset, row in enumerate(rows):
            codes, scales = unpack_vectors(row)
            if len(scales):
                uids += [first + offset] * len(scales)
                vectors.append(unit_rows(codes))
        if vectors:
            self.index.add(np.array(uids, np.int64), np.concatenate(vectors))

    # -- following commits ---------------------------------------------------------------------------------------

    def follow(self, delta: Delta, seq: int) -> None:
        """Carry out the steps of a committed write; `seq` is the sequence number the bank then stands at."""
        with self._lock:
            for step, arguments in delta.steps:
                getattr(self, step)(*arguments)
            self.seq = seq

    def view(self) -> BankView:
        with self._lock:
            return BankView(self.record, self.seq, self.columns.view(), self.index, self.tokens, self._speakers)

    def append_units(self, first: int, rows: NDArray[Any], vectors: list[bytes], tokens: list[bytes]) -> None:
        # Vectors and tokens first: a unit becomes visible with its columns.
        if self.index is None and self.record.model:
            self.index = ExactIndex(int(self.record.model["dim"]))
        if self.index is not None:
            self._add_vectors(first, vectors)
        self._extend_tokens(first, tokens)
        self.columns.append(rows)

    def retire_units(self, uids: list[int], at: int) -> None:
        if uids:
            index = np.array(uids, np.int64)
            self.columns.change(live=(index, False), retired=(index, at))

    def erase_units(self, uids: list[int]) -> None:
        if not uids:
            return
        index = np.array(uids, np.int64)
        self.columns.change(live=(index, False), exists=(index, False), prev=(index, -1), next=(index, -1))
        for uid in uids:
            self.tokens.remove(uid)
        if self.index is not None:
            self.index.remove(index)

    def replace_vectors(self, uids: list[int], vectors: list[bytes], tokens: list[bytes]) -> None:
        for uid, row, token_row in zip(uids, vectors, tokens, strict=True):
            if self.index is not None:
                self.index.remove(np.array([uid], np.int64))
                self._add_vectors(uid, [row])
            self.tokens.append(uid, unpack_tokens(token_row))

    def relink_units(self, uids: list[int], prevs: list[int]) -> None:
        if not uids:
            return
        columns = self.columns.view()
        index, before = np.array(uids, np.int64), np.array(prevs, np.int64)
        old = columns.prev[index].astype(np.int64)
        old = old[old >= 0]
        old = old[columns.next[old] >= 0]
        freed = old[np.isin(columns.next[old], index)]
        linked = before >= 0
        following = np.concatenate([freed, before[linked]])
        values = np.concatenate([np.full(len(freed), -1, np.int64), index[linked]])
        self.columns.change(prev=(index, before), next=(following, values))

    def add_speaker(self, fold: str, number: int) -> None:
        self._speakers = {**self._speakers, fold: number}

    def set_record(self, record: BankRecord) -> None:
        self.record = record

    def close(self) -> None:
        self.closed = True

    @property
    def nbytes(self) -> int:
        """Anonymous memory the caches hold, in bytes."""
        return self.columns.nbytes + self.tokens.nbytes + (self.index.nbytes if self.index is not None else 0)

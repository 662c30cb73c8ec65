"""The resident caches of one bank: columns, vectors, token vectors, speakers. All rebuilt from LMDB at open.

Only the writer thread changes an open bank (through `follow`, after a flush) and one upkeep thread promotes it; any
thread may take the `view`, which waits for nobody.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from recalld.storage import bank_index, codec, keys
from recalld.storage.bodies import Bodies
from recalld.storage.changes import Delta
from recalld.storage.columns import Columns, OpenColumns
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BankNotFound, DiskFull
from recalld.storage.groups import read_parents, roots_of
from recalld.storage.hnsw import HnswIndex
from recalld.storage.names import folded
from recalld.storage.quantise import unit_rows
from recalld.storage.records import NEVER, BankRecord
from recalld.storage.tokens import TokenRows
from recalld.storage.vector_rows import TOKEN_ROWS, tokens_of, unpack_tokens, vectors_of
from recalld.storage.vectors import ExactIndex, VectorIndex

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BankView:
    """What a snapshot keeps of an open bank: fixed columns, and indexes that are asked about the first n units only."""

    record: BankRecord
    seq: int
    columns: Columns
    index: VectorIndex | None
    tokens: TokenRows
    speakers: dict[str, int]
    labels: dict[int, tuple[str, str]]
    bodies: Bodies
    roots: dict[int, int] = field(default_factory=dict)
    """What each entity that is a part of another is in the end."""
    derived: dict[str, Any] = field(default_factory=dict)
    """What snapshots computed from the columns, for the others of the same commit."""


class OpenBank:
    """One open bank. Above `threshold` units its vectors go to an approximate index under `folder`, the partition's.

    A quarantined bank is opened without its vectors: everything but the semantic arm and late interaction works.
    """

    def __init__(self, record: BankRecord, threshold: int, folder: Path, quarantined: bool = False) -> None:
        self.record = record
        self.seq = 0
        self.closed = False
        self.quarantined = quarantined
        self.rests_until = 0.0
        """Upkeep that failed is not tried again before this instant of the monotonic clock."""
        self.upkeep = threading.Lock()
        """Held by whoever promotes, advances, saves or compacts the bank's index."""
        self._threshold = threshold
        self._folder = folder
        self._lock = threading.Lock()
        self.columns = OpenColumns()
        self.tokens = TokenRows()
        self.index: VectorIndex | None = None
        self._speakers: dict[str, int] = {}
        self._labels: dict[int, tuple[str, str]] = {}
        self._bodies = Bodies()
        self._roots: dict[int, int] = {}
        self._view = self._now()

    @classmethod
    def load(
        cls, txn: ReadTxn, number: int, seq: int, threshold: int, folder: Path, quarantined: bool = False
    ) -> OpenBank:
        """Read the bank's caches from the store. Raises `BankNotFound` when it was deleted meanwhile."""
        value = txn.get(keys.table(number, keys.BANK))
        if value is None:
            raise BankNotFound("The bank was deleted.")
        bank = cls(codec.decode(BankRecord, value), threshold, folder, quarantined)
        bank.seq = seq
        bank.columns = OpenColumns.load(txn, number)
        if not quarantined:
            bank._load_vectors(txn)
        for key, name in txn.scan(keys.table(number, keys.SPEAKER)):
            bank._speakers[folded(bytes(name).decode())] = keys.trailing_u32(key)
        bank._roots = roots_of(read_parents(txn, number))
        bank._view = bank._now()
        return bank

    def _load_vectors(self, txn: ReadTxn) -> None:
        try:
            self._load_from(txn, self._folder)
        except DiskFull:
            log.warning("the disk is full: a large bank is kept in memory", bank=self.record.number)
            self._load_from(txn, None)

    def _load_from(self, txn: ReadTxn, folder: Path | None) -> None:
        columns = self.columns.view()
        self.index = bank_index.open_index(txn, self.record, columns, self.seq, self._threshold, folder)
        in_files = isinstance(self.index, HnswIndex) and self.index.folder is not None
        self.tokens = bank_index.token_file(self.files) if in_files else TokenRows()
        for first, rows in TOKEN_ROWS.runs(txn, self.record.number):
            self.tokens.extend(first, *tokens_of(rows))

    @property
    def files(self) -> Path:
        """Where the vectors of a large bank lie."""
        return bank_index.folder_of(self._folder, self.record)

    # -- following commits ---------------------------------------------------------------------------------------

    def follow(self, delta: Delta, seq: int) -> None:
        """Carry out the steps of a committed write; `seq` is the sequence number the bank then stands at."""
        with self._lock:
            for step, arguments in delta.steps:
                getattr(self, step)(*arguments)
            self._bodies = self._bodies.without(delta.rewritten)
            self.seq = seq
            self._view = self._now()

    def view(self) -> BankView:
        """The bank as of its last commit."""
        return self._view

    def _now(self) -> BankView:
        return BankView(
            self.record,
            self.seq,
            self.columns.view(),
            self.index,
            self.tokens,
            self._speakers,
            self._labels,
            self._bodies,
            self._roots,
        )

    def append_units(self, first: int, rows: NDArray[Any], vectors: list[bytes], tokens: list[bytes]) -> None:
        # Vectors and tokens first: a unit becomes visible with its columns.
        if not self.quarantined:
            if self.index is None and self.record.model:
                self.index = ExactIndex(int(self.record.model["dim"]))
            self._add_vectors(first, vectors)
            self.tokens.extend(first, *tokens_of(tokens))
        self.columns.append(rows)

    def _add_vectors(self, first: int, rows: list[bytes]) -> None:
        uids, codes = vectors_of(first, rows)
        if self.index is not None and len(uids):
            self.index.add(uids, unit_rows(codes))

    def retire_units(self, uids: list[int], at: int) -> None:
        if uids:
            index = np.array(uids, np.int64)
            before = self.columns.view().prev[index].astype(np.int64)
            self.columns.change(live=(index, False), retired=(index, at))
            self.columns.renew_next(before)

    def end_units(self, uids: list[int], at: int, superseded: list[bool], ends: list[int]) -> None:
        index = np.array(uids, np.int64)
        before = self.columns.view().prev[index].astype(np.int64)
        self.columns.change(
            live=(index, False), retired=(index, at), superseded=(index, superseded), occurred_end=(index, ends)
        )
        self.columns.renew_next(before)

    def replace_ended(self, uids: list[int]) -> None:
        self.columns.change(superseded=(np.array(uids, np.int64), False))

    def restore_units(self, uids: list[int], ends: list[int]) -> None:
        index = np.array(uids, np.int64)
        before = self.columns.view().prev[index].astype(np.int64)
        self.columns.change(
            live=(index, True), retired=(index, NEVER), superseded=(index, False), occurred_end=(index, ends)
        )
        self.columns.renew_next(before)

    def prove_units(self, uids: list[int], proofs: list[int]) -> None:
        self.columns.change(proof=(np.array(uids, np.int64), proofs))

    def move_beliefs(self, uids: list[int], confidences: list[float]) -> None:
        self.columns.change(confidence=(np.array(uids, np.int64), confidences))

    def erase_units(self, uids: list[int]) -> None:
        if not uids:
            return
        index = np.array(uids, np.int64)
        before = self.columns.view().prev[index].astype(np.int64)
        self.columns.change(live=(index, False), exists=(index, False), prev=(index, -1), next=(index, -1))
        self.columns.renew_next(before)
        for uid in uids:
            self.tokens.remove(uid)
        if self.index is not None:
            self.index.remove(index)

    def replace_vectors(self, uids: list[int], vectors: list[bytes], tokens: list[bytes]) -> None:
        if self.quarantined:
            return
        for uid, row, token_row in zip(uids, vectors, tokens, strict=True):
            # Adding takes the old rows' place without a moment in which the unit has none.
            self._add_vectors(uid, [row])
            self.tokens.append(uid, unpack_tokens(token_row))

    def relink_units(self, uids: list[int], prevs: list[int]) -> None:
        if not uids:
            return
        index, before = np.array(uids, np.int64), np.array(prevs, np.int64)
        old = self.columns.view().prev[index].astype(np.int64)
        self.columns.change(prev=(index, before))
        self.columns.renew_next(np.concatenate([old, before]))

    def add_speaker(self, fold: str, number: int) -> None:
        self._speakers = {**self._speakers, fold: number}

    def drop_speaker(self, number: int) -> None:
        self._speakers = {fold: n for fold, n in self._speakers.items() if n != number}

    def set_parents(self, parents: dict[int, int]) -> None:
        self._roots = roots_of(parents)
        self._bodies = Bodies()  # they name entities as what those were in the end

    def set_record(self, record: BankRecord) -> None:
        self.record = record

    def close(self) -> None:
        self.closed = True

    # -- growing past the threshold --------------------------------------------------------------------------------

    @property
    def outgrown(self) -> bool:
        """True when an exact index holds more than the threshold."""
        index = self.index
        return isinstance(index, ExactIndex) and len(index.rows) - index.rows.dead > self._threshold

    def promote(self) -> None:
        """Move the vectors to an approximate index and the token vectors to a file; reads go on, one commit waits.

        DiskFull when the files do not fit; the bank then stays as it is.
        """
        small = self.index
        if not isinstance(small, ExactIndex) or self.closed:
            return
        started = time.perf_counter()
        tokens = bank_index.token_file(self.files)
        copied = bank_index.copy_tokens(self.tokens, tokens, np.empty(0, np.int64))
        large, spans = bank_index.promoted(small, self.record, self._threshold, self._folder)
        copied = bank_index.copy_tokens(self.tokens, tokens, copied)
        with self._lock:
            bank_index.transfer(small, large, spans)
            bank_index.copy_tokens(self.tokens, tokens, copied)
            self.index, self.tokens = large, tokens
            self._view = self._now()
        spent = time.perf_counter() - started
        log.info("vectors moved to an approximate index", bank=self.record.number, seconds=round(spent, 3))

    @property
    def nbytes(self) -> int:
        """Anonymous memory the caches hold, in bytes."""
        index = self.index.nbytes if self.index is not None else 0
        return self.columns.nbytes + self.tokens.nbytes + self._bodies.nbytes + index

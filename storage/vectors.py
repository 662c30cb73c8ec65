"""Pooled vectors of a bank: `VectorRows`, the `VectorIndex` protocol, and its exact implementation.

A unit owns one row, or several when its text is longer than the model's window; its score is that of its best row.
Rows are float32 of unit length, so a product is the cosine. A scan of 6,000 rows takes 0.15 ms and of 20,000 rows
1.6 ms on one core; every numpy step over more than a few rows lets the GIL go.
"""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recalld.storage import vector_files
from recalld.storage.arrays import LENGTH_BITS, MAX_LENGTH, GrowingArray, RaggedRows
from recalld.storage.errors import StoreCorrupt
from recalld.storage.vector_files import FileEntry, Header

log = logging.getLogger(__name__)

F32: TypeAlias = NDArray[np.float32]
I64: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Hits: TypeAlias = tuple[I64, F32]

DEAD = 2**32 - 1
# Rows gathered at a time: 6 MB, which stays in the cache between the gather and the product.
_CHUNK = 4096


class VectorIndex(Protocol):
    """Vectors of one bank, searchable by cosine. One thread changes it (`add`, `remove`), any number search.

    A search returns what the first `n` uids hold and `allowed` admits, whatever was added since. Removals take effect
    at once for every reader: mask results by the snapshot's live bitmap where that matters.
    """

    dim: int
    seq: int

    @property
    def rows(self) -> VectorRows:
        """The rows themselves, for scores of given units."""

    @property
    def nbytes(self) -> int:
        """Anonymous memory held, in bytes."""

    @property
    def save_due(self) -> bool:
        """True when enough changed since the last save."""

    def add(self, uids: NDArray[Any], rows: F32) -> None:
        """Make rows f32[m, dim] searchable, row i for `uids[i]`; rows of a unit adjacent. Replaces what a uid had."""

    def remove(self, uids: NDArray[Any]) -> None:
        """Never return these units again; unknown ones are ignored."""

    def search(self, q: F32, k: int, allowed: Mask | None = None, floor: float = -1.0, n: int | None = None) -> Hits:
        """(uids, scores) of at most k units by falling score, ties by uid; none scores under `floor`."""

    def advance(self, budget: float) -> bool:
        """Do background work for about `budget` seconds; True when some is left."""

    def save(self, folder: Path, seq: int) -> None:
        """Write the index as of change `seq` or later to `folder`; a crash leaves the old or the new one."""

    def close(self) -> None:
        """Let memory and files go as soon as no search in flight needs them."""


class VectorRows:
    """Float32 rows by uid, in anonymous memory or (with `path`) a mapped file. One writer, any number of readers."""

    def __init__(self, dim: int, path: Path | None = None) -> None:
        self.dim = dim
        self._rows = RaggedRows(np.float32, dim, path)
        self._owners = GrowingArray(np.uint32)
        self._several = False  # a scan may meet some unit more than once
        self._summed = (0, 0)  # rows and CRC of the part of the file that is already summed

    def __len__(self) -> int:
        """Rows, dead ones included."""
        return len(self._owners)

    @property
    def units(self) -> int:
        """One more than the highest uid added."""
        return len(self._rows.spans)

    @property
    def dead(self) -> int:
        """Rows of removed or replaced units."""
        return self._rows.dead

    @property
    def several(self) -> bool:
        return self._several

    @property
    def nbytes(self) -> int:
        """Anonymous memory in bytes."""
        return self._rows.nbytes + self._owners.nbytes

    def matrix(self, n: int | None = None) -> F32:
        """The first `n` rows (all by default), read-only."""
        return self._rows.data.view(n)

    def owners(self, n: int | None = None) -> NDArray[np.uint32]:
        """The uid of each row, DEAD for a row without a unit."""
        return self._owners.view(n)

    def append(self, uid: int, rows: F32) -> tuple[int, int]:
        """Give `uid` these unit rows f32[r, dim]; returns (first, count) of the rows it had before."""
        _, (old, count) = self._rows.put(uid, rows)
        self._several |= len(rows) > 1 or count > 0
        # New rows before the old ones go: a search in between may meet a unit twice, never miss it.
        self._owners.append(np.full(len(rows), uid, np.uint32))
        self._bury(old, count)
        return old, count

    replace = append

    def extend(self, uids: NDArray[Any], rows: F32) -> list[tuple[int, int]]:
        """Give each of `uids` (one a row, rows of a unit adjacent) its rows; returns the spans that died for it.

        ValueError when the lengths differ. One step for new, ascending uids, else a step a unit.
        """
        if len(uids) != len(rows):
            raise ValueError("There must be one uid a row.")
        if not len(uids):
            return []
        uids = np.asarray(uids, np.int64)
        steps = np.diff(uids)
        if int(uids[0]) >= self.units and bool((steps >= 0).all()):
            counts = np.bincount(uids - uids[0]).astype(np.int64)
            self._rows.put_new(int(uids[0]), counts, rows)
            self._several |= int(counts.max()) > 1
            self._owners.append(uids)
            return []
        edges = [0, *(np.flatnonzero(steps) + 1).tolist(), len(uids)]
        died = [self.append(int(uids[a]), rows[a:b]) for a, b in pairwise(edges)]
        return [span for span in died if span[1]]

    def remove(self, uid: int) -> tuple[int, int]:
        """Take a unit's rows out of every result; returns their (first, count), count 0 when it had none."""
        old, count = self._rows.remove(uid)
        self._bury(old, count)
        return old, count

    def holds(self, uid: int) -> bool:
        """True when the unit has rows."""
        return 0 <= uid < self.units and bool(self._rows.spans.view()[uid] & MAX_LENGTH)

    def of(self, uids: NDArray[Any]) -> tuple[I64, F32]:
        """(uid of each row, rows) of these units, those of a unit adjacent; units without rows are left out."""
        uids = np.asarray(uids, np.int64)
        rows, starts, units = self._rows.gather(uids)
        if units is not None:
            uids = uids[units]
        return np.repeat(uids, np.diff(np.append(starts, len(rows)))), self.matrix().take(rows, axis=0)

    def uids(self) -> I64:
        """Units that have rows, ascending."""
        return np.flatnonzero(self._rows.spans.view() & MAX_LENGTH)

    def differing(self, uids: NDArray[Any], rows: F32, tolerance: float = 1e-4) -> I64:
        """Those of `uids` (one a row, rows of a unit adjacent and all given) whose rows here are not these."""
        held, mine = self.of(np.unique(uids))
        if np.array_equal(held, uids):
            far = (np.abs(mine - rows) > tolerance).any(axis=1)
            return np.unique(held[far])
        given, counts = np.unique(uids, return_counts=True)
        here, have = np.unique(held, return_counts=True)
        found = dict(zip(here.tolist(), have.tolist(), strict=True))
        odd = np.array([found.get(uid, 0) != count for uid, count in zip(given.tolist(), counts.tolist(), strict=True)])
        same = np.isin(uids, given[~odd])
        rest = self.differing(uids[same], rows[same], tolerance) if same.any() else np.empty(0, np.int64)
        return np.union1d(given[odd], rest)

    def scrub(self) -> None:
        """Overwrite dead rows and what lies behind the last row, so that nothing of a removed unit is left."""
        self._rows.data.overwrite(np.flatnonzero(self.owners() == DEAD), 0)
        self._rows.data.blank_rest()
        self._summed = (0, 0)

    def cosine(self, uids: NDArray[Any], q: F32) -> F32:
        """Score of the best row of each of `uids`, f32[len(uids)]; 0 for a unit without rows."""
        out = np.zeros(len(uids), np.float32)
        if not len(uids):
            return out
        rows, starts, units = self._rows.gather(uids)
        if not len(rows):
            return out
        scores = self._product(rows, q)
        if len(rows) != len(starts):
            scores = np.maximum.reduceat(scores, starts)
        if units is None:
            return scores
        out[units] = scores
        return out

    def exact(
        self,
        q: F32,
        k: int,
        allowed: Mask | None = None,
        floor: float = -1.0,
        n: int | None = None,
        first_row: int = 0,
    ) -> Hits:
        """The k best units below uid `n` that `allowed` (bool by uid) admits: (uids, scores), best first.

        Exact over rows from `first_row` on. k beyond what exists returns what exists.
        """
        end = len(self._owners)
        if allowed is not None:
            n = len(allowed) if n is None else min(n, len(allowed))
            admitted = int(np.count_nonzero(allowed[:n]))
            # A row gathered costs about four rows scanned.
            if admitted * 4 < end - first_row:
                return self._exact_few(q, k, np.flatnonzero(allowed[:n]), floor, first_row, end)
        if k <= 0 or end <= first_row:
            return _nothing()
        # Row i is that of uid i as long as every uid has exactly one row and none was replaced; then no owner is read.
        plain = not self._rows.irregular and not self._rows.dead
        if plain and n is not None:
            end = min(end, n)
            if end <= first_row:
                return _nothing()
        scores = self.matrix(end)[first_row:] @ q
        owners = self.owners(end)[first_row:]
        keep = None if floor <= -1.0 else scores >= np.float32(floor)
        if plain:
            admits = allowed[first_row:end] if allowed is not None else None
        else:
            admits = admit(owners, allowed, n)
        if admits is not None:
            keep = admits if keep is None else keep & admits
        if keep is None:
            return top(owners, scores, k, self._several)
        kept = np.flatnonzero(keep)
        return top(owners[kept], scores[kept], k, self._several)

    def _exact_few(self, q: F32, k: int, uids: I64, floor: float, first_row: int, end: int) -> Hits:
        if k <= 0 or not len(uids):
            return _nothing()
        rows, starts, units = self._rows.gather(uids)
        if units is not None:
            uids = uids[units]
        if len(rows) != len(starts):
            uids = np.repeat(uids, np.diff(np.append(starts, len(rows))))
        if first_row:
            keep = rows >= first_row
            rows, uids = rows[keep], uids[keep]
        if not len(rows):
            return _nothing()
        scores = self._product(rows, q)
        if floor > -1.0:
            kept = np.flatnonzero(scores >= np.float32(floor))
            uids, scores = uids[kept], scores[kept]
        return top(uids, scores, k, self._several)

    def _product(self, rows: I64, q: F32) -> F32:
        matrix = self.matrix()
        if len(rows) <= _CHUNK:
            scores: F32 = matrix.take(rows, axis=0) @ q
            return scores
        scores = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _CHUNK):
            np.matmul(matrix.take(rows[at : at + _CHUNK], axis=0), q, out=scores[at : at + _CHUNK])
        return scores

    def _bury(self, first: int, count: int) -> None:
        if count:
            self._owners.overwrite(np.arange(first, first + count), DEAD)

    @property
    def path(self) -> Path | None:
        """The file the rows are mapped from, None for anonymous memory."""
        return self._rows.data.path

    def parts(self) -> tuple[int, NDArray[np.int64]]:
        """What a save must write, fixed at this moment: number of rows, and a copy of the spans."""
        return len(self), self._rows.spans.view().copy()

    def write(self, folder: Path, rows: int, spans: NDArray[np.int64]) -> dict[str, FileEntry]:
        """Write what `parts` fixed to `folder`; rows already mapped from there are synced, not copied."""
        matrix = self.matrix(rows)
        path = self._rows.data.path
        if path is not None and path.parent == folder:
            self._rows.data.flush()
            summed, crc = self._summed
            self._summed = (rows, vector_files.crc_of(matrix[summed:], crc))
            entry = FileEntry(path.name, matrix.nbytes, self._summed[1])
        else:
            entry = vector_files.write_array(folder, "rows", "f32", matrix)
        return {"rows": entry, "spans": vector_files.write_array(folder, "spans", "i64", spans)}

    @classmethod
    def restore(cls, folder: Path, header: Header, mapped: bool) -> VectorRows:
        """The rows a verified `header` describes, mapped in place or read into memory. StoreCorrupt: they disagree."""
        rows, path = cls(header.dim), folder / header.files["rows"].name
        spans = np.fromfile(folder / header.files["spans"].name, np.int64)
        if mapped:
            rows._rows.data = GrowingArray(np.float32, header.dim, path, header.rows)
            rows._summed = (header.rows, header.files["rows"].crc)
        else:
            rows._rows.data.append(np.fromfile(path, np.float32, header.rows * header.dim).reshape(-1, header.dim))
        first, counts = spans >> LENGTH_BITS, spans & MAX_LENGTH
        total = int(counts.sum())
        if len(rows._rows.data) != header.rows or (len(spans) and int((first + counts).max()) > header.rows):
            raise StoreCorrupt("A vector file does not fit its header; it is rebuilt from the store.")
        rows._rows.spans.append(spans)
        rows._rows.dead, rows._rows.irregular = header.rows - total, int(np.count_nonzero(counts != 1))
        rows._several = bool((counts > 1).any())
        owners = np.full(header.rows, DEAD, np.uint32)
        ends = np.cumsum(counts)
        owners[np.repeat(first - (ends - counts), counts) + np.arange(total)] = np.repeat(np.arange(len(spans)), counts)
        rows._owners.append(owners)
        return rows


class ExactIndex:
    """The index of a bank small enough to scan (about 20,000 rows): always exact, never behind, nothing to repair."""

    KIND = "exact"

    def __init__(self, dim: int, model: str = "", rows: VectorRows | None = None, seq: int = 0) -> None:
        self.dim, self.model, self.seq = dim, model, seq
        self._rows = rows if rows is not None else VectorRows(dim)

    @property
    def rows(self) -> VectorRows:
        return self._rows

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    @property
    def save_due(self) -> bool:
        """Never: reading the rows from the store at open is as fast."""
        return False

    def add(self, uids: NDArray[Any], rows: F32) -> None:
        self._rows.extend(uids, rows)

    def remove(self, uids: NDArray[Any]) -> None:
        for uid in uids.tolist():
            self._rows.remove(uid)

    def search(self, q: F32, k: int, allowed: Mask | None = None, floor: float = -1.0, n: int | None = None) -> Hits:
        return self._rows.exact(q, k, allowed, floor, n)

    def advance(self, budget: float) -> bool:
        return False

    def save(self, folder: Path, seq: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        count, spans = self._rows.parts()
        files = self._rows.write(folder, count, spans)
        vector_files.commit(folder, Header(self.KIND, self.model, self.dim, seq, count, files=files))

    @classmethod
    def open(cls, folder: Path, model: str, dim: int, newest: int | None = None) -> ExactIndex | None:
        """The saved index, to be caught up from its `seq`; None (and a log line why) when it must be rebuilt."""
        header = vector_files.load(folder, cls.KIND, model, dim, newest)
        if isinstance(header, str):
            log.info("The vector index in %s is rebuilt: %s.", folder.name, header)
            return None
        try:
            return cls(dim, model, VectorRows.restore(folder, header, mapped=False), header.seq)
        except (OSError, ValueError, StoreCorrupt) as error:
            log.warning("The vector index in %s is rebuilt: %s", folder.name, error)
            return None

    def close(self) -> None:
        self._rows = VectorRows(self.dim)


def top(uids: NDArray[Any], scores: F32, k: int, several: bool) -> Hits:
    """The k best distinct uids by falling score, ties by uid. `several`: a uid may occur more than once."""
    if k <= 0 or not len(scores):
        return _nothing()
    take = 2 * k if several else k
    while True:
        if take < len(scores):
            part = np.argpartition(scores, len(scores) - take)[len(scores) - take :]
            best, ids = scores[part], uids[part]
        else:
            best, ids = scores, uids
        order = np.lexsort((ids, -best))
        if not several:
            break
        _, first = np.unique(ids[order], return_index=True)
        if len(first) >= k or take >= len(scores):
            order = order[np.sort(first)]
            break
        take *= 2
    order = order[:k]
    return ids[order].astype(np.int64), best[order]


def admit(owners: NDArray[np.uint32], allowed: Mask | None, n: int | None) -> Mask:
    """Which rows belong to a unit below `n` that `allowed` admits; rows without a unit never do."""
    limit = DEAD if n is None else n
    if allowed is None:
        below: Mask = owners < limit
        return below
    limit = min(limit, len(allowed))
    if not limit:
        return np.zeros(len(owners), np.bool_)
    mask: Mask = allowed.take(owners, mode="clip") & (owners < limit)
    return mask


def _nothing() -> Hits:
    return np.empty(0, np.int64), np.empty(0, np.float32)

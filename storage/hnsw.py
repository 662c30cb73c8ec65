"""Approximate vector index of a large bank: an hnswlib graph, an exact tail, and the step from one to the other.

An added row is searchable at once, in the tail, by an exact scan. `advance` moves tail rows into the graph a few at a
time, because hnswlib crashes when a graph is searched while it grows: a `SliceLock` keeps the two apart and lets
queries go first. A removed row loses its owner at once; its mark in the graph follows in `advance`. When more than
30 % of the graph is dead, `advance` builds another beside it and swaps.

What it costs in memory: hnswlib copies every vector into the graph and loads a file by copying, so at 384 dimensions
it holds about 1.8 kB of anonymous memory a row, whatever is done here. The float32 matrix that exact scans need is a
second copy, but a mapped file: page cache, not anonymous memory.

Measured at 100,000 rows on a shared 2-core machine: 1,100 rows/s into the graph, k = 300 in 2.0 ms (450 looked at;
a full scan takes 12 ms), and beside `advance` a query waits for the lock 0.0 ms at the median and 1.2 ms at p99.
hnswlib keeps the GIL while it saves (0.36 s), loads (0.17 s) and resizes (8 ms, at each quarter of growth), so a save
is due by growth and not by commit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
from numpy.typing import NDArray

from recalld.storage import vector_files
from recalld.storage.errors import DiskFull, StoreCorrupt
from recalld.storage.vector_files import FileEntry, Header
from recalld.storage.vectors import DEAD, F32, Hits, Mask, VectorRows, admit, top

log = logging.getLogger(__name__)

M = 16
EF_CONSTRUCTION = 200
MIN_EF = 128
# Up to this many admitted units a filtered search is an exact scan of them.
EXACT_ROWS = 20_000
# A filtered search that would fetch more than this from the graph scans instead.
MAX_FETCH = 8_192
DEAD_SHARE = 0.3
GROWTH = 0.1
# A save holds the GIL while hnswlib writes: it waits for a pause in the queries until this many times its due growth.
_OVERDUE = 3.0
_SEED = 100
_MIN_CAPACITY = 1024
# A slice of the graph's growth ends after about this long, so that a query that waits for it waits little more.
_SLICE_SECONDS = 0.001
_MARKS = 64
# While queries come, growth rests this many times as long as it worked: on a busy machine a thread can lose its core
# while it holds the lock, so what counts is how seldom it does. Retaining feeds the tail far slower than that.
_REST = 3.0
_REST_AFTER_QUERY = 0.25
# hnswlib's own per-element memory beside the vector and its links: a mutex, a level, a hash entry, a visited mark.
_CAPACITY_BYTES = 40 + 4 + 8 + 2
_ELEMENT_BYTES = 64
_GRAPH_HEADER = 96


class SliceLock:
    """Shared by queries, exclusive for a slice of growth. Queries go first until the slice waited `patience` seconds.

    So a query waits at most for the slice in hand, and a stream of queries cannot stop growth for good.
    """

    def __init__(self, patience: float = 0.05) -> None:
        self._patience = patience
        self._changed = threading.Condition(threading.Lock())
        self._reading = 0
        self._waiting = 0
        self._growing = False
        self._urgent = False
        self.last_query = 0.0  # by time.monotonic()

    @contextmanager
    def query(self) -> Iterator[None]:
        with self._changed:
            self._waiting += 1
            while self._growing or self._urgent:
                self._changed.wait()
            self._waiting -= 1
            self._reading += 1
        try:
            yield
        finally:
            with self._changed:
                self._reading -= 1
                self.last_query = time.monotonic()
                if not self._reading:
                    self._changed.notify_all()

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Exclusive; one thread at a time may ask."""
        deadline = time.monotonic() + self._patience
        with self._changed:
            while self._reading or (self._waiting and not self._urgent):
                left = deadline - time.monotonic()
                self._urgent |= left <= 0
                self._changed.wait(None if self._urgent else left)
            self._growing, self._urgent = True, False
        try:
            yield
        finally:
            with self._changed:
                self._growing = False
                self._changed.notify_all()


@dataclass(eq=False)
class _Graph:
    """One graph over one `VectorRows`; labels are row numbers. Only `advance` changes `index` and the counters."""

    rows: VectorRows
    index: Any
    done: int = 0  # rows below this are in the graph, or died before they got there
    elements: int = 0
    marked: int = 0
    lock: SliceLock = field(default_factory=SliceLock)

    def grow(self, first: int, last: int) -> None:
        """Put rows [first, last) into the graph, without those that are dead. The caller keeps queries away."""
        labels = first + np.flatnonzero(self.rows.owners(last)[first:] != DEAD)
        if len(labels):
            if self.elements + len(labels) > self.index.get_max_elements():
                self.index.resize_index(_capacity(self.elements + len(labels)))
            self.index.add_items(self.rows.matrix(last)[labels], labels, num_threads=1)
            self.elements = int(self.index.get_current_count())
        self.done = last

    def mark(self, labels: list[int]) -> None:
        for label in labels:
            try:
                self.index.mark_deleted(label)
            except RuntimeError:  # it died before it came here, or is marked already
                continue
            self.marked += 1

    @property
    def file_bytes(self) -> int:
        """Exact size of its file."""
        return int(self.index.index_file_size())

    @property
    def nbytes(self) -> int:
        link = 4
        element = self.rows.dim * 4 + (2 * M + 1) * link + 8 + (M + 1) * link // M
        return self.elements * (element + _ELEMENT_BYTES) + int(self.index.get_max_elements()) * _CAPACITY_BYTES


@dataclass(eq=False)
class _Rebuild:
    """A compaction under way: the next graph, how far it is, and which units the old one lost meanwhile."""

    graph: _Graph
    copied: int = 0
    removed: list[int] = field(default_factory=list)


class HnswIndex:
    """Approximate `VectorIndex` with an exact tail. One thread changes it, one runs `advance` and `save`, any search.

    `folder` (or None for anonymous memory) is where the matrix file lies and `save` must write.
    """

    KIND = "hnsw"

    def __init__(
        self,
        dim: int,
        model: str = "",
        folder: Path | None = None,
        *,
        exact_rows: int = EXACT_ROWS,
        rows: VectorRows | None = None,
    ) -> None:
        self._begin(dim, model, folder, exact_rows, None)
        if rows is not None:
            at = 0
            while at < len(rows):
                at = _copy_rows(rows, self.rows, at, at + 4096)

    def _begin(self, dim: int, model: str, folder: Path | None, exact_rows: int, graph: _Graph | None) -> None:
        self.dim, self.model, self.seq, self.folder = dim, model, 0, folder
        self.exact_rows = exact_rows
        self._writing = threading.Lock()  # add, remove, and the moment of a swap or a save
        self._background = threading.Lock()  # advance and save
        self._marks: deque[int] = deque()
        self._slice = 1
        self._rebuild: _Rebuild | None = None
        self._saved = (0, 0)
        self._unsaved_swap = False
        self._graph = graph if graph is not None else _Graph(self._new_rows(), _new_graph(dim, 0))

    @property
    def rows(self) -> VectorRows:
        return self._graph.rows

    @property
    def nbytes(self) -> int:
        rebuild = self._rebuild
        extra = rebuild.graph.nbytes + rebuild.graph.rows.nbytes if rebuild is not None else 0
        graph = self._graph
        return graph.nbytes + graph.rows.nbytes + extra

    @property
    def tail(self) -> int:
        """Rows that are not in the graph yet."""
        graph = self._graph
        return len(graph.rows) - graph.done

    @property
    def save_due(self) -> bool:
        """True when a tenth of the rows came or went since the last save, or a compaction replaced the graph."""
        return self._unsaved_swap or self._growth() > 1.0

    @property
    def save_overdue(self) -> bool:
        """True when a save has been due for so long that it should no longer wait for a quiet moment."""
        return self._growth() > _OVERDUE

    @property
    def idle_seconds(self) -> float:
        """Seconds since the graph was last searched."""
        return time.monotonic() - self._graph.lock.last_query

    @property
    def work_left(self) -> bool:
        """True when `advance` has something to do."""
        graph = self._graph
        return self._rebuild is not None or bool(self._marks) or self.tail > 0 or _worn(graph)

    def _growth(self) -> float:
        """What changed since the last save, as a share of what makes a save due."""
        rows, dead = self._saved
        graph = self._graph
        # Measured against all rows, so that the graph of a bank that arrived at once is not written fifty times.
        return (graph.done - rows + graph.rows.dead - dead) / max(GROWTH * max(rows, len(graph.rows)), _MIN_CAPACITY)

    def add(self, uids: NDArray[Any], rows: F32) -> None:
        with self._writing:
            died = self._graph.rows.extend(uids, rows)
            for first, count in died:
                self._marks.extend(range(first, first + count))

    def remove(self, uids: NDArray[Any]) -> None:
        with self._writing:
            for uid in uids.tolist():
                first, count = self._graph.rows.remove(uid)
                self._marks.extend(range(first, first + count))
                if self._rebuild is not None:
                    self._rebuild.removed.append(uid)

    def search(self, q: F32, k: int, allowed: Mask | None = None, floor: float = -1.0, n: int | None = None) -> Hits:
        graph = self._graph
        rows = graph.rows
        total = len(rows)
        if allowed is not None:
            n = len(allowed) if n is None else min(n, len(allowed))
        units = max(rows.units, 1)
        admitted = int(np.count_nonzero(allowed[:n])) if allowed is not None else units if n is None else min(n, units)
        if k <= 0 or not admitted:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if min(admitted, total) <= self.exact_rows or graph.done == 0:
            return rows.exact(q, k, allowed, floor, n)
        # A little more than asked for: the last of k are found reliably only when the search looks beyond them. At
        # 100,000 rows and k = 300 an eighth more finds 96 % of them and all of the first 100, half more 98 %.
        fetch = max(MIN_EF, k + k // 8, int(k * units / admitted * 1.1) + 1)
        while fetch <= MAX_FETCH:
            found = self._from_graph(graph, q, fetch)
            if found is None:
                break
            owners, scores, done, exhausted = found
            keep = admit(owners, allowed, n)
            if floor > -1.0:
                keep &= scores >= np.float32(floor)
                # Everything the graph has above the floor is already here.
                exhausted |= bool(len(scores)) and float(scores[-1]) < floor
            survivors = owners[keep]
            distinct = len(np.unique(survivors)) if rows.several else len(survivors)
            if distinct >= k or exhausted:
                tail_uids, tail_scores = rows.exact(q, k, allowed, floor, n, first_row=done)
                uids = np.concatenate([survivors.astype(np.int64), tail_uids])
                # A unit may have been moved to other rows between the two looks.
                return top(uids, np.concatenate([scores[keep], tail_scores]), k, True)
            fetch *= 2
        return rows.exact(q, k, allowed, floor, n)

    def _from_graph(self, graph: _Graph, q: F32, fetch: int) -> tuple[NDArray[np.uint32], F32, int, bool] | None:
        """(owners, scores best first, rows the graph covers, whether that is all it has), or None: no answer."""
        with graph.lock.query():
            done = graph.done
            live = graph.elements - graph.marked
            if live <= 0:
                return np.empty(0, np.uint32), np.empty(0, np.float32), done, True
            k = min(fetch, live)
            try:
                # k doubles as ef (hnswlib takes the larger), so that no setting is shared between threads.
                labels, distances = graph.index.knn_query(q, k=k, num_threads=1)
            except RuntimeError:  # fewer than k are reachable
                return None
        rows = labels[0].astype(np.int64)
        return graph.rows.owners().take(rows), np.float32(1.0) - distances[0], done, k == live

    def advance(self, budget: float) -> bool:
        """Move tail rows and marks into the graph, or a compaction on, for about `budget` seconds; True: work is left.

        A query in the meantime waits for one slice of about a millisecond at most.
        """
        if not self._background.acquire(blocking=False):
            return True
        try:
            end = time.perf_counter() + budget
            while True:
                if not self._step():
                    return False
                if time.perf_counter() >= end:
                    return True
        finally:
            self._background.release()

    def compact(self) -> None:
        """Rebuild the graph and the matrix without dead rows, now; takes about a millisecond a row. Save afterwards."""
        with self._background:
            if self._rebuild is None:
                self._start_rebuild()
            while self._rebuild is not None:
                self._step_rebuild()

    def scrub(self) -> None:
        """Overwrite what lies in the matrix file without belonging to a unit. Save afterwards.

        A compaction under way is dropped: it copied rows that have died since. The save removes its file.
        """
        with self._background, self._writing:
            self._rebuild = None
            self._graph.rows.scrub()

    def _step(self) -> bool:
        """One slice of whatever is most urgent; False when there is nothing to do."""
        graph = self._graph
        if self._rebuild is not None:
            self._step_rebuild()
            return True
        if self._marks:
            labels = [self._marks.popleft() for _ in range(min(len(self._marks), _MARKS))]
            with graph.lock.slice():  # a row that died in the tail has no owner and never enters the graph
                graph.mark([label for label in labels if label < graph.done])
            return True
        if _worn(graph):
            self._start_rebuild()
            return True
        total = len(graph.rows)
        if graph.done >= total:
            return False
        last = min(graph.done + self._slice, total)
        with graph.lock.slice():
            started = time.perf_counter()
            graph.grow(graph.done, last)
            took = time.perf_counter() - started
        if took > _SLICE_SECONDS:
            self._slice = max(1, self._slice // 2)
        elif took < _SLICE_SECONDS / 3:
            self._slice = min(self._slice * 2, 64)
        if time.monotonic() - graph.lock.last_query < _REST_AFTER_QUERY:
            time.sleep(min(took * _REST, 0.01))
        return True

    def _start_rebuild(self) -> None:
        rows = self._new_rows()
        with self._writing:
            live = len(self._graph.rows) - self._graph.rows.dead
            self._rebuild = _Rebuild(_Graph(rows, _new_graph(self.dim, live)))

    def _step_rebuild(self) -> None:
        """Copy a piece and put it into the next graph; nobody searches that one yet, so no lock is needed."""
        rebuild, old = self._rebuild, self._graph.rows
        assert rebuild is not None
        new = rebuild.graph
        if new.done < len(new.rows):
            new.grow(new.done, min(new.done + 16, len(new.rows)))
            return
        total = len(old)
        if rebuild.copied < total - 256:
            rebuild.copied = _copy_rows(old, new.rows, rebuild.copied, rebuild.copied + 1024)
            return
        with self._writing:
            rebuild.copied = _copy_rows(old, new.rows, rebuild.copied, len(old))
            for uid in rebuild.removed:
                if not old.holds(uid):
                    new.rows.remove(uid)
            self._marks = deque(np.flatnonzero(new.rows.owners(new.done) == DEAD).tolist())
            self._graph, self._rebuild, self._unsaved_swap = new, None, True

    def _new_rows(self) -> VectorRows:
        if self.folder is None:
            return VectorRows(self.dim)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return VectorRows(self.dim, self.folder / vector_files.fresh_name(self.folder, "rows", "f32"))

    def save(self, folder: Path, seq: int) -> None:
        """Write the index as of change `seq` or later to `folder`; `add`, `remove` and `search` go on meanwhile."""
        with self._background:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            graph = self._graph
            with self._writing:
                count, spans = graph.rows.parts()
                dead = graph.rows.dead
            files = graph.rows.write(folder, count, spans)
            if graph.elements:
                files["graph"] = _write_graph(folder, graph)
            header = Header(self.KIND, self.model, self.dim, seq, count, graph.done, graph.elements, files)
            building = self._rebuild.graph.rows.path if self._rebuild is not None else None
            vector_files.commit(folder, header, frozenset({building.name} if building is not None else ()))
            self._saved, self._unsaved_swap = (graph.done, dead), False

    @classmethod
    def open(
        cls, folder: Path, model: str, dim: int, newest: int | None = None, *, exact_rows: int = EXACT_ROWS
    ) -> HnswIndex | None:
        """The saved index, to be caught up from its `seq`; None (and a log line why) when it must be rebuilt.

        `newest` is the store's last change. Applying a change the index already holds is harmless.
        """
        header = vector_files.load(folder, cls.KIND, model, dim, newest)
        if isinstance(header, str):
            log.info("The vector index in %s is rebuilt: %s.", folder.name, header)
            return None
        try:
            rows = VectorRows.restore(folder, header, mapped=True)
            graph = _Graph(rows, _new_graph(dim, 0))
            if header.elements:
                graph = _load_graph(folder, header, rows)
        except (OSError, ValueError, RuntimeError, MemoryError, StoreCorrupt) as error:
            log.warning("The vector index in %s is rebuilt: %s", folder.name, error)
            return None
        index = cls.__new__(cls)
        index._begin(dim, model, folder, exact_rows, graph)
        index.seq, index._saved = header.seq, (graph.done, rows.dead)
        return index

    def close(self) -> None:
        with self._background, self._writing:
            self._rebuild = None  # searches in flight keep the old rows alive
            self._graph = _Graph(VectorRows(self.dim), _new_graph(self.dim, 0))


def _copy_rows(old: VectorRows, new: VectorRows, first: int, last: int) -> int:
    """Give `new` the living rows of `old` from row `first` on to about `last`; where to go on.

    A unit's rows go together: what is given to a unit replaces all it had. Rows that move while this runs come again
    later, and then replace what was copied first.
    """
    owners = old.owners()
    last = min(last, len(owners))
    while 0 < last < len(owners) and owners[last] != DEAD and owners[last] == owners[last - 1]:
        last += 1
    found = owners[first:last].copy()  # rows die meanwhile
    live = np.flatnonzero(found != DEAD)
    new.extend(found[live], old.matrix(last)[first + live])
    return last


def _worn(graph: _Graph) -> bool:
    return graph.marked > DEAD_SHARE * graph.elements and graph.elements >= _MIN_CAPACITY


def _capacity(rows: int) -> int:
    return max(_MIN_CAPACITY, rows + rows // 4)


def _new_graph(dim: int, rows: int) -> Any:
    index = hnswlib.Index(space="ip", dim=dim)
    index.init_index(max_elements=_capacity(rows), M=M, ef_construction=EF_CONSTRUCTION, random_seed=_SEED)
    index.set_ef(MIN_EF)
    return index


def _write_graph(folder: Path, graph: _Graph) -> FileEntry:
    name = vector_files.fresh_name(folder, "graph", "hnsw")
    expected = graph.file_bytes

    def write(path: Path) -> None:
        graph.index.save_index(str(path))
        if path.stat().st_size != expected:  # hnswlib does not look whether its writes succeed
            raise DiskFull("The vector index could not be written whole; free some disk space.")
        _blank(path, np.flatnonzero(graph.rows.owners(graph.done) == DEAD))

    vector_files.write_file(folder / name, write)
    crc = vector_files.file_crc(folder / name, expected)
    if crc is None:
        raise StoreCorrupt("The vector index just written cannot be read back; check the disk.")
    return FileEntry(name, expected, crc)


def _blank(path: Path, dead: NDArray[np.int64]) -> None:
    """Zero the vectors of dead rows in a graph file, so that no file holds them any longer than the row.

    Their links stay, as ways through the graph; with 30 % of the rows blanked every other row was still found.
    StoreCorrupt when the file is not laid out as hnswlib 0.8 does: first u64 offset, capacity, elements, bytes an
    element, where in it the label lies, where the vector.
    """
    if not len(dead):
        return
    _, _, elements, size, label_at, vector_at = (int(value) for value in np.fromfile(path, "<u8", 6))
    if not (0 < vector_at < label_at == size - 8) or path.stat().st_size < _GRAPH_HEADER + elements * size:
        raise StoreCorrupt("This version of hnswlib writes another file format; install the version recalld asks for.")
    table = np.memmap(path, np.uint8, "r+", _GRAPH_HEADER, (elements, size))
    labels = np.ascontiguousarray(table[:, label_at:]).view("<u8").ravel()
    for element in np.flatnonzero(np.isin(labels, dead)).tolist():
        table[element, vector_at:label_at] = 0
    table.flush()


def _load_graph(folder: Path, header: Header, rows: VectorRows) -> _Graph:
    """The graph a verified header names. StoreCorrupt or RuntimeError when it does not fit."""
    index = hnswlib.Index(space="ip", dim=header.dim)
    index.load_index(str(folder / header.files["graph"].name), max_elements=_capacity(header.elements))
    index.set_ef(MIN_EF)
    owners = rows.owners()[: header.graphed]
    dead = np.flatnonzero(owners == DEAD)
    if int(index.get_current_count()) != header.elements or header.graphed - len(dead) > header.elements:
        raise StoreCorrupt("A graph file does not fit its header; it is rebuilt from the store.")
    graph = _Graph(rows, index, header.graphed, header.elements)
    graph.mark(dead.tolist())  # rows that died between the last step and the save are not marked in the file
    graph.marked = header.elements - (header.graphed - len(dead))
    return graph

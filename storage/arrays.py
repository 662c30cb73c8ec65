"""Append-only numpy arrays that many threads read while one writes: `GrowingArray` and, over it, `RaggedRows`.

Neither takes a lock. A writer fills rows nobody can see yet and publishes their number last; growth makes a new buffer
and leaves the old one to the views that hold it. So a reader takes a view once and works on it as long as it likes.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recalld.storage.errors import DiskFull, StoreCorrupt

# A span packs where a unit's rows begin and how many they are into one i64, so that a reader never sees half a change.
LENGTH_BITS = 20
MAX_LENGTH = (1 << LENGTH_BITS) - 1
_MIN_ROWS = 256


class GrowingArray:
    """Rows of one dtype that are appended and, rarely, overwritten in place. One writer, any number of readers.

    `width` 0 gives a flat array, else rows of that many columns. Without `path` the rows are anonymous memory; with it
    they are a file mapped shared, which the kernel may drop from memory at any time. `rows` keeps that many rows of an
    existing file; StoreCorrupt when the file is shorter. A full disk is `DiskFull`, raised before anything changes:
    space is allocated, never left sparse, because writing to a hole of a full disk would end the process.
    """

    def __init__(self, dtype: DTypeLike, width: int = 0, path: Path | None = None, rows: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self.width = width
        self.path = path
        self._row_bytes = self.dtype.itemsize * max(width, 1)
        self._n = 0
        self._map: mmap.mmap | None = None
        if path is None:
            self._buffer = self._anonymous(0)
            return
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if rows else os.O_TRUNC), 0o600))
        size = path.stat().st_size
        if size < rows * self._row_bytes:
            raise StoreCorrupt("A vector file is shorter than its header says; it is rebuilt from the store.")
        self._buffer = self._mapped(max(_MIN_ROWS, size // self._row_bytes))
        self._n = rows

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Anonymous memory held, in bytes; a file-backed array holds none."""
        return 0 if self.path is not None else self._n * self._row_bytes

    @property
    def file_bytes(self) -> int:
        """Bytes of the rows in the file; 0 for anonymous memory."""
        return self._n * self._row_bytes if self.path is not None else 0

    def append(self, rows: NDArray[Any]) -> int:
        """Add `rows` ([m] or [m, width], cast to the dtype); returns the first one's index. ValueError: wrong shape."""
        rows = np.asarray(rows)
        if rows.shape[1:] != ((self.width,) if self.width else ()) or rows.ndim == 0:
            raise ValueError(f"Rows of shape {rows.shape} do not fit an array of width {self.width}.")
        first, end = self._n, self._n + len(rows)
        self._reserve(end)
        self._buffer[first:end] = rows
        self._n = end
        return first

    def extend_with(self, value: float, until: int) -> None:
        """Append rows of `value` until there are `until`; nothing when there are that many."""
        if until > self._n:
            self._reserve(until)
            self._buffer[self._n : until] = value
            self._n = until

    def overwrite(self, index: int | NDArray[Any], row: Any) -> None:
        """Replace rows in place. Views already taken may show the old rows or the new: readers must bear both."""
        self._buffer[: self._n][index] = row

    def blank_rest(self) -> None:
        """Overwrite the reserved rows behind the end with zeros."""
        self._buffer[self._n :] = 0

    def view(self, n: int | None = None) -> NDArray[Any]:
        """The first `n` rows (all by default), read-only, valid as long as it is held. ValueError beyond the end."""
        length = self._n
        if n is None:
            n = length
        elif n > length:
            raise ValueError(f"{n} rows asked of {length}.")
        view = self._buffer[:n]
        view.flags.writeable = False
        return view

    def flush(self) -> None:
        """Write a file-backed array through to the disk; no effect on anonymous memory."""
        if self.path is None or self._map is None:
            return
        if sys.platform != "linux":  # Linux syncs mapped pages with the file, and that call lets the GIL go
            self._map.flush()
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Give the buffer up; views taken earlier stay valid. Closing twice is allowed."""
        self._buffer = self._anonymous(0)
        self._map, self._n = None, 0

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._buffer):
            return
        # A file grows by less: mapping it anew copies nothing, and unused space is real disk.
        wanted = max(rows, int(len(self._buffer) * (1.5 if self.path is None else 1.25)), _MIN_ROWS)
        if self.path is not None:
            self._buffer = self._mapped(wanted)
            return
        buffer = self._anonymous(wanted)
        buffer[: self._n] = self._buffer[: self._n]
        self._buffer = buffer

    def _anonymous(self, rows: int) -> NDArray[Any]:
        return np.empty((rows, self.width) if self.width else rows, self.dtype)

    def _mapped(self, rows: int) -> NDArray[Any]:
        page = mmap.PAGESIZE
        size = -(-rows * self._row_bytes // page) * page
        assert self.path is not None
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)  # a map needs no open file, and a home has many banks
        try:
            _allocate(fd, size)
            self._map = mmap.mmap(fd, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise DiskFull("The disk is full; free some space and try again.") from None
            raise
        finally:
            os.close(fd)
        flat = np.frombuffer(self._map, self.dtype, size // self._row_bytes * max(self.width, 1))
        return flat.reshape(-1, self.width) if self.width else flat


def _allocate(fd: int, size: int) -> None:
    """Give a file real disk blocks up to `size`; OSError when there are not enough."""
    if sys.platform == "linux":
        os.posix_fallocate(fd, 0, size)
        return
    at, piece = os.fstat(fd).st_size, bytes(1 << 20)
    while at < size:
        at += os.pwrite(fd, piece[: size - at], at)


class Gather(NamedTuple):
    """Rows of some units: `rows` are row numbers, those of a unit together; unit i of `units` begins at `starts[i]`.

    `units` are positions in the list asked for, without those that have no rows; `starts` is ready for `reduceat`.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    units: NDArray[np.int64] | None  # None: every unit asked for has rows


class RaggedRows:
    """A varying number of fixed-width rows for each uid. One writer, any number of readers.

    Rows of a unit lie together. `put` on a uid that has rows moves it to new ones, so that applying a change twice is
    harmless; old rows are left behind and counted in `dead`.
    """

    def __init__(self, dtype: DTypeLike, width: int, path: Path | None = None) -> None:
        self.data = GrowingArray(dtype, width, path)
        self.spans = GrowingArray(np.int64)
        self.dead = 0
        self.irregular = 0  # uids below the end whose number of rows is not one: while 0, gathers take a short cut

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.spans.nbytes

    def put(self, uid: int, rows: NDArray[Any]) -> tuple[int, tuple[int, int]]:
        """Give `uid` these rows ([r, width], r may be 0); returns (first new row, (first old row, old count))."""
        if len(rows) > MAX_LENGTH:
            raise ValueError(f"A unit holds at most {MAX_LENGTH} rows.")
        first = self.data.append(rows)
        held = len(self.spans)
        if uid >= held:
            self.spans.extend_with(0, uid)
            self.irregular += uid - held + (len(rows) != 1)
            self.spans.append(np.array([first << LENGTH_BITS | len(rows)], np.int64))
            return first, (0, 0)
        old = int(self.spans.view()[uid])
        was = old & MAX_LENGTH
        self.irregular += (len(rows) != 1) - (was != 1)
        self.dead += was
        self.spans.overwrite(uid, first << LENGTH_BITS | len(rows))
        return first, (old >> LENGTH_BITS, was)

    def put_new(self, first_uid: int, counts: NDArray[np.int64], rows: NDArray[Any]) -> int:
        """Rows for new uids `first_uid`, `first_uid + 1`... in one step; `counts` rows each. Returns the first row.

        ValueError when `first_uid` lies below the end or the counts do not add up.
        """
        held = len(self.spans)
        if first_uid < held or int(counts.sum()) != len(rows) or (len(counts) and int(counts.max()) > MAX_LENGTH):
            raise ValueError("put_new takes new uids, and one count for each that adds up to the rows.")
        first = self.data.append(rows)
        starts = first + np.cumsum(counts) - counts
        self.spans.extend_with(0, first_uid)
        self.irregular += first_uid - held + int(np.count_nonzero(counts != 1))
        self.spans.append(starts << LENGTH_BITS | counts)
        return first

    def remove(self, uid: int) -> tuple[int, int]:
        """Take a unit's rows away; returns (first row, count) of what it had."""
        if not 0 <= uid < len(self.spans):
            return 0, 0
        old = int(self.spans.view()[uid])
        length = old & MAX_LENGTH
        if length:
            self.dead += length
            self.irregular += length == 1
            self.spans.overwrite(uid, 0)
        return old >> LENGTH_BITS, length

    def gather(self, uids: NDArray[Any]) -> Gather:
        """The row numbers of `uids`; unknown uids have no rows. Take `data.view()` after this call, not before."""
        spans = self.spans.view()
        regular = True
        if len(uids) and int(uids.max()) >= len(spans):
            known = uids < len(spans)
            packed = np.where(known, spans[np.where(known, uids, 0)] if len(spans) else 0, 0)
            regular = False
        else:
            packed = spans.take(uids)
        # Read after the spans: a writer counts an irregular unit before it shows one.
        if regular and not self.irregular:
            return Gather(packed >> LENGTH_BITS, np.arange(len(packed)), None)
        counts = packed & MAX_LENGTH
        units = None
        if not counts.all():
            units = np.flatnonzero(counts)
            packed, counts = packed[units], counts[units]
        ends = np.cumsum(counts)
        starts = ends - counts
        total = int(ends[-1]) if len(ends) else 0
        return Gather(np.repeat((packed >> LENGTH_BITS) - starts, counts) + np.arange(total), starts, units)

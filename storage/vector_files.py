"""Files of a vector index: written under new names, synced, then named by one header that is renamed into place.

    <folder>/index.json      the commit point: kind, model, seq, counts, and name, size and CRC of each file
    <folder>/rows.<i>.f32    float32 rows; append-only, so a later save only continues its checksum
    <folder>/spans.<i>.i64   where each uid's rows lie
    <folder>/graph.<i>.hnsw  the graph of an approximate index

Everything here is derived from the store. What is missing, cut short, foreign or newer than the store is reported as a
reason and rebuilt by the caller; nothing in this module raises for the state of the files.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage.errors import DiskFull

FORMAT = 1
HEADER = "index.json"
_PIECE = 1 << 22
_OURS = re.compile(r"(rows|spans|graph)\.\d+\.(f32|i64|hnsw)(\.tmp)?|index\.json\.tmp")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file the header vouches for: its first `size` bytes have this CRC-32."""

    name: str
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a saved index says of itself. `seq` is the change it stands at; `model` names model and bank."""

    kind: str
    model: str
    dim: int
    seq: int
    rows: int
    graphed: int = 0
    elements: int = 0
    files: dict[str, FileEntry] = field(default_factory=dict)


def crc_of(array: NDArray[Any], start: int = 0) -> int:
    """CRC-32 of an array's bytes, continued from `start`."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    for at in range(0, len(flat), _PIECE):
        start = zlib.crc32(flat[at : at + _PIECE], start)
    return start


def fresh_name(folder: Path, stem: str, suffix: str) -> str:
    """A name `<stem>.<i>.<suffix>` that no file in `folder` has."""
    numbers = (int(p.name.split(".")[1]) for p in folder.glob(f"{stem}.*.*") if p.name.split(".")[1].isdigit())
    return f"{stem}.{max(numbers, default=0) + 1}.{suffix}"


def write_array(folder: Path, stem: str, suffix: str, array: NDArray[Any]) -> FileEntry:
    """Write an array's bytes as a new synced file of `folder`. DiskFull when they do not fit."""
    name = fresh_name(folder, stem, suffix)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    def write(path: Path) -> None:
        with path.open("r+b", buffering=0) as file:
            for at in range(0, len(flat), _PIECE):
                piece = flat[at : at + _PIECE]
                while len(piece):
                    piece = piece[file.write(piece) :]

    write_file(folder / name, write)
    return FileEntry(name, len(flat), crc_of(array))


def write_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new private file, sync it, and give it its name. DiskFull when the disk ran out."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("The disk is full; free some space and try again.") from None
        raise


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def file_crc(path: Path, size: int) -> int | None:
    """CRC-32 of a file's first `size` bytes; None when it is shorter or cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size < size:
                return None
            crc, left, piece = 0, size, bytearray(min(_PIECE, max(size, 1)))
            while left:
                got = file.readinto(memoryview(piece)[: min(left, len(piece))])
                if not got:
                    return None
                crc, left = zlib.crc32(memoryview(piece)[:got], crc), left - got
            return crc
    except OSError:
        return None


def commit(folder: Path, header: Header, keep: frozenset[str] = frozenset()) -> None:
    """Make `header` the truth of `folder`, then remove our files that neither it nor `keep` names."""
    body = {"format": FORMAT, **asdict(header)}
    text = json.dumps({"check": _check(body), **body}, indent=1)

    def write(path: Path) -> None:
        path.write_text(text)

    write_file(folder / HEADER, write)
    named = {entry.name for entry in header.files.values()} | keep
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in named:
            path.unlink(missing_ok=True)


def load(folder: Path, kind: str, model: str, dim: int, newest: int | None) -> Header | str:
    """The header of a whole and fitting index, or a sentence that says why there is none.

    `newest` is the last change of the store: an index that stands beyond it belongs to another history.
    """
    try:
        body = json.loads((folder / HEADER).read_text())
        check = body.pop("check")
        if body.pop("format") != FORMAT:
            return "it has another format"
        if check != _check({"format": FORMAT, **body}):
            return "its header is damaged"
        files = {name: FileEntry(**entry) for name, entry in body.pop("files").items()}
        header = Header(**body, files=files)
    except FileNotFoundError:
        return "there is none yet"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "its header is damaged"
    if (header.kind, header.model, header.dim) != (kind, model, dim):
        return "it was made for another model or bank"
    if newest is not None and header.seq > newest:
        return "it is newer than the store"
    for entry in header.files.values():
        if not (folder / entry.name).is_file():
            return f"its file {entry.name} is missing"
        crc = file_crc(folder / entry.name, entry.size)
        if crc is None:
            return f"its file {entry.name} is cut short"
        if crc != entry.crc:
            return f"its file {entry.name} is damaged"
    return header


def _check(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())

"""The stored form of a unit's pooled vectors and token vectors.

    vectors: rows u16, 0 u16, scales f32[rows], int8[rows, dim]
    tokens:  count u32, token ids u32[count], int8[count, 64]

An empty row is a unit that was erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from recalld.storage import keys
from recalld.storage.rows import RowTable

TOKEN_DIM = 64
VECTOR_ROWS = RowTable(keys.VECTOR_BLOCK, keys.VECTOR_TAIL, 64)
TOKEN_ROWS = RowTable(keys.TOKEN_BLOCK, keys.TOKEN_TAIL, 64)
_ROWS = Struct("<HH")
_COUNT = Struct("<I")


def pack_vectors(vectors: bytes, scales: bytes) -> bytes:
    return _ROWS.pack(len(scales) // 4, 0) + scales + vectors


def unpack_vectors(row: bytes) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(int8 [rows, dim], scales [rows]) of a stored row; (0, 0)-shaped when it is empty."""
    if not row:
        return np.empty((0, 0), np.int8), np.empty(0, np.float32)
    count: int = _ROWS.unpack_from(row)[0]
    scales = np.frombuffer(row, "<f4", count, 4)
    return np.frombuffer(row, np.int8, -1, 4 + 4 * count).reshape(count, -1), scales


def pack_tokens(token_vectors: bytes, token_ids: bytes) -> bytes:
    return _COUNT.pack(len(token_ids) // 4) + token_ids + token_vectors


def token_ids_of(row: bytes) -> list[int]:
    if not row:
        return []
    ids: list[int] = np.frombuffer(row, "<u4", _COUNT.unpack_from(row)[0], 4).tolist()
    return ids


def unpack_tokens(row: bytes | memoryview) -> NDArray[np.int8]:
    """int8 [n, 64] of a stored row, as a view of it."""
    if not row:
        return np.empty((0, TOKEN_DIM), np.int8)
    count: int = _COUNT.unpack_from(row)[0]
    return np.frombuffer(row, np.int8, count * TOKEN_DIM, 4 + 4 * count).reshape(count, TOKEN_DIM)


def vectors_of(first: int, rows: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """(uid of each vector, int8 [m, dim]) of the stored rows of units `first`, `first + 1`...

    Erased units are left out. Rows of one length, the usual case, are cut in one step.
    """
    held = [bool(row) for row in rows]
    uids = first + np.flatnonzero(np.array(held, np.bool_))
    rows = list(compress(rows, held))
    if not rows:
        return uids, np.empty((0, 0), np.int8)
    length = len(rows[0])
    count: int = _ROWS.unpack_from(rows[0])[0]
    if all(len(row) == length for row in rows):
        data = np.frombuffer(b"".join(rows), np.int8).reshape(len(rows), length)
        return np.repeat(uids, count), data[:, 4 + 4 * count :].reshape(len(rows) * count, -1)
    parts = [unpack_vectors(row)[0] for row in rows]
    return np.repeat(uids, [len(part) for part in parts]), np.concatenate([part for part in parts if len(part)])


def tokens_of(rows: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """(number of token vectors of each row, all of them one after the other as int8 [n, 64])."""
    counts = [_COUNT.unpack_from(row)[0] if row else 0 for row in rows]
    joined = b"".join([row[4 + 4 * count :] for row, count in zip(rows, counts, strict=True)])
    return np.array(counts, np.int64), np.frombuffer(joined, np.int8).reshape(-1, TOKEN_DIM)

"""The stored form of a unit's pooled vectors and token vectors.

    vectors: rows u16, 0 u16, scales f32[rows], int8[rows, dim]
    tokens:  count u32, token ids u32[count], int8[count, 64]

An empty row is a unit that was erased.
"""

from __future__ import annotations

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

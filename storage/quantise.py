"""Vectors as int8 rows with one float32 scale each, and back.

The scale is the row's largest absolute value / 127, so nothing saturates and a row of zeros stays zeros.
Cosine does not see the scale: `unit_rows(codes)` is what a search needs, `dequantise` gives the values themselves.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]
I8: TypeAlias = npt.NDArray[np.int8]

__all__ = ["dequantise", "pack_rows", "quantise", "quantise_unit", "unit_rows", "unpack_rows"]

_TINY = np.float32(1e-12)


def unit_rows(rows: npt.NDArray[np.float32] | npt.NDArray[np.int8]) -> F32:
    """The rows `[..., d]` at length 1 as float32; a zero row stays zero."""
    values = rows.astype(np.float32, copy=False)
    lengths = np.sqrt(np.einsum("...i,...i->...", values, values))[..., None]
    return np.asarray(values / np.maximum(lengths, _TINY), dtype=np.float32)


def quantise(rows: F32) -> tuple[I8, F32]:
    """float32 `[r, d]` -> (int8 `[r, d]`, float32 scales `[r]`), with `rows ~ codes * scales[:, None]`."""
    values = np.atleast_2d(np.asarray(rows, dtype=np.float32))
    scales = np.asarray(np.abs(values).max(axis=1, initial=0.0) / np.float32(127), dtype=np.float32)
    codes = np.rint(values / np.maximum(scales, _TINY)[:, None])
    return np.clip(codes, -127, 127).astype(np.int8), scales


def dequantise(codes: I8, scales: F32) -> F32:
    """The inverse of `quantise`, within half a scale step a value."""
    return np.asarray(codes.astype(np.float32) * scales[:, None], dtype=np.float32)


def quantise_unit(rows: F32) -> I8:
    """Unit rows `[n, d]` as round(127 * x): the fixed scale of token vectors, so a product / 127**2 is a cosine."""
    codes: I8 = np.rint(rows * np.float32(127)).astype(np.int8)
    return codes


def pack_rows(rows: F32) -> tuple[bytes, bytes]:
    """`quantise` as the two byte strings a record holds: int8 `[r, d]` in C order, little-endian float32 `[r]`."""
    codes, scales = quantise(rows)
    return codes.tobytes(), scales.astype("<f4").tobytes()


def unpack_rows(vectors: bytes, scales: bytes) -> tuple[I8, F32]:
    """Read-only views of what `pack_rows` made; the number of scales gives the number of rows."""
    factor = np.frombuffer(scales, dtype="<f4")
    codes = np.frombuffer(vectors, dtype=np.int8)
    return codes.reshape(len(factor), -1) if len(factor) else codes.reshape(0, 0), factor

"""Bytes to JSON values and back, in pieces that do not hold the event loop.

The interpreter lock is not released inside one parse or one dump, so a thread alone would not help: big bodies are
parsed with a Python-level hook (each object is a point where the lock may pass on), long lists are dumped in slices.
The garbage collector rests meanwhile: 60,000 new objects set off full collections of 30 to 70 ms, and hold no cycles.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

from pydantic_core import PydanticSerializationError, to_json

from recalld.daemon.wire.base import clean_tree

T = TypeVar("T")

BIG = 64 * 1024
"""Bytes from which parsing leaves the event loop's thread: about a millisecond of it."""
BIG_TO_COMPRESS = 256 * 1024
"""The same for compressing, which takes about a millisecond for this much."""
SLICE = 100
MAX_DIGITS = 21

# Escapes that could give a NUL or half of a surrogate pair; both rare, so most bodies are not walked twice.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


async def decode(raw: bytes) -> Any:
    """A JSON value from UTF-8 bytes, strict: no NaN, no lone surrogates, no NUL characters. Raises as `json.loads`."""
    return await in_thread_if(len(raw), _decode, raw)


def _decode(raw: bytes) -> Any:
    text = raw.decode("utf-8-sig")
    hook = _object if len(raw) >= BIG else None
    value = json.loads(text, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=hook)
    return clean_tree(value) if _SUSPECT.search(raw) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _whole(text: str) -> int:
    if len(text) <= MAX_DIGITS and -(2**63) <= (value := int(text)) < 2**64:
        return value
    raise ValueError("a whole number does not fit 64 bits")


class EncodedList(Sequence[Any]):
    """A JSON list that came encoded and goes out as it is; parsed only when somebody looks into it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def _items(self) -> list[Any]:
        items: list[Any] = json.loads(self.raw)
        return items

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == (other._items if isinstance(other, EncodedList) else other)


async def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON; a number that is not finite becomes null. Long top-level lists go in slices."""
    if not isinstance(value, dict) or not any(_apart(one) for one in value.values()):
        return dump(value)
    parts: list[bytes] = []
    for key, one in value.items():
        parts.append((b"," if parts else b"{") + dump(key) + b":")
        if isinstance(one, EncodedList) or not _apart(one):
            parts.append(one.raw if isinstance(one, EncodedList) else dump(one))
            continue
        for start in range(0, len(one), SLICE):
            parts.append((b"," if start else b"[") + dump(one[start : start + SLICE])[1:-1])
            await asyncio.sleep(0)
        parts.append(b"]")
    return b"".join(parts) + b"}"


def _apart(value: Any) -> bool:
    """Whether a top-level value cannot be dumped in one piece with the others."""
    return isinstance(value, EncodedList) or (isinstance(value, list) and len(value) > SLICE)


def dump(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        return to_json(clean_tree(value), inf_nan_mode="null")


async def compress(raw: bytes) -> bytes:
    """`raw` as gzip at the fastest level: most of the gain at a tenth of a millisecond for 30 kB."""
    return _gzip(raw) if len(raw) < BIG_TO_COMPRESS else await asyncio.to_thread(_gzip, raw)


def _gzip(raw: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(raw) + packer.flush()


async def in_thread_if(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """`work(*arguments)`, in a thread when `size` bytes of input make it long."""
    return work(*arguments) if size < BIG else await asyncio.to_thread(_undisturbed, work, *arguments)


def _undisturbed(work: Callable[..., T], *arguments: Any) -> T:
    with _resting:
        return work(*arguments)


class _CollectorRests:
    """Keeps the garbage collector off while at least one thread is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                # Everything made meanwhile is young, and the next collection would walk it all; this moves it to the
                # oldest generation without a walk.
                gc.freeze()
                gc.unfreeze()
                gc.enable()


_resting = _CollectorRests()

"""Records to bytes and back: msgpack maps that carry a version.

A field this version does not know survives a rewrite: `decode` puts it aside with the record's other unknown fields
and `encode(record, unknown)` writes it back, so a home touched by an older release loses nothing of a newer one.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

import msgpack

from recalld.storage.errors import StoreCorrupt

VERSION = 1
R = TypeVar("R")


def pack(value: Any) -> bytes:
    """Plain data to msgpack bytes."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(data: bytes | memoryview) -> Any:
    """Plain data from msgpack bytes; lists come back as lists.

    Raises `StoreCorrupt` when the bytes are not msgpack.
    """
    try:
        return msgpack.unpackb(data, raw=False, strict_map_key=False)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise StoreCorrupt("A stored record cannot be read; run `recalld doctor` and restore from a backup.") from error


def numbers_alone(answer: Any) -> Any:
    """Plain data with its numbers and without its strings and lists."""
    if isinstance(answer, dict):
        return {key: numbers_alone(value) for key, value in answer.items()}
    return answer if isinstance(answer, int | float | None) else type(answer)()


_Shape = tuple[frozenset[str], dict[str, Any]]
_shapes: dict[type, _Shape] = {}


def _shape(kind: type) -> _Shape:
    known = _shapes.get(kind)
    if known is not None:
        return known
    fields = dataclasses.fields(kind)
    defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
    shape = _shapes[kind] = (frozenset(f.name for f in fields), defaults)
    return shape


def encode(record: Any, unknown: dict[str, Any] | None = None) -> bytes:
    """A record dataclass to bytes. Fields at their default are left out, so small records stay small."""
    names, defaults = _shape(type(record))
    body = dict(unknown or {})
    for name in names:
        value = getattr(record, name)
        if name in defaults and value == defaults[name]:
            continue
        body[name] = value
    body["v"] = VERSION
    return pack(body)


def decode(kind: type[R], data: bytes | memoryview) -> R:
    """The record of `kind` that `encode` wrote. Sequences inside come back as tuples.

    Raises `StoreCorrupt` when the bytes are no record.
    """
    body = _body(data)
    try:
        return kind(**body)
    except TypeError:
        return decode_with_unknown(kind, data)[0]


def decode_with_unknown(kind: type[R], data: bytes | memoryview) -> tuple[R, dict[str, Any]]:
    """The record, and the fields of it that this version does not know."""
    body = _body(data)
    unknown = {name: body.pop(name) for name in body.keys() - _shape(kind)[0]}
    try:
        return kind(**body), unknown
    except TypeError as error:
        raise StoreCorrupt("A stored record lacks a field; run `recalld doctor`.") from error


def _body(data: bytes | memoryview) -> dict[str, Any]:
    try:
        # As tuples at once: a record is frozen, and converting its lists afterwards costs more than reading it.
        body = msgpack.unpackb(data, raw=False, strict_map_key=False, use_list=False)
        del body["v"]
    except (ValueError, TypeError, KeyError, msgpack.exceptions.UnpackException) as error:
        raise StoreCorrupt("A stored record cannot be read; run `recalld doctor`.") from error
    return cast("dict[str, Any]", body)

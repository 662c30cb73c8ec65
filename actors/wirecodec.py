"""How messages become bytes: msgpack, with frozen dataclasses, tuples and errors kept as what they were.

A message class is registered once with `@message(version)`, or `register(cls)` where the class stands in a layer below.
On the wire it is its name, its version and its values by position, in two groups:

* *plain* fields (scalars, bytes, tuples and dicts of such, by annotation) go through msgpack's C code untouched,
  so a shard spends no Python time per element: 1,000 pairs cost 40 us instead of 2 ms;
* all other fields (`Any`, lists, nested messages) go through a hook that marks tuples, messages and errors.

Growing a class: append fields with a default. An older peer ignores what it does not know, a newer one fills the
default in. Reordering, or a change of meaning, needs a new version; both are refused with a sentence, never misread.
Values that cannot cross (numpy objects, sets, ints beyond 64 bit, unregistered classes) are refused when packed.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgpack

from recalld.storage.errors import CodecError, RecalldError, from_wire

C = TypeVar("C", bound=type)

_MESSAGE, _TUPLE, _ERROR = 1, 2, 3
_SCALARS = frozenset({int, float, str, bytes, bool, type(None)})
_UNIONS = (Union, types.UnionType)
_BASES: tuple[type[Any], ...] = (int, float, str, bytes)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What one class looks like on the wire; `checks[i]` sums the first `i` names of a group."""

    cls: type
    name: str
    version: int
    plain: tuple[str, ...]
    other: tuple[str, ...]
    plain_checks: tuple[int, ...]
    other_checks: tuple[int, ...]


_registered: dict[str, tuple[type, int]] = {}
_names: dict[type, str] = {}


def register(cls: C, version: int = 1, name: str | None = None) -> C:
    """Let instances of a frozen dataclass cross; `name` defaults to the class name. Raises `CodecError` on a clash."""
    tag = name or cls.__name__
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise CodecError(f"{tag} is no frozen dataclass; only frozen dataclasses can be messages.")
    known = _registered.get(tag)
    if known is not None and (known[0].__module__, known[0].__qualname__) != (cls.__module__, cls.__qualname__):
        raise CodecError(f"Two message classes are named {tag}; give one of them another name.")
    _registered[tag] = (cls, version)
    _names[cls] = tag
    _layout.cache_clear()
    return cls


def message(version: int = 1) -> Callable[[C], C]:
    """Class decorator: `@message(1)` above `@dataclass(frozen=True, slots=True)`."""

    def decorate(cls: C) -> C:
        return register(cls, version)

    return decorate


def pack(value: Any) -> bytes:
    """Bytes of a message or of plain data. Raises `CodecError` with the reason, never with the content."""
    try:
        return _pack_marked(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise CodecError(f"A {type(value).__name__} cannot cross between processes: {_reason(error)}.") from error


def unpack(data: bytes) -> Any:
    """The value that `pack` was given. Raises `CodecError` for bytes of an unknown class, version or shape."""
    try:
        return _unpack_marked(data)
    except (TypeError, ValueError, KeyError, IndexError, msgpack.UnpackException) as error:
        raise CodecError("A message could not be read; the peer may run another version of recalld.") from error


def _reason(error: Exception) -> str:
    """A library's complaint without the value that it may quote."""
    if isinstance(error, OverflowError):
        return "it holds an integer of more than 64 bits"
    text = str(error)
    if text.startswith("can not serialize '"):
        return f"it holds a {text.split(chr(39))[1]}"
    if isinstance(error, TypeError):
        return "it holds a value of an unknown type"
    return "it is nested too deeply or too large"


def _pack_marked(value: Any) -> bytes:
    packed: bytes = msgpack.packb(
        value, default=_mark, strict_types=True, use_bin_type=True, unicode_errors="surrogatepass"
    )
    return packed


def _unpack_marked(data: bytes) -> Any:
    return msgpack.unpackb(data, ext_hook=_unmark, raw=False, strict_map_key=False, unicode_errors="surrogatepass")


def _pack_plain(values: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(values, use_bin_type=True, unicode_errors="surrogatepass")
    return packed


def _unpack_plain(data: bytes) -> tuple[Any, ...]:
    values: tuple[Any, ...] = msgpack.unpackb(
        data, raw=False, use_list=False, strict_map_key=False, unicode_errors="surrogatepass"
    )
    return values


def _mark(value: Any) -> Any:
    """msgpack's hook for everything it does not know exactly."""
    kind: Any = type(value)
    if kind is tuple:
        return msgpack.ExtType(_TUPLE, _pack_marked(list(value)))
    if kind in _names:
        return msgpack.ExtType(_MESSAGE, _pack_message(value, _layout(kind)))
    if isinstance(value, RecalldError):
        return msgpack.ExtType(_ERROR, _pack_marked(value.to_wire()))
    for base in _BASES:
        # Subclasses (an IntEnum, a numpy float64, a str with a colour) cross as what they stand for.
        if isinstance(value, base):
            return base(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"can not serialize '{kind.__module__}.{kind.__qualname__}' object")


def _unmark(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(_unpack_marked(data))
    if code == _MESSAGE:
        return _unpack_message(data)
    if code == _ERROR:
        return from_wire(_unpack_marked(data))
    raise CodecError("A message holds a part of an unknown kind; the peer may run another version of recalld.")


def _pack_message(value: Any, layout: _Layout) -> bytes:
    plain = [getattr(value, name) for name in layout.plain]
    other = [getattr(value, name) for name in layout.other]
    try:
        head = [
            layout.name,
            layout.version,
            layout.plain_checks[-1],
            layout.other_checks[-1],
            _pack_plain(plain),
            _pack_marked(other) if other else b"",
        ]
    except (TypeError, ValueError, OverflowError) as error:
        raise CodecError(f"A {layout.name} cannot cross between processes: {_reason(error)}.") from error
    return _pack_plain(head)


def _unpack_message(data: bytes) -> Any:
    name, version, plain_check, other_check, plain_data, other_data = _unpack_plain(data)[:6]
    known = _registered.get(name)
    if known is None:
        raise CodecError(f"Nothing here knows the message {name}; import its module, or update this node.")
    if version != known[1]:
        raise CodecError(f"Message {name} has version {version}, here it has {known[1]}; run one version everywhere.")
    layout = _layout(known[0])
    plain = _unpack_plain(plain_data)
    other = _unpack_marked(other_data) if other_data else []
    _check(name, len(plain), plain_check, layout.plain_checks)
    _check(name, len(other), other_check, layout.other_checks)
    fields = dict(zip(layout.plain, plain, strict=False))
    fields.update(zip(layout.other, other, strict=False))
    try:
        return layout.cls(**fields)
    except TypeError as error:
        raise CodecError(f"Message {name} lacks a field that this side needs; run one version everywhere.") from error


def _check(name: str, sent: int, check: int, checks: tuple[int, ...]) -> None:
    """Refuse fields that were reordered; what a newer peer appended cannot be checked and is ignored."""
    if sent < len(checks) and check != checks[sent]:
        raise CodecError(f"Message {name} has its fields in another order here; run one version everywhere.")


@functools.cache
def _layout(cls: type) -> _Layout:
    """Computed at first use, because annotations may name classes defined further down."""
    hints = typing.get_type_hints(cls)
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    plain = tuple(name for name in fields if _is_plain(hints[name]))
    other = tuple(name for name in fields if not _is_plain(hints[name]))
    name = _names[cls]
    return _Layout(cls, name, _registered[name][1], plain, other, _checks(plain), _checks(other))


def _checks(names: tuple[str, ...]) -> tuple[int, ...]:
    sums = [0]
    for name in names:
        sums.append(zlib.crc32(name.encode(), sums[-1]) & 0xFFFF)
    return tuple(sums)


def _is_plain(hint: Any) -> bool:
    """Whether msgpack alone gives the value back: scalars, and tuples and dicts of such. No list, so no doubt."""
    if hint in _SCALARS or hint is None:
        return True
    origin = get_origin(hint)
    if origin in (tuple, dict) or origin in _UNIONS:
        return all(part is Ellipsis or _is_plain(part) for part in get_args(hint))
    if origin is Literal:
        return True
    return hasattr(hint, "__supertype__") and _is_plain(hint.__supertype__)

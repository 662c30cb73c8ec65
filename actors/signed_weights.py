"""Quantised weights of an ONNX file from unsigned to signed bytes: the same products, by a kernel twice as fast.

Dynamic quantisation often writes weights as uint8. The CPU's dot product instruction (VNNI) multiplies unsigned by
signed bytes, so such a model runs without it. With 128 taken from the weights and from their zero points the integers
that come out are the same, and so is every bit of the result. Only the bytes of the protobuf that hold these tensors
are rewritten; a file that is not of the expected shape is left as it is.

The wire format: https://protobuf.dev/programming-guides/encoding/; the fields: onnx.proto of the ONNX project.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

_GRAPH_IN_MODEL = 7
_NODE, _INITIALIZER = 1, 5  # in GraphProto
_INPUT, _OP_TYPE = 1, 4  # in NodeProto
_DIMS, _DATA_TYPE, _SEGMENT, _INT32_DATA, _NAME, _RAW_DATA = 1, 2, 3, 5, 8, 9  # in TensorProto
_EXTERNAL_DATA = 13  # in TensorProto
_UINT8, _INT8 = 2, 3
_WITH_SUBGRAPHS = {"If", "Loop", "Scan"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class NotReadable(ValueError):
    """The bytes are not the protobuf they should be."""


class _Field(NamedTuple):
    """One field of a message: its number, the value's bytes (or its varint), and where it lies with its tag."""

    number: int
    value: memoryview
    varint: int
    start: int
    end: int


@cache
def pays() -> bool:
    """Whether this machine multiplies unsigned by signed bytes faster than unsigned by unsigned ones."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    except OSError:
        return False
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(flags.split())


def with_signed_weights(model: bytes) -> bytes:
    """The model with int8 weights in its integer products; the same object when there is nothing to change."""
    try:
        top = list(_fields(memoryview(model)))
        (graph,) = (field for field in top if field.number == _GRAPH_IN_MODEL)
        changed = _graph(graph.value)
    except (NotReadable, ValueError, IndexError):
        return model
    if changed is None:
        return model
    return model[: graph.start] + _delimited(_GRAPH_IN_MODEL, changed) + model[graph.end :]


def _graph(graph: memoryview) -> bytes | None:
    fields = list(_fields(graph))
    wanted = _weights([field.value for field in fields if field.number == _NODE])
    if not wanted:
        return None
    tensors = {_name(field.value): field for field in fields if field.number == _INITIALIZER}
    if any(one.number == _EXTERNAL_DATA for field in tensors.values() for one in _fields(field.value)):
        return None  # the files beside it are found by its path, which bytes do not have
    rewritten: dict[int, bytes] = {}
    for weight, zero_point in wanted:
        if weight in tensors and zero_point in tensors:
            both = [_signed(tensors[name].value) for name in (weight, zero_point)]
            if both[0] is not None and both[1] is not None:
                for name, tensor in zip((weight, zero_point), both, strict=True):
                    rewritten[tensors[name].start] = _delimited(_INITIALIZER, tensor or b"")
    if not rewritten:
        return None
    return b"".join(rewritten.get(field.start, bytes(graph[field.start : field.end])) for field in fields)


def _weights(nodes: list[memoryview]) -> list[tuple[str, str]]:
    """(weights, zero points) of integer products, where nothing else reads either."""
    pairs: list[tuple[str, str]] = []
    elsewhere: set[str] = set()
    for node in nodes:
        fields = list(_fields(node))
        inputs = [bytes(field.value).decode() for field in fields if field.number == _INPUT]
        kind = next((bytes(field.value).decode() for field in fields if field.number == _OP_TYPE), "")
        if kind in _WITH_SUBGRAPHS:
            return []
        if kind == "MatMulInteger" and len(inputs) == 4:
            pairs.append((inputs[1], inputs[3]))
            elsewhere |= {inputs[0], inputs[2]}
        else:
            elsewhere |= set(inputs)
    return [pair for pair in pairs if elsewhere.isdisjoint(pair)]


def _name(tensor: memoryview) -> str:
    return next((bytes(field.value).decode() for field in _fields(tensor) if field.number == _NAME), "")


def _signed(tensor: memoryview) -> bytes | None:
    """A uint8 tensor as int8, 128 lower. None when it is no plain uint8 tensor."""
    dims, name, values, kind = b"", b"", np.empty(0, np.uint8), -1
    for field in _fields(tensor):
        if field.number == _DATA_TYPE:
            kind = field.varint
        elif field.number == _RAW_DATA:
            values = np.frombuffer(field.value, np.uint8)
        elif field.number == _INT32_DATA:
            values = np.array(list(_varints(field.value)), np.uint8)
        elif field.number == _DIMS:
            dims += bytes(tensor[field.start : field.end])
        elif field.number == _NAME:
            name = bytes(field.value)
        elif field.number == _SEGMENT:
            return None
    if kind != _UINT8 or not len(values):
        return None
    raw = (values ^ np.uint8(128)).tobytes()  # as a signed byte, x with its top bit turned is x - 128
    return dims + bytes([_DATA_TYPE << 3, _INT8]) + _delimited(_NAME, name) + _delimited(_RAW_DATA, raw)


def _fields(message: memoryview) -> Iterator[_Field]:
    at, end = 0, len(message)
    while at < end:
        start = at
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        varint, value = 0, message[:0]
        if wire == _VARINT:
            varint, at = _varint(message, at)
        elif wire == _BYTES:
            size, at = _varint(message, at)
            value = message[at : at + size]
            at += size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise NotReadable(f"wire type {wire}")
        if at > end:
            raise NotReadable("a field that ends behind its message")
        yield _Field(number, value, varint, start, at)


def _varints(packed: memoryview) -> Iterator[int]:
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotReadable("a number that does not end")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def _delimited(number: int, value: bytes) -> bytes:
    size, head = len(value), bytearray([number << 3 | _BYTES])
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + value

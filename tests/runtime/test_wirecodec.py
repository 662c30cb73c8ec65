"""What crosses, what is refused, and how a message may grow."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors import wirecodec
from recalld.actors.wirecodec import message, pack, register, unpack
from recalld.storage.errors import BankNotFound, CodecError, TooManyRequests


@message(1)
@dataclass(frozen=True, slots=True)
class Inner:
    terms: tuple[tuple[str, int], ...]
    note: str | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    inner: Inner
    many: tuple[Inner, ...] = ()
    plain: dict[str, Any] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    data: bytes = b""
    scores: dict[str, float] = field(default_factory=dict)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=40)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(-5, 5), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert repr(unpack(pack(value))) == repr(value)


@settings(max_examples=100, deadline=None)
@given(values, st.lists(st.tuples(st.text(), st.integers(0, 255)), max_size=5))
def test_messages_nest_with_their_tuples(value: Any, terms: list[tuple[str, int]]) -> None:
    inner = Inner(tuple(terms))
    outer = Outer("n", inner, (inner, Inner((), "x")), {"v": value, "m": inner}, (1, -(2**63)), b"\xff", {"a": 0.5})
    assert repr(unpack(pack(outer))) == repr(outer)
    assert repr(unpack(pack([outer, (outer,)]))) == repr([outer, (outer,)])


def test_lone_surrogates_cross() -> None:
    assert unpack(pack({"\udcff": Inner((("\ud800", 1),))})) == {"\udcff": Inner((("\ud800", 1),))}


def test_errors_cross_as_values() -> None:
    error = unpack(pack({"error": TooManyRequests("Wait.", 3)}))["error"]
    assert isinstance(error, TooManyRequests)
    assert (error.message, error.retry_after) == ("Wait.", 3)
    assert isinstance(unpack(pack(BankNotFound.named("b"))), BankNotFound)


def test_subclasses_cross_as_what_they_stand_for() -> None:
    class Colour(enum.IntEnum):
        RED = 4

    assert unpack(pack([Colour.RED, np.float64(0.5), bytearray(b"x"), memoryview(b"y")])) == [4, 0.5, b"x", b"y"]


@pytest.mark.parametrize(
    "value",
    [
        2**64,
        -(2**63) - 1,
        {1},
        object(),
        np.int64(3),
        np.zeros(2),
        Outer,
        Inner(((object(), 1),)),
        Inner(((2**70, 1),)),
    ],
    ids=["big", "small", "set", "object", "numpy", "array", "class", "in-message", "big-in-message"],
)
def test_what_cannot_cross_is_refused_without_its_content(value: Any) -> None:
    with pytest.raises(CodecError, match="cannot cross") as caught:
        pack({"secret": ["s3cret", value]})
    assert "s3cret" not in caught.value.message


def test_an_endless_value_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CodecError):
        pack(value)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93\x01", b"\xc7\x02\x01\x90\x90", b"\xc7\x01\x09\x00"])
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        unpack(data)


def _declare(fields: list[tuple[Any, ...]], version: int = 1) -> Any:
    """The class `Grown` as another release declares it; takes the place of the one before."""
    cls = make_dataclass("Grown", fields, frozen=True)
    wirecodec._registered.pop("Grown", None)
    return register(cls, version)


BASE: list[tuple[Any, ...]] = [("a", int), ("b", list[int])]
MORE: list[tuple[Any, ...]] = [*BASE, ("c", str, field(default="new")), ("d", Any, field(default=None))]


def test_unknown_fields_of_a_newer_peer_are_ignored() -> None:
    data = pack(_declare(MORE)(1, [2], "x", (3,)))
    assert unpack(data).d == (3,)
    older = _declare(BASE)
    assert unpack(data) == older(1, [2])


def test_fields_an_older_peer_lacks_take_their_default() -> None:
    data = pack(_declare(BASE)(1, [2]))
    newer = _declare(MORE)
    assert unpack(data) == newer(1, [2], "new", None)


def test_a_field_without_default_that_is_lacking_is_refused() -> None:
    data = pack(_declare(BASE)(1, [2]))
    _declare([*BASE, ("c", str)])
    with pytest.raises(CodecError, match="lacks a field"):
        unpack(data)


def test_reordered_fields_are_refused_not_misread() -> None:
    data = pack(_declare([("low", int), ("high", int)])(1, 2))
    _declare([("high", int), ("low", int)])
    with pytest.raises(CodecError, match="another order"):
        unpack(data)


def test_another_version_is_refused() -> None:
    data = pack(_declare(BASE, version=1)(1, []))
    _declare(BASE, version=2)
    with pytest.raises(CodecError, match="version 1, here it has 2"):
        unpack(data)


def test_an_unknown_message_is_refused() -> None:
    data = pack(_declare(BASE)(1, []))
    wirecodec._registered.pop("Grown")
    with pytest.raises(CodecError, match="Grown"):
        unpack(data)


def test_only_frozen_dataclasses_register_and_names_are_unique() -> None:
    with pytest.raises(CodecError, match="frozen"):
        register(make_dataclass("Soft", [("a", int)]))
    with pytest.raises(CodecError, match="Inner"):
        register(make_dataclass("Inner", [("a", int)], frozen=True))


def test_plain_fields_cost_no_python_per_element() -> None:
    """10,000 pairs through the hook would take tens of milliseconds and the interpreter lock."""
    import time

    value = Inner(tuple((f"term{n}", n % 9) for n in range(10_000)))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        assert len(unpack(pack(value)).terms) == 10_000
        times.append(time.perf_counter() - started)
    assert min(times) < 0.02

"""Compaction rewrites: nothing that was deleted or replaced is left in the file, not even in the slack of a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from recalld.storage.environment import Environment as Store
from recalld.storage.environment import ReadTxn, WriteTxn

SECRET = b"the secret that was taken back"


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


def put(txn: WriteTxn, values: dict[int, bytes]) -> None:
    for number, value in values.items():
        txn.put(key(number), value)


def everything(store: Store) -> dict[bytes, bytes]:
    def read(txn: ReadTxn) -> dict[bytes, bytes]:
        return {found: bytes(value) for found, value in txn.scan(b"")}

    with store.read() as txn:
        return read(txn)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(lambda n: SECRET * 100, lambda n: b"x" * (2100 + n % 900), id="overflow pages"),
        pytest.param(lambda n: SECRET * 4, lambda n: b"y" * (20 + n % 70), id="leaf pages"),
        pytest.param(lambda n: SECRET * (1 + n % 300), lambda n: b"z" * (1 + 37 * n % 9000), id="any size"),
    ],
)
def test_no_byte_of_a_replaced_value_outlives_compaction(
    tmp_path: Path, before: Callable[[int], bytes], after: Callable[[int], bytes]
) -> None:
    store = Store(tmp_path, map_size=1 << 30, reserve=0)
    for start in range(0, 300, 50):
        store.write(partial(put, values={n: before(n) for n in range(start, start + 50)}))
    for start in range(0, 300, 10):
        store.write(partial(put, values={n: after(n) for n in range(start, start + 10)}))
    held = everything(store)
    store.compact()
    assert everything(store) == held and len(held) == 300
    assert SECRET not in (tmp_path / "data.mdb").read_bytes()
    store.write(partial(put, values={300: b"written after"}))
    store.close()


def test_more_keys_than_one_batch_are_all_rewritten(tmp_path: Path) -> None:
    store = Store(tmp_path, map_size=1 << 30, reserve=0)
    for count in (0, 1999, 2000, 2001, 4000):
        store.write(partial(put, values={n: b"%d" % n for n in range(count)}))
        store.compact()
        assert everything(store) == {key(n): b"%d" % n for n in range(count)}
    store.close()

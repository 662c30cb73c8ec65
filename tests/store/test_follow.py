"""A read that needs no caches is never ahead of the caches: what it shows, a recall that begins next finds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from store_units import add, open_partition, prepared

from recalld.storage import keys
from recalld.storage.open_bank import OpenBank


def test_what_a_read_without_caches_shows_a_snapshot_taken_next_shows_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = open_partition(tmp_path / "p")
    partition.write("t", "b", lambda applier: add(applier, [prepared("tea", "u0")]), create=True)
    with partition.read("t", "b"):
        pass  # the bank is open and has to follow
    follow = OpenBank.follow

    def late(self: OpenBank, *given: Any) -> None:
        time.sleep(0.2)
        follow(self, *given)

    monkeypatch.setattr(OpenBank, "follow", late)
    written = partition.submit("t", "b", lambda applier: add(applier, [prepared("rye", "u1")]))
    for _ in range(100):
        with partition.peek("t", "b") as (txn, number):
            seen = txn.get(keys.named(number, keys.UNIT_ID, "u1")) is not None
        with partition.read("t", "b") as snap:
            assert snap.n == 2 or not seen
        if seen:
            break
        time.sleep(0.005)
    assert seen and snap.n == 2
    written.result()
    partition.close()

"""Promises of the decoded records a bank keeps: never older than the commit a reader stands at, never without bound."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_units import NOW, add, open_partition, prepared

from recalld.storage import bodies
from recalld.storage.bodies import Bodies, Body
from recalld.storage.changes import UnitsErased, UnitsRetagged
from recalld.storage.partition import Partition
from recalld.storage.records import UnitRecord


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    opened = open_partition(tmp_path / "p")
    opened.write("t", "b", lambda applier: add(applier, [prepared("tea", "one"), prepared("rye", "two")]), create=True)
    yield opened
    opened.close()


def retag(partition: Partition, *tags: str) -> None:
    partition.write("t", "b", lambda applier: applier.apply(UnitsRetagged(uids=(0,), tags=tags, at=NOW)))


def test_body_is_decoded_once_and_keeps_what_a_reader_derived(partition: Partition) -> None:
    with partition.read("t", "b") as snap:
        (first,) = snap.bodies([0])
        first.shown = "derived"
    with partition.read("t", "b") as snap:
        assert snap.bodies([0])[0] is first


def test_changed_record_is_read_anew_and_its_neighbours_are_not(partition: Partition) -> None:
    with partition.read("t", "b") as snap:
        one, two = snap.bodies([0, 1])
    retag(partition, "new")
    with partition.read("t", "b") as snap:
        again, other = snap.bodies([0, 1])
    assert one.record.tags == () and again.record.tags == ("new",)
    assert other is two


def test_reader_of_an_older_commit_leaves_nothing_to_newer_ones(partition: Partition) -> None:
    def write_and_read() -> tuple[str, ...]:
        retag(partition, "new")
        with partition.read("t", "b") as after:
            return after.bodies([0])[0].record.tags

    with partition.read("t", "b") as before, ThreadPoolExecutor(1) as other:
        before.bodies([1])
        assert other.submit(write_and_read).result() == ("new",)
        assert before.bodies([0])[0].record.tags == ()
    with partition.read("t", "b") as snap:
        assert snap.bodies([0])[0].record.tags == ("new",)


def test_erased_unit_has_no_body(partition: Partition) -> None:
    with partition.read("t", "b") as snap:
        assert len(snap.bodies([0, 1])) == 2
    partition.write("t", "b", lambda applier: applier.apply(UnitsErased(uids=(0,), at=NOW)))
    with partition.read("t", "b") as snap:
        assert [body.record.id for body in snap.bodies([0, 1])] == ["two"]


def test_kept_bodies_are_let_go_at_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LIMIT", 50_000)
    kept = Bodies()
    for uid in range(1000):
        kept.keep(Body(UnitRecord(uid=uid, id=str(uid), text="x", network=0)), 500)
        assert kept.nbytes <= 55_000
    assert kept.get(999) is not None

"""An erase is planned over one state and committed over another: what came between is neither lost nor left in half."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from store_units import NOW, add, open_partition, prepared

from recalld.actors import banks
from recalld.actors.messages import CommitErase, PlanErase
from recalld.actors.retain.standing import plan_erase
from recalld.storage.errors import Superseded
from recalld.storage.partition import Partition


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    opened = open_partition(tmp_path / "p")
    yield opened
    opened.close()


def write(partition: Partition, name: str, *, document: str | None = None, **fields: Any) -> list[int]:
    unit = prepared(f"text {name}", f"u-{name}", **fields)
    return partition.write("t", "b", lambda applier: add(applier, [unit], document_id=document or name), create=True)


def planned(partition: Partition, **wanted: Any) -> CommitErase:
    request = PlanErase("t", "b", **wanted)
    with partition.read("t", "b") as snap:
        plan = plan_erase(snap, request)
    assert plan.followers == ()
    return CommitErase("t", "b", "r", NOW, plan.uids, (), **wanted)


def commit(partition: Partition, erase: CommitErase) -> dict[str, Any]:
    return partition.write("t", "b", partial(banks.commit_erase, request=erase), frees=True)


def standing(partition: Partition) -> tuple[list[str], list[str]]:
    """(documents, texts) of the bank; every document's units are there, and every unit's document."""
    with partition.read("t", "b") as snap:
        documents = {record.number: record.id for record in snap.documents()}
        units = snap.units([uid for uid in range(snap.n) if snap.columns.exists[uid]])
        assert {unit.document for unit in units} == set(documents)
        assert snap.counters().documents == len(documents)
        return sorted(documents.values()), sorted(unit.text for unit in units)


def test_a_document_that_came_while_a_bank_was_cleared_stays_whole(partition: Partition) -> None:
    write(partition, "old")
    erase = planned(partition)
    write(partition, "new")
    commit(partition, erase)
    assert standing(partition) == (["new"], ["text new"])


def test_clearing_everything_leaves_nothing(partition: Partition) -> None:
    for name in ("a", "b", "c"):
        write(partition, name, tags=["t"], entities=["E"])
    found = commit(partition, planned(partition))
    assert found == {"units": 3, "documents": 3, "entities": 1}
    assert standing(partition) == ([], [])
    with partition.read("t", "b") as snap:
        assert snap.all_tags() == [] and snap.entities() == []


def test_a_document_that_grew_while_it_was_being_deleted_is_planned_again(partition: Partition) -> None:
    uids = write(partition, "d")
    erase = planned(partition, document_id="d")

    def grow(applier: Any) -> None:
        unit = prepared("text more", "u-more")
        record = banks._document(applier, "d")
        from recalld.storage.changes import NewUnit, UnitsAdded

        uid = applier.allocate("uid")
        new = NewUnit(unit, uid, record.number, "d", 0, "", record.thread, uids[0], None)
        applier.apply(UnitsAdded((new,), NOW))

    partition.write("t", "b", grow)
    with pytest.raises(Superseded):
        commit(partition, erase)
    assert len(standing(partition)[1]) == 2
    commit(partition, planned(partition, document_id="d"))
    assert standing(partition) == ([], [])

"""Whatever is retained, replaced, deleted, invalidated or edited: counts agree, and what is superseded has a reason."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.storage import mentions
from recalld.storage.errors import NotFound
from recalld.storage.records import SUPERSEDED, VALID, UnitRecord
from recalld.storage.snapshot import Snapshot
from recalld.storage.verify import verify_bank

from .conftest import Bank, snapshot

LINES = (
    "Ana: I live in Porto.",
    "Ana: I live in Lyon.",
    "Ana: I no longer live in Lyon.",
    "Ben: I love jazz.",
    "Ben: I hate jazz.",
    "Cleo keeps bees on the roof.",
)
NAMES = ("one", "two", "three")
MONTHS = (1, 3, 5)

texts = st.lists(st.sampled_from(LINES), min_size=1, max_size=3).map("\n".join)
steps = st.one_of(
    st.tuples(st.just("retain"), st.sampled_from(NAMES), texts, st.sampled_from(MONTHS)),
    st.tuples(st.just("append"), st.sampled_from(NAMES), texts, st.sampled_from(MONTHS)),
    st.tuples(st.just("undocumented"), st.just(""), texts, st.sampled_from(MONTHS)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(""), st.just(0)),
    st.tuples(st.just("tags"), st.sampled_from(NAMES), st.sampled_from(("x", "y")), st.just(0)),
    st.tuples(st.just("invalidate"), st.just(""), st.just(""), st.integers(0, 9)),
    st.tuples(st.just("revert"), st.just(""), st.just(""), st.integers(0, 9)),
    st.tuples(st.just("edit"), st.just(""), st.sampled_from(LINES), st.integers(0, 9)),
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=3, max_size=10))
def test_counts_agree_and_what_is_superseded_has_its_superseder(done: list[tuple[str, str, str, int]]) -> None:
    asyncio.run(run(done))


async def run(done: list[tuple[str, str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        service = await open_service(replace(Settings(), home=home, runtime="inline", extraction_provider="local"))
        bank = Bank(service, "b")
        await bank.retain({"content": LINES[0], "timestamp": "2026-02-02T10:00:00Z"})
        try:
            for step in done:
                await carry_out(service, bank, *step)
                with snapshot(service, "b") as snap:
                    check(snap)
        except NotFound:
            pass
        finally:
            await service.close()


async def carry_out(service: MemoryService, bank: Bank, what: str, name: str, text: str, number: int) -> None:
    item: dict[str, Any] = {"content": text, "timestamp": f"2026-0{number or 1}-02T10:00:00Z"}
    if what in ("retain", "append"):
        await bank.retain({**item, "document_id": name, "update_mode": "append" if what == "append" else "replace"})
        return
    if what == "undocumented":
        await bank.retain(item)
        return
    try:
        if what == "delete":
            await service.delete_document("default", "b", name)
        elif what == "tags":
            await service.patch_document("default", "b", name, {"tags": [text]})
        else:
            with snapshot(service, "b") as snap:
                ids = sorted(unit.id for unit in current(snap))
            if not ids:
                return
            fields = {"invalidate": {"state": "invalidated"}, "revert": {"state": "valid"}, "edit": {"text": text}}
            await service.patch_memory("default", "b", ids[number % len(ids)], fields[what])
    except NotFound:
        return


def current(snap: Snapshot) -> list[UnitRecord]:
    units = (snap.unit(uid) for uid in range(snap.n) if snap.columns.exists[uid])
    return [unit for unit in units if unit is not None and unit.stands]


def check(snap: Snapshot) -> None:
    units = {unit.id: unit for unit in current(snap)}
    assert len(units) == len(current(snap)), "one unit an id"
    for unit in units.values():
        said = mentions.mentions_of(snap.txn, snap.bank, unit.id)
        assert unit.proof_count == 1 + len(said) == snap.columns.proof[unit.uid]
        chunk = snap.chunk(unit.document, unit.chunk_index)
        assert chunk is not None and unit.uid in chunk.uids
        for one in said:
            chunk = snap.chunk(one.document, one.chunk_index)
            assert chunk is not None and (unit.id, one.number) in chunk.mentions
        if unit.state == SUPERSEDED:
            by = units[unit.superseded_by]
            assert by.state in (VALID, SUPERSEDED) and unit.id in mentions.ended_by(snap.txn, snap.bank, by.id)
        assert bool(snap.columns.live[unit.uid]) == (unit.state == VALID)
        assert bool(snap.columns.superseded[unit.uid]) == (unit.state == SUPERSEDED)
    rows = [row for document in snap.documents() for chunk in snap.chunks(document.number) for row in chunk.mentions]
    assert all(mentions.mention(snap.txn, snap.bank, *row) is not None for row in rows)
    found = verify_bank(snap.txn, snap.bank, lambda: None).plain()
    assert found["ok"], found["problems"]

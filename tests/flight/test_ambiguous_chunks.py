"""Chunk ids join bank and document with underscores, which both may hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight_service import TENANT, item, opened, retain

from recalld.storage.errors import Conflict, NotFound


async def test_a_chunk_id_that_fits_two_banks_is_a_conflict_and_never_the_wrong_chunk(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home")
    try:
        await retain(service, "a", item("of a", document_id="b_c"))
        assert (await service.get_chunk(TENANT, "a_b_c_0"))["chunk_text"] == "of a"
        await retain(service, "a_b", item("of a_b", document_id="c"))
        with pytest.raises(Conflict, match="documents/"):
            await service.get_chunk(TENANT, "a_b_c_0")
        listed = await service.list_chunks(TENANT, "a_b", "c", 10, 0)
        assert [chunk["chunk_text"] for chunk in listed["items"]] == ["of a_b"]
        await service.delete_bank(TENANT, "a")
        assert (await service.get_chunk(TENANT, "a_b_c_0"))["chunk_text"] == "of a_b"
        with pytest.raises(NotFound):
            await service.get_chunk(TENANT, "a_b_c_1")
    finally:
        await service.close()


async def test_the_status_counts_the_banks(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home")
    try:
        assert (await service.status())["banks"] == 0
        for bank in ("one", "two", "three"):
            await retain(service, bank, "a fact")
        assert (await service.status())["banks"] == 3
        await service.delete_bank(TENANT, "two")
        assert (await service.status())["banks"] == 2
    finally:
        await service.close()

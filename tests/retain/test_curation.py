"""Memories corrected by hand: edited, invalidated, reverted; and what the audit log tells of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.storage.errors import BadRequest, NotFound

from .conftest import Bank, snapshot
from .test_change import JAN, MARCH, current, ended, only, say

PORTO, LYON = "Ana: I live in Porto.", "Ana: I live in Lyon."


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(
        replace(Settings(), home=tmp_path / "home", runtime="inline", extraction_provider="local")
    )
    yield opened
    await opened.close()


async def audit(bank: Bank, action: str | None = None) -> list[dict]:  # type: ignore[type-arg]
    answer = await bank.service.list_audit("default", bank.id, action, None, None, None, 100, 0)
    return list(answer["items"])


async def test_an_invalidated_memory_leaves_recall_until_it_is_reverted(bank: Bank, service: MemoryService) -> None:
    await say(bank, PORTO, JAN)
    memory_id = await only(bank, PORTO)
    fields = {"state": "invalidated", "reason": "she never did"}
    memory = await service.patch_memory("default", "b", memory_id, fields)
    assert (memory["state"], memory["invalidation_reason"]) == ("invalidated", "she never did")
    assert memory["invalidated_at"] and await bank.texts("Where does Ana live?") == []
    assert list(await ended(bank)) == [PORTO]
    memory = await service.patch_memory("default", "b", memory_id, {"state": "valid"})
    assert (memory["state"], memory["invalidation_reason"], memory["invalidated_at"]) == ("valid", None, None)
    assert await bank.texts("Where does Ana live?") == [PORTO]


async def test_what_superseded_can_be_taken_back_and_put_back(bank: Bank, service: MemoryService) -> None:
    await say(bank, PORTO, JAN)
    await say(bank, LYON, MARCH)
    lyon = await only(bank, LYON)
    await service.patch_memory("default", "b", lyon, {"state": "invalidated", "reason": "a joke"})
    assert await current(bank) == {PORTO}
    await service.patch_memory("default", "b", lyon, {"state": "valid"})
    assert await current(bank) == {LYON}
    await service.patch_memory("default", "b", await only(bank, PORTO), {"state": "valid"})
    assert await current(bank) == {PORTO, LYON}, "by hand it stays, whatever the rule says"


async def test_an_invalidated_claim_sent_again_stays_invalidated(bank: Bank, service: MemoryService) -> None:
    await say(bank, PORTO, JAN, document_id="a")
    await service.patch_memory("default", "b", await only(bank, PORTO), {"state": "invalidated", "reason": ""})
    await say(bank, PORTO, JAN, document_id="b")
    assert await current(bank) == set() and (await ended(bank))[PORTO]["proof_count"] == 2
    await say(bank, PORTO, "2099-01-01T00:00:00Z", document_id="c")
    assert await current(bank) == {PORTO}


async def test_an_edit_is_a_new_version_with_its_own_vectors(bank: Bank, service: MemoryService) -> None:
    first = await say(bank, "Ana: I keep bees in Ghent.", MARCH, document_id="d")
    await say(bank, "Ben: They make dark honey.", MARCH, document_id="d", update_mode="append")
    memory_id = first["unit_ids"][0]
    before = service._clock()
    memory = await service.patch_memory("default", "b", memory_id, {"text": "Ana: I keep goats in Ghent."})
    assert (memory["id"], memory["text"]) == (memory_id, "Ana: I keep goats in Ghent.") and memory["edited_at"]
    assert (memory["document_id"], memory["chunk_id"], memory["proof_count"]) == ("d", "b_d_0", 1)
    assert "Ana: I keep goats in Ghent." in await bank.texts("goats", arms=("keyword",))
    assert await bank.texts("bees", arms=("keyword",)) == []
    assert "Ana: I keep bees in Ghent." in await bank.texts("bees", as_of=before)
    history = await service.memory_history("default", "b", memory_id)
    assert [one["previous_text"] for one in history] == ["Ana: I keep bees in Ghent."]
    pair = Bank(service, "pair")
    await say(pair, "Ana: I keep goats in Ghent.", MARCH, document_id="d")
    await say(pair, "Ben: They make dark honey.", MARCH, document_id="d", update_mode="append")
    rows = []
    for name in ("b", "pair"):
        with snapshot(service, name) as snap:
            live = {snap.unit(uid).text: uid for uid in range(snap.n) if snap.columns.live[uid]}
            rows.append({text: (snap.vector_row(uid), snap.token_row(uid)) for text, uid in live.items()})
    assert rows[0] == rows[1], "what stands behind it carries the new text too"


async def test_an_edit_goes_with_its_document(bank: Bank, service: MemoryService) -> None:
    first = await say(bank, "Ana: I keep bees in Ghent.", MARCH, document_id="d")
    await service.patch_memory("default", "b", first["unit_ids"][0], {"text": "Ana: I keep goats."})
    await service.delete_document("default", "b", "d")
    with pytest.raises(NotFound):
        await service.get_memory("default", "b", first["unit_ids"][0])
    with snapshot(service, "b") as snap:
        assert not snap.columns.exists.any()


async def test_dates_context_kind_and_entities_can_be_changed_and_cleared(bank: Bank, service: MemoryService) -> None:
    first = await say(bank, "Ana moved to Lyon in May.", MARCH, context="chat")
    fields = {"context": "", "occurred_start": None, "occurred_end": None, "network": 1, "entities": ("Lyon",)}
    memory = await service.patch_memory("default", "b", first["unit_ids"][0], fields)
    assert (memory["context"], memory["occurred_start"], memory["type"]) == ("", None, "experience")
    assert memory["entities"] == ["Lyon"]
    memory = await service.patch_memory("default", "b", first["unit_ids"][0], {"entities": ()})
    assert memory["entities"] == []


async def test_an_edit_keeps_what_was_superseded_and_its_mentions(bank: Bank, service: MemoryService) -> None:
    await say(bank, PORTO, JAN, document_id="a")
    await say(bank, LYON, MARCH, document_id="b")
    await say(bank, LYON, MARCH, document_id="c")
    lyon = await only(bank, LYON)
    await service.patch_memory("default", "b", lyon, {"text": "Ana: I live in Lyon, near the river."})
    porto = (await ended(bank))[PORTO]
    assert porto["superseded_by"] == lyon
    memory = await service.get_memory("default", "b", lyon)
    assert memory["proof_count"] == len(memory["mentions"]) == 2
    await say(bank, LYON, MARCH, document_id="e")
    assert (await service.get_memory("default", "b", lyon))["proof_count"] == 3, "it was what that line became"


async def test_what_was_replaced_cannot_be_edited(bank: Bank, service: MemoryService) -> None:
    first = await say(bank, PORTO, JAN, document_id="d")
    await say(bank, "Ana: I bake bread on Sundays.", MARCH, document_id="d")
    with pytest.raises(BadRequest, match="replaced"):
        await service.patch_memory("default", "b", first["unit_ids"][0], {"text": "x"})


async def test_the_audit_log_tells_each_decision_and_no_text(
    bank: Bank, service: MemoryService, tmp_path: Path
) -> None:
    old = await say(bank, PORTO, JAN, document_id="a")
    new = await say(bank, LYON, MARCH, document_id="b")
    await say(bank, LYON, MARCH, document_id="c")
    ids = old["unit_ids"] + new["unit_ids"]
    (superseded,) = await audit(bank, "superseded")
    assert superseded["metadata"] == {"unit_id": ids[0], "by": ids[1], "reason": "attribute changed"}
    (mentioned,) = await audit(bank, "mention_added")
    assert mentioned["metadata"]["unit_ids"] == [ids[1]] and mentioned["transport"] == "system"
    await service.patch_memory("default", "b", ids[0], {"state": "valid"})
    assert [one["action"] for one in await audit(bank)] == ["restored", "mention_added", "superseded"]
    entry = await service.get_audit("default", "b", superseded["id"])
    assert entry["request"] is None and entry["response"] is None
    stats = await service.audit_stats("default", "b", None, 7)
    assert stats["buckets"][-1]["actions"] == {"restored": 1, "mention_added": 1, "superseded": 1}
    assert "Porto" not in str(await audit(bank))
    await service.delete_document("default", "b", "b")
    await service.delete_document("default", "b", "c")
    await service.compact()
    held = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert ids[1].encode() not in held and b"Lyon" not in held and ids[0].encode() in held

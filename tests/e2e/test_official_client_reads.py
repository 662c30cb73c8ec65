"""The official client 1.1.0, unmodified, reads what is stored: against a running daemon in both runtimes.

Every test checks a value that only a working implementation gives: the right memory first, the right instant, a filter
that leaves the other memory out.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import hindsight_client_api as low
from e2e_daemon import Bank, Daemon
from official_client import (
    BOAT,
    FERRY,
    KETTLE,
    LYON,
    PUMP,
    ROOF_KEPT,
    RUST,
    generated,
    long_text,
    official,
    status_of,
    texts,
)


async def test_memories_are_listed_newest_first_and_filtered(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:

        async def listed(**filters: Any) -> list[str]:
            return [one.text for one in (await client.alist_memories(library.id, **filters)).items]

        assert await listed() == [BOAT, PUMP, FERRY, RUST, KETTLE, LYON, ROOF_KEPT]
        page = await client.alist_memories(library.id, limit=2, offset=1)
        assert ([one.text for one in page.items], page.total, page.limit, page.offset) == ([PUMP, FERRY], 7, 2, 1)
        empty = await client.alist_memories(library.id, limit=0)
        assert (empty.items, empty.total) == ([], 7)
        assert await listed(type="opinion") == [RUST]
        assert await listed(type="world") == [BOAT, PUMP, KETTLE, LYON, ROOF_KEPT]
        assert await listed(search_query="KETTLE") == [KETTLE]
        assert await listed(document_id="trip/1") == [LYON]
        assert await listed(tags=["ana"], tags_match="all_strict") == [PUMP, LYON]
        assert await listed(state="valid") == await listed() and await listed(state="invalidated") == []
        assert await listed(consolidation_state="failed") == [] and await listed(consolidation_state="done") == []
        assert set(await listed(consolidation_state="pending")) >= {LYON, KETTLE, PUMP, ROOF_KEPT, BOAT, FERRY}
        lyon = next(
            one for one in (await low.EntitiesApi(api).list_entities(library.id)).items if one.canonical_name == "Lyon"
        )
        assert await listed(entity_id=lyon.id) == [LYON]
        occurred: dict[str, Any] = {"time_field": "occurred_start"}
        assert await listed(**occurred, start_date="2025-01-01", end_date="2026-01-01") == [PUMP, ROOF_KEPT]
        # Instants are compared, not texts, and the end is exclusive.
        said: dict[str, Any] = {"time_field": "mentioned_at", "start_date": "2026-02-05T09:59:59+08:00"}
        assert await listed(**said) == [BOAT, PUMP]
        assert await listed(**said, end_date="2026-02-06T10:00:00Z") == [PUMP]
        assert await listed(start_date="2020-01-01", end_date="2020-02-01") == []


async def test_one_memory_is_read_with_all_its_fields(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        listed = next(one for one in (await client.alist_memories(library.id)).items if one.text == LYON)
        memory = await low.MemoryApi(api).get_memory(library.id, listed.id)
        assert (memory["text"], memory["type"], memory["state"]) == (LYON, "world", "valid")
        assert {"Ana", "Lyon"} <= set(memory["entities"]) and memory["document_id"] == "trip/1"
        assert memory["occurred_start"] == "2024-05-01T00:00:00.000000+00:00"
        unknown = str(uuid.uuid4())
        assert (await status_of(lambda: low.MemoryApi(api).get_memory(library.id, unknown)))[0] == 404


async def test_tags_and_entities_are_counted(daemon: Daemon, library: Bank) -> None:
    async with generated(daemon) as api:
        tags = await low.MemoryApi(api).list_tags(library.id)
        assert [(one.tag, one.count) for one in tags.items] == [
            ("ana", 2),
            ("ben", 1),
            ("carla", 1),
            ("home", 1),
            ("house", 1),
        ]
        some = await low.MemoryApi(api).list_tags(library.id, q="HO*", limit=1)
        assert ([one.tag for one in some.items], some.total) == (["home"], 2)
        entities = low.EntitiesApi(api)
        names = {one.canonical_name: one for one in (await entities.list_entities(library.id)).items}
        assert {"Ana", "Lyon", "Porto", "Acme", "Corsica"} <= set(names)
        only = await entities.list_entities(library.id, tags=["carla"], tags_match="all_strict")
        assert "Ana" not in {one.canonical_name for one in only.items}
        ana = await entities.get_entity(library.id, names["Ana"].id)
        assert (ana.canonical_name, ana.mention_count, ana.observations) == ("Ana", names["Ana"].mention_count, [])
        assert ana.first_seen == "2026-02-01T10:00:00.000000+00:00"
        assert (await status_of(lambda: entities.get_entity(library.id, str(uuid.uuid4()))))[0] == 404
        assert (await status_of(lambda: entities.get_entity(library.id, "abc")))[0] == 400


async def test_statistics_are_exact_at_once(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain_batch(
            bank.id, [{"content": RUST, "document_id": "a"}, {"content": LYON, "document_id": "b"}]
        )
        first = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (first.total_nodes, first.total_documents) == (2, 2)
        assert first.nodes_by_fact_type == {"world": 1, "opinion": 1}
        await client.aretain(bank.id, KETTLE, document_id="c")
        second = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (second.total_nodes, second.nodes_by_fact_type["world"], second.pending_operations) == (3, 2, 0)
        (row,) = (await low.BanksApi(api).list_banks(q=bank.id)).banks
        assert row.fact_count == 3 and row.last_write_at is not None
        assert second.last_memory_write_at == row.last_write_at


async def test_documents_and_chunks_are_listed_read_and_searched(daemon: Daemon, library: Bank) -> None:
    async with generated(daemon) as api:
        documents = low.DocumentsApi(api)
        one = await documents.get_document(library.id, "trip/1")
        assert (one.original_text, one.content_hash) == (LYON, hashlib.sha256(LYON.encode()).hexdigest())
        assert (one.memory_unit_count, one.nodes_by_fact_type) == (1, {"world": 1})
        assert (sorted(one.tags), one.document_metadata) == (["ana", "home"], {"source": "chat"})
        assert one.retain_params["context"] == "a chat about moving"
        chunks = await documents.list_document_chunks(library.id, "trip/1")
        assert [(c.chunk_id, c.chunk_text) for c in chunks.items] == [("library_trip/1_0", LYON)]
        assert (await documents.get_chunk("library_trip/1_0")).chunk_text == LYON
        tagged = await documents.list_documents(library.id, tags=["ana"])
        assert {d.id for d in tagged.items} == {"trip/1", "pump"}
        assert {d.id for d in (await documents.list_documents(library.id, q="kettle")).items} == {"dog"}
        by_id = (await documents.list_documents(library.id, q="trip")).items
        assert [(d.id, d.text_length) for d in by_id] == [("trip/1", len(LYON))]
        page = await documents.list_documents(library.id, limit=2, offset=6)
        assert (len(page.items), page.total) == (1, 7)
        later = await documents.list_documents(library.id, start_date="2090-01-01")
        assert later.total == 0
        assert (await status_of(lambda: documents.get_document(library.id, "nothing")))[0] == 404
        assert (await status_of(lambda: documents.get_chunk("library_trip/1_9")))[0] == 404


async def test_a_replaced_document_keeps_the_memories_of_unchanged_chunks(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        documents = low.DocumentsApi(api)
        await client.aretain(bank.id, long_text(), document_id="statues", timestamp="2026-01-01T00:00:00Z")
        created = (await documents.get_document(bank.id, "statues")).created_at
        chunks = (await documents.list_document_chunks(bank.id, "statues")).items
        assert len(chunks) >= 3 and "".join(c.chunk_text for c in chunks).replace("\n", "") == long_text().replace(
            "\n", ""
        )
        before = (await client.alist_memories(bank.id, limit=1000)).items
        await client.aretain(bank.id, long_text(changed=11), document_id="statues", timestamp="2026-01-01T00:00:00Z")
        after = (await client.alist_memories(bank.id, limit=1000)).items
        kept = {one.id for one in before} & {one.id for one in after}
        last = chunks[-1].chunk_index
        # Claims that the changed chunk still makes may stay as well.
        assert kept >= {one.id for one in before if not one.chunk_id.endswith(f"_{last}")} and kept
        assert {one.id for one in before} - kept
        assert {one.id for one in after} - kept
        document = await documents.get_document(bank.id, "statues")
        assert document.original_text == long_text(changed=11) and document.created_at == created
        assert document.updated_at > created
        # The old paragraph is gone from every arm, the new one is found.
        assert "granite" in texts(await client.arecall(bank.id, "granite statue"))[0]
        everything = await client.arecall(bank.id, "Paragraph 11 marble", budget="high", max_tokens=50_000)
        assert not any("Paragraph 11 describes the marble" in text for text in texts(everything))


async def test_what_was_replaced_is_still_there_as_of_the_time_before(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        await client.aretain(bank.id, "The office is on Elm Street.", document_id="office")
        # An instant the daemon itself gave: the first version was recorded then.
        then = bank.get("/documents/office")["updated_at"]
        await client.aretain(bank.id, "The office is on Birch Avenue.", document_id="office")
    assert bank.texts("Where is the office?") == ["The office is on Birch Avenue."]
    assert bank.texts("Where is the office?", as_of=then) == ["The office is on Elm Street."]
    assert bank.texts("Where is the office?", as_of="2020-01-01T00:00:00Z") == []
    # An erase, unlike a replace, takes it from every instant.
    assert bank.send("DELETE", "/documents/office").body["memory_units_deleted"] == 1
    assert bank.texts("Where is the office?", as_of=then) == []


async def test_documents_are_retagged_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        documents = low.DocumentsApi(api)
        await client.aretain(bank.id, LYON, document_id="a/b c", tags=["old"])
        await client.aretain(bank.id, KETTLE, document_id="other", tags=["old"])
        assert (await documents.update_document(bank.id, "a/b c", low.UpdateDocumentRequest(tags=["new"]))).success
        assert (await documents.get_document(bank.id, "a/b c")).tags == ["new"]
        for tag, expected in (("new", [LYON]), ("old", [KETTLE])):
            found = await client.arecall(bank.id, "Ana, Lyon and the kettle", tags=[tag], tags_match="any_strict")
            assert texts(found) == expected
        gone = await documents.delete_document(bank.id, "a/b c")
        assert (gone.document_id, gone.memory_units_deleted) == ("a/b c", 1)
        for arm in ("semantic", "keyword", "graph"):
            assert LYON not in bank.texts("Where does Ana live? Lyon", arms=[arm]), arm
        assert (await status_of(lambda: documents.delete_document(bank.id, "a/b c")))[0] == 404
        assert (await documents.get_document(bank.id, "other")).tags == ["old"]

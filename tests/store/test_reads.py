"""Listings and single reads over a real partition."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import DAY, HOUR, START, World

from recalld.actors.filters import DocumentFilters, MemoryFilters
from recalld.actors.messages import Read
from recalld.actors.reads import READS
from recalld.actors.wirecodec import pack, unpack
from recalld.storage import codec
from recalld.storage.changes import OperationErased, UnitsErased, UnitsRetagged, UnitsRetired
from recalld.storage.errors import BadRequest, BankNotFound, NotFound, Unprocessable
from recalld.storage.isotime import iso
from recalld.storage.records import EXPERIENCE, OBSERVATION, OPINION

T, B = "tenant", "bank"
NOBODY = "00000000-0000-4000-8000-00000000ffff"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def read(world: World, what: str, bank_id: str = B, tenant: str = T, **params: Any) -> Any:
    """The read as the gateway sees it: parameters and answer cross the codec."""
    asked = unpack(pack(Read(what, tenant, bank_id, params)))
    return unpack(pack(READS[asked.what](world.partition, asked.tenant, asked.bank_id, asked.params)))


def memories(world: World, **filters: Any) -> dict[str, Any]:
    return read(world, "list_memories", filters=MemoryFilters(**filters))


def texts(world: World, **filters: Any) -> list[str]:
    return [row["text"] for row in memories(world, **filters)["items"]]


def documents(world: World, **filters: Any) -> list[str]:
    return [row["id"] for row in read(world, "list_documents", filters=DocumentFilters(**filters))["items"]]


# -- banks -------------------------------------------------------------------------------------------------------------


def test_banks_are_listed_for_their_tenant_alone_and_without_loading_them(world: World) -> None:
    world.bank(T, "empty", name="Empty", reflect_mission="help", disposition_empathy=5)
    world.add(T, B, "d", [world.unit("Ana likes tea."), world.unit("Bo likes milk.", network=EXPERIENCE)])
    world.bank("other", "secret")
    rows = {row["bank_id"]: row for row in read(world, "list_banks", bank_id="")}
    assert rows.keys() == {"empty", B}
    assert rows["empty"]["disposition"] == {"skepticism": 3, "literalism": 3, "empathy": 5}
    assert (rows["empty"]["name"], rows["empty"]["mission"], rows["empty"]["fact_count"]) == ("Empty", "help", 0)
    assert rows["empty"]["last_write_at"] is None
    assert rows[B]["fact_count"] == 2
    assert rows[B]["last_document_at"] == rows[B]["last_write_at"] > iso(START)
    assert rows[B]["mission"] is None and rows[B]["display_alias"] is None
    assert read(world, "bank", "empty")["overrides"] == {"reflect_mission": "help", "disposition_empathy": 5}
    assert not world.partition.open_banks()


def test_stats_are_exact_at_once_and_load_nothing(world: World) -> None:
    first = world.add(
        T,
        B,
        "d",
        [
            world.unit("Ana met Bo.", entities=["Ana", "Bo"], mentioned_at=START),
            world.unit("Bo moved.", entities=["Bo"], mentioned_at=START + 20 * HOUR, network=EXPERIENCE),
            world.unit("Rain.", mentioned_at=START + 3 * DAY),
        ],
        causes={1: [0]},
        similar={2: [(0, 0.9), (1, 0.8)]},
    )
    world.operation(T, B, status="failed")
    world.operation(T, B, status="pending")
    stats = read(world, "bank_stats")
    assert stats["total_nodes"] == 3 and stats["total_documents"] == 1
    assert stats["nodes_by_fact_type"] == {"world": 2, "experience": 1}
    assert stats["links_by_link_type"] == {"entity": 3, "temporal": 1, "semantic": 2, "caused_by": 1}
    assert stats["links_breakdown"] == {
        "world": {"entity": 2, "temporal": 1, "semantic": 1, "caused_by": 1},
        "experience": {"entity": 1, "semantic": 1},
    }
    assert stats["links_by_fact_type"] == {"world": 5, "experience": 2}
    assert stats["total_links"] == 7
    assert stats["operations_by_status"] == {"failed": 1, "pending": 1}
    assert (stats["pending_operations"], stats["failed_operations"]) == (1, 1)
    assert (stats["pending_consolidation"], stats["total_observations"]) == (3, 0)
    world.apply(T, B, UnitsRetired((first + 1,), world.now()))
    world.apply(T, B, UnitsErased((first,), world.now()))
    stats = read(world, "bank_stats")
    assert stats["nodes_by_fact_type"] == {"world": 1}
    assert (stats["links_by_link_type"], stats["total_links"]) == ({}, 0)
    assert not world.partition.open_banks()


def test_an_empty_bank_has_stats_and_an_unknown_one_is_not_found(world: World) -> None:
    world.bank(T, B)
    stats = read(world, "bank_stats")
    assert (stats["total_nodes"], stats["total_links"], stats["last_memory_write_at"]) == (0, 0, None)
    assert memories(world)["items"] == []
    for what in ("bank", "bank_stats"):
        with pytest.raises(BankNotFound, match="Bank 'nowhere' not found"):
            read(world, what, "nowhere")
    with pytest.raises(BankNotFound):
        read(world, "bank_stats", B, tenant="other")


# -- memories ----------------------------------------------------------------------------------------------------------


def test_memories_come_latest_mentioned_first_then_latest_recorded_and_undated_last(world: World) -> None:
    world.add(T, B, "d1", [world.unit("undated old"), world.unit("early", mentioned_at=START - DAY)])
    world.add(T, B, "d2", [world.unit("late", mentioned_at=START), world.unit("undated new")])
    world.add(T, B, "d3", [world.unit("early, told later", mentioned_at=START - DAY)])
    expected = ["late", "early, told later", "early", "undated new", "undated old"]
    assert texts(world) == expected
    assert [texts(world, limit=2, offset=at) for at in (0, 2, 4, 6)] == [expected[:2], expected[2:4], expected[4:], []]
    empty = memories(world, limit=0)
    assert (empty["items"], empty["total"]) == ([], 5)


def test_a_listed_memory_has_every_field_of_the_contract(world: World) -> None:
    unit = world.unit(
        "Ana met Bo.",
        entities=["Ana", "Bo"],
        context="lunch",
        tags=("x", "a"),
        metadata={"k": "v"},
        occurred_start=START - DAY,
        mentioned_at=START,
    )
    world.add(T, B, "d/1", [unit])
    row = memories(world)["items"][0]
    assert row == {
        "id": unit.id,
        "text": "Ana met Bo.",
        "context": "lunch",
        "date": iso(START - DAY),
        "fact_type": "world",
        "document_id": "d/1",
        "mentioned_at": iso(START),
        "occurred_start": iso(START - DAY),
        "occurred_end": None,
        "entities": "Ana, Bo",
        "chunk_id": "bank_d/1_0",
        "proof_count": 1,
        "tags": ["a", "x"],
        "metadata": {"k": "v"},
        "consolidated_at": None,
        "consolidation_failed_at": None,
        "state": "valid",
        "invalidation_reason": None,
        "invalidated_at": None,
        "edited_at": None,
        "updated_at": row["updated_at"],
        "superseded_by": None,
        "trust": "normal",
        "risks": [],
        "source_memory_ids": [],
    }


def test_memories_are_filtered_by_type_document_entity_and_text(world: World) -> None:
    world.add(T, B, "d1", [world.unit("Ana likes TEA.", entities=["Ana"]), world.unit("Bo ran.", network=EXPERIENCE)])
    world.add(T, B, "d2", [world.unit("Rain fell.", context="ﬁeld notes"), world.unit("Nice.", network=OPINION)])
    world.add(T, B, "d3", [world.unit("Ana is kind.", network=OBSERVATION, entities=["Ana"])])
    assert texts(world, type="experience") == ["Bo ran."]
    assert set(texts(world, document_id="d2")) == {"Rain fell.", "Nice."}
    assert texts(world, document_id="d9") == []
    ana = read(world, "list_entities", limit=10, offset=0)["items"][0]["id"]
    assert texts(world, entity_id=ana) == ["Ana is kind.", "Ana likes TEA."]
    assert texts(world, entity_id=ana.upper(), type="world") == ["Ana likes TEA."]
    assert texts(world, entity_id=NOBODY) == []
    assert texts(world, q="tea") == ["Ana likes TEA."]
    assert texts(world, q="FIELD") == ["Rain fell."]
    assert texts(world, q="field", type="experience") == []
    assert set(texts(world, consolidation_state="pending")) == {"Ana likes TEA.", "Bo ran.", "Rain fell."}
    assert texts(world, consolidation_state="done") == texts(world, consolidation_state="failed") == []
    with pytest.raises(BadRequest):
        memories(world, type="secret")
    with pytest.raises(BadRequest):
        memories(world, entity_id="abc")


def test_tag_modes_treat_untagged_memories_as_the_contract_says(world: World) -> None:
    world.add(T, B, "d", [world.unit(name, tags=tags) for name, tags in (("-", ()), ("a", ("a",)), ("ab", ("a", "b")))])
    modes = {
        "any": {"-", "a", "ab"},
        "all": {"-", "ab"},
        "any_strict": {"a", "ab"},
        "all_strict": {"ab"},
        "exact": {"ab"},
    }
    for mode, expected in modes.items():
        assert set(texts(world, tags=("b", "a"), tags_match=mode)) == expected, mode
        assert set(texts(world, tags_match=mode)) == ({"-"} if mode == "exact" else {"-", "a", "ab"}), mode
    with pytest.raises(Unprocessable):
        memories(world, tags=("a",), tags_match="some")


def test_a_time_window_holds_its_start_and_not_its_end_and_no_unknown_instant(world: World) -> None:
    for day in range(3):
        at = START + day * DAY
        world.add(T, B, f"d{day}", [world.unit(f"day {day}", mentioned_at=at, occurred_start=at)], at=at)
    world.add(T, B, "d9", [world.unit("undated")], at=START + 9 * DAY)
    for field in ("created_at", "updated_at", "mentioned_at", "occurred_start"):
        window = {"time_field": field, "start": START, "end": START + 2 * DAY}
        assert texts(world, **window) == ["day 1", "day 0"], field
    assert texts(world, time_field="occurred_end", start=0) == []
    assert texts(world, time_field="mentioned_at", end=START + DAY) == ["day 0"]
    assert texts(world, time_field="created_at", start=START + 2 * DAY) == ["day 2", "undated"]


def test_readers_by_updated_at_see_a_change_of_tags(world: World) -> None:
    first = world.add(T, B, "d", [world.unit("one"), world.unit("two")])
    mark = world.now()
    world.apply(T, B, UnitsRetagged((first + 1,), ("x",), world.now()))
    assert texts(world, time_field="updated_at", start=mark) == ["two"]


def test_invalidated_memories_are_apart_and_replaced_ones_in_neither_list(world: World) -> None:
    kept, wrong, old = (world.unit(text) for text in ("kept", "wrong", "old"))
    first = world.add(T, B, "d", [kept, wrong, old])
    at = world.now()
    world.apply(T, B, UnitsRetired((first + 1,), at, state="invalidated"), UnitsRetired((first + 2,), at))
    assert texts(world) == ["kept"]
    assert texts(world, state="invalidated") == ["wrong"]
    row = read(world, "get_memory", memory_id=wrong.id)
    assert (row["state"], row["invalidated_at"]) == ("invalidated", iso(at))
    row = read(world, "get_memory", memory_id=old.id)
    assert (row["text"], row["state"], row["retired_at"]) == ("old", "valid", iso(at))


def test_a_single_memory_has_the_keys_of_the_contract_and_loads_nothing(world: World) -> None:
    unit = world.unit("Ana met Bo.", entities=["Ana", "Bo"], tags=("a",))
    world.add(T, B, "d", [unit], params={"observation_scopes": [["a"]]})
    row = read(world, "get_memory", memory_id=unit.id.upper())
    assert row.keys() >= {
        *("id", "text", "context", "date", "type", "mentioned_at", "occurred_start", "occurred_end", "entities"),
        *("document_id", "chunk_id", "tags", "metadata", "observation_scopes", "state", "invalidation_reason"),
        *("invalidated_at", "edited_at", "consolidated_at", "consolidation_failed_at"),
    }
    assert "fact_type" not in row and "source_memory_ids" not in row
    assert (row["type"], row["entities"], row["observation_scopes"]) == ("world", ["Ana", "Bo"], [["a"]])
    assert not world.partition.open_banks()
    with pytest.raises(BadRequest):
        read(world, "get_memory", memory_id="abc")
    with pytest.raises(NotFound, match=f"Memory '{NOBODY}' not found"):
        read(world, "get_memory", memory_id=NOBODY)
    world.apply(T, B, UnitsErased((0,), world.now()))
    with pytest.raises(NotFound):
        read(world, "get_memory", memory_id=unit.id)


def test_an_observation_tells_its_sources(world: World) -> None:
    unit = world.unit("Ana is kind.", network=OBSERVATION)
    world.add(T, B, "d", [unit])
    row = read(world, "get_memory", memory_id=unit.id)
    assert (row["source_memory_ids"], row["source_memories"], row["history"]) == ([], [], [])


# -- documents and chunks ----------------------------------------------------------------------------------------------


def test_documents_come_latest_write_first_with_their_live_units(world: World) -> None:
    first = world.add(T, B, "d1", [world.unit("one"), world.unit("two"), world.unit("three")])
    world.add(T, B, "d2", [], params={"event_date": START, "context": "c"}, metadata={"k": 1}, content_hash="abc")
    world.apply(T, B, UnitsRetired((first,), world.now()))
    found = read(world, "list_documents", filters=DocumentFilters())
    assert (found["total"], found["total_is_estimate"]) == (2, False)
    newest, oldest = found["items"]
    assert (newest["id"], newest["memory_unit_count"], newest["content_hash"]) == ("d2", 0, "abc")
    assert newest["retain_params"] == {"event_date": iso(START), "context": "c"}
    assert newest["document_metadata"] == {"k": 1}
    assert (oldest["id"], oldest["memory_unit_count"], oldest["matched_fields"]) == ("d1", 2, [])
    assert oldest["content_hash"] == hashlib.sha256(b"one\ntwo\nthree").hexdigest()
    assert (oldest["retain_params"], oldest["document_metadata"], oldest["bank_id"]) == (None, None, B)
    assert documents(world, limit=1, offset=1) == ["d1"]
    assert documents(world, limit=0) == []


def test_documents_are_filtered_by_tags_window_and_words(world: World) -> None:
    world.add(T, B, "trip-notes", [world.unit("We saw a Castle.")], tags=("a",), at=START)
    world.add(T, B, "untagged", [world.unit("castle trip")], at=START + DAY)
    world.add(T, B, "hidden", [world.unit("castle")], tags=("a", "b"), keep_text=False, at=START + 2 * DAY)
    assert documents(world, tags=("a",)) == ["hidden", "trip-notes"]
    assert documents(world, tags=("a",), tags_match="any") == ["hidden", "untagged", "trip-notes"]
    assert documents(world, tags=("a", "b"), tags_match="all_strict") == ["hidden"]
    assert documents(world, tags_match="exact") == ["untagged"]
    assert documents(world, start=START + DAY, end=START + 2 * DAY) == ["untagged"]
    assert documents(world, time_field="updated_at", start=START + 2 * DAY) == ["hidden"]
    found = read(world, "list_documents", filters=DocumentFilters(q="TRIP"))["items"]
    assert {row["id"]: row["matched_fields"] for row in found} == {"trip-notes": ["id"], "untagged": ["original_text"]}
    assert documents(world, q="castle") == ["untagged", "trip-notes"]


def test_a_document_gives_its_text_back_to_the_letter(world: World) -> None:
    units = [world.unit("one"), world.unit("two", chunk_index=1, network=EXPERIENCE)]
    world.add(T, B, "a/b", units, chunks=[("", "Part one."), ("\n\n", "Part two.")])
    row = read(world, "get_document", document_id="a/b")
    assert row["original_text"] == "Part one.\n\nPart two."
    assert row["content_hash"] == hashlib.sha256(row["original_text"].encode()).hexdigest()
    assert (row["memory_unit_count"], row["nodes_by_fact_type"]) == (2, {"world": 1, "experience": 1})
    assert (row["observation_scopes"], row["attachments"]) == (None, None)
    world.apply(T, B, UnitsRetired((0,), world.now()))
    assert read(world, "get_document", document_id="a/b")["nodes_by_fact_type"] == {"experience": 1}
    world.add(T, B, "quiet", [world.unit("x")], keep_text=False)
    row = read(world, "get_document", document_id="quiet")
    assert (row["original_text"], row["content_hash"]) == (None, None)
    assert read(world, "list_chunks", document_id="quiet", limit=10, offset=0)["total"] == 0
    assert not world.partition.open_banks()
    with pytest.raises(NotFound, match="Document 'no' not found"):
        read(world, "get_document", document_id="no")


def test_chunks_come_in_order_by_page(world: World) -> None:
    world.add(T, B, "d", [], chunks=[("", f"part {i}") for i in range(12)])
    found = read(world, "list_chunks", document_id="d", limit=3, offset=9)
    assert (found["total"], [row["chunk_index"] for row in found["items"]]) == (12, [9, 10, 11])
    assert found["items"][0]["chunk_id"] == "bank_d_9" and found["items"][0]["chunk_text"] == "part 9"
    with pytest.raises(NotFound):
        read(world, "list_chunks", document_id="no", limit=3, offset=0)


def test_a_chunk_is_found_however_its_bank_and_document_use_underscores(world: World) -> None:
    for bank, document in (("my_bank", "doc_1"), ("plain", "d"), ("_", "_"), ("my", "other")):
        world.add(T, bank, document, [], chunks=[("", f"{bank} {document} {i}") for i in range(2)])
        found = read(world, "find_chunk", bank_id="", chunk_id=f"{bank}_{document}_1")
        assert [(row["bank_id"], row["document_id"], row["chunk_text"]) for row in found] == [
            (bank, document, f"{bank} {document} 1")
        ]
        assert read(world, "find_chunk", bank_id="", tenant="other", chunk_id=f"{bank}_{document}_1") == []
    for bad in ("", "_", "x", "plain_d", "plain_d_", "plain_d_9", "plain_d_01", "plain_d_-1", "plain_d_²", "_d_0"):
        assert read(world, "find_chunk", bank_id="", chunk_id=bad) == [], bad
    assert read(world, "find_chunk", bank_id="", chunk_id="plain_d_" + "9" * 5000) == []


def test_one_document_id_in_two_banks_names_two_documents(world: World) -> None:
    world.add(T, "one", "d1", [world.unit("first")])
    world.add(T, "two", "d1", [world.unit("second")])
    world.apply(T, "one", UnitsErased((0,), world.now()))
    assert read(world, "get_document", "one", document_id="d1")["memory_unit_count"] == 0
    assert read(world, "get_document", "two", document_id="d1")["memory_unit_count"] == 1


# -- tags and entities -------------------------------------------------------------------------------------------------


def test_tags_are_counted_over_live_memories_most_used_first(world: World) -> None:
    tags = [("user:Ana", "b"), ("user:bo", "b"), ("user:bo",), ("gone",)]
    first = world.add(T, B, "d", [world.unit("x", tags=own) for own in tags])
    world.apply(T, B, UnitsRetired((first + 3,), world.now()))

    def listed(q: str | None = None, source: str = "memories", limit: int = 10, offset: int = 0) -> list[Any]:
        found = read(world, "list_tags", q=q, source=source, limit=limit, offset=offset)
        return [(row["tag"], row["count"]) for row in found["items"]]

    assert listed() == [("b", 2), ("user:bo", 2), ("user:Ana", 1)]
    assert listed("USER:*") == [("user:bo", 2), ("user:Ana", 1)]
    assert listed("*a*") == [("user:Ana", 1)]
    assert listed("user:ana") == [("user:Ana", 1)]
    assert listed("user:*ana*ana") == listed("user") == []
    assert listed(limit=1, offset=1) == [("user:bo", 2)]
    assert listed(source="mental_models") == []
    assert listed("*" * 500 + "z") == []


def test_entities_are_counted_over_live_memories_and_within_a_tag_scope(world: World) -> None:
    rows = [(["Ana", "Bo"], ("a",), START), (["Bo"], ("b",), START + DAY), (["Cy"], ("b",), None), (["Bo"], (), None)]
    world.add(T, B, "d", [world.unit("x", entities=e, tags=tags, mentioned_at=at) for e, tags, at in rows])
    world.add(T, B, "e", [world.unit("x", entities=["Dora"])])
    world.apply(T, B, UnitsRetired((4,), world.now()))

    def listed(**scope: Any) -> list[Any]:
        found = read(world, "list_entities", **{"tags": (), "tags_match": "any", "tag_groups": None}, **PAGE | scope)
        return [(row["canonical_name"], row["mention_count"]) for row in found["items"]]

    PAGE = {"limit": 10, "offset": 0}
    assert listed() == [("Bo", 3), ("Ana", 1), ("Cy", 1)]
    assert listed(limit=1, offset=1) == [("Ana", 1)]
    found = read(world, "list_entities", tags=("a",), tags_match="any", tag_groups=None, **PAGE)["items"]
    assert [(row["canonical_name"], row["mention_count"]) for row in found] == [("Bo", 2), ("Ana", 1)]
    bo = found[0]
    assert (bo["first_seen"], bo["last_seen"]) == (iso(START), iso(START))
    strict = {"tags": ("b",), "tags_match": "any_strict", "tag_groups": None}
    assert [row["canonical_name"] for row in read(world, "list_entities", **strict, **PAGE)["items"]] == ["Bo", "Cy"]
    groups = {"tags": (), "tags_match": "any", "tag_groups": [{"not": {"tags": ["b"]}}]}
    found = read(world, "list_entities", **groups, **PAGE)["items"]
    assert [(row["canonical_name"], row["mention_count"]) for row in found] == [("Bo", 2), ("Ana", 1)]
    one = read(world, "get_entity", entity_id=bo["id"])
    assert (one["mention_count"], one["observations"], one["last_seen"]) == (3, [], iso(START + DAY))
    assert read(world, "get_entity", entity_id=bo["id"], **strict)["mention_count"] == 1
    with pytest.raises(NotFound):
        ana = next(row["id"] for row in found if row["canonical_name"] == "Ana")
        read(world, "get_entity", entity_id=ana, **strict)
    with pytest.raises(NotFound, match=f"Entity '{NOBODY}' not found"):
        read(world, "get_entity", entity_id=NOBODY)
    with pytest.raises(BadRequest):
        read(world, "get_entity", entity_id="abc")
    with pytest.raises(Unprocessable):
        read(world, "list_entities", tags=(), tags_match="any", tag_groups=[{"or": "x"}], **PAGE)


# -- operations --------------------------------------------------------------------------------------------------------


def _batch(world: World) -> tuple[str, list[str]]:
    """A parent with two children, the first of them done."""
    parent, children = world.new_id(), [world.new_id(), world.new_id()]
    now = world.now()
    result = {"is_parent": True, "items_count": 2, "total_tokens": 9, "num_sub_batches": 2}
    common = {"created_at": now, "updated_at": now}
    world.operation(
        T, B, id=parent, kind="batch_retain", status="processing", children=tuple(children), result=result, **common
    )
    done = {"status": "completed", "receipt": ({"document_id": "d", "unit_ids": ["u"]},), "completed_at": now}
    payload = zlib.compress(codec.pack([{"content": "Ana likes tea."}]))
    for index, child in enumerate(children):
        more: dict[str, Any] = done if index == 0 else {"attempts": 3, "next_retry_at": now, "error": "Try again."}
        fields = {"items_count": 1, "result": {"sub_batch_index": index}, "parent": parent, **common, **more}
        world.operation(T, B, payload if index else None, id=child, **fields)
    return parent, children


def test_operations_are_listed_newest_first_and_a_parent_before_its_children(world: World) -> None:
    old = world.operation(T, B, kind="consolidation", status="completed")
    parent, children = _batch(world)

    def listed(**params: Any) -> list[str]:
        every = {"status": None, "type": None, "limit": 20, "offset": 0, "exclude_parents": False}
        return [row["id"] for row in read(world, "list_operations", **{**every, **params})["operations"]]

    assert listed() == [parent, *children, old]
    assert listed(exclude_parents=True) == [*children, old]
    assert listed(status="completed") == [children[0], old]
    assert listed(type="retain", status="pending") == [children[1]]
    assert listed(limit=1, offset=1) == [children[0]]
    found = read(world, "list_operations", status=None, type=None, limit=20, offset=0, exclude_parents=False)
    assert (found["bank_id"], found["total"], found["limit"]) == (B, 4, 20)
    row = found["operations"][2]
    assert (row["task_type"], row["operation_type"], row["operation_id"]) == ("retain", "retain", children[1])
    assert (row["retry_count"], row["error_message"], row["status"]) == (2, "Try again.", "pending")
    assert row["next_retry_at"] == row["created_at"]
    with pytest.raises(BankNotFound):
        read(world, "list_operations", "no", status=None, type=None, limit=1, offset=0, exclude_parents=False)


def test_an_operation_tells_its_children_and_payload(world: World) -> None:
    parent, children = _batch(world)
    row = read(world, "get_operation", operation_id=parent, include_payload=True)
    assert row["result_metadata"] == {"is_parent": True, "items_count": 2, "total_tokens": 9, "num_sub_batches": 2}
    assert row["task_payload"] is None
    assert [(c["operation_id"], c["sub_batch_index"], c["status"]) for c in row["child_operations"]] == [
        (children[0], 0, "completed"),
        (children[1], 1, "pending"),
    ]
    row = read(world, "get_operation", operation_id=children[1].upper(), include_payload=True)
    assert (row["id"], row["child_operations"]) == (children[1], None)
    assert row["task_payload"] == {"items": [{"content": "Ana likes tea."}]}
    assert read(world, "get_operation", operation_id=children[1], include_payload=False)["task_payload"] is None


def test_an_unknown_operation_is_a_status_and_no_error(world: World) -> None:
    world.bank(T, B)
    for bank in (B, "no such bank"):
        row = read(world, "get_operation", bank, operation_id=NOBODY, include_payload=True)
        assert (row.pop("operation_id"), row.pop("status")) == (NOBODY, "not_found")
        assert set(row.values()) == {None} and len(row) == 15
    with pytest.raises(BadRequest):
        read(world, "get_operation", operation_id="abc", include_payload=False)


def test_a_receipt_holds_what_an_operation_or_its_children_stored(world: World) -> None:
    parent, children = _batch(world)
    stored = [{"document_id": "d", "unit_ids": ("u",)}]
    assert read(world, "receipt", operation_id=parent) == {
        "operation_id": parent,
        "status": "processing",
        "items": stored,
    }
    assert read(world, "receipt", operation_id=children[0])["items"] == stored
    assert read(world, "receipt", operation_id=children[1])["items"] == []
    world.apply(T, B, OperationErased(children[0]))
    assert read(world, "receipt", operation_id=parent)["items"] == []
    with pytest.raises(NotFound, match=f"Operation '{NOBODY}' not found"):
        read(world, "receipt", operation_id=NOBODY)
    with pytest.raises(BadRequest):
        read(world, "receipt", operation_id="abc")

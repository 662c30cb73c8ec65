"""Every tool does what it says, and says what went wrong in its own way."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_daemon import called, client

from recalld.daemon.mcp import catalog
from recalld.daemon.sandbox import Sandbox

NOBODY = "00000000-0000-4000-8000-000000000000"


def new_bank() -> str:
    return f"bank-{uuid.uuid4().hex[:8]}"


async def finished(session: Client, operation_id: str, **bank: str) -> dict[str, Any]:
    end = time.monotonic() + 20
    while True:
        state = await called(session, "get_operation", operation_id=operation_id, **bank)
        if state["status"] in ("completed", "failed", "cancelled") or time.monotonic() > end:
            return state
        await asyncio.sleep(0.05)


async def test_a_memory_goes_in_and_comes_out(daemon: Sandbox) -> None:
    bank = new_bank()
    async with client(daemon, f"/mcp/{bank}/") as session:
        queued = await called(
            session,
            "retain",
            content="Ana moved to Porto.",
            timestamp="2026-02-01T10:00:00Z",
            tags=["home"],
            metadata={"from": "chat"},
            document_id="d1",
        )
        assert queued["status"] == "accepted" and queued["message"]
        assert (await finished(session, queued["operation_id"]))["status"] == "completed"
        stored = await called(session, "sync_retain", content="Ana adopted a greyhound.", document_id="d2")
        assert stored["status"] == "completed" and uuid.UUID(stored["memory_ids"][0])

        found = await called(
            session, "recall", query="Where does Ana live?", include_chunks=True, include_entities=True
        )
        first = found["results"][0]
        assert "Porto" in first["text"]
        assert first["fact_type"] == "world" and "type" not in first and "attachments" not in first
        assert first["context"] == "general" and first["tags"] == ["home"]
        assert found["chunks"] and found["entities"]
        plain = await called(session, "recall", query="Where does Ana live?", tags='["home"]', tags_match="any_strict")
        assert [one["text"] for one in plain["results"]] == [first["text"]]
        assert set(plain) == {"results", "trace", "entities", "chunks", "source_facts", "source_facts_truncated"}
        assert plain["chunks"] is None and plain["entities"] is None and plain["source_facts"] is None
        untagged = await called(session, "recall", query="Ana", tags=[], tags_match="exact")
        assert [one["text"] for one in untagged["results"]] == ["Ana adopted a greyhound."]

        answer = await called(
            session, "reflect", query="Where does Ana live?", include_based_on=True, include_trace=True
        )
        assert "Porto" in answer["text"]
        assert any("Porto" in one["text"] for one in answer["based_on"]["world"])
        assert isinstance(answer["tool_trace"], list) and isinstance(answer["llm_trace"], list)
        assert "structured_output" not in answer
        assert "based_on" not in await called(session, "reflect", query="Where does Ana live?")


async def test_a_queued_append_adds_to_its_document(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        await called(session, "sync_retain", content="The kettle is red.", document_id="d")
        more = {"content": "The lamp is green.", "document_id": "d", "update_mode": "append"}
        queued = await called(session, "retain", **more)
        assert (await finished(session, queued["operation_id"]))["status"] == "completed"
        text = (await called(session, "get_document", document_id="d"))["original_text"]
        assert "kettle" in text and "lamp" in text


async def test_memories_are_read_corrected_and_retired(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        stored = await called(session, "sync_retain", content="Rui works at Hagen Dental.", tags=["work"])
        memory_id = stored["memory_ids"][0]
        page = await called(session, "list_memories", q="Hagen", limit=5)
        assert (page["total"], page["limit"], page["offset"]) == (1, 5, 0)
        assert page["items"][0]["id"] == memory_id
        assert (await called(session, "list_memories", type="opinion"))["total"] == 0
        assert (await called(session, "get_memory", memory_id=memory_id))["text"] == "Rui works at Hagen Dental."
        edited = await called(session, "update_memory", memory_id=memory_id, text="Rui works at Oslo Dental.")
        assert edited["text"] == "Rui works at Oslo Dental."
        gone = await called(session, "invalidate_memory", memory_id=memory_id, reason="he left")
        assert gone["state"] == "invalidated"
        assert (await called(session, "list_memories"))["total"] == 0
        back = await called(session, "invalidate_memory", memory_id=memory_id, restore=True)
        assert back["state"] == "valid"
        assert (await called(session, "list_tags"))["items"][0]["tag"] == "work"
        cleared = await called(session, "clear_memories")
        assert cleared["status"] == "cleared" and cleared["deleted_count"] >= 1
        assert (await called(session, "list_memories"))["total"] == 0


async def test_documents_are_listed_read_and_deleted(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        await called(session, "sync_retain", content="The kettle is red.", document_id="kitchen/one")
        page = await called(session, "list_documents", q="kitchen")
        assert [one["id"] for one in page["items"]] == ["kitchen/one"]
        assert "kettle" in (await called(session, "get_document", document_id="kitchen/one"))["original_text"]
        deleted = await called(session, "delete_document", document_id="kitchen/one")
        assert deleted == {
            "status": "deleted",
            "document_id": "kitchen/one",
            "document_deleted": True,
            "memory_units_deleted": 1,
        }


async def test_operations_are_listed_and_cancelled(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        queued = await called(session, "retain", content="The kettle is red.")
        await finished(session, queued["operation_id"])
        page = await called(session, "list_operations", type="batch_retain", limit=1)
        assert page["total"] == 1 and page["operations"][0]["id"] == queued["operation_id"]
        late = await called(session, "cancel_operation", operation_id=queued["operation_id"])
        assert late.get("success") or "error" in late
        assert "error" in await called(session, "cancel_operation", operation_id=NOBODY)


async def test_banks_are_made_shown_changed_and_deleted(daemon: Sandbox) -> None:
    bank = new_bank()
    async with client(daemon, "/mcp/") as session:
        made = await called(session, "create_bank", bank_id=bank, name="Kitchen", mission="Know the kitchen.")
        assert made == {
            "bank_id": bank,
            "name": "Kitchen",
            "disposition": {"skepticism": 3, "literalism": 3, "empathy": 3},
            "mission": "Know the kitchen.",
        }
        assert await called(session, "get_bank", bank_id=bank) == made
        listed = await called(session, "list_banks", query=bank)
        assert (listed["total"], listed["limit"], listed["offset"]) == (1, 100, 0)
        assert listed["banks"][0]["bank_id"] == bank
        await called(session, "sync_retain", bank_id=bank, content="The kettle is red.", document_id="d")
        stats = await called(session, "get_bank_stats", bank_id=bank)
        assert stats["node_counts"] == {"world": 1} and stats["total_documents"] == 1
        assert {"link_counts", "link_counts_by_fact_type", "link_breakdown", "operations"} <= set(stats)
        settings = {"disposition_empathy": 5, "retain_mission": "Colours."}
        changed = await called(session, "update_bank", bank_id=bank, name="Galley", config_updates=settings)
        assert (changed["name"], changed["mission"]) == ("Galley", "Know the kitchen.")
        assert changed["disposition"]["empathy"] == 5
        assert changed["overrides"]["retain_mission"] == "Colours."
        assert changed["config"]["retain_mission"] == "Colours."
        cleared = await called(session, "update_bank", bank_id=bank, config_updates={"retain_mission": None})
        assert "retain_mission" not in cleared["overrides"]
        deleted = await called(session, "delete_bank", bank_id=bank)
        counts = ("memory_units_deleted", "entities_deleted", "documents_deleted")
        assert {name: deleted[name] for name in ("status", "bank_id", "bank_deleted")} == {
            "status": "deleted",
            "bank_id": bank,
            "bank_deleted": True,
        }
        assert [deleted[name] for name in counts] == [1, deleted["entities_deleted"], 1]
        assert await called(session, "get_bank", bank_id=bank) == {"error": f"Bank '{bank}' not found"}


async def test_mental_models_live_from_creation_to_deletion(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        await called(session, "sync_retain", content="Ana moved to Porto.")
        made = await called(
            session,
            "create_mental_model",
            name="Home",
            source_query="Where does Ana live?",
            mental_model_id="home",
            tags_match="any",
            trigger={"mode": "full"},
            trigger_refresh_after_consolidation=True,
        )
        assert (made["mental_model_id"], made["status"]) == ("home", "created")
        assert (await finished(session, made["operation_id"]))["status"] == "completed"
        model = await called(session, "get_mental_model", mental_model_id="home")
        assert "Porto" in model["content"]
        assert model["trigger"]["refresh_after_consolidation"] is True and model["trigger"]["tags_match"] == "any"
        page = await called(session, "list_mental_models")
        assert page["total"] == 1 and page["items"][0]["id"] == "home" and set(page) == {"items", "total"}
        changed = await called(
            session, "update_mental_model", mental_model_id="home", name="House", trigger={"tags_match": None}
        )
        assert changed["name"] == "House" and changed["trigger"]["tags_match"] is None
        assert changed["trigger"]["refresh_after_consolidation"] is True
        wrong = await called(session, "update_mental_model", mental_model_id="home", trigger={"nonsense": 1})
        assert "nonsense" in wrong["error"]
        cleared = await called(session, "clear_mental_model", mental_model_id="home")
        assert (cleared["mental_model_id"], cleared["status"]) == ("home", "cleared")
        queued = await called(session, "refresh_mental_model", mental_model_id="home")
        assert queued["status"] == "queued"
        assert (await finished(session, queued["operation_id"]))["status"] == "completed"
        deleted = await called(session, "delete_mental_model", mental_model_id="home")
        assert deleted == {"status": "deleted", "mental_model_id": "home"}
        assert "not found" in (await called(session, "get_mental_model", mental_model_id="home"))["error"]


async def test_directives_are_made_listed_and_deleted(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        await called(session, "sync_retain", content="tea is hot")
        made = await called(session, "create_directive", name="Short", content="Answer in one line.", priority=3)
        assert (made["priority"], made["is_active"], made["tags"]) == (3, True, [])
        await called(session, "create_directive", name="Off", content="Never.", is_active=False)
        active = await called(session, "list_directives")
        assert [one["name"] for one in active["items"]] == ["Short"] and active["total"] == 1
        assert (await called(session, "list_directives", active_only=False))["total"] == 2
        deleted = await called(session, "delete_directive", directive_id=made["id"])
        assert deleted == {"status": "deleted", "directive_id": made["id"]}
        assert "not found" in (await called(session, "delete_directive", directive_id=made["id"]))["error"]


async def test_the_knowledge_base_is_built_searched_and_pruned(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        await called(session, "sync_retain", content="The greyhound is afraid of the kettle.")
        folder = await called(session, "create_knowledge_folder", name="Pets")
        page = await called(
            session,
            "create_knowledge_page",
            name="Fears",
            source_query="What is the greyhound afraid of?",
            parent_id=folder["id"],
            trigger={"fact_types": ["world"]},
        )
        assert set(page) == {"page_id", "mental_model_id", "operation_id"}
        assert (await finished(session, page["operation_id"]))["status"] == "completed"
        tree = await called(session, "get_knowledge_base_tree")
        assert tree["roots"][0]["children"][0]["id"] == page["page_id"]
        assert "parent_id" not in tree["roots"][0], "null fields are left out"
        assert "kettle" in (await called(session, "get_knowledge_page", page_id=page["page_id"]))["markdown"]
        found = await called(session, "search_knowledge_base", query="greyhound kettle")
        assert found["total"] == 1 and found["results"][0]["id"] == page["page_id"]
        moved = await called(session, "update_knowledge_node", node_id=page["page_id"], name="Frights", parent_id="")
        assert moved["name"] == "Frights" and moved["parent_id"] is None
        for node in (folder["id"], page["page_id"]):
            assert (await called(session, "delete_knowledge_node", node_id=node))["status"] == "deleted"
        assert (await called(session, "get_knowledge_base_tree"))["roots"] == []


ARGUMENTS: dict[str, dict[str, Any]] = {
    "recall": {"query": "tea"},
    "reflect": {"query": "tea"},
    "get_mental_model": {"mental_model_id": "m"},
    "update_mental_model": {"mental_model_id": "m", "name": "n"},
    "delete_mental_model": {"mental_model_id": "m"},
    "refresh_mental_model": {"mental_model_id": "m"},
    "clear_mental_model": {"mental_model_id": "m"},
    "create_directive": {"name": "n", "content": "c"},
    "delete_directive": {"directive_id": "d"},
    "get_memory": {"memory_id": NOBODY},
    "update_memory": {"memory_id": NOBODY, "text": "t"},
    "invalidate_memory": {"memory_id": NOBODY},
    "get_document": {"document_id": "d"},
    "delete_document": {"document_id": "d"},
    "get_operation": {"operation_id": NOBODY},
    "cancel_operation": {"operation_id": NOBODY},
    "search_knowledge_base": {"query": "tea"},
    "get_knowledge_page": {"page_id": "p"},
    "update_knowledge_node": {"node_id": "n", "name": "m"},
    "delete_knowledge_node": {"node_id": "n"},
}
MAKE_BANKS = (
    "retain", "sync_retain", "create_bank", "create_mental_model", "create_knowledge_folder", "create_knowledge_page",
)  # fmt: skip


async def test_an_unknown_bank_is_said_by_every_tool_that_makes_none(daemon: Sandbox) -> None:
    bank = new_bank()
    async with client(daemon, "/mcp/") as session:
        for tool in catalog.TOOLS:
            if tool.name in MAKE_BANKS or tool.name == "list_banks":
                continue
            payload = await called(session, tool.name, bank_id=bank, **ARGUMENTS.get(tool.name, {}))
            assert payload == {"error": f"Bank '{bank}' not found", **tool.empty}, tool.name
        assert (await called(session, "list_banks", query=bank))["total"] == 0


async def test_tools_that_may_make_a_bank_are_the_ones_that_do(daemon: Sandbox) -> None:
    assert {tool.name for tool in catalog.TOOLS if tool.makes_bank} == set(MAKE_BANKS)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("recall", {"query": "?!"}, {"results": []}),
        ("recall", {"query": "tea", "types": ["gossip"]}, {"results": []}),
        ("recall", {"query": "tea", "budget": "endless"}, {"results": []}),
        ("recall", {"query": "tea", "query_timestamp": "yesterday"}, {"results": []}),
        ("reflect", {"query": "  "}, {"text": ""}),
        ("list_memories", {"type": "gossip"}, {"items": []}),
        ("get_memory", {"memory_id": "not a uuid"}, {}),
        ("list_operations", {"status": "sleeping"}, None),
        ("get_mental_model", {"mental_model_id": "m", "detail": "all"}, {}),
        ("update_bank", {"config_updates": {"no_such_setting": 1}}, {}),
        ("search_knowledge_base", {"query": "tea", "limit": 51}, {"results": []}),
    ],
)
async def test_what_rest_refuses_is_a_payload_with_an_error(
    daemon: Sandbox, tool: str, arguments: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    async with client(daemon, "/mcp/refusals/", mode="auto") as session:
        await called(session, "sync_retain", content="The tea is hot.")
        payload = await called(session, tool, **arguments)
        if expected is not None:
            assert isinstance(payload.pop("error"), str)
            assert payload == expected


async def test_a_failed_retain_says_so_in_its_own_words(daemon: Sandbox) -> None:
    async with client(daemon, "/mcp/") as session:
        for tool in ("retain", "sync_retain"):
            payload = await called(session, tool, content="   ")
            assert payload["status"] == "error" and "content" in payload["message"]
        orphan = await called(session, "retain", content="tea", update_mode="append")
        assert orphan["status"] == "error" and "document_id" in orphan["message"]
        assert (await called(session, "retain", content="tea", bank_id="_x"))["status"] == "error"


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("recall", {}, "query"),
        ("recall", {"query": 7}, "query"),
        ("recall", {"query": "tea", "max_tokens": "many"}, "max_tokens"),
        ("recall", {"query": "tea", "tags_match": "some"}, "tags_match"),
        ("list_directives", {"limit": 0}, "limit"),
        ("list_directives", {"limit": 1001}, "limit"),
        ("list_operations", {"limit": 101}, "limit"),
        ("list_memories", {"limit": -1}, "limit"),
        ("create_mental_model", {"name": "n", "source_query": "q", "trigger": "soon"}, "trigger"),
        ("no_such_tool", {}, "no_such_tool"),
    ],
)
async def test_wrong_arguments_are_an_error_of_the_call(
    daemon: Sandbox, tool: str, arguments: dict[str, Any], named: str
) -> None:
    async with client(daemon) as session:
        result = await session.call_tool(tool, arguments)
    assert result.is_error
    assert named in result.content[0].text


async def test_unknown_arguments_are_dropped_and_json_in_a_text_is_read(daemon: Sandbox) -> None:
    async with client(daemon, f"/mcp/{new_bank()}/") as session:
        stored = await called(
            session, "sync_retain", content="The kettle is red.", metadata='{"a": "b"}', tags='["x"]', colour="red",
            bank_id="elsewhere",
        )  # fmt: skip
        memory = await called(session, "get_memory", memory_id=stored["memory_ids"][0])
        assert memory["metadata"] == {"a": "b"} and memory["tags"] == ["x"]


async def test_a_bank_may_keep_tools_from_itself(daemon: Sandbox) -> None:
    bank, other = new_bank(), new_bank()
    async with client(daemon, "/mcp/") as session:
        await called(session, "create_bank", bank_id=bank)
        await called(session, "create_bank", bank_id=other)
        allowed = {"mcp_enabled_tools": ["recall", "get_bank"]}
        await called(session, "update_bank", bank_id=bank, config_updates=allowed)
        assert (await called(session, "get_bank", bank_id=bank))["bank_id"] == bank
        refused = await called(session, "list_memories", bank_id=bank)
        assert "not enabled" in refused["error"] and refused["items"] == []
        assert (await called(session, "retain", bank_id=bank, content="tea"))["status"] == "error"
        assert (await called(session, "list_memories", bank_id=other))["total"] == 0


async def test_results_have_the_shape_of_their_mode(daemon: Sandbox) -> None:
    bank = new_bank()
    async with client(daemon, "/mcp/") as session:
        stored = await session.call_tool("sync_retain", {"content": "The kettle is red.", "bank_id": bank})
        several = await session.call_tool("list_memories", {"bank_id": bank})
    async with client(daemon, f"/mcp/{bank}") as session:
        single = await session.call_tool("list_memories", {})
    assert stored.structured_content["status"] == "completed"
    assert json.loads(stored.content[0].text) == stored.structured_content
    text = several.content[0].text
    assert several.structured_content == {"result": text}
    assert several.meta == {"fastmcp": {"wrap_result": True}}
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    assert single.structured_content == json.loads(text)
    assert single.content[0].text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    assert not single.meta

"""The knowledge base through the real HTTP path, and through the official client."""

from __future__ import annotations

import json
from typing import Any

import hindsight_client_api as low
import pytest
from hindsight_client import Hindsight

from .conftest import Wire

LYON = {"content": "Ana lives in Lyon.", "timestamp": "2026-02-01T10:00:00Z", "document_id": "lyon"}
PUMP = {
    "content": "The cellar pump failed on 10 June 2025.",
    "timestamp": "2026-02-01T10:00:00Z",
    "document_id": "pump",
}
FACTS = {"fact_types": ["world"]}


async def page(wire: Wire, name: str, query: str, **fields: Any) -> dict[str, Any]:
    body = {"name": name, "source_query": query, "trigger": FACTS, **fields}
    made: dict[str, Any] = await wire.ok("POST", "/knowledge-base/pages", body, wait="20")
    return made


async def test_a_page_is_a_mental_model_with_a_place(wire: Wire) -> None:
    await wire.retain(LYON)
    status, made = await wire("POST", "/knowledge-base/pages", {"name": "Ana", "source_query": "Where does Ana live?"})
    assert status == 201 and set(made) == {"page_id", "mental_model_id", "operation_id"}
    assert made["page_id"].startswith("kp-") and made["mental_model_id"].startswith("mm-")
    model = await wire.ok("GET", f"/mental-models/{made['mental_model_id']}")
    assert model["is_knowledge_page"] is True and model["max_tokens"] == 4096
    trigger = model["trigger"]
    assert (trigger["mode"], trigger["fact_types"]) == ("delta", ["observation"])
    assert trigger["exclude_mental_models"] is True and trigger["refresh_after_consolidation"] is True
    assert (await wire.ok("GET", "/mental-models", exclude_knowledge_pages="true"))["total"] == 0
    changed = await wire.ok("PATCH", f"/knowledge-base/nodes/{made['page_id']}", {"trigger": FACTS})
    assert changed["trigger"]["fact_types"] == ["world"] and changed["trigger"]["mode"] == "delta"
    await wire.ok("POST", f"/mental-models/{made['mental_model_id']}/refresh", wait="20")
    shown = await wire.ok("GET", f"/knowledge-base/pages/{made['page_id']}")
    assert set(shown) == {"id", "name", "type", "description", "tags", "timestamp", "body", "markdown"}
    assert (shown["type"], shown["description"]) == ("knowledge-page", "Where does Ana live?")
    head, body = shown["markdown"].split("---\n")[1:]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert list(fields) == ["id", "type", "title", "description", "timestamp", "tags"]
    assert json.loads(fields["title"]) == "Ana" and json.loads(fields["tags"]) == []
    assert body.strip() == shown["body"].strip() and "Ana lives in Lyon." in body


async def test_an_empty_page_says_so(wire: Wire) -> None:
    made = await page(wire, "Empty", "What is there?", tags=["type:note"])
    shown = await wire.ok("GET", f"/knowledge-base/pages/{made['page_id']}")
    assert (shown["type"], shown["body"]) == ("note", "") and shown["markdown"].endswith("---\n\nNo content yet.\n")


async def test_the_bank_may_have_its_own_defaults_for_pages(wire: Wire) -> None:
    updates = {"knowledge_page_default_trigger": {"refresh_cron": "0 3 * * *", "budget": "high"}}
    await wire.ok("PATCH", "/config", {"updates": updates})
    made = await wire.ok(
        "POST", "/knowledge-base/pages", {"name": "P", "source_query": "Q?", "trigger": {"budget": "low"}}
    )
    trigger = (await wire.ok("GET", f"/mental-models/{made['mental_model_id']}"))["trigger"]
    assert (trigger["refresh_cron"], trigger["refresh_after_consolidation"]) == ("0 3 * * *", False)
    assert (trigger["budget"], trigger["mode"]) == ("low", "delta")
    await wire.ok("PATCH", "/config", {"updates": {"knowledge_page_default_trigger": {"mode": "sometimes"}}})
    assert (await wire("POST", "/knowledge-base/pages", {"name": "R", "source_query": "Q?"}))[0] == 400


async def test_the_tree_has_folders_pages_and_moves(wire: Wire) -> None:
    outer = await wire.ok("POST", "/knowledge-base/folders", {"name": "Outer"})
    assert outer["id"].startswith("kf-") and (outer["kind"], outer["parent_id"], outer["children"]) == (
        "folder",
        None,
        [],
    )
    inner = await wire.ok("POST", "/knowledge-base/folders", {"name": "Inner", "parent_id": outer["id"]})
    made = await page(wire, "Leaf", "Q?", parent_id=inner["id"], tags=["a"])
    nodes = "/knowledge-base/nodes/"

    async def shape(**query: str) -> Any:
        def plain(rows: list[Any]) -> list[Any]:
            return [[one["name"], plain(one["children"])] for one in rows]

        return plain((await wire.ok("GET", "/knowledge-base/tree", **query))["roots"])

    assert await shape() == [["Outer", [["Inner", [["Leaf", []]]]]]]
    assert await shape(tags="a") == [["Outer", [["Inner", [["Leaf", []]]]]]]
    assert await shape(tags="b") == [] and await shape(tags="b", tags_match="any_strict") == []
    assert await shape(tag_groups=json.dumps([{"tags": ["a"]}])) != []
    assert (await wire("GET", "/knowledge-base/tree", tag_groups="{"))[0] == 400
    for parent in (outer["id"], inner["id"], made["page_id"], "kf-none"):
        assert (await wire("PATCH", nodes + outer["id"], {"parent_id": parent}))[0] == 400
    assert (await wire("PATCH", nodes + "kf-none", {"name": "x"}))[0] == 404
    assert (await wire("PATCH", nodes + outer["id"], {"source_query": "x"}))[0] == 400
    moved = await wire.ok("PATCH", nodes + made["page_id"], {"parent_id": None, "name": "Moved"})
    assert (moved["parent_id"], moved["name"]) == (None, "Moved")
    assert (await wire.ok("GET", f"/mental-models/{made['mental_model_id']}"))["name"] == "Moved"
    kept = await wire.ok("PATCH", nodes + made["page_id"], {"name": "Leaf"})
    assert kept["parent_id"] is None
    await wire.ok("PATCH", nodes + made["page_id"], {"parent_id": outer["id"]})
    assert await shape() == [["Outer", [["Inner", []], ["Leaf", []]]]]
    assert (await wire.ok("GET", "/verify"))["ok"]
    assert await wire.ok("DELETE", nodes + outer["id"]) == {"status": "deleted"}
    assert await shape() == [] and (await wire.ok("GET", "/mental-models"))["total"] == 0
    assert (await wire("DELETE", nodes + outer["id"]))[0] == 404
    verified = await wire.ok("GET", "/verify")
    assert verified["ok"] and verified["checked"]["page_nodes"] == 0


async def test_names_are_one_line_and_pages_of_a_folder_differ(wire: Wire) -> None:
    folder = await wire.ok("POST", "/knowledge-base/folders", {"name": "  A \n folder "})
    assert folder["name"] == "A folder"
    assert (await wire("POST", "/knowledge-base/folders", {"name": " "}))[0] == 400
    assert (await wire("POST", "/knowledge-base/folders", {"name": "x", "parent_id": "kf-none"}))[0] == 400
    assert (await wire("POST", "/knowledge-base/folders", {}))[0] == 422
    first = await page(wire, "Same", "Q?")
    assert (await wire("POST", "/knowledge-base/pages", {"name": "Same", "source_query": "Q?"}))[0] == 409
    second = await page(wire, "Same", "Q?", parent_id=folder["id"])
    nodes = "/knowledge-base/nodes/"
    assert (await wire("PATCH", nodes + second["page_id"], {"parent_id": None}))[0] == 409
    assert (await wire.ok("PATCH", nodes + first["page_id"], {"name": "Same"}))["name"] == "Same"
    assert (
        await wire("POST", "/knowledge-base/pages", {"name": "p", "source_query": "Q?", "parent_id": first["page_id"]})
    )[0] == 400


async def test_folders_are_nested_so_deep_and_no_deeper(wire: Wire) -> None:
    parent = None
    for level in range(32):
        parent = (await wire.ok("POST", "/knowledge-base/folders", {"name": f"{level}", "parent_id": parent}))["id"]
    assert (await wire("POST", "/knowledge-base/folders", {"name": "x", "parent_id": parent}))[0] == 400
    other = await wire.ok("POST", "/knowledge-base/folders", {"name": "other"})
    assert (await wire("PATCH", f"/knowledge-base/nodes/{other['id']}", {"parent_id": parent}))[0] == 400


async def test_a_new_question_queues_a_refresh(wire: Wire) -> None:
    await wire.retain(LYON, PUMP)
    made = await page(wire, "P", "Where does Ana live?")
    await wire.ok("PATCH", f"/knowledge-base/nodes/{made['page_id']}", {"source_query": "What happened to the pump?"})
    operations = (await wire.ok("GET", "/operations", type="refresh_mental_model"))["operations"]
    assert len(operations) == 2 and {one["mental_model_id"] for one in operations} == {made["mental_model_id"]}
    await wire.ok("POST", f"/mental-models/{made['mental_model_id']}/refresh", wait="20")
    assert "pump failed" in (await wire.ok("GET", f"/knowledge-base/pages/{made['page_id']}"))["body"]


async def test_a_deleted_model_takes_its_page_along(wire: Wire) -> None:
    made = await page(wire, "P", "Q?")
    await wire.ok("DELETE", f"/mental-models/{made['mental_model_id']}")
    assert (await wire("GET", f"/knowledge-base/pages/{made['page_id']}"))[0] == 404
    assert (await wire.ok("GET", "/verify"))["ok"]


async def test_pages_are_found_by_words_and_meaning(wire: Wire) -> None:
    await wire.retain(LYON, PUMP)
    ana = await page(wire, "Home of Ana", "Where does Ana live?", tags=[])
    pump = await page(wire, "Repairs", "What happened to the cellar pump?")
    await page(wire, "Unwritten", "Which boats are there?", tags=["empty"])
    found = await wire.ok("GET", "/knowledge-base/search", q="cellar pump")
    best = found["results"][0]
    assert set(best) == {"id", "name", "mental_model_id", "source_query", "snippet", "score", "updated_at"}
    assert best["id"] == pump["page_id"] and 0 < best["score"] <= 1 and "pump failed" in best["snippet"]
    assert found["total"] == len(found["results"])
    assert (await wire.ok("GET", "/knowledge-base/search", q="Ana"))["results"][0]["id"] == ana["page_id"]
    boats = (await wire.ok("GET", "/knowledge-base/search", q="boats", limit="1"))["results"]
    assert [(one["name"], one["snippet"]) for one in boats] == [("Unwritten", "No content yet.")]
    strict = await wire.ok("GET", "/knowledge-base/search", q="Ana pump boats", tags="empty", tags_match="any_strict")
    assert [one["name"] for one in strict["results"]] == ["Unwritten"]
    assert (await wire("GET", "/knowledge-base/search"))[0] == 422
    assert (await wire("GET", "/knowledge-base/search", q="x", limit="51"))[0] == 422


async def test_the_export_is_a_bundle_of_files(wire: Wire) -> None:
    await wire.retain(LYON)
    folder = await wire.ok("POST", "/knowledge-base/folders", {"name": "People"})
    made = await page(wire, "Ana", "Where does Ana live?", parent_id=folder["id"])
    files = {one["path"]: one["content"] for one in (await wire.ok("GET", "/knowledge-base/export"))["files"]}
    assert set(files) == {"index.md", f"{made['page_id']}.md", f"{made['page_id']}.log.md"}
    assert f"  - [Ana]({made['page_id']}.md): Where does Ana live?" in files["index.md"]
    assert "Ana lives in Lyon." in files[f"{made['page_id']}.md"]


async def test_an_unknown_bank_has_no_knowledge_base(wire: Wire) -> None:
    for path in ("tree", "export"):
        assert await wire("GET", f"/knowledge-base/{path}") == (404, {"detail": "Bank 'b' not found"})
    assert (await wire("GET", "/knowledge-base/search", q="x"))[0] == 404
    assert (await wire("GET", "/knowledge-base/pages/kp-x"))[0] == 404


async def test_the_official_client_has_all_of_it(wire: Wire) -> None:
    await wire.retain(LYON)
    client = Hindsight(base_url=wire.host)
    try:
        folder = await client.acreate_knowledge_folder("b", "People")
        made = await client.acreate_knowledge_page(
            "b", "Ana", "Where does Ana live?", parent_id=folder.id, trigger=FACTS
        )
        while (await client.operations.get_operation_status("b", made.operation_id)).status != "completed":
            pass
        tree = await client.aget_knowledge_base_tree("b")
        assert [(one.name, [child.name for child in one.children]) for one in tree.roots] == [("People", ["Ana"])]
        shown = await client.aget_knowledge_page("b", made.page_id)
        assert shown.type == "knowledge-page" and "Lyon" in shown.markdown
        found = await client.asearch_knowledge_base("b", "Ana", tag_groups=[{"not": {"tags": ["x"]}}])
        assert [one.id for one in found.results] == [made.page_id]
        moved = await client.aupdate_knowledge_node("b", made.page_id, parent_id=None, name="Ana B")
        assert (moved.parent_id, moved.name, moved.kind) == (None, "Ana B", "page")
        bundle = await client.aexport_knowledge_base("b")
        assert [one.path for one in bundle.files][:2] == ["index.md", f"{made.page_id}.md"]
        await client.adelete_knowledge_node("b", folder.id)
        await client.adelete_knowledge_node("b", made.page_id)
        with pytest.raises(low.ApiException) as gone:
            await client.aget_knowledge_page("b", made.page_id)
        assert gone.value.status == 404
    finally:
        await client.aclose()

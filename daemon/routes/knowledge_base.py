"""The knowledge base: pages, which are mental models with a place, in a tree of folders."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call, Reply
from recalld.daemon.routing import Route
from recalld.daemon.service_pages import PageService
from recalld.daemon.waiting import with_operation
from recalld.daemon.wire import pages as wire

BASE = "/v1/default/banks/{bank_id}/knowledge-base"


def _pages(call: Call) -> PageService:
    return cast(PageService, call.service)


async def tree(call: Call) -> dict[str, Any]:
    return await _pages(call).knowledge_tree(call.tenant, call.bank, call.query_as(wire.TreeQuery).to_scope())


async def create_folder(call: Call) -> Reply:
    body = call.body_as(wire.CreateFolderRequest)
    return Reply(await _pages(call).create_folder(call.tenant, call.bank, body.name, body.parent_id or ""), status=201)


async def create_page(call: Call) -> Reply:
    body = call.body_as(wire.CreatePageRequest)
    answer = await _pages(call).create_page(call.tenant, call.bank, body)
    return Reply(await with_operation(call, answer, call.query_as(wire.WaitQuery).wait), status=201)


async def get_page(call: Call) -> dict[str, Any]:
    return await _pages(call).get_page(call.tenant, call.bank, call.path["page_id"])


async def update_node(call: Call) -> dict[str, Any]:
    fields = call.body_as(wire.UpdateNodeRequest).to_fields()
    return await _pages(call).update_node(call.tenant, call.bank, call.path["node_id"], fields)


async def delete_node(call: Call) -> dict[str, Any]:
    return await _pages(call).delete_node(call.tenant, call.bank, call.path["node_id"])


async def search(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.SearchQuery)
    return await _pages(call).search_pages(call.tenant, call.bank, query.q, query.to_scope(), query.limit)


async def export(call: Call) -> dict[str, Any]:
    return await _pages(call).export_pages(call.tenant, call.bank)


ROUTES = (
    Route("GET", BASE + "/tree", "get_knowledge_base_tree", tree, "Folders and pages as a tree", query=wire.TreeQuery,
          response=wire.KnowledgeTreeResponse, tag="knowledge base"),
    Route("POST", BASE + "/folders", "create_knowledge_folder", create_folder, "Create a folder",
          body=wire.CreateFolderRequest, response=wire.KnowledgeNode, role="write", tag="knowledge base"),
    Route("POST", BASE + "/pages", "create_knowledge_page", create_page, "Create a page and queue its first refresh",
          query=wire.WaitQuery, body=wire.CreatePageRequest, response=wire.CreateKnowledgePageResponse, role="write",
          tag="knowledge base"),
    Route("GET", BASE + "/pages/{page_id}", "get_knowledge_page", get_page, "A page as markdown with front matter",
          response=wire.KnowledgePageResponse, tag="knowledge base"),
    Route("PATCH", BASE + "/nodes/{node_id}", "update_knowledge_node", update_node, "Rename, move or reconfigure",
          body=wire.UpdateNodeRequest, response=wire.KnowledgeNode, role="write", tag="knowledge base"),
    Route("DELETE", BASE + "/nodes/{node_id}", "delete_knowledge_node", delete_node, "Delete a node and its subtree",
          response=wire.DeletedResponse, role="write", tag="knowledge base"),
    Route("GET", BASE + "/search", "search_knowledge_base", search, "Search pages by words and meaning",
          query=wire.SearchQuery, response=wire.KnowledgePageSearchResponse, tag="knowledge base"),
    Route("GET", BASE + "/export", "export_knowledge_base", export, "All pages as markdown files",
          response=wire.KnowledgePageBundleResponse, tag="knowledge base"),
)  # fmt: skip

"""Retain, recall, and the memories themselves."""

from __future__ import annotations

from typing import Any

from recalld.actors.retain.items import RetainItem
from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.wire import encoding, queries, requests, responses
from recalld.storage.errors import Unprocessable

BANK = "/v1/default/banks/{bank_id}"


async def retain(call: Call) -> dict[str, Any]:
    request = call.body_as(requests.RetainRequest)
    request.check()
    return await call.service.retain(
        call.tenant,
        call.bank,
        await encoding.in_thread_if(len(request.items) * 1024, to_items, request),
        asynchronous=request.asynchronous,
        # Of a synchronous call it is the request id alone: a repeat stores nothing twice, and no operation shows.
        operation_id=request.operation_id,
    )


def to_items(request: requests.RetainRequest) -> list[RetainItem]:
    """The items as retain takes them. Raises `Unprocessable` naming the item."""
    items = []
    for number, item in enumerate(request.items):
        try:
            parsed = RetainItem.parse(item.model_dump(exclude={"content"}) | {"content": item.text})
        except ValueError as error:
            raise Unprocessable(f"items[{number}]: {error}") from None
        items.append(parsed.with_tags(request.document_tags) if request.document_tags else parsed)
    return items


async def recall(call: Call) -> dict[str, Any]:
    return await call.service.recall(call.tenant, call.bank, call.body_as(requests.RecallRequest).to_input())


async def list_memories(call: Call) -> dict[str, Any]:
    filters = call.query_as(queries.ListMemoriesQuery).to_filters()
    return await call.service.list_memories(call.tenant, call.bank, filters)


async def get_memory(call: Call) -> dict[str, Any]:
    return await call.service.get_memory(call.tenant, call.bank, uuid_parameter(call, "memory_id"))


async def clear_memories(call: Call) -> dict[str, Any]:
    return await call.service.clear_memories(
        call.tenant, call.bank, call.query_as(queries.ClearMemoriesQuery).to_type()
    )


async def list_tags(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.ListTagsQuery)
    return await call.service.list_tags(
        call.tenant, call.bank, query.q or None, query.source, query.limit, query.offset
    )


async def list_entities(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.ListEntitiesQuery)
    scope = query.to_scope()
    return await call.service.list_entities(
        call.tenant, call.bank, scope.tags, scope.tags_match, scope.wire_groups, query.limit, query.offset
    )


async def get_entity(call: Call) -> dict[str, Any]:
    scope = call.query_as(queries.EntityQuery).to_scope()
    return await call.service.get_entity(
        call.tenant, call.bank, uuid_parameter(call, "entity_id"), scope.tags, scope.tags_match, scope.wire_groups
    )


ROUTES = (
    Route(
        "POST",
        BANK + "/memories",
        "retain_memories",
        retain,
        "Store items, in the request or in the background",
        body=requests.RetainRequest,
        response=responses.RetainResponse,
        lane="retain",
        role="write",
        tag="memory",
    ),
    Route(
        "POST",
        BANK + "/memories/recall",
        "recall_memories",
        recall,
        "Ranked memories under a token budget",
        body=requests.RecallRequest,
        response=responses.RecallResponse,
        lane="recall",
        tag="memory",
    ),
    Route(
        "GET",
        BANK + "/memories/list",
        "list_memories",
        list_memories,
        "Page through memories",
        query=queries.ListMemoriesQuery,
        response=responses.ListMemoryUnitsResponse,
        tag="memory",
    ),
    Route(
        "GET",
        BANK + "/memories/{memory_id}",
        "get_memory",
        get_memory,
        "One memory",
        response=responses.MemoryDetail,
        tag="memory",
    ),
    Route(
        "DELETE",
        BANK + "/memories",
        "clear_bank_memories",
        clear_memories,
        "Delete the memories of a bank, all or of one type",
        query=queries.ClearMemoriesQuery,
        response=responses.DeleteResponse,
        role="write",
        tag="memory",
    ),
    Route(
        "GET",
        BANK + "/tags",
        "list_tags",
        list_tags,
        "Distinct tags with counts",
        query=queries.ListTagsQuery,
        response=responses.ListTagsResponse,
        tag="memory",
    ),
    Route(
        "GET",
        BANK + "/entities",
        "list_entities",
        list_entities,
        "Entities, the most mentioned first",
        query=queries.ListEntitiesQuery,
        response=responses.EntityListResponse,
        tag="entities",
    ),
    Route(
        "GET",
        BANK + "/entities/{entity_id}",
        "get_entity",
        get_entity,
        "One entity",
        query=queries.EntityQuery,
        response=responses.EntityDetailResponse,
        tag="entities",
    ),
)

"""Graphs of memories and entities; and, beyond the contract, merging and splitting entities and counting a bank."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.service_entities import EntityService
from recalld.daemon.wire import entities as wire
from recalld.storage.errors import Gone

BANK = "/v1/default/banks/{bank_id}"
ENTITY = BANK + "/entities/{entity_id}"


def _entities(call: Call) -> EntityService:
    return cast(EntityService, call.service)


async def graph(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.GraphQuery)
    return await _entities(call).graph(call.tenant, call.bank, query.to_filters(), query.chunk_id or None)


async def entity_graph(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.EntityGraphQuery)
    scope = query.to_scope()
    return await _entities(call).entity_graph(
        call.tenant, call.bank, scope.tags, scope.tags_match, scope.wire_groups, query.limit, query.min_count
    )


async def regenerate(call: Call) -> NoReturn:
    raise Gone("Entities have no observations of their own any more; recall with types=['observation'] instead.")


async def names(call: Call) -> dict[str, Any]:
    return await _entities(call).entity_names(call.tenant, call.bank, uuid_parameter(call, "entity_id"))


async def changes(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.EntityChangesQuery)
    return await _entities(call).entity_changes(call.tenant, call.bank, query.limit, query.offset)


async def merge(call: Call) -> dict[str, Any]:
    into = call.body_as(wire.MergeEntityRequest).into
    return await _entities(call).merge_entities(call.tenant, call.bank, uuid_parameter(call, "entity_id"), into)


async def split(call: Call) -> dict[str, Any]:
    body = call.body_as(wire.SplitEntityRequest)
    return await _entities(call).split_entity(
        call.tenant,
        call.bank,
        uuid_parameter(call, "entity_id"),
        (body.alias or "").strip(),
        tuple(body.unit_ids or ()),
        " ".join((body.name or "").split()),
    )


async def undo(call: Call) -> dict[str, Any]:
    return await _entities(call).undo_entity_change(call.tenant, call.bank, uuid_parameter(call, "change_id"))


async def verify(call: Call) -> dict[str, Any]:
    return await _entities(call).verify(call.tenant, call.bank)


ROUTES = (
    Route("GET", BANK + "/graph", "get_graph", graph, "Memories and the links between them, to draw",
          query=wire.GraphQuery, response=wire.GraphDataResponse, tag="memory"),
    Route("GET", BANK + "/entities/graph", "get_entity_graph", entity_graph, "Entities that occur together",
          query=wire.EntityGraphQuery, response=wire.EntityGraphResponse, tag="entities"),
    Route("POST", ENTITY + "/regenerate", "regenerate_entity_observations", regenerate, "Retired: always 410",
          role="write", tag="entities"),
    Route("GET", BANK + "/entities/changes", "list_entity_changes", changes,
          "Extension: merges and splits by hand, the latest first", query=wire.EntityChangesQuery,
          response=wire.EntityChangesResponse, tag="entities"),
    Route("POST", BANK + "/entities/changes/{change_id}/undo", "undo_entity_change", undo,
          "Extension: take a merge or a split back", response=wire.EntityChangeResponse, role="write", tag="entities"),
    Route("GET", ENTITY + "/names", "list_entity_names", names,
          "Extension: the names an entity goes by, and what made them its", response=wire.EntityNamesResponse,
          tag="entities"),
    Route("POST", ENTITY + "/merge", "merge_entity", merge, "Extension: make an entity one with another",
          body=wire.MergeEntityRequest, response=wire.EntityChangeResponse, role="write", tag="entities"),
    Route("POST", ENTITY + "/split", "split_entity", split, "Extension: take a name, or memories, out of an entity",
          body=wire.SplitEntityRequest, response=wire.EntityChangeResponse, role="write", tag="entities"),
    Route("GET", BANK + "/verify", "verify_bank", verify, "Extension: count a bank's tables against each other",
          response=wire.VerifyResponse, role="admin", tag="banks"),
)  # fmt: skip

"""Directives: rules for whoever answers from a bank."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call
from recalld.daemon.routing import Route
from recalld.daemon.service_pages import PageService
from recalld.daemon.wire import pages as wire

DIRECTIVES = "/v1/default/banks/{bank_id}/directives"
DIRECTIVE = DIRECTIVES + "/{directive_id}"


def _pages(call: Call) -> PageService:
    return cast(PageService, call.service)


async def list_directives(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.ListDirectivesQuery)
    return await _pages(call).list_directives(
        call.tenant, call.bank, query.tags or [], query.tags_match, query.active_only, query.limit, query.offset
    )


async def create(call: Call) -> dict[str, Any]:
    body = call.body_as(wire.CreateDirectiveRequest)
    fields = {**body.model_dump(), "tags": list(dict.fromkeys(body.tags or ()))}
    return await _pages(call).create_directive(call.tenant, call.bank, fields)


async def get(call: Call) -> dict[str, Any]:
    return await _pages(call).get_directive(call.tenant, call.bank, call.path["directive_id"])


async def update(call: Call) -> dict[str, Any]:
    fields = call.body_as(wire.UpdateDirectiveRequest).model_dump(exclude_none=True)
    return await _pages(call).update_directive(call.tenant, call.bank, call.path["directive_id"], fields)


async def delete(call: Call) -> dict[str, Any]:
    return await _pages(call).delete_directive(call.tenant, call.bank, call.path["directive_id"])


ROUTES = (
    Route("GET", DIRECTIVES, "list_directives", list_directives, "Page through directives, the highest priority first",
          query=wire.ListDirectivesQuery, response=wire.DirectiveListResponse, tag="directives"),
    Route("POST", DIRECTIVES, "create_directive", create, "Create a directive", body=wire.CreateDirectiveRequest,
          response=wire.DirectiveResponse, role="write", tag="directives"),
    Route("GET", DIRECTIVE, "get_directive", get, "One directive", response=wire.DirectiveResponse, tag="directives"),
    Route("PATCH", DIRECTIVE, "update_directive", update, "Change the named fields of a directive",
          body=wire.UpdateDirectiveRequest, response=wire.DirectiveResponse, role="write", tag="directives"),
    Route("DELETE", DIRECTIVE, "delete_directive", delete, "Delete a directive", response=wire.DeletedResponse,
          role="write", tag="directives"),
)  # fmt: skip

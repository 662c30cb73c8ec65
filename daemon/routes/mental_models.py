"""Mental models: stored answers to a question, refreshed when memories change."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call, Reply
from recalld.daemon.routing import Route
from recalld.daemon.service_pages import PageService
from recalld.daemon.waiting import with_operation
from recalld.daemon.wire import encoding
from recalld.daemon.wire import pages as wire

MODELS = "/v1/default/banks/{bank_id}/mental-models"
MODEL = MODELS + "/{mental_model_id}"


def _pages(call: Call) -> PageService:
    return cast(PageService, call.service)


async def list_models(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.ListMentalModelsQuery)
    return await _pages(call).list_mental_models(
        call.tenant,
        call.bank,
        tags=tuple(query.tags or ()),
        tags_match=query.tags_match,
        detail=query.detail,
        limit=query.limit,
        offset=query.offset,
        exclude_knowledge_pages=query.exclude_knowledge_pages,
    )


async def create(call: Call) -> dict[str, Any]:
    body = call.body_as(wire.CreateMentalModelRequest)
    answer = await _pages(call).create_mental_model(call.tenant, call.bank, body.id or None, body.to_fields())
    return await with_operation(call, answer, call.query_as(wire.WaitQuery).wait)


async def get(call: Call) -> dict[str, Any]:
    detail = call.query_as(wire.MentalModelQuery).detail
    return await _pages(call).get_mental_model(call.tenant, call.bank, call.path["mental_model_id"], detail)


async def update(call: Call) -> dict[str, Any]:
    fields = call.body_as(wire.UpdateMentalModelRequest).to_fields()
    return await _pages(call).update_mental_model(call.tenant, call.bank, call.path["mental_model_id"], fields)


async def delete(call: Call) -> dict[str, Any]:
    return await _pages(call).delete_mental_model(call.tenant, call.bank, call.path["mental_model_id"])


async def refresh(call: Call) -> dict[str, Any]:
    full = call.body_as(wire.RefreshMentalModelRequest).mode == "full"
    answer = await _pages(call).refresh_mental_model(call.tenant, call.bank, call.path["mental_model_id"], full)
    return await with_operation(call, answer, call.query_as(wire.WaitQuery).wait)


async def dry_run(call: Call) -> dict[str, Any]:
    return await _pages(call).dry_run_refresh(call.tenant, call.bank, call.path["mental_model_id"])


async def clear(call: Call) -> dict[str, Any]:
    return await _pages(call).clear_mental_model(call.tenant, call.bank, call.path["mental_model_id"])


async def history(call: Call) -> Reply:
    found = await _pages(call).mental_model_history(call.tenant, call.bank, call.path["mental_model_id"])
    return Reply(encoding.dump(found))


ROUTES = (
    Route("GET", MODELS, "list_mental_models", list_models, "Page through mental models, the newest first",
          query=wire.ListMentalModelsQuery, response=wire.MentalModelListResponse, tag="mental models"),
    Route("POST", MODELS, "create_mental_model", create, "Create a mental model and queue its first refresh",
          query=wire.WaitQuery, body=wire.CreateMentalModelRequest, response=wire.CreateMentalModelResponse,
          role="write", tag="mental models"),
    Route("POST", MODEL + "/refresh", "refresh_mental_model", refresh, "Queue a refresh", query=wire.WaitQuery,
          body=wire.RefreshMentalModelRequest, body_optional=True, response=wire.RefreshResponse, role="write",
          tag="mental models"),
    Route("POST", MODEL + "/dry-run-refresh", "dry_run_refresh_mental_model", dry_run,
          "What a refresh would do; stores nothing", response=wire.MentalModelDryRunRefreshResult,
          role="write", tag="mental models"),
    Route("POST", MODEL + "/clear", "clear_mental_model", clear, "Empty the content; the next refresh is full",
          response=wire.MentalModelResponse, role="write", tag="mental models"),
    Route("GET", MODEL + "/history", "get_mental_model_history", history, "Former contents, the newest first",
          tag="mental models"),
    Route("GET", MODEL, "get_mental_model", get, "One mental model", query=wire.MentalModelQuery,
          response=wire.MentalModelResponse, tag="mental models"),
    Route("PATCH", MODEL, "update_mental_model", update, "Change the named fields; the trigger is merged",
          body=wire.UpdateMentalModelRequest, response=wire.MentalModelResponse, role="write", tag="mental models"),
    Route("DELETE", MODEL, "delete_mental_model", delete, "Delete a mental model", response=wire.DeletedResponse,
          role="write", tag="mental models"),
)  # fmt: skip

"""Consolidation and observations: queueing, clearing, scopes, strategies."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.service_observations import ObservationService
from recalld.daemon.waiting import with_operation
from recalld.daemon.wire import observations as wire
from recalld.daemon.wire import responses
from recalld.daemon.wire.pages import WaitQuery

BANK = "/v1/default/banks/{bank_id}"


def _service(call: Call) -> ObservationService:
    return cast(ObservationService, call.service)


async def consolidate(call: Call) -> dict[str, Any]:
    scopes = call.body_as(wire.ConsolidationRequest).observation_scopes
    answer = await _service(call).consolidate(call.tenant, call.bank, scopes)
    return await with_operation(call, answer, call.query_as(WaitQuery).wait)


async def recover(call: Call) -> dict[str, Any]:
    answer = await _service(call).recover_consolidation(call.tenant, call.bank)
    answer = await with_operation(call, answer, call.query_as(WaitQuery).wait)
    return {name: answer[name] for name in ("retried_count", "operation_id", "operation") if name in answer}


async def clear(call: Call) -> dict[str, Any]:
    return await _service(call).clear_observations(call.tenant, call.bank)


async def clear_of_memory(call: Call) -> dict[str, Any]:
    memory_id = uuid_parameter(call, "memory_id")
    return await _service(call).clear_memory_observations(call.tenant, call.bank, memory_id)


async def scopes(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.ScopesQuery)
    return await _service(call).observation_scopes(call.tenant, call.bank, query.limit, query.offset)


async def preview(call: Call) -> dict[str, Any]:
    body = call.body_as(wire.ConsolidationStrategiesPreviewRequest)
    return await _service(call).preview_strategies(call.tenant, call.bank, body.plain(), body.sample_limit)


ROUTES = (
    Route(
        "POST",
        BANK + "/consolidate",
        "trigger_consolidation",
        consolidate,
        "Queue a consolidation of the facts that wait",
        query=WaitQuery,
        body=wire.ConsolidationRequest,
        body_optional=True,
        response=wire.ConsolidationResponse,
        role="write",
        tag="observations",
    ),
    Route(
        "POST",
        BANK + "/consolidation/recover",
        "recover_consolidation",
        recover,
        "Try facts again that could not be consolidated",
        query=WaitQuery,
        response=wire.RecoverConsolidationResponse,
        role="write",
        tag="observations",
    ),
    Route(
        "DELETE",
        BANK + "/observations",
        "clear_observations",
        clear,
        "Delete every observation; all facts wait for consolidation again",
        response=responses.DeleteResponse,
        role="write",
        tag="observations",
    ),
    Route(
        "DELETE",
        BANK + "/memories/{memory_id}/observations",
        "clear_memory_observations",
        clear_of_memory,
        "Delete the observations built on one memory",
        response=wire.ClearMemoryObservationsResponse,
        role="write",
        tag="observations",
    ),
    Route(
        "GET",
        BANK + "/observations/scopes",
        "list_observation_scopes",
        scopes,
        "Tag sets that have observations, the fullest first",
        query=wire.ScopesQuery,
        response=wire.ObservationScopesResponse,
        tag="observations",
    ),
    Route(
        "POST",
        BANK + "/consolidation-strategies/preview",
        "preview_consolidation_strategies",
        preview,
        "Which scopes a list of strategies would claim",
        body=wire.ConsolidationStrategiesPreviewRequest,
        response=wire.ConsolidationStrategiesPreview,
        tag="observations",
    ),
)

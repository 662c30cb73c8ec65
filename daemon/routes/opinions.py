"""Beyond the contract: opinions, their evidence and their history."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.service_opinions import OpinionService
from recalld.daemon.wire import opinions as wire

OPINIONS = "/v1/default/banks/{bank_id}/opinions"
OPINION = OPINIONS + "/{opinion_id}"


def _opinions(call: Call) -> OpinionService:
    return cast(OpinionService, call.service)


async def list_opinions(call: Call) -> dict[str, Any]:
    return await _opinions(call).list_opinions(call.tenant, call.bank, call.query_as(wire.OpinionsQuery).to_params())


async def create_opinion(call: Call) -> dict[str, Any]:
    proposal = call.body_as(wire.CreateOpinionRequest).to_proposal()
    return await _opinions(call).create_opinion(call.tenant, call.bank, proposal)


async def get_opinion(call: Call) -> dict[str, Any]:
    return await _opinions(call).get_opinion(call.tenant, call.bank, uuid_parameter(call, "opinion_id"))


async def patch_opinion(call: Call) -> dict[str, Any]:
    opinion_id = uuid_parameter(call, "opinion_id")
    fields = call.body_as(wire.UpdateOpinionRequest).to_fields()
    return await _opinions(call).patch_opinion(call.tenant, call.bank, opinion_id, fields)


async def opinion_history(call: Call) -> dict[str, Any]:
    return await _opinions(call).opinion_history(call.tenant, call.bank, uuid_parameter(call, "opinion_id"))


ROUTES = (
    Route("GET", OPINIONS, "list_opinions", list_opinions, "Extension: what is believed, by whom, and how surely",
          query=wire.OpinionsQuery, response=wire.OpinionsResponse, tag="opinions"),
    Route("POST", OPINIONS, "create_opinion", create_opinion,
          "Extension: give an opinion by hand, or evidence for one that is held", body=wire.CreateOpinionRequest,
          response=wire.FormedOpinion, lane="retain", role="write", tag="opinions"),
    Route("GET", OPINION + "/history", "get_opinion_history", opinion_history,
          "Extension: how an opinion came to be as sure as it is", response=wire.OpinionHistoryResponse,
          tag="opinions"),
    Route("GET", OPINION, "get_opinion", get_opinion, "Extension: one opinion with its evidence",
          response=wire.Opinion, tag="opinions"),
    Route("PATCH", OPINION, "update_opinion", patch_opinion,
          "Extension: change the words or the confidence of an opinion, retire it or take it up again",
          body=wire.UpdateOpinionRequest, response=wire.Opinion, lane="retain", role="write", tag="opinions"),
)  # fmt: skip

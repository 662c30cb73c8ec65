"""Banks: list, create, change, delete, statistics, configuration, and the profile of older clients."""

from __future__ import annotations

from typing import Any, Protocol, cast

from recalld.daemon.bank_settings import validate_updates
from recalld.daemon.exchange import Call
from recalld.daemon.routing import Route
from recalld.daemon.wire import queries, requests, responses
from recalld.storage.errors import NotFound

BANK = "/v1/default/banks/{bank_id}"


class Merging(Protocol):
    """The part of the service that keeps backgrounds."""

    async def add_background(
        self, tenant: str, bank_id: str, content: str, update_disposition: bool
    ) -> dict[str, Any]: ...


async def list_banks(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.ListBanksQuery)
    return await call.service.list_banks(call.tenant, query.q or None, query.limit, query.offset)


def _bank_fields(call: Call) -> dict[str, Any]:
    fields = call.body_as(requests.CreateBankRequest).to_fields()
    name = fields.pop("name", None)
    checked = validate_updates(fields)
    return checked if name is None else {"name": name} | checked


async def put_bank(call: Call) -> dict[str, Any]:
    return await call.service.put_bank(call.tenant, call.bank, _bank_fields(call))


async def patch_bank(call: Call) -> dict[str, Any]:
    return await call.service.patch_bank(call.tenant, call.bank, _bank_fields(call))


async def delete_bank(call: Call) -> dict[str, Any]:
    return await call.service.delete_bank(call.tenant, call.bank)


async def stats(call: Call) -> dict[str, Any]:
    return await call.service.bank_stats(call.tenant, call.bank)


async def get_config(call: Call) -> dict[str, Any]:
    return await call.service.bank_config(call.tenant, call.bank)


async def patch_config(call: Call) -> dict[str, Any]:
    _config_api(call)
    updates = validate_updates(call.body_as(requests.BankConfigUpdate).updates)
    return await call.service.patch_config(call.tenant, call.bank, updates)


async def reset_config(call: Call) -> dict[str, Any]:
    _config_api(call)
    return await call.service.reset_config(call.tenant, call.bank)


def _config_api(call: Call) -> None:
    if not call.settings.enable_bank_config_api:
        raise NotFound("The configuration of banks cannot be changed here (enable_bank_config_api is off).")


async def get_profile(call: Call) -> dict[str, Any]:
    return await call.service.patch_bank(call.tenant, call.bank, {})


async def put_profile(call: Call) -> dict[str, Any]:
    traits = call.body_as(requests.UpdateDispositionRequest).disposition.model_dump()
    fields = {f"disposition_{trait}": level for trait, level in traits.items()}
    return await call.service.put_bank(call.tenant, call.bank, fields)


async def add_background(call: Call) -> dict[str, Any]:
    request = call.body_as(requests.AddBackgroundRequest)
    return await cast(Merging, call.service).add_background(
        call.tenant, call.bank, request.content, request.update_disposition is not False
    )


ROUTES = (
    Route(
        "GET",
        "/v1/default/banks",
        "list_banks",
        list_banks,
        "Page through banks, the most recently written first",
        query=queries.ListBanksQuery,
        response=responses.BankListResponse,
        tag="banks",
    ),
    Route(
        "PUT",
        BANK,
        "create_or_update_bank",
        put_bank,
        "Create a bank or change it",
        body=requests.CreateBankRequest,
        response=responses.BankProfileResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "PATCH",
        BANK,
        "update_bank",
        patch_bank,
        "Change a bank; never creates one",
        body=requests.CreateBankRequest,
        response=responses.BankProfileResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "DELETE",
        BANK,
        "delete_bank",
        delete_bank,
        "Delete a bank and everything in it",
        response=responses.DeleteResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "GET",
        BANK + "/stats",
        "get_agent_stats",
        stats,
        "Counts of a bank",
        query=queries.StatsQuery,
        response=responses.BankStatsResponse,
        tag="banks",
    ),
    Route(
        "GET",
        BANK + "/config",
        "get_bank_config",
        get_config,
        "Settings in force, and the bank's own",
        response=responses.BankConfigResponse,
        tag="banks",
    ),
    Route(
        "PATCH",
        BANK + "/config",
        "update_bank_config",
        patch_config,
        "Override settings; null removes an override",
        body=requests.BankConfigUpdate,
        response=responses.BankConfigResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "DELETE",
        BANK + "/config",
        "reset_bank_config",
        reset_config,
        "Drop every override",
        response=responses.BankConfigResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "POST",
        BANK + "/background",
        "add_bank_background",
        add_background,
        "Merge a text into what the agent is told of itself",
        body=requests.AddBackgroundRequest,
        response=responses.BackgroundResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "GET",
        BANK + "/profile",
        "get_bank_profile",
        get_profile,
        "Profile, for older clients; see config",
        response=responses.BankProfileResponse,
        tag="banks",
    ),
    Route(
        "PUT",
        BANK + "/profile",
        "update_bank_disposition",
        put_profile,
        "Set the disposition, for older clients; see config",
        body=requests.UpdateDispositionRequest,
        response=responses.BankProfileResponse,
        role="write",
        tag="banks",
    ),
)

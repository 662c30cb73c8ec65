"""Tools about banks: list, make, show, change, delete."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from recalld.daemon.bank_settings import validate_updates
from recalld.daemon.mcp.memory_tools import Page
from recalld.daemon.mcp.tool import Answer, Arguments, Object, Tool, ToolCall
from recalld.daemon.wire.requests import CreateBankRequest
from recalld.storage.errors import BadRequest, BankNotFound

PROFILE = ("bank_id", "name", "disposition", "mission")
STATS = {
    "bank_id": "bank_id",
    "node_counts": "nodes_by_fact_type",
    "link_counts": "links_by_link_type",
    "link_counts_by_fact_type": "links_by_fact_type",
    "link_breakdown": "links_breakdown",
    "operations": "operations_by_status",
    "total_documents": "total_documents",
    "last_consolidated_at": "last_consolidated_at",
    "last_memory_write_at": "last_memory_write_at",
    "pending_consolidation": "pending_consolidation",
    "failed_consolidation": "failed_consolidation",
    "total_observations": "total_observations",
}


class ListBanks(Page):
    query: str | None = Field(None, description="Part of an id or a name.")


async def list_banks(call: ToolCall) -> Answer:
    asked = call.as_(ListBanks)
    answer: Answer = await call.service.list_banks(call.tenant, asked.query or None, asked.limit, asked.offset)
    return answer


class CreateBank(Arguments):
    bank_id: str = Field(min_length=1, description="Id of the bank; any text.")
    name: str | None = Field(None, description="What people call it.")
    mission: str | None = Field(None, description="What the bank is for; reflect keeps to it.")


def _profile(answer: Answer) -> Answer:
    return {name: answer[name] for name in PROFILE}


async def create_bank(call: ToolCall) -> Answer:
    fields = CreateBankRequest.model_validate(call.as_(CreateBank).given("name", "mission")).to_fields()
    return _profile(await call.service.put_bank(call.tenant, call.bank, fields))


async def get_bank(call: ToolCall) -> Answer:
    return _profile(await call.service.patch_bank(call.tenant, call.bank, {}))


async def get_bank_stats(call: ToolCall) -> Answer:
    found = await call.service.bank_stats(call.tenant, call.bank)
    return {shown: found[name] for shown, name in STATS.items()}


class UpdateBank(Arguments):
    name: str | None = Field(None, description="What people call it.")
    mission: str | None = Field(None, description="What the bank is for; reflect keeps to it.")
    config_updates: Object | None = Field(None, description="Settings of the bank by name; null removes one.")


async def update_bank(call: ToolCall) -> Answer:
    asked = call.as_(UpdateBank)
    if asked.config_updates and not call.config_api:
        raise BadRequest("The configuration of banks cannot be changed here (enable_bank_config_api is off).")
    updates = validate_updates(asked.config_updates or {})
    fields = CreateBankRequest.model_validate(asked.given("name", "mission")).to_fields()
    profile = _profile(await call.service.patch_bank(call.tenant, call.bank, fields))
    if updates:
        await call.service.patch_config(call.tenant, call.bank, updates)
        profile = _profile(await call.service.patch_bank(call.tenant, call.bank, {}))
    settings = await call.service.bank_config(call.tenant, call.bank)
    return {**profile, "config": settings["config"], "overrides": settings["overrides"]}


async def delete_bank(call: ToolCall) -> Answer:
    stats = await call.service.bank_stats(call.tenant, call.bank)
    entities = await call.service.list_entities(call.tenant, call.bank, (), "any", None, 0, 0)
    done = await call.service.delete_bank(call.tenant, call.bank)
    if not done["success"]:
        raise BankNotFound.named(call.bank)
    counts: dict[str, Any] = {
        "memory_units_deleted": stats["total_nodes"],
        "entities_deleted": entities["total"],
        "documents_deleted": stats["total_documents"],
    }
    return {"status": "deleted", "bank_id": call.bank, **counts, "bank_deleted": True}


TOOLS = (
    Tool("list_banks", "Page through the banks that exist, the most recently written first.",
         list_banks, ListBanks, reads=True, multi_only=True, scoped=False, empty={"banks": []}),
    Tool("create_bank", "Make a bank, or show the one that is there.",
         create_bank, CreateBank, "write", multi_only=True, makes_bank=True),
    Tool("get_bank", "Name, disposition and mission of a bank.", get_bank, reads=True),
    Tool("get_bank_stats", "Counts of a bank: memories, links, documents, operations.",
         get_bank_stats, reads=True, multi_only=True),
    Tool("update_bank", "Change a bank's name, its mission or its settings.", update_bank, UpdateBank, "write"),
    Tool("delete_bank", "Delete a bank and everything in it. Cannot be undone.",
         delete_bank, role="write", destructive=True),
)  # fmt: skip

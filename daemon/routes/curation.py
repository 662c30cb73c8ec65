"""Correcting memories by hand, their earlier versions, and the audit log."""

from __future__ import annotations

from typing import Any, cast

from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.service_curation import CurationService
from recalld.daemon.wire import curation as wire
from recalld.daemon.wire import responses

BANK = "/v1/default/banks/{bank_id}"
MEMORY = BANK + "/memories/{memory_id}"
AUDIT = BANK + "/audit-logs"


def _curation(call: Call) -> CurationService:
    return cast(CurationService, call.service)


async def patch_memory(call: Call) -> dict[str, Any]:
    memory_id = uuid_parameter(call, "memory_id")
    fields = call.body_as(wire.UpdateMemoryRequest).to_fields()
    return await _curation(call).patch_memory(call.tenant, call.bank, memory_id, fields)


async def memory_history(call: Call) -> list[dict[str, Any]]:
    return await _curation(call).memory_history(call.tenant, call.bank, uuid_parameter(call, "memory_id"))


async def list_audit(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.AuditQuery)
    start, end = query.to_window()
    return await _curation(call).list_audit(
        call.tenant, call.bank, query.action or None, query.transport or None, start, end, query.limit, query.offset
    )


async def get_audit(call: Call) -> dict[str, Any]:
    return await _curation(call).get_audit(call.tenant, call.bank, uuid_parameter(call, "log_id"))


async def audit_stats(call: Call) -> dict[str, Any]:
    query = call.query_as(wire.AuditStatsQuery)
    return await _curation(call).audit_stats(call.tenant, call.bank, query.action or None, wire.PERIODS[query.period])


ROUTES = (
    Route(
        "PATCH",
        MEMORY,
        "update_memory",
        patch_memory,
        "Edit, invalidate or revert a memory",
        body=wire.UpdateMemoryRequest,
        response=responses.MemoryDetail,
        lane="retain",
        role="write",
        tag="memory",
    ),
    Route(
        "GET",
        MEMORY + "/history",
        "get_observation_history",
        memory_history,
        "Earlier versions of a memory, the newest first",
        tag="memory",
    ),
    Route(
        "GET",
        AUDIT,
        "list_audit_logs",
        list_audit,
        "What was decided and done in a bank, the newest first",
        query=wire.AuditQuery,
        response=wire.AuditLogListResponse,
        tag="audit",
    ),
    Route(
        "GET",
        AUDIT + "/stats",
        "audit_log_stats",
        audit_stats,
        "Audit entries counted by day",
        query=wire.AuditStatsQuery,
        response=wire.AuditLogStatsResponse,
        tag="audit",
    ),
    Route(
        "GET",
        AUDIT + "/{log_id}",
        "get_audit_log",
        get_audit,
        "One audit entry",
        response=wire.AuditLogEntry,
        tag="audit",
    ),
)

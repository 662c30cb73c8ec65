"""Background operations, and the receipts of what they stored."""

from __future__ import annotations

from typing import Any

from recalld.daemon.exchange import Call
from recalld.daemon.routes.checks import uuid_parameter
from recalld.daemon.routing import Route
from recalld.daemon.wire import queries, responses

OPERATIONS = "/v1/default/banks/{bank_id}/operations"
OPERATION = OPERATIONS + "/{operation_id}"


async def list_operations(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.ListOperationsQuery)
    return await call.service.list_operations(
        call.tenant,
        call.bank,
        query.status or None,
        query.type or None,
        query.limit,
        query.offset,
        query.exclude_parents,
    )


async def get_operation(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.OperationQuery)
    operation_id = uuid_parameter(call, "operation_id")
    return await call.service.get_operation(call.tenant, call.bank, operation_id, query.include_payload)


async def cancel(call: Call) -> dict[str, Any]:
    return await call.service.cancel_operation(call.tenant, call.bank, uuid_parameter(call, "operation_id"))


async def retry(call: Call) -> dict[str, Any]:
    return await call.service.retry_operation(call.tenant, call.bank, uuid_parameter(call, "operation_id"))


async def delete(call: Call) -> dict[str, Any]:
    return await call.service.delete_operation(call.tenant, call.bank, uuid_parameter(call, "operation_id"))


async def receipt(call: Call) -> dict[str, Any]:
    return await call.service.receipt(call.tenant, call.bank, uuid_parameter(call, "operation_id"))


ROUTES = (
    Route(
        "GET",
        OPERATIONS,
        "list_operations",
        list_operations,
        "Page through operations, the newest first",
        query=queries.ListOperationsQuery,
        response=responses.OperationsListResponse,
        tag="operations",
    ),
    Route(
        "GET",
        OPERATION,
        "get_operation_status",
        get_operation,
        "One operation",
        query=queries.OperationQuery,
        response=responses.OperationStatusResponse,
        tag="operations",
    ),
    Route(
        "DELETE",
        OPERATION,
        "cancel_operation",
        cancel,
        "Cancel a pending or running operation",
        response=responses.OperationActionResponse,
        role="write",
        tag="operations",
    ),
    Route(
        "POST",
        OPERATION + "/retry",
        "retry_operation",
        retry,
        "Queue a failed or cancelled operation again",
        response=responses.OperationActionResponse,
        role="write",
        tag="operations",
    ),
    Route(
        "DELETE",
        OPERATION + "/delete",
        "delete_operation",
        delete,
        "Remove the record of a finished operation",
        response=responses.OperationActionResponse,
        role="write",
        tag="operations",
    ),
    Route(
        "GET",
        OPERATION + "/receipt",
        "get_operation_receipt",
        receipt,
        "What became of each item of a retain (beyond the contract)",
        response=responses.ReceiptResponse,
        tag="operations",
    ),
)

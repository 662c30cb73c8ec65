"""Reads of operations: the list, one with its children and payload, and the receipt of what it stored."""

from __future__ import annotations

import zlib
from typing import Any

from recalld.actors.reads_shape import cut, uuid_text
from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BankNotFound, NotFound
from recalld.storage.isotime import iso
from recalld.storage.partition import Partition
from recalld.storage.records import OPEN_STATES, BankRecord, OperationRecord


def list_operations(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of operations, newest first; a parent stands before its children. Raises `BankNotFound`."""
    status, kind, limit, offset = params["status"], params["type"], params["limit"], params["offset"]
    with partition.peek(tenant, bank_id) as (txn, number):
        records = [codec.decode(OperationRecord, v) for _, v in txn.scan(keys.table(number, keys.OPERATION))]
    found = [
        record
        for record in records
        if (not status or status in (record.status, _stage(record)))
        and (not kind or record.kind == kind)
        and not (params["exclude_parents"] and _is_parent(record))
    ]
    found.sort(key=_newest_first)
    rows = [_row(record) for record in cut(found, limit, offset)]
    return {"bank_id": bank_id, "total": len(found), "limit": limit, "offset": offset, "operations": rows}


def find_operation(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """[{tenant, bank_id}] of the bank in this partition whose operation has that id, else []."""
    with partition.environment.read() as txn:
        found = txn.get(keys.operation_key(0, keys.OPERATION_BANK, params["operation_id"]))
        record = None if found is None else txn.get(keys.table(int.from_bytes(bytes(found), "little"), keys.BANK))
        if record is None:
            return []
        owner = codec.decode(BankRecord, record)
        return [{"tenant": owner.tenant, "bank_id": owner.bank_id}]


def _is_parent(record: OperationRecord) -> bool:
    return bool(record.children or record.result.get("is_parent"))


def _newest_first(record: OperationRecord) -> tuple[int, bool, int, str]:
    return -record.created_at, not _is_parent(record), record.result.get("sub_batch_index") or 0, record.id


def _row(record: OperationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "task_type": record.kind,
        "operation_id": record.id,
        "operation_type": record.kind,
        "items_count": record.items_count,
        "document_id": record.document_id,
        "filename": record.result.get("filename"),
        "mental_model_id": record.result.get("mental_model_id"),
        "details": record.result.get("details"),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "status": record.status,
        "error_message": record.error,
        "retry_count": _retries(record),
        "next_retry_at": iso(record.next_retry_at),
        "progress": _progress(record),
    }


def _stage(record: OperationRecord) -> str:
    return f"waiting_for_{record.waiting}" if record.status in OPEN_STATES and record.waiting else record.status


def _progress(record: OperationRecord) -> dict[str, Any] | None:
    """What an open operation waits for, where that is not just its turn."""
    if record.status not in OPEN_STATES or not record.waiting:
        return None
    stage = f"waiting_for_{record.waiting}"
    detail = {"waits": record.waits}
    return {"stage": stage, "at": iso(record.updated_at), "processed": None, "total": None, "detail": detail}


def _retries(record: OperationRecord) -> int:
    """Attempts after the first."""
    return max(0, record.attempts - 1)


def get_operation(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One operation. An unknown id, in whatever bank, has the status `not_found`. Raises `BadRequest` for no UUID."""
    asked: str = params["operation_id"]
    operation_id = uuid_text(asked, "operation_id")
    answer: dict[str, Any] = {
        "operation_id": asked,
        "status": "not_found",
        "operation_type": None,
        "id": None,
        "task_type": None,
        "mental_model_id": None,
        "created_at": None,
        "updated_at": None,
        "completed_at": None,
        "error_message": None,
        "retry_count": None,
        "next_retry_at": None,
        "progress": None,
        "result_metadata": None,
        "details": None,
        "child_operations": None,
        "task_payload": None,
    }
    try:
        with partition.peek(tenant, bank_id) as (txn, number):
            record = _operation(txn, number, operation_id)
            if record is None:
                return answer
            children = _children(txn, number, record)
            payload = txn.get(keys.operation_key(number, keys.PAYLOAD, operation_id))
            items = _items(payload) if params.get("include_payload") and payload else None
    except BankNotFound:
        return answer
    return {
        **answer,
        "operation_id": record.id,
        "status": record.status,
        "operation_type": record.kind,
        "id": record.id,
        "task_type": record.kind,
        "mental_model_id": record.result.get("mental_model_id"),
        "details": record.result.get("details"),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "completed_at": iso(record.completed_at),
        "error_message": record.error,
        "retry_count": _retries(record),
        "next_retry_at": iso(record.next_retry_at),
        "progress": _progress(record),
        "result_metadata": dict(record.result) or None,
        "child_operations": [_child(child) for child in children] if _is_parent(record) else None,
        "task_payload": None if items is None else {"items": items},
    }


def operation_goes_on(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> bool:
    """Whether an operation is still to be carried out: it is there, open, and nobody cancelled it."""
    try:
        with partition.peek(tenant, bank_id) as (txn, bank):
            record = _operation(txn, bank, params["operation_id"])
    except BankNotFound:
        return False
    return record is not None and record.status in OPEN_STATES and not record.cancel_requested


def _child(record: OperationRecord) -> dict[str, Any]:
    return {
        "operation_id": record.id,
        "status": record.status,
        "sub_batch_index": record.result.get("sub_batch_index"),
        "items_count": record.items_count,
        "error_message": record.error,
    }


def receipt(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """What an operation stored, item by item; a parent's are its children's in order, as far as they have come.

    Raises `BadRequest`, `BankNotFound`, `NotFound`.
    """
    asked: str = params["operation_id"]
    operation_id = uuid_text(asked, "operation_id")
    with partition.peek(tenant, bank_id) as (txn, number):
        record = _operation(txn, number, operation_id)
        if record is None:
            raise NotFound(f"Operation '{asked}' not found")
        own = [record, *_children(txn, number, record)]
    return {
        "operation_id": record.id,
        "status": record.status,
        "items": [item for part in own for item in part.receipt],
    }


def _operation(txn: ReadTxn, bank: int, operation_id: str) -> OperationRecord | None:
    value = txn.get(keys.operation_key(bank, keys.OPERATION, operation_id))
    return None if value is None else codec.decode(OperationRecord, value)


def _children(txn: ReadTxn, bank: int, record: OperationRecord) -> list[OperationRecord]:
    found = (_operation(txn, bank, child) for child in record.children)
    return [child for child in found if child is not None]


def _items(payload: memoryview) -> list[Any]:
    items: list[Any] = codec.unpack(zlib.decompress(payload))
    return items

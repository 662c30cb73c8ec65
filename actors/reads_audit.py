"""Reads of the audit log: a page, one entry, counts a day."""

from __future__ import annotations

from collections import Counter
from typing import Any

from recalld.actors.reads_shape import cut
from recalld.storage import audit
from recalld.storage.errors import NotFound
from recalld.storage.isotime import iso
from recalld.storage.partition import Partition

_DAY_US = 86_400_000_000


def list_audit(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of entries, newest first: of an action, a transport, from `start` and before `end`."""
    action, transport = params["action"], params["transport"]
    start, end = params["start"], params["end"]
    limit, offset = params["limit"], params["offset"]
    with partition.peek(tenant, bank_id) as (txn, number):
        found = [
            entry
            for entry in audit.entries(txn, number, start or 0)
            if (action is None or entry.action == action)
            and (transport is None or entry.transport == transport)
            and (end is None or entry.started_at < end)
        ]
    rows = [_row(entry, bank_id) for entry in cut(found[::-1], limit, offset)]
    return {"bank_id": bank_id, "total": len(found), "limit": limit, "offset": offset, "items": rows}


def get_audit(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One entry. Bodies of requests and answers are never kept. Raises `NotFound`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        for entry in audit.entries(txn, number):
            if entry.id == params["log_id"]:
                return {**_row(entry, bank_id), "request": None, "response": None}
    raise NotFound(f"Audit entry '{params['log_id']}' not found")


def audit_stats(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Counts of each action a day, for `days` days up to `now`."""
    days, now, action = params["days"], params["now"], params["action"]
    start = (now // _DAY_US - days + 1) * _DAY_US
    counts: dict[int, Counter[str]] = {start + day * _DAY_US: Counter() for day in range(days)}
    with partition.peek(tenant, bank_id) as (txn, number):
        for entry in audit.entries(txn, number, start):
            bucket = counts.get(entry.started_at // _DAY_US * _DAY_US)
            if bucket is not None and action in (None, entry.action):
                bucket[entry.action] += 1
    buckets = [{"time": iso(day), "actions": dict(found), "total": found.total()} for day, found in counts.items()]
    return {"bank_id": bank_id, "period": f"{days}d", "trunc": "day", "start": iso(start), "buckets": buckets}


def _row(entry: audit.AuditRecord, bank_id: str) -> dict[str, Any]:
    return {
        "id": entry.id,
        "action": entry.action,
        "transport": entry.transport,
        "bank_id": bank_id,
        "started_at": iso(entry.started_at),
        "ended_at": iso(entry.ended_at),
        "duration_ms": (entry.ended_at - entry.started_at) // 1000,
        "metadata": audit.plain(entry.metadata),
    }

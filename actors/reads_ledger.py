"""The ledger of model calls as listings and sums, and what models read before. `record_calls` is what writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recalld.actors.messages import RecordCalls
from recalld.actors.reads_shape import cut
from recalld.actors.retain import readings
from recalld.actors.spending import money
from recalld.storage import codec, keys, ledger_rows
from recalld.storage.apply import Applier
from recalld.storage.changes import CallsRecorded
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BadRequest, BankNotFound
from recalld.storage.isotime import iso
from recalld.storage.ledger import DAY_US, OK, DayTotals, LedgerCall, lasting_gap
from recalld.storage.partition import Partition
from recalld.storage.records import ChunkRecord, EntityRecord, UnitRecord

HOUR_US = DAY_US // 24
PERIODS = {"1h": 1, "6h": 6, "12h": 12, "24h": 24, "1d": 24, "3d": 72, "7d": 168, "14d": 336, "30d": 720, "90d": 2160}
"""Periods of the statistics in hours."""
BY_HOURS = 48
"""Longest period in hours that is cut into hours; a longer one into days."""


def record_calls(applier: Applier, request: RecordCalls) -> dict[str, Any]:
    """Store calls, and what they read for an operation that is still open."""
    kept: tuple[tuple[str, str, bytes], ...] = ()
    operation_id = request.operation_id
    if operation_id and applier.txn.get(keys.operation_key(0, keys.OPEN_OPERATION, operation_id)) is not None:
        kept = tuple((operation_id, reading, facts) for reading, facts in request.readings)
    applier.apply(CallsRecorded(tuple(request.calls), request.keep_from, kept))
    return {}


# -- listings --------------------------------------------------------------------------------------------------------


def list_calls(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of calls, newest first; with `group` a page of runs, each with all its calls. Raises `BankNotFound`."""
    limit, offset = params["limit"], params["offset"]
    start, end = params.get("start") or 0, params.get("end")
    with partition.peek(tenant, bank_id) as (txn, number):
        found = [
            call
            for call in ledger_rows.calls(txn, number, start)
            if (end is None or call.started_at <= end) and _fits(call, params)
        ]
    found.reverse()
    if params.get("group"):
        runs: dict[str, list[LedgerCall]] = {}
        for call in found:
            runs.setdefault(call.operation_id or call.id, []).append(call)
        pages = cut(list(runs.values()), limit, offset)
        total, page = len(runs), [call for run in pages for call in run]
    else:
        total, page = len(found), list(cut(found, limit, offset))
    items = [_row(call, bank_id) for call in page]
    return {"bank_id": bank_id, "total": total, "limit": limit, "offset": offset, "items": items}


def _fits(call: LedgerCall, params: dict[str, Any]) -> bool:
    wanted = (
        ("status", _status(call)),
        ("operation", call.operation),
        ("scope", call.scope),
        ("provider", call.provider),
        ("trace_id", call.operation_id),
        ("document_id", call.document_id),
    )
    return (
        all(not params.get(name) or params[name] == value for name, value in wanted)
        and params.get("call_type") in (None, "", "llm")
        # A reading serves many memories and is not kept by memory.
        and not params.get("memory_id")
    )


def _status(call: LedgerCall) -> str:
    return "success" if call.outcome == OK else "error"


def _row(call: LedgerCall, bank_id: str) -> dict[str, Any]:
    sent, back = call.input_tokens, call.output_tokens
    return {
        "id": call.id,
        "bank_id": bank_id,
        "operation": call.operation,
        "scope": call.scope or None,
        "trace_id": call.operation_id,
        "span_id": call.id,
        "parent_span_id": None,
        "provider": call.provider or None,
        "model": call.model or None,
        "status": _status(call),
        "started_at": iso(call.started_at),
        "ended_at": iso(call.started_at + call.milliseconds * 1000),
        "duration_ms": call.milliseconds,
        "input_tokens": sent,
        "output_tokens": back,
        "cached_tokens": call.cached_tokens,
        "thoughts_tokens": call.thoughts_tokens,
        "total_tokens": None if sent is None and back is None else (sent or 0) + (back or 0),
        # Prompts and answers hold the bank's content, and content stands in one place only.
        "input": None,
        "output": None,
        "error": call.error or (None if call.outcome == OK else call.outcome),
        "llm_info": {
            "outcome": call.outcome,
            "counted_input_tokens": call.counted_input,
            "counted_output_tokens": call.counted_output,
            "cost": money(call.cost),
            "cost_known": call.cost is not None,
        },
        "metadata": {} if call.document_id is None else {"document_id": call.document_id},
    }


def call_stats(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Counts and sums by hour or day. Raises `BadRequest` for an unknown period, `BankNotFound`.

    Within the time that calls are kept the buckets are made of them; `days`, `gap` and `cost` come from the sums of
    each day, which are kept longer.
    """
    hours = PERIODS.get(params["period"])
    if hours is None:
        raise BadRequest(f"period must be one of {', '.join(PERIODS)}.")
    step = HOUR_US if hours <= BY_HOURS else DAY_US
    now: int = params["now"]
    start = (now - hours * HOUR_US) // step * step
    buckets: dict[int, dict[str, Any]] = {}
    with partition.peek(tenant, bank_id) as (txn, number):
        days = ledger_rows.all_days(txn, number, start // DAY_US)
        for call in ledger_rows.calls(txn, number, start):
            if _fits(call, params):
                time = call.started_at // step * step
                _count(buckets.setdefault(time, _bucket(time)), call)
    sums = DayTotals()
    for day in days:
        sums = sums.joined(day)
    return {
        "bank_id": bank_id,
        "period": params["period"],
        "trunc": "hour" if step == HOUR_US else "day",
        "start": iso(start),
        "buckets": [buckets[time] for time in sorted(buckets)],
        "days": [_day(day) for day in days],
        "sums": _day(sums) | {"day": None},
        "gap": _gap(sums),
    }


def _bucket(time: int) -> dict[str, Any]:
    tokens = {"input": 0, "output": 0, "cached": 0, "thoughts": None, "total": 0}
    return {"time": iso(time), "statuses": {}, "total": 0, "tokens": tokens}


def _count(bucket: dict[str, Any], call: LedgerCall) -> None:
    status = _status(call)
    bucket["statuses"][status] = bucket["statuses"].get(status, 0) + 1
    bucket["total"] += 1
    tokens = bucket["tokens"]
    tokens["input"] += call.input_tokens or 0
    tokens["output"] += call.output_tokens or 0
    tokens["cached"] += call.cached_tokens or 0
    if call.thoughts_tokens is not None:
        tokens["thoughts"] = (tokens["thoughts"] or 0) + call.thoughts_tokens
    tokens["total"] += (call.input_tokens or 0) + (call.output_tokens or 0)


def _day(day: DayTotals) -> dict[str, Any]:
    return {
        "day": iso(day.day * DAY_US),
        "calls": day.calls,
        "failed": day.failed,
        "input_tokens": day.input_tokens,
        "output_tokens": day.output_tokens,
        "cached_tokens": day.cached_tokens,
        "total_tokens": day.tokens,
        "cost": money(day.cost),
        "calls_without_price": day.unpriced,
    }


def _gap(sums: DayTotals) -> dict[str, Any]:
    """Input tokens as the provider reports them beside our own count; `lasting` when the difference is no accident."""
    extra = lasting_gap(sums)
    return {
        "calls": sums.compared,
        "reported_input_tokens": sums.gap_reported,
        "counted_input_tokens": sums.gap_counted,
        "lasting": extra > 0,
        "extra_tokens_a_call": extra,
    }


def day_sums(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> Any:
    """The sums of one day as plain numbers: of a bank, or with an empty bank id of the whole partition, in a list.

    An unknown bank has used nothing.
    """
    day = params["day"]
    try:
        if bank_id:
            with partition.peek(tenant, bank_id) as (txn, number):
                return codec.unpack(codec.encode(ledger_rows.day_totals(txn, number, day)))
    except BankNotFound:
        return codec.unpack(codec.encode(DayTotals(day)))
    with partition.environment.read() as txn:
        if params.get("since") is None:
            found = [ledger_rows.day_totals(txn, 0, day)]
        else:
            found = ledger_rows.all_days(txn, 0, params["since"])
        return [codec.unpack(codec.encode(one)) for one in found]


# -- readings --------------------------------------------------------------------------------------------------------


def known_readings(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """{reading: facts as plain data} of those that are known: from the operation's journal, or from a stored chunk.

    An unknown bank knows none.
    """
    wanted: Iterable[str] = params["readings"]
    operation_id: str | None = params.get("operation_id")
    found: dict[str, Any] = {}
    try:
        with partition.peek(tenant, bank_id) as (txn, number):
            for reading in wanted:
                journalled = ledger_rows.journalled(txn, number, operation_id, reading) if operation_id else None
                if journalled is not None:
                    found[reading] = readings.to_plain(readings.from_bytes(journalled))
                elif not params.get("journal_only"):
                    chunk = ledger_rows.chunk_read_as(txn, number, reading)
                    plain = None if chunk is None else _facts_of(txn, number, chunk)
                    if plain is not None:
                        found[reading] = plain
    except BankNotFound:
        return {}
    return found


def _facts_of(txn: ReadTxn, bank: int, chunk: ChunkRecord) -> dict[str, Any] | None:
    """The facts a chunk gave, rebuilt from its units; None when one of them was erased."""
    from recalld.storage.columns import COLUMN_ROWS, QUESTION, ColumnRow

    units = []
    for uid in (*chunk.uids, *_mentioned(txn, bank, chunk)):
        value = txn.get(keys.number(bank, keys.UNIT, uid))
        if value is None:
            return None
        unit = codec.decode(UnitRecord, value)
        if unit.state == "valid":
            units.append(unit)
    names: dict[int, tuple[str, str]] = {}
    for number in {number for unit in units for number in unit.entities}:
        value = txn.get(keys.number(bank, keys.ENTITY, number))
        if value is not None:
            entity = codec.decode(EntityRecord, value)
            names[number] = (entity.name, entity.kind)
    questions = {unit.uid for unit in units if ColumnRow.unpack(COLUMN_ROWS.get(txn, bank, unit.uid)).flags & QUESTION}
    return readings.to_plain(readings.from_units(units, names, questions))


def _mentioned(txn: ReadTxn, bank: int, chunk: ChunkRecord) -> list[int]:
    """Units elsewhere that hold a claim of the chunk's too."""
    found = []
    for unit_id, _ in getattr(chunk, "mentions", ()):
        value = txn.get(keys.named(bank, keys.UNIT_ID, unit_id))
        if value is not None:
            found.append(int.from_bytes(bytes(value), "little"))
    return found

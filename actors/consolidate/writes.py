"""Consolidation inside a write: queueing it, storing what it made, clearing observations.

What a step of a consolidation made is stored only while all it was shown is current: whatever was deleted, edited or
invalidated while a model thought stays out of every observation.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from recalld.actors.consolidate.messages import (
    CommitConsolidation,
    ForgetObservations,
    ObservationWrite,
    QueueConsolidation,
)
from recalld.actors.operations import document_marks
from recalld.actors.retain.commit import read_operation
from recalld.storage import codec, keys
from recalld.storage.apply import Applier, read_counters
from recalld.storage.apply_places import tagset_key
from recalld.storage.changes import (
    FactFailed,
    FactsConsolidated,
    NewUnit,
    OperationStored,
    UnitsAdded,
    UnitsErased,
    UnitsRetired,
)
from recalld.storage.consolidation import HISTORY, FactState, built_on, counts, members, state_of
from recalld.storage.errors import Conflict, NotFound, Superseded
from recalld.storage.records import (
    CANCELLED,
    COMPLETED,
    OBSERVATION,
    PENDING,
    PROCESSING,
    OperationRecord,
    PreparedUnit,
    UnitRecord,
)

KIND = "consolidation"
ONE_AT_A_TIME = document_marks(("\0consolidation",))
"""Operations that share a mark follow each other, so no two consolidations of a bank meet."""
LONGEST_WAIT = 24 * 3600 * 1_000_000
COUNTS = ("observations_created", "observations_updated", "observations_deleted", "facts_consolidated", "facts_failed")


Request = QueueConsolidation | CommitConsolidation | ForgetObservations


def write_of(request: Request, every: Sequence[int] = ()) -> Callable[[Applier], dict[str, Any]]:
    """What a message does inside a write."""
    match request:
        case QueueConsolidation():
            return partial(queue, request=request)
        case CommitConsolidation():
            return partial(commit, request=request)
        case ForgetObservations():
            return partial(forget, request=request, every=every)


def ended_and_queued(request: Request, answer: dict[str, Any]) -> tuple[str | None, str | None]:
    """The operation that ended with a write, and the one that it queued."""
    if isinstance(request, CommitConsolidation):
        return (request.operation_id if answer["ended"] else None), answer.get("again")
    queued = isinstance(request, QueueConsolidation) and not answer["deduplicated"]
    return None, answer["operation_id"] if queued else None


# -- queueing --------------------------------------------------------------------------------------------------------


def queue(applier: Applier, request: QueueConsolidation) -> dict[str, Any]:
    retried = 0
    if request.recover:
        retried = len(members(applier.txn, applier.bank, keys.SET_FAILED))
        applier.apply(FactsConsolidated(request.now, recovered=True))
    if request.automatic and not _anything_due(applier, request.now):
        return {"operation_id": None, "deduplicated": False, "retried_count": 0}
    payload = payload_of(request.scopes)
    waiting = _waiting(applier, payload)
    if waiting is not None:
        return {"operation_id": waiting, "deduplicated": True, "retried_count": retried}
    _store(applier, request.operation_id, payload, request.now)
    return {"operation_id": request.operation_id, "deduplicated": False, "retried_count": retried}


def payload_of(scopes: Sequence[Sequence[str]] | None) -> bytes:
    asked = None if scopes is None else sorted(sorted(set(one)) for one in scopes)
    return zlib.compress(codec.pack([{"observation_scopes": asked}]), 3)


def scopes_in(payload: bytes) -> tuple[tuple[str, ...], ...] | None:
    asked = codec.unpack(zlib.decompress(payload))[0].get("observation_scopes")
    return None if asked is None else tuple(tuple(one) for one in asked)


def _anything_due(applier: Applier, now: int) -> bool:
    pending, failed = counts(applier.txn, applier.bank, read_counters(applier.txn, applier.bank))
    if pending > 0:
        return True
    states = (state_of(applier.txn, applier.bank, uid) for uid in members(applier.txn, applier.bank, keys.SET_FAILED))
    return failed > 0 and any((state.next_at or 0) <= now for state in states)


def _waiting(applier: Applier, payload: bytes) -> str | None:
    """The consolidation queued last, if it was not begun yet and is to do the same."""
    held = applier.txn.get(keys.table(applier.bank, keys.CONSOLIDATE_NEXT))
    operation = None if held is None else read_operation(applier, bytes(held).decode())
    if operation is None or operation.status != PENDING or operation.next_retry_at is not None:
        return None
    stored = applier.txn.get(keys.operation_key(applier.bank, keys.PAYLOAD, operation.id))
    return operation.id if stored is not None and bytes(stored) == payload else None


def _store(applier: Applier, operation_id: str, payload: bytes, now: int) -> None:
    record = OperationRecord(
        id=operation_id, kind=KIND, status=PENDING, created_at=now, updated_at=now, documents=ONE_AT_A_TIME
    )
    applier.apply(OperationStored(record, payload))
    applier.txn.put(keys.table(applier.bank, keys.CONSOLIDATE_NEXT), operation_id.encode())


# -- what a step made ------------------------------------------------------------------------------------------------


def commit(applier: Applier, request: CommitConsolidation) -> dict[str, Any]:
    operation = read_operation(applier, request.operation_id)
    if operation is None or operation.status != PROCESSING:
        raise Conflict("The consolidation is in other hands; nothing was stored.")
    if operation.cancel_requested:
        ended = dataclasses.replace(operation, status=CANCELLED, updated_at=request.now, completed_at=request.now)
        applier.apply(OperationStored(ended))
        return {"ended": True}
    for uid in request.shown:
        if not applier.is_live(uid):
            raise Superseded("A memory changed while it was consolidated.")
    if any(state_of(applier.txn, applier.bank, uid).done_at is not None for uid in request.batch):
        raise Superseded("A memory was consolidated by another run meanwhile.")
    made = _write(applier, request)
    failed = tuple(
        FactFailed(uid, *_next_attempt(state_of(applier.txn, applier.bank, uid), request), error)
        for uid, error in request.failed
    )
    done = (*request.done, *(uid for uid, least in request.settled if len(_live_on(applier, uid)) >= least))
    if done or failed:
        applier.apply(FactsConsolidated(request.now, done, failed))
    made |= {"facts_consolidated": len(done), "facts_failed": len(failed)}
    result = dict(operation.result)
    for name in COUNTS:
        result[name] = result.get(name, 0) + made.get(name, 0)
    if request.usage:
        result["usage"] = dict(request.usage)
    changed = dataclasses.replace(operation, result=result, updated_at=request.now)
    if request.finished:
        changed = dataclasses.replace(changed, status=COMPLETED, completed_at=request.now, next_retry_at=None)
        changed = dataclasses.replace(changed, error=None)
    applier.apply(OperationStored(changed))
    covered = [uid for uid in request.batch if _live_on(applier, uid, request.scope)]
    answer: dict[str, Any] = {"ended": request.finished, "counts": result, "covered": covered, **made}
    if request.finished and request.again:
        stored = applier.txn.get(keys.operation_key(applier.bank, keys.PAYLOAD, operation.id))
        payload = payload_of(None) if stored is None else bytes(stored)
        if _waiting(applier, payload) is None:
            _store(applier, request.again, payload, request.now)
            answer["again"] = request.again
    return answer


def _live_on(applier: Applier, uid: int, scope: tuple[str, ...] | None = None) -> list[UnitRecord]:
    """The current observations, of one scope or of any, that stand on a fact."""
    found = (_observation(applier, one) for one in built_on(applier.txn, applier.bank, uid))
    return [one for one in found if one is not None and (scope is None or one.tags == scope)]


def _next_attempt(state: FactState, request: CommitConsolidation) -> tuple[int, int]:
    attempts = state.attempts + 1
    return attempts, request.now + min(request.first_wait * 2 ** min(attempts - 1, 30), LONGEST_WAIT)


def _write(applier: Applier, request: CommitConsolidation) -> dict[str, int]:
    """Write and remove observations; how many came, changed and went."""
    now = request.now
    removed = [uid for uid in request.removed if _observation(applier, uid) is not None]
    room = -1
    if request.limit >= 0:
        held = applier.set_members(keys.SET_TAGSET, tagset_key(request.scope))
        room = request.limit + len(removed) - sum(1 for uid in held if _observation(applier, uid) is not None)
    new: list[NewUnit] = []
    before: list[UnitRecord] = []
    created = 0
    for write in request.writes:
        former = _observation(applier, write.before) if write.before >= 0 else None
        if former is None and write.before >= 0:
            continue
        if former is None:
            if room == created >= 0:
                continue
            created += 1
        else:
            before.append(former)
        new.append(_new_unit(applier, write, request.scope, former))
    replaced = tuple(one.uid for one in before)
    if replaced:
        applier.apply(UnitsRetired(replaced, now, continued=True))
    if removed:
        applier.apply(UnitsRetired(tuple(removed), now, continued=True))
    if new:
        applier.apply(UnitsAdded(tuple(new), now))
    for one in before:
        _trim(applier, one, now)
    if new or removed:
        applier.touch(now)
    return {
        "observations_created": created,
        "observations_updated": len(before),
        "observations_deleted": len(removed),
    }


def _observation(applier: Applier, uid: int) -> UnitRecord | None:
    record = applier.unit(uid) if uid >= 0 and applier.is_live(uid) else None
    return record if record is not None and record.network == OBSERVATION else None


def _new_unit(applier: Applier, write: ObservationWrite, scope: tuple[str, ...], former: UnitRecord | None) -> NewUnit:
    uids = tuple(dict.fromkeys(write.sources))
    sources = [record for uid in uids if (record := applier.fact(uid)) is not None]
    if len(sources) != len(uids):
        raise Superseded("A memory changed while it was consolidated.")
    unit: PreparedUnit = write.unit
    unit = dataclasses.replace(
        unit,
        id=unit.id if former is None else former.id,
        network=OBSERVATION,
        tags=scope,
        **dates_of(sources),
        trust=next((one.trust for one in sources if one.trust != "normal"), "normal"),
        risks=tuple(sorted({risk for one in sources for risk in one.risks})),
    )
    return NewUnit(
        unit=unit,
        uid=applier.allocate("uid"),
        document=0,
        document_id="",
        chunk_index=0,
        chunk_id="",
        thread=applier.allocate("thread"),
        prev=-1,
        predecessor=None,
        former=former,
        proof=len(uids),
        sources=uids,
        entities=tuple(dict.fromkeys(number for one in sources for number in one.entities)),
        like=write.like,
    )


def dates_of(sources: Sequence[UnitRecord]) -> dict[str, Any]:
    """The range of dated sources: the least start, the greatest end and the last mention; None where none has any."""

    def known(name: str) -> list[int]:
        return [at for one in sources if (at := getattr(one, name)) is not None]

    ends = known("occurred_end") or known("occurred_start")
    return {
        "occurred_start": min(known("occurred_start"), default=None),
        "occurred_end": max(ends, default=None),
        "mentioned_at": max(known("mentioned_at"), default=None),
    }


def _trim(applier: Applier, newest: UnitRecord, now: int) -> None:
    """Of the former versions of an observation the last `HISTORY` stay."""
    record: UnitRecord | None = newest
    kept = 0
    while record is not None:
        kept += 1
        former = None if record.former is None else applier.unit(record.former)
        if kept == HISTORY and former is not None:
            applier.apply(UnitsErased((former.uid,), now))
            return
        record = former


# -- clearing --------------------------------------------------------------------------------------------------------


def forget(applier: Applier, request: ForgetObservations, every: Sequence[int]) -> dict[str, Any]:
    """Erase observations; `every` are the uids of all there were when this was asked for."""
    if request.unit_id is None:
        live = [uid for uid in every if _observation(applier, uid) is not None]
        uids = [uid for uid in every if applier.unit(uid) is not None]
        applier.apply(UnitsErased(tuple(uids), request.now))
        applier.apply(FactsConsolidated(request.now, everything=True))
    else:
        unit = applier.current(request.unit_id)
        if unit is None:
            raise NotFound(f"Memory '{request.unit_id}' not found")
        found = built_on(applier.txn, applier.bank, unit.uid)
        live = [uid for uid in found if applier.is_live(uid)]
        versions = {one for uid in live for one in applier.versions(uid)}
        applier.apply(UnitsErased(tuple(sorted(versions)), request.now))
        applier.apply(FactsConsolidated(request.now, pending=(unit.uid,)))
    applier.touch(request.now)
    return {"deleted": len(live)}

"""A prepared retain inside a write transaction: checks that the plan still holds, then applies the changes.

Runs in the writer thread, so it does arithmetic and puts, nothing else. Raises `Superseded` when a document or a
predecessor changed since the plan; nothing is applied then, and the caller plans again. `Conflict`: the bank is gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from recalld.actors.messages import CommitRetain
from recalld.actors.retain.document_write import DocumentWriter, Similar, target_of
from recalld.actors.retain.followers import check_places, check_prepared
from recalld.actors.retain.outcome import keep_from
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    Audited,
    BankStored,
    NewUnit,
    OperationStored,
    UnitsReembedded,
    UnitsRelinked,
)
from recalld.storage.errors import Conflict, ModelMismatch
from recalld.storage.records import (
    CANCELLED,
    COMPLETED,
    OPEN_STATES,
    BankRecord,
    OperationRecord,
    UnitRecord,
)

Believe = Callable[[Applier, Mapping[str, str], CommitRetain], str | None]
"""Moves opinions by what a write brought; the id of an operation it stored for a model, if it did."""


def commit_retain(
    applier: Applier, write: CommitRetain, similar: Similar, believe: Believe | None = None
) -> dict[str, Any]:
    """Apply a retain; `similar` gives each new unit's links to stored uids and to units of the same request.

    `believe` is given what each prepared unit became, where the write touches opinions.
    """
    operation = _operation(applier, write)
    if (write.bank and write.bank != applier.bank) or (write.operation_id is not None and operation is None):
        raise Conflict("The bank was deleted while this retain was under way; nothing was stored.")
    if operation is not None and operation.status not in OPEN_STATES:
        # Two attempts of one operation were under way, and the other one ended it.
        return {"items": list(operation.receipt), "units": 0}
    if operation is not None and operation.cancel_requested:
        # The payload stays: a cancelled operation may be retried.
        applier.apply(OperationStored(_ended(operation, write.now, CANCELLED)))
        settle_parent(applier, operation.parent, write.now)
        return {"items": [], "units": 0, "cancelled": True}
    bind_model(applier, write.model)
    targets = [target_of(applier, document) for document in write.documents]
    writer = DocumentWriter(applier, write, similar, targets)
    for target in targets:
        writer.write(target)
    outcome = writer.finish()
    uids, new = writer.uids, writer.new
    if write.embeddings:
        embeddings = tuple(
            dataclasses.replace(one, predecessor=_uid(one.predecessor, uids)) for one in write.embeddings
        )
        applier.apply(UnitsReembedded(embeddings, write.now))
        # Turns of other documents that now stand behind this one's last unit.
        behind = {e.uid: e.predecessor for e in embeddings if isinstance(e.predecessor, int)}
        moved = {uid: before for uid, before in behind.items() if applier.prev_of(uid) != before}
        if moved:
            applier.apply(UnitsRelinked(moved, write.now))
    _check_followers(applier, write, writer.changed, new)
    judging = None if believe is None else believe(applier, outcome.units, write)
    if write.documents:
        applier.touch(write.now, any(target.stored is None for target in targets))
    receipt = outcome.receipt(write.receipt)
    audited = outcome.entries(receipt, write.operation_id)
    if audited:
        applier.apply(Audited(audited, keep_from(write.now, write.audit_days)))
    answer = {"items": receipt, "units": writer.added, "documents": [d.document_id for d in write.documents]}
    if write.usage:
        answer["usage"] = dict(write.usage)
    if judging is not None:
        answer["judging"] = judging
    if operation is not None:
        done = _ended(operation, write.now, COMPLETED)
        if write.usage:
            done = dataclasses.replace(done, result={**done.result, "usage": dict(write.usage)})
        applier.apply(OperationStored(dataclasses.replace(done, receipt=tuple(receipt), error=None), b""))
        settle_parent(applier, operation.parent, write.now)
    return answer


def _check_followers(applier: Applier, write: CommitRetain, changed: list[int], new: list[NewUnit]) -> None:
    """Raise `Superseded` when a unit would be left behind one that was replaced or tagged otherwise since the plan."""
    prepared = {embedding.uid for embedding in write.embeddings}

    def spared(unit: UnitRecord) -> bool:
        before = applier.unit(unit.predecessor) if unit.predecessor is not None else None
        if before is None or not before.stands:
            return not unit.stands
        return before.tags == unit.tags

    check_prepared(applier, changed, prepared, spared)
    check_places(applier, prepared)
    check_places(applier, (one.uid for one in new if isinstance(one.unit.predecessor, int)))


def _uid(reference: Any, uids: dict[str, int]) -> int | None:
    return uids[reference] if isinstance(reference, str) else reference


def bind_model(applier: Applier, model: dict[str, Any]) -> None:
    key = keys.table(applier.bank, keys.BANK)
    record = codec.decode(BankRecord, applier.txn.get(key) or b"")
    if not record.model and model:
        applier.apply(BankStored(dataclasses.replace(record, model=model)))
    elif model and record.model.get("dim") != model.get("dim"):
        raise ModelMismatch("This bank's vectors come from another embedding model; use the model it was made with.")


def _operation(applier: Applier, write: CommitRetain) -> OperationRecord | None:
    if write.operation_id is None:
        return None
    return read_operation(applier, write.operation_id)


def read_operation(applier: Applier, operation_id: str) -> OperationRecord | None:
    value = applier.txn.get(keys.operation_key(applier.bank, keys.OPERATION, operation_id))
    return None if value is None else codec.decode(OperationRecord, value)


def _ended(operation: OperationRecord, now: int, status: str) -> OperationRecord:
    return dataclasses.replace(operation, status=status, updated_at=now, completed_at=now, next_retry_at=None)


def settle_parent(applier: Applier, parent_id: str | None, now: int) -> None:
    """A parent is completed when all its children are, failed when one is and none is left to run."""
    parent = read_operation(applier, parent_id) if parent_id else None
    if parent is None:
        return
    children = [child for name in parent.children if (child := read_operation(applier, name)) is not None]
    states = {child.status for child in children}
    if states & {"pending", "processing"}:
        status = "processing"
    else:
        status = next((s for s in ("failed", "cancelled") if s in states), COMPLETED)
    held_back = next((child for child in children if child.status == "pending" and child.waiting), None)
    waiting, waits = (held_back.waiting, held_back.waits) if held_back else ("", 0)
    if status == parent.status and (waiting, waits) == (parent.waiting, parent.waits):
        return
    error = next((child.error for child in children if child.error), None) if status == "failed" or waiting else None
    record = dataclasses.replace(
        parent,
        status=status,
        updated_at=now,
        error=error,
        waiting=waiting,
        waits=waits,
        next_retry_at=held_back.next_retry_at if held_back else None,
    )
    if status != "processing":
        record = dataclasses.replace(record, completed_at=now)
    applier.apply(OperationStored(record))

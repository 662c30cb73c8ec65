"""Durable operations of a shard: stored in the bank, queued in memory, handed out bank by bank in turn.

    pending -> processing -> completed | failed | cancelled

The records are the truth. The queue is rebuilt from them at start, where `processing` simply becomes `pending` again:
whoever held the operation is gone with the shard's last life, or will find its commit refused.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from recalld.actors.messages import ChangeOperation, Claimed, FinishOperation, SubmitOperations
from recalld.actors.pages import outcomes
from recalld.actors.pages.erasing import mark_failed
from recalld.actors.reads_files import FILE_KIND
from recalld.actors.retain.commit import read_operation, settle_parent
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import OperationErased, OperationStored
from recalld.storage.errors import Conflict, NotFound, OperationIdTaken
from recalld.storage.partition import Partition
from recalld.storage.records import (
    CANCELLED,
    FAILED,
    OPEN_STATES,
    PENDING,
    PROCESSING,
    BankRecord,
    OperationRecord,
)

Bank = tuple[str, str]
Requeue = Callable[[OperationRecord], None]
PARENT_KINDS = ("batch_retain",)
MOST_A_BANK = 8
"""Operations of one bank in hands at once: while a slow model keeps one bank's, those of others find a free hand."""


@dataclass(slots=True)
class _Open:
    """An operation that has not ended: to be handed out (`ready`), kept back until `due` (µs), or else in a hand."""

    documents: frozenset[int]
    ready: bool = False
    due: int | None = None


class OperationQueue:
    """Open operations and which of them are due, per bank, served round-robin. Lives in the shard's event loop.

    Operations of a bank keep the order they first came in. One is handed out only when no older open one writes a
    document of its, be that in a hand or kept back: an old version must never replace a newer one.
    """

    def __init__(self) -> None:
        self._banks: dict[Bank, dict[str, _Open]] = {}
        self._turns: OrderedDict[Bank, None] = OrderedDict()
        self._later: list[tuple[int, str, Bank]] = []
        self._changed = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Hand out nothing more and end the waits: the daemon is stopping."""
        self.closed = True
        self._changed.set()

    def hold(self, bank: Bank, operation_id: str, documents: Iterable[int] = ()) -> None:
        """A new operation that somebody has in hand already; what writes its documents stands behind it."""
        self._banks.setdefault(bank, {})[operation_id] = _Open(frozenset(documents))

    def put(self, bank: Bank, operation_id: str, due: int | None = None, documents: Iterable[int] = ()) -> None:
        """Queue an operation, behind the others when it is new; `due` in µs keeps it back until then.

        `documents` are the marks of those it writes; a known operation keeps the ones it has, and its place.
        """
        held = self._banks.setdefault(bank, {})
        operation = held.get(operation_id)
        if operation is None:
            operation = held[operation_id] = _Open(frozenset(documents))
        operation.ready, operation.due = due is None, due
        if due is not None:
            heapq.heappush(self._later, (due, operation_id, bank))
        else:
            self._offer(bank)

    def settle(self, bank: Bank, operation_id: str) -> None:
        """An operation ended, or is gone: what stood behind it may go."""
        held = self._banks.get(bank, {})
        if held.pop(operation_id, None) is None:
            return
        if held:
            self._offer(bank)
        else:
            del self._banks[bank]

    def take(self, limit: int, now: int) -> list[tuple[Bank, str]]:
        """At most `limit` due operations, one bank after the other."""
        while self._later and self._later[0][0] <= now:
            due, operation_id, bank = heapq.heappop(self._later)
            operation = self._banks.get(bank, {}).get(operation_id)
            if operation is not None and operation.due == due:
                operation.ready, operation.due = True, None
                self._offer(bank)
        taken: list[tuple[Bank, str]] = []
        while self._turns and len(taken) < limit:
            bank, _ = self._turns.popitem(last=False)
            if self._in_hands(bank) >= MOST_A_BANK:
                continue  # its next turn comes when one of them ends
            found = self._next(bank)
            if found is not None:
                taken.append((bank, found))
                self._turns[bank] = None
        return taken

    def _offer(self, bank: Bank) -> None:
        self._turns.setdefault(bank)
        self._changed.set()

    def _next(self, bank: Bank) -> str | None:
        waited_for: set[int] = set()
        for operation_id, operation in self._banks.get(bank, {}).items():
            if operation.ready and operation.documents.isdisjoint(waited_for):
                operation.ready = False
                return operation_id
            waited_for |= operation.documents
        return None

    def _in_hands(self, bank: Bank) -> int:
        return sum(not one.ready and one.due is None for one in self._banks.get(bank, {}).values())

    def next_due(self) -> int | None:
        return self._later[0][0] if self._later else None

    def wake(self) -> None:
        """End the waits: something fell due."""
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Until something may be handed out, at most `seconds`."""
        if self._turns or self.closed:
            return
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def __len__(self) -> int:
        return sum(one.ready or one.due is not None for held in self._banks.values() for one in held.values())


def document_marks(names: Iterable[str]) -> tuple[int, ...]:
    """64-bit digests of document ids."""
    digests = (hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest() for name in names)
    return tuple(int.from_bytes(digest[:8], "little") for digest in digests)


def recover(partition: Partition, now: int) -> list[tuple[Bank, OperationRecord]]:
    """Open operations of a partition at start, each `pending` again, parents left out."""
    found: list[tuple[Bank, OperationRecord]] = []
    by_bank: dict[Bank, list[str]] = {}
    with partition.environment.read() as txn:
        for _, value in txn.scan(keys.table(0, keys.OPEN_OPERATION)):
            number = int.from_bytes(bytes(value), "little")
            record = txn.get(keys.table(number, keys.BANK))
            if record is None:
                continue
            bank = codec.decode(BankRecord, record)
            by_bank.setdefault((bank.tenant, bank.bank_id), [])
        for bank_key in by_bank:
            number = partition.bank_number(txn, *bank_key) or 0
            for _, value in txn.scan(keys.table(number, keys.OPERATION)):
                operation = codec.decode(OperationRecord, value)
                if operation.status in OPEN_STATES and operation.kind not in PARENT_KINDS:
                    found.append((bank_key, operation))
    for bank_key, operation in found:
        if operation.status == PROCESSING:
            partition.write(*bank_key, partial(_to_pending, operation=operation, now=now), frees=True)
    found.sort(key=lambda pair: pair[1].created_at)
    return found


def _to_pending(applier: Applier, operation: OperationRecord, now: int) -> None:
    applier.apply(OperationStored(dataclasses.replace(operation, status=PENDING, updated_at=now)))


def submit(applier: Applier, request: SubmitOperations) -> dict[str, bool]:
    """Store new operations. An id that is stored already, of the same kind, changes nothing."""
    for new in request.operations:
        known = read_operation(applier, new.id)
        if known is not None:
            if known.kind != new.kind:
                raise OperationIdTaken(f"operation_id {new.id} already belongs to another operation.")
            return {"created": False}
        if applier.txn.get(keys.operation_key(0, keys.OPERATION_BANK, new.id)) is not None:
            raise OperationIdTaken(f"operation_id {new.id} already belongs to another bank.")
    for new in request.operations:
        record = OperationRecord(
            id=new.id,
            kind=new.kind,
            status=PENDING,
            created_at=request.now,
            updated_at=request.now,
            items_count=new.items_count,
            document_id=new.document_id,
            parent=new.parent,
            children=tuple(new.children),
            result=new.result,
            documents=document_marks(new.documents),
        )
        if request.held and new.kind not in PARENT_KINDS:
            record = dataclasses.replace(record, status=PROCESSING, attempts=1)
        applier.apply(OperationStored(record, new.payload))
    return {"created": True}


def claim(applier: Applier, bank: Bank, operation_id: str, now: int) -> Claimed | None:
    """Take a pending operation into processing; None when it is not pending any more."""
    operation = read_operation(applier, operation_id)
    if operation is None or operation.status != PENDING:
        return None
    payload = applier.txn.get(keys.operation_key(applier.bank, keys.PAYLOAD, operation_id))
    attempts = operation.attempts + 1
    taken = dataclasses.replace(
        operation, status=PROCESSING, attempts=attempts, updated_at=now, next_retry_at=None, waiting=""
    )
    applier.apply(OperationStored(taken))
    settle_parent(applier, operation.parent, now)
    work = bytes(payload or b"")
    return Claimed(*bank, operation_id, operation.kind, attempts, work, operation.waits, operation.created_at)


def finish(applier: Applier, request: FinishOperation) -> None:
    """Store how a claimed operation ended, or put it back for another attempt.

    One that comes back without an error was let go unfinished, by a daemon that ends: that was no attempt. Nor was one
    that waits for a model or a budget.
    """
    operation = read_operation(applier, request.id)
    if operation is None or operation.status != PROCESSING:
        return
    if operation.cancel_requested:
        ended = dataclasses.replace(operation, status=CANCELLED, completed_at=request.now)
    elif request.retry_at is not None:
        ended = dataclasses.replace(operation, status=PENDING, next_retry_at=request.retry_at, error=request.error)
        if request.error is None:
            ended = dataclasses.replace(ended, attempts=max(0, operation.attempts - 1), next_retry_at=None)
        elif request.waiting:
            attempts, waits = max(0, operation.attempts - 1), operation.waits + 1
            ended = dataclasses.replace(ended, attempts=attempts, waits=waits, waiting=request.waiting)
    else:
        ended = dataclasses.replace(operation, status=FAILED, error=request.error, completed_at=request.now)
    if ended.status == FAILED and ended.kind == outcomes.KIND:
        details = outcomes.details(outcomes.FAILED_ERROR, "unexpected_error")
        ended = dataclasses.replace(ended, result={**ended.result, "details": details})
        mark_failed(applier, str(ended.result.get("mental_model_id")), request.now)
    applier.apply(OperationStored(dataclasses.replace(ended, updated_at=request.now)))
    settle_parent(applier, operation.parent, request.now)


def change(applier: Applier, request: ChangeOperation, requeue: Requeue) -> dict[str, str]:
    """Cancel, retry or delete an operation; a parent passes it on to its children."""
    operation = read_operation(applier, request.id)
    if operation is None:
        raise NotFound(f"Operation '{request.id}' not found")
    act = {"cancel": _cancel, "retry": _retry, "delete": _delete}[request.action]
    act(applier, operation, request.now, requeue)
    return {"operation_id": request.id}


def _cancel(applier: Applier, operation: OperationRecord, now: int, requeue: Requeue) -> None:
    if operation.status not in OPEN_STATES:
        raise Conflict(f"Operation '{operation.id}' is already {operation.status}.")
    for name in operation.children:
        child = read_operation(applier, name)
        if child is not None and child.status in OPEN_STATES:
            _cancel(applier, child, now, requeue)
    if operation.status == PENDING or operation.children:
        ended = dataclasses.replace(operation, status=CANCELLED, updated_at=now, completed_at=now)
        applier.apply(OperationStored(ended))
        settle_parent(applier, operation.parent, now)
        if not operation.children:
            # One that was kept back is looked at now and found ended, so that what waits for it may go.
            requeue(ended)
    else:
        applier.apply(OperationStored(dataclasses.replace(operation, cancel_requested=True, updated_at=now)))


def _retry(applier: Applier, operation: OperationRecord, now: int, requeue: Requeue) -> None:
    deferred = operation.status == PENDING and operation.next_retry_at is not None
    if operation.status not in (FAILED, CANCELLED) and not deferred:
        raise Conflict(f"Operation '{operation.id}' is {operation.status}; only failed or cancelled ones are retried.")
    children = [child for name in operation.children if (child := read_operation(applier, name)) is not None]
    if any(child.status in OPEN_STATES and child.cancel_requested for child in children):
        raise Conflict(f"What operation '{operation.id}' had under way is still ending; retry in a moment.")
    for child in children:
        if child.status in (FAILED, CANCELLED):
            _retry(applier, child, now, requeue)
    if operation.kind == FILE_KIND and not deferred:
        raise Conflict(f"The upload of operation '{operation.id}' was removed when it ended; upload the file again.")
    payload = keys.operation_key(applier.bank, keys.PAYLOAD, operation.id)
    if operation.kind not in PARENT_KINDS and applier.txn.get(payload) is None:
        raise Conflict(
            f"What operation '{operation.id}' was to store was erased with a document it names; send it again."
        )
    status = PROCESSING if operation.children else PENDING
    again = dataclasses.replace(
        operation,
        status=status,
        attempts=0,
        waits=0,
        waiting="",
        next_retry_at=None,
        error=None,
        completed_at=None,
        cancel_requested=False,
        updated_at=now,
    )
    applier.apply(OperationStored(again))
    if not operation.children:
        requeue(again)


def _delete(applier: Applier, operation: OperationRecord, now: int, requeue: Requeue) -> None:
    if operation.status in OPEN_STATES:
        raise Conflict(f"Operation '{operation.id}' is {operation.status}; cancel it first.")
    applier.apply(OperationErased(operation.id))
    for name in operation.children:
        if read_operation(applier, name) is not None:
            applier.apply(OperationErased(name))

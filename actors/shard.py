"""The Shard: the only reader and writer of its partitions' banks.

The actor is thin: a message is matched to a pure function over a snapshot or an applier, run in a thread (numpy and
LMDB let the GIL go) or in a partition's writer. Each kind of work has threads of its own (`bank_threads`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog

from recalld.actors import banks, curation, entities_by_hand, messages, operations, reads, reads_ledger
from recalld.actors.auditing import audited
from recalld.actors.bank_threads import PLAN, READ, RECALL, BankThreads
from recalld.actors.consolidate import writes as consolidation
from recalld.actors.consolidate.messages import CommitConsolidation, ForgetObservations, QueueConsolidation
from recalld.actors.curation_messages import CommitCuration, EditPlan, PlanEdit
from recalld.actors.entity_messages import ChangeEntities
from recalld.actors.hosting import log_unexpected
from recalld.actors.opinions.believe import believe, commit_judgements, commit_opinions, revise
from recalld.actors.opinions.evidence import Believing, weigh
from recalld.actors.opinions.messages import CommitJudgements, CommitOpinions, ReviseOpinion
from recalld.actors.pages import writes as page_writes
from recalld.actors.pages.messages import ChangePages, CommitRefresh, SubmitRefresh
from recalld.actors.recall import engine
from recalld.actors.recall.bank import under_bank, with_budgets
from recalld.actors.recall.query import RecallAnswer, RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.retain.commit import commit_retain
from recalld.actors.retain.similar import link_floor, similar_units
from recalld.actors.retain.standing import empty_plan, plan_erase, plan_retain
from recalld.storage.apply import Applier
from recalld.storage.beliefs import HAND
from recalld.storage.budget import MemoryBudget
from recalld.storage.errors import BankNotFound, DeadlineExceeded, NotFound, Quarantined, RecalldError, Unavailable
from recalld.storage.home import Home
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.records import OperationRecord
from recalld.storage.upkeep import compact, tend, verify

log = structlog.get_logger(__name__)
T = TypeVar("T")

SWEEP_SECONDS = 1.0
TEND_SECONDS = 0.05
PARKED_US = 60 * 1_000_000
CLAIM_AGAIN_US = 2_000_000
KEPT_US = 60 * 1_000_000
"""An operation that its claimer does not name for so long is taken back."""


@dataclass(slots=True)
class _Held:
    """A claimed operation: taken back when its claimer is silent until `kept` or it runs beyond `limit` (µs)."""

    bank: tuple[str, str]
    kept: int
    limit: int


class Shard:
    """Owns the partitions `numbers` of a home. `clock` gives µs since the epoch, `new_id` UUID strings."""

    def __init__(
        self,
        home: Home,
        numbers: list[int],
        store: StoreSettings,
        recall: RecallSettings,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        *,
        bank_defaults: dict[str, Any] | None = None,
        threads: int = 2,
        wall_limit_us: int = 3600 * 1_000_000,
    ) -> None:
        self._home = home
        self._numbers = numbers
        self._store = store
        self._budget = MemoryBudget(store.memory_budget)
        self._recall = recall
        self._bank_defaults = bank_defaults or {}
        self._clock = clock
        self._new_id = new_id
        self._wall_limit = wall_limit_us
        self._partitions: dict[int, Partition] = {}
        self._opening = asyncio.Lock()
        self._threads = BankThreads(threads)
        self._queue = operations.OperationQueue()
        self._held: dict[str, _Held] = {}
        self._upkeep = ThreadPoolExecutor(1, thread_name_prefix="upkeep")
        self._sweeper: asyncio.Task[None] | None = None
        self._tender: asyncio.Task[None] | None = None
        self._recalls = 0

    async def start(self) -> None:
        """Open every partition that was ever used and queue the operations left in it."""
        for number in self._numbers:
            if number in self._home.used_partitions():
                await self._partition_at(number)
        self._sweeper = asyncio.create_task(self._sweep())
        self._tender = asyncio.create_task(self._tend())

    async def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._tender is not None:
            self._tender.cancel()
        for partition in self._partitions.values():
            partition.environment.abandon()
        self._upkeep.shutdown(wait=True, cancel_futures=True)
        self._threads.shutdown()
        await asyncio.gather(*(asyncio.to_thread(partition.close) for partition in self._partitions.values()))

    async def handle(self, message: Any) -> Any:
        match message:
            case RecallQuery():
                return await self._answer(message)
            case messages.PlanRetain():
                return await self._plan_retain(message)
            case messages.CommitRetains():
                return await self._commit_retains(message)
            case messages.PlanErase():
                return await self._plan_erase(message)
            case messages.CommitErase():
                return await self._commit_erase(message)
            case messages.Read():
                return await self._read(message)
            case messages.RecordCalls():
                run = partial(reads_ledger.record_calls, request=message)
                return await self._write(message.tenant, message.bank_id, run, frees=True)
            case messages.PutBank():
                return await self._write(
                    message.tenant,
                    message.bank_id,
                    self._audited("update_bank", partial(banks.put_bank, request=message)),
                    request_id=message.request_id,
                    create=message.create,
                )
            case ChangeEntities():
                return await self._write(
                    message.tenant,
                    message.bank_id,
                    partial(entities_by_hand.change_entities, request=message),
                    request_id=message.request_id,
                )
            case PlanEdit():
                return await self._plan_edit(message)
            case CommitCuration():
                unit = (message.unit,) if message.unit else ()
                similar, _ = await self._linked(message.tenant, message.bank_id, unit)
                return await self._write(
                    message.tenant,
                    message.bank_id,
                    self._audited("update_memory", partial(curation.commit_curation, request=message, similar=similar)),
                    request_id=message.request_id,
                )
            case QueueConsolidation() | CommitConsolidation() | ForgetObservations():
                return await self._consolidation(message)
            case ChangePages() | SubmitRefresh() | CommitRefresh():
                return await self._change_pages(message)
            case CommitOpinions():
                return await self._commit_opinions(message)
            case CommitJudgements():
                return await self._commit_judgements(message)
            case ReviseOpinion():
                run = partial(revise, request=message, defaults=self._bank_defaults)
                return await self._write(message.tenant, message.bank_id, run, request_id=message.request_id)
            case messages.DeleteBank():
                return await self._delete_bank(message)
            case messages.PatchDocument():
                similar, _ = await self._linked(message.tenant, message.bank_id, message.moves)
                return await self._write(
                    message.tenant,
                    message.bank_id,
                    self._audited("update_document", partial(banks.patch_document, request=message, similar=similar)),
                    request_id=message.request_id,
                )
            case messages.SubmitOperations():
                return await self._submit(message)
            case messages.ClaimOperations():
                return await self._claim(message)
            case messages.KeepOperations():
                return self._keep(message)
            case messages.FinishOperation():
                return await self._finish(message)
            case messages.ChangeOperation():
                return await self._change(message)
            case messages.Maintain():
                return await self._maintain(message)
        raise RecalldError(f"A shard does not understand {type(message).__name__}.")

    # -- plumbing --------------------------------------------------------------------------------------------------

    async def _partition_at(self, number: int) -> Partition:
        if number not in self._numbers:
            raise Unavailable("This shard does not own that bank's partition; try again.")
        async with self._opening:
            partition = self._partitions.get(number)
            if partition is None:
                partition = await asyncio.to_thread(
                    self._home.open_partition, number, self._store, self._clock, self._new_id, self._budget
                )
                for bank, operation in await asyncio.to_thread(operations.recover, partition, self._clock()):
                    self._queue.put(bank, operation.id, operation.next_retry_at, operation.documents)
                self._partitions[number] = partition
        return partition

    async def _of(self, tenant: str, bank_id: str) -> Partition:
        number = self._home.partition_of(tenant, bank_id)
        return self._partitions.get(number) or await self._partition_at(number)

    async def _write(self, tenant: str, bank_id: str, run: Callable[[Any], T], **options: Any) -> T:
        partition = await self._of(tenant, bank_id)
        return await asyncio.wrap_future(partition.submit(tenant, bank_id, run, **options))

    def _audited(self, action: str, run: Callable[[Any], T]) -> Callable[[Any], T]:
        return audited(run, action, self._new_id(), self._clock, self._bank_defaults)

    # -- recall ----------------------------------------------------------------------------------------------------

    async def _answer(self, query: RecallQuery) -> RecallAnswer:
        partition = await self._of(query.tenant, query.bank_id)
        self._recalls += 1
        run = partial(answer_recall, partition, query, self._recall, self._bank_defaults)
        return await self._threads.run(RECALL, partition, query.tenant, query.bank_id, run)

    # -- retain ----------------------------------------------------------------------------------------------------

    async def _plan_retain(self, request: messages.PlanRetain) -> messages.RetainPlan:
        partition = await self._of(request.tenant, request.bank_id)

        def run() -> messages.RetainPlan:
            try:
                with partition.read(request.tenant, request.bank_id) as snap:
                    return plan_retain(snap, request)
            except BankNotFound:
                return empty_plan(request)

        return await self._threads.run(PLAN, partition, request.tenant, request.bank_id, run)

    async def _commit_retains(self, request: messages.CommitRetains) -> tuple[Any, ...]:
        prepared = await asyncio.gather(
            *(
                self._linked(one.tenant, one.bank_id, (*one.units, *one.moves), one.units, judge=not one.judged_later)
                for one in request.commits
            ),
            return_exceptions=True,
        )
        futures: list[Awaitable[Any]] = []
        for commit, found in zip(request.commits, prepared, strict=True):
            if isinstance(found, BaseException):
                futures.append(asyncio.sleep(0, found))
                continue
            partition = await self._of(commit.tenant, commit.bank_id)
            similar, believing = found
            moves = None if believing is None else partial(believe, believing=believing)
            future = partition.submit(
                commit.tenant,
                commit.bank_id,
                self._audited("retain", partial(commit_retain, write=commit, similar=similar, believe=moves)),
                request_id=commit.request_id,
                create=True,
            )
            futures.append(asyncio.wrap_future(future))
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for commit, answer in zip(request.commits, answers, strict=True):
            if isinstance(answer, dict) and answer.get("judging"):
                self._queue.put((commit.tenant, commit.bank_id), answer["judging"])
            if commit.operation_id is not None:
                self._held.pop(commit.operation_id, None)
                if not isinstance(answer, BaseException):
                    self._queue.settle((commit.tenant, commit.bank_id), commit.operation_id)
        return tuple(_as_error(answer) if isinstance(answer, BaseException) else answer for answer in answers)

    async def _linked(
        self, tenant: str, bank_id: str, units: tuple[Any, ...], believed: tuple[Any, ...] = (), *, judge: bool = True
    ) -> tuple[Any, Believing | None]:
        """Each new unit's semantic links, and what opinions those in `believed` touch: looked up before the write, so
        that the writer never searches."""
        if not units:
            return {}, None
        partition = await self._of(tenant, bank_id)
        dim = len(units[0].vectors) // max(1, len(units[0].scales) // 4)

        def look(snap: Any, model: Any) -> tuple[Any, Believing | None]:
            links = similar_units(snap, units, dim, link_floor(model, self._recall.semantic_link))
            return links, weigh(snap, believed, dim, self._bank_defaults, judge=judge) if believed else None

        def run() -> tuple[Any, Believing | None]:
            try:
                with partition.read(tenant, bank_id) as snap:
                    return look(snap, snap.record.model)
            except BankNotFound:
                return look(None, {})

        return await self._threads.run(PLAN, partition, tenant, bank_id, run)

    # -- opinions --------------------------------------------------------------------------------------------------

    async def _commit_opinions(self, request: CommitOpinions) -> dict[str, Any]:
        similar, believing = await self._linked(request.tenant, request.bank_id, request.units, request.units)
        run = partial(
            commit_opinions, request=request, similar=similar, believing=believing, defaults=self._bank_defaults
        )
        return await self._write(
            request.tenant, request.bank_id, run, request_id=request.request_id, create=request.made_by == HAND
        )

    async def _commit_judgements(self, request: CommitJudgements) -> dict[str, Any]:
        run = partial(commit_judgements, request=request, defaults=self._bank_defaults)
        answer = await self._write(request.tenant, request.bank_id, run, request_id=request.request_id)
        self._held.pop(request.operation_id, None)
        self._queue.settle((request.tenant, request.bank_id), request.operation_id)
        return answer

    # -- erasing ---------------------------------------------------------------------------------------------------

    async def _plan_erase(self, request: messages.PlanErase) -> messages.ErasePlan:
        partition = await self._of(request.tenant, request.bank_id)

        def run() -> messages.ErasePlan:
            with partition.read(request.tenant, request.bank_id) as snap:
                return plan_erase(snap, request)

        return await self._threads.run(PLAN, partition, request.tenant, request.bank_id, run)

    async def _plan_edit(self, request: PlanEdit) -> EditPlan:
        partition = await self._of(request.tenant, request.bank_id)

        def run() -> EditPlan:
            with partition.read(request.tenant, request.bank_id) as snap:
                return curation.plan_edit(snap, request)

        return await self._threads.run(PLAN, partition, request.tenant, request.bank_id, run)

    async def _commit_erase(self, request: messages.CommitErase) -> dict[str, Any]:
        similar, _ = await self._linked(request.tenant, request.bank_id, request.moves)
        action = "clear_memories" if request.document_id is None else "delete_document"
        return await self._write(
            request.tenant,
            request.bank_id,
            self._audited(action, partial(banks.commit_erase, request=request, similar=similar)),
            request_id=request.request_id,
            frees=True,
        )

    async def _delete_bank(self, request: messages.DeleteBank) -> dict[str, Any]:
        try:
            return await self._write(
                request.tenant, request.bank_id, banks.delete_bank, request_id=request.request_id, frees=True
            )
        except BankNotFound:
            return {"deleted": 0}

    async def _consolidation(self, request: consolidation.Request) -> dict[str, Any]:
        bank = (request.tenant, request.bank_id)
        forget = isinstance(request, ForgetObservations)
        every = await self._read(messages.Read("observation_uids", *bank)) if forget else ()
        run = consolidation.write_of(request, every)
        request_id = None if isinstance(request, QueueConsolidation) else request.request_id
        answer = await self._write(*bank, run, request_id=request_id, frees=forget)
        ended, queued = consolidation.ended_and_queued(request, answer)
        if ended is not None:
            self._held.pop(ended, None)
            self._queue.settle(bank, ended)
        if queued is not None:
            self._queue.put(bank, queued, documents=consolidation.ONE_AT_A_TIME)
        return answer

    # -- pages -----------------------------------------------------------------------------------------------------

    async def _change_pages(self, request: ChangePages | SubmitRefresh | CommitRefresh) -> dict[str, Any]:
        bank = (request.tenant, request.bank_id)
        if isinstance(request, CommitRefresh):
            run = self._audited("refresh_mental_model", partial(page_writes.commit, request=request))
            answer = await self._write(*bank, run)
            self._held.pop(request.operation_id, None)
            self._queue.settle(bank, request.operation_id)
            return answer
        if isinstance(request, SubmitRefresh):
            answer = await self._write(*bank, partial(page_writes.submit, request=request))
        else:
            run = self._audited(request.action, partial(page_writes.change, request=request))
            answer = await self._write(*bank, run, request_id=request.request_id, create=request.create)
        queued = answer.pop("queue", None)
        if queued is not None:
            self._queue.put(bank, queued["id"], queued["due"], queued["documents"])
        return answer

    # -- reads -----------------------------------------------------------------------------------------------------

    async def _read(self, request: messages.Read) -> Any:
        function = reads.READS.get(request.what)
        if function is None:
            raise NotFound(f"There is no listing named {request.what}.")
        if request.bank_id:
            partition = await self._of(request.tenant, request.bank_id)
            run = partial(function, partition, request.tenant, request.bank_id, request.params)
            return await self._threads.run(READ, partition, request.tenant, request.bank_id, run)
        found = [
            await self._threads.run(
                READ, partition, request.tenant, "", partial(function, partition, request.tenant, "", request.params)
            )
            for partition in list(self._partitions.values())
        ]
        return [row for rows in found for row in rows]

    # -- operations ------------------------------------------------------------------------------------------------

    async def _submit(self, request: messages.SubmitOperations) -> dict[str, Any]:
        answer = await self._write(
            request.tenant, request.bank_id, partial(operations.submit, request=request), create=True
        )
        if answer["created"]:
            for new in request.operations:
                if new.kind not in operations.PARENT_KINDS:
                    marks = operations.document_marks(new.documents)
                    bank = (request.tenant, request.bank_id)
                    if request.held:
                        now = self._clock()
                        self._held[new.id] = _Held(bank, now + KEPT_US, now + self._wall_limit)
                        self._queue.hold(bank, new.id, marks)
                    else:
                        self._queue.put(bank, new.id, documents=marks)
        return answer

    async def _claim(self, request: messages.ClaimOperations) -> tuple[messages.Claimed, ...]:
        if request.wait:
            await self._queue.wait(request.wait)
        if self._queue.closed:
            return ()
        end = time.monotonic() + request.patience
        found = []
        for bank, operation_id in self._queue.take(request.limit, self._clock()):
            run = partial(_claim_before, end, bank=bank, operation_id=operation_id, now=self._clock())
            try:
                claimed = await self._write(*bank, run)
            except BankNotFound:
                self._queue.settle(bank, operation_id)
                continue
            except Quarantined:  # the bank takes no writes: its work is parked
                self._queue.put(bank, operation_id, self._clock() + PARKED_US)
                continue
            except DeadlineExceeded:  # the writer was busy for long: the next claim takes it
                self._queue.put(bank, operation_id)
                continue
            except Exception as error:  # a full disk, say: the work waits for the next claim
                log.warning("an operation could not be claimed", operation=operation_id, error=type(error).__name__)
                self._queue.put(bank, operation_id, self._clock() + CLAIM_AGAIN_US)
                continue
            if claimed is None:
                self._queue.settle(bank, operation_id)
            else:
                now = self._clock()
                late = time.monotonic() > end
                self._held[operation_id] = _Held(bank, now if late else now + KEPT_US, now + self._wall_limit)
                if not late:
                    found.append(claimed)
        return tuple(found)

    def _keep(self, request: messages.KeepOperations) -> dict[str, Any]:
        until = self._clock() + KEPT_US
        for operation_id in request.ids:
            if operation_id in self._held:
                self._held[operation_id].kept = until
        return {}

    async def _finish(self, request: messages.FinishOperation) -> dict[str, Any]:
        self._held.pop(request.id, None)
        bank = (request.tenant, request.bank_id)
        try:
            await self._write(*bank, partial(operations.finish, request=request), frees=True)
        except BankNotFound:
            self._queue.settle(bank, request.id)
            return {}
        except Exception:
            # What could not be stored must not be lost: the sweep takes the operation back.
            again = self._clock() + CLAIM_AGAIN_US
            self._held[request.id] = _Held(bank, again, again)
            raise
        if request.retry_at is not None:
            self._queue.put(bank, request.id, request.retry_at)
        else:
            self._queue.settle(bank, request.id)
        return {}

    async def _change(self, request: messages.ChangeOperation) -> dict[str, Any]:
        again: list[OperationRecord] = []
        run = partial(operations.change, request=request, requeue=again.append)
        answer = await self._write(request.tenant, request.bank_id, run, frees=True)
        for operation in again:
            self._queue.put((request.tenant, request.bank_id), operation.id, documents=operation.documents)
        return answer

    async def _sweep(self) -> None:
        """Wake claimers for what falls due, and take back what passed its wall limit."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self._clock()
            for operation_id, held in list(self._held.items()):
                if now > min(held.kept, held.limit):
                    passed = "passed its wall limit" if now > held.limit else "was in nobody's hand"
                    error = f"The operation {passed} and was queued again."
                    try:
                        await self._finish(messages.FinishOperation(*held.bank, operation_id, now, error, retry_at=now))
                    except Exception as failure:  # it is tried again
                        name = type(failure).__name__
                        log.warning("an operation could not be taken back", operation=operation_id, error=name)
            due = self._queue.next_due()
            if due is not None and due <= now:
                self._queue.wake()

    async def _tend(self) -> None:
        """Background work on the open banks' indexes, in a thread of its own and about half of its time at most."""
        while True:
            left = False
            for partition in list(self._partitions.values()):
                run = partial(tend, partition, TEND_SECONDS)
                try:
                    left |= await asyncio.get_running_loop().run_in_executor(self._upkeep, run)
                except Exception as error:  # whatever it was, the other partitions and the next round go on
                    log_unexpected("upkeep_failed", f"partition {partition.folder.name}", error)
            await asyncio.sleep(TEND_SECONDS if left else SWEEP_SECONDS)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    async def _maintain(self, request: messages.Maintain) -> dict[str, Any]:
        match request.what:
            case "stats":
                return self._stats()
            case "compact":
                sizes = {str(n): await asyncio.to_thread(compact, p) for n, p in self._partitions.items()}
                return {"partitions": {n: {"before": before, "after": after} for n, (before, after) in sizes.items()}}
            case "verify":
                tenant, bank_id = request.params["tenant"], request.params["bank_id"]
                partition = await self._of(tenant, bank_id)
                return await asyncio.to_thread(verify, partition, tenant, bank_id)
            case "backup":
                target = Path(request.params["folder"])
                for number, partition in self._partitions.items():
                    await asyncio.to_thread(partition.environment.copy_to, target / f"{number:04d}")
                return {"partitions": sorted(self._partitions)}
            case "drain":
                self._queue.close()
                return {}
            case "release":
                for partition in self._partitions.values():
                    for number in partition.quarantined():
                        partition.release(number)
                return {}
        raise RecalldError(f"A shard cannot do '{request.what}'.")

    def _stats(self) -> dict[str, Any]:
        open_banks = [bank for partition in self._partitions.values() for bank in partition.open_banks()]
        slowest = [partition.environment.last_flush_seconds * 1e3 for partition in self._partitions.values()]
        return {
            "partitions": {str(n): partition.environment.usage() for n, partition in self._partitions.items()},
            "flushes": sum(partition.environment.flushes for partition in self._partitions.values()),
            "last_flush_ms": max(slowest, default=0.0),
            "banks": sum(partition.bank_count() for partition in self._partitions.values()),
            "open_banks": len(open_banks),
            "open_bank_bytes": sum(bank.nbytes for bank in open_banks),
            "operations_queued": len(self._queue),
            "operations_held": len(self._held),
            "recalls": self._recalls,
            "quarantined": [n for partition in self._partitions.values() for n in partition.quarantined()],
        }


def answer_recall(
    partition: Partition, query: RecallQuery, settings: RecallSettings, defaults: dict[str, Any]
) -> RecallAnswer:
    """A recall under the bank's settings: the server's `defaults` with the bank's own over them."""
    with partition.read(query.tenant, query.bank_id) as snap:
        bank = {**defaults, **snap.record.overrides}
        return engine.recall(snap, under_bank(query, bank), with_budgets(settings, bank, query.max_tokens))


def _as_error(error: BaseException) -> RecalldError:
    if isinstance(error, RecalldError):
        return error
    log_unexpected("commit_failed", "shard", error)
    return RecalldError()


def _claim_before(end: float, applier: Applier, **named: Any) -> messages.Claimed | None:
    """`operations.claim`, unless its claimer gave up while the write stood in line: `end`, monotonic."""
    if time.monotonic() > end:
        raise DeadlineExceeded("The claim came too late.")
    return operations.claim(applier, **named)

"""Working off stored operations: claim from the shards, hand to the worker, report failures back.

Success needs no report: the commit that stores an operation's units also stores that it is completed.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from recalld.actors import messages
from recalld.actors.directory import Shards
from recalld.actors.hosting import log_unexpected
from recalld.actors.llm.base import RETAIN
from recalld.actors.llm.models import SILENT
from recalld.actors.reads_files import FILE_KIND
from recalld.actors.retain.extraction import MODEL
from recalld.actors.runtime import ActorRef
from recalld.daemon.settings_llm import llm_config
from recalld.storage import codec
from recalld.storage.errors import BudgetExhausted, ModelRateLimited, ModelUnavailable, RecalldError

if TYPE_CHECKING:
    from recalld.actors.retain.items import RetainItem
    from recalld.daemon.files import FileDesk
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)
Handler = Callable[[messages.Claimed], Awaitable[None]]

REPROCESS = "reprocess_document"
"""Kind of an operation that reads a document's stored text anew."""
CHARACTERS_A_TOKEN = 4
CLAIM_WAIT = 10.0
CLAIM_PATIENCE = 20.0
ANSWER_SECONDS = 10.0
LAST_CLAIMS = 0.5
GIVE_BACK_SECONDS = 1.0
KEEP_SECONDS = 15.0
"""How often a shard is told which of its operations are still worked on; it takes back what it does not hear of."""


def pack_payload(items: Sequence[RetainItem]) -> bytes:
    return zlib.compress(codec.pack([item.to_plain() for item in items]), 3)


def unpack_payload(payload: bytes) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = codec.unpack(zlib.decompress(payload))
    return items


def split_items(items: Sequence[RetainItem], tokens: int) -> list[list[RetainItem]]:
    """Items in parts of about `tokens`; items of one document stay together, since the document is one write."""
    groups: dict[str, list[RetainItem]] = {}
    named = any(item.document_id is not None for item in items)
    for index, item in enumerate(items):
        key = item.document_id if item.document_id is not None else f"\0{index}" if named else "\0"
        groups.setdefault(key, []).append(item)
    parts: list[list[RetainItem]] = [[]]
    size = 0
    for group in groups.values():
        weight = sum(len(item.content) for item in group) // CHARACTERS_A_TOKEN
        if parts[-1] and size + weight > tokens:
            parts.append([])
            size = 0
        parts[-1] += group
        size += weight
    return parts


def by_strategy(items: Sequence[RetainItem]) -> list[list[RetainItem]]:
    """Items by the strategy they are read under, in order of first mention.

    A document is one write, so all its items go where its first one goes, as they do in a synchronous retain.
    """
    of_document: dict[str, str | None] = {}
    groups: dict[str | None, list[RetainItem]] = {}
    for item in items:
        strategy = item.strategy
        if item.document_id is not None:
            strategy = of_document.setdefault(item.document_id, strategy)
        groups.setdefault(strategy, []).append(item)
    return list(groups.values())


def new_operations(parent: str, items: Sequence[RetainItem], tokens: int) -> tuple[messages.NewOperation, ...]:
    """A parent and its children. Children's ids follow from the parent's, so a repeated call makes the same ones."""
    parts = split_items(items, tokens)
    children = [
        messages.NewOperation(
            id=str(uuid.uuid5(uuid.UUID(parent), str(index))),
            kind="retain",
            items_count=len(part),
            payload=pack_payload(part),
            parent=parent,
            document_id=part[0].document_id if len({item.document_id for item in part}) == 1 else None,
            result={"sub_batch_index": index},
            documents=tuple(dict.fromkeys(item.document_id for item in part if item.document_id is not None)),
        )
        for index, part in enumerate(parts)
    ]
    total = sum(len(item.content) for item in items) // CHARACTERS_A_TOKEN
    head = messages.NewOperation(
        id=parent,
        kind="batch_retain",
        items_count=len(items),
        children=tuple(child.id for child in children),
        result={
            "is_parent": True,
            "items_count": len(items),
            "total_tokens": total,
            "num_sub_batches": len(children),
        },
    )
    return (head, *children)


class Dispatcher:
    """Keeps up to `operations.slots` operations running."""

    def __init__(
        self,
        settings: Settings,
        shards: Shards,
        worker: Callable[[], Awaitable[ActorRef]],
        clock: Callable[[], int],
        defaults: Callable[[], dict[str, Any]],
        files: FileDesk,
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._worker = worker
        self._clock = clock
        self._defaults = defaults
        self._files = files
        self._slots = asyncio.Semaphore(settings.operations_slots)
        self._claimers: list[asyncio.Task[None]] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._running: dict[asyncio.Task[None], tuple[str, messages.Claimed]] = {}
        self._in_hand: dict[str, set[str]] = {}
        self._let_go: list[tuple[str, messages.Claimed]] = []
        self._stopping = False
        self.items_done = 0
        self.handlers: dict[str, Handler] = {}
        """Who carries out operations of a kind, and ends them; the others are retains."""
        self.listeners: list[Handler] = []
        """Who is told of every operation that was carried out."""

    def start(self) -> None:
        names = self._shards.names
        self._in_hand = {name: set() for name in names}
        self._claimers = [asyncio.create_task(self._serve(name)) for name in names]
        self._keepers = [asyncio.create_task(self._keep(name)) for name in names]

    async def stop(self) -> None:
        """Stop claiming and give back what runs: a run that an orderly end cuts short uses up no attempt."""
        self._stopping = True
        with contextlib.suppress(RecalldError):
            await self._shards.call_all(messages.Maintain("drain"), 1.0)
        running = dict(self._running)
        await _cancel([*running, *self._keepers])
        self._let_go += [held for task, held in running.items() if task.cancelled()]
        if self._claimers:
            # A claim on its way to us is an operation to give back too.
            await asyncio.wait(self._claimers, timeout=LAST_CLAIMS)
        await _cancel(self._claimers)
        await asyncio.gather(*(self._give_back(shard, claimed) for shard, claimed in self._let_go))

    async def _give_back(self, shard: str, claimed: messages.Claimed) -> None:
        now = self._clock()
        report = messages.FinishOperation(claimed.tenant, claimed.bank_id, claimed.id, now, retry_at=now)
        # Where that does not work the shard queues it again when it starts, as after a crash.
        with contextlib.suppress(RecalldError):
            await self._shards.call_named(shard, report, GIVE_BACK_SECONDS)

    async def _serve(self, shard: str) -> None:
        while not self._stopping:
            claimed: Sequence[messages.Claimed] = ()
            try:
                # Waiting for work takes no slot: with many shards, idle ones would keep the busy from theirs.
                await self._claim(shard, 0, CLAIM_WAIT)
                await self._slots.acquire()
                try:
                    claimed = await self._claim(shard, 1, 0.0)
                finally:
                    if not claimed:
                        self._slots.release()
            except RecalldError as error:
                log.debug("no operation could be claimed", shard=shard, error=error.code)
                await asyncio.sleep(1.0)
                continue
            if claimed and self._stopping:
                self._let_go.append((shard, claimed[0]))
            elif claimed:
                task = asyncio.create_task(self._run(shard, claimed[0]))
                self._running[task] = (shard, claimed[0])
                task.add_done_callback(self._running.pop)

    async def _claim(self, shard: str, limit: int, wait: float) -> Sequence[messages.Claimed]:
        request = messages.ClaimOperations(limit, self._clock(), wait, CLAIM_PATIENCE)
        seconds = wait + CLAIM_PATIENCE + ANSWER_SECONDS
        claimed: Sequence[messages.Claimed] = await self._shards.call_named(shard, request, seconds)
        return claimed

    async def _keep(self, shard: str) -> None:
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            if self._in_hand[shard]:
                with contextlib.suppress(RecalldError):
                    request = messages.KeepOperations(tuple(self._in_hand[shard]))
                    await self._shards.call_named(shard, request, KEEP_SECONDS)

    async def _run(self, shard: str, claimed: messages.Claimed) -> None:
        self._in_hand[shard].add(claimed.id)
        try:
            if claimed.attempts > self._settings.operations_max_attempts:
                await self._failed(shard, claimed, RecalldError("The operation used up its attempts."), final=True)
                return
            if claimed.kind in self.handlers:
                async with asyncio.timeout(self._settings.operations_wall_seconds):
                    await self.handlers[claimed.kind](claimed)
                await self._tell(claimed)
                return
            items, now = unpack_payload(claimed.payload), self._clock()
            if claimed.kind == FILE_KIND:
                items = await self._files.items(claimed, items)
            job = messages.RetainJob(
                claimed.tenant,
                claimed.bank_id,
                tuple(items),
                # An id for each claim: a retry must not be answered with what a cancelled run answered. What keeps two
                # runs of one operation from both being stored is its status, checked in the commit.
                request_id=f"{claimed.id}:{now}",
                now=now,
                defaults=self._defaults(),
                provider=extraction_by(self._settings),
                operation_id=claimed.id,
                seconds=self._settings.operations_wall_seconds,
                fresh=claimed.kind == REPROCESS,
                anchor=claimed.created_at,
            )
            await (await self._worker()).call(job, timeout=self._settings.operations_wall_seconds)
            self.items_done += len(items)
            await self._tell(claimed)
        except RecalldError as error:
            await self._failed(shard, claimed, error)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log_unexpected("operation_failed", f"operation {claimed.id}", error)
            await self._failed(shard, claimed, RecalldError(f"The operation failed ({type(error).__name__})."))
        finally:
            self._in_hand[shard].discard(claimed.id)
            self._slots.release()
            if claimed.kind == FILE_KIND:
                await self._files.settled(claimed)

    async def _tell(self, claimed: messages.Claimed) -> None:
        for listener in self.listeners:
            await listener(claimed)

    async def _failed(self, shard: str, claimed: messages.Claimed, error: RecalldError, final: bool = False) -> None:
        """Report a failure: a passing one goes back to the queue after a growing wait, another ends the operation."""
        transient = error.retryable or error.status >= 500
        again = transient and not final and claimed.attempts < self._settings.operations_max_attempts
        waiting = waits_for(error)
        if waiting:
            again, wait = True, self._patience(waiting, claimed.waits, error)
        else:
            wait = min(
                self._settings.operations_backoff_seconds * 2 ** (claimed.attempts - 1),
                self._settings.operations_backoff_max_seconds,
            )
            wait = max(wait, getattr(error, "retry_after", 0))
        now = self._clock()
        report = messages.FinishOperation(
            claimed.tenant,
            claimed.bank_id,
            claimed.id,
            now,
            error=error.message,
            retry_at=now + int(wait * 1e6) if again else None,
            waiting=waiting,
        )
        try:
            await self._shards.call_named(shard, report, 60.0)
        except RecalldError:
            log.warning("a failed operation could not be reported; its shard queues it again", operation=claimed.id)

    def _patience(self, waiting: str, waits: int, error: RecalldError) -> float:
        """Seconds until an operation that waits for a model or a budget looks again."""
        settings, asked = self._settings, float(getattr(error, "retry_after", 0))
        if waiting == "budget":
            # The day ends at a known time, but a cap may be raised before; a long backlog must not ask all the time.
            return max(0.05, min(asked, settings.budget_check_seconds * min(2.0 ** min(waits, 20), 10.0)))
        grown = settings.operations_model_wait_seconds * 2.0 ** min(waits, 20)
        most = settings.operations_model_wait_max_seconds
        return min(max(grown, min(asked, most)), most)

    def hold(self, shard: str, operation_id: str) -> None:
        """Keep an operation that somebody else carries out as if it had been claimed here."""
        self._in_hand.setdefault(shard, set()).add(operation_id)

    def release(self, shard: str, operation_id: str) -> None:
        self._in_hand.get(shard, set()).discard(operation_id)


def waits_for(error: RecalldError) -> str:
    """What work that ended in `error` waits for: `model`, `budget`, or "" when waiting is not the answer."""
    if isinstance(error, BudgetExhausted):
        return "budget"
    return "model" if isinstance(error, ModelUnavailable | ModelRateLimited) else ""


def extraction_by(settings: Settings) -> str:
    """Who turns texts into facts: `model`, `local` or `none`."""
    if settings.extraction_provider != "auto":
        return settings.extraction_provider
    named = llm_config(settings).of(RETAIN).provider
    return named if named in SILENT else MODEL


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

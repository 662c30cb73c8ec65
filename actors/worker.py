"""The Worker: hosts the roles that turn text into units. Today the extractor and the eraser.

Retains batch by themselves: what arrives while every lane is busy forms the next batch, and a batch's commits go to
their shard together, so that they share a flush. A lone request waits for nobody, and no small one for a big one.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.encoder_client import EncoderClient
from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.hosting import log_unexpected
from recalld.actors.messages import (
    CommitErase,
    CommitRetain,
    CommitRetains,
    EraseJob,
    ErasePlan,
    PatchDocument,
    PlanErase,
    RetainJob,
)
from recalld.actors.retain import prepare
from recalld.actors.retain.prepare import Preparation
from recalld.storage.changes import Embedding
from recalld.storage.errors import NotFound, RecalldError, Superseded, Unavailable

LANES = 3
BATCH_JOBS = 16
BATCH_CHARACTERS = 60_000
BIG_JOB_CHARACTERS = 20_000
ATTEMPTS = 12
COMMIT_PATIENCE = 10.0
"""Seconds a lane waits for a commit before it takes the next batch; the commit itself has its jobs' time."""


@dataclass(slots=True)
class _Waiting:
    """A job in line; `size` is the characters of its texts, `documents` are those it names.

    Nobody waits for it after `end`, on the loop's clock.
    """

    job: RetainJob
    answer: asyncio.Future[Any]
    size: int
    documents: frozenset[tuple[str, str, str]]
    end: float
    attempts: int = 0


class Worker:
    """Carries retains from items to committed units, and erases from a wish to a committed change."""

    def __init__(self, shards: Shards, encoder: Callable[[], Any], new_id: Callable[[], str]) -> None:
        self._shards = shards
        self._find_encoder = encoder
        self._new_id = new_id
        self._encoder: EncoderClient | None = None
        self._model: dict[str, Any] = {}
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._in_hand: set[tuple[str, str, str]] = set()
        self._lanes: list[asyncio.Task[None]] = []
        self._commits: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def start(self) -> None:
        self._encoder = EncoderClient(await self._find_encoder())
        self._model = (await self._encoder.describe()).identity
        self._lanes = [asyncio.create_task(self._lane(big=number == 0)) for number in range(LANES)]

    async def stop(self) -> None:
        self._stopping = True
        tasks = [*self._lanes, *self._commits]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def handle(self, message: Any) -> Any:
        match message:
            case RetainJob():
                return await self._enqueue(message)
            case EraseJob():
                return await self._erase(message)
            case PatchDocument():
                return await self._patch(message)
        raise RecalldError(f"A worker does not understand {type(message).__name__}.")

    # -- retain ----------------------------------------------------------------------------------------------------

    async def _enqueue(self, job: RetainJob) -> Any:
        size = sum(len(item["content"]) for item in job.items)
        named = (item.get("document_id") for item in job.items)
        documents = frozenset((job.tenant, job.bank_id, name) for name in named if name is not None)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(job, loop.create_future(), size, documents, loop.time() + job.seconds)
        self._waiting.append(waiting)
        self._arrived.set()
        return await waiting.answer

    async def _lane(self, big: bool) -> None:
        """Batch after batch. Only one lane takes big jobs, so that small ones always find another free."""
        while True:
            batch = self._take(big)
            if batch:
                commit = asyncio.create_task(self._commit(await self._prepare(batch)))
                self._commits.add(commit)
                commit.add_done_callback(self._commits.discard)
                # A shard that is busy for long (it compacts, say) must not keep the lanes from the other shards.
                await asyncio.wait({commit}, timeout=COMMIT_PATIENCE)
            else:
                await self._news()

    async def _news(self) -> None:
        """Until a job arrived or was let go since the lanes last looked."""
        self._arrived.clear()
        await self._arrived.wait()

    def _take(self, big: bool) -> list[tuple[_Waiting, Preparation]]:
        """Waiting jobs for one batch; one that writes a document another job has in hand stays for later.

        So do the jobs behind it that write a document of its: the last version sent must be the one that stays.
        """
        batch: list[tuple[_Waiting, Preparation]] = []
        characters = 0
        left: deque[_Waiting] = deque()
        blocked: set[tuple[str, str, str]] = set()
        while self._waiting and len(batch) < BATCH_JOBS and characters < BATCH_CHARACTERS:
            waiting = self._waiting.popleft()
            if waiting.answer.done():
                continue
            free = waiting.documents.isdisjoint(self._in_hand) and waiting.documents.isdisjoint(blocked)
            if not free or (waiting.size > BIG_JOB_CHARACTERS and not big):
                blocked |= waiting.documents
                left.append(waiting)
                continue
            try:
                preparation = prepare.begin(waiting.job, self._new_id)
            except Exception as error:
                self._fail(waiting, error)
                continue
            self._in_hand |= preparation.documents
            characters += waiting.size
            batch.append((waiting, preparation))
        self._waiting.extendleft(reversed(left))
        return batch

    async def _prepare(
        self, batch: list[tuple[_Waiting, Preparation]]
    ) -> list[tuple[_Waiting, Preparation, CommitRetain]]:
        planned = await asyncio.gather(*(self._plan(preparation) for _, preparation in batch), return_exceptions=True)
        going: list[tuple[_Waiting, Preparation]] = []
        for (waiting, preparation), outcome in zip(batch, planned, strict=True):
            if isinstance(outcome, BaseException):
                self._let_go(preparation)
                self._fail(waiting, outcome)
            else:
                going.append((waiting, preparation))
        return await self._assemble(going)

    async def _assemble(
        self, going: list[tuple[_Waiting, Preparation]], alone: bool = False
    ) -> list[tuple[_Waiting, Preparation, CommitRetain]]:
        texts = [text for _, preparation in going for text in preparation.texts]
        assert self._encoder is not None
        try:
            embedded = await (self._encoder.embed_alone(texts) if alone else self._encoder.embed(texts))
        except Exception as error:
            refused = len(going) > 1 and not getattr(error, "retryable", False)
            if not alone and (refused or isinstance(error, Unavailable)):
                # A text that cannot be embedded must not take the others of its batch with it.
                return [commit for one in going for commit in await self._assemble([one], alone=True)]
            for waiting, preparation in going:
                self._let_go(preparation)
                self._fail(waiting, error)
            return []
        commits = []
        start = 0
        for waiting, preparation in going:
            try:
                commit = await asyncio.to_thread(prepare.assemble, preparation, embedded, start, self._model)
            except Exception as error:
                self._let_go(preparation)
                self._fail(waiting, error)
            else:
                commits.append((waiting, preparation, commit))
            start += len(preparation.texts)
        return commits

    async def _plan(self, preparation: Preparation) -> None:
        job = preparation.job
        plan = await self._shards.call(job.tenant, job.bank_id, prepare.plan_request(preparation))
        await asyncio.to_thread(prepare.extract, preparation, plan, self._new_id, lambda: self._stopping)

    async def _commit(self, commits: list[tuple[_Waiting, Preparation, CommitRetain]]) -> None:
        by_shard: dict[str, list[tuple[_Waiting, Preparation, CommitRetain]]] = {}
        for entry in commits:
            commit = entry[2]
            by_shard.setdefault(self._shards.name_of(commit.tenant, commit.bank_id), []).append(entry)
        await asyncio.gather(*(self._commit_to(name, entries) for name, entries in by_shard.items()))

    async def _commit_to(self, name: str, entries: list[tuple[_Waiting, Preparation, CommitRetain]]) -> None:
        try:
            left = max(waiting.end for waiting, _, _ in entries) - asyncio.get_running_loop().time()
            request = CommitRetains(tuple(commit for _, _, commit in entries))
            answers = await self._shards.call_named(name, request, left)
        except Exception as error:
            answers = [error] * len(entries)
        for (waiting, preparation, _), answer in zip(entries, answers, strict=True):
            self._let_go(preparation)
            if isinstance(answer, Superseded) and waiting.attempts < ATTEMPTS:
                waiting.attempts += 1
                # Where it stood: a younger version of its document may be in line.
                self._waiting.appendleft(waiting)
                self._arrived.set()
            elif isinstance(answer, BaseException):
                self._fail(waiting, answer)
            elif not waiting.answer.done():
                waiting.answer.set_result(answer)

    def _let_go(self, preparation: Preparation) -> None:
        self._in_hand -= preparation.documents
        if self._waiting:
            self._arrived.set()

    def _fail(self, waiting: _Waiting, error: BaseException) -> None:
        if not isinstance(error, RecalldError):
            log_unexpected("retain_failed", "worker", error)
            error = RecalldError("The retain failed inside recalld; nothing of it was stored.")
        if not waiting.answer.done():
            waiting.answer.set_exception(error)

    # -- erase -----------------------------------------------------------------------------------------------------

    async def _erase(self, job: EraseJob) -> Any:
        """Erase units, their followers embedded anew in the same commit."""
        wanted = PlanErase(job.tenant, job.bank_id, job.document_id, job.network)

        def commit(plan: ErasePlan, embeddings: tuple[Embedding, ...]) -> CommitErase:
            return CommitErase(
                job.tenant, job.bank_id, job.request_id, job.now, plan.uids, embeddings, job.document_id, job.network
            )

        return await self._with_followers(wanted, commit, job.seconds)

    async def _patch(self, request: PatchDocument) -> Any:
        """Change a document; under new tags, units that part from a predecessor are embedded in the same commit."""
        if request.tags is None:
            return await self._shards.call(request.tenant, request.bank_id, request, seconds=request.seconds)
        wanted = PlanErase(request.tenant, request.bank_id, request.document_id, tags=request.tags)

        def commit(plan: ErasePlan, embeddings: tuple[Embedding, ...]) -> PatchDocument:
            return dataclasses.replace(request, uids=plan.uids, embeddings=embeddings)

        return await self._with_followers(wanted, commit, request.seconds)

    async def _with_followers(
        self, wanted: PlanErase, commit: Callable[[ErasePlan, tuple[Embedding, ...]], Any], seconds: float
    ) -> Any:
        """Commit a change with the new vectors of the followers it has; planned again when the bank changed."""
        for attempt in range(ATTEMPTS):
            try:
                plan: ErasePlan = await self._shards.call(wanted.tenant, wanted.bank_id, wanted)
            except NotFound:
                # Gone, perhaps by this very request, whose answer got lost: the commit answers that again, or this.
                plan = ErasePlan(b"", ())
            embedded = await self._embed_followers([(f.text, f.before_text, f.date) for f in plan.followers])
            embeddings = tuple(
                Embedding(
                    follower.uid,
                    embedded.vectors[i],
                    embedded.scales[i],
                    embedded.token_vectors[i],
                    embedded.token_ids[i],
                    follower.before,
                )
                for i, follower in enumerate(plan.followers)
            )
            try:
                return await self._shards.call(wanted.tenant, wanted.bank_id, commit(plan, embeddings), seconds=seconds)
            except Superseded:
                if attempt == ATTEMPTS - 1:
                    raise
        return None

    async def _embed_followers(self, texts: list[tuple[str, str, str]]) -> EmbeddedTexts:
        assert self._encoder is not None
        try:
            return await self._encoder.embed(texts)
        except Unavailable:
            return await self._encoder.embed_alone(texts)

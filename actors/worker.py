"""The Worker: hosts the roles that turn text into units. Today the extractor, what it may ask, and the eraser.

Retains batch by themselves: what arrives while every lane is busy forms the next batch, and a batch's commits go to
their shard together, so that they share a flush. A lone request waits for nobody, and no small one for a big one.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeVar

from recalld.actors import curation
from recalld.actors.consolidate.consolidator import Consolidator
from recalld.actors.consolidate.messages import ConsolidateJob
from recalld.actors.curation_messages import CommitCuration, CurateJob, PlanEdit
from recalld.actors.directory import Shards
from recalld.actors.encoder_client import EncoderClient
from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.extraction_desk import ExtractionDesk
from recalld.actors.hosting import log_unexpected
from recalld.actors.llm.base import RETAIN
from recalld.actors.messages import (
    AskModel,
    CommitErase,
    CommitRetain,
    CommitRetains,
    DryRunJob,
    EraseJob,
    ErasePlan,
    Move,
    Moved,
    PatchDocument,
    PlanErase,
    Read,
    RetainJob,
)
from recalld.actors.model_stage import ModelStage
from recalld.actors.opinions.desk import OpinionDesk
from recalld.actors.opinions.messages import FormJob, JudgeJob
from recalld.actors.pages.editor import EditPage, edit_page
from recalld.actors.reflect.messages import DropReflect, FollowReflect, MergeJob, ReflectJob
from recalld.actors.reflect.reflector import Reflector
from recalld.actors.retain import prepare
from recalld.actors.retain.extraction import MODEL, Reading
from recalld.actors.retain.moving import moved
from recalld.actors.retain.prepare import Preparation
from recalld.storage.changes import Embedding
from recalld.storage.errors import BadRequest, Conflict, NotFound, RecalldError, Superseded, Unavailable

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

LANES = 3
BATCH_JOBS = 16
BATCH_CHARACTERS = 60_000
BIG_JOB_CHARACTERS = 20_000
SMALL_CHARACTERS = 1000
SMALL_TEXTS = 2
"""Up to here a batch is read, and its units put together, on the loop's own thread: about a millisecond each, where a
thread costs a quarter of one to reach and come back from, more when others want the interpreter."""
ATTEMPTS = 12
WATCH_SECONDS = 0.25
"""How often a retain that is an operation asks its shard whether anybody wants it still."""
WATCH_PATIENCE = 5.0
COMMIT_PATIENCE = 10.0
"""Seconds a lane waits for a commit before it takes the next batch; the commit itself has its jobs' time."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A job in line; `size` is the characters of its texts, `documents` are those it names.

    Nobody waits for it after `end`, on the loop's clock. Nobody wants it once `answer` is done: whoever has it in hand
    looks at that before each step, and lets it go.
    """

    job: RetainJob
    answer: asyncio.Future[Any]
    size: int
    documents: frozenset[tuple[str, str, str]]
    end: float
    attempts: int = 0
    model: str = ""
    ready: bool = True
    """What a language model must read of it is read."""
    readings: dict[str, Reading] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None
    committing: bool = False
    """Sent to its shard, which alone knows now what becomes of it."""

    @property
    def big(self) -> bool:
        return self.size > BIG_JOB_CHARACTERS

    @property
    def unwanted(self) -> bool:
        return self.answer.done()


async def _in_one_thread(work: Callable[[A, B], T], one: Sequence[A], other: Sequence[B], *, small: bool) -> list[T]:
    """`work` of each pair, one after the other: threads of Python would only take turns, and each turn costs."""

    def run() -> list[T]:
        return [work(*pair) for pair in zip(one, other, strict=True)]

    return run() if small else await asyncio.to_thread(run)


class Worker:
    """Carries retains from items to committed units, and erases from a wish to a committed change."""

    def __init__(
        self,
        shards: Shards,
        encoder: Callable[[], Any],
        new_id: Callable[[], str],
        stage: ModelStage | None = None,
        nli_folder: str = "",
    ) -> None:
        self._stage = stage
        self.opinions = OpinionDesk(shards, self._embed_followers, lambda: self._model, new_id, stage, nli_folder)
        self._desk = ExtractionDesk(shards, stage)
        self._consolidator = Consolidator(shards, self._embed_followers, new_id, stage, self._retaining)
        self.reflector = Reflector(shards, self._embed_query, new_id, stage, self.opinions.form)
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
        readings = [waiting.reading for waiting in self._waiting if waiting.reading is not None]
        tasks = [*self._lanes, *self._commits, *readings]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.reflector.stop()
        if self._stage is not None:
            await self._stage.close()

    async def _embed_query(self, text: str) -> dict[str, Any]:
        assert self._encoder is not None
        return await self._encoder.embed_query(text)

    def _retaining(self) -> bool:
        """Whether retains are at work or in line."""
        return bool(self._waiting or self._commits)

    async def handle(self, message: Any) -> Any:
        match message:
            case RetainJob():
                return await self._enqueue(message)
            case EraseJob():
                return await self._erase(message)
            case PatchDocument():
                return await self._patch(message)
            case CurateJob():
                return await self._curate(message)
            case FormJob():
                return await self.opinions.form(message)
            case JudgeJob():
                return await self.opinions.judge(message)
            case ConsolidateJob():
                return await self._consolidator.run(message)
            case DryRunJob() | AskModel():
                return await self._desk.handle(message)
            case ReflectJob() | FollowReflect() | DropReflect() | MergeJob():
                return await self.reflector.handle(message)
            case EditPage():
                tenant, bank_id = message.request.bank
                return await edit_page(message, await self.reflector.deps(tenant, bank_id, message.defaults))
        raise RecalldError(f"A worker does not understand {type(message).__name__}.")

    # -- retain ----------------------------------------------------------------------------------------------------

    async def _enqueue(self, job: RetainJob) -> Any:
        size = sum(len(item["content"]) for item in job.items)
        named = (item.get("document_id") for item in job.items)
        documents = frozenset((job.tenant, job.bank_id, name) for name in named if name is not None)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(job, loop.create_future(), size, documents, loop.time() + job.seconds)
        if job.provider == MODEL:
            if self._stage is None or not self._stage.calls(RETAIN):
                raise BadRequest("extraction.provider is 'model' and no model is set; set llm.provider, or use 'auto'.")
            waiting.model, waiting.ready = self._stage.model, False
        self._waiting.append(waiting)
        self._arrived.set()
        self._begin_readings()
        try:
            return await self._watch(waiting)
        finally:
            waiting.answer.cancel()

    async def _watch(self, waiting: _Waiting) -> Any:
        """What comes of a job. One that is an operation ends as soon as that is cancelled, or its bank deleted.

        Calls of a model are paid for: the stage that makes them stops by itself, between two of them.
        """
        job = waiting.job
        asked = Read("operation_goes_on", job.tenant, job.bank_id, {"operation_id": job.operation_id})
        while job.operation_id is not None and not waiting.answer.done():
            await asyncio.wait({waiting.answer}, timeout=WATCH_SECONDS)
            if waiting.answer.done():
                break
            try:
                goes_on = await self._shards.call(job.tenant, job.bank_id, asked, seconds=WATCH_PATIENCE)
            except RecalldError:
                continue
            if not goes_on and not waiting.committing and waiting.reading is None:
                self._fail(waiting, Conflict("The operation was cancelled, or its bank deleted; nothing was stored."))
                self._arrived.set()
                self._begin_readings()
        return await waiting.answer

    def _begin_readings(self) -> None:
        """Let the model read for every job that has none before it on one of its documents."""
        taken = set(self._in_hand)
        for waiting in self._waiting:
            if waiting.unwanted:
                continue
            free = waiting.documents.isdisjoint(taken)
            if free and not waiting.ready and waiting.reading is None:
                waiting.reading = asyncio.create_task(self._read(waiting), name="a model reads")
                waiting.answer.add_done_callback(lambda _, task=waiting.reading: task.cancel())  # type: ignore[misc]
            taken |= waiting.documents

    async def _read(self, waiting: _Waiting) -> None:
        assert self._stage is not None
        job = waiting.job
        try:
            preparation = prepare.begin(job, self._new_id, waiting.model)
            plan = await self._shards.call(job.tenant, job.bank_id, prepare.plan_request(preparation))
            usage = await self._stage.read(preparation, plan, waiting.readings)
            for name, count in usage.items():
                waiting.usage[name] = waiting.usage.get(name, 0) + count
            waiting.ready = True
        except Exception as error:
            self._waiting.remove(waiting)
            self._fail(waiting, error)
        finally:
            waiting.reading = None
            self._arrived.set()
            self._begin_readings()

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

        So do the jobs behind it that write a document of its: the last version sent must be the one that stays. A big
        job is a batch of its own, or small ones would end with it.
        """
        batch: list[tuple[_Waiting, Preparation]] = []
        characters = 0
        left: deque[_Waiting] = deque()
        blocked: set[tuple[str, str, str]] = set()
        while self._waiting and len(batch) < BATCH_JOBS and characters < BATCH_CHARACTERS:
            waiting = self._waiting.popleft()
            if waiting.unwanted:
                continue
            free = waiting.documents.isdisjoint(self._in_hand) and waiting.documents.isdisjoint(blocked)
            free = free and waiting.ready
            if not free or (waiting.big and (not big or batch)):
                blocked |= waiting.documents
                left.append(waiting)
                continue
            try:
                preparation = prepare.begin(waiting.job, self._new_id, waiting.model)
                preparation.readings, preparation.usage = waiting.readings, waiting.usage
            except Exception as error:
                self._fail(waiting, error)
                continue
            self._in_hand |= preparation.documents
            characters += waiting.size
            batch.append((waiting, preparation))
            if waiting.big:
                break
        self._waiting.extendleft(reversed(left))
        return batch

    async def _prepare(
        self, batch: list[tuple[_Waiting, Preparation]]
    ) -> list[tuple[_Waiting, Preparation, CommitRetain]]:
        planned = await self._extract(batch)
        going: list[tuple[_Waiting, Preparation]] = []
        for (waiting, preparation), outcome in zip(batch, planned, strict=True):
            if isinstance(outcome, prepare.Unread):
                self._let_go(preparation)
                self._again(waiting, ready=False)
            elif isinstance(outcome, BaseException):
                self._let_go(preparation)
                self._fail(waiting, outcome)
            else:
                going.append((waiting, preparation))
        return await self._assemble(going)

    async def _assemble(
        self, going: list[tuple[_Waiting, Preparation]], alone: bool = False
    ) -> list[tuple[_Waiting, Preparation, CommitRetain]]:
        texts = [text for _, preparation in going for text in preparation.texts]
        owners = [waiting for waiting, preparation in going for _ in preparation.texts]
        assert self._encoder is not None
        embed = self._encoder.embed_alone if alone else self._encoder.embed
        try:
            embedded = await embed(texts, lambda index: not owners[index].unwanted)
        except Exception as error:
            refused = len(going) > 1 and not getattr(error, "retryable", False)
            if not alone and (refused or isinstance(error, Unavailable)):
                # A text that cannot be embedded must not take the others of its batch with it.
                return [commit for one in going for commit in await self._assemble([one], alone=True)]
            for waiting, preparation in going:
                self._let_go(preparation)
                self._fail(waiting, error)
            return []
        starts = [0, *accumulate(len(preparation.texts) for _, preparation in going)]

        def assemble(one: tuple[_Waiting, Preparation], start: int) -> CommitRetain | Exception:
            waiting, preparation = one
            if waiting.unwanted:
                return Conflict("Nobody wants it any more.")
            try:
                commit = prepare.assemble(preparation, embedded, start, self._model)
                return dataclasses.replace(commit, judged_later=self.opinions.asks_a_model)
            except Exception as error:
                return error

        made = await _in_one_thread(assemble, going, starts[:-1], small=len(texts) <= SMALL_TEXTS)
        commits = []
        for (waiting, preparation), commit in zip(going, made, strict=True):
            if isinstance(commit, BaseException):
                self._let_go(preparation)
                self._fail(waiting, commit)
            elif waiting.unwanted:
                self._let_go(preparation)
            else:
                waiting.committing = True
                commits.append((waiting, preparation, commit))
        return commits

    async def _extract(self, batch: list[tuple[_Waiting, Preparation]]) -> list[BaseException | None]:
        """Plan and read each; what went wrong with it, or None."""
        requests = ((one.job.tenant, one.job.bank_id, prepare.plan_request(one)) for _, one in batch)
        plans = await asyncio.gather(*(self._shards.call(*request) for request in requests), return_exceptions=True)

        def read(one: tuple[_Waiting, Preparation], plan: Any) -> BaseException | None:
            waiting, preparation = one
            if isinstance(plan, BaseException):
                return plan
            try:
                prepare.extract(preparation, plan, self._new_id, lambda: self._stopping or waiting.unwanted)
            except Exception as error:
                return error
            return None

        return await _in_one_thread(read, batch, plans, small=sum(one.size for one, _ in batch) <= SMALL_CHARACTERS)

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
                self._again(waiting)
            elif isinstance(answer, BaseException):
                self._fail(waiting, answer)
            elif not waiting.answer.done():
                waiting.answer.set_result(answer)

    def _again(self, waiting: _Waiting, ready: bool = True) -> None:
        """Back to where it stood: a younger version of its document may be in line."""
        waiting.attempts += 1
        if waiting.attempts > 2 * ATTEMPTS:
            self._fail(waiting, Superseded("The document changes faster than it can be read; try again."))
            return
        waiting.ready, waiting.committing = ready, False
        self._waiting.appendleft(waiting)
        self._arrived.set()
        self._begin_readings()

    def _let_go(self, preparation: Preparation) -> None:
        self._in_hand -= preparation.documents
        if self._waiting:
            self._arrived.set()
            self._begin_readings()

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

        def commit(plan: ErasePlan, embeddings: tuple[Embedding, ...], moves: tuple[Moved, ...]) -> CommitErase:
            return CommitErase(
                job.tenant,
                job.bank_id,
                job.request_id,
                job.now,
                plan.uids,
                embeddings,
                job.document_id,
                job.network,
                moves,
            )

        return await self._with_followers(wanted, commit, job.seconds)

    async def _patch(self, request: PatchDocument) -> Any:
        """Change a document; under new tags, units that part from a predecessor are embedded in the same commit."""
        if request.tags is None:
            return await self._shards.call(request.tenant, request.bank_id, request, seconds=request.seconds)
        wanted = PlanErase(request.tenant, request.bank_id, request.document_id, tags=request.tags)

        def commit(plan: ErasePlan, embeddings: tuple[Embedding, ...], moves: tuple[Moved, ...]) -> PatchDocument:
            return dataclasses.replace(request, uids=plan.uids, embeddings=embeddings, moves=moves)

        return await self._with_followers(wanted, commit, request.seconds)

    async def _curate(self, job: CurateJob) -> Any:
        """Edit, invalidate or revert a unit; a new version and what stands behind it are embedded for the commit."""
        fields = job.fields
        commit = CommitCuration(
            job.tenant,
            job.bank_id,
            job.request_id,
            job.now,
            job.unit_id,
            state=fields.get("state"),
            reason=fields.get("reason") or "",
            edited=tuple(name for name in curation.EDITS if name in fields),
        )
        for attempt in range(ATTEMPTS):
            message = await self._edited(job, commit) if commit.edited else commit
            try:
                return await self._shards.call(job.tenant, job.bank_id, message, seconds=job.seconds)
            except Superseded:
                if attempt == ATTEMPTS - 1:
                    raise
        return None

    async def _edited(self, job: CurateJob, commit: CommitCuration) -> CommitCuration:
        plan = await self._shards.call(job.tenant, job.bank_id, PlanEdit(job.tenant, job.bank_id, job.unit_id))
        unit = await asyncio.to_thread(curation.edited, plan, job)
        found = await self._embed_followers(curation.texts(plan, unit))
        unit = dataclasses.replace(
            unit,
            tokens=found.tokens[0],
            vectors=found.vectors[0],
            scales=found.scales[0],
            token_vectors=found.token_vectors[0],
            token_ids=found.token_ids[0],
        )
        embeddings = tuple(
            Embedding(
                one.uid, found.vectors[i], found.scales[i], found.token_vectors[i], found.token_ids[i], one.before
            )
            for i, one in enumerate(plan.followers, 1)
        )
        return dataclasses.replace(commit, uid=plan.uid, updated_at=plan.updated_at, unit=unit, embeddings=embeddings)

    async def _with_followers(
        self,
        wanted: PlanErase,
        commit: Callable[[ErasePlan, tuple[Embedding, ...], tuple[Moved, ...]], Any],
        seconds: float,
    ) -> Any:
        """Commit a change with the new vectors of its followers and moves; planned again when the bank changed."""
        for attempt in range(ATTEMPTS):
            try:
                plan: ErasePlan = await self._shards.call(wanted.tenant, wanted.bank_id, wanted)
            except NotFound:
                # Gone, perhaps by this very request, whose answer got lost: the commit answers that again, or this.
                plan = ErasePlan(b"", ())
            moves: tuple[Move, ...] = plan.moves
            texts = [(one.text, one.before_text, one.date) for one in (*plan.followers, *moves)]
            embedded = await self._embed_followers(texts)
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
            there = tuple(
                moved(move, self._new_id() if move.parts else move.unit, embedded, i)
                for i, move in enumerate(moves, len(plan.followers))
            )
            try:
                message = commit(plan, embeddings, there)
                return await self._shards.call(wanted.tenant, wanted.bank_id, message, seconds=seconds)
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

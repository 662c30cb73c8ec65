"""`MemoryService`: the one façade. REST, the command line and the embedded client all come through here.

It holds no memories. It makes ids and reads the clock, embeds queries, and sends messages; what a bank knows is its
shard's, what a text means is the worker's. Answers are plain dicts in the contract's wire shape.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from recalld.actors import messages
from recalld.actors.consolidate.writes import KIND as CONSOLIDATION
from recalld.actors.directory import AskHealth, Assignment, Shards, with_patience
from recalld.actors.embedding import Embedder, pack_query
from recalld.actors.filters import DocumentFilters, MemoryFilters
from recalld.actors.opinions.messages import JUDGE_KIND
from recalld.actors.pages import outcomes
from recalld.actors.pages.composer import ExtractiveComposer
from recalld.actors.pages.model_composer import ModelComposer
from recalld.actors.query_cache import QueryEncoder
from recalld.actors.recall.dates import detect_window
from recalld.actors.recall.query import RecallAnswer, RecallQuery
from recalld.actors.retain.extraction import MODEL
from recalld.actors.runtime import ActorRef
from recalld.daemon import archive, bank_settings
from recalld.daemon.consolidating import Consolidating
from recalld.daemon.dispatch import Dispatcher, by_strategy, extraction_by, new_operations
from recalld.daemon.files import FileDesk
from recalld.daemon.overrides import Overrides
from recalld.daemon.refreshing import Refreshing
from recalld.daemon.screening import Screening
from recalld.daemon.service_background import BackgroundService
from recalld.daemon.service_banks import BankService
from recalld.daemon.service_curation import CurationService
from recalld.daemon.service_entities import EntityService
from recalld.daemon.service_models import USAGE, ModelAnswers
from recalld.daemon.service_observations import ObservationService
from recalld.daemon.service_opinions import OpinionService
from recalld.daemon.service_pages import PageService
from recalld.daemon.service_reflect import ReflectService
from recalld.daemon.turns import Turns
from recalld.daemon.wire.encoding import EncodedList
from recalld.daemon.wire.recall_input import RecallInput
from recalld.storage.analysis import query_terms
from recalld.storage.errors import (
    BadRequest,
    BankNotFound,
    Conflict,
    DeadlineExceeded,
    NotFound,
    OperationIdTaken,
    Unprocessable,
)
from recalld.storage.home import Home
from recalld.storage.records import NETWORK_NAMES

if TYPE_CHECKING:
    from recalld.actors.retain.items import RetainItem
    from recalld.actors.runtime import Resolver
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)
Answer = dict[str, Any]

RECALL_SECONDS = 30.0
WORK_ATTEMPTS = 15
"""Times a job is given to a worker that is away: with the growing waits some 20 s, in which a process starts."""


class MemoryService(
    BankService,
    BackgroundService,
    CurationService,
    EntityService,
    ModelAnswers,
    ObservationService,
    OpinionService,
    PageService,
    ReflectService,
):
    """The service of one daemon. `worker` starts the Worker actor at its first use."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        resolver: Resolver,
        embedder: Embedder,
        worker: Callable[[], Awaitable[ActorRef]],
        clock: Callable[[], int],
        new_id: Callable[[], str],
        close: Callable[[], Awaitable[None]],
        describe: Callable[[], dict[str, Any]],
    ) -> None:
        self.settings = settings
        self.home = home
        self.assignment = Assignment(home.info.partitions, settings.shard_count)
        self.shards = Shards(self.assignment, home.partition_of, resolver)
        self._resolver = resolver
        self._embedder = embedder
        self._queries = QueryEncoder(embedder, threads=settings.query_threads, capacity=settings.embedding_query_cache)
        self._worker = worker
        self._clock = clock
        self._new_id = new_id
        self._close = close
        self.runtime_facts = describe
        self._phases: dict[str, dict[str, float]] = {}
        self._retained = 0
        self._date_failures = 0
        self._turns = Turns()
        self._overrides = Overrides(self._read, time.monotonic)
        self.screening = Screening(self._read, self._overrides, self.retain_defaults, home.path / "keys")
        self.files = FileDesk(settings, home.path, self.shards, self._read, self.screening, clock, new_id)
        self._dispatcher = Dispatcher(settings, self.shards, worker, clock, self.retain_defaults, self.files)
        composer = ModelComposer(
            ExtractiveComposer(self.recall_for_page),
            self.writes_with_model,
            self.reflect_answer,
            self._work,
            self.retain_defaults,
            new_id,
        )
        self.refreshing = Refreshing(
            settings, self.shards, self._read, self._queries, composer, clock, new_id, self.retain_defaults
        )
        self.consolidating = Consolidating(settings, self.shards, worker, clock, new_id, self.retain_defaults)
        self._dispatcher.handlers[CONSOLIDATION] = self.consolidating.run
        self._dispatcher.listeners.append(self.consolidating.ended)
        self._dispatcher.handlers[outcomes.KIND] = self.refreshing.run
        self._dispatcher.handlers[JUDGE_KIND] = self.judge_opinions
        self._dispatcher.listeners.append(self.refreshing.ended)
        self.url: str | None = None

    def start(self) -> None:
        """Begin to work off stored operations."""
        self._dispatcher.start()
        self.refreshing.start()
        self.consolidating.start()

    async def close(self) -> None:
        """Stop taking operations, end the actors, let the home go."""
        await self.consolidating.stop()
        await self.refreshing.stop()
        await self._dispatcher.stop()
        await asyncio.to_thread(self._queries.shutdown)
        await self._close()

    def retain_defaults(self) -> dict[str, Any]:
        """The server's bank settings, which a bank's overrides go over."""
        return {
            **bank_settings.resolve(self.settings, {}),
            "retain_max_completion_tokens": self.settings.retain_max_completion_tokens,
            "audit_log_retention_days": self.settings.audit_log_retention_days,
        }

    # -- retain and recall -----------------------------------------------------------------------------------------

    async def retain(
        self, tenant: str, bank_id: str, items: list[RetainItem], *, asynchronous: bool, operation_id: str | None
    ) -> Answer:
        answer: Answer = {
            "success": True,
            "bank_id": bank_id,
            "items_count": len(items),
            "async": asynchronous,
            "operation_id": None,
            "operation_ids": None,
            "usage": None if asynchronous else dict(USAGE),
        }
        if not items:
            await self._put(tenant, bank_id, create=True)
            return answer
        documents = [(tenant, bank_id, item.document_id) for item in items if item.document_id is not None]
        items = await self._turns.through(documents, self.screening.items(tenant, bank_id, items))
        if asynchronous:
            ids = await self._submit(tenant, bank_id, items, operation_id)
            await self.note_background(tenant, bank_id, items)
            return {**answer, "operation_id": ids[0], "operation_ids": ids if len(ids) > 1 else None}
        job = messages.RetainJob(
            tenant,
            bank_id,
            tuple(item.to_plain() for item in items),
            # A client's own id makes a repeated call answer what it answered the first time.
            request_id=operation_id or self._new_id(),
            now=self._clock(),
            defaults=self.retain_defaults(),
            provider=extraction_by(self.settings),
        )
        if job.provider == MODEL:
            receipt = await self._journalled(job, items, job.request_id)
        else:
            receipt = await self._work(job)
        self._retained += len(items)
        await self.note_background(tenant, bank_id, items)
        return {**answer, "usage": {**USAGE, **receipt.get("usage", {})}, "receipt": receipt["items"]}

    async def _work(self, job: Any) -> Any:
        """Have the worker carry out a job; a worker that died is started again and given the same request id."""

        async def once(left: float) -> Any:
            return await (await self._worker()).call(dataclasses.replace(job, seconds=left), timeout=left)

        with self.consolidating.stirring(job):
            done = await with_patience(once, self.settings.retain_wall_timeout, WORK_ATTEMPTS)
        if isinstance(job, messages.EraseJob):
            await self.files.tidy(job.tenant, job.bank_id)
            self.refreshing.soon(job.tenant, job.bank_id)
        return done

    async def _submit(self, tenant: str, bank_id: str, items: list[RetainItem], operation_id: str | None) -> list[str]:
        """Store an operation for each strategy the items name, in one write; their ids, in order of first mention."""
        if operation_id is not None:
            if len({item.strategy for item in items}) > 1:
                raise BadRequest("operation_id cannot be given when the items name several strategies.")
            await self._check_own(tenant, bank_id, operation_id)
        ids: list[str] = []
        operations: list[messages.NewOperation] = []
        for group in by_strategy(items):
            parent = operation_id or self._new_id()
            ids.append(parent)
            operations += new_operations(parent, group, self.settings.retain_batch_tokens)
        request = messages.SubmitOperations(tenant, bank_id, self._clock(), tuple(operations))
        await self.shards.call(tenant, bank_id, request)
        return ids

    async def _check_own(self, tenant: str, bank_id: str, operation_id: str) -> None:
        """Raise `OperationIdTaken` when the client's id names an operation of another bank, in whatever partition."""
        read = messages.Read("find_operation", tenant, params={"operation_id": operation_id})
        for found in await self.shards.call_all(read):
            if any((owner["tenant"], owner["bank_id"]) != (tenant, bank_id) for owner in found):
                raise OperationIdTaken(f"operation_id {operation_id} already belongs to another bank.")

    async def recall(self, tenant: str, bank_id: str, request: RecallInput) -> Answer:
        started = asyncio.get_running_loop().time()
        now = self._clock() if request.query_timestamp is None else request.query_timestamp
        embedded = await self._queries.embed(request.query)
        window, window_error = request.window, None
        if window is None and "temporal" in request.arms:
            try:
                window = detect_window(request.query, now)
            except Exception as error:
                self._date_failures += 1
                window_error = type(error).__name__
                log.warning("the date parser failed; this recall has no temporal arm", error=window_error)
        max_ms = request.max_ms or self.settings.recall_max_ms or None
        spent = asyncio.get_running_loop().time() - started
        query = RecallQuery(
            tenant=tenant,
            bank_id=bank_id,
            query=request.query,
            terms=query_terms(request.query),
            types=tuple(NETWORK_NAMES.index(name) for name in request.types),
            budget=request.budget,
            max_tokens=request.max_tokens,
            now=now,
            window=window,
            window_error=window_error,
            tags=request.tags,
            tags_match=request.tags_match,
            tag_groups=request.tag_groups,
            min_scores=request.min_scores,
            as_of=request.as_of,
            valid_at=request.valid_at,
            first_uid=request.first_uid,
            include_entities=request.include_entities,
            entity_tokens=request.entity_tokens or 0,
            include_chunks=request.include_chunks,
            chunk_tokens=request.chunk_tokens or 0,
            include_source_facts=request.include_source_facts,
            source_tokens=-1 if request.source_tokens is None else request.source_tokens,
            source_tokens_each=request.source_tokens_each,
            prefer_observations=request.prefer_observations,
            trace=request.trace,
            why_not=request.why_not,
            deadline=None if max_ms is None else max(0.001, max_ms / 1000 - spent),
            arms=request.arms,
            **pack_query(embedded),
        )
        try:
            found: RecallAnswer = await self.shards.call(tenant, bank_id, query, RECALL_SECONDS)
        except DeadlineExceeded:
            raise DeadlineExceeded("The recall took too long; try again, or with a lower budget.") from None
        self._account("embed", spent)
        for phase, milliseconds in found.timings.items():
            self._account(phase, milliseconds / 1000)
        answer: Answer = {
            "results": EncodedList(found.results_json),
            "trace": found.trace,
            "entities": found.entities,
            "chunks": found.chunks,
            "source_facts": found.source_facts,
            "source_facts_truncated": found.source_facts_truncated,
            "timings_ms": {"embed": round(spent * 1000, 3), **{k: round(v, 3) for k, v in found.timings.items()}},
        }
        if found.degraded:
            answer["degraded"] = list(found.degraded)
        return answer

    def _account(self, phase: str, seconds: float) -> None:
        row = self._phases.setdefault(phase, {"count": 0, "seconds": 0.0})
        row["count"] += 1
        row["seconds"] += seconds

    # -- reads -----------------------------------------------------------------------------------------------------

    async def _read(self, what: str, tenant: str, bank_id: str, **params: Any) -> Answer:
        answer: Answer = await self.shards.call(tenant, bank_id, messages.Read(what, tenant, bank_id, params))
        return answer

    async def list_memories(self, tenant: str, bank_id: str, filters: MemoryFilters) -> Answer:
        return await self._read("list_memories", tenant, bank_id, filters=filters)

    async def get_memory(self, tenant: str, bank_id: str, memory_id: str) -> Answer:
        return await self._child("get_memory", tenant, bank_id, f"Memory '{memory_id}' not found", memory_id=memory_id)

    async def list_documents(self, tenant: str, bank_id: str, filters: DocumentFilters) -> Answer:
        return await self._read("list_documents", tenant, bank_id, filters=filters)

    async def get_document(self, tenant: str, bank_id: str, document_id: str) -> Answer:
        text = f"Document '{document_id}' not found"
        return await self._child("get_document", tenant, bank_id, text, document_id=document_id)

    async def list_chunks(self, tenant: str, bank_id: str, document_id: str, limit: int, offset: int) -> Answer:
        text = f"Document '{document_id}' not found"
        return await self._child(
            "list_chunks", tenant, bank_id, text, document_id=document_id, limit=limit, offset=offset
        )

    async def _child(self, what: str, tenant: str, bank_id: str, text: str, **params: Any) -> Answer:
        """A read of something inside a bank: when the bank is unknown, it is the child that is not found."""
        try:
            return await self._read(what, tenant, bank_id, **params)
        except BankNotFound:
            raise NotFound(text) from None

    async def get_chunk(self, tenant: str, chunk_id: str) -> Answer:
        read = messages.Read("find_chunk", tenant, params={"chunk_id": chunk_id})
        found: list[Answer] = [chunk for chunks in await self.shards.call_all(read) for chunk in chunks]
        if not found:
            raise NotFound(f"Chunk '{chunk_id}' not found")
        if len(found) > 1:
            raise Conflict(
                f"Chunk id '{chunk_id}' fits chunks of {len(found)} documents, because names of banks and documents may"
                " hold underscores. List the chunks of the document you mean: GET"
                " /v1/default/banks/{bank_id}/documents/{document_id}/chunks."
            )
        return found[0]

    async def list_tags(self, tenant: str, bank_id: str, q: str | None, source: str, limit: int, offset: int) -> Answer:
        return await self._read("list_tags", tenant, bank_id, q=q, source=source, limit=limit, offset=offset)

    async def list_entities(
        self,
        tenant: str,
        bank_id: str,
        tags: Sequence[str],
        tags_match: str,
        tag_groups: list[dict[str, Any]] | None,
        limit: int,
        offset: int,
    ) -> Answer:
        return await self._read(
            "list_entities",
            tenant,
            bank_id,
            tags=tuple(tags),
            tags_match=tags_match,
            tag_groups=tag_groups,
            limit=limit,
            offset=offset,
        )

    async def get_entity(
        self,
        tenant: str,
        bank_id: str,
        entity_id: str,
        tags: Sequence[str],
        tags_match: str,
        tag_groups: list[dict[str, Any]] | None,
    ) -> Answer:
        return await self._child(
            "get_entity",
            tenant,
            bank_id,
            f"Entity '{entity_id}' not found",
            entity_id=entity_id,
            tags=tuple(tags),
            tags_match=tags_match,
            tag_groups=tag_groups,
        )

    # -- erasing and changing --------------------------------------------------------------------------------------

    async def clear_memories(self, tenant: str, bank_id: str, type: str | None) -> Answer:
        if type is not None and type not in NETWORK_NAMES:
            raise Unprocessable(f"Unknown type '{type}'; use one of {', '.join(NETWORK_NAMES)}.")
        network = None if type is None else NETWORK_NAMES.index(type)
        job = messages.EraseJob(tenant, bank_id, self._new_id(), self._clock(), network=network)
        try:
            found = await self._work(job)
        except BankNotFound:
            return {"success": True, "message": None, "deleted_count": 0}
        count = found["units"] + (found["documents"] + found["entities"] if type is None else 0)
        return {"success": True, "message": f"{count} records deleted", "deleted_count": count}

    async def patch_document(self, tenant: str, bank_id: str, document_id: str, fields: dict[str, Any]) -> Answer:
        tags = fields.get("tags")
        if tags is not None:
            tags = await self.screening.tags(tenant, bank_id, tags)
        request = messages.PatchDocument(
            tenant,
            bank_id,
            document_id,
            self._new_id(),
            self._clock(),
            tags=None if tags is None else tuple(tags),
            observation_scopes=fields.get("observation_scopes"),
        )
        try:
            await self._work(request)
        except BankNotFound:
            raise NotFound(f"Document '{document_id}' not found") from None
        return {"success": True}

    async def delete_document(self, tenant: str, bank_id: str, document_id: str) -> Answer:
        job = messages.EraseJob(tenant, bank_id, self._new_id(), self._clock(), document_id=document_id)
        try:
            found = await self._work(job)
        except BankNotFound:
            raise NotFound(f"Document '{document_id}' not found") from None
        return {
            "success": True,
            "message": f"Document '{document_id}' and its memories deleted",
            "document_id": document_id,
            "memory_units_deleted": found["units"],
        }

    # -- operations ------------------------------------------------------------------------------------------------

    async def list_operations(
        self,
        tenant: str,
        bank_id: str,
        status: str | None,
        type: str | None,
        limit: int,
        offset: int,
        exclude_parents: bool,
    ) -> Answer:
        return await self._read(
            "list_operations",
            tenant,
            bank_id,
            status=status,
            type=type,
            limit=limit,
            offset=offset,
            exclude_parents=exclude_parents,
        )

    async def get_operation(self, tenant: str, bank_id: str, operation_id: str, include_payload: bool) -> Answer:
        return await self._read(
            "get_operation", tenant, bank_id, operation_id=operation_id, include_payload=include_payload
        )

    async def receipt(self, tenant: str, bank_id: str, operation_id: str) -> Answer:
        text = f"Operation '{operation_id}' not found"
        return await self._child("receipt", tenant, bank_id, text, operation_id=operation_id)

    async def cancel_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer:
        return await self._change_operation(tenant, bank_id, operation_id, "cancel", "cancelled")

    async def retry_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer:
        return await self._change_operation(tenant, bank_id, operation_id, "retry", "queued again")

    async def delete_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer:
        return await self._change_operation(tenant, bank_id, operation_id, "delete", "deleted")

    async def _change_operation(self, tenant: str, bank_id: str, operation_id: str, action: str, done: str) -> Answer:
        request = messages.ChangeOperation(tenant, bank_id, operation_id, action, self._clock())
        try:
            await self.shards.call(tenant, bank_id, request)
        except BankNotFound:
            raise NotFound(f"Operation '{operation_id}' not found") from None
        await self.files.tidy(tenant, bank_id)
        return {"success": True, "message": f"Operation '{operation_id}' {done}", "operation_id": operation_id}

    # -- the daemon itself -----------------------------------------------------------------------------------------

    async def health(self) -> Answer:
        shards = (await (await self._resolver.lookup("directory")).call(AskHealth()))["shards"]
        up = all(shards.values())
        return {
            "status": "healthy" if up else "unhealthy",
            "database": "connected" if up else "disconnected",
            "shards": shards,
            "db_acquire_ms": 0.0,
            "db_pool_waiting": 0,
            "db_pool_in_use": 0,
            "db_pool_max": len(shards),
            "db_pool_idle": sum(shards.values()),
        }

    async def _stats(self) -> list[Answer]:
        return await self.shards.call_all(messages.Maintain("stats"))

    async def status(self) -> Answer:
        """What the daemon runs with, as `recalld serve` prints it."""
        from recalld.daemon.routes.system import package_version

        stats = await self._stats()
        settings = self.settings
        return {
            "version": package_version(),
            "home": str(self.home.path),
            "runtime": settings.runtime,
            "shards": len(self.shards.names),
            "partitions": self.home.info.partitions,
            "banks": sum(shard["banks"] for shard in stats),
            "operations_queued": sum(shard["operations_queued"] for shard in stats),
            "embedding": {
                "model": self._embedder.identity.name,
                "dimensions": self._embedder.dim,
                "provider": self._embedder.providers[0],
                "warning": self._embedder.warning,
            },
            "ranking": "late interaction over semantic, keyword, graph and temporal arms; no cross-encoder",
            "model": self.model_status(),
            "ledger": await self.ledger_status(),
            "durability": settings.durability,
            "url": self.url,
            "quarantined": [number for shard in stats for number in shard["quarantined"]],
            "stores": {n: usage for shard in stats for n, usage in shard["partitions"].items()},
            "processes": self.runtime_facts(),
        }

    async def compact(self) -> Answer:
        found = await self.shards.call_all(messages.Maintain("compact"), 3600.0)
        return {"partitions": {n: sizes for shard in found for n, sizes in shard["partitions"].items()}}

    async def backup(self, path: Path) -> Answer:
        """A consistent copy of the home in one file, written while serving."""
        return await archive.backup(self.home, self.shards, path)

    async def metrics_snapshot(self) -> Answer:
        stats = await self._stats()
        return {
            "flushes_total": sum(shard["flushes"] for shard in stats),
            "last_flush_ms": max((shard["last_flush_ms"] for shard in stats), default=0.0),
            "open_banks": sum(shard["open_banks"] for shard in stats),
            "open_bank_bytes": sum(shard["open_bank_bytes"] for shard in stats),
            "operations_queued": sum(shard["operations_queued"] for shard in stats),
            "operations_running": sum(shard["operations_held"] for shard in stats),
            "recalls_total": sum(shard["recalls"] for shard in stats),
            "retained_items_total": self._retained + self._dispatcher.items_done,
            "date_parser_failures_total": self._date_failures,
            "query_cache_hits_total": self._queries.hits,
            "phases": self._phases,
        }

"""Refreshes of mental models: carried out as operations, previewed, and begun by themselves when triggers say so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import structlog

from recalld.actors import messages
from recalld.actors.directory import Shards
from recalld.actors.hosting import log_unexpected
from recalld.actors.pages import outcomes
from recalld.actors.pages.messages import CommitRefresh, SubmitRefresh
from recalld.actors.pages.refresh import Ask, Composer, Refreshed, preview, refresh
from recalld.actors.query_cache import QueryEncoder
from recalld.daemon.dispatch import unpack_payload
from recalld.storage.analysis import term_frequencies
from recalld.storage.errors import BankNotFound, NotFound, RecalldError, Superseded

if TYPE_CHECKING:
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)

ATTEMPTS = 5
SEARCHED_CHARACTERS = 1500
"""What of a page stands for its meaning in a search: its name, its question, and its opening."""
CONSOLIDATION = "consolidation"


class Refreshing:
    """The refreshes of one daemon. `composer` writes pages, `read` asks a bank's shard."""

    def __init__(
        self,
        settings: Settings,
        shards: Shards,
        read: Callable[..., Awaitable[Any]],
        queries: QueryEncoder,
        composer: Composer,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        defaults: Callable[[], dict[str, Any]],
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._read = read
        self._queries = queries
        self._composer = composer
        self._clock = clock
        self._new_id = new_id
        self._defaults = defaults
        self._ticker: asyncio.Task[None] | None = None
        self._begun: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._ticker = asyncio.create_task(self._tick(), name="triggers of mental models")

    async def stop(self) -> None:
        tasks = [*self._begun, *([self._ticker] if self._ticker else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- one refresh -----------------------------------------------------------------------------------------------

    async def _plan(self, tenant: str, bank_id: str, model_id: str, operation_id: str | None = None) -> Ask:
        plan = await self._read("refresh_plan", tenant, bank_id, mental_model_id=model_id)
        return Ask(tenant, bank_id, plan, self._clock(), operation_id)

    async def dry_run(self, tenant: str, bank_id: str, model_id: str) -> dict[str, Any]:
        """What a refresh would do; nothing is stored. Raises `NotFound`."""
        ask = await self._plan(tenant, bank_id, model_id)
        return preview(ask, await refresh(ask, self._composer, full=False))

    async def run(self, claimed: messages.Claimed) -> None:
        """Carry out a claimed refresh. What it came to is stored with the operation's end, in one write.

        When the model or a memory it was to rest on changes meanwhile, it begins anew.
        """
        work = unpack_payload(claimed.payload)[0]
        model_id, full = str(work["mental_model_id"]), work.get("mode") == "full"
        for attempt in range(ATTEMPTS):
            try:
                ask = await self._plan(claimed.tenant, claimed.bank_id, model_id, claimed.id)
            except (NotFound, BankNotFound):
                # Deleted meanwhile: the commit finds the same and ends the operation.
                await self._end_orphan(claimed, model_id)
                return
            done = await refresh(ask, self._composer, full)
            try:
                await self._commit(claimed, ask, done)
                return
            except Superseded:
                if attempt == ATTEMPTS - 1:
                    raise

    async def _end_orphan(self, claimed: messages.Claimed, model_id: str) -> None:
        gone = CommitRefresh(
            claimed.tenant, claimed.bank_id, self._clock(), model_id, 0, claimed.id, outcomes.FAILED_ERROR
        )
        with contextlib.suppress(BankNotFound):
            await self._shards.call(claimed.tenant, claimed.bank_id, gone)

    async def _commit(self, claimed: messages.Claimed, ask: Ask, done: Refreshed) -> None:
        plan = ask.plan
        text = plan["content"] if done.text is None else done.text
        vector = b""
        terms: tuple[tuple[str, int], ...] = ()
        if text and not done.error:
            words = f"{plan['name']}\n{plan['source_query']}\n{text[:SEARCHED_CHARACTERS]}"
            vector = (await self._queries.embed(words)).vector.astype("<f4").tobytes()
            terms = await asyncio.to_thread(term_frequencies, text)
        request = CommitRefresh(
            claimed.tenant,
            claimed.bank_id,
            self._clock(),
            plan["id"],
            plan["revision"],
            claimed.id,
            done.outcome,
            done.failure,
            done.error,
            done.text,
            done.response,
            vector,
            terms,
            done.cited,
            done.read,
            plan["seen_uid"],
            plan["seen_at"],
            done.mode == "full",
            plan["source_query"],
            done.usage if any(done.usage.values()) else {},
            self._settings.pages_history_max_entries,
        )
        await self._shards.call(claimed.tenant, claimed.bank_id, request)

    # -- by themselves ---------------------------------------------------------------------------------------------

    async def due(self, tenant: str = "", bank_id: str = "", *, consolidated: bool = True) -> int:
        """Queue what the triggers of a bank's models, or of every bank's, ask for now; how many refreshes."""
        params = {"now": self._clock(), "defaults": self._defaults(), "consolidated": consolidated}
        read = messages.Read("due_models", tenant, bank_id, params)
        if bank_id:
            found = await self._shards.call(tenant, bank_id, read)
        else:
            found = [row for rows in await self._shards.call_all(read) for row in rows]
        queued = 0
        for row in found:
            request = SubmitRefresh(
                row["tenant"],
                row["bank_id"],
                self._clock(),
                row["model_id"],
                self._new_id(),
                full=row["full"],
                automatic=True,
                at=row["at"],
                refresh=row["refresh"],
                cron_seen=row["cron_seen"],
                full_cron_seen=row["full_cron_seen"],
            )
            with contextlib.suppress(NotFound):
                await self._shards.call(row["tenant"], row["bank_id"], request)
                queued += bool(row["refresh"])
        return queued

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._settings.pages_tick_seconds)
            await self._try(self.due())

    def soon(self, tenant: str, bank_id: str, *, consolidated: bool = False) -> None:
        """Look at a bank's triggers now, beside whatever asked for it."""
        task = asyncio.create_task(self._try(self.due(tenant, bank_id, consolidated=consolidated)))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def ended(self, claimed: messages.Claimed) -> None:
        """An operation was carried out: a consolidation may have given pages something to read."""
        if claimed.kind == CONSOLIDATION:
            self.soon(claimed.tenant, claimed.bank_id, consolidated=True)

    async def _try(self, work: Awaitable[int]) -> None:
        try:
            await work
        except RecalldError as error:
            log.info("triggers of mental models could not be looked at; the next round does", error=error.code)
        except Exception as error:
            log_unexpected("triggers_failed", "mental models", error)

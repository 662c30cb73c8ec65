"""Consolidations: carried out as operations, and queued by themselves when memories changed or were left over.

What is queued by itself waits until a bank is quiet. Nothing of that is kept in memory alone: what a daemon that ends
forgets to queue, the next look through all banks finds, because every fact without a mark is pending.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import structlog

from recalld.actors import messages
from recalld.actors.consolidate.messages import ConsolidateJob, QueueConsolidation
from recalld.actors.consolidate.writes import KIND, scopes_in
from recalld.actors.curation_messages import CurateJob
from recalld.actors.directory import Shards
from recalld.actors.hosting import log_unexpected
from recalld.actors.llm.base import CONSOLIDATE
from recalld.actors.llm.models import NONE, SILENT
from recalld.actors.retain.extraction import MODEL
from recalld.actors.runtime import ActorRef
from recalld.daemon.settings_llm import llm_config
from recalld.storage.errors import BankNotFound, RecalldError

if TYPE_CHECKING:
    from recalld.daemon.settings_table import Settings

log = structlog.get_logger(__name__)

Bank = tuple[str, str]
LOOK_SECONDS = 0.25
CHANGING = (messages.RetainJob, messages.EraseJob, messages.PatchDocument, CurateJob)
LONGEST = 10.0
"""A bank that is never quiet is consolidated after that many times the delay."""
OF_SERVER = ("consolidation_max_tokens", "consolidation_dedup_threshold", "consolidation_retry_seconds")


def consolidation_by(settings: Settings) -> str:
    """Who builds observations: `model`, `local` or `none`."""
    named = llm_config(settings).of(CONSOLIDATE).provider.strip().lower()
    return named if named in SILENT else MODEL


class Consolidating:
    """The consolidations of one daemon. `worker` starts the Worker actor at its first use."""

    def __init__(
        self,
        settings: Settings,
        shards: Shards,
        worker: Callable[[], Awaitable[ActorRef]],
        clock: Callable[[], int],
        new_id: Callable[[], str],
        defaults: Callable[[], dict[str, Any]],
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._worker = worker
        self._clock = clock
        self._new_id = new_id
        self._defaults = defaults
        self._at_work: Counter[Bank] = Counter()
        self._stirred: dict[Bank, tuple[float, float]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._queue_stirred(), name="consolidations that are due"),
            asyncio.create_task(self._look_through(), name="facts left over"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- one consolidation -----------------------------------------------------------------------------------------

    async def run(self, claimed: messages.Claimed) -> None:
        """Carry out a claimed consolidation; its last step ends the operation."""
        settings = self._settings
        job = ConsolidateJob(
            claimed.tenant,
            claimed.bank_id,
            claimed.id,
            self._clock(),
            {**self._defaults(), **{name: getattr(settings, name) for name in OF_SERVER}},
            consolidation_by(settings),
            scopes_in(claimed.payload),
            settings.operations_wall_seconds,
        )
        await (await self._worker()).call(job, timeout=settings.operations_wall_seconds)

    # -- by themselves ---------------------------------------------------------------------------------------------

    @property
    def _by_itself(self) -> bool:
        return consolidation_by(self._settings) != NONE

    @contextlib.contextmanager
    def stirring(self, job: Any) -> Iterator[None]:
        """While a job changes memories of its bank, that bank is not quiet; it is consolidated some time after."""
        if not isinstance(job, CHANGING):
            yield
            return
        bank = (job.tenant, job.bank_id)
        self._at_work[bank] += 1
        try:
            yield
        finally:
            self._at_work[bank] -= 1
            self.soon(*bank)

    def soon(self, tenant: str, bank_id: str) -> None:
        """Memories of the bank changed: it is consolidated once it is quiet."""
        if self._by_itself:
            now = time.monotonic()
            _, first = self._stirred.get((tenant, bank_id), (now, now))
            self._stirred[(tenant, bank_id)] = now, first

    async def ended(self, claimed: messages.Claimed) -> None:
        """An operation was carried out; unless it was a consolidation, memories changed."""
        if claimed.kind != KIND:
            self.soon(claimed.tenant, claimed.bank_id)

    async def _queue_stirred(self) -> None:
        delay = self._settings.consolidation_delay_seconds
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, max(0.01, delay)))
            now = time.monotonic()
            for bank, (last, first) in list(self._stirred.items()):
                quiet = now - last >= delay and not self._at_work[bank]
                if quiet or now - first >= LONGEST * delay:
                    del self._stirred[bank]
                    await self._queue(*bank)

    async def _look_through(self) -> None:
        """Find facts that wait in any bank; also those that a former life of the daemon left."""
        while True:
            await asyncio.sleep(self._settings.consolidation_reconcile_seconds)
            if not self._by_itself:
                continue
            try:
                found = await self._shards.call_all(messages.Read("banks_pending", ""))
            except RecalldError as error:
                log.debug("banks could not be looked through", error=error.code)
                continue
            for row in (row for rows in found for row in rows):
                await self._queue(row["tenant"], row["bank_id"], row["overrides"])

    async def _queue(self, tenant: str, bank_id: str, overrides: dict[str, Any] | None = None) -> None:
        """Queue a consolidation of what waits in a bank, where the bank lets that happen by itself."""
        bank = (tenant, bank_id)
        try:
            if overrides is None:
                overrides = (await self._shards.call(*bank, messages.Read("bank", *bank)))["overrides"]
            config = {**self._defaults(), **overrides}
            if config["enable_observations"] and config["enable_auto_consolidation"]:
                request = QueueConsolidation(*bank, self._clock(), self._new_id(), automatic=True)
                await self._shards.call(*bank, request)
        except BankNotFound:
            return
        except RecalldError as error:
            log.warning("a consolidation could not be queued; it is tried again", bank=bank_id, error=error.code)
        except Exception as error:
            log_unexpected("consolidation_not_queued", "consolidation", error)

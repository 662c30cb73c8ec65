"""The stage of a retain in which a language model reads: before a lane takes the job, so that no lane waits for it.

Each chunk is read once. What a chunk of the bank was read as before is taken from there; what an earlier run of the
same operation paid for, from its journal. Only the rest is asked for, a few chunks of a job at a time.
"""

from __future__ import annotations

import asyncio
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.ledger import Ledger, Purpose
from recalld.actors.llm.base import RETAIN, Llm
from recalld.actors.llm.models import Models
from recalld.actors.messages import Read, RetainJob, RetainPlan
from recalld.actors.retain import prepare, readings
from recalld.actors.retain.extraction import Reading
from recalld.actors.retain.model_extractor import ModelExtractor
from recalld.actors.retain.prepare import Preparation, Wanted
from recalld.actors.spending import Caps
from recalld.storage.errors import Conflict

AT_ONCE = 8
"""Chunks of one job that are read at once: a long document must leave permits to others."""


class ModelStage:
    """Reads chunks with a model."""

    def __init__(self, shards: Shards, ledger: Ledger, models: Models) -> None:
        self._shards = shards
        self.ledger = ledger
        self._models = models

    def llm_for(self, operation: str) -> Llm:
        """The model of `retain`, `consolidate` or `reflect`."""
        return self._models.llm(operation)

    def calls(self, operation: str) -> bool:
        """Whether that operation has a model to call."""
        return self._models.calls(operation)

    async def close(self) -> None:
        await self._models.close()

    @property
    def model(self) -> str:
        """Who reads, as part of a reading's identity."""
        llm = self.llm_for(RETAIN)
        return f"{llm.provider}/{llm.model}"

    async def read(self, preparation: Preparation, plan: RetainPlan, known: dict[str, Reading]) -> dict[str, Any]:
        """Put into `known` what the job's chunks say; the tokens it took. Raises what the model's calls raise.

        When a chunk fails those under way are waited for, since they are paid for, and no other is begun. Nor is one
        begun once the operation is cancelled or its bank is gone.
        """
        job = preparation.job
        open_ = [one for one in prepare.wanted(preparation, plan) if one.reading not in known]
        if open_:
            known |= await self._before(preparation, [one.reading for one in open_])
            open_ = [one for one in open_ if one.reading not in known]
        purpose = Purpose(
            (job.tenant, job.bank_id), RETAIN, Caps.of_bank({**job.defaults, **plan.overrides}), job.operation_id
        )
        purpose.count([])
        permits = asyncio.Semaphore(AT_ONCE)
        failed: list[BaseException] = []

        async def one(wanted: Wanted) -> None:
            async with permits:
                if failed:
                    return
                try:
                    await self._insist_on(job)
                    known[wanted.reading] = await self._one(wanted, purpose)
                except Exception as error:
                    failed.append(error)

        await asyncio.gather(*(one(wanted) for wanted in open_))
        if failed:
            raise failed[0]
        return purpose.usage

    async def _before(self, preparation: Preparation, wanted: list[str]) -> dict[str, Reading]:
        job = preparation.job
        params = {"readings": wanted, "operation_id": job.operation_id, "journal_only": job.fresh}
        found = await self._shards.call(
            job.tenant, job.bank_id, Read("known_readings", job.tenant, job.bank_id, params)
        )
        return {reading: readings.from_plain(plain) for reading, plain in found.items()}

    async def _insist_on(self, job: RetainJob) -> None:
        """Raise `Conflict` when nobody wants the job's operation any more."""
        if job.operation_id is None:
            return
        asked = Read("operation_goes_on", job.tenant, job.bank_id, {"operation_id": job.operation_id})
        if not await self._shards.call(job.tenant, job.bank_id, asked):
            raise Conflict("The operation was cancelled, or its bank deleted, while a model was reading.")

    async def _one(self, wanted: Wanted, purpose: Purpose) -> Reading:
        # Its own record of what it is for, in the same sum.
        mine = Purpose(
            purpose.bank, purpose.operation, purpose.caps, purpose.operation_id, wanted.document_id, usage=purpose.usage
        )
        extractor = ModelExtractor(self.ledger.metered(self.llm_for(RETAIN), mine))
        reading = await extractor.read(wanted.chunk, wanted.rules, purpose.bank)
        await self.ledger.record(mine, [], ((wanted.reading, readings.to_bytes(reading)),))
        return reading

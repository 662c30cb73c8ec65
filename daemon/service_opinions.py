"""The part of the service that knows opinions."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.actors.curation_messages import CurateJob
from recalld.actors.opinions.messages import FormJob, JudgeJob, Proposal, ReviseOpinion
from recalld.actors.runtime import ActorRef
from recalld.daemon.dispatch import unpack_payload
from recalld.storage.beliefs import HAND
from recalld.storage.errors import BankNotFound, NotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.daemon.screening import Screening
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]


class OpinionService:
    """Mixed into the façade, which gives it shards, the worker, clock and ids."""

    settings: Settings
    shards: Shards
    screening: Screening
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _work: Callable[[Any], Awaitable[Any]]
    _worker: Callable[[], Awaitable[ActorRef]]
    _read: Callable[..., Awaitable[Answer]]
    _child: Callable[..., Awaitable[Answer]]
    retain_defaults: Callable[[], Answer]

    async def list_opinions(self, tenant: str, bank_id: str, params: Answer) -> Answer:
        return await self._read("list_opinions", tenant, bank_id, **params)

    async def get_opinion(self, tenant: str, bank_id: str, opinion_id: str) -> Answer:
        text = f"Opinion '{opinion_id}' not found"
        return await self._child("get_opinion", tenant, bank_id, text, opinion_id=opinion_id)

    async def opinion_history(self, tenant: str, bank_id: str, opinion_id: str) -> Answer:
        text = f"Opinion '{opinion_id}' not found"
        return await self._child("opinion_history", tenant, bank_id, text, opinion_id=opinion_id)

    async def create_opinion(self, tenant: str, bank_id: str, proposal: Proposal) -> Answer:
        """Form an opinion by hand; one that its holder has already gets the evidence instead."""
        texts = {"text": proposal.text, "holder": proposal.holder, "context": proposal.context}
        kept = await self.screening.fields(
            tenant, bank_id, {**texts, "reason": proposal.reason, "entities": proposal.entities}
        )
        tags = await self.screening.tags(tenant, bank_id, proposal.tags)
        kept["entities"] = tuple(kept["entities"])
        asked = dataclasses.replace(proposal, **kept, tags=tags)
        job = FormJob(tenant, bank_id, self._new_id(), self._clock(), (asked,), HAND)
        formed = (await self._work(job))["opinions"][0]
        opinion = await self.get_opinion(tenant, bank_id, formed["id"])
        return {**opinion, "outcome": formed["outcome"]}

    async def patch_opinion(self, tenant: str, bank_id: str, opinion_id: str, fields: Answer) -> Answer:
        """Change the words of an opinion, then its confidence and state; the opinion as it is then."""
        await self.get_opinion(tenant, bank_id, opinion_id)
        fields = await self.screening.fields(tenant, bank_id, fields)
        if "text" in fields:
            changed = {"text": fields["text"]}
            await self._work(CurateJob(tenant, bank_id, self._new_id(), self._clock(), opinion_id, changed))
        if "confidence" in fields or "state" in fields:
            asked = ReviseOpinion(
                tenant,
                bank_id,
                self._new_id(),
                self._clock(),
                opinion_id,
                fields.get("confidence"),
                fields.get("state"),
                fields["reason"],
            )
            try:
                await self.shards.call(tenant, bank_id, asked)
            except BankNotFound:
                raise NotFound(f"Opinion '{opinion_id}' not found") from None
        return await self.get_opinion(tenant, bank_id, opinion_id)

    async def judge_opinions(self, claimed: messages.Claimed) -> None:
        """Carry out a queued judgement of evidence by a model."""
        pairs = tuple((one["opinion"], one["unit"]) for one in unpack_payload(claimed.payload))
        seconds = self.settings.operations_wall_seconds
        job = JudgeJob(
            claimed.tenant,
            claimed.bank_id,
            claimed.id,
            self._clock(),
            pairs,
            self.retain_defaults(),
            seconds,
        )
        await (await self._worker()).call(job, timeout=seconds)

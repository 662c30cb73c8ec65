"""The Reflector role of the worker: carries out reflects, tells of their steps, and ends those nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.ledger import Purpose
from recalld.actors.llm.base import REFLECT, LlmRequest
from recalld.actors.messages import Read
from recalld.actors.model_stage import ModelStage
from recalld.actors.opinions.messages import FormJob, Proposal
from recalld.actors.reflect import background
from recalld.actors.reflect.bank import BankMemory, Embed
from recalld.actors.reflect.deps import FormOpinions, Limits, Plain, ReflectDeps, Watch
from recalld.actors.reflect.messages import DropReflect, FollowReflect, MergeJob, ReflectJob
from recalld.actors.reflect.pages import BankPages
from recalld.actors.reflect.request import ReflectAnswer, ReflectRequest
from recalld.actors.reflect.run import reflect
from recalld.actors.spending import Caps
from recalld.storage.errors import BadRequest, ClientClosed

Form = Callable[[FormJob], Awaitable[Plain]]

FOLLOWED = 64
"""Ended reflects whose steps are still told: a fast one ends before it is followed."""
REMEMBERED = 1000
"""Dropped reflects whose job had not come yet."""


@dataclass(slots=True)
class _Run:
    """A reflect under way: its steps so far, and who waits for the next."""

    task: asyncio.Task[ReflectAnswer] | None = None
    steps: list[tuple[str, Plain]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False

    def step(self, event: str, data: Plain) -> None:
        self.steps.append((event, data))
        self.news.set()


class Reflector:
    """Carries out `ReflectJob`s. `embed` gives a query's vectors; `nonce` is a secret of this process, which fences
    memory texts. Without a `stage` there is no model."""

    def __init__(
        self,
        shards: Shards,
        embed: Embed,
        new_id: Callable[[], str],
        stage: ModelStage | None,
        form: Form | None = None,
    ) -> None:
        self._shards, self._embed, self._stage, self._new_id, self._form = shards, embed, stage, new_id, form
        self._nonce = new_id()
        self._running: dict[str, _Run] = {}
        self._ended: OrderedDict[str, _Run] = OrderedDict()
        self._dropped: deque[str] = deque(maxlen=REMEMBERED)

    async def handle(self, message: ReflectJob | FollowReflect | DropReflect | MergeJob) -> Any:
        if isinstance(message, MergeJob):
            return await self._merge(message)
        if isinstance(message, FollowReflect):
            return await self._follow(message)
        if isinstance(message, DropReflect):
            return self._drop(message.id)
        return await self._carry_out(message)

    async def stop(self) -> None:
        tasks = [run.task for run in self._running.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_out(self, job: ReflectJob) -> ReflectAnswer:
        request: ReflectRequest = job.request
        if request.id in self._dropped:
            raise ClientClosed("The caller left before the reflect began.")
        run = self._running.setdefault(request.id, _Run())
        limits = Limits(job.iterations, job.context_tokens, job.wall_seconds)
        run.task = asyncio.create_task(self.reflect(request, job.defaults, limits, run.step), name="reflect")
        try:
            return await run.task
        except asyncio.CancelledError:
            run.task.cancel()
            if run.dropped:
                raise ClientClosed("The caller left; the reflect was ended.") from None
            raise
        finally:
            self._running.pop(request.id, None)
            self._ended[request.id] = run
            if len(self._ended) > FOLLOWED:
                self._ended.popitem(last=False)
            run.news.set()

    async def reflect(
        self, request: ReflectRequest, defaults: Plain, limits: Limits | None = None, watch: Watch | None = None
    ) -> ReflectAnswer:
        """A reflect in this process, for whoever runs in the worker. Raises what `run.reflect` does, `BankNotFound`."""
        deps = await self.deps(request.tenant, request.bank_id, defaults, limits, watch, request.now)
        return await reflect(request, deps)

    async def deps(
        self,
        tenant: str,
        bank_id: str,
        defaults: Plain,
        limits: Limits | None = None,
        watch: Watch | None = None,
        now: int = 0,
    ) -> ReflectDeps:
        """What a reflect of this bank leans on. Raises `BankNotFound`."""
        bank = await self._shards.call(tenant, bank_id, Read("bank", tenant, bank_id))
        config = {**defaults, **{name: value for name, value in bank["overrides"].items() if value is not None}}
        calls = self._stage is not None and self._stage.calls(REFLECT)
        pages = BankPages(self._shards, self._embed, tenant, bank_id)
        return ReflectDeps(
            memory=BankMemory(self._shards, self._embed, tenant, bank_id),
            config=config,
            nonce=self._nonce,
            llm=self._stage.llm_for(REFLECT) if self._stage is not None and calls else None,
            ledger=self._stage.ledger if self._stage is not None else None,
            limits=limits or Limits(),
            pages=pages,
            directives=pages,
            form_opinions=None if self._form is None else self._forming(tenant, bank_id, now),
            watch=watch,
        )

    def _forming(self, tenant: str, bank_id: str, now: int) -> FormOpinions:
        async def form(proposals: Sequence[Proposal]) -> list[Plain]:
            assert self._form is not None
            job = FormJob(tenant, bank_id, self._new_id(), now, tuple(proposals), "reflect")
            formed = (await self._form(job))["opinions"]
            out = []
            for one in formed:
                read = Read("get_opinion", tenant, bank_id, {"opinion_id": one["id"]})
                out.append({**await self._shards.call(tenant, bank_id, read), "outcome": one["outcome"]})
            return out

        return form

    async def _merge(self, job: MergeJob) -> Plain:
        if self._stage is None or not self._stage.calls(REFLECT):
            raise BadRequest("No language model is set; set llm.provider.")
        bank = (job.tenant, job.bank_id)
        found = await self._shards.call(*bank, Read("bank", *bank))
        purpose = Purpose(bank, "background", Caps.of_bank({**job.defaults, **found["overrides"]}))
        answer = await self._stage.ledger.metered(self._stage.llm_for(REFLECT), purpose).complete(
            LlmRequest(
                operation=REFLECT,
                messages=background.messages_for(job.background, job.new, job.disposition, self._nonce),
                bank=bank,
                schema=background.schema_for(job.disposition),
                schema_name="background",
                temperature=0.0,
            )
        )
        merged: Plain = answer.parsed
        return merged

    # -- those who wait ------------------------------------------------------------------------------------------------

    async def _follow(self, message: FollowReflect) -> list[Any]:
        """Steps after the first `after`; none when nothing comes in time, or the reflect has ended."""
        run = self._ended.get(message.id) or self._running.setdefault(message.id, _Run())
        try:
            async with asyncio.timeout(message.wait):
                while len(run.steps) <= message.after and (run.task is None or not run.task.done()):
                    run.news.clear()
                    await run.news.wait()
        except TimeoutError:
            if run.task is None and not run.steps:
                self._running.pop(message.id, None)
        return [list(step) for step in run.steps[message.after :]]

    def _drop(self, reflect_id: str) -> None:
        run = self._running.get(reflect_id)
        if run is None or run.task is None:
            self._dropped.append(reflect_id)
            return
        run.dropped = True
        with contextlib.suppress(RuntimeError):
            run.task.cancel()

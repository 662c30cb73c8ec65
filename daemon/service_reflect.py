"""The part of the service that reflects: it hands a question to the worker, follows it, and drops what nobody wants."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from recalld.actors.llm.base import REFLECT
from recalld.actors.llm.models import NONE
from recalld.actors.reflect.messages import DropReflect, FollowReflect, ReflectJob
from recalld.actors.reflect.request import ReflectAnswer, ReflectRequest
from recalld.actors.runtime import ActorRef
from recalld.daemon.settings_llm import llm_config
from recalld.storage.errors import BadRequest, BankNotFound, RecalldError

if TYPE_CHECKING:
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]
SLACK_SECONDS = 30.0
FOLLOW_SECONDS = 10.0
FACT_FIELDS = (
    "id", "text", "type", "context", "occurred_start", "occurred_end", "mentioned_at", "document_id", "chunk_id",
    "tags", "metadata", "attachments",
)  # fmt: skip


class ReflectService:
    """Mixed into the façade."""

    settings: Settings
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _worker: Callable[[], Awaitable[ActorRef]]
    _read: Callable[..., Awaitable[Any]]
    _put: Callable[..., Awaitable[Any]]
    retain_defaults: Callable[[], Answer]

    def new_reflect(self) -> tuple[str, int]:
        """(id, now) of a reflect that is about to be asked."""
        return self._new_id(), self._clock()

    async def reflect(self, tenant: str, bank_id: str, request: ReflectRequest, *, reads_alone: bool = False) -> Answer:
        """The answer in the wire's shape; creates the bank when there is none. `reads_alone` is the promise of callers
        that expect a reflect to store nothing, unless the bank itself says otherwise."""
        prepared = await self._prepared(tenant, bank_id, request, reads_alone)
        return to_wire(prepared, await self.reflect_answer(prepared))

    async def reflect_options(self, tenant: str, bank_id: str) -> Answer:
        """The bank's default options for reflects."""
        try:
            overrides = (await self._read("bank", tenant, bank_id))["overrides"]
        except BankNotFound:
            return {}
        options: Answer = overrides.get("reflect_default_options") or {}
        return options

    async def reflect_answer(self, request: ReflectRequest) -> ReflectAnswer:
        """Have the worker carry it out. A caller that is cancelled ends it there too."""
        seconds = self.settings.reflect_wall_timeout + SLACK_SECONDS
        job = ReflectJob(
            request,
            self.retain_defaults(),
            self.settings.reflect_max_iterations,
            self.settings.reflect_max_context_tokens,
            self.settings.reflect_wall_timeout,
            seconds,
        )
        worker = await self._worker()
        try:
            answer: ReflectAnswer = await worker.call(job, timeout=seconds)
        except BaseException:
            # Ended or not: who is not there any more shall cost nothing.
            worker.tell(DropReflect(request.id))
            raise
        return answer

    async def _prepared(self, tenant: str, bank_id: str, request: ReflectRequest, reads_alone: bool) -> ReflectRequest:
        """The request with the bank's default options, its bank there. Raises `BadRequest` under the provider none."""
        if llm_config(self.settings).of(REFLECT).provider.strip().lower() == NONE:
            raise BadRequest(
                "The model provider is 'none', so nothing can be reflected on; set llm.provider, or 'local' for answers"
                " put together without a model."
            )
        try:
            overrides = (await self._read("bank", tenant, bank_id))["overrides"]
        except BankNotFound:
            overrides = (await self._put(tenant, bank_id, create=True))["overrides"]
        if request.form_opinions is None and reads_alone and overrides.get("reflect_form_opinions") is None:
            request = dataclasses.replace(request, form_opinions=False)
        return request

    async def reflect_steps(
        self, tenant: str, bank_id: str, request: ReflectRequest, *, reads_alone: bool = False
    ) -> AsyncIterator[tuple[str, Answer]]:
        """The steps of a reflect as they happen, then ("done", answer), or ("error", {detail, status})."""
        try:
            prepared = await self._prepared(tenant, bank_id, request, reads_alone)
            worker = await self._worker()
            task = asyncio.create_task(self.reflect_answer(prepared), name="reflect, followed")
        except RecalldError as error:
            yield "error", _problem(error)
            return
        try:
            told = 0
            while True:
                over = task.done()
                steps = await _followed(worker, request.id, told, 0.0 if over else FOLLOW_SECONDS, task)
                for event, data in steps:
                    told += 1
                    yield event, data
                if over:
                    break
                if not steps and not task.done():
                    yield "wait", {}
            try:
                yield "done", to_wire(prepared, task.result())
            except RecalldError as error:
                yield "error", _problem(error)
        finally:
            task.cancel()


async def _followed(worker: ActorRef, id: str, told: int, wait: float, task: asyncio.Task[ReflectAnswer]) -> list[Any]:
    """The steps after the first `told`; none when the reflect ends meanwhile, or the worker does not answer."""
    call = worker.call(FollowReflect(id, told, wait), timeout=wait + SLACK_SECONDS)
    follow = asyncio.ensure_future(call)
    try:
        await asyncio.wait({follow} if task.done() else {task, follow}, return_when=asyncio.FIRST_COMPLETED)
        return list(await follow) if follow.done() else []
    except RecalldError:
        return []
    finally:
        follow.cancel()


def _problem(error: RecalldError) -> Answer:
    return {"detail": error.message, "status": error.status, "code": error.code}


def to_wire(request: ReflectRequest, answer: ReflectAnswer) -> Answer:
    """The contract's ReflectResponse, with our extensions."""
    based_on = None
    if request.include_facts:
        based_on = {
            "memories": [fact(one) for one in (*answer.memories, *answer.observations)],
            "mental_models": answer.mental_models,
            "directives": answer.directives,
        }
    trace = None
    if request.include_tool_calls:
        trace = {"tool_calls": answer.tool_calls, "llm_calls": answer.llm_calls}
    return {
        "text": answer.text,
        "based_on": based_on,
        "structured_output": answer.structured_output,
        "structured_output_error": answer.structured_output_error,
        "usage": answer.usage,
        "trace": trace,
        "mode": answer.mode,
        "found": answer.found,
        "certainty": answer.certainty or None,
        "opinions": answer.opinions,
        "explain": answer.explain,
        "stats": answer.stats,
    }


def fact(memory: Answer) -> Answer:
    """A memory as `based_on` shows it; an opinion with its confidence."""
    shown = {name: memory.get(name) for name in FACT_FIELDS}
    if memory.get("type") == "opinion":
        shown["confidence"] = memory.get("confidence")
    return shown

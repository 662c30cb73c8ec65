"""The part of the façade that has to do with language models: journalled retains, dry runs, previews, the ledger.

`ModelAnswers` is a base of `MemoryService`; it holds nothing of its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from recalld.actors import messages
from recalld.actors.llm.base import RETAIN
from recalld.actors.llm.models import filled
from recalld.actors.reflect import disposition, prompts
from recalld.actors.reflect.request import BUDGET_FACTORS, ReflectRequest
from recalld.actors.retain.extraction import MODEL
from recalld.actors.spending import Price, consolidation_estimate, money, reflect_estimate
from recalld.daemon.dispatch import REPROCESS, Dispatcher, extraction_by, pack_payload
from recalld.daemon.screening import Screening
from recalld.daemon.settings_llm import llm_config
from recalld.storage import codec
from recalld.storage.errors import BankNotFound, Conflict, NotFound, RecalldError
from recalld.storage.ledger import DayTotals, day_of, lasting_gap
from recalld.storage.records import CANCELLED, COMPLETED, FAILED

if TYPE_CHECKING:
    from collections.abc import Callable

    from recalld.actors.directory import Shards
    from recalld.actors.retain.items import RetainItem
    from recalld.daemon.screening import Screening
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]

USAGE = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"), 0)
LEFT = "The caller left before the retain was done; nothing of it was stored. Retry the operation, or send it again."
PREVIEWED = (
    ("retain_extraction_mode", "choice"),
    ("retain_mission", "text"),
    ("retain_custom_instructions", "text"),
    ("retain_chunk_size", "text"),
    ("retain_extract_causal_links", "boolean"),
    ("entity_labels", "complex"),
    ("entities_allow_free_form", "boolean"),
    ("llm_output_language", "text"),
)
PREVIEWED_REFLECT = (
    ("reflect_mission", "text"),
    ("disposition_skepticism", "text"),
    ("disposition_literalism", "text"),
    ("disposition_empathy", "text"),
    ("disposition_bias_strength", "text"),
)


class ModelAnswers:
    """What the service answers about models. The fields are `MemoryService`'s."""

    settings: Settings
    shards: Shards
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _dispatcher: Dispatcher
    screening: Screening
    retain_defaults: Callable[[], Answer]
    _work: Callable[..., Awaitable[Any]]
    _read: Callable[..., Awaitable[Answer]]
    _child: Callable[..., Awaitable[Answer]]

    # -- a synchronous retain with a model ---------------------------------------------------------------------------

    async def _journalled(self, job: messages.RetainJob, items: Sequence[RetainItem], operation_id: str) -> Answer:
        """Carry out a retain whose text is made durable first, as an operation that this call has in hand.

        A crash in the middle leaves the operation pending: the next start carries it out with what was paid for. Any
        error ends it as failed, to be retried by hand or sent again under the same id; nothing is half stored.
        """
        tenant, bank_id = job.tenant, job.bank_id
        named = tuple(dict.fromkeys(item.document_id for item in items if item.document_id is not None))
        new = messages.NewOperation(
            operation_id,
            "retain",
            len(items),
            pack_payload(items),
            document_id=named[0] if len(named) == 1 else None,
            result={"synchronous": True},
            documents=named,
        )
        submit = messages.SubmitOperations(tenant, bank_id, self._clock(), (new,), held=True)
        if not (await self.shards.call(tenant, bank_id, submit))["created"]:
            known = await self._repeated(tenant, bank_id, operation_id)
            if known is not None:
                return known
            await self.shards.call(tenant, bank_id, submit)
        shard = self.shards.name_of(tenant, bank_id)
        self._dispatcher.hold(shard, operation_id)
        try:
            answer: Answer = await self._work(dataclasses.replace(job, operation_id=operation_id))
        except asyncio.CancelledError:
            await asyncio.shield(self._ended(shard, job, operation_id, LEFT))
            raise
        except RecalldError as error:
            await self._ended(shard, job, operation_id, error.message)
            raise
        finally:
            self._dispatcher.release(shard, operation_id)
        return answer

    async def _ended(self, shard: str, job: messages.RetainJob, operation_id: str, error: str) -> None:
        report = messages.FinishOperation(job.tenant, job.bank_id, operation_id, self._clock(), error=error)
        try:
            await self.shards.call_named(shard, report)
        except RecalldError:
            return  # its shard takes it back, and it is carried out in the background

    async def _repeated(self, tenant: str, bank_id: str, operation_id: str) -> Answer | None:
        """The answer of an operation that was carried out before; None when it failed and may be sent again."""
        found = await self._read("get_operation", tenant, bank_id, operation_id=operation_id, include_payload=False)
        if found["status"] == COMPLETED:
            receipt = await self._read("receipt", tenant, bank_id, operation_id=operation_id)
            return {"items": receipt["items"], "usage": (found["result_metadata"] or {}).get("usage", {})}
        if found["status"] not in (FAILED, CANCELLED):
            raise Conflict(f"Operation '{operation_id}' is {found['status']}; look at it until it has ended.")
        change = messages.ChangeOperation(tenant, bank_id, operation_id, "delete", self._clock())
        await self.shards.call(tenant, bank_id, change)
        return None

    # -- what extraction would do ------------------------------------------------------------------------------------

    async def dry_run_extract(self, tenant: str, bank_id: str, item: RetainItem, overrides: Answer) -> Answer:
        """The facts and chunks that retaining one item would give; nothing is stored."""
        (item,) = await self.screening.items(tenant, bank_id, [item])
        by = extraction_by(self.settings)
        # What the bank's policy takes out reaches no model here either.
        (item,) = await self.screening.items(tenant, bank_id, [item])
        job = messages.DryRunJob(tenant, bank_id, item.to_plain(), self._clock(), self.retain_defaults(), overrides, by)
        answer: Answer = await self._work(job)
        return answer

    async def reprocess_document(self, tenant: str, bank_id: str, document_id: str) -> Answer:
        """Queue that a document's stored text is read anew. Raises `NotFound`; `Conflict` when no text was kept."""
        text = f"Document '{document_id}' not found"
        source = await self._child("document_source", tenant, bank_id, text, document_id=document_id)
        from recalld.actors.retain.items import RetainItem

        items = [RetainItem.from_plain(plain) for plain in source["items"]]
        operation_id = self._new_id()
        new = messages.NewOperation(
            operation_id, REPROCESS, len(items), pack_payload(items), document_id=document_id, documents=(document_id,)
        )
        await self.shards.call(tenant, bank_id, messages.SubmitOperations(tenant, bank_id, self._clock(), (new,)))
        return {"success": True, "operation_id": operation_id, "items_count": len(items)}

    async def _about_models(self, what: str, tenant: str, bank_id: str, **params: Any) -> Answer:
        request = messages.AskModel(tenant, bank_id, what, self._clock(), self.retain_defaults(), params)
        answer: Answer = await self._work(request)
        return answer

    async def probe_models(self, tenant: str, bank_id: str) -> Answer:
        """Whether the models this bank would use answer."""
        found = await self._about_models("probe", tenant, bank_id)
        return {"bank_id": bank_id, "operations": [{"operation": name, **one} for name, one in found.items()]}

    async def preview_prompt(self, tenant: str, bank_id: str, operation: str, strategy: str | None) -> Answer:
        """The messages an operation would send; those of consolidation depend on its facts."""
        if operation == "reflect":
            return await self._preview_reflect(tenant, bank_id)
        if operation != "retain":
            await self._read("bank", tenant, bank_id)
            return {"messages": [], "strategy": strategy, "strategies": [], "run_settings": []}
        found = await self._about_models("preview", tenant, bank_id, strategy=strategy)
        config = found["config"]
        return {
            "messages": [
                {"role": role, "blocks": _blocks(role, content, config)} for role, content in found["messages"]
            ],
            "strategy": found["strategy"],
            "strategies": found["strategies"],
            "run_settings": [
                {"field": name, "value": _shown(config.get(name)), "kind": kind, "editable": True}
                for name, kind in PREVIEWED
            ],
        }

    async def _preview_reflect(self, tenant: str, bank_id: str) -> Answer:
        """The system message of a reflect in this bank, and a question in its place."""
        overrides = (await self._read("bank", tenant, bank_id))["overrides"]
        config = {**self.retain_defaults(), **{name: value for name, value in overrides.items() if value is not None}}
        read = {"everything": False, "tags": [], "tags_match": "any", "tag_groups": None}
        directives: Any = await self._read("directives_in_force", tenant, bank_id, **read)
        words = disposition.words(disposition.Disposition.of(config))
        profile = {"mission": config.get("reflect_mission")}
        asked = ReflectRequest(tenant, bank_id, "The question stands here.", self._clock())
        shown = (
            ("system", prompts.system_text(profile, words, directives, "preview")),
            ("user", prompts.question_text(asked)),
        )
        return {
            "messages": [{"role": role, "blocks": [_block(text)]} for role, text in shown],
            "strategy": None,
            "strategies": [],
            "run_settings": [
                {"field": name, "value": _shown(config.get(name)), "kind": kind, "editable": True}
                for name, kind in PREVIEWED_REFLECT
            ],
        }

    def model_status(self) -> Answer:
        """Who turns texts into facts."""
        by, settings = extraction_by(self.settings), self.settings
        if by != MODEL:
            return {"provider": by, "check": "none needed"}
        choice = filled(llm_config(settings).of(RETAIN))
        return {"provider": choice.provider, "model": choice.model, "check": "recalld doctor --llm"}

    async def ledger_status(self) -> Answer:
        """What the daemon spent on models today, its caps, and how the last week's bills compare with our own count."""
        today = day_of(self._clock())
        sums, spent = DayTotals(), DayTotals()
        for days in await self.shards.call_all(
            messages.Read("day_sums", "", params={"day": today, "since": today - 6})
        ):
            for plain in days:
                day = codec.decode(DayTotals, codec.pack(plain))
                sums = sums.joined(day)
                spent = spent.joined(day) if day.day == today else spent
        settings = self.settings
        return {
            "today": {"calls": spent.calls, "tokens": spent.tokens, "cost": money(spent.cost)},
            "caps": {
                "calls": settings.budget_calls_per_day,
                "tokens": settings.budget_tokens_per_day,
                "cost": settings.budget_cost_per_day,
            },
            "currency": settings.budget_currency,
            "gap": {
                "calls": sums.compared,
                "reported_input_tokens": sums.gap_reported,
                "counted_input_tokens": sums.gap_counted,
                "extra_tokens_a_call": lasting_gap(sums),
            }
            if sums.compared
            else None,
        }

    # -- the ledger and prices ---------------------------------------------------------------------------------------

    async def list_llm_requests(self, tenant: str, bank_id: str, filters: Answer) -> Answer:
        return await self._read("list_calls", tenant, bank_id, **filters)

    async def llm_request_stats(self, tenant: str, bank_id: str, filters: Answer) -> Answer:
        found = await self._read("call_stats", tenant, bank_id, now=self._clock(), **filters)
        return {**found, "currency": self.settings.budget_currency}

    async def price_preview(self, tenant: str, bank_id: str, request: Answer) -> Answer:
        """What a retain of items, a consolidation of the backlog, or a reflect is likely to take.

        Calls, tokens and money: `least` and `most` are the same but for a reflect, which may stop after one round or
        go on to its limit of iterations. Money is null where the price of the model is not known.
        """
        operation, items = request["operation"], request.get("items") or ()
        by = extraction_by(self.settings)
        found = await self._about_models(
            "price", tenant, bank_id, items=tuple(item.to_plain() for item in items), provider=by if items else ""
        )
        price = None if found["prices"] is None else Price(*found["prices"])
        answer: Answer = {
            "operation": operation,
            "model": found["model"],
            "currency": self.settings.budget_currency,
            "price_known": price is not None,
        }
        if operation == "retain":
            one = found["estimate"]
            return {
                **answer,
                "chunks": found["chunks"],
                "chunks_reused": found["chunks_reused"],
                "least": one,
                "most": one,
            }
        if operation == "consolidation":
            try:
                backlog = (await self._read("bank_stats", tenant, bank_id))["pending_consolidation"]
            except BankNotFound:
                raise NotFound(f"Bank '{bank_id}' not found") from None
            batch = int(found["config"].get("consolidation_llm_batch_size") or 8)
            one = consolidation_estimate(backlog, batch, price).to_wire()
            return {**answer, "facts": backlog, "least": one, "most": one}
        iterations = math.ceil(self.settings.reflect_max_iterations * BUDGET_FACTORS[request.get("budget") or "low"])
        least, most = reflect_estimate(iterations, price)
        return {**answer, "iterations": iterations, "least": least.to_wire(), "most": most.to_wire()}


def _blocks(role: str, content: str, config: Answer) -> list[Answer]:
    """A message in parts: those that come from the bank's settings name the field."""
    fields = ("retain_custom_instructions",) if role == "system" else ("retain_mission",)
    blocks: list[Answer] = []
    rest = content
    for name in fields:
        value = (config.get(name) or "").strip()
        before, found, after = rest.partition(value) if value else (rest, "", "")
        if found:
            blocks += [_block(before), _block(value, name)]
            rest = after
    return [block for block in (*blocks, _block(rest)) if block["text"].strip()]


def _block(text: str, name: str = "") -> Answer:
    return {
        "text": text,
        "source": "config" if name else "builtin",
        "field": name,
        "section": "",
        "heading": "",
        "active": True,
        "value": text if name else None,
        "kind": "text",
        "choices": None,
        "editable": bool(name),
    }


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)

"""What may be asked about extraction without storing anything: a dry run, the prompt, the price, whether models answer.

A dry run and a probe make real calls, so they stand in the ledger and count in the budget like all others.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.ledger import Purpose
from recalld.actors.llm.base import CONSOLIDATE, REFLECT, RETAIN, LlmRequest, user
from recalld.actors.llm.counting import count_call
from recalld.actors.messages import AskModel, DryRunJob, Read, RetainJob
from recalld.actors.model_stage import AT_ONCE, ModelStage
from recalld.actors.retain import prepare
from recalld.actors.retain.chunking import chunk_text
from recalld.actors.retain.extraction import MODEL, ExtractionInput, Reading, extractor_for
from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.model_extractor import ModelExtractor
from recalld.actors.retain.model_prompts import ReadingRules, messages_for, rules_of, schema_for
from recalld.actors.spending import Caps, retain_estimate
from recalld.storage.errors import (
    BankNotFound,
    BudgetExhausted,
    DeadlineExceeded,
    ModelRefused,
    RecalldError,
    Unprocessable,
)
from recalld.storage.isotime import iso
from recalld.storage.records import NETWORK_NAMES

NO_USAGE = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"), 0)
PROBE_SECONDS = 30.0
PROBED = {"retain": RETAIN, "consolidation": CONSOLIDATE, "reflect": REFLECT}


class ExtractionDesk:
    """Answers about extraction, in the worker's process. Without a `stage` there is no language model."""

    def __init__(self, shards: Shards, stage: ModelStage | None) -> None:
        self._shards = shards
        self._stage = stage

    async def handle(self, request: DryRunJob | AskModel) -> dict[str, Any]:
        if isinstance(request, DryRunJob):
            return await self.dry_run(request)
        ask = {"probe": self.probe, "preview": self.preview, "price": self.price}[request.what]
        return await ask(request)

    async def _overrides(self, tenant: str, bank_id: str) -> tuple[dict[str, Any], bool]:
        try:
            found = await self._shards.call(tenant, bank_id, Read("bank", tenant, bank_id))
        except BankNotFound:
            return {}, False
        return dict(found["overrides"]), True

    # -- dry run -------------------------------------------------------------------------------------------------------

    async def dry_run(self, job: DryRunJob) -> dict[str, Any]:
        """The facts and chunks of one item. Raises what a retain of it would raise."""
        bank, known = await self._overrides(job.tenant, job.bank_id)
        item = RetainItem.from_plain(job.item)
        prepare.check_strategy(job.defaults, bank, item.strategy)
        config = {**prepare.item_config(job.defaults, bank, item.strategy), **job.overrides}
        mode = config["retain_extraction_mode"]
        by_model = job.provider == MODEL and mode != "chunks" and self._stage is not None
        if by_model and not known:
            # Its calls cost money, and an unknown bank has no ledger to write them into.
            raise BankNotFound.named(job.bank_id)
        texts = chunk_text(
            item.content, int(config["retain_chunk_size"]), config.get("retain_structured_chunk_size") or None
        )
        inputs = [prepare.input_of(item, text, mode, job.now) for text in texts]
        usage = dict(NO_USAGE)
        if by_model:
            assert self._stage is not None
            readings = await self._read(job, inputs, rules_of(config, self._stage.model), Caps.of_bank(config), usage)
        else:
            extractor = extractor_for("local" if job.provider == MODEL else job.provider, mode)
            readings = await asyncio.to_thread(lambda: [extractor.read(one) for one in inputs])
        facts = [
            {
                "text": fact.text,
                "fact_type": NETWORK_NAMES[fact.network],
                "occurred_start": iso(fact.occurred_start),
                "occurred_end": iso(fact.occurred_end),
                "entities": [entity.name for entity in fact.entities],
                "chunk_index": index,
                "attachments": [],
            }
            for index, reading in enumerate(readings)
            for fact in reading.facts
        ]
        chunks = [
            {"text": text, "fact_count": len(reading.facts)} for text, reading in zip(texts, readings, strict=True)
        ]
        dropped = prepare.dropped_by_reason(one for reading in readings for one in reading.dropped)
        return {"facts": facts, "chunks": chunks, "usage": usage, "dropped": dropped}

    async def _read(
        self, job: DryRunJob, inputs: list[ExtractionInput], rules: ReadingRules, caps: Caps, usage: dict[str, Any]
    ) -> list[Reading]:
        assert self._stage is not None
        purpose = Purpose((job.tenant, job.bank_id), "dry_run", caps, usage=usage)
        extractor = ModelExtractor(self._stage.ledger.metered(self._stage.llm_for(RETAIN), purpose))
        permits = asyncio.Semaphore(AT_ONCE)

        async def one(chunk: ExtractionInput) -> Reading:
            async with permits:
                return await extractor.read(chunk, rules, purpose.bank)

        return list(await asyncio.gather(*(one(chunk) for chunk in inputs)))

    # -- previews ------------------------------------------------------------------------------------------------------

    async def preview(self, ask: AskModel) -> dict[str, Any]:
        """The messages a retain would send for a text that stands where `{text}` is, as (role, content) pairs.

        Raises `BadRequest` for an unknown strategy, `BankNotFound`.
        """
        bank, known = await self._overrides(ask.tenant, ask.bank_id)
        if not known:
            raise BankNotFound.named(ask.bank_id)
        strategy = ask.params.get("strategy")
        prepare.check_strategy(ask.defaults, bank, strategy)
        config = prepare.item_config(ask.defaults, bank, strategy)
        strategies = sorted({**ask.defaults, **bank}.get("retain_strategies") or {})
        messages: list[tuple[str, str]] = []
        if config["retain_extraction_mode"] != "chunks":
            rules = rules_of(config, self._stage.model if self._stage else "")
            chunk = ExtractionInput("The text of the item stands here.", mentioned_at=ask.now, mode=rules.mode)
            messages = [(message.role, message.content) for message in messages_for(chunk, rules)]
        return {"messages": messages, "config": config, "strategy": strategy, "strategies": strategies}

    async def price(self, ask: AskModel) -> dict[str, Any]:
        """What a retain of `items` is likely to take: chunks that no model read before, with their real prompts."""
        bank, _ = await self._overrides(ask.tenant, ask.bank_id)
        config = {**ask.defaults, **bank}
        model = self._stage.model if self._stage else ""
        price = self._stage.ledger.prices.of(model) if self._stage else None
        prompts: list[int] = []
        total = reused = 0
        if self._stage is not None and ask.params.get("provider") == MODEL:
            job = RetainJob(ask.tenant, ask.bank_id, tuple(ask.params["items"]), "", ask.now, ask.defaults)
            numbers = iter(range(10**9))
            preparation = prepare.begin(job, lambda: f"new-{next(numbers)}", model)
            plan = await self._shards.call(ask.tenant, ask.bank_id, prepare.plan_request(preparation))
            wanted = prepare.wanted(preparation, plan)
            params = {"readings": [one.reading for one in wanted]}
            known = await self._shards.call(
                ask.tenant, ask.bank_id, Read("known_readings", ask.tenant, ask.bank_id, params)
            )
            open_ = [one for one in wanted if one.reading not in known]
            prompts = [count_call(messages_for(w.chunk, w.rules), schema_for(w.rules), ()) for w in open_]
            total = sum(len(draft.chunks) for draft in preparation.drafts)
            reused = total - len(open_)
        return {
            "model": model or None,
            "config": config,
            "chunks": total,
            "chunks_reused": reused,
            "estimate": retain_estimate(prompts, price).to_wire(),
            "prices": None if price is None else [price.input, price.output, price.cached],
        }

    # -- are they there? -----------------------------------------------------------------------------------------------

    async def probe(self, ask: AskModel) -> dict[str, Any]:
        """{operation: {ok, status, latency_ms}}: one very short call to each model. Raises `BankNotFound`."""
        bank, known = await self._overrides(ask.tenant, ask.bank_id)
        if not known:
            raise BankNotFound.named(ask.bank_id)
        caps = Caps.of_bank({**ask.defaults, **bank})
        results: dict[str, dict[str, Any]] = {}
        asked: dict[int, dict[str, Any]] = {}
        for name, operation in PROBED.items():
            if self._stage is None or not self._stage.calls(operation):
                results[name] = {"ok": False, "status": "not_configured", "latency_ms": None}
                continue
            try:
                llm = self._stage.llm_for(operation)
            except RecalldError:
                results[name] = {"ok": False, "status": "not_configured", "latency_ms": None}
                continue
            if id(llm) not in asked:
                purpose = Purpose((ask.tenant, ask.bank_id), "health", caps, scope=name)
                asked[id(llm)] = await _probed(self._stage.ledger.metered(llm, purpose), purpose)
            results[name] = asked[id(llm)]
        return results


async def _probed(llm: Any, purpose: Purpose) -> dict[str, Any]:
    request = LlmRequest(
        operation="health",
        messages=(user("Answer with the one word: ready"),),
        bank=purpose.bank,
        max_tokens=16,
        timeout=PROBE_SECONDS,
        deadline=PROBE_SECONDS,
    )
    started = time.perf_counter()
    status = "connected"
    try:
        await llm.complete(request)
    except ModelRefused as error:
        status = "auth_failed" if error.cause in ("unauthorized", "forbidden", "payment_required") else "unreachable"
    except DeadlineExceeded:
        status = "timeout"
    except BudgetExhausted:
        raise
    except Unprocessable:
        status = "connected"  # it answered, if with too much
    except RecalldError:
        status = "unreachable"
    milliseconds = round((time.perf_counter() - started) * 1000, 1)
    return {
        "ok": status == "connected",
        "status": status,
        "latency_ms": milliseconds if status == "connected" else None,
    }

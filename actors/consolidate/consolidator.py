"""The Consolidator: a role of the worker that turns pending facts into observations, one durable step after another.

Every step ends in a commit of its own, which also says which facts are done, so that what was reached survives whatever
ends the run. Each scope's steps follow each other; scopes go on side by side. Retains come first: between two steps it
waits while any is at work.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np
import structlog

from recalld.actors.consolidate import prompts, rules
from recalld.actors.consolidate.messages import CommitConsolidation, ConsolidateJob, ObservationWrite
from recalld.actors.consolidate.prompts import Action
from recalld.actors.consolidate.scopes import Scope, scopes_of, settings_of
from recalld.actors.directory import Shards
from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.ledger import Purpose
from recalld.actors.llm.base import CONSOLIDATE, Llm, LlmRequest
from recalld.actors.messages import Read
from recalld.actors.model_stage import ModelStage
from recalld.actors.retain.moving import terms_of
from recalld.actors.spending import Caps
from recalld.storage.errors import (
    BadRequest,
    ModelAnswerUnusable,
    ModelOverflow,
    ModelRefused,
    RecalldError,
    Superseded,
)
from recalld.storage.records import OBSERVATION, PreparedUnit

log = structlog.get_logger(__name__)

Fact = dict[str, Any]
Embed = Callable[[list[tuple[str, str, str]]], Awaitable[EmbeddedTexts]]

RULES_BATCH = 16
"""Facts of one step without a model: a shard must not be kept from recalls for long."""
ATTEMPTS = 4
"""Times a step begins anew because a memory changed under it; its facts then stay pending for the next run."""
RUN_SECONDS = 600.0
"""A run goes on for so long, then lets the other operations of the daemon have its place and is queued again."""
ANSWER_TOKENS = 4096
PAUSE, LONGEST_PAUSE = 0.02, 5.0
OFF = 1.0
_CONTENT = ("content_policy", "bad_request", "refused")


@dataclasses.dataclass(slots=True)
class _Run:
    """One consolidation under way."""

    job: ConsolidateJob
    config: dict[str, Any]
    llm: Llm | None
    usage: dict[str, Any]
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    scopes_left: dict[int, int] = dataclasses.field(default_factory=dict)
    """Scopes a fact of the round is still to be consolidated under."""
    built: dict[int, int] = dataclasses.field(default_factory=dict)
    """Scopes in which a fact of the round became a source of an observation."""
    gave_up: set[int] = dataclasses.field(default_factory=set)
    started: float = dataclasses.field(default_factory=time.monotonic)


class Consolidator:
    """`busy` says whether retains are at work; `embed` embeds texts."""

    def __init__(
        self,
        shards: Shards,
        embed: Embed,
        new_id: Callable[[], str],
        stage: ModelStage | None,
        busy: Callable[[], bool],
    ) -> None:
        self._shards = shards
        self._embed = embed
        self._new_id = new_id
        self._stage = stage
        self._busy = busy

    async def run(self, job: ConsolidateJob) -> dict[str, Any]:
        """Work off what is pending. Raises what calls of a model raise; what was reached by then is stored."""
        first = await self._read(job, "consolidation_plan", now=job.now, limit=0, scopes=job.scopes)
        config = {**job.defaults, **first["overrides"]}
        run = _Run(job, config, None, {})
        if job.provider == "none" or not config.get("enable_observations", True):
            return await self._finish(run, left=False)
        if job.provider == "model":
            run.llm = self._metered(job, config, run.usage)
        end = time.monotonic() + RUN_SECONDS
        size = max(1, int(config.get("consolidation_max_memories_per_round") or 100))
        after, done_before = -1, -1
        while time.monotonic() < end:
            plan = await self._read(
                job, "consolidation_plan", now=self._now(run), limit=size, scopes=job.scopes, after=after
            )
            facts: list[Fact] = plan["facts"]
            if not facts:
                # What became pending behind us is taken too, as long as that leads on.
                done = run.counts.get("facts_consolidated", 0)
                if after < 0 or done == done_before:
                    return await self._finish(run, left=False)
                after, done_before = -1, done
                continue
            after = facts[-1]["uid"]
            await self._round(run, [fact for fact in facts if fact["uid"] not in run.gave_up])
        return await self._finish(run, left=True)

    def _metered(self, job: ConsolidateJob, config: Mapping[str, Any], usage: dict[str, Any]) -> Llm:
        if self._stage is None or not self._stage.calls(CONSOLIDATE):
            raise BadRequest("No model is set for consolidation; set llm.provider, or 'local' for rules.")
        bank = (job.tenant, job.bank_id)
        purpose = Purpose(bank, CONSOLIDATE, Caps.of_bank(config), job.operation_id, usage=usage)
        purpose.count([])
        return self._stage.ledger.metered(self._stage.llm_for(CONSOLIDATE), purpose)

    def _now(self, run: _Run) -> int:
        return run.job.now + int((time.monotonic() - run.started) * 1e6)

    async def _read(self, job: ConsolidateJob, what: str, **params: Any) -> Any:
        return await self._shards.call(job.tenant, job.bank_id, Read(what, job.tenant, job.bank_id, params))

    # -- rounds ----------------------------------------------------------------------------------------------------

    async def _round(self, run: _Run, facts: Sequence[Fact]) -> None:
        default = run.config.get("default_observation_scopes")
        by_scope: dict[Scope, list[Fact]] = {}
        run.scopes_left.clear()
        run.built.clear()
        several: list[Fact] = []
        for fact in facts:
            scopes = scopes_of(fact["tags"], fact["scopes"], default)
            run.scopes_left[fact["uid"]] = len(scopes)
            if len(scopes) > 1:
                several.append(fact)
                run.built[fact["uid"]] = 0
            for scope in scopes:
                by_scope.setdefault(scope, []).append(fact)
        permits = asyncio.Semaphore(max(1, int(run.config.get("consolidation_llm_parallelism") or 4)))
        size = int(run.config.get("consolidation_llm_batch_size") or 8) if run.llm is not None else RULES_BATCH
        failures: list[BaseException] = []

        async def one(scope: Scope, members: list[Fact]) -> None:
            async with permits:
                for start in range(0, len(members), size):
                    if failures:
                        return
                    try:
                        await self._step(run, scope, members[start : start + size])
                    except Exception as error:
                        failures.append(error)

        await asyncio.gather(*(one(scope, members) for scope, members in by_scope.items()))
        settled = tuple((fact["uid"], run.built[fact["uid"]]) for fact in several if run.scopes_left[fact["uid"]] == 0)
        if settled:
            await self._commit(run, self._request(run, settled=settled))
        if failures:
            raise failures[0]

    async def _step(self, run: _Run, scope: Scope, facts: list[Fact]) -> None:
        """Consolidate a batch of one scope; what fails is halved down to single facts."""
        waited = 0.0
        while self._busy() and waited < LONGEST_PAUSE:
            await asyncio.sleep(PAUSE)
            waited += PAUSE
        for _ in range(ATTEMPTS):
            try:
                request = await self._made(run, scope, facts)
                if request is not None:
                    await self._commit(run, request)
                return
            except Superseded:
                continue
            except (ModelAnswerUnusable, ModelOverflow, ModelRefused) as error:
                if isinstance(error, ModelRefused) and error.cause not in _CONTENT:
                    raise
                if len(facts) > 1:
                    middle = len(facts) // 2
                    await self._step(run, scope, facts[:middle])
                    await self._step(run, scope, facts[middle:])
                    return
                run.gave_up.add(facts[0]["uid"])
                failed = ((facts[0]["uid"], error.code),)
                await self._commit(run, self._request(run, scope, failed=failed))
                return
        run.gave_up.update(fact["uid"] for fact in facts)

    async def _made(self, run: _Run, scope: Scope, facts: list[Fact]) -> CommitConsolidation | None:
        settings = settings_of(scope, run.config)
        tokens = int(run.config.get("consolidation_max_tokens") or 512) if run.llm is not None else 0
        uids = [fact["uid"] for fact in facts]
        context = await self._read(run.job, "consolidation_context", uids=uids, scope=scope, tokens=tokens)
        gone = set(context["gone"])
        facts = [fact for fact in facts if fact["uid"] not in gone]
        if not facts:
            return None
        removed: list[int] = []
        if run.llm is None:
            writes = await asyncio.to_thread(self._by_rules, facts, context)
            actions: list[Action] = [Action("", write.sources) for write in writes]
        else:
            actions, removed = await self._asked(run, run.llm, facts, context, settings)
            writes, actions, removed = await self._embedded(run, scope, actions, removed, facts, context)
        shown = {fact["uid"] for fact in facts}
        shown |= {one["uid"] for one in context["observations"]} | {one["uid"] for one in context["sources"]}
        shown |= {uid for one in actions for uid in one.sources} | set(removed)
        done = tuple(fact["uid"] for fact in facts if fact["uid"] not in run.built)
        limit = settings.get("max_observations_per_scope")
        request = self._request(run, scope, done=done)
        return dataclasses.replace(
            request,
            shown=tuple(sorted(shown)),
            writes=tuple(writes),
            removed=tuple(removed),
            batch=tuple(fact["uid"] for fact in facts),
            limit=-1 if limit is None else int(limit),
        )

    # -- by rules --------------------------------------------------------------------------------------------------

    def _by_rules(self, facts: list[Fact], context: Mapping[str, Any]) -> list[ObservationWrite]:
        writes = []
        for group in rules.group(facts, context):
            sources = tuple(fact["uid"] for fact in group.facts)
            speaker = group.speaker_for_all
            known = next((one for one in context["observations"] if one["uid"] == group.uid), None)
            if known is not None and set(known["sources"]) == set(sources):
                continue
            names = [name for fact in group.facts for name in fact["names"]]
            unit = _unit(group.id or self._new_id(), speaker["text"], names, speaker["tokens"])
            writes.append(ObservationWrite(unit, sources, group.uid, speaker["uid"]))
        return writes

    # -- by a model ------------------------------------------------------------------------------------------------

    async def _asked(
        self, run: _Run, llm: Llm, facts: list[Fact], context: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> tuple[list[Action], list[int]]:
        request = LlmRequest(
            operation=CONSOLIDATE,
            messages=prompts.messages_for(facts, context, settings, self._new_id()),
            bank=(run.job.tenant, run.job.bank_id),
            schema=prompts.SCHEMA,
            schema_name="observations",
            max_tokens=ANSWER_TOKENS,
        )
        answer = await llm.complete(request)
        found = prompts.read_actions(answer.parsed, facts, context)
        if found.dropped:
            log.info("a model named what it was not shown", dropped=found.dropped)
        return found.writes, found.removed

    async def _embedded(
        self,
        run: _Run,
        scope: Scope,
        actions: list[Action],
        removed: list[int],
        facts: list[Fact],
        context: Mapping[str, Any],
    ) -> tuple[list[ObservationWrite], list[Action], list[int]]:
        """Actions with vectors, near-twins of the scope merged into them."""
        if not actions:
            return [], [], removed
        found = await self._embed([(one.text, "", "") for one in actions])
        vectors = [_mean(found, index) for index in range(len(actions))]
        floor = float(run.config.get("consolidation_dedup_threshold", 0.97))
        kept = list(range(len(actions)))
        if floor < OFF:
            kept = await self._merge(run, scope, actions, vectors, removed, floor)
        names = {one["uid"]: one["names"] for one in (*context["sources"], *facts)}
        writes = []
        for index in kept:
            one = actions[index]
            said = [name for uid in one.sources for name in names.get(uid, ())]
            unit = dataclasses.replace(
                _unit(self._new_id(), one.text, said, found.tokens[index]),
                vectors=found.vectors[index],
                scales=found.scales[index],
                token_vectors=found.token_vectors[index],
                token_ids=found.token_ids[index],
            )
            writes.append(ObservationWrite(unit, one.sources, one.before))
        return writes, [actions[index] for index in kept], removed

    async def _merge(
        self,
        run: _Run,
        scope: Scope,
        actions: list[Action],
        vectors: list[Any],
        removed: list[int],
        floor: float,
    ) -> list[int]:
        """Indexes of the actions that stay; what is a near-twin of one, new or stored, goes into it."""
        kept: list[int] = []
        for index, one in enumerate(actions):
            twin = next((held for held in kept if float(vectors[held] @ vectors[index]) >= floor), None)
            if twin is not None and await self._same(run, actions[twin].text, one.text):
                other = actions[twin]
                other.sources = tuple(dict.fromkeys((*other.sources, *one.sources)))
                if one.before >= 0 and other.before < 0:
                    other.before = one.before
                elif one.before >= 0:
                    removed.append(one.before)
                continue
            kept.append(index)
        written = {actions[index].before for index in kept} | set(removed)
        near = await self._read(
            run.job,
            "near_observations",
            scope=scope,
            floor=floor,
            vectors=[vectors[index].astype("<f4").tobytes() for index in kept],
            without=[sorted(written)] * len(kept),
        )
        for index, found in zip(kept, near, strict=True):
            for uid, _, text, sources, _ in found:
                if uid in written or not await self._same(run, text, actions[index].text):
                    continue
                written.add(uid)
                one = actions[index]
                one.sources = tuple(dict.fromkeys((*sources, *one.sources)))
                if one.before < 0:
                    one.before = uid
                else:
                    removed.append(uid)
        return kept

    async def _same(self, run: _Run, one: str, other: str) -> bool:
        """Whether near-twins say the same: a model decides where it may, else the rules."""
        if rules.contradict(one, other):
            return False
        if run.llm is None or run.config.get("consolidation_use_decision_model") is False:
            return True
        request = LlmRequest(
            operation=CONSOLIDATE,
            messages=prompts.twins_for(one, other, self._new_id()),
            bank=(run.job.tenant, run.job.bank_id),
            schema=prompts.TWINS,
            schema_name="twins",
            max_tokens=256,
        )
        try:
            answer = await run.llm.complete(request)
        except (ModelAnswerUnusable, ModelOverflow, ModelRefused):
            return False
        return isinstance(answer.parsed, dict) and answer.parsed.get("merge") is True

    # -- commits ---------------------------------------------------------------------------------------------------

    def _request(self, run: _Run, scope: Scope = (), **fields: Any) -> CommitConsolidation:
        job = run.job
        return CommitConsolidation(
            job.tenant,
            job.bank_id,
            self._new_id(),
            self._now(run),
            job.operation_id,
            scope=scope,
            first_wait=int(float(run.config.get("consolidation_retry_seconds", 60)) * 1e6),
            usage=dict(run.usage) if any(run.usage.values()) else {},
            **fields,
        )

    async def _commit(self, run: _Run, request: CommitConsolidation) -> dict[str, Any]:
        answer: dict[str, Any] = await self._shards.call(run.job.tenant, run.job.bank_id, request)
        if answer.get("ended") and not request.finished:
            raise _Cancelled("The consolidation was cancelled.")
        run.counts = answer["counts"]
        built = set(answer.get("covered", ()))
        for uid in request.batch:
            run.scopes_left[uid] -= 1
            if uid in run.built and uid in built:
                run.built[uid] += 1
        return answer

    async def _finish(self, run: _Run, left: bool) -> dict[str, Any]:
        again = self._new_id() if left else ""
        answer = await self._commit(run, self._request(run, finished=True, again=again))
        return dict(answer["counts"])


class _Cancelled(RecalldError):
    """The operation was cancelled between two steps, and says so itself."""


def _unit(unit_id: str, text: str, names: Sequence[str], tokens: int) -> PreparedUnit:
    """An observation before it is stored; dates, entities and tags are those of its sources and its scope."""
    return PreparedUnit(
        id=unit_id,
        text=text,
        network=OBSERVATION,
        context="",
        speaker="",
        entities=(),
        occurred_start=None,
        occurred_end=None,
        mentioned_at=None,
        anchor_assumed=False,
        metadata={},
        tags=(),
        chunk_index=0,
        tokens=tokens,
        terms=terms_of(text, "", tuple(dict.fromkeys(names))),
        question=False,
        trust="normal",
        confidence=None,
        vectors=b"",
        scales=b"",
        token_vectors=b"",
        token_ids=b"",
    )


def _mean(found: EmbeddedTexts, index: int) -> Any:
    """The pooled vector of an embedded text, of unit length."""
    codes = np.frombuffer(found.vectors[index], np.int8).reshape(-1, found.dim).astype(np.float32)
    scales = np.frombuffer(found.scales[index], "<f4")
    mean = (codes * scales[:, None]).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length else mean

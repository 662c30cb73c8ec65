"""The worker's part about opinions: forms them, and has queued evidence judged by a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from recalld.actors.directory import Shards
from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.ledger import Purpose
from recalld.actors.llm.base import CONSOLIDATE
from recalld.actors.messages import Read
from recalld.actors.model_stage import ModelStage
from recalld.actors.opinions.holders import AGENT
from recalld.actors.opinions.judge import Judge, ModelJudge, NliJudge, Pair, PairScores, RulesJudge
from recalld.actors.opinions.messages import JUDGE_KIND, CommitJudgements, CommitOpinions, FormJob, JudgeJob, Proposal
from recalld.actors.retain.extraction import ExtractionInput, extractor_for
from recalld.actors.retain.marking import marked_again
from recalld.actors.retain.moving import terms_of
from recalld.actors.spending import Caps
from recalld.actors.trust.instructions import NORMAL
from recalld.storage.beliefs import within
from recalld.storage.errors import Unprocessable
from recalld.storage.names import folded
from recalld.storage.records import OPINION, EntityMention, PreparedUnit

Embed = Callable[[list[tuple[str, str, str]]], Awaitable[EmbeddedTexts]]


class OpinionDesk:
    """Forms opinions and judges evidence. `model` gives the identity of the embedding model, `embed` its vectors."""

    def __init__(
        self,
        shards: Shards,
        embed: Embed,
        model: Callable[[], dict[str, Any]],
        new_id: Callable[[], str],
        stage: ModelStage | None = None,
        nli_folder: str = "",
    ) -> None:
        self._shards = shards
        self._embed = embed
        self._model = model
        self._new_id = new_id
        self._stage = stage
        self._nonce = new_id()
        self._nli_folder = nli_folder
        self._pairs: PairScores | None = None

    @property
    def asks_a_model(self) -> bool:
        """Whether evidence is judged in an operation of its own, by a model; else rules judge in the write."""
        return self._has_llm or bool(self._nli_folder)

    @property
    def _has_llm(self) -> bool:
        return self._stage is not None and self._stage.calls(CONSOLIDATE)

    # -- judging ---------------------------------------------------------------------------------------------------

    async def judge(self, job: JudgeJob) -> dict[str, Any]:
        """Carry out a queued judgement. Raises what models raise; the operation then waits or is tried again."""
        params = {"pairs": [list(pair) for pair in job.pairs]}
        held = await self._shards.call(
            job.tenant, job.bank_id, Read("belief_pairs", job.tenant, job.bank_id, params), job.seconds
        )
        rows: Sequence[dict[str, Any]] = held["pairs"]
        judge = self._judge(job, held["overrides"])
        pairs = [
            Pair(
                row["opinion_text"],
                row["unit_text"],
                row["holder"],
                row["speaker"],
                row["date"],
                tuple(row["shared"]),
            )
            for row in rows
        ]
        found = await judge.judge(pairs) if pairs else []
        judgements = tuple(
            (row["opinion"], row["unit"], one.verdict, one.reason, bool(one.same or row["same"]))
            for row, one in zip(rows, found, strict=True)
        )
        commit = CommitJudgements(
            job.tenant, job.bank_id, f"{job.operation_id}:judged", job.operation_id, job.now, judgements, judge.by
        )
        answer: dict[str, Any] = await self._shards.call(job.tenant, job.bank_id, commit, job.seconds)
        return answer

    def _judge(self, job: JudgeJob, overrides: dict[str, Any]) -> Judge:
        if self._has_llm:
            assert self._stage is not None
            caps = Caps.of_bank({**job.defaults, **overrides})
            purpose = Purpose((job.tenant, job.bank_id), JUDGE_KIND, caps, operation_id=job.operation_id)
            llm = self._stage.ledger.metered(self._stage.llm_for(CONSOLIDATE), purpose)
            return ModelJudge(llm, purpose.bank, CONSOLIDATE, self._nonce)
        if self._nli_folder:
            return NliJudge(self._pair_model())
        # The model that was there when the evidence came is gone.
        return RulesJudge()

    def _pair_model(self) -> PairScores:
        if self._pairs is None:
            from recalld.actors.opinions.nli import PairModel

            self._pairs = PairModel(Path(self._nli_folder))
        return self._pairs

    # -- forming ---------------------------------------------------------------------------------------------------

    async def form(self, job: FormJob) -> dict[str, Any]:
        """Form opinions, or move those that their holder has already by evidence that is new to them."""
        proposals = tuple(self._checked(one) for one in job.proposals)
        if not proposals:
            return {"opinions": []}
        embedded = await self._embed([(one.text, "", "") for one in proposals])
        units = tuple(self._unit(one, embedded, at, job.now) for at, one in enumerate(proposals))
        commit = CommitOpinions(
            job.tenant, job.bank_id, job.request_id, job.now, self._model(), proposals, units, job.made_by
        )
        answer: dict[str, Any] = await self._shards.call(job.tenant, job.bank_id, commit, job.seconds)
        return answer

    def _checked(self, one: Proposal) -> Proposal:
        if not one.text.strip():
            raise Unprocessable("An opinion needs a text.")
        return one

    def _unit(self, one: Proposal, embedded: EmbeddedTexts, at: int, now: int) -> PreparedUnit:
        speaker = "" if folded(one.holder) in ("", AGENT) else one.holder
        entities = tuple(EntityMention(name) for name in one.entities) or named_in(one.text)
        unit = PreparedUnit(
            id=self._new_id(),
            text=one.text,
            network=OPINION,
            context=one.context,
            speaker=speaker,
            entities=entities,
            occurred_start=None,
            occurred_end=None,
            mentioned_at=now if one.mentioned_at is None else one.mentioned_at,
            anchor_assumed=one.mentioned_at is None,
            metadata={},
            tags=tuple(sorted(set(one.tags))),
            chunk_index=0,
            tokens=embedded.tokens[at],
            terms=terms_of(one.text, one.context, [entity.name for entity in entities]),
            question=False,
            trust=NORMAL,
            confidence=within(one.confidence),
            vectors=embedded.vectors[at],
            scales=embedded.scales[at],
            token_vectors=embedded.token_vectors[at],
            token_ids=embedded.token_ids[at],
        )
        return marked_again(unit)


def named_in(text: str) -> tuple[EntityMention, ...]:
    """The entities of a text, as the local extractor reads them."""
    facts = extractor_for("local", "concise").read(ExtractionInput(text)).facts
    return tuple({entity.name: entity for fact in facts for entity in fact.entities}.values())

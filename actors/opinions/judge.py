"""Who judges what a piece of evidence says about an opinion: rules, a language model, or a model of sentence pairs.

    judgements = await judge.judge(pairs)       # one for each pair, in order

Every judge keeps one contract: a verdict of `beliefs.JUDGEMENTS`, a short reason, and its own name. Rules are pure and
run inside a write; the other two are asked from a queued operation (`desk`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from recalld.actors.llm.base import Llm, LlmRequest, system, user
from recalld.actors.opinions import rules
from recalld.actors.trust.fence import RULE, fence
from recalld.storage.beliefs import CONTRADICT, JUDGEMENTS, NEUTRAL, REINFORCE, WEAKEN
from recalld.storage.errors import ModelAnswerUnusable

BY_RULES, BY_MODEL, BY_NLI = "rules", "model", "nli"
REASON_LENGTH = 300
AT_ONCE = 20
"""Pairs a model judges in one call."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An opinion and a piece of evidence. `shared` are names of entities of both; `date` is the evidence's day."""

    opinion: str
    evidence: str
    holder: str = ""
    speaker: str = ""
    date: str = ""
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdict` is reinforce, weaken, contradict or neutral. `same`: the evidence is the opinion said again."""

    verdict: str
    reason: str
    by: str
    same: bool = False


class Judge(Protocol):
    """Judges pairs; `by` names it in histories."""

    @property
    def by(self) -> str: ...

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]: ...


def by_rules(pair: Pair) -> Judgement:
    """What the rules say. Pure."""
    found = rules.judge(pair.opinion, pair.evidence, pair.shared)
    return Judgement(found.verdict, found.reason, BY_RULES, found.same)


class RulesJudge:
    """The rules as a judge."""

    by = BY_RULES

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        return [by_rules(pair) for pair in pairs]


# -- a language model ------------------------------------------------------------------------------------------------

INSTRUCTIONS = f"""You judge what new evidence says about opinions that somebody holds. For each numbered pair answer with one verdict:
- {REINFORCE}: the evidence speaks for the opinion, or is the same opinion said again
- {WEAKEN}: the evidence speaks against it, but only in part, once, or uncertainly
- {CONTRADICT}: the evidence and the opinion cannot both hold, or the evidence plainly speaks against it
- {NEUTRAL}: the evidence is about something else, or says nothing for or against it
Judge only from the texts, not from what you know. When in doubt, answer {NEUTRAL}. Give one short reason in the language of the evidence.
{RULE}"""  # noqa: E501

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "judgements": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pair": {"type": "integer"},
                    "verdict": {"type": "string", "enum": list(JUDGEMENTS)},
                    "reason": {"type": "string"},
                },
                "required": ["pair", "verdict", "reason"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["judgements"],
    "additionalProperties": False,
}


class ModelJudge:
    """A language model as a judge. `nonce` fences the quoted texts; nobody who writes memories knows it."""

    by = BY_MODEL

    def __init__(self, llm: Llm, bank: tuple[str, str], operation: str, nonce: str) -> None:
        self._llm = llm
        self._bank = bank
        self._operation = operation
        self._nonce = nonce

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Raises what `Llm.complete` raises; `ModelAnswerUnusable` when an answer leaves a pair out."""
        found: list[Judgement] = []
        for start in range(0, len(pairs), AT_ONCE):
            found += await self._some(pairs[start : start + AT_ONCE])
        return found

    async def _some(self, pairs: Sequence[Pair]) -> list[Judgement]:
        request = LlmRequest(
            operation=self._operation,
            messages=(system(INSTRUCTIONS), user(self._prompt(pairs))),
            bank=self._bank,
            schema=SCHEMA,
            schema_name="judgements",
            max_tokens=120 * len(pairs) + 100,
            temperature=0.0,
        )
        answer = await self._llm.complete(request)
        return read_answer(answer.parsed, len(pairs))

    def _prompt(self, pairs: Sequence[Pair]) -> str:
        parts = []
        for number, pair in enumerate(pairs, 1):
            held = fence(pair.opinion, self._nonce, kind="opinion", holder=pair.holder)
            told = fence(pair.evidence, self._nonce, kind="evidence", speaker=pair.speaker, date=pair.date)
            parts.append(f"Pair {number}\nOpinion:\n{held}\nEvidence:\n{told}")
        return "\n\n".join(parts)


def read_answer(parsed: Any, count: int) -> list[Judgement]:
    """A model's answer as judgements in the order of the pairs. Raises `ModelAnswerUnusable` when one is missing."""
    rows = parsed.get("judgements", ()) if isinstance(parsed, dict) else ()
    found: dict[int, Judgement] = {}
    for row in rows:
        number, verdict = row.get("pair"), row.get("verdict")
        if isinstance(number, int) and 1 <= number <= count and verdict in JUDGEMENTS and number not in found:
            reason = " ".join(str(row.get("reason") or "").split())[:REASON_LENGTH]
            found[number] = Judgement(verdict, reason, BY_MODEL)
    if len(found) < count:
        raise ModelAnswerUnusable("The model judged fewer pairs than it was given.")
    return [found[number] for number in range(1, count + 1)]


# -- a model of sentence pairs ---------------------------------------------------------------------------------------


class PairScores(Protocol):
    """A classifier of sentence pairs: the shares of entailment, contradiction, neutral of (premise, hypothesis)."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]: ...


SURE, DOUBTFUL = 0.6, 0.4


def of_scores(entailment: float, contradiction: float) -> str:
    """The verdict of a pair classifier: it must be sure to confirm or contradict, and half sure to weaken."""
    if entailment >= SURE and entailment > contradiction:
        return REINFORCE
    if contradiction >= SURE:
        return CONTRADICT
    return WEAKEN if contradiction >= DOUBTFUL and contradiction > entailment else NEUTRAL


class NliJudge:
    """A natural language inference model as a judge: the evidence is the premise, the opinion the hypothesis."""

    by = BY_NLI

    def __init__(self, model: PairScores) -> None:
        self._model = model

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        texts = [(rules.bare(pair.evidence)[0], rules.bare(pair.opinion)[0]) for pair in pairs]
        rows = await asyncio.to_thread(self._model.scores, texts) if texts else []
        found = []
        for pair, (entailment, contradiction, _) in zip(pairs, rows, strict=True):
            turned = rules.bare(pair.opinion)[1] != rules.bare(pair.evidence)[1]
            if turned:  # `I doubt that` stands outside of what the model sees
                entailment, contradiction = contradiction, entailment
            reason = f"entailment {entailment:.2f}, contradiction {contradiction:.2f}"
            found.append(Judgement(of_scores(entailment, contradiction), reason, BY_NLI))
        return found

"""Extractive reflect on a LoCoMo-shaped file, over the HTTP API: cited words, dates, and what it did not find."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recalld.client import AsyncClient
from recalld.daemon.bench import load
from recalld.daemon.bench.data import Conversation
from recalld.daemon.bench.data import load as load_file
from recalld.daemon.bench.locomo import calls
from recalld.daemon.bench.reflect_score import Answered, cited_text, summary
from recalld.daemon.bench.report import Report
from recalld.daemon.commands.output import progress

MOST_CITED = 10
FIGURES = ("questions", "not found", "all words", "half the words", "words", "dates right")
FOREIGN = "of another conversation"
"""Questions of one conversation asked of another's bank: nothing there answers them."""
MOST_FOREIGN = 40


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `questions` and `conversations` 0 take all; `url` None starts a daemon of our own."""

    file: Path
    split: str
    questions: int
    conversations: int
    budget: str
    settings: dict[str, str]
    url: str | None


async def run(plan: Plan) -> Report:
    """Retain every conversation in a bank of its own, and have its questions answered without a model."""
    talks = load_file(plan.file, plan.split)[: plan.conversations or None]
    gold = gold_answers(plan.file)
    run_id = uuid.uuid4().hex[:8]
    banks = {talk.id: f"bench-{run_id}-{talk.id}" for talk in talks}
    answers: list[Answered] = []
    # A file that names a model would have it asked: this measures what comes without one.
    async with load.target({**plan.settings, "llm.provider": "local"}, plan.url) as target:
        with progress("Retaining", sum(len(talk.turns) for talk in talks)) as advance:
            for talk in talks:
                for items in calls(talk, "document"):
                    await target.client.retain_batch(banks[talk.id], items)
                    advance(len(items))
        work = [(talk, question) for talk in talks for question in talk.questions[: plan.questions or None]]
        with progress("Asking", len(work)) as advance:
            for talk, question in work:
                answer = await ask(target.client, banks[talk.id], question.text, plan.budget)
                answers.append(answered(question.category, gold.get((talk.id, question.text), ""), answer))
                advance()
        for talk, other in zip(talks, (*talks[1:], *talks[:1]), strict=True):
            for question in other.questions[:MOST_FOREIGN] if other is not talk else ():
                answer = await ask(target.client, banks[talk.id], question.text, plan.budget)
                answers.append(answered(FOREIGN, "", answer))
        if plan.url is not None:
            for bank in banks.values():
                await target.client.delete_bank(bank)
    return report(plan, talks, answers)


async def ask(client: AsyncClient, bank: str, query: str, budget: str) -> dict[str, Any]:
    return await client.reflect(bank, query, budget=budget, mode="extractive", include={"facts": {}})


def answered(category: str, gold: str, answer: dict[str, Any]) -> Answered:
    cited = answer["based_on"]["memories"][:MOST_CITED]
    return Answered(category, gold, answer["text"], answer["found"], tuple(cited_text(one) for one in cited))


def gold_answers(path: Path) -> dict[tuple[str, str], str]:
    """(conversation, question) -> its gold answer."""
    samples = json.loads(path.read_text())
    return {
        (str(sample.get("sample_id", number)), str(entry["question"])): str(entry.get("answer", ""))
        for number, sample in enumerate(samples)
        for entry in sample["qa"]
    }


def report(plan: Plan, talks: Sequence[Conversation], answers: Sequence[Answered]) -> Report:
    own = summary([one for one in answers if one.category != FOREIGN])
    foreign = [one for one in answers if one.category == FOREIGN]
    if foreign:
        own[FOREIGN] = {
            "questions": float(len(foreign)),
            "not found": sum(not one.found for one in foreign) / len(foreign),
        }
    made = Report(
        {
            "benchmark": "reflect",
            "split": plan.split,
            "budget": plan.budget,
            "conversations": len(talks),
            "figures": own,
        }
    )
    title = f"Answers without a model: {len(talks)} conversations ({plan.split}), at most {MOST_CITED} memories cited"
    rows = [[name, *(figures.get(one, "") for one in FIGURES)] for name, figures in own.items()]
    made.table(title, ["", *FIGURES], rows)
    return made

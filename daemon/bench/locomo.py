"""Retrieval quality on a LoCoMo-shaped file, over the HTTP API, beside plain methods on the same turns."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recalld.client import AsyncClient
from recalld.daemon.bench import load
from recalld.daemon.bench.data import Conversation, Turn
from recalld.daemon.bench.data import load as load_file
from recalld.daemon.bench.report import TIMES, Report, times
from recalld.daemon.bench.score import BUDGETS, DEPTHS, Asked, summary
from recalld.daemon.commands.output import progress, size

CLIENTS = 8
TURN = "dia_id"  # metadata key that carries a turn's id to the results


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `form` is document, single or append; `questions` 0 asks all; `url` None starts a daemon.

    `minutes_apart` moves each turn that much after the one before it. LoCoMo dates sessions, not turns: at 0 all turns
    of a session carry one instant, so turns sent without a document chain into exactly the sessions they came from.
    """

    file: Path
    form: str
    split: str
    baselines: bool
    questions: int
    budget: str
    settings: dict[str, str]
    url: str | None
    minutes_apart: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What was seen over the whole run."""

    asked: list[Asked] = field(default_factory=list)
    plain: dict[str, list[Asked]] = field(default_factory=dict)
    items: int = 0
    retain_seconds: float = 0.0
    alone: load.Timed = field(default_factory=load.Timed)
    together: load.Timed = field(default_factory=load.Timed)
    facts: dict[str, Any] = field(default_factory=dict)


async def run(plan: Plan) -> Report:
    """Retain every conversation in a bank of its own, ask its questions, and rank the same turns by plain methods."""
    talks = [spaced(talk, plan.minutes_apart) for talk in load_file(plan.file, plan.split)]
    outcome = Outcome()
    run_id = uuid.uuid4().hex[:8]  # a daemon given by URL may hold banks of an earlier run
    banks = {talk.id: f"bench-{run_id}-{talk.id}" for talk in talks}
    # Every question is asked several times; an answer from the query cache would flatter the latency.
    async with load.target({"embedding.query_cache": "0", **plan.settings}, plan.url) as target:
        with progress("Retaining", sum(len(talk.turns) for talk in talks)) as advance:
            for talk in talks:
                begun = time.perf_counter()
                for items in calls(talk, plan.form):
                    await target.client.retain_batch(banks[talk.id], items)
                    outcome.items += len(items)
                    advance(len(items))
                outcome.retain_seconds += time.perf_counter() - begun
        work = [(talk, question) for talk in talks for question in talk.questions[: plan.questions or None]]
        for talk in talks:
            await target.client.recall(banks[talk.id], "warm up")
        with progress("Asking", len(work)) as advance:
            for talk, question in work:
                answer = await ask(target.client, banks[talk.id], question.text, plan.budget, outcome.alone)
                outcome.asked.append(Asked(question.category, question.evidence, *answer))
                advance()
        outcome.alone.seconds = sum(outcome.alone.milliseconds) / 1000
        queries = [(banks[talk.id], question.text) for talk, question in work]
        outcome.together = await load.at_once(target.client, queries, CLIENTS, budget=plan.budget)
        outcome.facts = await asyncio.to_thread(target.facts)
        if plan.url is not None:
            for bank in banks.values():
                await target.client.delete_bank(bank)
    if plan.baselines:
        # After the daemon has gone: the two must not fight for the cores.
        outcome.plain = await asyncio.to_thread(plain_methods, talks, plan)
    return report(plan, outcome, len(talks))


def spaced(talk: Conversation, minutes: float) -> Conversation:
    """The conversation with each turn of a session `minutes` after the one before it."""
    if not minutes:
        return talk
    turns = []
    for session in talk.sessions():
        for place, turn in enumerate(session):
            if turn.when is None:
                turns.append(turn)
                continue
            later = datetime.fromisoformat(turn.when) + timedelta(minutes=minutes * place)
            turns.append(replace(turn, when=later.isoformat()))
    return replace(talk, turns=tuple(turns))


def calls(talk: Conversation, form: str) -> list[list[dict[str, Any]]]:
    """The items of each retain call: a session a call, or a turn a call."""
    if form == "document":
        return [[item(turn, document=True) for turn in session] for session in talk.sessions()]
    if form == "append":
        return [[item(turn, document=True) | {"update_mode": "append"}] for turn in talk.turns]
    return [[item(turn, document=False)] for turn in talk.turns]


def item(turn: Turn, *, document: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"content": turn.text, "metadata": {TURN: turn.id}}
    if turn.when is not None:
        made["timestamp"] = turn.when
    if document:
        made["document_id"] = turn.session
    return made


async def ask(
    client: AsyncClient, bank: str, query: str, budget: str, timed: load.Timed
) -> tuple[tuple[str, ...], dict[int, frozenset[str]]]:
    """The turns as ranked, and those inside each token budget: one recall a budget, the largest of them timed."""
    inside: dict[int, frozenset[str]] = {}
    ranked: tuple[str, ...] = ()
    for tokens in sorted(BUDGETS, reverse=True):
        clock = timed if tokens == max(BUDGETS) else load.Timed()
        answer = await load.timed_recall(client, clock, bank, query, budget=budget, max_tokens=tokens)
        turns = tuple((result.get("metadata") or {}).get(TURN, "") for result in answer["results"])
        inside[tokens] = frozenset(turns)
        ranked = ranked or turns
    return ranked, inside


def plain_methods(talks: Sequence[Conversation], plan: Plan) -> dict[str, list[Asked]]:
    from recalld.actors.embedding import Embedder
    from recalld.actors.models import find_model
    from recalld.daemon.bench.baselines import METHODS, rank

    embedder = Embedder(find_model(plan.settings.get("embedding.model", "default")), force_cpu=True)
    found: dict[str, list[Asked]] = {method: [] for method in METHODS}
    with progress("Ranking by plain methods", len(talks)) as advance:
        for talk in talks:
            for method, asked in rank(talk, embedder, plan.questions).items():
                found[method] += asked
            advance()
    return found


def report(plan: Plan, outcome: Outcome, talks: int) -> Report:
    quality = {"recalld": summary(outcome.asked)}
    quality |= {method: summary(asked) for method, asked in outcome.plain.items()}
    rate = outcome.items / outcome.retain_seconds if outcome.retain_seconds else 0.0
    alone, together = outcome.alone.summary(), outcome.together.summary()
    made = Report(
        {
            "benchmark": "locomo",
            "form": plan.form,
            "split": plan.split,
            "minutes_apart": plan.minutes_apart,
            "budget": plan.budget,
            "settings": plan.settings,
            "conversations": talks,
            "quality": quality,
            "retain": {"items": outcome.items, "seconds": outcome.retain_seconds, "items_per_second": rate},
            "recall": {"sequential": alone, f"clients_{CLIENTS}": together},
            **outcome.facts,
        }
    )
    columns = [f"@{k}" for k in DEPTHS] + ["mrr"] + [f"{budget}t" for budget in BUDGETS]
    title = f"Share of evidence found: {talks} conversations, {len(outcome.asked)} questions, form {plan.form}"
    title += f", turns {plan.minutes_apart:g} minutes apart" if plan.minutes_apart else ""
    made.table(title, ["", *columns], [[name, *(q["all"][c] for c in columns)] for name, q in quality.items() if q])
    categories = [name for name in quality["recalld"] if name != "all"]
    for metric in ("@10", "mrr"):
        rows = [[name, *(q[c][metric] for c in categories)] for name, q in quality.items() if q]
        made.table(f"{metric} by category", ["", *categories], rows)
    made.table("Recall over HTTP", TIMES, [times("one client", alone), times(f"{CLIENTS} clients", together)])
    rest = [["retain items/s", rate]]
    if outcome.facts:
        rest.append(["cold start s", outcome.facts["cold_start_seconds"]])
        rest.append(["memory after the run", size(outcome.facts["memory_bytes"])])
    made.table("The rest", ["", ""], rest)
    return made

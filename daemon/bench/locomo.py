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
    `date_suffix` is on, off, both, or default (what the settings say).
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
    date_suffix: str = "default"

    def variants(self) -> dict[str, dict[str, str]]:
        """The settings of each daemon to measure, by the name its rows get."""
        on, off = {"embedding.date_suffix": "true"}, {"embedding.date_suffix": "false"}
        if self.date_suffix == "both":
            return {"recalld, no date": {**self.settings, **off}, "recalld, date": {**self.settings, **on}}
        extra = {"on": on, "off": off}.get(self.date_suffix, {})
        return {"recalld": {**self.settings, **extra}}


@dataclass(slots=True)
class Outcome:
    """What was seen of one variant."""

    asked: list[Asked] = field(default_factory=list)
    items: int = 0
    retain_seconds: float = 0.0
    alone: load.Timed = field(default_factory=load.Timed)
    together: load.Timed = field(default_factory=load.Timed)
    facts: dict[str, Any] = field(default_factory=dict)


async def run(plan: Plan) -> Report:
    """Measure every variant of the plan with a daemon of its own, and rank the same turns by plain methods."""
    talks = [spaced(talk, plan.minutes_apart) for talk in load_file(plan.file, plan.split)]
    outcomes = {name: await measure(plan, talks, settings) for name, settings in plan.variants().items()}
    plain: dict[str, list[Asked]] = {}
    if plan.baselines:
        # After the daemons have gone: they must not fight for the cores.
        plain = await asyncio.to_thread(plain_methods, talks, plan)
    return report(plan, outcomes, plain, len(talks))


async def measure(plan: Plan, talks: Sequence[Conversation], settings: dict[str, str]) -> Outcome:
    """Retain every conversation in a bank of its own, and ask its questions."""
    outcome = Outcome()
    run_id = uuid.uuid4().hex[:8]  # a daemon given by URL may hold banks of an earlier run
    banks = {talk.id: f"bench-{run_id}-{talk.id}" for talk in talks}
    # Every question is asked several times; an answer from the query cache would flatter the latency.
    async with load.target({"embedding.query_cache": "0", **settings}, plan.url) as target:
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
    return outcome


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


def report(plan: Plan, outcomes: dict[str, Outcome], plain: dict[str, list[Asked]], talks: int) -> Report:
    quality = {name: summary(outcome.asked) for name, outcome in outcomes.items()}
    quality |= {method: summary(asked) for method, asked in plain.items()}
    runs = {name: speed(outcome) for name, outcome in outcomes.items()}
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
            "speed": runs,
        }
    )
    shown = {name: found for name, found in quality.items() if found}
    columns = [f"@{k}" for k in DEPTHS] + ["mrr"] + [f"{budget}t" for budget in BUDGETS]
    asked = len(next(iter(outcomes.values())).asked)
    title = f"Share of evidence found: {talks} conversations, {asked} questions, form {plan.form}"
    title += f", turns {plan.minutes_apart:g} minutes apart" if plan.minutes_apart else ""
    made.table(title, ["", *columns], [[name, *(q["all"][c] for c in columns)] for name, q in shown.items()])
    categories = [name for name in next(iter(shown.values()), {}) if name != "all"]
    for metric in ("@10", "mrr"):
        rows = [[name, *(q[c][metric] for c in categories)] for name, q in shown.items()]
        made.table(f"{metric} by category", ["", *categories], rows)
    for name, run in runs.items():
        rows = [times("one client", run["sequential"]), times(f"{CLIENTS} clients", run[f"clients_{CLIENTS}"])]
        made.table(f"Recall over HTTP: {name}", TIMES, rows)
        rest = [["retain items/s", run["retain_items_per_second"]]]
        if "memory_bytes" in run:
            rest += [["cold start s", run["cold_start_seconds"]], ["memory after the run", size(run["memory_bytes"])]]
        made.table("", ["", ""], rest)
    return made


def speed(outcome: Outcome) -> dict[str, Any]:
    rate = outcome.items / outcome.retain_seconds if outcome.retain_seconds else 0.0
    return {
        "retain_items": outcome.items,
        "retain_items_per_second": rate,
        "sequential": outcome.alone.summary(),
        f"clients_{CLIENTS}": outcome.together.summary(),
        **outcome.facts,
    }

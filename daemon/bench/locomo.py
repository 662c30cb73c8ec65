"""Retrieval quality on a LoCoMo-shaped file, over the HTTP API, beside plain methods on the same turns."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recalld.client import AsyncClient
from recalld.daemon.bench import load
from recalld.daemon.bench.data import Conversation, Turn
from recalld.daemon.bench.data import load as load_file
from recalld.daemon.bench.report import TIMES, Report, times
from recalld.daemon.bench.score import BUDGETS, DEPTHS, Asked, summary
from recalld.daemon.bench.turns import TurnFinder
from recalld.daemon.commands.output import progress, size

if TYPE_CHECKING:
    from recalld.actors.embedding import Embedder

CLIENTS = 8
TURN = "dia_id"  # metadata key that carries a turn's id to the results
MODE = "retain.extraction_mode"
PAGE = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `form` is document, single, append or session; `questions` and `conversations` 0 take all.

    `url` None starts daemons of our own. `extraction` is a mode, default (what the settings say) or both: that beside
    verbatim, each turn as it stands.

    `minutes_apart` moves each turn that much after the one before it. LoCoMo dates sessions, not turns: at 0 all turns
    of a session carry one instant, so turns sent without a document chain into exactly the sessions they came from.
    `date_suffix` is on, off, both, or default.
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
    extraction: str = "default"
    conversations: int = 0

    def variants(self) -> dict[str, dict[str, str]]:
        """The settings of each daemon to measure, by the name its rows get."""
        on, off = {"embedding.date_suffix": "true"}, {"embedding.date_suffix": "false"}
        dates = {"": {"on": on, "off": off}.get(self.date_suffix, {})}
        if self.date_suffix == "both":
            dates = {", no date": off, ", date": on}
        modes = {"": {} if self.extraction in ("default", "both") else {MODE: self.extraction}}
        if self.extraction == "both":
            modes[", verbatim"] = {MODE: "verbatim"}
        return {
            f"recalld{date}{mode}": {**self.settings, **dated, **read}
            for date, dated in dates.items()
            for mode, read in modes.items()
        }


@dataclass(slots=True)
class Outcome:
    """What was seen of one variant."""

    asked: list[Asked] = field(default_factory=list)
    items: int = 0
    texts: list[str] = field(default_factory=list)
    """The texts of all units."""
    tokens: int = 0
    retain_seconds: float = 0.0
    alone: load.Timed = field(default_factory=load.Timed)
    together: load.Timed = field(default_factory=load.Timed)
    facts: dict[str, Any] = field(default_factory=dict)


async def run(plan: Plan) -> Report:
    """Measure every variant of the plan with a daemon of its own, and rank the same turns by plain methods."""
    talks = [spaced(talk, plan.minutes_apart) for talk in load_file(plan.file, plan.split)]
    talks = talks[: plan.conversations or None]
    outcomes = {name: await measure(plan, talks, settings) for name, settings in plan.variants().items()}
    # After the daemons have gone: they must not fight for the cores.
    plain, turn_tokens = await asyncio.to_thread(in_process, talks, plan, outcomes)
    return report(plan, outcomes, plain, talks, turn_tokens)


async def measure(plan: Plan, talks: Sequence[Conversation], settings: dict[str, str]) -> Outcome:
    """Retain every conversation in a bank of its own, and ask its questions."""
    outcome = Outcome()
    run_id = uuid.uuid4().hex[:8]  # a daemon given by URL may hold banks of an earlier run
    banks = {talk.id: f"bench-{run_id}-{talk.id}" for talk in talks}
    # A whole session has no verbatim turns: those are sent one by one.
    form = "document" if plan.form == "session" and settings.get(MODE) == "verbatim" else plan.form
    places = {talk.id: TurnFinder(talk.turns) for talk in talks}
    # Every question is asked several times; an answer from the query cache would flatter the latency.
    async with load.target({"embedding.query_cache": "0", **settings}, plan.url) as target:
        with progress("Retaining", sum(len(talk.turns) for talk in talks)) as advance:
            for talk in talks:
                begun = time.perf_counter()
                for items in calls(talk, form):
                    await target.client.retain_batch(banks[talk.id], items)
                    outcome.items += len(items)
                    advance(len(items))
                outcome.retain_seconds += time.perf_counter() - begun
                outcome.texts += await unit_texts(target.client, banks[talk.id])
        work = [(talk, question) for talk in talks for question in talk.questions[: plan.questions or None]]
        for talk in talks:
            await target.client.recall(banks[talk.id], "warm up")
        with progress("Asking", len(work)) as advance:
            for talk, question in work:
                bank, finder = banks[talk.id], places[talk.id]
                answer = await ask(target.client, bank, finder, question.text, plan.budget, outcome.alone)
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
    """The items of each retain call: a session a call, as its turns or as one text, or a turn a call."""
    if form == "session":
        return [[whole(session)] for session in talk.sessions()]
    if form == "document":
        return [[item(turn, document=True) for turn in session] for session in talk.sessions()]
    if form == "append":
        return [[item(turn, document=True) | {"update_mode": "append"}] for turn in talk.turns]
    return [[item(turn, document=False)] for turn in talk.turns]


def whole(session: Sequence[Turn]) -> dict[str, Any]:
    """A session as one text, the way a client that keeps transcripts sends it."""
    made: dict[str, Any] = {"content": "\n".join(turn.text for turn in session), "document_id": session[0].session}
    if session[0].when is not None:
        made["timestamp"] = session[0].when
    return made


def item(turn: Turn, *, document: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"content": turn.text, "metadata": {TURN: turn.id}}
    if turn.when is not None:
        made["timestamp"] = turn.when
    if document:
        made["document_id"] = turn.session
    return made


async def unit_texts(client: AsyncClient, bank: str) -> list[str]:
    """The texts of all units of a bank."""
    texts: list[str] = []
    while True:
        page = await client.list_memories(bank, limit=PAGE, offset=len(texts))
        texts += [unit["text"] for unit in page["items"]]
        if len(texts) >= page["total"] or not page["items"]:
            return texts


async def ask(
    client: AsyncClient, bank: str, finder: TurnFinder, query: str, budget: str, timed: load.Timed
) -> tuple[tuple[str, ...], dict[int, frozenset[str]]]:
    """The turns as ranked, and those inside each token budget: one recall a budget, the largest of them timed."""
    inside: dict[int, frozenset[str]] = {}
    ranked: tuple[str, ...] = ()
    for tokens in sorted(BUDGETS, reverse=True):
        clock = timed if tokens == max(BUDGETS) else load.Timed()
        answer = await load.timed_recall(client, clock, bank, query, budget=budget, max_tokens=tokens)
        turns = tuple(turn for result in answer["results"] for turn in turns_of(result, finder))
        inside[tokens] = frozenset(turns)
        ranked = ranked or turns
    return ranked, inside


def turns_of(result: dict[str, Any], finder: TurnFinder) -> tuple[str, ...]:
    """The turns a result tells of: the one it was retained from, or those its text holds words of."""
    own = (result.get("metadata") or {}).get(TURN)
    return (own,) if own else finder.find(result.get("document_id") or "", result["text"])


def in_process(
    talks: Sequence[Conversation], plan: Plan, outcomes: dict[str, Outcome]
) -> tuple[dict[str, list[Asked]], int]:
    """What needs the model here: the plain methods, and the tokens of all units and of all turns."""
    from recalld.actors.embedding import Embedder
    from recalld.actors.models import find_model

    embedder = Embedder(find_model(plan.settings.get("embedding.model", "default")), force_cpu=True)
    for outcome in outcomes.values():
        outcome.tokens = sum(map(embedder.count_tokens, outcome.texts))
    tokens = sum(embedder.count_tokens(turn.text) for talk in talks for turn in talk.turns)
    return plain_methods(talks, plan, embedder) if plan.baselines else {}, tokens


def plain_methods(talks: Sequence[Conversation], plan: Plan, embedder: Embedder) -> dict[str, list[Asked]]:
    from recalld.daemon.bench.baselines import METHODS, rank

    found: dict[str, list[Asked]] = {method: [] for method in METHODS}
    with progress("Ranking by plain methods", len(talks)) as advance:
        for talk in talks:
            for method, asked in rank(talk, embedder, plan.questions).items():
                found[method] += asked
            advance()
    return found


def report(
    plan: Plan,
    outcomes: dict[str, Outcome],
    plain: dict[str, list[Asked]],
    talks: Sequence[Conversation],
    turn_tokens: int,
) -> Report:
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
            "conversations": len(talks),
            "quality": quality,
            "size": {
                name: {"units": len(outcome.texts), "tokens": outcome.tokens} for name, outcome in outcomes.items()
            }
            | {"turns": {"units": sum(len(talk.turns) for talk in talks), "tokens": turn_tokens}},
            "speed": runs,
        }
    )
    shown = {name: found for name, found in quality.items() if found}
    columns = [f"@{k}" for k in DEPTHS] + ["mrr"] + [f"{budget}t" for budget in BUDGETS]
    asked = len(next(iter(outcomes.values())).asked)
    title = f"Share of evidence found: {len(talks)} conversations, {asked} questions, form {plan.form}"
    title += f", turns {plan.minutes_apart:g} minutes apart" if plan.minutes_apart else ""
    made.table(title, ["", *columns], [[name, *(q["all"][c] for c in columns)] for name, q in shown.items()])
    sizes = [[name, stored["units"], stored["tokens"]] for name, stored in made.data["size"].items()]
    made.table("What was stored, beside the turns as sent", ["", "units", "tokens"], sizes)
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

"""`recalld doctor --llm`: twenty labelled texts through the configured model and through the rules, judged alike."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recalld.actors.llm.base import RETAIN, CallRecord
from recalld.actors.llm.models import Models
from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.model_extractor import ModelExtractor
from recalld.actors.retain.model_prompts import ReadingRules
from recalld.actors.retain.prepare import input_of
from recalld.actors.spending import PriceTable, money
from recalld.daemon.bench.extraction import read
from recalld.daemon.bench.labelled import judge, load
from recalld.daemon.settings_llm import llm_config
from recalld.storage.errors import RecalldError
from recalld.storage.ledger import GAP_SHARE, GAP_TOKENS

if TYPE_CHECKING:
    from recalld.actors.retain.extraction import Fact
    from recalld.daemon.bench.labelled import LabelledItem
    from recalld.daemon.doctor import Check
    from recalld.daemon.settings import Settings

ITEMS = Path(__file__).parent / "data" / "extraction_check.jsonl"
AT_ONCE = 4
CLOSE = 0.02
"""Shares of right checks that differ by less are called equal: it is one or two checks of all."""


@dataclass(slots=True)
class Trial:
    """How a model and the rules did: right checks, all checks, and the figures in which each is better."""

    model: str
    model_right: int = 0
    rules_right: int = 0
    checks: int = 0
    failed: int = 0
    cause: str = ""
    seconds: float = 0.0
    calls: list[CallRecord] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)

    @property
    def model_share(self) -> float:
        return self.model_right / max(1, self.checks)

    @property
    def rules_share(self) -> float:
        return self.rules_right / max(1, self.checks)


async def check_model(settings: Settings) -> list[Check]:
    """The checks of `--llm`: what the model is worth here, and whether its bill fits what was sent."""
    from recalld.daemon.doctor import Check

    calls: list[CallRecord] = []
    models = Models(llm_config(settings), chance=random.random, observe=calls.append)
    if not models.calls(RETAIN):
        return [
            Check(
                "model",
                "warn",
                "none is set; the rules do all the work",
                "Set llm.provider and its key to compare one.",
            )
        ]
    try:
        trial = await run(models, settings.retain_max_completion_tokens, calls)
    finally:
        await models.close()
    return judged(trial, PriceTable(settings.budget_prices), settings.budget_currency)


async def run(models: Models, max_tokens: int, calls: list[CallRecord]) -> Trial:
    """Read every item both ways."""
    items = load((ITEMS,))
    llm = models.llm(RETAIN)
    trial = Trial(f"{llm.provider}/{llm.model}", calls=calls)
    extractor = ModelExtractor(llm)
    rules = ReadingRules(trial.model, max_tokens=max_tokens)
    permits = asyncio.Semaphore(AT_ONCE)

    async def ask(labelled: LabelledItem) -> Sequence[Fact] | None:
        item = RetainItem.parse(labelled.item)
        async with permits:
            try:
                return (await extractor.read(input_of(item, item.content, "concise", 0), rules, ("", ""))).facts
            except RecalldError as error:
                trial.failed += 1
                trial.cause = error.message
                return None

    started = time.perf_counter()
    by_model = await asyncio.gather(*(ask(one) for one in items))
    trial.seconds = time.perf_counter() - started
    by_rules = await asyncio.to_thread(lambda: [read(one) for one in items])
    compare(trial, items, by_model, by_rules)
    return trial


def compare(
    trial: Trial,
    items: Sequence[LabelledItem],
    by_model: Sequence[Sequence[Fact] | None],
    by_rules: Sequence[Sequence[Fact]],
) -> None:
    """Judge both readings. A text the model gave no answer for has no check right, not even that junk was left out."""
    figures: dict[str, list[int]] = {}
    for item, model_facts, rules_facts in zip(items, by_model, by_rules, strict=True):
        sides = (judge(item, model_facts or ()).checks, judge(item, rules_facts).checks)
        for side, checks in enumerate(sides):
            for check in checks:
                counts = figures.setdefault(check.figure, [0, 0, 0, 0])
                right = check.right and not (side == 0 and model_facts is None)
                counts[2 * side] += right
                counts[2 * side + 1] += 1
    for name, (model_right, model_all, rules_right, rules_all) in figures.items():
        model_share, rules_share = model_right / max(1, model_all), rules_right / max(1, rules_all)
        if rules_share > model_share + CLOSE:
            trial.worse.append(name)
        elif model_share > rules_share + CLOSE:
            trial.better.append(name)
        # Entities are judged by name, so the two sides may have different numbers of checks: shares of the larger.
        most = max(model_all, rules_all)
        trial.checks += most
        trial.model_right += round(model_share * most)
        trial.rules_right += round(rules_share * most)


def judged(trial: Trial, prices: PriceTable, currency: str) -> list[Check]:
    """What to say of a trial."""
    from recalld.daemon.doctor import Check

    price = prices.of(trial.model)
    sent = sum(call.usage.input if call.usage.reported else call.usage.own_input for call in trial.calls)
    back = sum(call.usage.output if call.usage.reported else call.usage.own_output for call in trial.calls)
    cost = "price unknown" if price is None else f"{money(price.of(sent, back)):.4f} {currency}"
    found = (
        f"{trial.model}: {trial.model_share:.0%} of {trial.checks} checks right, the rules alone"
        f" {trial.rules_share:.0%}; {len(trial.calls)} calls, {sent + back} tokens, {trial.seconds:.0f} s, {cost}"
    )
    checks = []
    if trial.failed:
        advice = f"Of 20 texts {trial.failed} got no usable answer: {trial.cause}"
        checks.append(Check("model", "fail" if trial.failed == 20 else "warn", found, advice))
    elif trial.rules_share > trial.model_share + CLOSE:
        advice = (
            "The rules alone do better (" + ", ".join(trial.worse) + "). Use a stronger model, or set"
            " extraction.provider to local and keep the model for the rest."
        )
        checks.append(Check("model", "warn", found, advice))
    else:
        better = f"; better in {', '.join(trial.better)}" if trial.better else ""
        checks.append(Check("model", "ok", found + better))
    compared = [call for call in trial.calls if call.usage.reported and call.usage.own_input]
    if compared:
        checks.append(
            gap_check(
                sum(call.usage.input for call in compared),
                sum(call.usage.own_input for call in compared),
                len(compared),
            )
        )
    return checks


def gap_check(reported: int, counted: int, calls: int) -> Check:
    """Whether the provider bills much more input than was sent, over some calls."""
    from recalld.daemon.doctor import Check

    extra = (reported - counted) // max(1, calls)
    found = f"the provider reports {reported} input tokens in {calls} calls, we count {counted}"
    if extra >= GAP_TOKENS and reported >= GAP_SHARE * counted:
        advice = f"It bills about {extra} more a call than was sent: look for a relay or a proxy that adds a prompt."
        return Check("model bill", "warn", found, advice)
    return Check("model bill", "ok", found)

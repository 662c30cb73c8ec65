"""`recalld doctor --llm`: a model is compared with the rules, and its bill with what was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.llm.base import CallRecord, Usage
from recalld.actors.spending import PriceTable
from recalld.daemon.bench.labelled import load
from recalld.daemon.doctor_llm import ITEMS, Trial, check_model, gap_check, judged
from recalld.daemon.settings_table import Settings


def scripted(folder: Path, answer: Any) -> Settings:
    """Settings of a model that says the same to every text."""
    script = folder / "script.json"
    script.write_text(json.dumps([{"when": "", "text": json.dumps(answer), "input_tokens": 900, "output_tokens": 9}]))
    return Settings(llm_provider="scripted", llm_base_url=str(script), budget_prices=("*=1/2",))


def test_there_are_twenty_items_of_several_kinds_and_languages() -> None:
    items = load((ITEMS,))
    assert len(items) == 20
    assert len({item.source for item in items}) >= 4
    assert {item.language for item in items} >= {"en", "zh", "ja", "es", "de"}


async def test_a_model_that_finds_nothing_is_told_apart_from_rules_that_do(tmp_path: Path) -> None:
    checks = await check_model(scripted(tmp_path, {"facts": []}))
    assert (checks[0].name, checks[0].outcome) == ("model", "warn")
    assert "The rules alone do better" in checks[0].advice and "20 calls" in checks[0].found


async def test_answers_that_cannot_be_used_are_a_failure_with_its_cause(tmp_path: Path) -> None:
    (check, *_) = await check_model(scripted(tmp_path, "what?"))
    assert check.outcome == "fail" and "20" in check.advice


async def test_without_a_model_it_says_so() -> None:
    (check,) = await check_model(Settings())
    assert check.outcome == "warn" and "llm.provider" in check.advice


@pytest.mark.parametrize(("reported", "outcome"), [(5_000, "ok"), (11_000, "ok"), (60_000, "warn")])
def test_a_bill_far_above_what_was_sent_is_named(reported: int, outcome: str) -> None:
    assert gap_check(reported, 10_000, 10).outcome == outcome


def test_a_better_model_is_called_one() -> None:
    call = CallRecord("retain", ("", ""), "p", "m", Usage(100, 10, own_input=100, reported=True), 5.0, "ok", 1)
    trial = Trial("p/m", model_right=90, rules_right=70, checks=100, calls=[call], better=["dates"])
    check, bill = judged(trial, PriceTable(()), "USD")
    assert check.outcome == "ok" and "better in dates" in check.found and "price unknown" in check.found
    assert bill.outcome == "ok"

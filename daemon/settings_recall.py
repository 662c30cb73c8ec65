"""From settings to the numbers the recall engine ranks by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recalld.actors.recall.settings import RankWeights, RecallSettings
from recalld.daemon.settings_table import SETTINGS, Settings

_STEPS = ("low", "mid", "high")


def recall_settings(
    settings: Settings, bank: Mapping[str, Any] | None = None, max_tokens: int | None = None
) -> RecallSettings:
    """The engine's numbers: the server's settings, then the budgets of `bank` (its resolved fields).

    Under the budget function `adaptive` the candidates follow `max_tokens`, clamped to the bank's least and most.
    """
    flat: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for row in SETTINGS:
        if row.engine:
            section, _, name = row.engine.rpartition(".")
            (weights if section else flat)[name] = getattr(settings, row.attribute)
    chosen = RecallSettings(**flat, weights=RankWeights(**weights))
    if bank is None:
        return chosen
    if bank["recall_budget_function"] == "adaptive" and max_tokens is not None:
        least, most = bank["recall_budget_min"], bank["recall_budget_max"]
        sizes = [round(bank[f"recall_budget_adaptive_{step}"] * max_tokens) for step in _STEPS]
        sizes = [min(most, max(least, size)) for size in sizes]
    else:
        sizes = [bank[f"recall_budget_fixed_{step}"] for step in _STEPS]
    return replace(chosen, budget_low=sizes[0], budget_mid=sizes[1], budget_high=sizes[2])

"""A recall under a bank's own settings: which arms run, how many candidates a budget means, what is preferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RankWeights, RecallSettings

SWITCHES = {
    "keyword": "enable_text_search",
    "graph": "enable_graph_retrieval",
    "temporal": "enable_temporal_retrieval",
}
LEVELS = ("low", "mid", "high")


def under_bank(query: RecallQuery, bank: Mapping[str, Any]) -> RecallQuery:
    """The query without the arms the bank switched off, and with its preference where the caller has none."""
    arms = tuple(arm for arm in query.arms if bank.get(SWITCHES.get(arm, ""), True))
    prefer = query.prefer_observations
    if prefer is None:
        prefer = bank.get("recall_prefer_observations")
    return replace(query, arms=arms, prefer_observations=prefer)


def with_budgets(settings: RecallSettings, bank: Mapping[str, Any], max_tokens: int) -> RecallSettings:
    """The engine's numbers with the bank's candidate budgets.

    `fixed` names them; under `adaptive` they follow `max_tokens`, clamped to the bank's least and most. A field the
    bank does not have leaves the engine's number.
    """
    changed: dict[str, Any] = {}
    for level in LEVELS:
        if bank.get("recall_budget_function") == "adaptive":
            size = round(bank[f"recall_budget_adaptive_{level}"] * max_tokens)
            changed[f"budget_{level}"] = min(bank["recall_budget_max"], max(bank["recall_budget_min"], size))
        elif f"recall_budget_fixed_{level}" in bank:
            changed[f"budget_{level}"] = bank[f"recall_budget_fixed_{level}"]
    return replace(settings, **changed)


def settings_from_plain(values: Mapping[str, Any]) -> RecallSettings:
    """The inverse of `dataclasses.asdict`; names this version does not know are ignored."""
    known = {field.name for field in fields(RecallSettings)} - {"weights"}
    weights = {field.name for field in fields(RankWeights)}
    return RecallSettings(
        **{name: value for name, value in values.items() if name in known},
        weights=RankWeights(**{name: v for name, v in values.get("weights", {}).items() if name in weights}),
    )

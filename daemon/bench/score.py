"""Evidence metrics, as pure functions of ranked turn ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEPTHS = (1, 5, 10, 20)
BUDGETS = (512, 1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's outcome: turn ids as ranked (one entry a result), and the ids inside each token budget."""

    category: str
    evidence: tuple[str, ...]
    ranked: tuple[str, ...]
    inside: Mapping[int, frozenset[str]]


def question_metrics(asked: Asked) -> dict[str, float]:
    """`@k`: share of the evidence among the first k results; `mrr`: of the best piece; `nt`: share inside n tokens."""
    place: dict[str, int] = {}
    for at, turn in enumerate(asked.ranked):
        place.setdefault(turn, at)
    places = [place.get(turn) for turn in asked.evidence]
    found = [at for at in places if at is not None]
    metrics = {f"@{k}": sum(at < k for at in found) / len(places) for k in DEPTHS}
    metrics["mrr"] = 1 / (1 + min(found)) if found else 0.0
    for budget in BUDGETS:
        inside = asked.inside.get(budget, frozenset())
        metrics[f"{budget}t"] = sum(turn in inside for turn in asked.evidence) / len(places)
    return metrics


def summary(answers: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """Means over all questions and by category; `questions` counts them. Empty in, empty out."""
    groups: dict[str, list[dict[str, float]]] = {}
    for asked in answers:
        metrics = question_metrics(asked)
        groups.setdefault("all", []).append(metrics)
        groups.setdefault(asked.category, []).append(metrics)
    means = {}
    for name in ["all", *sorted(set(groups) - {"all"})]:
        rows = groups.get(name, [])
        if rows:
            means[name] = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
            means[name]["questions"] = float(len(rows))
    return means


def inside_budgets(ranked: Sequence[str], tokens: Sequence[int]) -> dict[int, frozenset[str]]:
    """The turns of the longest prefix that fits each budget; `tokens` is the cost of each entry of `ranked`."""
    found: dict[int, frozenset[str]] = {}
    for budget in BUDGETS:
        spent, kept = 0, []
        for turn, cost in zip(ranked, tokens, strict=True):
            spent += cost
            if spent > budget:
                break
            kept.append(turn)
        found[budget] = frozenset(kept)
    return found


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and mean of some times; nearest rank. Zeros when there are none."""
    if not milliseconds:
        return {"p50": 0.0, "p95": 0.0, "p99": 0.0, "mean": 0.0}
    ordered = sorted(milliseconds)

    def at(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "mean": sum(ordered) / len(ordered)}

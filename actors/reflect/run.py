"""`reflect(request, deps)`: the one way to a reflect, for the route and for refreshes of pages alike."""

from __future__ import annotations

from recalld.actors.reflect.deps import ReflectDeps
from recalld.actors.reflect.request import ReflectAnswer, ReflectRequest

__all__ = ["ReflectAnswer", "ReflectDeps", "ReflectRequest", "reflect"]


async def reflect(request: ReflectRequest, deps: ReflectDeps) -> ReflectAnswer:
    """The answer. Raises `BudgetExhausted`, `DeadlineExceeded`, `NoAnswer`, and what models and shards raise."""
    raise NotImplementedError

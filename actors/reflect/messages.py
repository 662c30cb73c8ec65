"""What crosses for a reflect: the gateway asks the worker, follows its steps, and may drop it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recalld.actors.wirecodec import message


@message(1)
@dataclass(frozen=True, slots=True)
class ReflectJob:
    """Gateway to worker: carry out a `ReflectRequest`. Answer: the `ReflectAnswer`.

    `defaults` are the server's bank settings, under the bank's own; `limits` those of the server.
    """

    request: Any
    defaults: dict[str, Any]
    iterations: int = 10
    context_tokens: int = 100_000
    wall_seconds: float = 300.0
    seconds: float = 330.0


@message(1)
@dataclass(frozen=True, slots=True)
class FollowReflect:
    """Gateway to worker: what happened in a reflect after its first `after` steps; waits up to `wait` s for news.

    Answer: a list of (event, data).
    """

    id: str
    after: int
    wait: float


@message(1)
@dataclass(frozen=True, slots=True)
class MergeJob:
    """Gateway to worker: have the model merge `new` into `background`. Answer: {background, and levels by trait}.

    Raises `BadRequest` when there is no model.
    """

    tenant: str
    bank_id: str
    background: str
    new: str
    disposition: bool
    defaults: dict[str, Any]
    seconds: float = 120.0


@message(1)
@dataclass(frozen=True, slots=True)
class DropReflect:
    """Gateway to worker: nobody waits for this reflect any more; end it."""

    id: str

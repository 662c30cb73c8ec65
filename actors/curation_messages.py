"""Messages that correct memories by hand: gateway to worker to shard. Instants are µs, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors.wirecodec import message


@message(1)
@dataclass(frozen=True, slots=True)
class CurateJob:
    """Gateway to worker: edit, invalidate or revert one unit. Answer: {}.

    `fields` are those the caller named: `text`, `context`, `occurred_start`, `occurred_end`, `mentioned_at`, `network`,
    `entities` (names) with `resolve_entities`, `state`, `reason`; a None clears a date.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    unit_id: str
    fields: dict[str, Any]
    seconds: float = 3600.0


@message(1)
@dataclass(frozen=True, slots=True)
class PlanEdit:
    """Worker to shard: a unit that is to be edited, as it stands. Answer: `EditPlan`."""

    tenant: str
    bank_id: str
    unit_id: str


@message(1)
@dataclass(frozen=True, slots=True)
class EditPlan:
    """Answer to `PlanEdit`: the unit without vectors, the text it stands behind, and the units behind it."""

    uid: int
    updated_at: int
    unit: Any
    before_text: str
    followers: tuple[Any, ...]


@message(1)
@dataclass(frozen=True, slots=True)
class CommitCuration:
    """Worker to shard: what was done by hand. `unit` is the new version of `uid`, None when only the state changes.

    Answers `Superseded` when the unit or what stands behind it changed since the plan.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    unit_id: str
    uid: int = 0
    updated_at: int = 0
    unit: Any = None
    embeddings: tuple[Any, ...] = ()
    state: str | None = None
    reason: str = ""
    edited: tuple[str, ...] = field(default=())
    """Names of the fields that changed, for the audit log."""

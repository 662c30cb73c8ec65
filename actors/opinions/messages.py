"""Messages about opinions: gateway to worker to shard. Instants are µs, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors.wirecodec import message

JUDGE_KIND = "judge_opinions"
"""Kind of an operation in which a model judges new evidence; its payload holds pairs of ids."""


@message(1)
@dataclass(frozen=True, slots=True)
class Proposal:
    """An opinion to be formed, or joined to one that says the same. `evidence` are (unit id, judgement, reason)."""

    text: str
    confidence: float
    holder: str = ""
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    evidence: tuple[Any, ...] = ()
    reason: str = ""
    context: str = ""
    mentioned_at: int | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class FormJob:
    """To the worker: form opinions. `made_by` is `reflect` or `hand`. Answer: {"opinions": [{id, outcome}]}.

    An outcome is `formed`, or, where the holder thinks so already, `reinforced`, `moved` or `unchanged`.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    proposals: tuple[Any, ...]
    made_by: str
    seconds: float = 120.0


@message(1)
@dataclass(frozen=True, slots=True)
class CommitOpinions:
    """Worker to shard: proposals with a prepared unit each. Answer: that of `FormJob`."""

    tenant: str
    bank_id: str
    request_id: str
    now: int
    model: dict[str, Any]
    proposals: tuple[Any, ...]
    units: tuple[Any, ...]
    made_by: str


@message(1)
@dataclass(frozen=True, slots=True)
class ReviseOpinion:
    """To the shard: set an opinion's confidence, retire it (`state` "retired"), or take it up again ("active").

    Answer: {}. Raises `NotFound`; `Conflict` when it was replaced or is below the floor.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    opinion: str
    confidence: float | None = None
    state: str | None = None
    reason: str = ""


@message(1)
@dataclass(frozen=True, slots=True)
class JudgeJob:
    """To the worker: carry out a queued judgement of `pairs` (opinion id, unit id). Answer: {"judged": how many}."""

    tenant: str
    bank_id: str
    operation_id: str
    now: int
    pairs: tuple[Any, ...]
    defaults: dict[str, Any] = field(default_factory=dict)
    seconds: float = 3600.0


@message(1)
@dataclass(frozen=True, slots=True)
class CommitJudgements:
    """Worker to shard: (opinion id, unit id, verdict, reason, same) of each pair; ends the operation in the same write.

    Answer: {"judged": how many}.
    """

    tenant: str
    bank_id: str
    request_id: str
    operation_id: str
    now: int
    judgements: tuple[Any, ...]
    by: str

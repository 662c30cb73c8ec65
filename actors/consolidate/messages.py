"""Messages of consolidation: gateway to shard, gateway to worker, worker to shard. Instants are µs, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors.wirecodec import message


@message(1)
@dataclass(frozen=True, slots=True)
class QueueConsolidation:
    """Queue a consolidation, unless one that asks for the same waits already.

    With `scopes` only facts that carry every tag of one of them are taken. `automatic`: only when there is something
    to do. `recover`: facts that failed are tried again. Answer: {"operation_id" (None: nothing to do), "deduplicated",
    "retried_count"}.
    """

    tenant: str
    bank_id: str
    now: int
    operation_id: str
    scopes: tuple[tuple[str, ...], ...] | None = None
    automatic: bool = False
    recover: bool = False


@message(1)
@dataclass(frozen=True, slots=True)
class ForgetObservations:
    """Erase all observations, or those built on one memory; what they were built on is pending again.

    Answer: {"deleted"}. Raises `NotFound` for a memory that is not there.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    unit_id: str | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class ConsolidateJob:
    """Gateway to worker: carry out a consolidation. Answer: its counts. `provider`: `model`, `local` or `none`."""

    tenant: str
    bank_id: str
    operation_id: str
    now: int
    defaults: dict[str, Any]
    provider: str = "local"
    scopes: tuple[tuple[str, ...], ...] | None = None
    seconds: float = 3600.0


@message(1)
@dataclass(frozen=True, slots=True)
class ObservationWrite:
    """One observation to be written: new, or (`before` >= 0) the next version of a stored one.

    `unit` is a `PreparedUnit` without dates, entities and tags, which come from its `sources`. `like` is the source
    whose text it has, so that its vectors are that one's; -1 where the unit brings its own.
    """

    unit: Any
    sources: tuple[int, ...]
    before: int = -1
    like: int = -1


@message(1)
@dataclass(frozen=True, slots=True)
class CommitConsolidation:
    """Worker to shard: what one step of a consolidation made; with `finished` it ends its operation.

    Raises `Superseded` when one of the uids in `shown` is not current any more, so that nothing is built on what was
    deleted while a model thought about it; `Conflict` when the operation is in other hands or was cancelled.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    operation_id: str
    shown: tuple[int, ...] = ()
    scope: tuple[str, ...] = ()
    writes: tuple[Any, ...] = ()
    removed: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    """The facts this step is about; the answer's `covered` are those of them that an observation of the scope has."""
    settled: tuple[tuple[int, int], ...] = ()
    """Facts of several scopes, each done if at least so many current observations stand on it."""
    done: tuple[int, ...] = ()
    failed: tuple[tuple[int, str], ...] = ()
    limit: int = -1
    """Observations a scope may have; -1 for any number."""
    first_wait: int = 60_000_000
    counts: dict[str, int] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    finished: bool = False
    again: str = ""
    """Id of the consolidation that goes on where this one stops; "" where nothing is left."""

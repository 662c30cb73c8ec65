"""Messages about directives, mental models and knowledge pages: gateway to shard. Instants are µs, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recalld.actors.wirecodec import message


@message(1)
@dataclass(frozen=True, slots=True)
class ChangePages:
    """Create, change or delete something by hand: `action` names a function of `actors.pages.writes`.

    `fields` are what the action takes. Answer: {"id"}, and {"operation_id"} where a refresh was queued. Raises
    `NotFound`, `Conflict`, `BadRequest`.
    """

    tenant: str
    bank_id: str
    request_id: str
    now: int
    action: str
    id: str
    fields: dict[str, Any] = field(default_factory=dict)
    create: bool = False
    history: int = 50


@message(1)
@dataclass(frozen=True, slots=True)
class SubmitRefresh:
    """Queue a refresh of a mental model, or take note that its schedules were looked at (`refresh` False).

    Without `automatic` it runs as soon as it can, and lets go one that was parked. With it, it is folded into one that
    waits already, and parked until `at`. Answer: {"operation_id"}, None where nothing was queued. Raises `NotFound`.
    """

    tenant: str
    bank_id: str
    now: int
    model_id: str
    operation_id: str
    full: bool = False
    automatic: bool = False
    at: int | None = None
    refresh: bool = True
    cron_seen: int | None = None
    full_cron_seen: int | None = None


@message(1)
@dataclass(frozen=True, slots=True)
class CommitRefresh:
    """What a refresh came to; it ends its operation in the same write. Answer: {"status"}.

    `text` None leaves the content as it is. `read` are ids of all memories it rests on or was made from: where one was
    erased, or the model changed since `revision`, it answers `Superseded`, and nothing is stored. `error` says why it
    failed, "" when it did not.
    """

    tenant: str
    bank_id: str
    now: int
    model_id: str
    revision: int
    operation_id: str
    outcome: str
    failure: str = ""
    error: str = ""
    text: str | None = None
    response: dict[str, Any] = field(default_factory=dict)
    vector: bytes = b""
    terms: tuple[Any, ...] = ()
    cited: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    seen_uid: int = 0
    seen_at: int | None = None
    full: bool = False
    question: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    history: int = 50

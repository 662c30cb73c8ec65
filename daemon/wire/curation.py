"""Bodies and queries of correcting memories by hand, and of the audit log."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from recalld.daemon.wire.base import MAX_PAGE, RequestModel, ResponseModel, clean_text, parse_instant
from recalld.daemon.wire.queries import window
from recalld.storage.errors import BadRequest, Unprocessable
from recalld.storage.records import NETWORK_NAMES

DATES = ("occurred_start", "occurred_end", "mentioned_at")
STATES = ("valid", "invalidated")
KINDS = ("world", "experience")
PERIODS = {"1d": 1, "7d": 7, "30d": 30}


class UpdateMemoryRequest(RequestModel):
    text: str | None = None
    context: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    mentioned_at: str | None = None
    fact_type: str | None = None
    entities: list[str] | None = None
    resolve_entities: bool = True
    state: str | None = None
    reason: str | None = None

    def to_fields(self) -> dict[str, Any]:
        """What is to change. An empty text or an explicit null clears a date; `context: ""` clears the context.

        Raises `Unprocessable` when nothing is named, or a state or kind is unknown; `BadRequest` for a date.
        """
        given = self.model_fields_set
        fields: dict[str, Any] = {}
        if self.text is not None:
            text = clean_text(self.text).strip()
            if not text:
                raise Unprocessable(
                    "text must not be blank; to take a memory out of recall, set state to 'invalidated'."
                )
            fields["text"] = text
        if "context" in given:
            fields["context"] = clean_text(self.context or "")
        for name in DATES:
            if name in given:
                fields[name] = self._instant(name)
        if self.fact_type is not None:
            if self.fact_type not in KINDS:
                raise Unprocessable(f"fact_type must be one of {', '.join(KINDS)}.")
            fields["network"] = NETWORK_NAMES.index(self.fact_type)
        if self.entities is not None:
            names = (" ".join(clean_text(name).split()) for name in self.entities)
            fields["entities"] = tuple(dict.fromkeys(name for name in names if name))
            fields["resolve_entities"] = self.resolve_entities
        if self.state is not None:
            if self.state not in STATES:
                raise Unprocessable(f"state must be one of {', '.join(STATES)}.")
            fields["state"] = self.state
            fields["reason"] = clean_text(self.reason or "")
        if not fields:
            raise Unprocessable("Name something to change: text, context, a date, fact_type, entities or state.")
        return fields

    def _instant(self, name: str) -> int | None:
        value: str | None = getattr(self, name)
        if not value:
            return None
        try:
            return parse_instant(value)
        except ValueError as error:
            raise BadRequest(f"{name} {error}.") from None


class AuditQuery(RequestModel):
    action: str | None = None
    transport: str | None = None
    start_date: str | None = None
    end_date: str | None = None
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0, le=MAX_PAGE)

    def to_window(self) -> tuple[int | None, int | None]:
        """(from, before) in µs. Raises `BadRequest` for a bad date."""
        return window(self.start_date, self.end_date)


class AuditStatsQuery(RequestModel):
    action: str | None = None
    period: Literal["1d", "7d", "30d"] = "7d"


class AuditLogSummary(ResponseModel):
    id: str
    action: str
    transport: str
    bank_id: str | None
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None = None
    metadata: dict[str, Any]


class AuditLogEntry(AuditLogSummary):
    request: dict[str, Any] | None
    response: dict[str, Any] | None


class AuditLogListResponse(ResponseModel):
    bank_id: str
    total: int
    limit: int
    offset: int
    items: list[AuditLogSummary]


class AuditLogStatsBucket(ResponseModel):
    time: str
    actions: dict[str, int]
    total: int


class AuditLogStatsResponse(ResponseModel):
    bank_id: str
    period: str
    trunc: str
    start: str
    buckets: list[AuditLogStatsBucket]

"""Wire models of opinions, an extension of the contract."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from recalld.actors.opinions.messages import Proposal
from recalld.daemon.wire.base import RequestModel, ResponseModel, Tags, clean_text, parse_instant
from recalld.daemon.wire.queries import PageQuery
from recalld.daemon.wire.requests import require_uuid
from recalld.storage.errors import BadRequest, Unprocessable

State = Literal["active", "retired", "invalidated", "superseded", "replaced"]
GIVEN_CONFIDENCE = 0.7
"""Confidence of an opinion given without one."""
Words = Literal["reinforce", "weaken", "contradict", "neutral"]


class OpinionsQuery(PageQuery):
    """`state` unset lists active and retired ones. `as_of` shows what was believed then."""

    holder: str | None = None
    q: str | None = None
    state: State | None = None
    min_confidence: float | None = Field(None, ge=0, le=1)
    as_of: str | None = None

    def to_params(self) -> dict[str, Any]:
        """Raises `BadRequest` for a bad date."""
        try:
            as_of = parse_instant(self.as_of) if self.as_of else None
        except ValueError as error:
            raise BadRequest(f"as_of {error}.") from None
        return {
            "holder": None if self.holder is None else " ".join(self.holder.split()),
            "q": self.q or None,
            "state": self.state,
            "min_confidence": self.min_confidence,
            "as_of": as_of,
            "limit": self.limit,
            "offset": self.offset,
        }


class EvidenceInput(RequestModel):
    """A memory that speaks for or against an opinion that is given by hand."""

    id: str
    judgement: Words = "reinforce"
    reason: str | None = Field(None, max_length=2000)

    @field_validator("id")
    @classmethod
    def _uuid(cls, value: str) -> str:
        return require_uuid(value, "evidence.id")


class CreateOpinionRequest(RequestModel):
    text: str = Field(min_length=1, max_length=4000)
    holder: str | None = Field(None, max_length=400)
    confidence: float = Field(GIVEN_CONFIDENCE, ge=0, le=1)
    entities: list[str] | None = Field(None, max_length=100)
    tags: Tags | None = None
    context: str | None = Field(None, max_length=4000)
    evidence: list[EvidenceInput] | None = Field(None, max_length=200)
    reason: str | None = Field(None, max_length=2000)

    def to_proposal(self) -> Proposal:
        """Raises `Unprocessable` when the text is blank."""
        text = clean_text(self.text).strip()
        if not text:
            raise Unprocessable("text must not be blank.")
        names = (" ".join(clean_text(name).split()) for name in self.entities or ())
        return Proposal(
            text,
            self.confidence,
            " ".join(clean_text(self.holder or "").split()),
            tuple(dict.fromkeys(name for name in names if name)),
            tuple(dict.fromkeys(clean_text(tag) for tag in self.tags or ())),
            tuple((one.id, one.judgement, clean_text(one.reason or "")) for one in self.evidence or ()),
            clean_text(self.reason or ""),
            clean_text(self.context or ""),
        )


class UpdateOpinionRequest(RequestModel):
    text: str | None = Field(None, max_length=4000)
    confidence: float | None = Field(None, ge=0, le=1)
    state: Literal["active", "retired"] | None = None
    reason: str | None = Field(None, max_length=2000)

    def to_fields(self) -> dict[str, Any]:
        """Raises `Unprocessable` when nothing is to change, or the text is blank."""
        fields: dict[str, Any] = {}
        if self.text is not None:
            fields["text"] = clean_text(self.text).strip()
            if not fields["text"]:
                raise Unprocessable("text must not be blank; to end an opinion, set state to 'retired'.")
        if self.confidence is not None:
            fields["confidence"] = self.confidence
        if self.state is not None:
            fields["state"] = self.state
        if not fields:
            raise Unprocessable("Name something to change: text, confidence or state.")
        return {**fields, "reason": clean_text(self.reason or "")}


class Evidence(ResponseModel):
    id: str
    text: str
    judgement: Words
    reason: str | None
    by: str
    change: float
    date: str | None
    judged_at: str


class Opinion(ResponseModel):
    id: str
    text: str
    holder: str
    confidence: float
    evidence_for: list[Evidence]
    evidence_against: list[Evidence]
    entities: list[str]
    tags: list[str]
    created_at: str
    updated_at: str
    state: State
    state_reason: str | None


class FormedOpinion(Opinion):
    outcome: Literal["formed", "reinforced", "moved", "unchanged"]


class OpinionsResponse(ResponseModel):
    items: list[Opinion]
    total: int
    limit: int
    offset: int


class OpinionStep(ResponseModel):
    what: str
    at: str
    confidence: float
    change: float | None
    unit_id: str | None
    reason: str | None
    by: str
    withdrawn_at: str | None


class OpinionHistoryResponse(ResponseModel):
    id: str
    text: str
    holder: str
    confidence: float | None
    state: State
    items: list[OpinionStep]

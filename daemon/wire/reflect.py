"""Reflect on the wire: what a request may hold, and the shape of its answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from recalld.actors.reflect.request import ReflectRequest as Asked
from recalld.daemon.wire.base import RequestModel, ResponseModel, Tags, TagsMatch, micros, parse_datetime
from recalld.daemon.wire.requests import MAX_TOKENS, TagGroup, shallow
from recalld.daemon.wire.responses import TokenUsage
from recalld.storage.errors import BadRequest, Unprocessable
from recalld.storage.records import NETWORK_NAMES

SCHEMA_TYPES = ("string", "number", "integer", "boolean", "array", "object")
MAX_QUERY = 100_000
MAX_ANSWER = 4096


class FactsIncludeOptions(RequestModel):
    pass


class ToolCallsIncludeOptions(RequestModel):
    output: bool = True


class ExplainIncludeOptions(RequestModel):
    pass


class ReflectIncludeOptions(RequestModel):
    facts: FactsIncludeOptions | None = None
    tool_calls: ToolCallsIncludeOptions | None = None
    # beyond the contract
    explain: ExplainIncludeOptions | None = None

    @field_validator("explain", "facts", "tool_calls", mode="before")
    @classmethod
    def _switch(cls, value: Any) -> Any:
        return {} if value is True else None if value is False else value


class ReflectRequest(RequestModel):
    """A null is a field that is not given: the bank's `reflect_default_options` stand in, then the defaults."""

    query: str = Field(max_length=MAX_QUERY)
    budget: Literal["low", "mid", "high"] | None = None
    context: str | None = Field(None, max_length=MAX_QUERY)
    max_tokens: int | None = Field(None, ge=0, le=MAX_TOKENS)
    include: ReflectIncludeOptions | None = None
    response_schema: dict[str, Any] | None = None
    tags: Tags | None = None
    tags_match: TagsMatch | None = None
    tag_groups: list[TagGroup] | None = None
    apply_all_directives: bool | None = None
    fact_types: list[str] | None = None
    exclude_mental_models: bool | None = None
    exclude_mental_model_ids: list[str] | None = None
    reflect_search_observations_max_tokens: int | None = Field(None, ge=1, le=MAX_TOKENS)
    reflect_search_observations_include_entities: bool | None = None
    # beyond the contract
    mode: Literal["auto", "model", "extractive"] | None = None
    query_timestamp: str | None = None
    bias_strength: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    max_cost: float | None = Field(None, ge=0, allow_inf_nan=False)
    max_llm_calls: int | None = Field(None, ge=1, le=1000)
    form_opinions: bool | None = None

    _shallow = field_validator("tag_groups", mode="before")(shallow)

    @field_validator("fact_types")
    @classmethod
    def _known_types(cls, value: list[str] | None) -> list[str] | None:
        if value is None:
            return None
        if not value:
            raise ValueError("fact_types must name at least one type, or be left out")
        unknown = [one for one in value if one not in NETWORK_NAMES]
        if unknown:
            raise ValueError(f"unknown fact type; types are {', '.join(NETWORK_NAMES)}")
        return value

    @field_validator("response_schema")
    @classmethod
    def _object_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        properties = value.get("properties")
        if value.get("type", "object") != "object" or not isinstance(properties, dict) or not properties:
            raise ValueError("response_schema must be an object schema with a non-empty 'properties'")
        for name, part in properties.items():
            kind = part.get("type") if isinstance(part, dict) else None
            if not isinstance(part, dict) or (kind is not None and kind not in SCHEMA_TYPES):
                raise ValueError(f"response_schema: '{name[:60]}' must have one of the types {', '.join(SCHEMA_TYPES)}")
        return value

    @model_validator(mode="after")
    def _makes_sense(self) -> ReflectRequest:
        if not self.query.strip() and not (self.context or "").strip():
            raise ValueError("query must not be blank")
        if self.tags and self.tag_groups:
            raise ValueError("tags and tag_groups exclude each other; put the tags into a group")
        return self

    def with_defaults(self, options: dict[str, Any]) -> ReflectRequest:
        """This request, its open fields filled from a bank's default options. Raises `BadRequest` for bad ones."""
        given = {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}
        open_ = {
            name: value for name, value in options.items() if name in type(self).model_fields and name not in given
        }
        if given.get("tags") or given.get("tag_groups"):
            open_ = {name: value for name, value in open_.items() if name not in ("tags", "tag_groups")}
        open_.pop("query", None)
        if not open_:
            return self
        try:
            return type(self).model_validate({**open_, **self.model_dump(by_alias=True, include=set(given))})
        except ValidationError:
            raise BadRequest(
                "The bank's reflect_default_options do not fit a reflect; change or remove them."
            ) from None

    def to_asked(self, tenant: str, bank_id: str, id: str, now: int) -> Asked:
        """The request as the reflector takes it. Raises `BadRequest` for a bad query_timestamp."""
        include = self.include or ReflectIncludeOptions()
        instant, offset = _when(self.query_timestamp)
        query, context = self.query, self.context or ""
        if not any(letter.isalnum() for letter in query):
            query, context = context, ""
        if not any(letter.isalnum() for letter in query):
            raise Unprocessable("query must contain at least one letter or digit.")
        return Asked(
            tenant=tenant,
            bank_id=bank_id,
            query=query,
            now=now,
            id=id,
            budget=self.budget or "low",
            context=context,
            max_tokens=MAX_ANSWER if self.max_tokens is None else self.max_tokens,
            response_schema=_typed(self.response_schema),
            tags=tuple(dict.fromkeys(self.tags or ())),
            tags_match=self.tags_match or "any",
            tag_groups=[node.model_dump(by_alias=True) for node in self.tag_groups] if self.tag_groups else None,
            apply_all_directives=bool(self.apply_all_directives),
            fact_types=tuple(dict.fromkeys(self.fact_types or ())),
            exclude_mental_models=bool(self.exclude_mental_models),
            exclude_mental_model_ids=tuple(self.exclude_mental_model_ids or ()),
            include_facts=include.facts is not None,
            include_tool_calls=include.tool_calls is not None,
            tool_outputs=include.tool_calls is None or include.tool_calls.output,
            include_explain=include.explain is not None,
            search_observations_max_tokens=self.reflect_search_observations_max_tokens,
            search_observations_include_entities=self.reflect_search_observations_include_entities,
            bias_strength=self.bias_strength,
            query_timestamp=instant,
            utc_offset=offset,
            mode=self.mode or "auto",
            max_cost=self.max_cost,
            max_llm_calls=self.max_llm_calls,
            form_opinions=self.form_opinions,
        )


def _typed(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if schema is None else {"type": "object", **schema}


def _when(text: str | None) -> tuple[int | None, int]:
    """(instant in µs, offset in minutes) of a query's own time."""
    if text is None or not text.strip():
        return None, 0
    try:
        at = parse_datetime(text)
    except ValueError as error:
        raise BadRequest(f"query_timestamp {error}.") from None
    offset = at.utcoffset()
    return micros(at), 0 if offset is None else int(offset.total_seconds() // 60)


# -- the answer ------------------------------------------------------------------------------------------------------


class ReflectFact(ResponseModel):
    id: str | None = None
    text: str
    type: str | None = None
    context: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    mentioned_at: str | None = None
    document_id: str | None = None
    chunk_id: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, str] | None = None
    attachments: list[dict[str, Any]] | None = None


class ReflectMentalModel(ResponseModel):
    id: str
    text: str
    context: str | None = None


class ReflectDirective(ResponseModel):
    id: str
    name: str
    content: str


class ReflectBasedOn(ResponseModel):
    memories: list[ReflectFact] = Field(default_factory=list)
    mental_models: list[ReflectMentalModel] = Field(default_factory=list)
    directives: list[ReflectDirective] = Field(default_factory=list)


class ReflectToolCall(ResponseModel):
    tool: str
    input: dict[str, Any]
    output: dict[str, Any] | None = None
    duration_ms: int
    iteration: int = 0


class ReflectLLMCall(ResponseModel):
    scope: str
    duration_ms: int


class ReflectTrace(ResponseModel):
    tool_calls: list[ReflectToolCall] = Field(default_factory=list)
    llm_calls: list[ReflectLLMCall] = Field(default_factory=list)


class ReflectStats(ResponseModel):
    """What an answer took (beyond the contract). `cost` is null where a price is not known."""

    rounds: int
    tool_calls: dict[str, int]
    llm_calls: int
    seconds: float
    tokens: int
    cost: float | None = None


class ReflectResponse(ResponseModel):
    text: str
    based_on: ReflectBasedOn | None = None
    structured_output: dict[str, Any] | None = None
    structured_output_error: str | None = None
    usage: TokenUsage | None = None
    trace: ReflectTrace | None = None
    # beyond the contract
    mode: str
    found: bool
    certainty: str | None = None
    opinions: list[dict[str, Any]] = Field(default_factory=list)
    explain: dict[str, Any] | None = None
    stats: ReflectStats

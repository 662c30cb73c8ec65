"""Request bodies, and how each becomes what the façade takes. Field names, defaults and limits are the contract's."""

from __future__ import annotations

import re
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter, field_validator, model_validator

from recalld.actors.retain.canonical import parse_timestamp
from recalld.daemon.wire.base import RequestModel, Tags, TagsMatch, micros, parse_datetime, parse_instant
from recalld.daemon.wire.recall_input import ARMS, RecallInput
from recalld.storage.errors import BadRequest, Unprocessable
from recalld.storage.records import NETWORK_NAMES

MAX_ID_CHARS = 4096
MAX_TOKENS = 2**31 - 1
MAX_GROUP_DEPTH = 16
MAX_GROUP_NODES = 256
_WORD = re.compile(r"\w")
_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY = 86_400_000_000

ObservationScopes = Literal["per_tag", "combined", "all_combinations", "shared"] | list[list[str]]


# --- retain ---------------------------------------------------------------------------------------------------------


class Base64AttachmentSource(RequestModel):
    type: Literal["base64"] = "base64"
    media_type: str
    data: str


class TextContentBlock(RequestModel):
    type: Literal["text"]
    text: str


class ImageContentBlock(RequestModel):
    type: Literal["image"]
    source: Base64AttachmentSource


class FileContentBlock(RequestModel):
    type: Literal["file"]
    source: Base64AttachmentSource
    filename: str | None = None


ContentBlock = Annotated[TextContentBlock | ImageContentBlock | FileContentBlock, Field(discriminator="type")]


class EntityInput(RequestModel):
    text: str
    type: str | None = None


class MemoryItem(RequestModel):
    content: str | list[ContentBlock]
    timestamp: str | None = None
    context: str | None = None
    metadata: dict[str, str] | None = None
    document_id: str | None = Field(None, max_length=MAX_ID_CHARS)
    entities: list[EntityInput] | None = None
    resolve_entities: bool = True
    tags: Tags | None = None
    observation_scopes: ObservationScopes | None = None
    strategy: str | None = None
    update_mode: Literal["replace", "append"] | None = None
    # beyond the contract
    trust: Literal["trusted", "normal", "untrusted"] | None = None

    @field_validator("content")
    @classmethod
    def _not_blank(cls, value: str | list[ContentBlock]) -> str | list[ContentBlock]:
        if isinstance(value, list) and any(not isinstance(block, TextContentBlock) for block in value):
            return value
        if not content_text(value).strip():
            raise ValueError("content must not be empty or blank")
        return value

    @field_validator("timestamp")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is None or not value.strip():
            return None
        parse_timestamp(value)
        return value.strip()

    @field_validator("document_id", "strategy")
    @classmethod
    def _blank_is_none(cls, value: str | None) -> str | None:
        return value or None

    @property
    def text(self) -> str:
        return content_text(self.content)


def content_text(content: str | list[ContentBlock]) -> str:
    """The text of an item; blocks are joined by newlines."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextContentBlock))


class RetainRequest(RequestModel):
    items: list[MemoryItem]
    asynchronous: bool = Field(False, alias="async")
    document_tags: Tags | None = None
    operation_id: str | None = None

    @field_validator("operation_id")
    @classmethod
    def _uuid(cls, value: str | None) -> str | None:
        return None if not value else require_uuid(value, "operation_id")

    def check(self) -> None:
        """Rules that answer 400 or a plain 422 rather than a validation list."""
        if self.operation_id and len({item.strategy for item in self.items}) > 1:
            raise BadRequest("operation_id names one operation, but the items name several strategies; leave it out.")
        for number, item in enumerate(self.items):
            if item.update_mode == "append" and item.document_id is None:
                raise BadRequest(f"items[{number}]: update_mode 'append' needs a document_id to append to.")
            if not isinstance(item.content, str) and any(
                not isinstance(block, TextContentBlock) for block in item.content
            ):
                raise Unprocessable(
                    f"items[{number}]: images and files need a model that can see, and none is configured; send text."
                )


def require_uuid(value: str, field: str) -> str:
    """`value` in canonical UUID form. Raises `ValueError` naming the field."""
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise ValueError(f"{field} must be a UUID") from None


# --- tag groups -----------------------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    if isinstance(value, BaseModel):
        return {TagGroupAnd: "and", TagGroupOr: "or", TagGroupNot: "not"}.get(type(value), "leaf")
    if isinstance(value, dict):
        for word in ("and", "or", "not"):
            if word in value:
                return word
    return "leaf"


class TagGroupLeaf(RequestModel):
    tags: list[str]
    match: TagsMatch = "any_strict"
    resolve: Literal["exact", "fuzzy"] = "exact"


class TagGroupAnd(RequestModel):
    and_: list[TagGroup] = Field(alias="and")


class TagGroupOr(RequestModel):
    or_: list[TagGroup] = Field(alias="or")


class TagGroupNot(RequestModel):
    not_: TagGroup = Field(alias="not")


TagGroup = Annotated[
    Annotated[TagGroupLeaf, Tag("leaf")]
    | Annotated[TagGroupAnd, Tag("and")]
    | Annotated[TagGroupOr, Tag("or")]
    | Annotated[TagGroupNot, Tag("not")],
    Discriminator(_kind),
]

TagGroupAnd.model_rebuild()
TagGroupOr.model_rebuild()
TagGroupNot.model_rebuild()

_GROUPS: TypeAdapter[list[Any]] = TypeAdapter(list[TagGroup])


def _children(node: dict[str, Any]) -> list[Any]:
    kind = _kind(node)
    inner = node.get(kind, [])
    return [inner] if kind == "not" else inner if isinstance(inner, list) else []


def shallow(value: Any) -> Any:
    """Refuse tag groups deeper or larger than any real filter, before recursion meets them."""
    if not isinstance(value, list):
        return value
    nodes, level = 0, value
    for _ in range(MAX_GROUP_DEPTH):
        nodes += len(level)
        if nodes > MAX_GROUP_NODES:
            raise ValueError(f"tag_groups may hold at most {MAX_GROUP_NODES} nodes")
        level = [child for node in level if isinstance(node, dict) for child in _children(node)]
        if not level:
            return value
    raise ValueError(f"tag_groups may be nested at most {MAX_GROUP_DEPTH} deep")


def plain_groups(value: Any) -> list[dict[str, Any]]:
    """Tag groups from a JSON value, checked, every default filled in. Raises `ValidationError` or `ValueError`."""
    return [node.model_dump(by_alias=True) for node in _GROUPS.validate_python(shallow(value))]


# --- recall ---------------------------------------------------------------------------------------------------------


class EntityIncludeOptions(RequestModel):
    max_tokens: int = Field(500, ge=0, le=MAX_TOKENS)


class ChunkIncludeOptions(RequestModel):
    max_tokens: int = Field(8192, ge=0, le=MAX_TOKENS)


class SourceFactsIncludeOptions(RequestModel):
    max_tokens: int = Field(4096, ge=-1, le=MAX_TOKENS)
    max_tokens_per_observation: int = Field(-1, ge=-1, le=MAX_TOKENS)


class IncludeOptions(RequestModel):
    entities: EntityIncludeOptions | None = Field(default_factory=lambda: EntityIncludeOptions(max_tokens=500))
    chunks: ChunkIncludeOptions | None = None
    source_facts: SourceFactsIncludeOptions | None = None


class MinScores(RequestModel):
    semantic: float | None = Field(None, allow_inf_nan=False)
    keyword: float | None = Field(None, allow_inf_nan=False)
    reranker: float | None = Field(None, allow_inf_nan=False)
    final: float | None = Field(None, allow_inf_nan=False)


class TemporalWindow(RequestModel):
    """Both ends inclusive; an end that names only a date means that whole day."""

    start: str
    end: str

    @field_validator("start", "end")
    @classmethod
    def _readable(cls, value: str) -> str:
        parse_datetime(value)
        return value.strip()

    @model_validator(mode="after")
    def _in_order(self) -> TemporalWindow:
        first, last = self.micros
        if last < first:
            raise ValueError("temporal_window must not end before it starts")
        return self

    @property
    def micros(self) -> tuple[int, int]:
        end = parse_instant(self.end)
        if _DATE_ONLY.fullmatch(self.end):
            end += _DAY - 1
        return parse_instant(self.start), end


class RecallRequest(RequestModel):
    query: str
    types: list[str] | None = None
    prefer_observations: bool | None = None
    budget: Literal["low", "mid", "high"] = "mid"
    max_tokens: int = Field(4096, ge=0, le=MAX_TOKENS)
    trace: bool = False
    query_timestamp: str | None = None
    include: IncludeOptions | None = None
    tags: Tags | None = None
    tags_match: TagsMatch = "any"
    tag_groups: list[TagGroup] | None = None
    min_scores: MinScores | None = None
    temporal_window: TemporalWindow | None = None
    # beyond the contract
    max_ms: int | None = Field(None, ge=1, le=600_000)
    as_of: str | None = None
    valid_at: str | None = None
    why_not: list[str] | None = Field(None, max_length=100)
    arms: list[Literal["semantic", "keyword", "graph", "temporal"]] | None = Field(None, min_length=1)

    _shallow = field_validator("tag_groups", mode="before")(shallow)

    @field_validator("query")
    @classmethod
    def _has_a_word(cls, value: str) -> str:
        if not _WORD.search(value):
            raise ValueError("query must contain at least one letter or digit")
        return value

    @field_validator("why_not")
    @classmethod
    def _uuids(cls, value: list[str] | None) -> list[str] | None:
        return None if value is None else [require_uuid(one, "why_not") for one in value]

    @model_validator(mode="after")
    def _one_tag_filter(self) -> RecallRequest:
        if self.tags and self.tag_groups:
            raise ValueError("tags and tag_groups exclude each other; put the tags into a group")
        return self

    def to_input(self) -> RecallInput:
        """The recall as the façade takes it. Raises `BadRequest` for a bad instant, `Unprocessable` for a bad type."""
        unknown = [one for one in self.types or () if one not in NETWORK_NAMES]
        if unknown:
            raise Unprocessable(f"Unknown type {unknown[0][:80]!r}; types are {', '.join(NETWORK_NAMES)}.")
        include = self.include or IncludeOptions()
        facts = include.source_facts
        floors = self.min_scores.model_dump(exclude_none=True) if self.min_scores else {}
        return RecallInput(
            query=self.query,
            types=tuple(dict.fromkeys(self.types or ())),
            prefer_observations=self.prefer_observations,
            budget=self.budget,
            max_tokens=self.max_tokens,
            trace=self.trace or bool(self.why_not),
            query_timestamp=_instant(self.query_timestamp, "query_timestamp"),
            entity_tokens=include.entities.max_tokens if include.entities else None,
            chunk_tokens=include.chunks.max_tokens if include.chunks else None,
            source_tokens=facts.max_tokens if facts else None,
            source_tokens_each=facts.max_tokens_per_observation if facts else -1,
            tags=tuple(dict.fromkeys(self.tags or ())),
            tags_match=self.tags_match,
            tag_groups=[node.model_dump(by_alias=True) for node in self.tag_groups] if self.tag_groups else None,
            min_scores=floors,
            window=self.temporal_window.micros if self.temporal_window else None,
            max_ms=self.max_ms,
            as_of=_instant(self.as_of, "as_of"),
            valid_at=_instant(self.valid_at, "valid_at"),
            why_not=tuple(dict.fromkeys(self.why_not or ())),
            arms=tuple(arm for arm in ARMS if arm in self.arms) if self.arms else ARMS,
        )


def _instant(text: str | None, field: str) -> int | None:
    if text is None or not text.strip():
        return None
    try:
        return micros(parse_datetime(text))
    except ValueError as error:
        raise BadRequest(f"{field} {error}.") from None


# --- banks ----------------------------------------------------------------------------------------------------------


class DispositionTraits(RequestModel):
    skepticism: int = Field(ge=1, le=5)
    literalism: int = Field(ge=1, le=5)
    empathy: int = Field(ge=1, le=5)


class CreateBankRequest(RequestModel):
    name: str | None = None
    disposition: DispositionTraits | None = None
    disposition_skepticism: int | None = Field(None, ge=1, le=5)
    disposition_literalism: int | None = Field(None, ge=1, le=5)
    disposition_empathy: int | None = Field(None, ge=1, le=5)
    mission: str | None = None
    background: str | None = None
    reflect_mission: str | None = None
    retain_mission: str | None = None
    retain_extraction_mode: str | None = None
    retain_custom_instructions: str | None = None
    retain_chunk_size: int | None = None
    retain_structured_chunk_size: int | None = None
    retain_max_attachments_per_chunk: int | None = None
    enable_observations: bool | None = None
    observations_mission: str | None = None
    enable_text_search: bool | None = None
    enable_temporal_retrieval: bool | None = None
    enable_graph_retrieval: bool | None = None
    enable_reranking: bool | None = None

    def to_fields(self) -> dict[str, Any]:
        """The named fields in canonical form: `name`, and bank settings under their own names.

        `reflect_mission` outranks `mission`, which outranks `background`; a single disposition field outranks the
        `disposition` object. Fields that were not sent, or sent as null, do not appear.
        """
        sent = self.model_dump(exclude_unset=True, exclude_none=True)
        aliases = [sent.pop(word, None) for word in ("reflect_mission", "mission", "background")]
        traits = sent.pop("disposition", None) or {}
        fields = {f"disposition_{trait}": level for trait, level in traits.items()} | sent
        mission = next((text for text in aliases if text is not None), None)
        if mission is not None:
            fields["reflect_mission"] = mission
        return fields


class BankConfigUpdate(RequestModel):
    updates: dict[str, Any]


class AddBackgroundRequest(RequestModel):
    content: str = Field(max_length=100_000)
    update_disposition: bool | None = True

    @field_validator("content")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not _WORD.search(value):
            raise ValueError("content must contain at least one letter or digit")
        return value


class UpdateDispositionRequest(RequestModel):
    disposition: DispositionTraits


# --- documents ------------------------------------------------------------------------------------------------------


class UpdateDocumentRequest(RequestModel):
    tags: Tags | None = None
    observation_scopes: ObservationScopes | None = None

    def to_fields(self) -> dict[str, Any]:
        """The fields that were named. Raises `Unprocessable` when there is none."""
        fields = {name: getattr(self, name) for name in ("tags", "observation_scopes") if name in self.model_fields_set}
        if all(value is None for value in fields.values()):
            raise Unprocessable("Name tags or observation_scopes; nothing else of a document can be changed.")
        if fields.get("tags") is not None:
            fields["tags"] = list(dict.fromkeys(fields["tags"]))
        return {name: value for name, value in fields.items() if value is not None}

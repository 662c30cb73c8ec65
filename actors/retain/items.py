"""`RetainItem`: one thing to remember, canonical. What a caller sent goes through `RetainItem.parse` exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from recalld.actors.retain.canonical import (
    Stamp,
    clean_metadata,
    clean_optional,
    clean_tags,
    clean_text,
    parse_timestamp,
)
from recalld.actors.trust.instructions import SOURCE_LEVELS

DEFAULT_KIND: Final = "CONCEPT"
SCOPE_WORDS: Final = ("per_tag", "combined", "all_combinations", "shared")
UPDATE_MODES: Final = ("replace", "append")

Scopes = str | tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ItemEntity:
    """An entity the caller named itself."""

    name: str
    kind: str = DEFAULT_KIND


@dataclass(frozen=True, slots=True)
class RetainItem:
    """One item of a retain call.

    `timestamp` is µs since the epoch, None when absent (`anchor_missing`: the server's time stands in and is marked as
    assumed) or `undated`. `utc_offset_minutes` is the zone its relative words are read in. `observation_scopes` is
    one of `SCOPE_WORDS`, tag lists (which may hold globs), or None for the bank's default. `update_mode` is `replace`
    or `append`.
    """

    content: str
    timestamp: int | None = None
    undated: bool = False
    utc_offset_minutes: int = 0
    context: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    document_id: str | None = None
    entities: tuple[ItemEntity, ...] = ()
    resolve_entities: bool = True
    tags: tuple[str, ...] = ()
    observation_scopes: Scopes | None = None
    strategy: str | None = None
    update_mode: str = "replace"
    trust: str | None = None
    """How far its source is trusted (`SOURCE_LEVELS`); None leaves that to the bank."""
    file: dict[str, Any] | None = None
    """The upload it was read from: `key`, `name`, `size`."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What became of it before it was read, for its receipt: what was redacted, what was dropped."""

    @property
    def anchor_missing(self) -> bool:
        """No time was given and none was refused: now is the anchor, and a guess."""
        return self.timestamp is None and not self.undated

    def with_tags(self, tags: Sequence[str]) -> RetainItem:
        """The item with more tags behind its own, each once."""
        return replace(self, tags=tuple(dict.fromkeys((*self.tags, *tags))))

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> RetainItem:
        """The item a JSON object describes. Raises `ValueError` with a sentence that names the field."""
        content = value.get("content")
        if not isinstance(content, str):
            raise ValueError("The field 'content' must be a string.")
        content = clean_text(content)
        if not content.strip():
            raise ValueError("The field 'content' must not be blank.")
        stamp: Stamp = parse_timestamp(value.get("timestamp"))
        resolve = value.get("resolve_entities")
        if resolve is not None and not isinstance(resolve, bool):
            raise ValueError("The field 'resolve_entities' must be true or false.")
        mode = value.get("update_mode") or "replace"
        if mode not in UPDATE_MODES:
            raise ValueError("The field 'update_mode' must be 'replace' or 'append'.")
        document_id = clean_optional(value.get("document_id"), "document_id")
        if mode == "append" and document_id is None:
            raise ValueError("The update mode 'append' needs a document_id.")
        return cls(
            content=content,
            timestamp=stamp.instant,
            undated=stamp.undated,
            utc_offset_minutes=stamp.utc_offset_minutes,
            context=clean_optional(value.get("context"), "context") or "",
            metadata=clean_metadata(value.get("metadata")),
            document_id=document_id,
            entities=parse_entities(value.get("entities")),
            resolve_entities=resolve is not False,
            tags=clean_tags(value.get("tags")),
            observation_scopes=parse_scopes(value.get("observation_scopes")),
            strategy=clean_optional(value.get("strategy"), "strategy"),
            update_mode=mode,
            trust=parse_trust(value.get("trust")),
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data for msgpack; fields at their default are left out, so old and new readers agree."""
        plain: dict[str, Any] = {"content": self.content}
        for name in ("timestamp", "document_id", "observation_scopes", "strategy", "trust", "file"):
            if (value := getattr(self, name)) is not None:
                plain[name] = value
        for name in ("undated", "utc_offset_minutes", "context", "metadata", "tags", "notes"):
            if value := getattr(self, name):
                plain[name] = value
        if self.entities:
            plain["entities"] = [(entity.name, entity.kind) for entity in self.entities]
        if not self.resolve_entities:
            plain["resolve_entities"] = False
        if self.update_mode != "replace":
            plain["update_mode"] = self.update_mode
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RetainItem:
        """The inverse of `to_plain`; unknown fields are ignored."""
        scopes = plain.get("observation_scopes")
        return cls(
            content=plain["content"],
            timestamp=plain.get("timestamp"),
            undated=plain.get("undated", False),
            utc_offset_minutes=plain.get("utc_offset_minutes", 0),
            context=plain.get("context", ""),
            metadata=dict(plain.get("metadata", {})),
            document_id=plain.get("document_id"),
            entities=tuple(ItemEntity(name, kind) for name, kind in plain.get("entities", ())),
            resolve_entities=plain.get("resolve_entities", True),
            tags=tuple(plain.get("tags", ())),
            observation_scopes=scopes if scopes is None or isinstance(scopes, str) else tuple(map(tuple, scopes)),
            strategy=plain.get("strategy"),
            update_mode=plain.get("update_mode", "replace"),
            trust=plain.get("trust"),
            file=plain.get("file"),
            notes=dict(plain.get("notes", {})),
        )


def parse_entities(value: object) -> tuple[ItemEntity, ...]:
    """The entities of an item: objects `{text, type}`. White space in a name collapses; blank names are dropped."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError("The field 'entities' must be a list of objects with 'text'.")
    found: dict[ItemEntity, None] = {}
    for entry in value:
        text = entry.get("text") if isinstance(entry, Mapping) else entry
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        if not isinstance(text, str) or not (kind is None or isinstance(kind, str)):
            raise ValueError("Every entity must be an object with a string 'text' and an optional string 'type'.")
        if name := " ".join(clean_text(text).split()):
            found[ItemEntity(name, (clean_text(kind).strip() if kind else "") or DEFAULT_KIND)] = None
    return tuple(found)


def parse_trust(value: object) -> str | None:
    """`trust`: how far the source is trusted, None when the caller does not say."""
    if value is None:
        return None
    if isinstance(value, str) and value in SOURCE_LEVELS:
        return value
    raise ValueError(f"The field 'trust' must be one of {', '.join(SOURCE_LEVELS)}.")


def parse_scopes(value: object) -> Scopes | None:
    """`observation_scopes`: a word, or tag lists. `[[]]` is `shared`, `[]` falls back to `combined`."""
    if value is None:
        return None
    if isinstance(value, str):
        if value not in SCOPE_WORDS:
            raise ValueError(f"The field 'observation_scopes' must be one of {', '.join(SCOPE_WORDS)}, or tag lists.")
        return value
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError("The field 'observation_scopes' must be a word or a list of tag lists.")
    scopes = tuple(clean_tags(scope) for scope in value)
    if not scopes:
        return "combined"
    return "shared" if scopes == ((),) else scopes

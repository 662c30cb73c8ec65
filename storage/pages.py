"""Records of directives, mental models and the tree of knowledge pages. Instants are µs since the epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FOLDER, PAGE = "folder", "page"


@dataclass(frozen=True, slots=True)
class Directive:
    """A rule for whoever answers from the bank. Without tags it holds everywhere."""

    id: str
    name: str
    content: str
    created_at: int
    updated_at: int
    priority: int = 0
    is_active: bool = True
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MentalModel:
    """What a mental model is and how it stands; what it says is its `PageContent`.

    `revision` moves with everything a refresh under way must not overwrite. `seen_uid` is how many uids the bank had
    given when the last refresh looked: a unit from there on is new to it. `cited` are ids of the units its content
    rests on, `retract` of erased ones that it may rest on still, `content_query` the question it answers. `refresh`
    names its latest refresh operation.
    `cron_seen_at` and `full_cron_seen_at` say up to when its schedules were looked at.
    """

    id: str
    name: str
    source_query: str
    created_at: int
    updated_at: int
    tags: tuple[str, ...] = ()
    max_tokens: int = 2048
    trigger: dict[str, Any] = field(default_factory=dict)
    page: bool = False
    has_content: bool = False
    revision: int = 1
    seen_uid: int = 0
    cited: tuple[str, ...] = ()
    retract: tuple[str, ...] = ()
    content_query: str = ""
    refresh: str = ""
    formers: int = 0
    last_refreshed_at: int | None = None
    last_memory_seen_at: int | None = None
    last_refresh_failed_at: int | None = None
    last_full_refreshed_at: int | None = None
    cron_seen_at: int | None = None
    full_cron_seen_at: int | None = None


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a mental model says: markdown, and the answer it came from. `vector` (float32) and `terms` make it found."""

    text: str = ""
    response: dict[str, Any] = field(default_factory=dict)
    vector: bytes = b""
    terms: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FormerContent:
    """What a mental model said before a change at `changed_at`; `cited` are ids of the units it rested on."""

    text: str
    changed_at: int
    response: dict[str, Any] = field(default_factory=dict)
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageNode:
    """A folder, or a page with its mental model `model`. `parent` is the id of a folder, "" at the root."""

    id: str
    kind: str
    name: str
    created_at: int
    updated_at: int
    parent: str = ""
    model: str = ""
    managed: bool = False


@dataclass(frozen=True, slots=True)
class PagesChanged:
    """Directives, mental models, contents and nodes that are written or go, by id.

    `contents` are (model id, content); None leaves a model none. `formers` are (model id, number, former content), None
    to remove it. A model that goes takes its content and history along.
    """

    at: int
    directives: tuple[Directive, ...] = ()
    models: tuple[MentalModel, ...] = ()
    nodes: tuple[PageNode, ...] = ()
    contents: tuple[tuple[str, PageContent | None], ...] = ()
    formers: tuple[tuple[str, int, FormerContent | None], ...] = ()
    directives_gone: tuple[str, ...] = ()
    models_gone: tuple[str, ...] = ()
    nodes_gone: tuple[str, ...] = ()

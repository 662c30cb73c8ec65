"""Which units a recall may return: one mask over uids from networks, tags, known time and valid time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Bools, Snapshot
from recalld.actors.recall.validity import valid_mask, without_successors
from recalld.storage.errors import Unprocessable
from recalld.storage.records import EXPERIENCE, WORLD

TAG_MODES = ("any", "all", "any_strict", "all_strict", "exact")


class TagSource(Protocol):
    """Where tag filters look: a snapshot's units, or a single thing that carries tags."""

    @property
    def n(self) -> int: ...

    def tag_mask(self, tag: str) -> Bools: ...

    def tagset_mask(self, tags: frozenset[str]) -> Bools: ...

    def all_tags(self) -> list[tuple[str, int]]: ...


@dataclass(frozen=True, slots=True)
class OneThing:
    """The tags of one document or chunk as a `TagSource` of length 1."""

    tags: frozenset[str]
    n: int = 1

    def tag_mask(self, tag: str) -> Bools:
        return np.array([tag in self.tags])

    def tagset_mask(self, tags: frozenset[str]) -> Bools:
        return np.array([tags == self.tags])

    def all_tags(self) -> list[tuple[str, int]]:
        return [(tag, 1) for tag in sorted(self.tags)]


def gates(snap: Snapshot, query: RecallQuery, settings: RecallSettings) -> list[tuple[str, Bools]]:
    """(gate, mask of units that pass it), in the order a unit meets them; a gate the query leaves open is absent."""
    columns = snap.columns
    found: list[tuple[str, Bools]] = []
    if query.as_of is None:
        # What was superseded was true until then: a question about a day may mean it.
        found.append(("not live", columns.live if query.valid_at is None else columns.live | columns.superseded))
    else:
        found.append(("erased", columns.exists))
        found.append(("as_of", (columns.recorded <= query.as_of) & (columns.retired > query.as_of)))
    if query.valid_at is not None:
        successors = without_successors(snap, query.valid_at, query.as_of)
        found.append(("valid_at", valid_mask(columns, query.valid_at) & successors))
    if query.first_uid:
        found.append(("first_uid", np.arange(snap.n) >= query.first_uid))
    if query.types:
        table = np.zeros(256, np.bool_)
        table[list(query.types)] = True
        found.append(("network", table[columns.network]))
    if said_by_facts(query):
        echoes = snap.echoes()
        if echoes.any():
            found.append(("echo", ~echoes))
    if has_tag_filter(query):
        found.append(("tags", tags_pass(snap, query, settings)))
    return found


def said_by_facts(query: RecallQuery) -> bool:
    """Whether an observation that repeats one of its sources has that source beside it among what is allowed.

    It then adds nothing, and would only take the place of another memory. Under a tag filter the source may be out of
    reach, because an observation carries the tags of its scope.
    """
    facts = not query.types or {WORLD, EXPERIENCE} <= set(query.types)
    return facts and not query.prefer_observations and not has_tag_filter(query)


def has_tag_filter(query: RecallQuery) -> bool:
    """Whether tags narrow this recall. Under `exact` an empty list is a filter too, unless groups take its place."""
    return bool(query.tags or query.tag_groups or (query.tags_match == "exact" and query.tag_groups is None))


def tags_pass(source: TagSource, query: RecallQuery, settings: RecallSettings) -> Bools:
    """bool[n]: what of the source the query's tags or tag groups let through."""
    if query.tags or query.tag_groups is None:
        mask = tag_filter(source, query.tags, query.tags_match)
    else:
        mask = np.ones(source.n, np.bool_)
    if query.tag_groups:
        mask = mask & group_filter(source, query.tag_groups, settings)
    return mask


def allowed(snap: Snapshot, query: RecallQuery, settings: RecallSettings) -> Bools:
    """bool[n]: the units every gate lets through."""
    found = gates(snap, query, settings)
    if [name for name, _ in found] == ["not live", "echo"] and found[0][1] is snap.columns.live:
        return snap.without_echoes()
    masks = [mask for _, mask in found]
    if len(masks) == 1:
        return masks[0]
    out: Bools = np.logical_and.reduce(masks)
    return out


def tag_filter(source: TagSource, tags: Sequence[str], match: str) -> Bools:
    """bool[n] for one flat tag filter. An empty list passes everything, except under `exact`: untagged units only."""
    return _combine(source, [(tag,) for tag in dict.fromkeys(tags)], match)


def group_filter(source: TagSource, groups: Sequence[Mapping[str, Any]], settings: RecallSettings) -> Bools:
    """bool[n] for a list of tag group nodes, AND-ed.

    Raises `Unprocessable` for a node of no known form, and for a tree deeper or larger than the settings allow.
    """
    left = [settings.tag_group_nodes]
    mask = np.ones(source.n, np.bool_)
    known: list[tuple[str, frozenset[str]]] | None = None

    def resolve(tags: Sequence[str], how: str) -> list[tuple[str, ...]]:
        nonlocal known
        if how == "exact":
            return [(tag,) for tag in dict.fromkeys(tags)]
        if known is None:
            known = [(tag, trigrams(tag)) for tag, _ in source.all_tags()]
        return [fuzzy(tag, known, settings) for tag in dict.fromkeys(tags)]

    def node(value: Any, depth: int) -> Bools:
        left[0] -= 1
        if depth > settings.tag_group_depth:
            raise Unprocessable(f"tag_groups may be nested {settings.tag_group_depth} deep; flatten the expression.")
        if left[0] < 0:
            raise Unprocessable(f"tag_groups may hold {settings.tag_group_nodes} nodes; use fewer.")
        if not isinstance(value, Mapping):
            raise Unprocessable("Each tag_groups node must be an object with tags, and, or, or not.")
        if "tags" in value:
            return leaf(value)
        if isinstance(parts := value.get("and"), list | tuple):
            out = np.ones(source.n, np.bool_)
            for part in parts:
                out &= node(part, depth + 1)
            return out
        if isinstance(parts := value.get("or"), list | tuple):
            out = np.zeros(source.n, np.bool_)
            for part in parts:
                out |= node(part, depth + 1)
            return out
        if "not" in value:
            return ~node(value["not"], depth + 1)
        raise Unprocessable("Each tag_groups node must be an object with tags, and, or, or not.")

    def leaf(value: Mapping[str, Any]) -> Bools:
        tags, match, how = value["tags"], value.get("match", "any_strict"), value.get("resolve", "exact")
        if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
            raise Unprocessable("The tags of a tag_groups leaf must be a list of strings.")
        if how not in ("exact", "fuzzy"):
            raise Unprocessable("resolve must be exact or fuzzy.")
        left[0] -= len(tags)
        if left[0] < 0:
            raise Unprocessable(f"tag_groups may hold {settings.tag_group_nodes} nodes and tags; use fewer.")
        return _combine(source, resolve(tags, how), match)

    for group in groups:
        mask &= node(group, 1)
    return mask


def _combine(source: TagSource, wanted: Sequence[tuple[str, ...]], match: str) -> Bools:
    """The mode over a list of wants, each met by any of its spellings; an empty spelling list is met by no unit."""
    if match not in TAG_MODES:
        raise Unprocessable(f"A tag match mode is one of {', '.join(TAG_MODES)}.")
    if match == "exact":
        return _exact(source, wanted)
    if not wanted:
        return np.ones(source.n, np.bool_)
    each = [_any_of(source, spellings) for spellings in wanted]
    together = np.logical_or if match in ("any", "any_strict") else np.logical_and
    out: Bools = together.reduce(each)
    return out if match.endswith("_strict") else out | source.tagset_mask(frozenset())


def _exact(source: TagSource, wanted: Sequence[tuple[str, ...]]) -> Bools:
    if all(len(spellings) == 1 for spellings in wanted):
        return source.tagset_mask(frozenset(spellings[0] for spellings in wanted))
    # With several spellings a want: every want met, and no tag on the unit that is nobody's spelling.
    out: Bools = np.logical_and.reduce([_any_of(source, spellings) for spellings in wanted])
    mine = {tag for spellings in wanted for tag in spellings}
    for tag, _ in source.all_tags():
        if tag not in mine:
            out &= ~source.tag_mask(tag)
    return out


def _any_of(source: TagSource, tags: Sequence[str]) -> Bools:
    out = np.zeros(source.n, np.bool_)
    for tag in tags:
        out |= source.tag_mask(tag)
    return out


def trigrams(text: str) -> frozenset[str]:
    """The trigrams of each word of a name, folded and padded as `␣␣word␣`, as PostgreSQL's pg_trgm makes them."""
    words = "".join(c if c.isalnum() else " " for c in text.casefold()).split()
    padded = [f"  {word} " for word in words]
    return frozenset(word[i : i + 3] for word in padded for i in range(len(word) - 2))


def fuzzy(tag: str, known: Sequence[tuple[str, frozenset[str]]], settings: RecallSettings) -> tuple[str, ...]:
    """The known tags that are most like this one by trigrams (shared over all), best first.

    A tag far behind the best is left out: `user:bob` shares enough with `user:alice` to pass a floor alone, and a tag
    is a scope. None when not even the best is alike.
    """
    mine = trigrams(tag)
    alike = {name: 1.0 if name == tag else _shared(mine, theirs) for name, theirs in known}
    floor = max(settings.tag_similarity, settings.tag_runner_up * max(alike.values(), default=0.0))
    return tuple(sorted((name for name, share in alike.items() if share >= floor), key=lambda name: -alike[name]))


def _shared(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0

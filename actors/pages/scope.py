"""What a mental model reads: the memories that its tags, groups and kinds of fact let through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recalld.actors.recall.filters import group_filter, tag_filter
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Bools
from recalld.storage.audit import plain
from recalld.storage.pages import MentalModel
from recalld.storage.records import EXPERIENCE, NETWORK_NAMES, OBSERVATION, WORLD
from recalld.storage.snapshot import Snapshot

NETWORKS = (WORLD, EXPERIENCE, OBSERVATION)
_LIMITS = RecallSettings()


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope as it resolves: groups take the place of tags. `networks` are those that are read."""

    tags: tuple[str, ...] = ()
    match: str = "any"
    groups: list[dict[str, Any]] | None = None
    networks: tuple[int, ...] = NETWORKS

    @property
    def fact_types(self) -> tuple[str, ...]:
        return tuple(NETWORK_NAMES[one] for one in self.networks)


def scope_of(model: MentalModel) -> Scope:
    """The scope of a model: a tagged one reads only what carries all of its tags, unless its trigger says otherwise."""
    trigger = model.trigger
    named = trigger.get("fact_types")
    networks = tuple(NETWORK_NAMES.index(one) for one in named) if named else NETWORKS
    groups = trigger.get("tag_groups")
    if groups is not None:
        return Scope(groups=plain(groups), networks=networks)
    match = trigger.get("tags_match") or ("all_strict" if model.tags else "any")
    return Scope(tuple(model.tags), match, None, networks)


def mask_of(snap: Snapshot, scope: Scope) -> Bools:
    """bool[n]: live units in a scope."""
    table = np.zeros(256, np.bool_)
    table[list(scope.networks)] = True
    mask: Bools = snap.columns.live & table[snap.columns.network]
    if scope.groups is not None:
        return mask & group_filter(snap, scope.groups, _LIMITS)
    if scope.tags or scope.match == "exact":
        mask = mask & tag_filter(snap, scope.tags, scope.match)
    return mask


class Freshness:
    """How up to date the mental models of one snapshot are; models of one scope share its mask."""

    def __init__(self, snap: Snapshot) -> None:
        self._snap = snap
        self._masks: dict[str, Bools] = {}

    def mask(self, scope: Scope) -> Bools:
        key = repr(scope)
        if key not in self._masks:
            self._masks[key] = mask_of(self._snap, scope)
        return self._masks[key]

    def newer(self, model: MentalModel) -> int:
        """Memories in scope that the last refresh did not see."""
        return int(self.mask(scope_of(model))[model.seen_uid :].sum())

    def gone(self, model: MentalModel) -> list[str]:
        """Ids of cited memories that ended or were edited since, and of erased ones that the content may rest on."""
        snap = self._snap
        lost = []
        for unit_id in model.cited:
            uid = snap.uid_of(unit_id)
            if uid is None or uid >= model.seen_uid or not snap.columns.live[uid]:
                lost.append(unit_id)
        return [*lost, *model.retract]

    def stale(self, model: MentalModel) -> bool:
        return bool(self.newer(model) or self.gone(model))

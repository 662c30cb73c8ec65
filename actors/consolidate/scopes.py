"""Under which tags a fact is consolidated, and which strategy a set of tags falls under. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

MOST_COMBINED = 6
"""Tags of which all combinations are made; of more only the single ones and all together."""
Scope = tuple[str, ...]
OF_STRATEGY = (
    "observations_mission",
    "max_observations_per_scope",
    "consolidation_source_facts_max_tokens",
    "consolidation_source_facts_max_tokens_per_observation",
)


def scopes_of(tags: Iterable[str], asked: Any, default: Any = None) -> tuple[Scope, ...]:
    """The tag sets, each sorted, under which a fact with these tags is consolidated, without repetition.

    `asked` is the item's `observation_scopes` and `default` the bank's: `combined`, `per_tag`, `all_combinations`,
    `shared`, or lists of tags that may hold globs. What is absent or empty means `combined`.
    """
    own = tuple(sorted(set(tags)))
    how = asked if asked not in (None, [], ()) else default
    if how in (None, [], (), "combined"):
        return (own,)
    if how == "shared":
        return ((),)
    if how == "per_tag":
        return tuple((tag,) for tag in own) or ((),)
    if how == "all_combinations":
        if not own:
            return ((),)
        if len(own) > MOST_COMBINED:
            return (*((tag,) for tag in own), own)
        return tuple(one for size in range(1, len(own) + 1) for one in combinations(own, size))
    found = [one for listed in how for one in _expanded(listed, own)]
    return tuple(dict.fromkeys(found)) or (own,)


def _expanded(listed: Sequence[str], own: Scope) -> list[Scope]:
    """One explicit tag set over a fact's tags: a glob stands for each tag that fits; a plain tag must be there."""
    sets: list[Scope] = [()]
    for pattern in listed:
        globbed = any(sign in pattern for sign in "*?[")
        fitting = [tag for tag in own if (fnmatch.fnmatchcase(tag, pattern) if globbed else tag == pattern)]
        sets = [(*one, tag) for one in sets for tag in fitting]
    return list(dict.fromkeys(tuple(sorted(set(one))) for one in sets))


def claimed_by(scope: Iterable[str], strategies: Sequence[Mapping[str, Any]] | None) -> int | None:
    """The index of the first strategy in force one of whose patterns fits a scope."""
    tags = set(scope)
    for index, strategy in enumerate(strategies or ()):
        patterns = strategy.get("scopes") or ()
        if in_force(strategy) and any(usable(pattern) and fits(tags, pattern) for pattern in patterns):
            return index
    return None


def usable(pattern: Mapping[str, Any]) -> bool:
    """A pattern that names tags; or, under `exact`, none, which means what is untagged."""
    return bool(pattern.get("tags")) or pattern.get("tags_match") == "exact"


def in_force(strategy: Mapping[str, Any]) -> bool:
    """A strategy that has a usable pattern and sets something."""
    sets = any(strategy.get(name) is not None for name in OF_STRATEGY)
    return sets and any(usable(pattern) for pattern in strategy.get("scopes") or ())


def fits(tags: set[str], pattern: Mapping[str, Any]) -> bool:
    """Whether a scope carries a pattern's tags (`all`, the default) or exactly those (`exact`); globs stand for some
    tag."""
    wanted = [str(tag) for tag in pattern.get("tags") or ()]
    if pattern.get("tags_match") == "exact":
        covered = {tag for tag in tags if any(fnmatch.fnmatchcase(tag, one) for one in wanted)}
        return covered == tags and all(any(fnmatch.fnmatchcase(tag, one) for tag in tags) for one in wanted)
    return all(any(fnmatch.fnmatchcase(tag, one) for tag in tags) for one in wanted)


def settings_of(scope: Iterable[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """The bank's settings in force for one scope: its strategy's own fields over the bank's."""
    tags = tuple(scope)
    found = dict(config)
    for limit in config.get("observation_scope_limits") or ():
        # The older way to write a limit: {"tags": [...], "limit" or "max_observations": n}.
        number = limit.get("max_observations", limit.get("limit"))
        if isinstance(number, int) and set(limit.get("tags") or ()) == set(tags):
            found["max_observations_per_scope"] = number
    strategies = config.get("consolidation_strategies")
    index = claimed_by(tags, strategies)
    strategy = strategies[index] if strategies and index is not None else {}
    for name in OF_STRATEGY:
        if strategy.get(name) is not None:
            found[name] = strategy[name]
    return found

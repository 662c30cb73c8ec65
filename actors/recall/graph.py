"""The graph arm: activation spreads from the best semantic hits along links, entities and neighbours in time.

`A(j) = max over i of A(i) * w * decay * mu(kind)`, breadth first, a few hops, stopped where it has grown faint. The
number of store reads is bounded by the settings: one a unit spread from, one an entity opened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recalld.actors.recall.arms import Hits, top
from recalld.actors.recall.fusion import step
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import AnyInts, Bools, Floats, Ints, Snapshot
from recalld.actors.recall.temporal import spans
from recalld.storage.records import CAUSED_BY, EVIDENCE, SEMANTIC, SUPERSEDES, UNKNOWN

_HOUR = 3_600_000_000.0


class Visit(NamedTuple):
    """One step that raised a unit's activation: from which unit, over which kind of link, to which strength."""

    hop: int
    source: int
    target: int
    kind: str
    weight: float
    activation: float


class Graph(NamedTuple):
    """The arm's hits, the units it started from and, when asked for, its steps."""

    hits: Hits
    seeds: Ints
    visits: list[Visit]


class _Steps(NamedTuple):
    """Steps of one kind in one hop, arrays of equal length; `gain` is weight * decay * mu."""

    kind: str
    sources: AnyInts
    targets: AnyInts
    weights: Floats
    gain: Floats


def graph(snap: Snapshot, seeds: Hits, k: int, allowed: Bools, settings: RecallSettings, record: bool = False) -> Graph:
    """Spread from `seeds` (the best semantic hits, activation = cosine) over allowed units only."""
    start = seeds.uids[: settings.graph_seeds]
    if len(start) == 0:
        return Graph(Hits.none(), start, [])
    activation = np.zeros(snap.n, np.float32)
    activation[start] = np.clip(seeds.scores[: settings.graph_seeds], 0.0, 1.0)
    frontier, visits = start, list[Visit]()
    opened: set[int] = set()
    for hop in range(1, settings.graph_hops + 1):
        steps = _steps(snap, frontier, activation, opened, settings)
        raised = _raise(activation, steps, allowed, settings, hop, visits if record else None)
        frontier = raised[top(activation[raised], settings.graph_frontier)]
        if len(frontier) == 0:
            break
    reached = np.flatnonzero(activation)
    best = top(activation[reached], k)
    return Graph(Hits(reached[best], activation[reached][best]), start, visits)


def _raise(
    activation: Floats, steps: list[_Steps], allowed: Bools, settings: RecallSettings, hop: int, log: list[Visit] | None
) -> Ints:
    """Apply one hop's steps to `activation` in place; the units it raised."""
    if not steps:
        return np.empty(0, np.int64)
    sources = np.concatenate([step.sources for step in steps]).astype(np.int64)
    targets = np.concatenate([step.targets for step in steps]).astype(np.int64)
    gain = np.concatenate([step.gain for step in steps])
    # Activation never grows along a path, or two causal links in a circle would feed each other.
    reach = activation[sources] * np.minimum(gain, 1.0)
    keep = (reach >= settings.graph_stop) & allowed[targets] & (reach > activation[targets])
    if log is not None:
        kinds = np.repeat([step.kind for step in steps], [len(step.targets) for step in steps])
        weights = np.concatenate([step.weights for step in steps])
        for i in np.flatnonzero(keep)[np.argsort(-reach[keep], kind="stable")]:
            log.append(Visit(hop, int(sources[i]), int(targets[i]), str(kinds[i]), float(weights[i]), float(reach[i])))
    np.maximum.at(activation, targets[keep], reach[keep])
    return np.unique(targets[keep])


def _steps(
    snap: Snapshot, frontier: Ints, activation: Floats, opened: set[int], settings: RecallSettings
) -> list[_Steps]:
    """Every step out of the frontier, by kind."""
    entities: dict[int, int] = {}
    linked: list[tuple[int, AnyInts, AnyInts, Floats]] = []
    for uid in frontier.tolist():
        names, others, kinds, weights = snap.edges(uid)
        for entity in names.tolist():
            # The frontier is strongest first, so the first unit to name an entity is its strongest.
            entities.setdefault(entity, uid)
        if len(others):
            linked.append((uid, others, kinds, weights))
    steps = _linked_steps(linked, settings)
    fresh = [(entity, uid) for entity, uid in entities.items() if entity not in opened]
    steps += _entity_steps(snap, fresh, opened, settings)
    steps += _time_steps(snap, frontier, settings)
    return steps


def _linked_steps(linked: list[tuple[int, AnyInts, AnyInts, Floats]], settings: RecallSettings) -> list[_Steps]:
    if not linked:
        return []
    sources = np.repeat([uid for uid, *_ in linked], [len(others) for _, others, _, _ in linked])
    targets = np.concatenate([others for _, others, _, _ in linked])
    kinds = np.concatenate([kinds for _, _, kinds, _ in linked])
    weights = np.concatenate([weights for *_, weights in linked]).astype(np.float32)
    steps = []
    for kind, name, mu in (
        (SEMANTIC, "semantic", settings.graph_semantic),
        (CAUSED_BY, "causal", settings.graph_causal),
        (SUPERSEDES, "supersedes", settings.graph_semantic),
        (EVIDENCE, "evidence", settings.graph_causal),
    ):
        of_kind = kinds == kind
        if of_kind.any():
            w = weights[of_kind]
            gain = w * np.float32(settings.graph_decay * mu)
            steps.append(_Steps(name, sources[of_kind], targets[of_kind], w, gain))
    return steps


def _entity_steps(
    snap: Snapshot, fresh: list[tuple[int, int]], opened: set[int], settings: RecallSettings
) -> list[_Steps]:
    """Steps through shared entities. The fewer units mention an entity, the more sharing it says: the weight falls
    with the logarithm of their number, to nothing for one that is everywhere."""
    ceiling = np.log(2.0 + snap.n)
    steps = []
    for entity, uid in fresh[: settings.graph_entities]:
        opened.add(entity)
        targets = snap.entity_uids(entity, settings.graph_entity_units)
        count = len(targets)
        if count >= settings.graph_entity_units:
            count = max(count, snap.entity_count(entity))
        w = np.full(len(targets), max(0.0, 1.0 - np.log(max(1, count)) / ceiling), np.float32)
        gain = w * np.float32(settings.graph_decay * settings.graph_entity)
        steps.append(_Steps("entity", np.full(len(targets), uid, np.int64), targets, w, gain))
    return steps


def _time_steps(snap: Snapshot, frontier: Ints, settings: RecallSettings) -> list[_Steps]:
    """Steps to the neighbours in the thread: weight `max(0.3, 1 - hours / 24)`, none where they are days apart."""
    columns = snap.columns
    steps = []
    for column in (columns.prev, columns.next):
        targets = step(column, frontier)
        there = targets >= 0
        sources, targets = frontier[there], targets[there]
        here, _ = spans(columns, sources)
        other, _ = spans(columns, targets)
        unknown = (here == UNKNOWN) | (other == UNKNOWN)
        apart = np.abs(here.astype(np.float64) - other.astype(np.float64)) / _HOUR
        w = np.maximum(0.3, 1.0 - apart / settings.graph_hours).astype(np.float32)
        w[unknown] = 0.3
        near = unknown | (apart <= settings.graph_hours)
        gain = w * np.float32(settings.graph_decay * settings.graph_temporal)
        steps.append(_Steps("temporal", sources[near], targets[near], w[near], gain[near]))
    return steps

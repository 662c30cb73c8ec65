"""The graph arm: activation spreads from the best semantic hits along links, entities and neighbours in time.

`A(j) = max over i of A(i) * w * decay * mu(kind)`, breadth first, a few hops, stopped where it has grown faint. The
number of store reads is bounded by the settings: one a unit spread from, one an entity opened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recalld.actors.recall.arms import Hits, distinct, top
from recalld.actors.recall.fusion import step
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import AnyInts, Bools, Floats, Ints, Snapshot
from recalld.actors.recall.temporal import spans
from recalld.storage.records import CAUSED_BY, CAUSES, EVIDENCE, SEMANTIC, SUPERSEDES, UNKNOWN

_HOUR = 3_600_000_000.0
_ENTITY, _TEMPORAL = 5, 6
_NAMES = {
    SEMANTIC: "semantic",
    CAUSED_BY: "causal",
    CAUSES: "causal",
    SUPERSEDES: "supersedes",
    EVIDENCE: "evidence",
    _ENTITY: "entity",
    _TEMPORAL: "temporal",
}


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
    """Steps of one hop, arrays of equal length; `kinds` are link kinds of the store, or `_ENTITY` or `_TEMPORAL`."""

    sources: Ints
    targets: Ints
    kinds: AnyInts
    weights: Floats


class _Collected:
    """Steps as they are found, joined at the end."""

    def __init__(self) -> None:
        self.sources: list[AnyInts] = []
        self.targets: list[AnyInts] = []
        self.kinds: list[AnyInts] = []
        self.weights: list[Floats] = []

    def add(self, sources: AnyInts, targets: AnyInts, kinds: AnyInts, weights: Floats) -> None:
        self.sources.append(sources)
        self.targets.append(targets)
        self.kinds.append(kinds)
        self.weights.append(weights)

    def joined(self) -> _Steps:
        return _Steps(
            np.concatenate(self.sources).astype(np.int64),
            np.concatenate(self.targets).astype(np.int64),
            np.concatenate(self.kinds),
            np.concatenate(self.weights).astype(np.float32),
        )


def graph(snap: Snapshot, seeds: Hits, k: int, allowed: Bools, settings: RecallSettings, record: bool = False) -> Graph:
    """Spread from `seeds` (the best semantic hits, activation = cosine) over allowed units only."""
    start = seeds.uids[: settings.graph_seeds]
    if len(start) == 0:
        return Graph(Hits.none(), start, [])
    activation = np.zeros(snap.n, np.float32)
    activation[start] = np.clip(seeds.scores[: settings.graph_seeds], 0.0, 1.0)
    frontier, visits = start, list[Visit]()
    opened: set[int] = set()
    reached = [start]
    gains = _gains(settings)
    for hop in range(1, settings.graph_hops + 1):
        steps = _steps(snap, frontier, opened, settings)
        # Activation never grows along a path, or two causal links in a circle would feed each other.
        reach = activation[steps.sources] * np.minimum(steps.weights * gains[steps.kinds], np.float32(1.0))
        keep = (reach >= settings.graph_stop) & allowed[steps.targets] & (reach > activation[steps.targets])
        if record:
            visits += _visits(hop, steps, reach, keep)
        targets = steps.targets[keep]
        np.maximum.at(activation, targets, reach[keep])
        raised = distinct(targets)
        reached.append(raised)
        frontier = raised[top(activation[raised], settings.graph_frontier)]
        if len(frontier) == 0:
            break
    uids = distinct(np.concatenate(reached))
    uids = uids[top(activation[uids], k)]
    return Graph(Hits(uids, activation[uids]), start, visits)


def _gains(settings: RecallSettings) -> Floats:
    """decay * mu by kind, float32[8]."""
    mu = np.zeros(8, np.float32)
    mu[[SEMANTIC, SUPERSEDES]] = settings.graph_semantic
    mu[[CAUSED_BY, CAUSES, EVIDENCE]] = settings.graph_causal
    mu[_ENTITY], mu[_TEMPORAL] = settings.graph_entity, settings.graph_temporal
    return mu * np.float32(settings.graph_decay)


def _visits(hop: int, steps: _Steps, reach: Floats, keep: Bools) -> list[Visit]:
    """The steps that raised a unit, strongest first."""
    order = np.flatnonzero(keep)[np.argsort(-reach[keep], kind="stable")]
    return [
        Visit(
            hop,
            int(steps.sources[i]),
            int(steps.targets[i]),
            _NAMES[int(steps.kinds[i])],
            float(steps.weights[i]),
            float(reach[i]),
        )
        for i in order
    ]


def _steps(snap: Snapshot, frontier: Ints, opened: set[int], settings: RecallSettings) -> _Steps:
    """Every step out of the frontier: along links, through entities, to neighbours in time."""
    found = _Collected()
    entities: dict[int, int] = {}
    for uid in frontier.tolist():
        names, others, kinds, weights = snap.edges(uid)
        for entity in names.tolist():
            # The frontier is strongest first, so the first unit to name an entity is its strongest.
            entities.setdefault(entity, uid)
        if len(others):
            found.add(np.full(len(others), uid, np.int64), others, kinds, weights)
    fresh = [(entity, uid) for entity, uid in entities.items() if entity not in opened]
    _entity_steps(snap, fresh[: settings.graph_entities], found, settings)
    opened.update(entity for entity, _ in fresh[: settings.graph_entities])
    _time_steps(snap, frontier, found, settings)
    return found.joined()


def _entity_steps(snap: Snapshot, fresh: list[tuple[int, int]], found: _Collected, settings: RecallSettings) -> None:
    """Steps through shared entities. The fewer units mention an entity, the more sharing it says: the weight falls
    with the logarithm of their number, to nothing for one that is everywhere."""
    ceiling = np.log(2.0 + snap.originals())
    for entity, uid in fresh:
        targets = snap.entity_uids(entity, settings.graph_entity_units)
        count = len(targets)
        if count >= settings.graph_entity_units:
            count = max(count, snap.entity_count(entity))
        weight = max(0.0, 1.0 - np.log(max(1, count)) / ceiling)
        found.add(
            np.full(len(targets), uid, np.int64),
            targets,
            np.full(len(targets), _ENTITY, np.uint8),
            np.full(len(targets), weight, np.float32),
        )


def _time_steps(snap: Snapshot, frontier: Ints, found: _Collected, settings: RecallSettings) -> None:
    """Steps to the neighbours in the thread: weight `exp(-hours / sigma)`, none where they are days apart."""
    columns = snap.columns
    targets = np.concatenate([step(columns.prev, frontier), step(columns.next, frontier)])
    sources = np.concatenate([frontier, frontier])[targets >= 0]
    targets = targets[targets >= 0]
    here, other = spans(columns, sources)[0], spans(columns, targets)[0]
    unknown = (here == UNKNOWN) | (other == UNKNOWN)
    apart = np.abs(here.astype(np.float64) - other.astype(np.float64)) / _HOUR
    # Where no time is known, they stand as far apart as linked units can.
    hours = np.where(unknown, settings.graph_hours, apart)
    weights = np.exp(-hours / settings.graph_sigma).astype(np.float32)
    near = unknown | (apart <= settings.graph_hours)
    found.add(sources[near], targets[near], np.full(int(near.sum()), _TEMPORAL, np.uint8), weights[near])

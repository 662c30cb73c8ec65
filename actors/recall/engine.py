"""The recall engine: one snapshot and one query in, a ranked and packed answer out. Pure but for the duration clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from recalld.actors.recall import answer as wire
from recalld.actors.recall import arms, filters, trace
from recalld.actors.recall.arms import Hits, Keyword
from recalld.actors.recall.fusion import candidates, fuse
from recalld.actors.recall.graph import graph
from recalld.actors.recall.late import late_query
from recalld.actors.recall.packing import Selection, select
from recalld.actors.recall.query import ARMS, RecallAnswer, RecallQuery
from recalld.actors.recall.rank import blended, boosts, features, score
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Floats, Ints, Snapshot
from recalld.actors.recall.stages import Ranking, Stages
from recalld.actors.recall.temporal import temporal
from recalld.storage.bodies import Body
from recalld.storage.errors import BadRequest
from recalld.storage.records import EVIDENCE, OBSERVATION

Clock = Callable[[], float]


def recall(
    snap: Snapshot, query: RecallQuery, settings: RecallSettings, monotonic: Clock = time.perf_counter
) -> RecallAnswer:
    """Answer a recall from one snapshot.

    Raises `BadRequest` for a reranker floor, since no cross-encoder runs here, and `Unprocessable` for malformed tag
    groups. A deadline never raises: parts are left out, cheapest loss first, and the answer's `degraded` names them.
    """
    if query.min_scores.get("reranker") is not None:
        raise BadRequest("min_scores.reranker needs a cross-encoder, and none is configured; use min_scores.final.")
    watch = _Watch(monotonic, query.deadline)
    stages = Stages(filters.allowed(snap, query, settings), settings.k(query.budget, max(1, snap.n)))
    watch.lap("filters")
    if snap.n and stages.allowed.any():
        vector = np.frombuffer(query.vector, np.float32)
        keyword = _search(snap, query, settings, vector, stages, watch)
        _rank(snap, query, settings, vector, keyword, stages, watch)
        _cut(snap, query, settings, stages)
        watch.lap("cut")
    stages.selection = _select(snap, query, stages, watch)
    sources = wire.source_facts(snap, query, stages, settings)
    names = wire.entity_names(snap, query, stages.selection.bodies)
    results = wire.results(snap, query, stages, names, sources.shown)
    entities = wire.entities(query, names)
    chunks = wire.chunks(snap, query, stages, settings)
    watch.lap("answer")
    timings = watch.timings()
    return RecallAnswer(
        results_json=results,
        trace=trace.build(snap, query, settings, stages, timings) if query.trace or query.why_not else None,
        entities=entities,
        chunks=chunks,
        source_facts=sources.facts,
        source_facts_truncated=sources.truncated,
        degraded=tuple(stages.skipped),
        timings=timings,
        seq=snap.seq,
    )


class _Watch:
    """Durations of the parts, and the time left until the deadline."""

    def __init__(self, monotonic: Clock, deadline: float | None) -> None:
        self._now = monotonic
        self._start = self._last = monotonic()
        self._deadline = deadline
        self.parts: dict[str, float] = {}

    def lap(self, part: str) -> float:
        """Seconds since the last lap, booked on the part."""
        now = self._now()
        spent, self._last = now - self._last, now
        self.parts[part] = self.parts.get(part, 0.0) + spent
        return spent

    def left(self) -> float:
        """Seconds until the deadline; infinite without one, negative past it."""
        if self._deadline is None:
            return float("inf")
        return self._deadline - (self._now() - self._start)

    def timings(self) -> dict[str, float]:
        """Milliseconds by part; `engine` is all but reading bodies and writing the answer, `total` everything."""
        out = {part: seconds * 1000.0 for part, seconds in self.parts.items()}
        out["total"] = (self._last - self._start) * 1000.0
        out["engine"] = out["total"] - out.get("bodies", 0.0) - out.get("answer", 0.0)
        return out


def _search(
    snap: Snapshot, query: RecallQuery, settings: RecallSettings, vector: Floats, stages: Stages, watch: _Watch
) -> Keyword:
    """Run the enabled arms into `stages`; the keyword arm's scores come back for ranking."""
    enabled = [arm for arm in ARMS if arm in query.arms]
    known = 1.0 - min(max(query.unknown_share, 0.0), 1.0)
    found = Hits.none()
    if "semantic" in enabled or "graph" in enabled:
        floor = max(settings.semantic_floor, query.min_scores.get("semantic") or 0.0)
        found = arms.semantic(snap, vector, stages.k, stages.allowed, floor)
    if "semantic" in enabled:
        stages.arms["semantic"] = found
    stages.seconds["semantic"] = watch.lap("semantic")

    least = query.min_scores.get("keyword") or 0.0
    terms = query.terms if "keyword" in enabled else ()
    keyword = arms.keyword(snap, terms, stages.k, stages.allowed, settings, least)
    if "keyword" in enabled:
        stages.arms["keyword"] = keyword.hits
    stages.terms = tuple(term.term for term in keyword.terms)
    stages.seconds["keyword"] = watch.lap("keyword")

    if "graph" in enabled:
        if watch.left() < settings.graph_seconds:
            stages.skipped.append("graph")
        else:
            spread = graph(snap, found, stages.k, stages.allowed, settings, record=query.trace)
            stages.arms["graph"], stages.seeds, stages.visits = spread
        stages.seconds["graph"] = watch.lap("graph")

    if "temporal" in enabled and query.window_error is not None:
        stages.failed["temporal"] = query.window_error
    elif "temporal" in enabled and query.window is not None:
        if watch.left() < settings.temporal_seconds:
            stages.skipped.append("temporal")
        else:
            others = [hits.uids for hits in stages.arms.values()]
            stages.arms["temporal"] = temporal(
                snap, query.window, vector, stages.k, stages.allowed, settings, others, trust=known
            )
        stages.seconds["temporal"] = watch.lap("temporal")
    return keyword


def _rank(
    snap: Snapshot,
    query: RecallQuery,
    settings: RecallSettings,
    vector: Floats,
    keyword: Keyword,
    stages: Stages,
    watch: _Watch,
) -> None:
    """Fuse the arms and score the candidates. One arm alone keeps its own order and scores."""
    known = 1.0 - min(max(query.unknown_share, 0.0), 1.0)
    # A model that cannot read the query must not outvote the words.
    weights = {"semantic": known, "graph": known}
    stages.fused = fuse(stages.arms, settings.rrf_k, weights)
    if len(set(query.arms)) == 1:
        alone = stages.arms.get(query.arms[0], Hits.none())
        stages.ranking = Ranking(alone.uids, alone.scores)
        watch.lap("fusion")
        return
    limit, heads = settings.candidates(query.budget), settings.neighbour_heads
    affordable = watch.left() / settings.late_seconds_each
    if affordable < limit + 4 * heads:
        stages.skipped.append("late interaction")
        limit, heads = max(1, min(limit, int(affordable))), 0
    if affordable <= 0:
        stages.ranking = Ranking(stages.fused.uids, stages.fused.scores)
        watch.lap("fusion")
        return
    uids = candidates(stages.fused, snap.columns, stages.allowed, limit, heads)
    watch.lap("fusion")
    if len(uids) == 0:
        return
    late = late_query(snap, query, int(np.count_nonzero(snap.without_echoes())), settings)
    speakers = snap.speaker_numbers(query.query)
    found = features(snap, uids, vector, late, keyword, speakers, stages.allowed, settings)
    watch.lap("late")
    lifted = boosts(snap.columns, uids, query.now, query.window, settings)
    final = score(found, blended(settings.weights, query.unknown_share)) * lifted.product()
    order = np.argsort(-final, kind="stable")
    ranked, final = uids[order], final[order]
    # What the fused list holds beyond the candidates still fills a large token budget, below all that was scored.
    rest = uids[np.minimum(np.searchsorted(uids, stages.fused.uids), len(uids) - 1)] != stages.fused.uids
    tail, shares = stages.fused.uids[rest], stages.fused.scores[rest]
    if len(tail):
        ranked = np.concatenate([ranked, tail])
        final = np.concatenate([final, final[-1] * shares / (shares[0] * 1.0001)])
    stages.ranking = Ranking(ranked, final, found, lifted, uids)
    watch.lap("rank")


def _cut(snap: Snapshot, query: RecallQuery, settings: RecallSettings, stages: Stages) -> None:
    """Drop what scores too low and, when observations are preferred, the facts they were built from; keep 2K."""
    ranking = stages.ranking
    floor = query.min_scores.get("final")
    keep = np.ones(len(ranking.uids), np.bool_)
    if floor is not None:
        keep = ranking.final >= floor
        stages.below = dict(zip(ranking.uids[~keep].tolist(), ranking.final[~keep].tolist(), strict=True))
    if query.prefer_observations:
        stages.spoken_for = _spoken_for(snap, ranking.uids[keep][: 2 * stages.k], settings)
        if stages.spoken_for:
            keep &= ~np.isin(ranking.uids, np.fromiter(stages.spoken_for, np.int64))
    ranking.uids, ranking.final = ranking.uids[keep][: 2 * stages.k], ranking.final[keep][: 2 * stages.k]


def _spoken_for(snap: Snapshot, uids: Ints, settings: RecallSettings) -> dict[int, int]:
    """Fact -> the best ranked observation built from it."""
    observations = uids[snap.columns.network[uids] == OBSERVATION][: settings.observations_checked]
    out: dict[int, int] = {}
    for observation in observations.tolist():
        _, others, kinds, _ = snap.edges(observation)
        for fact in others[kinds == EVIDENCE].tolist():
            if int(snap.columns.network[fact]) != OBSERVATION:
                out.setdefault(fact, observation)
    return out


def _select(snap: Snapshot, query: RecallQuery, stages: Stages, watch: _Watch) -> Selection:
    uids = stages.ranking.uids
    watch.lap("packing")

    def fetch(wanted: Sequence[int]) -> list[Body]:
        watch.lap("packing")
        bodies = snap.bodies(wanted)
        watch.lap("bodies")
        return bodies

    selection = select(uids, snap.columns.tokens[uids], query.max_tokens, fetch)
    watch.lap("packing")
    return selection

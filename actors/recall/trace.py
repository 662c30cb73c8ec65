"""The trace of a recall in the wire's shape, and `why_not`: the gate that dropped a unit somebody asks about."""

from __future__ import annotations

from typing import Any

import numpy as np

from recalld.actors.recall.arms import Hits
from recalld.actors.recall.filters import gates
from recalld.actors.recall.query import ARMS, RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Snapshot
from recalld.actors.recall.stages import Stages
from recalld.storage.isotime import iso
from recalld.storage.records import NETWORK_NAMES, UnitRecord

_REASONS = {
    "not live": "it was retired or invalidated",
    "as_of": "the bank did not hold it at the instant asked for",
    "valid_at": "its time does not cover the instant asked for",
    "network": "its type was not asked for",
    "echo": "it says what one of its sources says, and facts are allowed and observations not preferred",
    "tags": "its tags do not pass the filter",
}


def build(
    snap: Snapshot, query: RecallQuery, settings: RecallSettings, stages: Stages, timings: dict[str, float]
) -> dict[str, Any]:
    """Everything that happened, as plain data. Bodies are read for the best of each list only."""
    bodies = _bodies(snap, stages, settings.trace_bodies)
    visited = {visit.target for visit in stages.visits} | set(stages.seeds.tolist())
    reached = sum(len(hits.uids) for hits in stages.arms.values())
    return {
        "query": {
            "query_text": query.query,
            "query_embedding": np.frombuffer(query.vector, np.float32).tolist(),
            "timestamp": iso(query.now),
            "budget": query.budget,
            "max_tokens": query.max_tokens,
            "tags": list(query.tags) or None,
            "tags_match": query.tags_match,
            "temporal_constraint": None if query.window is None else [iso(query.window[0]), iso(query.window[1])],
        },
        "retrieval_results": [_arm(name, query, stages, bodies, settings) for name in ARMS],
        "rrf_merged": _merged(stages, bodies, settings),
        "reranked": _reranked(stages, bodies, settings),
        "entry_points": [
            {**_unit(uid, bodies), "similarity_score": score, "rank": rank}
            for rank, (uid, score) in enumerate(_seed_scores(stages), 1)
        ],
        "visits": [
            {
                "step": step,
                "hop": visit.hop,
                "from": _unit(visit.source, bodies)["id"],
                **_unit(visit.target, bodies),
                "link_type": visit.kind,
                "link_weight": visit.weight,
                "activation": visit.activation,
            }
            for step, visit in enumerate(stages.visits, 1)
        ],
        "summary": {
            "total_nodes_visited": len(visited) or reached,
            "entry_points_found": len(stages.seeds),
            "budget_used": len(visited),
            "budget_remaining": max(0, stages.k - len(visited)),
            "total_duration_seconds": timings["total"] / 1000.0,
            "results_returned": len(stages.selection.places),
            "phase_metrics": [
                {"phase_name": part, "duration_seconds": spent / 1000.0, "details": {}}
                for part, spent in timings.items()
                if part != "total"
            ],
            "degraded": list(stages.skipped),
            "reranked": False,
        },
        "final_results": [
            {**_unit(body.record.uid, bodies), "rank": rank, "final_score": float(stages.ranking.final[place])}
            for rank, (place, body) in enumerate(
                zip(stages.selection.places.tolist(), stages.selection.bodies, strict=True), 1
            )
        ],
        "why_not": {unit_id: why_not(snap, query, settings, stages, unit_id) for unit_id in query.why_not},
    }


def why_not(
    snap: Snapshot, query: RecallQuery, settings: RecallSettings, stages: Stages, unit_id: str
) -> dict[str, Any]:
    """`{gate, reason, ...}` for one unit: the first gate that dropped it, or `returned` with its rank."""
    uid = snap.uid_of(unit_id)
    if uid is None or not 0 <= uid < snap.n:
        return _gate("unknown id", "this bank never held a unit with this id")
    if not bool(snap.columns.exists[uid]):
        return _gate("erased", "it was erased")
    for gate, mask in gates(snap, query, settings):
        if not bool(mask[uid]):
            return _gate(gate, _REASONS[gate])
    found = {name: rank for name, hits in stages.arms.items() if (rank := _rank_in(hits, uid)) is not None}
    extra: dict[str, Any] = {"arms": found}
    for rank, body in enumerate(stages.selection.bodies, 1):
        if body.record.uid == uid:
            return {
                **_gate("returned", f"it was returned at rank {rank}"),
                "rank": rank,
                **extra,
                **_parts(stages, uid),
            }
    if uid in stages.below:
        extra["final"] = stages.below[uid]
        return {**_gate("min_scores", "its final score is below the one asked for"), **extra, **_parts(stages, uid)}
    if uid in stages.spoken_for:
        other = _id_of(snap, stages.spoken_for[uid])
        return {**_gate("observation", "an observation built from it stands in its place"), "by": other, **extra}
    places = np.flatnonzero(stages.ranking.uids == uid)
    if len(places) == 0:
        if stages.ranking.feature_place(uid) is not None:
            return {**_gate("candidate limit", "it came behind the number of results a recall keeps"), **extra}
        if found:
            return {**_gate("candidate limit", "the fused list was cut before its rank"), **extra}
        return {**_gate("no arm", "no arm found it, and it is no neighbour of what they found"), **extra}
    place = int(places[0])
    if (speaker := stages.selection.duplicates.get(place)) is not None:
        return {**_gate("duplicate", "the same claim stands higher"), "by": _id_of(snap, speaker), **extra}
    needed = int(snap.columns.tokens[uid])
    reason = f"its {needed} tokens did not fit what was left of max_tokens"
    return {**_gate("max_tokens", reason), "rank": place + 1, "tokens": needed, **extra, **_parts(stages, uid)}


def _gate(gate: str, reason: str) -> dict[str, Any]:
    return {"gate": gate, "reason": reason}


def _parts(stages: Stages, uid: int) -> dict[str, Any]:
    """What the score of a scored unit was made of."""
    ranking = stages.ranking
    at = ranking.feature_place(uid)
    if at is None or ranking.features is None or ranking.boosts is None:
        return {}
    return {
        "features": {name: float(values[at]) for name, values in ranking.features._asdict().items()},
        "boosts": {name: float(values[at]) for name, values in ranking.boosts._asdict().items()},
    }


def _rank_in(hits: Hits, uid: int) -> int | None:
    places = np.flatnonzero(hits.uids == uid)
    return int(places[0]) + 1 if len(places) else None


def _id_of(snap: Snapshot, uid: int) -> str | None:
    found = snap.units([uid])
    return found[0].id if found else None


def _bodies(snap: Snapshot, stages: Stages, limit: int) -> dict[int, UnitRecord]:
    known = {body.record.uid: body.record for body in stages.selection.bodies}
    wanted = [uid for hits in stages.arms.values() for uid in hits.uids[:limit].tolist()]
    wanted += stages.fused.uids[:limit].tolist() + stages.ranking.uids[:limit].tolist() + stages.seeds.tolist()
    for visit in stages.visits:
        wanted += [visit.source, visit.target]
    missing = [uid for uid in dict.fromkeys(wanted) if uid not in known]
    known.update((body.uid, body) for body in snap.units(missing))
    return known


def _unit(uid: int, bodies: dict[int, UnitRecord]) -> dict[str, Any]:
    body = bodies.get(uid)
    return {
        "id": body.id if body else None,
        "text": body.text if body else None,
        "type": NETWORK_NAMES[body.network] if body else None,
    }


def _arm(
    name: str, query: RecallQuery, stages: Stages, bodies: dict[int, UnitRecord], settings: RecallSettings
) -> dict[str, Any]:
    hits = stages.arms.get(name)
    metadata: dict[str, Any] = {"status": _status(name, query, stages)}
    if name in stages.failed:
        metadata["error"] = stages.failed[name]
    if name == "keyword":
        metadata["terms"] = list(stages.terms)
    if hits is not None:
        metadata["found"] = len(hits.uids)
        hits = Hits(hits.uids[: settings.trace_bodies], hits.scores[: settings.trace_bodies])
    return {
        "method_name": name,
        "fact_type": "all",
        "results": [
            {**_unit(uid, bodies), "rank": rank, "score": score} for rank, (uid, score) in enumerate(_pairs(hits), 1)
        ],
        "duration_seconds": stages.seconds.get(name, 0.0),
        "metadata": metadata,
    }


def _status(name: str, query: RecallQuery, stages: Stages) -> str:
    if name in stages.failed:
        return "failed"
    if name in stages.skipped:
        return "skipped: deadline"
    if name not in query.arms:
        return "off"
    return "ok" if name in stages.arms else "not needed"


def _pairs(hits: Hits | None) -> list[tuple[int, float]]:
    return [] if hits is None else list(zip(hits.uids.tolist(), hits.scores.tolist(), strict=True))


def _seed_scores(stages: Stages) -> list[tuple[int, float]]:
    graph = dict(_pairs(stages.arms.get("graph")))
    return [(uid, graph.get(uid, 0.0)) for uid in stages.seeds.tolist()]


def _merged(stages: Stages, bodies: dict[int, UnitRecord], settings: RecallSettings) -> list[dict[str, Any]]:
    out = []
    for rank, (uid, score) in enumerate(_pairs(Hits(*stages.fused))[: settings.trace_bodies], 1):
        ranks = {name: at for name, hits in stages.arms.items() if (at := _rank_in(hits, uid)) is not None}
        out.append({**_unit(uid, bodies), "rank": rank, "rrf_score": score, "source_ranks": ranks})
    return out


def _reranked(stages: Stages, bodies: dict[int, UnitRecord], settings: RecallSettings) -> list[dict[str, Any]]:
    fused = {uid: rank for rank, uid in enumerate(stages.fused.uids.tolist(), 1)}
    pairs = _pairs(Hits(stages.ranking.uids, stages.ranking.final))[: settings.trace_bodies]
    return [
        {
            **_unit(uid, bodies),
            "rerank_rank": rank,
            "rerank_score": score,
            "rrf_rank": fused.get(uid),
            "score_components": _parts(stages, uid),
        }
        for rank, (uid, score) in enumerate(pairs, 1)
    ]

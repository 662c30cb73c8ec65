"""What a consolidation asks of a bank's shard: which facts are next, and what stands near them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.consolidate.scopes import claimed_by, fits, in_force, usable
from recalld.actors.reads_shape import cut, page
from recalld.actors.recall import engine
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import keys
from recalld.storage.analysis import query_terms
from recalld.storage.consolidation import FACTS, built_on, counts, members, state_of
from recalld.storage.partition import Partition
from recalld.storage.records import OBSERVATION, UnitRecord
from recalld.storage.snapshot import Snapshot
from recalld.storage.vector_rows import token_ids_of, unpack_tokens, unpack_vectors

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

NEAR_FACTS = 12
NEAR_FLOOR = 0.6
"""Cosine under which two facts are never looked at as one claim."""
RELATED_TOKENS = 512


def consolidation_plan(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """The next facts, oldest first, with the scopes each is asked for, and how many are left behind them.

    `scopes`: only facts that carry every tag of one of them.
    """
    with partition.read(tenant, bank_id) as snap:
        mask = due_mask(snap, params["now"])
        if params.get("scopes") is not None:
            mask &= _carrying(snap, params["scopes"])
        after = params.get("after", -1)
        mask[: after + 1] = False
        uids = np.flatnonzero(mask)
        asked: dict[int, Any] = {}
        facts = []
        for unit in snap.units(uids[: params["limit"]].tolist()):
            if unit.document not in asked:
                document = snap.document(unit.document)
                asked[unit.document] = None if document is None else document.params.get("observation_scopes")
            facts.append({**fact_of(snap, unit), "scopes": asked[unit.document]})
        return {
            "facts": facts,
            "left": max(0, len(uids) - len(facts)),
            "overrides": dict(snap.record.overrides),
        }


def due_mask(snap: Snapshot, now: int) -> Bools:
    """bool[n]: current facts that are pending, and those that failed and may be tried again."""
    columns = snap.columns
    mask: Bools = columns.live & np.isin(columns.network, FACTS)
    for uid in members(snap.txn, snap.bank, keys.SET_CONSOLIDATED):
        if uid < snap.n:
            mask[uid] = False
    for uid in members(snap.txn, snap.bank, keys.SET_FAILED):
        if uid < snap.n and (state_of(snap.txn, snap.bank, uid).next_at or 0) > now:
            mask[uid] = False
    return mask


def _carrying(snap: Snapshot, scopes: Iterable[Sequence[str]]) -> Bools:
    mask = np.zeros(snap.n, np.bool_)
    for scope in scopes:
        carrying = np.ones(snap.n, np.bool_)
        for tag in scope:
            carrying &= snap.tag_mask(tag)
        mask |= carrying
    return mask


def fact_of(snap: Snapshot, unit: UnitRecord) -> dict[str, Any]:
    """A fact as the consolidator sees it."""
    labels = (snap.entity_label(number) for number in unit.entities)
    return {
        "uid": unit.uid,
        "id": unit.id,
        "text": unit.text,
        "context": unit.context,
        "network": unit.network,
        "tags": unit.tags,
        "entities": tuple(unit.entities),
        "names": tuple(label[1] for label in labels if label is not None),
        "speaker": unit.speaker,
        "occurred_start": unit.occurred_start,
        "occurred_end": unit.occurred_end,
        "mentioned_at": unit.mentioned_at,
        "recorded_at": unit.recorded_at,
        "subject": unit.subject,
        "attribute": unit.attribute,
        "value": unit.value,
        "polarity": unit.polarity,
        "question": bool(snap.columns.question[unit.uid]) if unit.uid < snap.n else False,
        "trust": unit.trust,
        "document": unit.document,
        "tokens": unit.tokens,
    }


# -- what stands near some facts -------------------------------------------------------------------------------------


def consolidation_context(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """What stands near some facts (`uids`) in one scope.

    For rules: `pairs` of the facts, and of facts with sources of observations of the scope, as (uid, uid, cosine,
    late interaction); `observations` and `sources` are those. For a model (`tokens` > 0): `observations` that a recall
    with each fact finds, with their `sources`. `gone` are facts that are not current any more, or are done meanwhile.
    """
    with partition.read(tenant, bank_id) as snap:
        settled = members(snap.txn, snap.bank, keys.SET_CONSOLIDATED)
        uids = [uid for uid in params["uids"] if uid < snap.n and snap.columns.live[uid] and uid not in settled]
        scope = frozenset(params["scope"])
        pairs: list[tuple[int, int, float, float]] = []
        if params.get("tokens"):
            found = _recalled(snap, uids, scope, params["tokens"])
        else:
            pairs, found = _near(snap, uids, scope)
        observations = []
        sources: dict[int, dict[str, Any]] = {}
        for unit in snap.units(found):
            observations.append({"uid": unit.uid, "id": unit.id, "text": unit.text, "sources": tuple(unit.sources)})
            for source in snap.units(unit.sources):
                sources.setdefault(source.uid, fact_of(snap, source))
        return {
            "gone": [uid for uid in params["uids"] if uid not in set(uids)],
            "pairs": pairs,
            "observations": observations,
            "sources": list(sources.values()),
        }


def _vector(snap: Snapshot, uid: int) -> Floats:
    codes, scales = unpack_vectors(bytes(snap.vector_row(uid)))
    if not len(codes):
        return np.zeros(max(1, snap.dim), np.float32)
    mean: Floats = (codes.astype(np.float32) * scales[:, None]).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length else mean


def _tokens(snap: Snapshot, uid: int) -> Floats:
    rows = unpack_tokens(bytes(snap.token_row(uid))).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    found: Floats = rows / lengths
    return found


def likeness(one: Floats, other: Floats) -> float:
    """How well the tokens of two texts answer each other, both ways: 0 to 1."""
    if not len(one) or not len(other):
        return 0.0
    met = one @ other.T
    return float(met.max(axis=1).mean() + met.max(axis=0).mean()) / 2


def _near(
    snap: Snapshot, uids: Sequence[int], scope: frozenset[str]
) -> tuple[list[tuple[int, int, float, float]], list[int]]:
    """Pairs that may be one claim, and the observations of the scope that stand on facts among them."""
    held = {uid: _vector(snap, uid) for uid in uids}
    words = {uid: _tokens(snap, uid) for uid in uids}
    pairs = []
    if held:
        matrix = np.stack(list(held.values()))
        cosines = matrix @ matrix.T
        for i, j in zip(*np.nonzero(np.triu(cosines, 1) >= NEAR_FLOOR), strict=True):
            one, other = uids[int(i)], uids[int(j)]
            pairs.append((one, other, float(cosines[i, j]), likeness(words[one], words[other])))
    settled = members(snap.txn, snap.bank, keys.SET_CONSOLIDATED)
    allowed = np.zeros(snap.n, np.bool_)
    known = np.array([uid for uid in settled if uid < snap.n and uid not in held], np.int64)
    allowed[known] = True
    in_scope = snap.tagset_mask(scope) & snap.columns.live & (snap.columns.network == OBSERVATION)
    found: dict[int, None] = {}
    built: dict[int, list[int]] = {}
    if len(known) and in_scope.any():
        for uid in uids:
            others, cosines_to = snap.semantic(held[uid], NEAR_FACTS, allowed, NEAR_FLOOR)
            for other, cosine in zip(others.tolist(), cosines_to.tolist(), strict=True):
                if other not in built:
                    on = built_on(snap.txn, snap.bank, other)
                    built[other] = [one for one in on if one < snap.n and in_scope[one]]
                if built[other]:
                    if other not in words:
                        words[other] = _tokens(snap, other)
                    pairs.append((uid, other, float(cosine), likeness(words[uid], words[other])))
                    found.update(dict.fromkeys(built[other]))
    return pairs, list(found)


def _recalled(snap: Snapshot, uids: Sequence[int], scope: frozenset[str], tokens: int) -> list[int]:
    """uids of the observations of a scope that a low-budget recall with each fact's own text finds, best first."""
    found: dict[int, None] = {}
    texts = {unit.uid: unit.text for unit in snap.units(list(uids))}
    for uid in uids:
        row = bytes(snap.token_row(uid))
        query = RecallQuery(
            tenant=snap.record.tenant,
            bank_id=snap.record.bank_id,
            query=texts.get(uid, ""),
            vector=_vector(snap, uid).astype("<f4").tobytes(),
            token_vectors=_tokens(snap, uid).astype("<f4").tobytes(),
            token_ids=tuple(token_ids_of(row)),
            terms=query_terms(texts.get(uid, "")),
            types=(OBSERVATION,),
            budget="low",
            max_tokens=tokens,
            tags=tuple(sorted(scope)),
            tags_match="exact",
            include_entities=False,
            arms=("semantic", "keyword", "graph"),
        )
        for result in engine.recall(snap, query, RecallSettings()).results:
            one = snap.uid_of(result["id"])
            if one is not None:
                found.setdefault(one)
    return list(found)


def twins(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[list[Any]]:
    """For each of some new texts (`vectors`, f32): [uid, id, text, sources, cosine] of observations of the scope that
    lie above `floor`, the five nearest, `without` left out."""
    with partition.read(tenant, bank_id) as snap:
        allowed = snap.tagset_mask(frozenset(params["scope"])) & snap.columns.live
        allowed &= snap.columns.network == OBSERVATION
        out: list[list[Any]] = []
        for vector, without in zip(params["vectors"], params["without"], strict=True):
            uids, cosines = snap.semantic(np.frombuffer(vector, "<f4"), 5 + len(without), allowed, params["floor"])
            near = dict(zip(uids.tolist(), cosines.tolist(), strict=True))
            units = snap.units([uid for uid in near if uid not in without][:5])
            out.append([[one.uid, one.id, one.text, tuple(one.sources), near[one.uid]] for one in units])
        return out


# -- listings --------------------------------------------------------------------------------------------------------


def _scope_counts(snap: Snapshot) -> dict[tuple[str, ...], int]:
    columns = snap.columns
    found: dict[tuple[str, ...], int] = {}
    for body in snap.units(np.flatnonzero(columns.live & (columns.network == OBSERVATION)).tolist()):
        found[body.tags] = found.get(body.tags, 0) + 1
    return found


def observation_scopes(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Distinct tag sets among observations, fullest first."""
    with partition.read(tenant, bank_id) as snap:
        found = _scope_counts(snap)
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [{"tags": list(tags), "count": count} for tags, count in ordered]
    shown = page(list(cut(rows, params["limit"], params["offset"])), len(rows), params["limit"], params["offset"])
    return {"scopes": shown.pop("items"), **shown}


def strategies_preview(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Which of the scopes that have observations each of some strategies would claim."""
    strategies, most = params["strategies"], params["sample_limit"]
    with partition.read(tenant, bank_id) as snap:
        scopes = _scope_counts(snap)
    ordered = sorted(scopes, key=lambda one: (-scopes[one], one))
    handled = {scope: claimed_by(scope, strategies) for scope in ordered}

    def samples(chosen: list[tuple[str, ...]]) -> list[dict[str, Any]]:
        return [{"tags": list(one), "count": scopes[one], "handled_by": handled[one]} for one in chosen[:most]]

    rows = []
    for index, strategy in enumerate(strategies):
        rules = []
        for pattern in strategy.get("scopes") or ():
            matching = [one for one in ordered if usable(pattern) and fits(set(one), pattern)]
            earlier = [one for one in matching if (by := handled[one]) is not None and by < index]
            rules.append(
                {
                    "match_count": len(matching),
                    "taken_count": len(earlier),
                    "observation_count": sum(scopes[one] for one in matching),
                    "samples": samples(matching),
                }
            )
        claimed = sum(by == index for by in handled.values())
        rows.append({"active": in_force(strategy), "claimed_count": claimed, "rules": rules})
    free = [one for one in ordered if handled[one] is None]
    return {
        "strategies": rows,
        "default": {
            "match_count": len(free),
            "observation_count": sum(scopes[one] for one in free),
            "samples": samples(free),
        },
        "scopes_scanned": len(scopes),
        "complete": True,
    }


def observation_uids(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[int]:
    """Every observation that exists, live or ended."""
    with partition.read(tenant, bank_id) as snap:
        columns = snap.columns
        found: list[int] = np.flatnonzero(columns.exists & (columns.network == OBSERVATION)).tolist()
    return found


def banks_pending(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """The banks of a partition, of whatever tenant, that have facts to consolidate; asked of every partition."""
    found = []
    for record, counters in partition.banks():
        with partition.environment.read() as txn:
            pending, failed = counts(txn, record.number, counters)
        if pending > 0 or failed > 0:
            found.append({"tenant": record.tenant, "bank_id": record.bank_id, "overrides": dict(record.overrides)})
    return found


CONSOLIDATION_READS: dict[str, Callable[[Partition, str, str, dict[str, Any]], Any]] = {
    "observation_uids": observation_uids,
    "banks_pending": banks_pending,
    "consolidation_plan": consolidation_plan,
    "consolidation_context": consolidation_context,
    "near_observations": twins,
    "observation_scopes": observation_scopes,
    "strategies_preview": strategies_preview,
}

"""Bodies into the wire's shape: results, and the entities, chunks and source facts that go with them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from recalld.actors.recall.arms import Hits
from recalld.actors.recall.filters import OneThing, has_tag_filter, tags_pass
from recalld.actors.recall.packing import cut_to_tokens, estimate_tokens
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Floats, Ints, Snapshot
from recalld.actors.recall.stages import Stages
from recalld.storage.bodies import Body
from recalld.storage.isotime import iso
from recalld.storage.records import NETWORK_NAMES, OBSERVATION, OPINION, UnitRecord

_BATCH = 50
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SHOWN_ARMS = ("semantic", "keyword")
_NOT_RANKED = {"entities": None, "source_fact_ids": None, "scores": None}

Names = dict[int, tuple[str, str]]
"""Entity number -> (id, name)."""


def results(snap: Snapshot, query: RecallQuery, stages: Stages, names: Names, sources: dict[int, list[str]]) -> bytes:
    """The packed units as a JSON list of `RecallResult`, best first; an opinion has its `confidence` besides, under
    `as_of` the one it was held with then.

    `sources` are the ids of the facts shown for an observation's uid.
    """
    uids = np.array([body.record.uid for body in stages.selection.bodies], np.int64)
    finals = _numbers(stages.ranking.final[stages.selection.places])
    semantic, keyword = (_numbers(_scores_of(uids, *stages.arms.get(arm, Hits.none()))) for arm in _SHOWN_ARMS)
    late = _numbers(_late_scores(stages, uids))
    labels = {number: _json(name) for number, (_, name) in names.items()}
    out = []
    for place, body in enumerate(stages.selection.bodies):
        record = body.record
        shown = body.shown
        if shown is None:
            # What a recall cannot change: the rest goes behind it, in place of the closing brace.
            shown = body.shown = _json(as_result(record))[:-1]
        if query.as_of is not None and record.network == OPINION:
            then = snap.confidence_at(record, query.as_of)
            shown = _json({**as_result(record), "confidence": then})[:-1]
        named = "null"
        if query.include_entities:
            named = f"[{','.join([labels[number] for number in record.entities if number in labels])}]"
        shown_sources = _json(sources[record.uid]) if record.uid in sources else "null"
        out.append(
            f'{shown},"entities":{named},"source_fact_ids":{shown_sources},"scores":{{"final":{finals[place]},'
            f'"reranker":null,"semantic":{semantic[place]},"keyword":{keyword[place]},"late":{late[place]}}}}}'
        )
    return f"[{','.join(out)}]".encode()


def _numbers(values: Floats) -> list[str]:
    """Scores as JSON, to six decimals; one that is not known or not finite is null."""
    if len(values) == 0:
        return []
    rounded = np.round(values.astype(np.float64), 6)
    rounded[~np.isfinite(rounded)] = np.nan
    return _json(rounded.tolist())[1:-1].replace("NaN", "null").split(",")


def _scores_of(uids: Ints, found: Ints, scores: Floats) -> Floats:
    """The score of each uid among what was found, NaN for one that was not."""
    if len(found) == 0:
        return np.full(len(uids), np.nan, np.float32)
    order = np.argsort(found)
    places = order[np.minimum(np.searchsorted(found, uids, sorter=order), len(found) - 1)]
    return np.where(found[places] == uids, scores[places], np.float32(np.nan))


def as_result(record: UnitRecord) -> dict[str, Any]:
    """What a `RecallResult` says of a unit whoever asks: None where nothing is known."""
    result: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "type": NETWORK_NAMES[record.network],
        "context": record.context or None,
        "occurred_start": iso(record.occurred_start),
        "occurred_end": iso(record.occurred_end),
        "mentioned_at": iso(record.mentioned_at),
        "document_id": record.document_id,
        "metadata": record.metadata,
        "chunk_id": None if record.network == OBSERVATION else record.chunk_id,
        "tags": record.tags,
        "attachments": None,
        "trust": record.trust,
        "risks": record.risks,
    }
    if record.network == OPINION:
        result["confidence"] = record.confidence
    return result


def _late_scores(stages: Stages, uids: Ints) -> Floats:
    """Late interaction scores of the units that were scored."""
    ranking = stages.ranking
    if ranking.features is None:
        return np.full(len(uids), np.nan, np.float32)
    return _scores_of(uids, ranking.scored, ranking.features.maxsim)


def entities(query: RecallQuery, names: Names) -> dict[str, Any] | None:
    """Name -> entity of the entities on the results, best result first, until their token budget is spent."""
    if not query.include_entities:
        return None
    out: dict[str, Any] = {}
    left = query.entity_tokens
    for identity, name in names.values():
        left -= estimate_tokens(name)
        if left < 0:
            break
        if name not in out:
            out[name] = {"entity_id": identity, "canonical_name": name, "observations": []}
    return out or None


def entity_names(snap: Snapshot, query: RecallQuery, bodies: list[Body]) -> Names:
    """The entities of the bodies, in the order the bodies name them; none when they were not asked for."""
    if not query.include_entities:
        return {}
    numbers = dict.fromkeys(number for body in bodies for number in body.record.entities)
    found = ((number, snap.entity_label(number)) for number in numbers)
    return {number: label for number, label in found if label is not None}


def chunks(snap: Snapshot, query: RecallQuery, stages: Stages, settings: RecallSettings) -> dict[str, Any] | None:
    """Chunk id -> chunk, of the ranked units in their order (not only of the returned ones), whole until the budget is
    spent; the last one is cut. An observation gives its sources' chunks. Under a tag filter a chunk is shown only when
    its document passes it too."""
    if not query.include_chunks or query.chunk_tokens <= 0:
        return None
    out: dict[str, Any] = {}
    passed: dict[int, bool] = {}
    left = query.chunk_tokens
    uids = stages.ranking.uids
    for start in range(0, len(uids), _BATCH):
        for body in _with_sources(snap, [int(uid) for uid in uids[start : start + _BATCH]]):
            if not body.document or body.chunk_id is None or body.chunk_id in out:
                continue
            if not _document_passes(snap, query, settings, body.document, passed):
                continue
            chunk = snap.chunk(body.document, body.chunk_index)
            if chunk is None or not chunk.text:  # its text was not kept
                continue
            size = estimate_tokens(chunk.text)
            text = chunk.text if size <= left else cut_to_tokens(chunk.text, left)
            out[body.chunk_id] = {
                "id": body.chunk_id,
                "text": text,
                "chunk_index": chunk.index,
                "truncated": size > left,
                "attachments": None,
            }
            left -= size
            if left <= 0:
                return out
    return out or None


def _with_sources(snap: Snapshot, uids: list[int]) -> list[UnitRecord]:
    """The units' bodies, each observation replaced by the facts it was built from."""
    out: list[UnitRecord] = []
    for body in snap.units(uids):
        out.extend(snap.units(body.sources) if body.network == OBSERVATION and body.sources else [body])
    return out


def _document_passes(
    snap: Snapshot, query: RecallQuery, settings: RecallSettings, number: int, passed: dict[int, bool]
) -> bool:
    if not has_tag_filter(query):
        return True
    if number not in passed:
        document = snap.document(number)
        tags = frozenset(document.tags) if document is not None else frozenset()
        passed[number] = document is not None and bool(tags_pass(OneThing(tags), query, settings)[0])
    return passed[number]


class Sources(NamedTuple):
    """Fact id -> fact, whether any was left out, and the ids shown for each observation's uid."""

    facts: dict[str, Any] | None
    truncated: bool | None
    shown: dict[int, list[str]]


def source_facts(snap: Snapshot, query: RecallQuery, stages: Stages, settings: RecallSettings) -> Sources:
    """The facts the returned observations were built from, within the budget of all and of each observation (a
    negative budget is none). All None unless asked for. A fact that fails the tag filter is not shown."""
    if not query.include_source_facts:
        return Sources(None, None, {})
    facts: dict[str, Any] = {}
    shown: dict[int, list[str]] = {}
    truncated = False
    left = query.source_tokens if query.source_tokens >= 0 else None
    for body in (kept.record for kept in stages.selection.bodies):
        if body.network != OBSERVATION:
            continue
        mine = shown.setdefault(body.uid, [])
        each = query.source_tokens_each if query.source_tokens_each >= 0 else None
        for fact in snap.units([uid for uid in body.sources if bool(snap.columns.exists[uid])]):
            if has_tag_filter(query) and not tags_pass(OneThing(frozenset(fact.tags)), query, settings)[0]:
                continue
            cost = max(1, fact.tokens)
            if fact.id not in facts:
                if (left is not None and cost > left) or (each is not None and cost > each):
                    truncated = True
                    continue
                left = None if left is None else left - cost
                each = None if each is None else each - cost
                facts[fact.id] = {**as_result(fact), **_NOT_RANKED}
            mine.append(fact.id)
    return Sources(facts or None, truncated, shown)

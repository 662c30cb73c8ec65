"""Reads of opinions: the filtered list, one with its history, and the texts of pairs that a model is to judge."""

from __future__ import annotations

from typing import Any

import numpy as np

from recalld.actors.opinions.holders import AGENT, holder_of
from recalld.actors.opinions.rules import judge as by_rules
from recalld.actors.reads_shape import cut, page
from recalld.actors.retain.plan import day
from recalld.storage import beliefs
from recalld.storage.beliefs import HAND, RETAIN, SET, BeliefEvent
from recalld.storage.errors import NotFound
from recalld.storage.isotime import iso
from recalld.storage.names import folded
from recalld.storage.partition import Partition
from recalld.storage.records import OPINION, RETIRED, VALID, UnitRecord
from recalld.storage.snapshot import Snapshot

ACTIVE, REPLACED = "active", "replaced"
STATES = (ACTIVE, RETIRED, "invalidated", "superseded", REPLACED)
SHOWN = (ACTIVE, RETIRED)
"""States that a list without `state` shows."""

Params = dict[str, Any]


def state_of(unit: UnitRecord, as_of: int | None = None) -> str:
    """The state of an opinion, now or at an instant."""
    if unit.retired_at is None or (as_of is not None and unit.retired_at > as_of):
        return ACTIVE
    return REPLACED if unit.state == VALID else unit.state


def list_opinions(partition: Partition, tenant: str, bank_id: str, params: Params) -> dict[str, Any]:
    """A page of opinions, the surest first. `as_of`: as they stood, and as surely as they were held, at that instant.

    Raises `BankNotFound`.
    """
    as_of = params.get("as_of")
    wanted = (params["state"],) if params.get("state") else SHOWN
    holder, q = params.get("holder"), params.get("q")
    least = params.get("min_confidence")
    with partition.read(tenant, bank_id) as snap:
        columns = snap.columns
        mask = columns.exists & (columns.network == OPINION)
        if as_of is not None:
            mask &= columns.recorded <= as_of
        found: list[tuple[float, UnitRecord]] = []
        for body in snap.bodies(np.flatnonzero(mask).tolist()):
            unit = body.record
            if state_of(unit, as_of) not in wanted:
                continue
            if holder is not None and folded(holder_of(unit.speaker)) != folded(holder or AGENT):
                continue
            if q and folded(q) not in folded(unit.text):
                continue
            confidence = beliefs.confidence_at(snap.txn, snap.bank, unit, as_of)
            if least is not None and (confidence or 0.0) < least:
                continue
            found.append((confidence or 0.0, unit))
        found.sort(key=lambda pair: (-pair[0], -pair[1].updated_at, -pair[1].uid))
        chosen = cut(found, params["limit"], params["offset"])
        items = [_item(snap, unit, confidence, as_of) for confidence, unit in chosen]
    return page(items, len(found), params["limit"], params["offset"])


def _item(snap: Snapshot, unit: UnitRecord, confidence: float, as_of: int | None) -> dict[str, Any]:
    events = [one for one in beliefs.events(snap.txn, snap.bank, unit.id) if one.counts(as_of)]
    latest = [one.at for one in events]
    return {
        "id": unit.id,
        "text": unit.text,
        "holder": holder_of(unit.speaker),
        "confidence": confidence,
        "evidence_for": _evidence(snap, events, 1),
        "evidence_against": _evidence(snap, events, -1),
        "entities": [label[1] for number in unit.entities if (label := snap.entity_label(number)) is not None],
        "tags": list(unit.tags),
        "created_at": iso(unit.recorded_at),
        "updated_at": iso(unit.updated_at if as_of is None else max([unit.recorded_at, *latest])),
        "state": state_of(unit, as_of),
        "state_reason": unit.reason or None if state_of(unit, as_of) != ACTIVE else None,
    }


def _evidence(snap: Snapshot, events: list[BeliefEvent], sign: int) -> list[dict[str, Any]]:
    """Evidence for (1) or against (-1), in the order it came."""
    out = []
    for event in events:
        direction = beliefs.STEPS.get(event.judgement, 0.0)
        if not event.unit or direction * sign <= 0:
            continue
        uid = snap.uid_of(event.unit)
        unit = None if uid is None else snap.unit(uid)
        if unit is None:
            continue
        out.append(
            {
                "id": event.unit,
                "text": unit.text,
                "judgement": event.judgement,
                "reason": event.reason or None,
                "by": event.by,
                "change": event.change,
                "date": iso(unit.occurred_start if unit.occurred_start is not None else unit.mentioned_at),
                "judged_at": iso(event.at),
            }
        )
    return out


def get_opinion(partition: Partition, tenant: str, bank_id: str, params: Params) -> dict[str, Any]:
    """One opinion. Raises `BankNotFound`, `NotFound`."""
    with partition.read(tenant, bank_id) as snap:
        unit = _opinion(snap, params["opinion_id"])
        return _item(snap, unit, unit.confidence or 0.0, None)


def _opinion(snap: Snapshot, opinion_id: str) -> UnitRecord:
    uid = snap.uid_of(opinion_id)
    unit = None if uid is None else snap.unit(uid)
    if unit is None or unit.network != OPINION:
        raise NotFound(f"Opinion '{opinion_id}' not found")
    return unit


def opinion_history(partition: Partition, tenant: str, bank_id: str, params: Params) -> dict[str, Any]:
    """How an opinion came to be as sure as it is, the oldest step first. Raises `BankNotFound`, `NotFound`.

    The confidences are the replay of what counts now: erased evidence is not there, withdrawn evidence is shown and
    counts for nothing.
    """
    with partition.read(tenant, bank_id) as snap:
        unit = _opinion(snap, params["opinion_id"])
        held = beliefs.belief(snap.txn, snap.bank, unit.id)
        confidence = (unit.confidence or 0.0) if held is None else beliefs.within(held.base)
        items = [_step("formed", unit.recorded_at, confidence, by=RETAIN if held is None else held.made_by)]
        for event in beliefs.events(snap.txn, snap.bank, unit.id):
            if event.counts(None):
                confidence = beliefs.step(confidence, event)
            items.append(
                _step(
                    event.judgement,
                    event.at,
                    confidence,
                    by=event.by,
                    change=event.change if event.judgement != SET else None,
                    unit_id=event.unit or None,
                    reason=event.reason or None,
                    withdrawn_at=event.withdrawn_at,
                )
            )
        state = state_of(unit)
        if state != ACTIVE and unit.retired_at is not None:
            by = "rules" if unit.reason == beliefs.BELOW_FLOOR else HAND
            items.append(_step(state, unit.retired_at, confidence, by=by, reason=unit.reason or None))
        return {
            "id": unit.id,
            "text": unit.text,
            "holder": holder_of(unit.speaker),
            "confidence": unit.confidence,
            "state": state,
            "items": items,
        }


def _step(
    what: str,
    at: int,
    confidence: float,
    *,
    by: str,
    change: float | None = None,
    unit_id: str | None = None,
    reason: str | None = None,
    withdrawn_at: int | None = None,
) -> dict[str, Any]:
    return {
        "what": what,
        "at": iso(at),
        "confidence": confidence,
        "change": change,
        "unit_id": unit_id,
        "reason": reason,
        "by": by,
        "withdrawn_at": iso(withdrawn_at),
    }


def belief_pairs(partition: Partition, tenant: str, bank_id: str, params: Params) -> dict[str, Any]:
    """The texts of (opinion id, unit id) pairs that are still to be judged; those that are gone are left out.

    `same` says that the unit is the opinion said again by its holder, which needs no model.
    """
    rows: list[dict[str, Any]] = []
    with partition.read(tenant, bank_id) as snap:
        for opinion_id, unit_id in params["pairs"]:
            found = [snap.uid_of(one) for one in (opinion_id, unit_id)]
            opinion, unit = (None if uid is None else snap.unit(uid) for uid in found)
            if opinion is None or unit is None or opinion.retired_at is not None:
                continue
            if beliefs.withdrawn(unit) is not None or beliefs.judged(snap.txn, snap.bank, opinion_id, unit_id):
                continue
            shared = set(opinion.entities) & set(unit.entities)
            labels = [label[1] for number in sorted(shared) if (label := snap.entity_label(number)) is not None]
            same = unit.network == OPINION and by_rules(opinion.text, unit.text).same
            rows.append(
                {
                    "opinion": opinion_id,
                    "unit": unit_id,
                    "opinion_text": opinion.text,
                    "unit_text": unit.text,
                    "holder": holder_of(opinion.speaker),
                    "speaker": unit.speaker,
                    "date": day(unit.occurred_start if unit.occurred_start is not None else unit.mentioned_at),
                    "shared": labels,
                    "same": same,
                }
            )
        return {"pairs": rows, "overrides": dict(snap.record.overrides)}

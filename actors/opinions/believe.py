"""What is believed changes inside a write: judgements are stored, opinions formed, joined, revised and retired.

Runs in the writer thread after the units are written, so evidence and what it moves are one commit.
"""

from __future__ import annotations

import dataclasses
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

from recalld.actors.banks import bank_record
from recalld.actors.messages import CommitRetain
from recalld.actors.opinions.evidence import BeliefSettings, Believing, Weighed
from recalld.actors.opinions.holders import same_holder
from recalld.actors.opinions.judge import BY_RULES
from recalld.actors.opinions.messages import JUDGE_KIND, CommitJudgements, CommitOpinions, Proposal, ReviseOpinion
from recalld.actors.retain.commit import bind_model, read_operation
from recalld.actors.retain.document_write import Similar
from recalld.actors.retain.outcome import audit_entries
from recalld.storage import beliefs, codec
from recalld.storage.apply import Applier
from recalld.storage.beliefs import CONTRADICT, HAND, NEUTRAL, REINFORCE, SET, WEAKEN
from recalld.storage.changes import (
    Audited,
    BeliefMove,
    BeliefsMoved,
    End,
    NewUnit,
    OperationStored,
    UnitsAdded,
    UnitsEnded,
    UnitsLinked,
    UnitsRestored,
)
from recalld.storage.errors import Conflict, NotFound
from recalld.storage.records import (
    COMPLETED,
    OPEN_STATES,
    OPINION,
    PENDING,
    RETIRED,
    SUPERSEDED,
    SUPERSEDES,
    OperationRecord,
    UnitRecord,
)

SAID_AGAIN = "the same opinion, held already"
_SPACE = uuid.UUID("5d0f9b1e-5f0b-4c0e-9f57-3f1f8f3f6b52")
_OPPOSITE = {REINFORCE: CONTRADICT, WEAKEN: REINFORCE, CONTRADICT: REINFORCE, NEUTRAL: NEUTRAL}


# -- with a retain ---------------------------------------------------------------------------------------------------


def believe(applier: Applier, ids: Mapping[str, str], write: CommitRetain, believing: Believing) -> str | None:
    """Carry out what a retain brings to opinions; with a model, store the operation that asks it, and give its id.

    `ids` maps each prepared unit to the one it became.
    """
    weighed = [
        dataclasses.replace(one, opinion=ids.get(one.opinion, one.opinion), unit=ids.get(one.unit, one.unit))
        for one in believing.weighed
    ]
    weighed = [one for one in weighed if one.opinion != one.unit]
    if not weighed:
        return None
    if not believing.judged:
        return _ask_later(applier, [one for one in weighed if _is_held(applier, one.opinion)], write)
    move(applier, believing.settings, weighed, write.now, BY_RULES)
    return None


def _is_held(applier: Applier, opinion: str) -> bool:
    record = applier.current(opinion)
    return record is not None and record.network == OPINION and record.retired_at is None


def move(applier: Applier, settings: BeliefSettings, weighed: list[Weighed], now: int, by: str) -> None:
    """Store judgements; an opinion that its holder states again joins the one that is held."""
    moves = tuple(BeliefMove(one.opinion, one.verdict, one.unit, one.reason) for one in weighed)
    applier.apply(BeliefsMoved(moves, now, settings.step, settings.floor, by))
    for one in weighed:
        if one.same and one.verdict == REINFORCE:
            _join(applier, one.opinion, one.unit, now)


def _join(applier: Applier, opinion: str, again: str, now: int) -> None:
    """`again` says what `opinion` says: it ends, as evidence of that one, and comes back should that one go."""
    held, twin = applier.current(opinion), applier.current(again)
    if held is None or twin is None or held.retired_at is not None or twin.retired_at is not None:
        return
    if twin.network != OPINION or held.tags != twin.tags or held.trust != twin.trust:
        return
    applier.apply(UnitsEnded((End(twin.uid, SUPERSEDED, SAID_AGAIN, held.id),), now))
    applier.apply(UnitsLinked(held.uid, ((twin.uid, 1.0),), SUPERSEDES, now))


def _ask_later(applier: Applier, weighed: list[Weighed], write: CommitRetain) -> str | None:
    pairs = [
        {"opinion": one.opinion, "unit": one.unit}
        for one in weighed
        if not beliefs.judged(applier.txn, applier.bank, one.opinion, one.unit)
    ]
    if not pairs:
        return None
    operation_id = str(uuid.uuid5(_SPACE, f"{applier.bank} {write.request_id}"))
    if read_operation(applier, operation_id) is not None:
        return None
    record = OperationRecord(operation_id, JUDGE_KIND, PENDING, write.now, write.now, items_count=len(pairs))
    applier.apply(OperationStored(record, zlib.compress(codec.pack(pairs), 3)))
    return operation_id


def commit_judgements(applier: Applier, request: CommitJudgements, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Store what a model judged, and that its operation is done. Raises `Conflict` when the operation is gone."""
    operation = read_operation(applier, request.operation_id)
    if operation is None or operation.status not in OPEN_STATES:
        raise Conflict("The operation has ended; its judgements were not stored.")
    settings = BeliefSettings.of_bank({**defaults, **bank_record(applier).overrides})
    weighed = [Weighed(*row) for row in request.judgements]
    weighed = [one for one in weighed if _is_held(applier, one.opinion) and applier.current(one.unit) is not None]
    if weighed:
        move(applier, settings, weighed, request.now, request.by)
        applier.touch(request.now)
    done = dataclasses.replace(
        operation,
        status=COMPLETED,
        updated_at=request.now,
        completed_at=request.now,
        next_retry_at=None,
        error=None,
        result={**operation.result, "judged": len(weighed)},
    )
    applier.apply(OperationStored(done, b""))
    return {"judged": len(weighed)}


# -- formed ----------------------------------------------------------------------------------------------------------


def commit_opinions(
    applier: Applier,
    request: CommitOpinions,
    similar: Similar,
    believing: Believing | None,
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    """Form opinions. One that its holder has already is moved by the evidence that is new to it, and by nothing else:
    to think a thing again proves nothing. What an existing opinion of the holder contradicts counts against that one.
    """
    bind_model(applier, request.model)
    settings = BeliefSettings.of_bank({**defaults, **bank_record(applier).overrides})
    now, by = request.now, request.made_by
    touched: dict[str, list[Weighed]] = {}
    for one in () if believing is None else believing.weighed:
        touched.setdefault(one.unit, []).append(one)
    out: list[dict[str, Any]] = []
    for proposal, unit in zip(request.proposals, request.units, strict=True):
        mine = [
            (record, one)
            for one in touched.get(unit.id, ())
            if (record := applier.current(one.opinion)) is not None
            and record.network == OPINION
            and record.retired_at is None
            and same_holder(record.speaker, unit.speaker)
            and record.tags == tuple(sorted(set(unit.tags)))
        ]
        agreeing = [(record, one) for record, one in mine if one.verdict == REINFORCE]
        held = next((record for record, one in agreeing if one.same), None) or next(
            (record for record, one in agreeing if one.alike), None
        )
        if held is not None:
            moves = _moves(held.id, proposal)
            before = held.confidence
            applier.apply(BeliefsMoved(moves, now, settings.step, settings.floor, by))
            after = applier.current(held.id)
            out.append({"id": held.id, "outcome": _outcome(before, after)})
            continue
        applier.apply(UnitsAdded((_new_unit(applier, unit, similar),), now))
        founds = tuple(dataclasses.replace(one, founds=True) for one in _moves(unit.id, proposal))
        applier.apply(BeliefsMoved(founds, now, settings.step, settings.floor, by, (unit.id,), request.made_by))
        told = {"opinion_id": unit.id, "confidence": unit.confidence, "by": by}
        applier.apply(Audited(audit_entries([("opinion_formed", told)], now, "", _transport(by)), 0))
        against = [record for record, one in mine if one.verdict == CONTRADICT]
        moves = tuple(
            dataclasses.replace(one, judgement=_OPPOSITE[one.judgement])
            for record in against
            for one in _moves(record.id, proposal)
        )
        if moves:
            applier.apply(BeliefsMoved(moves, now, settings.step, settings.floor, by))
        out.append({"id": unit.id, "outcome": "formed"})
    if out:
        applier.touch(now)
    return {"opinions": out}


def _moves(opinion: str, proposal: Proposal) -> tuple[BeliefMove, ...]:
    return tuple(
        BeliefMove(opinion, judgement, unit, reason or proposal.reason) for unit, judgement, reason in proposal.evidence
    )


def _outcome(before: float | None, after: UnitRecord | None) -> str:
    if after is None or before is None or after.confidence is None or after.confidence == before:
        return "unchanged"
    return "reinforced" if after.confidence > before else "moved"


def _transport(by: str) -> str:
    return "http" if by == HAND else "system"


def _new_unit(applier: Applier, unit: Any, similar: Similar) -> NewUnit:
    """An opinion that stands in no document."""
    return NewUnit(
        unit=unit,
        uid=applier.allocate("uid"),
        document=0,
        document_id="",
        chunk_index=0,
        chunk_id="",
        thread=applier.allocate("thread"),
        prev=-1,
        predecessor=None,
        similar=tuple(similar.get(unit.id, ([], []))[0]),
    )


# -- by hand ---------------------------------------------------------------------------------------------------------


def revise(applier: Applier, request: ReviseOpinion, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Set a confidence, retire an opinion, or take it up again."""
    opinion = applier.current(request.opinion)
    if opinion is None or opinion.network != OPINION:
        raise NotFound(f"Opinion '{request.opinion}' not found")
    if opinion.retired_at is not None and opinion.state != RETIRED:
        raise Conflict(f"Opinion '{request.opinion}' has ended ({opinion.state}) and cannot be changed.")
    settings = BeliefSettings.of_bank({**defaults, **bank_record(applier).overrides})
    now = request.now
    if request.confidence is not None:
        given = BeliefMove(opinion.id, SET, reason=request.reason, value=request.confidence)
        applier.apply(BeliefsMoved((given,), now, settings.step, settings.floor, HAND))
    current = applier.current(opinion.id)
    assert current is not None
    decisions: list[tuple[str, dict[str, Any]]] = []
    if request.state == RETIRED and current.retired_at is None:
        applier.apply(UnitsEnded((End(current.uid, RETIRED, request.reason or "by hand"),), now))
        decisions.append(("opinion_retired", {"opinion_id": opinion.id, "reason": "by hand"}))
    elif request.state == "active" and current.retired_at is not None:
        if (current.confidence or 0.0) < settings.floor:
            raise Conflict(
                f"Its confidence is {current.confidence}, below the floor of {settings.floor}; give a confidence too."
            )
        applier.apply(UnitsRestored((current.uid,), now))
        decisions.append(("opinion_restored", {"opinion_id": opinion.id, "reason": "by hand"}))
    if decisions:
        applier.apply(Audited(audit_entries(decisions, now, "", "http"), 0))
    applier.touch(now)
    return {}

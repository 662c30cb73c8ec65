"""Correcting a memory by hand: edit, invalidate, revert.

An edit is a new version under the same id: the old one ends and stays readable as of before, the new one is embedded,
indexed and linked like any new unit. An invalidated memory leaves recall until it is reverted; what it had superseded
comes back meanwhile.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from recalld.actors.curation_messages import CommitCuration, CurateJob, EditPlan, PlanEdit
from recalld.actors.messages import Follower
from recalld.actors.retain import moving
from recalld.actors.retain.document_write import Similar
from recalld.actors.retain.extraction import ExtractionInput, extractor_for
from recalld.actors.retain.followers import check_places, check_prepared
from recalld.actors.retain.marking import marked_again
from recalld.actors.retain.outcome import audit_entries, superseded
from recalld.actors.retain.plan import day
from recalld.actors.retain.supersession import judge, release, subject_of
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    Audited,
    DocumentStored,
    End,
    NewUnit,
    UnitsAdded,
    UnitsEnded,
    UnitsReembedded,
    UnitsRelinked,
    UnitsRestored,
    UnitsRetired,
)
from recalld.storage.errors import BadRequest, NotFound, Superseded
from recalld.storage.mentions import claim_of
from recalld.storage.records import (
    INVALIDATED,
    OBSERVATION,
    VALID,
    ChunkRecord,
    EntityMention,
    PreparedUnit,
    UnitRecord,
)
from recalld.storage.snapshot import Snapshot

EDITS = ("text", "context", "occurred_start", "occurred_end", "mentioned_at", "network", "entities")
BY_HAND = "by hand"


def plan_edit(snap: Snapshot, request: PlanEdit) -> EditPlan:
    """The unit as it stands. Raises `NotFound`, and `BadRequest` for one that cannot be edited."""
    uid = snap.uid_of(request.unit_id)
    unit = None if uid is None else snap.unit(uid)
    if unit is None:
        raise NotFound(f"Memory '{request.unit_id}' not found")
    _check(unit)
    before = snap.unit(unit.predecessor) if unit.predecessor is not None else None
    found = (snap.unit(keys.trailing_u32(key)) for key, _ in snap.txn.scan(keys.followers(snap.bank, unit.uid)))
    followers = tuple(
        Follower(one.uid, one.text, _day(one), unit.id, "")
        for one in found
        if one is not None and one.predecessor == unit.uid
    )
    entities = (snap.entity(number) for number in unit.entities)
    prepared = PreparedUnit(
        id=unit.id,
        text=unit.text,
        network=unit.network,
        context=unit.context,
        speaker=unit.speaker,
        entities=tuple(EntityMention(one.name, one.kind) for one in entities if one is not None),
        occurred_start=unit.occurred_start,
        occurred_end=unit.occurred_end,
        mentioned_at=unit.mentioned_at,
        anchor_assumed=unit.anchor_assumed,
        metadata=dict(unit.metadata),
        tags=unit.tags,
        chunk_index=unit.chunk_index,
        tokens=unit.tokens,
        terms=(),
        question=bool(snap.columns.question[unit.uid]),
        trust=unit.trust,
        confidence=unit.confidence,
        vectors=b"",
        scales=b"",
        token_vectors=b"",
        token_ids=b"",
        predecessor=unit.predecessor,
        subject=unit.subject,
        attribute=unit.attribute,
        value=unit.value,
        polarity=unit.polarity,
        claim=unit.claims[0] if unit.claims else b"",
        risks=unit.risks,
    )
    return EditPlan(unit.uid, unit.updated_at, prepared, "" if before is None else before.text, followers)


def _day(unit: PreparedUnit | UnitRecord) -> str:
    return day(unit.occurred_start if unit.occurred_start is not None else unit.mentioned_at)


def _check(unit: UnitRecord) -> None:
    if unit.network == OBSERVATION:
        raise BadRequest("An observation cannot be edited; change the memories that it was built from.")
    if not unit.stands:
        raise BadRequest(
            "The text of this memory was replaced in its document; it is kept for what is asked as of then."
        )


def edited(plan: EditPlan, job: CurateJob) -> PreparedUnit:
    """The new version, still without vectors. What a changed text claims is read anew."""
    given = {name: job.fields[name] for name in EDITS if name in job.fields}
    if "entities" in given:
        exact = not job.fields.get("resolve_entities", True)
        given["entities"] = tuple(EntityMention(name, exact=exact) for name in given["entities"])
    before: PreparedUnit = plan.unit
    unit = marked_again(dataclasses.replace(before, **given))
    if unit.text != before.text:
        unit = dataclasses.replace(unit, **_claims(unit))
    unit = dataclasses.replace(
        unit, terms=moving.terms_of(unit.text, unit.context, moving.names_of(unit.entities)), aliases=()
    )
    return dataclasses.replace(unit, claim=claim_of(unit) if before.claim else b"")


def _claims(unit: PreparedUnit) -> dict[str, Any]:
    facts = extractor_for("local", "concise").read(ExtractionInput(unit.text, speaker_hint=unit.speaker)).facts
    if len(facts) != 1 or not facts[0].attribute:
        return {"subject": "", "attribute": "", "value": "", "polarity": 1}
    fact = facts[0]
    subject = subject_of(fact.subject, unit.speaker, unit.text)
    return {"subject": subject, "attribute": fact.attribute, "value": fact.value, "polarity": fact.polarity}


def texts(plan: EditPlan, unit: PreparedUnit) -> list[tuple[str, str, str]]:
    """What to embed: the new version, then each unit behind it."""
    return [(unit.text, plan.before_text, _day(unit)), *((one.text, unit.text, one.date) for one in plan.followers)]


# -- in the write ----------------------------------------------------------------------------------------------------


def commit_curation(applier: Applier, request: CommitCuration, similar: Similar | None = None) -> dict[str, Any]:
    """Carry out what was done by hand. Raises `NotFound`, `BadRequest`, and `Superseded` when the plan is stale."""
    unit = applier.current(request.unit_id)
    if unit is None:
        raise NotFound(f"Memory '{request.unit_id}' not found")
    _check(unit)
    decisions: list[tuple[str, dict[str, Any]]] = []
    if request.unit is not None:
        if unit.uid != request.uid or unit.updated_at != request.updated_at:
            raise Superseded("The memory changed while its new version was prepared.")
        unit = _edit(applier, request, unit, similar)
        decisions.append(("edited", {"unit_id": unit.id, "fields": list(request.edited), "reason": BY_HAND}))
    if request.state == INVALIDATED:
        decisions += _invalidate(applier, request, unit)
    elif request.state == VALID:
        decisions += _revert(applier, request, unit)
    applier.touch(request.now)
    if decisions:
        applier.apply(Audited(audit_entries(decisions, request.now, "", "http"), 0))
    return {}


def _edit(applier: Applier, request: CommitCuration, unit: UnitRecord, similar: Similar | None) -> UnitRecord:
    now = request.now
    prepared: PreparedUnit = request.unit
    held = applier.claimed(prepared.claim) if prepared.claim else None
    if held is not None and held.id != unit.id:
        # Another memory says so already, and stays the one that further mentions go to.
        prepared = dataclasses.replace(prepared, claim=b"")
    behind = applier.followers(unit.uid)
    prepared_for = {embedding.uid for embedding in request.embeddings}
    check_prepared(applier, (unit.uid,), prepared_for, lambda one: False)
    former = moving.former_of(applier, unit)
    thread, prev = applier.thread_of(unit.uid), applier.prev_of(unit.uid)
    applier.apply(UnitsRetired((unit.uid,), now, unchunked=True))
    uid = applier.allocate("uid")
    made = NewUnit(
        unit=prepared,
        uid=uid,
        document=unit.document,
        document_id=unit.document_id or "",
        chunk_index=unit.chunk_index,
        chunk_id=unit.chunk_id or "",
        thread=thread,
        prev=prev,
        predecessor=unit.predecessor,
        similar=moving.stored_links(similar, unit.id),
        undocumented=unit.undocumented,
        former=dataclasses.replace(unit, edited_at=now),
        proof=unit.proof_count,
    )
    applier.apply(UnitsAdded((made,), now))
    moving.take_over(applier, (made,), (former,), now)
    _in_chunk(applier, unit, uid)
    embeddings = tuple(dataclasses.replace(one, predecessor=uid) for one in request.embeddings)
    if embeddings:
        applier.apply(UnitsReembedded(embeddings, now))
    if behind:
        applier.apply(UnitsRelinked(dict.fromkeys(behind, uid), now))
    check_places(applier, prepared_for)
    new = applier.unit(uid)
    assert new is not None
    return new


def _in_chunk(applier: Applier, old: UnitRecord, uid: int) -> None:
    """The chunk names the new version; its document has changed."""
    value = applier.txn.get(keys.chunk(applier.bank, old.document, old.chunk_index))
    document = moving.document_by(applier, old.document)
    if value is None or document is None:
        return
    chunk = codec.decode(ChunkRecord, value)
    uids = tuple(uid if one == old.uid else one for one in chunk.uids)
    record = dataclasses.replace(document, revision=document.revision + 1)
    applier.apply(DocumentStored(record, (dataclasses.replace(chunk, uids=uids),)))


def _invalidate(applier: Applier, request: CommitCuration, unit: UnitRecord) -> list[tuple[str, dict[str, Any]]]:
    applier.apply(UnitsEnded((End(unit.uid, INVALIDATED, request.reason),), request.now))
    restored, changes = release(applier, (unit.id,), request.now)
    decisions: list[tuple[str, dict[str, Any]]] = [("invalidated", {"unit_id": unit.id, "reason": BY_HAND})]
    if restored:
        decisions.append(("restored", {"unit_ids": restored, "reason": "what superseded it is invalidated"}))
    return decisions + [("superseded", superseded(change)) for change in changes]


def _revert(applier: Applier, request: CommitCuration, unit: UnitRecord) -> list[tuple[str, dict[str, Any]]]:
    if unit.state == VALID:
        return []
    was = unit.state
    applier.apply(UnitsRestored((unit.uid,), request.now))
    # One that was invalidated by hand ends again what it had ended; one that comes back is not ended by the same rule.
    changes = judge(applier, (unit.uid,), frozenset(), request.now, spare=True) if was == INVALIDATED else []
    return [
        ("restored", {"unit_ids": [unit.id], "reason": BY_HAND}),
        *(("superseded", superseded(change)) for change in changes),
    ]

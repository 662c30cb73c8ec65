"""What stands in a bank where a write is to go: the reads behind `PlanRetain` and `PlanErase`, over one snapshot."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.messages import (
    DocumentState,
    DocumentWanted,
    ErasePlan,
    Follower,
    PlanErase,
    PlanRetain,
    RetainPlan,
    StoredChunk,
    StoredUnit,
    TurnWanted,
)
from recalld.actors.retain.moving import is_current, move_to, moves_apart, moves_out_of
from recalld.actors.retain.plan import TURN_GAP_US, day
from recalld.storage import keys, mentions
from recalld.storage.errors import NotFound
from recalld.storage.records import ChunkRecord, DocumentRecord, UnitRecord
from recalld.storage.snapshot import Snapshot

TURNS_LOOKED_AT = 32
Uids = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]


def plan_retain(snap: Snapshot, request: PlanRetain) -> RetainPlan:
    """The documents as they stand, and the turn before for text that names no document."""
    return RetainPlan(
        documents=tuple(_document(snap, wanted) for wanted in request.documents),
        turns=tuple(_turn_before(snap, wanted) for wanted in request.turns),
        overrides=snap.record.overrides,
        bank=snap.bank,
    )


def empty_plan(request: PlanRetain) -> RetainPlan:
    """The plan for a bank that does not exist yet."""
    return RetainPlan(
        documents=tuple(DocumentState(wanted.document_id, 0, (), 0, ()) for wanted in request.documents),
        turns=tuple(None for _ in request.turns),
        overrides={},
    )


def _document(snap: Snapshot, wanted: DocumentWanted) -> DocumentState:
    record = snap.document_by_id(wanted.document_id)
    if record is None:
        return DocumentState(wanted.document_id, 0, (), 0, ())
    if not wanted.tail:
        return _state(snap, record, range(record.chunks), None, wanted.tags)
    first = snap.chunk(record.number, 0)
    if first is not None and first.text.lstrip().startswith("["):
        # A conversation as a JSON array is appended to by merging, so all of it is needed.
        return _state(snap, record, range(record.chunks), document_text(snap, record), wanted.tags)
    last = record.chunks - 1
    while last >= 0:
        state = _state(snap, record, range(last, record.chunks), None)
        if any(chunk.units for chunk in state.chunks):
            return state
        last -= 1
    return _state(snap, record, range(0), None)


def _state(
    snap: Snapshot, record: DocumentRecord, indexes: range, text: str | None, tags: tuple[tuple[str, ...], ...] = ()
) -> DocumentState:
    chunks = []
    for index in indexes:
        chunk = snap.chunk(record.number, index)
        if chunk is not None:
            units = [unit for unit in snap.units(chunk.uids) if unit.stands]
            held = [one for one in chunk.mentions if mentions.mention(snap.txn, snap.bank, *one) is not None]
            # A chunk that lost units to an erase stands for its text no more: no digest, no match, so it is read again.
            whole = len(units) == len(chunk.uids) and len(held) == len(chunk.mentions)
            chunks.append(
                StoredChunk(
                    index,
                    chunk.digest if whole else "",
                    tuple(_placed(snap, unit, record.number) for unit in units),
                    extractor=chunk.extractor,
                    shared=bool(chunk.mentions) or any(unit.proof_count > 1 for unit in units),
                    mention_tags=_mention_tags(snap, chunk),
                )
            )
    followers = tuple(unit for chunk in chunks for unit in _followers(snap, record, chunk, tags))
    return DocumentState(record.id, record.revision, tuple(chunks), record.chunks, record.tags, text, followers)


def _mention_tags(snap: Snapshot, chunk: ChunkRecord) -> tuple[str, ...] | None:
    uids = (snap.uid_of(unit_id) for unit_id, _ in chunk.mentions)
    units = (snap.unit(uid) for uid in uids if uid is not None)
    return next((unit.tags for unit in units if unit is not None), None)


def _followers(
    snap: Snapshot, record: DocumentRecord, chunk: StoredChunk, tags: tuple[tuple[str, ...], ...]
) -> list[StoredUnit]:
    """Units outside the document's live ones that are embedded behind a unit of the chunk.

    Retired ones only where the unit may be tagged anew: that it is replaced changes nothing for what is read as of
    before.
    """
    found = []
    for unit in chunk.units:
        uids = [keys.trailing_u32(key) for key, _ in snap.txn.scan(keys.followers(snap.bank, unit.uid))]
        retagged = len(tags) > 1 or tuple(unit.tags) not in {tuple(one) for one in tags}
        for uid in uids:
            follower = snap.unit(uid) if uid < snap.n else None
            if follower is None or follower.predecessor is None:
                continue
            if follower.stands and snap.columns.document[uid] == record.number:
                continue
            if follower.stands or retagged:
                elsewhere = snap.columns.thread[uid] != record.thread
                found.append(dataclasses.replace(_stored(follower), elsewhere=bool(elsewhere)))
    return found


def document_text(snap: Snapshot, record: DocumentRecord) -> str | None:
    """A document's text, which is its chunks; None when its text was not kept."""
    if not record.keep_text:
        return None
    return "".join(chunk.glue + chunk.text for chunk in snap.chunks(record.number))


def _stored(unit: UnitRecord) -> StoredUnit:
    return StoredUnit(
        uid=unit.uid,
        text=unit.text,
        tags=unit.tags,
        trust=unit.trust,
        predecessor=unit.predecessor,
        date=day(unit.occurred_start if unit.occurred_start is not None else unit.mentioned_at),
        mentioned_at=unit.mentioned_at,
        retired=not unit.stands,
    )


def _placed(snap: Snapshot, unit: UnitRecord, document: int) -> StoredUnit:
    """A unit of a document, with the unit of another that it stands behind, and where it can move to."""
    stored = _stored(unit)
    if unit.proof_count > 1 and is_current(snap, unit):
        said = mentions.mentions_of(snap.txn, snap.bank, unit.id)
        stored = dataclasses.replace(stored, moves=tuple(move_to(snap, unit, one, {}) for one in said))
    if unit.predecessor is None or int(snap.columns.document[unit.predecessor]) == document:
        return stored
    behind = snap.unit(unit.predecessor)
    if behind is None or not behind.stands or behind.proof_count < 2:
        return stored
    said = mentions.mentions_of(snap.txn, snap.bank, behind.id)
    chunk = next((one.chunk_index for one in said if one.document == document), -1)
    if chunk < 0:
        return stored
    return dataclasses.replace(stored, behind=_stored(behind), behind_chunk=chunk)


def _turn_before(snap: Snapshot, wanted: TurnWanted) -> StoredUnit | None:
    """The newest live undocumented unit of the same context and tags, said within 30 minutes."""
    live = snap.columns.live
    looked = 0
    for uid in range(snap.n - 1, -1, -1):
        if not live[uid]:
            continue
        looked += 1
        if looked > TURNS_LOOKED_AT:
            return None
        unit = snap.unit(uid)
        if (
            unit is not None
            and unit.undocumented
            and unit.context == wanted.context
            and unit.tags == tuple(sorted(set(wanted.tags)))
            and unit.mentioned_at is not None
            and abs(unit.mentioned_at - wanted.mentioned_at) <= TURN_GAP_US
        ):
            return _stored(unit)
    return None


def units_to_erase(snap: Snapshot, request: PlanErase) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """uids that an erase covers: of a document, of one network, or all. Raises `NotFound` for an unknown document."""
    if request.document_id is not None:
        record = snap.document_by_id(request.document_id)
        if record is None:
            raise NotFound(f"Document '{request.document_id}' not found")
        return snap.document_uids(record.number)
    chosen = snap.columns.exists
    if request.network is not None:
        chosen = chosen & (snap.columns.network == request.network)
    return np.flatnonzero(chosen).astype(np.uint32)


def plan_erase(snap: Snapshot, request: PlanErase) -> ErasePlan:
    """The units to erase or to tag anew, and the units whose vectors then carry text that their readers may not see.

    Retired units count too: they are read as of before.
    """
    uids = units_to_erase(snap, request)
    chosen = np.zeros(snap.n, np.bool_)
    chosen[uids] = True
    prev = snap.columns.prev
    behind = snap.columns.exists & (prev >= 0)
    if request.tags is not None:
        followers = _parted(snap, np.flatnonzero(behind & (chosen != chosen[prev])), chosen, request.tags)
        number = _number(snap, request)
        moves = moves_apart(snap, uids.tolist(), number, request.tags) if number else []
    else:
        number = _number(snap, request)
        moves = moves_out_of(snap, uids.tolist(), number) if number else []
        there = {move.unit: move.text for move in moves}
        followers = _bereft(snap, np.flatnonzero(behind & ~chosen & chosen[prev]), chosen, there)
    return ErasePlan(uids.astype("<u4").tobytes(), tuple(followers), tuple(moves))


def _number(snap: Snapshot, request: PlanErase) -> int:
    """The document's number; 0 where the request is not about one."""
    record = snap.document_by_id(request.document_id) if request.document_id is not None else None
    return 0 if record is None else record.number


def _bereft(snap: Snapshot, uids: Uids, gone: Bools, there: dict[str, str]) -> list[Follower]:
    """Of the units right behind one in `gone`, those embedded behind it; each then stands behind what is left.

    One that moves to another document, with its text `there`, stays the unit before those.
    """
    followers = []
    for unit in snap.units(uids.tolist()):
        if unit.predecessor is None:
            continue
        before = int(snap.columns.prev[unit.uid])
        went = snap.unit(before)
        if went is not None and went.id in there and is_current(snap, went):
            followers.append(Follower(unit.uid, unit.text, _stored(unit).date, went.id, there[went.id]))
            continue
        passed: set[int] = set()
        while before >= 0 and gone[before] and before not in passed:
            passed.add(before)
            before = int(snap.columns.prev[before])
        stands = snap.unit(before) if before >= 0 and not gone[before] else None
        if stands is not None and (
            stands.tags != unit.tags or stands.trust != unit.trust or (unit.stands and not stands.stands)
        ):
            stands = None
        before_text = stands.text if stands else ""
        followers.append(Follower(unit.uid, unit.text, _stored(unit).date, stands.uid if stands else None, before_text))
    return followers


def _parted(snap: Snapshot, uids: Uids, chosen: Bools, tags: tuple[str, ...]) -> list[Follower]:
    """Of the units on a border of `chosen`, those embedded behind one that has other tags when those have `tags`."""
    new = tuple(sorted(set(tags)))
    followers = []
    for unit in snap.units(uids.tolist()):
        if unit.predecessor is None:
            continue
        other = snap.unit(unit.predecessor) if chosen[unit.uid] else unit
        if other is None or other.tags != new:
            followers.append(Follower(unit.uid, unit.text, _stored(unit).date, None, ""))
    return followers

"""Writes to a bank that need no preparation: its record, its deletion, document tags, erasing planned units."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np

from recalld.actors.erasure import drop_payloads
from recalld.actors.messages import CommitErase, PatchDocument, PutBank
from recalld.actors.pages.erasing import forget_erased
from recalld.actors.retain import moving
from recalld.actors.retain.document_write import Similar
from recalld.actors.retain.followers import check_places, check_prepared
from recalld.actors.retain.outcome import Outcome, audit_entries
from recalld.actors.retain.supersession import Change, release
from recalld.storage import codec, keys
from recalld.storage.apply import Applier, read_counters
from recalld.storage.changes import (
    Audited,
    BankErased,
    BankStored,
    DocumentErased,
    DocumentStored,
    FactsConsolidated,
    MentionsRemoved,
    UnitsAdded,
    UnitsErased,
    UnitsReembedded,
    UnitsRelinked,
    UnitsRetagged,
)
from recalld.storage.errors import NotFound, Superseded
from recalld.storage.mentions import mentions_in
from recalld.storage.names import number_key
from recalld.storage.records import BankRecord, ChunkRecord, DocumentRecord

_U32 = struct.Struct("<I")


def bank_record(applier: Applier) -> BankRecord:
    return codec.decode(BankRecord, applier.txn.get(keys.table(applier.bank, keys.BANK)) or b"")


def put_bank(applier: Applier, request: PutBank) -> dict[str, Any]:
    """Change a bank's name and overrides; a None among `updates` removes an override."""
    record = bank_record(applier)
    if any(record.overrides.get(key) != value for key, value in request.expects.items()):
        raise Superseded("The bank's settings changed meanwhile.")
    overrides = {} if request.reset else dict(record.overrides)
    for key, value in request.updates.items():
        if value is None:
            overrides.pop(key, None)
        else:
            overrides[key] = value
    changed = dataclasses.replace(
        record,
        name=request.name if request.name is not None else record.name,
        overrides=overrides,
        updated_at=request.now,
    )
    applier.apply(BankStored(changed))
    if request.decisions:
        applier.apply(Audited(audit_entries(request.decisions, request.now, "", "http"), 0))
    return {"name": changed.name, "overrides": overrides}


def delete_bank(applier: Applier) -> dict[str, Any]:
    """Erase the bank; how many units, entities and documents went."""
    counters = read_counters(applier.txn, applier.bank)
    applier.apply(BankErased())
    return {"deleted": sum(counters.live) + counters.entities + counters.documents}


def _document(applier: Applier, document_id: str) -> DocumentRecord:
    number = applier.txn.get(keys.named(applier.bank, keys.DOCUMENT_ID, document_id))
    value = None
    if number is not None:
        value = applier.txn.get(keys.number(applier.bank, keys.DOCUMENT, _U32.unpack(number)[0]))
    if value is None:
        raise NotFound(f"Document '{document_id}' not found")
    return codec.decode(DocumentRecord, value)


def patch_document(applier: Applier, request: PatchDocument, similar: Similar | None = None) -> dict[str, Any]:
    """Replace the tags of a document and its units, or how it is scoped.

    Raises `Superseded` when the document gained or lost units, or a unit a follower, since the plan.
    """
    record = _document(applier, request.document_id)
    params = dict(record.params)
    if request.observation_scopes is not None:
        params["observation_scopes"] = request.observation_scopes
    tags = record.tags if request.tags is None else tuple(dict.fromkeys(request.tags))
    revision = record.revision + 1
    changed = dataclasses.replace(record, tags=tags, params=params, revision=revision, updated_at=request.now)
    applier.apply(DocumentStored(changed))
    if params.get("observation_scopes") != record.params.get("observation_scopes"):
        uids = applier.set_members(keys.SET_DOCUMENT, number_key(record.number))
        applier.apply(FactsConsolidated(request.now, pending=tuple(uids)))
    if request.tags is not None:
        _retag(applier, request, record.number, tuple(sorted(set(tags))), similar)
    applier.touch(request.now)
    return {}


def _retag(
    applier: Applier, request: PatchDocument, number: int, tags: tuple[str, ...], similar: Similar | None
) -> None:
    uids = tuple(np.frombuffer(request.uids, "<u4").tolist())
    members = set(uids)
    if set(applier.set_members(keys.SET_DOCUMENT, number_key(number))) != members:
        raise Superseded("The document changed while its new tags were prepared.")
    prepared = {embedding.uid for embedding in request.embeddings}
    check_prepared(applier, uids, prepared, lambda unit: unit.uid in members or unit.tags == tags)
    outside = {uid for uid in uids if uid not in prepared and applier.prev_of(uid) not in members}
    moving.check_apart(applier, request.moves, uids, number, tags)
    new, taken = moving.part(applier, request.moves, number, tags, request.now, similar)
    applier.apply(UnitsRetagged(uids, tags, request.now))
    if new:
        applier.apply(UnitsAdded(tuple(new), request.now))
        moving.settle_chunks(applier, new, taken, request.now)
    for uid in outside:
        unit = applier.unit(uid)
        before = applier.unit(unit.predecessor) if unit is not None and unit.predecessor is not None else None
        if before is not None and before.tags != tags:
            raise Superseded("A unit's predecessor changed while the new tags of its document were prepared.")
    if request.embeddings:
        applier.apply(UnitsReembedded(tuple(request.embeddings), request.now))
    check_places(applier, prepared)


def commit_erase(applier: Applier, request: CommitErase, similar: Similar | None = None) -> dict[str, Any]:
    """Erase the planned units and embed their followers anew, in one commit.

    A unit of a document that others mention moves to one of those, written anew from what that says. What the erased
    ones had superseded comes back. Raises `Superseded` when the document gained or lost units, or a unit a follower or
    a mention, since the plan.
    """
    uids = tuple(np.frombuffer(request.uids, "<u4").tolist())
    now = request.now
    record = _document(applier, request.document_id) if request.document_id is not None else None
    if record is not None and set(applier.set_members(keys.SET_DOCUMENT, number_key(record.number))) != set(uids):
        raise Superseded("The document changed while its deletion was prepared.")
    gone, prepared = set(uids), {embedding.uid for embedding in request.embeddings}
    live_before = sum(1 for uid in uids if applier.is_live(uid))
    check_prepared(applier, uids, prepared, lambda unit: unit.uid in gone)
    if record is not None:
        documents = [record.number]
    else:
        documents = _emptied_documents(applier, gone) if request.network is None else []
    placed = _placed(applier, request, uids, record)
    staying = {one.former.unit.uid for one in placed}
    leaving = [unit.id for uid in uids if uid not in staying and (unit := applier.unit(uid)) is not None]
    leaving = [name for name in leaving if applier.uid_of(name) in gone]
    entities_before = applier.entity_count()
    applier.apply(UnitsErased(uids, now))
    there: dict[str, int] = {}
    moved, formers = moving.place(applier, placed, there, now, erased=True, similar=similar)
    if moved:
        applier.apply(UnitsAdded(tuple(moved), now))
        moving.take_over(applier, moved, formers, now)
        taken = [(one.former.unit.id, one.mention.number) for one in placed]
        moving.settle_chunks(applier, moved, taken, now)
    if request.embeddings:
        _reembed(applier, request, there)
    check_places(applier, prepared)
    for number in documents:
        applier.apply(DocumentErased(number, now))
    if record is not None or request.network is None:
        drop_payloads(applier, request.document_id, now)
    restored, changes = release(applier, leaving, now)
    _audit_erase(applier, now, restored, changes, [one.unit.id for one in moved])
    forget_erased(applier, now)
    applier.touch(now)
    entities = max(0, entities_before - applier.entity_count())
    live = live_before - sum(1 for one in formers if one.unit.retired_at is None)
    return {"units": live, "documents": len(documents), "entities": entities}


def _placed(
    applier: Applier, request: CommitErase, uids: tuple[int, ...], record: DocumentRecord | None
) -> list[moving.Placed]:
    """The mentions that take the place of units that go; those the document makes itself go with it."""
    said: list[tuple[str, int]] = []
    if record is not None:
        found = applier.txn.scan(keys.chunks(applier.bank, record.number))
        said = list(mentions_in(codec.decode(ChunkRecord, value) for _, value in found))
        if said:
            applier.apply(MentionsRemoved(tuple(said), request.now))
    shared = moving.leaving(applier, uids)
    if record is not None:
        return moving.take(applier, shared, request.moves)
    said = [(unit.id, one.number) for unit in shared for one in applier.mentions_of(unit.id)]
    if said:
        applier.apply(MentionsRemoved(tuple(said), request.now))
    return []


def _reembed(applier: Applier, request: CommitErase, there: dict[str, int]) -> None:
    """New vectors of followers; those of a unit that moved stand behind it where it is now."""
    embeddings = []
    relinked: dict[int, int] = {}
    for one in request.embeddings:
        if isinstance(one.predecessor, str):
            before = there.get(one.predecessor)
            if before is None:
                raise Superseded("The unit that another is to be embedded behind changed.")
            relinked[one.uid] = before
            one = dataclasses.replace(one, predecessor=before)
        embeddings.append(one)
    applier.apply(UnitsReembedded(tuple(embeddings), request.now))
    if relinked:
        applier.apply(UnitsRelinked(relinked, request.now))


def _audit_erase(applier: Applier, now: int, restored: list[str], changes: list[Change], moved: list[str]) -> None:
    outcome = Outcome(now, {}, frozenset(), tuple(changes), tuple(restored), moved=tuple(moved))
    entries = outcome.entries((), None)
    if entries:
        applier.apply(Audited(entries, 0))


def _emptied_documents(applier: Applier, gone: set[int]) -> list[int]:
    """Documents that hold nothing but units in `gone`. One that came since the plan stays as it is.

    Raises `Superseded` for one that holds other units too.
    """
    emptied = []
    for _, value in applier.txn.scan(keys.table(applier.bank, keys.DOCUMENT)):
        number = codec.decode(DocumentRecord, value).number
        members = set(applier.set_members(keys.SET_DOCUMENT, number_key(number)))
        if members <= gone:
            emptied.append(number)
        elif members & gone:
            raise Superseded("A document changed while the bank was being cleared.")
    return emptied

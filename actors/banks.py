"""Writes to a bank that need no preparation: its record, its deletion, document tags, erasing planned units."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np

from recalld.actors.erasure import drop_payloads
from recalld.actors.messages import CommitErase, PatchDocument, PutBank
from recalld.actors.retain.followers import check_places, check_prepared
from recalld.storage import codec, keys
from recalld.storage.apply import Applier, read_counters
from recalld.storage.changes import (
    BankErased,
    BankStored,
    DocumentErased,
    DocumentStored,
    UnitsErased,
    UnitsReembedded,
    UnitsRetagged,
)
from recalld.storage.errors import NotFound, Superseded
from recalld.storage.names import number_key
from recalld.storage.records import BankRecord, DocumentRecord

_U32 = struct.Struct("<I")


def bank_record(applier: Applier) -> BankRecord:
    return codec.decode(BankRecord, applier.txn.get(keys.table(applier.bank, keys.BANK)) or b"")


def put_bank(applier: Applier, request: PutBank) -> dict[str, Any]:
    """Change a bank's name and overrides; a None among `updates` removes an override."""
    record = bank_record(applier)
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


def patch_document(applier: Applier, request: PatchDocument) -> dict[str, Any]:
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
    if request.tags is not None:
        _retag(applier, request, record.number, tuple(sorted(set(tags))))
    applier.touch(request.now)
    return {}


def _retag(applier: Applier, request: PatchDocument, number: int, tags: tuple[str, ...]) -> None:
    uids = tuple(np.frombuffer(request.uids, "<u4").tolist())
    members = set(uids)
    if set(applier.set_members(keys.SET_DOCUMENT, number_key(number))) != members:
        raise Superseded("The document changed while its new tags were prepared.")
    prepared = {embedding.uid for embedding in request.embeddings}
    check_prepared(applier, uids, prepared, lambda unit: unit.uid in members or unit.tags == tags)
    outside = {uid for uid in uids if uid not in prepared and applier.prev_of(uid) not in members}
    applier.apply(UnitsRetagged(uids, tags, request.now))
    for uid in outside:
        unit = applier.unit(uid)
        before = applier.unit(unit.predecessor) if unit is not None and unit.predecessor is not None else None
        if before is not None and before.tags != tags:
            raise Superseded("A unit's predecessor changed while the new tags of its document were prepared.")
    if request.embeddings:
        applier.apply(UnitsReembedded(tuple(request.embeddings), request.now))
    check_places(applier, prepared)


def commit_erase(applier: Applier, request: CommitErase) -> dict[str, Any]:
    """Erase the planned units and embed their followers anew, in one commit.

    Raises `Superseded` when the document gained or lost units, or a unit a follower, since the plan.
    """
    uids = tuple(np.frombuffer(request.uids, "<u4").tolist())
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
    entities_before = applier.entity_count()
    applier.apply(UnitsErased(uids, request.now))
    if request.embeddings:
        applier.apply(UnitsReembedded(tuple(request.embeddings), request.now))
    check_places(applier, prepared)
    for number in documents:
        applier.apply(DocumentErased(number, request.now))
    if record is not None or request.network is None:
        drop_payloads(applier, request.document_id, request.now)
    applier.touch(request.now)
    entities = entities_before - applier.entity_count()
    return {"units": live_before, "documents": len(documents), "entities": entities}


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

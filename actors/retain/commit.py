"""A prepared retain inside a write transaction: checks that the plan still holds, then applies the changes.

Runs in the writer thread, so it does arithmetic and puts, nothing else. Raises `Superseded` when a document or a
predecessor changed since the plan; nothing is applied then, and the caller plans again. `Conflict`: the bank is gone.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
from typing import Any

from recalld.actors.messages import ChunkWrite, CommitRetain, DocumentWrite
from recalld.actors.retain.followers import check_places, check_prepared
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    BankStored,
    DocumentStored,
    NewUnit,
    OperationStored,
    UnitsAdded,
    UnitsMoved,
    UnitsReembedded,
    UnitsRelinked,
    UnitsRetagged,
    UnitsRetired,
)
from recalld.storage.errors import Conflict, ModelMismatch, Superseded
from recalld.storage.records import (
    CANCELLED,
    COMPLETED,
    OPEN_STATES,
    BankRecord,
    ChunkRecord,
    DocumentRecord,
    OperationRecord,
    PreparedUnit,
    UnitRecord,
)

_U32 = struct.Struct("<I")
Similar = dict[str, tuple[list[tuple[int, float]], list[tuple[str, float]]]]


def commit_retain(applier: Applier, write: CommitRetain, similar: Similar) -> dict[str, Any]:
    """Apply a retain; `similar` gives each new unit's links to stored uids and to units of the same request."""
    operation = _operation(applier, write)
    if (write.bank and write.bank != applier.bank) or (write.operation_id is not None and operation is None):
        raise Conflict("The bank was deleted while this retain was under way; nothing was stored.")
    if operation is not None and operation.status not in OPEN_STATES:
        # Two attempts of one operation were under way, and the other one ended it.
        return {"items": list(operation.receipt), "units": 0}
    if operation is not None and operation.cancel_requested:
        # The payload stays: a cancelled operation may be retried.
        applier.apply(OperationStored(_ended(operation, write.now, CANCELLED)))
        settle_parent(applier, operation.parent, write.now)
        return {"items": [], "units": 0, "cancelled": True}
    _bind_model(applier, write.model)
    units = {unit.id: unit for unit in write.units}
    new: list[NewUnit] = []
    uids: dict[str, int] = {}
    changed: list[int] = []
    new_document = False
    for document in write.documents:
        stored = _document(applier, document.document_id)
        if (stored.revision if stored else 0) != document.revision:
            raise Superseded("The document changed while the request was prepared.")
        new_document |= stored is None
        added, touched = _write_document(applier, write, document, stored, units, uids, similar)
        new += added
        changed += touched
    if new:
        applier.apply(UnitsAdded(tuple(new), write.now))
    if write.embeddings:
        embeddings = tuple(dataclasses.replace(e, predecessor=_uid(e.predecessor, uids)) for e in write.embeddings)
        applier.apply(UnitsReembedded(embeddings, write.now))
        # Turns of other documents that now stand behind this one's last unit.
        behind = {e.uid: e.predecessor for e in embeddings if isinstance(e.predecessor, int)}
        moved = {uid: before for uid, before in behind.items() if applier.prev_of(uid) != before}
        if moved:
            applier.apply(UnitsRelinked(moved, write.now))
    _check_followers(applier, write, changed, new)
    if write.documents:
        applier.touch(write.now, new_document)
    answer = {"items": list(write.receipt), "units": len(new), "documents": [d.document_id for d in write.documents]}
    if write.usage:
        answer["usage"] = dict(write.usage)
    if operation is not None:
        done = _ended(operation, write.now, COMPLETED)
        if write.usage:
            done = dataclasses.replace(done, result={**done.result, "usage": dict(write.usage)})
        receipt = tuple(write.receipt)
        applier.apply(OperationStored(dataclasses.replace(done, receipt=receipt, error=None), b""))
        settle_parent(applier, operation.parent, write.now)
    return answer


def _check_followers(applier: Applier, write: CommitRetain, changed: list[int], new: list[NewUnit]) -> None:
    """Raise `Superseded` when a unit would be left behind one that was replaced or tagged otherwise since the plan."""
    prepared = {embedding.uid for embedding in write.embeddings}

    def spared(unit: UnitRecord) -> bool:
        before = applier.unit(unit.predecessor) if unit.predecessor is not None else None
        if before is None or before.retired_at is not None:
            return unit.retired_at is not None
        return before.tags == unit.tags

    check_prepared(applier, changed, prepared, spared)
    check_places(applier, prepared)
    check_places(applier, (one.uid for one in new if isinstance(one.unit.predecessor, int)))


def _uid(reference: Any, uids: dict[str, int]) -> int | None:
    return uids[reference] if isinstance(reference, str) else reference


def _bind_model(applier: Applier, model: dict[str, Any]) -> None:
    key = keys.table(applier.bank, keys.BANK)
    record = codec.decode(BankRecord, applier.txn.get(key) or b"")
    if not record.model and model:
        applier.apply(BankStored(dataclasses.replace(record, model=model)))
    elif model and record.model.get("dim") != model.get("dim"):
        raise ModelMismatch("This bank's vectors come from another embedding model; use the model it was made with.")


def _document(applier: Applier, document_id: str) -> DocumentRecord | None:
    number = applier.txn.get(keys.named(applier.bank, keys.DOCUMENT_ID, document_id))
    if number is None:
        return None
    value = applier.txn.get(keys.number(applier.bank, keys.DOCUMENT, _U32.unpack(number)[0]))
    return None if value is None else codec.decode(DocumentRecord, value)


def _write_document(
    applier: Applier,
    write: CommitRetain,
    document: DocumentWrite,
    stored: DocumentRecord | None,
    units: dict[str, PreparedUnit],
    uids: dict[str, int],
    similar: Similar,
) -> tuple[list[NewUnit], list[int]]:
    """The units to add, and the uids of stored ones that were retired or tagged anew."""
    number = stored.number if stored else applier.allocate("document")
    old = _old_chunks(applier, number, stored, document)
    thread, prev = _thread(applier, document, stored, units)
    if document.append and stored is not None:
        prev = _last_uid(applier, stored)
    first_index = stored.chunks if stored is not None and document.append else 0
    place: dict[str, int] = {}
    chunks: list[ChunkRecord] = []
    for offset, chunk in enumerate(document.chunks):
        for unit_id in chunk.units:
            place[unit_id] = first_index + offset
    new: list[NewUnit] = []
    relinked: dict[int, int] = {}
    for entry in document.sequence:
        if isinstance(entry, int):
            if not applier.is_live(entry):
                raise Superseded("A unit of the document was erased while the request was prepared.")
            if applier.prev_of(entry) != prev:
                relinked[entry] = prev
            prev = entry
            continue
        unit = units[entry]
        uid = uids[entry] = applier.allocate("uid")
        stored_links, own_links = similar.get(entry, ([], []))
        new.append(
            NewUnit(
                unit=unit,
                uid=uid,
                document=number,
                document_id=document.document_id,
                chunk_index=place[entry],
                chunk_id=_chunk_id(write, document, place[entry]),
                thread=thread,
                prev=prev,
                predecessor=_uid(unit.predecessor, uids),
                causes=tuple(uids[cause] for cause in unit.causes if cause in uids),
                cause_weights=tuple(
                    weight
                    for cause, weight in itertools.zip_longest(unit.causes, unit.cause_weights, fillvalue=1.0)
                    if cause in uids
                ),
                similar=(*stored_links, *((uids[other], weight) for other, weight in own_links if other in uids)),
                undocumented=document.undocumented,
            )
        )
        prev = uid
    kept: set[int] = set()
    moved: dict[int, tuple[int, str]] = {}
    for offset, chunk in enumerate(document.chunks):
        index = first_index + offset
        members = tuple(uids[u] for u in chunk.units)
        if chunk.keep is not None:
            kept.add(chunk.keep)
            members = old[chunk.keep].uids
            if chunk.keep != index:
                moved.update((uid, (index, _chunk_id(write, document, index))) for uid in members)
        chunks.append(_chunk(chunk, index, number, members, old, document.keep_text, write.now))
    gone = [uid for index, chunk in old.items() if index not in kept for uid in chunk.uids]
    dropped = tuple(index for index in old if index >= len(document.chunks)) if not document.append else ()
    if gone:
        applier.apply(UnitsRetired(tuple(gone), write.now, unchunked=True))
    applier.apply(
        DocumentStored(_record(document, stored, number, thread, len(chunks), write.now), tuple(chunks), dropped)
    )
    if relinked:
        applier.apply(UnitsRelinked(relinked, write.now))
    if moved:
        applier.apply(UnitsMoved(moved, write.now))
    changed = gone
    for chunk in document.chunks:
        if chunk.keep is not None and chunk.tags is not None:
            applier.apply(UnitsRetagged(old[chunk.keep].uids, chunk.tags, write.now))
            changed = [*changed, *old[chunk.keep].uids]
    return new, changed


def _chunk_id(write: CommitRetain, document: DocumentWrite, index: int) -> str:
    return f"{write.bank_id}_{document.document_id}_{index}"


def _old_chunks(
    applier: Applier, number: int, stored: DocumentRecord | None, document: DocumentWrite
) -> dict[int, ChunkRecord]:
    if stored is None or document.append:
        return {}
    found = applier.txn.scan(keys.chunks(applier.bank, number))
    return {chunk.index: chunk for chunk in (codec.decode(ChunkRecord, value) for _, value in found)}


def _last_uid(applier: Applier, stored: DocumentRecord) -> int:
    for _, value in applier.txn.scan_reverse(keys.chunks(applier.bank, stored.number)):
        live = [uid for uid in codec.decode(ChunkRecord, value).uids if applier.is_live(uid)]
        if live:
            return live[-1]
    return -1


def _thread(
    applier: Applier, document: DocumentWrite, stored: DocumentRecord | None, units: dict[str, PreparedUnit]
) -> tuple[int, int]:
    """(thread, neighbour before the first unit): its own, or that of the turn an undocumented text follows."""
    if stored is not None:
        return stored.thread, -1
    first = next((units[entry] for entry in document.sequence if isinstance(entry, str)), None)
    if document.undocumented and first is not None and isinstance(first.predecessor, int):
        if not applier.is_live(first.predecessor):
            raise Superseded("The turn before changed while the request was prepared.")
        return applier.thread_of(first.predecessor), first.predecessor
    return applier.allocate("thread"), -1


def _chunk(
    chunk: ChunkWrite,
    index: int,
    number: int,
    members: tuple[int, ...],
    old: dict[int, ChunkRecord],
    keep_text: bool,
    now: int,
) -> ChunkRecord:
    if chunk.keep is not None:
        return dataclasses.replace(old[chunk.keep], index=index, glue=chunk.glue)
    text = chunk.text if keep_text else ""
    read = {"extractor": chunk.extractor, "reading": chunk.reading}
    return ChunkRecord(number, index, text, chunk.digest, chunk.glue, members, now, **read)


def _record(
    document: DocumentWrite, stored: DocumentRecord | None, number: int, thread: int, written: int, now: int
) -> DocumentRecord:
    append = document.append and stored is not None
    before = stored if append else None
    return DocumentRecord(
        number=number,
        id=document.document_id,
        content_hash=document.content_hash,
        text_length=document.text_length + (before.text_length if before else 0),
        chunks=written + (before.chunks if before else 0),
        created_at=stored.created_at if stored else now,
        updated_at=now,
        revision=(stored.revision if stored else 0) + 1,
        tags=document.tags,
        metadata=document.metadata,
        params=document.params,
        keep_text=document.keep_text,
        thread=thread,
    )


def _operation(applier: Applier, write: CommitRetain) -> OperationRecord | None:
    if write.operation_id is None:
        return None
    return read_operation(applier, write.operation_id)


def read_operation(applier: Applier, operation_id: str) -> OperationRecord | None:
    value = applier.txn.get(keys.operation_key(applier.bank, keys.OPERATION, operation_id))
    return None if value is None else codec.decode(OperationRecord, value)


def _ended(operation: OperationRecord, now: int, status: str) -> OperationRecord:
    return dataclasses.replace(operation, status=status, updated_at=now, completed_at=now, next_retry_at=None)


def settle_parent(applier: Applier, parent_id: str | None, now: int) -> None:
    """A parent is completed when all its children are, failed when one is and none is left to run."""
    parent = read_operation(applier, parent_id) if parent_id else None
    if parent is None:
        return
    children = [child for name in parent.children if (child := read_operation(applier, name)) is not None]
    states = {child.status for child in children}
    if states & {"pending", "processing"}:
        status = "processing"
    else:
        status = next((s for s in ("failed", "cancelled") if s in states), COMPLETED)
    held_back = next((child for child in children if child.status == "pending" and child.waiting), None)
    waiting, waits = (held_back.waiting, held_back.waits) if held_back else ("", 0)
    if status == parent.status and (waiting, waits) == (parent.waiting, parent.waits):
        return
    error = next((child.error for child in children if child.error), None) if status == "failed" or waiting else None
    record = dataclasses.replace(
        parent,
        status=status,
        updated_at=now,
        error=error,
        waiting=waiting,
        waits=waits,
        next_retry_at=held_back.next_retry_at if held_back else None,
    )
    if status != "processing":
        record = dataclasses.replace(record, completed_at=now)
    applier.apply(OperationStored(record))

"""What operations that ended still hold of a document or a bank that is erased: the text they were to store."""

from __future__ import annotations

import dataclasses
import zlib

from recalld.actors.operations import document_marks
from recalld.storage import codec, keys
from recalld.storage.answers import OF_FILE
from recalld.storage.apply import Applier
from recalld.storage.changes import OperationStored
from recalld.storage.records import OPEN_STATES, OperationRecord


def drop_payloads(applier: Applier, document_id: str | None, now: int) -> None:
    """Remove what ended operations were to store of a document, or (None) of anything.

    A payload that names the document goes as a whole: a retry of the rest would look like one of everything. Open
    operations were not carried out yet and keep theirs.
    """
    for key in applier.txn.keys(keys.table(applier.bank, keys.PAYLOAD)):
        value = applier.txn.get(keys.raw(applier.bank, keys.OPERATION, key[-16:]))
        operation = None if value is None else codec.decode(OperationRecord, value)
        if operation is None or operation.status in OPEN_STATES:
            continue
        if document_id is None or _names(applier, operation, document_id):
            result = {name: value for name, value in operation.result.items() if name not in OF_FILE}
            ended = dataclasses.replace(operation, document_id=None, result=result, updated_at=now)
            applier.apply(OperationStored(ended, b""))


def _names(applier: Applier, operation: OperationRecord, document_id: str) -> bool:
    """True when an operation is to write a document; also when it cannot be told."""
    if operation.documents:
        return document_marks((document_id,))[0] in operation.documents
    payload = applier.txn.get(keys.operation_key(applier.bank, keys.PAYLOAD, operation.id)) or b""
    try:
        return any(item.get("document_id") == document_id for item in codec.unpack(zlib.decompress(payload)))
    except zlib.error:
        return True

"""What stored answers and receipts still name of what was erased, taken out of them while a partition is compacted.

A repeated request is answered what it was answered the first time, and an operation keeps the receipt of what it
stored; both name documents and units by their ids. Those that no longer exist go, the rest of the answer stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from recalld.storage import codec, keys
from recalld.storage.audit import AuditRecord
from recalld.storage.environment import ReadTxn, WriteTxn
from recalld.storage.partition import Partition
from recalld.storage.records import COMPLETED, OperationRecord

KEYS_A_COMMIT = 1000
OF_FILE = ("filename", "byte_size", "file", "storage_key", "download_url")
"""What an operation knows of an upload; it goes with the document that was read from it."""

Exists = Callable[[int, str], bool]
"""Whether a name stands in a table of names of the bank."""


def sweep(partition: Partition, bank: int) -> None:
    """Take the names of erased documents and units out of the bank's answers and operations."""
    for table, clean in (
        (keys.REQUEST, _clean_answer),
        (keys.OPERATION, _clean_operation),
        (keys.AUDIT, _clean_entry),
    ):
        start: bytes | None = keys.table(bank, table)
        while start is not None:

            def slice_(
                txn: WriteTxn, start: bytes = start, clean: Callable[[WriteTxn, int, bytes], None] = clean
            ) -> bytes | None:
                found, follow = _some(txn, start)
                for key in found:
                    clean(txn, bank, key)
                return follow

            start = partition.environment.write(slice_, frees=True)


def _some(txn: ReadTxn, start: bytes) -> tuple[list[bytes], bytes | None]:
    """(keys of a table from `start` on, the one to go on from)."""
    found: list[bytes] = []
    for key, _ in txn.scan(start[:5], start):
        if len(found) == KEYS_A_COMMIT:
            return found, key
        found.append(key)
    return found, None


def _exists(txn: ReadTxn, bank: int) -> Exists:
    return lambda table, name: txn.get(keys.named(bank, table, name)) is not None


def _clean_answer(txn: WriteTxn, bank: int, key: bytes) -> None:
    place = keys.raw(0, keys.REQUEST, key[-16:])
    value = txn.get(place)
    held = None if value is None else codec.unpack(value)
    if held is None or held["bank"] != bank:
        return
    answer = without_erased(held["answer"], _exists(txn, bank))
    if answer != held["answer"]:
        txn.put(place, codec.pack({**held, "answer": answer}))


def _clean_operation(txn: WriteTxn, bank: int, key: bytes) -> None:
    record = codec.decode(OperationRecord, txn.get(key) or b"")
    if record.status != COMPLETED:
        return
    exists = _exists(txn, bank)
    receipt = tuple(without_erased(item, exists) for item in record.receipt)
    document = record.document_id
    if document is not None and not exists(keys.DOCUMENT_ID, document):
        document = None
    result = {k: v for k, v in record.result.items() if k not in OF_FILE} if document is None else record.result
    if (receipt, document, result) != (record.receipt, record.document_id, record.result):
        txn.put(key, codec.encode(dataclasses.replace(record, receipt=receipt, document_id=document, result=result)))


def _clean_entry(txn: WriteTxn, bank: int, key: bytes) -> None:
    record = codec.decode(AuditRecord, txn.get(key) or b"")
    metadata = without_erased(record.metadata, _exists(txn, bank))
    if metadata != record.metadata:
        txn.put(key, codec.encode(dataclasses.replace(record, metadata=metadata)))


def without_erased(answer: Any, exists: Exists) -> Any:
    """An answer whose documents and units are those that exist."""
    if isinstance(answer, list | tuple):
        return type(answer)(without_erased(value, exists) for value in answer)
    if not isinstance(answer, dict):
        return answer
    kept: dict[str, Any] = {}
    for name, value in answer.items():
        table = keys.DOCUMENT_ID if name in ("documents", "document_id") else keys.UNIT_ID
        if name in ("unit_ids", "mention_ids", "restored_ids", "documents") and isinstance(value, list | tuple):
            kept[name] = type(value)(one for one in value if exists(table, one))
        elif name in ("document_id", "unit_id", "by") and isinstance(value, str):
            kept[name] = value if exists(table, value) else ""
        else:
            kept[name] = without_erased(value, exists)
    return kept

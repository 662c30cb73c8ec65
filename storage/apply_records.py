"""Carrying out what happens to records that are not units: documents, the bank itself, its operations."""

from __future__ import annotations

import struct

from recalld.storage import codec, keys, ledger_rows
from recalld.storage.changes import Delta, DocumentErased, DocumentStored, OperationErased, OperationStored
from recalld.storage.environment import WriteTxn
from recalld.storage.errors import StoreCorrupt
from recalld.storage.records import OPEN_STATES, BankRecord, DocumentRecord

_U32 = struct.Struct("<I")


class RecordChanges:
    """The part of an `Applier` that knows documents, banks and operations."""

    txn: WriteTxn
    bank: int
    delta: Delta
    _documents: int
    _erased: bool

    def _store_document(self, change: DocumentStored) -> None:
        record = change.record
        key = keys.number(self.bank, keys.DOCUMENT, record.number)
        if self.txn.get(key) is None:
            self._documents += 1
            self.txn.put(keys.named(self.bank, keys.DOCUMENT_ID, record.id), _U32.pack(record.number))
        self.txn.put(key, codec.encode(record))
        for index in change.dropped:
            self.txn.delete(keys.chunk(self.bank, record.number, index))
        for chunk in change.chunks:
            self.txn.put(keys.chunk(self.bank, record.number, chunk.index), codec.encode(chunk))
            ledger_rows.point_to_chunk(self.txn, self.bank, chunk)

    def _erase_document(self, change: DocumentErased) -> None:
        key = keys.number(self.bank, keys.DOCUMENT, change.number)
        value = self.txn.get(key)
        if value is None:
            return
        record = codec.decode(DocumentRecord, value)
        self.txn.delete(key)
        self.txn.delete(keys.named(self.bank, keys.DOCUMENT_ID, record.id))
        ledger_rows.forget_readings(self.txn, self.bank, change.number)
        self.txn.delete_prefix(keys.chunks(self.bank, change.number))
        self._documents -= 1

    def _erase_bank(self) -> None:
        value = self.txn.get(keys.table(self.bank, keys.BANK))
        if value is None:
            raise StoreCorrupt("The bank has no record; run `recalld doctor`.")
        record = codec.decode(BankRecord, value)
        for key, _ in list(self.txn.scan(keys.table(self.bank, keys.REQUEST))):
            # That a request was answered stays known; the names in its answer go.
            answered = keys.raw(0, keys.REQUEST, key[-16:])
            held = codec.unpack(self.txn.get(answered) or codec.pack({}))
            self.txn.put(answered, codec.pack({**held, "answer": codec.numbers_alone(held.get("answer"))}))
        for key, _ in list(self.txn.scan(keys.table(self.bank, keys.OPERATION))):
            self.txn.delete(keys.raw(0, keys.OPEN_OPERATION, key[-16:]))
            self.txn.delete(keys.raw(0, keys.OPERATION_BANK, key[-16:]))
        self.txn.delete_prefix(keys.bank_prefix(self.bank))
        self.txn.delete(keys.bank_name(record.tenant, record.bank_id))
        self._erased = True
        self.delta.add("close")

    def _store_operation(self, change: OperationStored) -> None:
        record = change.record
        self.txn.put(keys.operation_key(self.bank, keys.OPERATION, record.id), codec.encode(record))
        owner_key = keys.operation_key(0, keys.OPERATION_BANK, record.id)
        if self.txn.get(owner_key) is None:
            self.txn.put(owner_key, _U32.pack(self.bank))
        open_key = keys.operation_key(0, keys.OPEN_OPERATION, record.id)
        if record.status in OPEN_STATES:
            self.txn.put(open_key, _U32.pack(self.bank))
        else:
            self.txn.delete(open_key)
        payload_key = keys.operation_key(self.bank, keys.PAYLOAD, record.id)
        if change.payload:
            self.txn.put(payload_key, change.payload)
        elif change.payload is not None:
            self.txn.delete(payload_key)
            self.txn.delete_prefix(keys.journal(self.bank, record.id))

    def _erase_operation(self, change: OperationErased) -> None:
        self.txn.delete(keys.operation_key(self.bank, keys.OPERATION, change.operation_id))
        self.txn.delete(keys.operation_key(self.bank, keys.PAYLOAD, change.operation_id))
        self.txn.delete(keys.operation_key(0, keys.OPERATION_BANK, change.operation_id))
        self.txn.delete_prefix(keys.journal(self.bank, change.operation_id))

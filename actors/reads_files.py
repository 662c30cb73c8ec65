"""Which uploads are still named: by documents that were read from them, and by operations that are to read them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import NotFound
from recalld.storage.partition import Partition
from recalld.storage.records import OPEN_STATES, DocumentRecord, OperationRecord

FILE_KIND = "file_convert_retain"
"""Kind of the operations that convert and retain an upload."""

_U32 = struct.Struct("<I")


def file_keys(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[str]:
    """The keys in use in a bank; with an empty bank id in every bank of the partition. Raises `BankNotFound`."""
    if bank_id:
        with partition.peek(tenant, bank_id) as (txn, number):
            return list(_keys(txn, number))
    with partition.environment.read() as txn:
        numbers = [_U32.unpack(bytes(value))[0] for _, value in txn.scan(keys.table(0, keys.BANK_NAME))]
        return [key for number in numbers for key in _keys(txn, number)]


def _keys(txn: ReadTxn, bank: int) -> Iterator[str]:
    for _, value in txn.scan(keys.table(bank, keys.DOCUMENT)):
        key = (codec.decode(DocumentRecord, value).params.get("file") or {}).get("key")
        if key:
            yield key
    for _, value in txn.scan(keys.table(bank, keys.OPERATION)):
        record = codec.decode(OperationRecord, value)
        if record.kind == FILE_KIND and record.status in OPEN_STATES and record.result.get("file"):
            yield record.result["file"]


def stored_file(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """`key`, `name`, `size` and `type` of the upload behind a document. Raises `BankNotFound`, `NotFound`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        for _, value in txn.scan(keys.table(number, keys.DOCUMENT)):
            file = codec.decode(DocumentRecord, value).params.get("file") or {}
            if file.get("key") == params["key"]:
                return dict(file)
    raise NotFound("There is no such file.")

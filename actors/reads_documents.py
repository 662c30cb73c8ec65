"""Reads of documents and their chunks. A document's text is its chunks, each after the glue that stands before it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from recalld.actors.filters import DocumentFilters
from recalld.actors.reads_shape import after, cut, holds, page
from recalld.actors.recall.filters import tag_filter
from recalld.storage import codec, keys, mentions
from recalld.storage.columns import COLUMN_ROWS, LIVE, ColumnRow
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BadRequest, NotFound
from recalld.storage.isotime import iso
from recalld.storage.names import folded, number_key
from recalld.storage.partition import Partition
from recalld.storage.records import NETWORK_NAMES, ChunkRecord, DocumentRecord

_U32 = struct.Struct("<I")
MAX_BANK_ID = 192
Bools = NDArray[np.bool_]


class _Tagged:
    """Documents as a `TagSource`: one row each."""

    def __init__(self, documents: Sequence[DocumentRecord]) -> None:
        self.n = len(documents)
        self._sets = [frozenset(document.tags) for document in documents]

    def tag_mask(self, tag: str) -> Bools:
        return np.array([tag in held for held in self._sets], np.bool_)

    def tagset_mask(self, tags: frozenset[str]) -> Bools:
        return np.array([tags == held for held in self._sets], np.bool_)

    def all_tags(self) -> list[tuple[str, int]]:
        names = sorted(frozenset().union(*self._sets))
        return [(tag, sum(tag in held for held in self._sets)) for tag in names]


def list_documents(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of documents, latest write first. Raises `BankNotFound`, `BadRequest`, `Unprocessable` (a tag mode)."""
    filters: DocumentFilters = params["filters"]
    if filters.time_field not in ("created_at", "updated_at"):
        raise BadRequest("time_field must be created_at or updated_at.")
    with partition.read(tenant, bank_id) as snap:
        chosen = [document for document in snap.documents() if _in_window(document, filters)]
        if filters.tags or filters.tags_match == "exact":
            passed = tag_filter(_Tagged(chosen), filters.tags, filters.tags_match)
            chosen = [document for document, fits in zip(chosen, passed, strict=True) if fits]
        matched: dict[int, list[str]] = {}
        if filters.q:
            needle = folded(filters.q)
            for document in chosen:
                fields = _matches(snap.txn, snap.bank, document, needle)
                if fields:
                    matched[document.number] = fields
            chosen = [document for document in chosen if document.number in matched]
        chosen.sort(key=lambda document: (document.updated_at, document.number), reverse=True)
        columns = snap.columns
        live = np.bincount(columns.document[columns.live])
        items = []
        for document in cut(chosen, filters.limit, filters.offset):
            text = None if document.content_hash else _text(snap.txn, snap.bank, document)
            items.append(
                {
                    "id": document.id,
                    "bank_id": bank_id,
                    "content_hash": _hash(document, text),
                    "created_at": iso(document.created_at),
                    "updated_at": iso(document.updated_at),
                    "text_length": document.text_length,
                    "memory_unit_count": (int(live[document.number]) if document.number < len(live) else 0)
                    + mentions.count_in(snap.txn, snap.bank, document.number),
                    "retain_params": _params(document),
                    "document_metadata": dict(document.metadata) or None,
                    "tags": list(document.tags),
                    "matched_fields": matched.get(document.number, []),
                }
            )
    return {**page(items, len(chosen), filters.limit, filters.offset), "total_is_estimate": False}


def _in_window(document: DocumentRecord, filters: DocumentFilters) -> bool:
    at = document.created_at if filters.time_field == "created_at" else document.updated_at
    return (filters.start is None or at >= filters.start) and (filters.end is None or at < filters.end)


def _matches(txn: ReadTxn, bank: int, document: DocumentRecord, needle: str) -> list[str]:
    found = ["id"] if holds(needle, document.id) else []
    text = _text(txn, bank, document)
    return [*found, "original_text"] if text is not None and holds(needle, text) else found


def get_document(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One document with its text; that is null where texts are not kept. Raises `BankNotFound`, `NotFound`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        document = _document(txn, number, params["document_id"])
        text = _text(txn, number, document)
        counts = _live_units(txn, number, document.number)
        said = mentions.count_in(txn, number, document.number)
    return {
        "id": document.id,
        "bank_id": bank_id,
        "original_text": text,
        "content_hash": _hash(document, text),
        "created_at": iso(document.created_at),
        "updated_at": iso(document.updated_at),
        "memory_unit_count": sum(counts.values()) + said,
        "nodes_by_fact_type": counts,
        "tags": list(document.tags),
        "document_metadata": dict(document.metadata) or None,
        "retain_params": _params(document),
        "observation_scopes": document.params.get("observation_scopes"),
        "attachments": None,
    }


def list_chunks(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of a document's chunks in order; none where texts are not kept. Raises `BankNotFound`, `NotFound`."""
    limit, offset = params["limit"], params["offset"]
    items: list[dict[str, Any]] = []
    total = 0
    with partition.peek(tenant, bank_id) as (txn, number):
        document = _document(txn, number, params["document_id"])
        if document.keep_text:
            for shown, (_, value) in after(txn.scan(keys.chunks(number, document.number)), offset, limit):
                total += 1
                if shown:
                    items.append(_chunk_item(bank_id, document.id, codec.decode(ChunkRecord, value)))
    return page(items, total, limit, offset)


def find_chunk(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks in this partition, of any of the tenant's banks, that have the id; mostly one or none.

    An id reads `{bank}_{document}_{index}` and both names may hold underscores, so every way to split it is tried.
    """
    head, _, last = params["chunk_id"].rpartition("_")
    if not head or not last.isascii() or not last.isdigit() or last != str(int(last[:11])) or int(last) >= 1 << 32:
        return []
    found = []
    with partition.environment.read() as txn:
        for at, letter in enumerate(head[: MAX_BANK_ID + 1]):
            if letter != "_" or at in (0, len(head) - 1):
                continue
            number = partition.bank_number(txn, tenant, head[:at])
            document = None if number is None else _find_document(txn, number, head[at + 1 :])
            if number is None or document is None or not document.keep_text:
                continue
            value = txn.get(keys.chunk(number, document.number, int(last)))
            if value is not None:
                found.append(_chunk_item(head[:at], document.id, codec.decode(ChunkRecord, value)))
    return found


def _chunk_item(bank_id: str, document_id: str, chunk: ChunkRecord) -> dict[str, Any]:
    return {
        "chunk_id": f"{bank_id}_{document_id}_{chunk.index}",
        "document_id": document_id,
        "bank_id": bank_id,
        "chunk_index": chunk.index,
        "chunk_text": chunk.text,
        "created_at": iso(chunk.created_at),
        "attachments": None,
    }


def _find_document(txn: ReadTxn, bank: int, document_id: str) -> DocumentRecord | None:
    held = txn.get(keys.named(bank, keys.DOCUMENT_ID, document_id))
    value = None if held is None else txn.get(keys.number(bank, keys.DOCUMENT, _U32.unpack(held)[0]))
    return None if value is None else codec.decode(DocumentRecord, value)


def _document(txn: ReadTxn, bank: int, document_id: str) -> DocumentRecord:
    found = _find_document(txn, bank, document_id)
    if found is None:
        raise NotFound(f"Document '{document_id}' not found")
    return found


def _text(txn: ReadTxn, bank: int, document: DocumentRecord) -> str | None:
    if not document.keep_text:
        return None
    chunks = (codec.decode(ChunkRecord, value) for _, value in txn.scan(keys.chunks(bank, document.number)))
    return "".join(chunk.glue + chunk.text for chunk in chunks)


def _hash(document: DocumentRecord, text: str | None) -> str | None:
    """sha256 of the text; one that grew by appending has none stored, and none at all when its text is not kept."""
    if document.content_hash or text is None:
        return document.content_hash or None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _params(document: DocumentRecord) -> dict[str, Any] | None:
    params = dict(document.params)
    if isinstance(params.get("event_date"), int):
        params["event_date"] = iso(params["event_date"])
    return params or None


def _live_units(txn: ReadTxn, bank: int, document: int) -> dict[str, int]:
    """Live units of a document by network, networks without one left out."""
    counts = [0] * len(NETWORK_NAMES)
    for _, value in txn.scan(keys.containers(bank, keys.SET_DOCUMENT, number_key(document))):
        for uid in BitMap.deserialize(bytes(value)):
            row = ColumnRow.unpack(COLUMN_ROWS.get(txn, bank, uid))
            if row.flags & LIVE:
                counts[row.network] += 1
    return {name: count for name, count in zip(NETWORK_NAMES, counts, strict=True) if count}

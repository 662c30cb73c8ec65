"""A small in-memory service behind the façade's protocol: real enough to drive the edge and the official client."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Any

from http_curation_service import CurationAnswers
from http_entity_service import EntityAnswers
from http_observation_service import ObservationAnswers
from http_page_service import PageAnswers

from recalld.actors.filters import DocumentFilters, MemoryFilters
from recalld.actors.retain.items import RetainItem
from recalld.daemon.bank_settings import check_together, resolve
from recalld.daemon.settings import Settings
from recalld.daemon.wire.base import iso
from recalld.daemon.wire.recall_input import RecallInput
from recalld.storage.errors import BankNotFound, Conflict, NotFound

NOW = 1_780_000_000_000_000


@dataclass
class Bank:
    name: str | None = None
    overrides: dict[str, Any] = field(default_factory=dict)
    units: dict[str, tuple[str, RetainItem]] = field(default_factory=dict)
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)


class MemoryService(CurationAnswers, EntityAnswers, ObservationAnswers, PageAnswers):
    """Words stand for vectors: a recall returns the units that share a word with the query, most shared first."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.banks: dict[tuple[str, str], Bank] = {}
        self.recalls: list[RecallInput] = []
        self.healthy = True
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.cancelled = 0

    def _bank(self, tenant: str, bank_id: str) -> Bank:
        try:
            return self.banks[tenant, bank_id]
        except KeyError:
            raise BankNotFound.named(bank_id) from None

    async def retain(
        self, tenant: str, bank_id: str, items: list[RetainItem], *, asynchronous: bool, operation_id: str | None
    ) -> dict[str, Any]:
        await self._pause()
        bank = self.banks.setdefault((tenant, bank_id), Bank())
        operation = operation_id or str(uuid.uuid4())
        replayed = operation in bank.operations
        if not replayed:
            for item in items:
                bank.units[str(uuid.uuid4())] = (item.document_id or operation, item)
        if asynchronous:
            bank.operations[operation] = {"count": len(items)}
        usage = {
            "input_tokens": 0,
            "output_tokens": 0,
            "total_tokens": 0,
            "cached_tokens": 0,
            "thoughts_tokens": 0,
        }
        return {
            "success": True,
            "bank_id": bank_id,
            "items_count": len(items),
            "async": asynchronous,
            "operation_id": operation if asynchronous else None,
            "operation_ids": None,
            "usage": None if asynchronous else usage,
        }

    async def recall(self, tenant: str, bank_id: str, request: RecallInput) -> dict[str, Any]:
        await self._pause()
        bank = self._bank(tenant, bank_id)
        self.recalls.append(request)
        words = set(request.query.casefold().split())
        scored = [(len(words & set(item.content.casefold().split())), key) for key, (_, item) in bank.units.items()]
        found = [(score, key) for score, key in sorted(scored, reverse=True) if score and request.max_tokens]
        results = [self._result(bank_id, key, *bank.units[key], float(score), request) for score, key in found]
        names = sorted({entity.name for _, key in found for entity in bank.units[key][1].entities})
        entities = {
            name: {"entity_id": str(uuid.uuid4()), "canonical_name": name, "observations": []} for name in names
        }
        return {
            "results": results,
            "trace": {"query": {"query_text": request.query}} if request.trace else None,
            "entities": entities if request.include_entities and entities else None,
            "chunks": {
                one["chunk_id"]: {
                    "id": one["chunk_id"],
                    "text": one["text"],
                    "chunk_index": 0,
                    "truncated": False,
                    "attachments": None,
                }
                for one in results
            }
            if request.include_chunks and results
            else None,
            "source_facts": None,
            "source_facts_truncated": False if request.include_source_facts else None,
        }

    def _result(
        self, bank_id: str, key: str, document: str, item: RetainItem, score: float, request: RecallInput
    ) -> dict[str, Any]:
        return {
            "id": key,
            "text": item.content,
            "type": "world",
            "entities": [entity.name for entity in item.entities] if request.include_entities else None,
            "context": item.context or None,
            "occurred_start": None,
            "occurred_end": None,
            "mentioned_at": None if item.undated else iso(NOW if item.timestamp is None else item.timestamp),
            "document_id": document,
            "metadata": item.metadata,
            "chunk_id": f"{bank_id}_{document}_0",
            "tags": list(item.tags),
            "source_fact_ids": None,
            "scores": {"final": score, "reranker": None, "semantic": None, "keyword": score, "late": None},
            "attachments": None,
        }

    async def list_banks(self, tenant: str, q: str | None, limit: int, offset: int) -> dict[str, Any]:
        rows = [
            {
                "bank_id": bank_id,
                "name": bank.name,
                "disposition": self._disposition(bank),
                "mission": bank.overrides.get("reflect_mission"),
                "created_at": iso(NOW),
                "updated_at": iso(NOW),
                "fact_count": len(bank.units),
                "last_document_at": None,
                "last_write_at": None,
                "display_alias": None,
            }
            for (owner, bank_id), bank in self.banks.items()
            if owner == tenant and (q or "") in bank_id
        ]
        return {"banks": rows[offset : offset + limit], "total": len(rows), "limit": limit, "offset": offset}

    def _disposition(self, bank: Bank) -> dict[str, int]:
        return {
            trait: bank.overrides.get(f"disposition_{trait}", 3) for trait in ("skepticism", "literalism", "empathy")
        }

    def _profile(self, bank_id: str, bank: Bank) -> dict[str, Any]:
        mission = bank.overrides.get("reflect_mission") or ""
        return {
            "bank_id": bank_id,
            "name": bank.name or bank_id,
            "disposition": self._disposition(bank),
            "mission": mission,
            "background": mission,
        }

    async def put_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.banks.setdefault((tenant, bank_id), Bank())
        return await self.patch_bank(tenant, bank_id, fields)

    async def patch_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> dict[str, Any]:
        bank = self._bank(tenant, bank_id)
        fields = dict(fields)
        bank.name = fields.pop("name", bank.name)
        bank.overrides |= fields
        return self._profile(bank_id, bank)

    async def delete_bank(self, tenant: str, bank_id: str) -> dict[str, Any]:
        bank = self.banks.pop((tenant, bank_id), Bank())
        return {"success": True, "message": None, "deleted_count": len(bank.units)}

    async def bank_stats(self, tenant: str, bank_id: str) -> dict[str, Any]:
        bank = self._bank(tenant, bank_id)
        return {
            "bank_id": bank_id,
            "total_nodes": len(bank.units),
            "total_links": 0,
            "total_documents": len({document for document, _ in bank.units.values()}),
            "nodes_by_fact_type": {"world": len(bank.units)},
            "links_by_link_type": {},
            "links_by_fact_type": {},
            "links_breakdown": {},
            "pending_operations": 0,
            "failed_operations": 0,
            "operations_by_status": {"completed": len(bank.operations)},
            "last_consolidated_at": None,
            "last_memory_write_at": iso(NOW),
            "pending_consolidation": 0,
            "failed_consolidation": 0,
            "total_observations": 0,
        }

    async def bank_config(self, tenant: str, bank_id: str) -> dict[str, Any]:
        overrides = self._bank(tenant, bank_id).overrides
        return {"bank_id": bank_id, "config": resolve(self.settings, overrides), "overrides": dict(overrides)}

    async def patch_config(self, tenant: str, bank_id: str, updates: dict[str, Any]) -> dict[str, Any]:
        bank = self.banks.get((tenant, bank_id), Bank())
        merged = {name: value for name, value in (bank.overrides | updates).items() if value is not None}
        check_together(resolve(self.settings, merged))
        self.banks[tenant, bank_id] = bank
        bank.overrides = merged
        return await self.bank_config(tenant, bank_id)

    async def reset_config(self, tenant: str, bank_id: str) -> dict[str, Any]:
        self._bank(tenant, bank_id).overrides = {}
        return await self.bank_config(tenant, bank_id)

    async def list_memories(self, tenant: str, bank_id: str, filters: MemoryFilters) -> dict[str, Any]:
        bank = self._bank(tenant, bank_id)
        rows = [
            self._list_item(bank_id, key, document, item)
            for key, (document, item) in bank.units.items()
            if (filters.q or "") in item.content and (not filters.tags or set(filters.tags) & set(item.tags))
        ]
        start, end = filters.offset, filters.offset + filters.limit
        return {"items": rows[start:end], "total": len(rows), "limit": filters.limit, "offset": filters.offset}

    def _list_item(self, bank_id: str, key: str, document: str, item: RetainItem) -> dict[str, Any]:
        return {
            "id": key,
            "text": item.content,
            "context": item.context,
            "date": iso(NOW),
            "fact_type": "world",
            "document_id": document,
            "mentioned_at": iso(NOW),
            "occurred_start": None,
            "occurred_end": None,
            "entities": ", ".join(entity.name for entity in item.entities),
            "chunk_id": f"{bank_id}_{document}_0",
            "proof_count": 1,
            "tags": list(item.tags),
            "metadata": item.metadata,
            "consolidated_at": None,
            "consolidation_failed_at": None,
            "state": "valid",
            "invalidation_reason": None,
            "invalidated_at": None,
            "edited_at": None,
            "updated_at": iso(NOW),
            "source_memory_ids": [],
        }

    async def get_memory(self, tenant: str, bank_id: str, memory_id: str) -> dict[str, Any]:
        bank = self.banks.get((tenant, bank_id), Bank())
        if memory_id not in bank.units:
            raise NotFound(f"Memory '{memory_id}' not found")
        row = self._list_item(bank_id, memory_id, *bank.units[memory_id])
        row["type"] = row.pop("fact_type")
        return row | {"entities": [], "observation_scopes": None}

    async def clear_memories(self, tenant: str, bank_id: str, type: str | None) -> dict[str, Any]:
        bank = self.banks.get((tenant, bank_id), Bank())
        count = len(bank.units)
        bank.units.clear()
        return {"success": True, "message": None, "deleted_count": count}

    def _documents(self, bank: Bank) -> dict[str, list[RetainItem]]:
        found: dict[str, list[RetainItem]] = {}
        for document, item in bank.units.values():
            found.setdefault(document, []).append(item)
        return found

    async def list_documents(self, tenant: str, bank_id: str, filters: DocumentFilters) -> dict[str, Any]:
        rows = [
            {
                "id": document,
                "bank_id": bank_id,
                "content_hash": None,
                "created_at": iso(NOW),
                "updated_at": iso(NOW),
                "text_length": sum(len(item.content) for item in items),
                "memory_unit_count": len(items),
                "retain_params": None,
                "document_metadata": None,
                "tags": [],
                "matched_fields": [],
            }
            for document, items in self._documents(self._bank(tenant, bank_id)).items()
        ]
        start, end = filters.offset, filters.offset + filters.limit
        page = {"items": rows[start:end], "total": len(rows), "limit": filters.limit, "offset": filters.offset}
        return page | {"total_is_estimate": False}

    def _document(self, tenant: str, bank_id: str, document_id: str) -> list[RetainItem]:
        documents = self._documents(self.banks.get((tenant, bank_id), Bank()))
        if document_id not in documents:
            raise NotFound(f"Document '{document_id}' not found")
        return documents[document_id]

    async def get_document(self, tenant: str, bank_id: str, document_id: str) -> dict[str, Any]:
        text = "\n".join(item.content for item in self._document(tenant, bank_id, document_id))
        return {
            "id": document_id,
            "bank_id": bank_id,
            "original_text": text,
            "content_hash": hashlib.sha256(text.encode()).hexdigest(),
            "created_at": iso(NOW),
            "updated_at": iso(NOW),
            "memory_unit_count": 1,
            "nodes_by_fact_type": {"world": 1},
            "tags": [],
            "document_metadata": None,
            "retain_params": None,
            "observation_scopes": None,
            "attachments": None,
        }

    async def list_chunks(self, tenant: str, bank_id: str, document_id: str, limit: int, offset: int) -> dict[str, Any]:
        items = self._document(tenant, bank_id, document_id)
        rows = [
            {
                "chunk_id": f"{bank_id}_{document_id}_{index}",
                "document_id": document_id,
                "bank_id": bank_id,
                "chunk_index": index,
                "chunk_text": item.content,
                "created_at": iso(NOW),
                "attachments": None,
            }
            for index, item in enumerate(items)
        ]
        return {"items": rows[offset : offset + limit], "total": len(rows), "limit": limit, "offset": offset}

    async def patch_document(
        self, tenant: str, bank_id: str, document_id: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        self._document(tenant, bank_id, document_id)
        return {"success": True}

    async def delete_document(self, tenant: str, bank_id: str, document_id: str) -> dict[str, Any]:
        count = len(self._document(tenant, bank_id, document_id))
        bank = self._bank(tenant, bank_id)
        bank.units = {key: unit for key, unit in bank.units.items() if unit[0] != document_id}
        return {
            "success": True,
            "message": "Document deleted",
            "document_id": document_id,
            "memory_units_deleted": count,
        }

    async def get_chunk(self, tenant: str, chunk_id: str) -> dict[str, Any]:
        for owner, bank_id in self.banks:
            for document_id in self._documents(self.banks[owner, bank_id]):
                for row in (await self.list_chunks(owner, bank_id, document_id, 1000, 0))["items"]:
                    if owner == tenant and row["chunk_id"] == chunk_id:
                        return row
        raise NotFound(f"Chunk '{chunk_id}' not found")

    async def list_tags(
        self, tenant: str, bank_id: str, q: str | None, source: str, limit: int, offset: int
    ) -> dict[str, Any]:
        counts: dict[str, int] = {}
        for _, item in self._bank(tenant, bank_id).units.values():
            for tag in item.tags:
                counts[tag] = counts.get(tag, 0) + 1
        rows = [{"tag": tag, "count": count} for tag, count in sorted(counts.items())]
        return {"items": rows[offset : offset + limit], "total": len(rows), "limit": limit, "offset": offset}

    async def list_entities(
        self, tenant: str, bank_id: str, tags: Any, tags_match: str, tag_groups: Any, limit: int, offset: int
    ) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        row = {
            "id": str(uuid.uuid4()),
            "canonical_name": "Ana",
            "mention_count": 1,
            "first_seen": None,
            "last_seen": None,
            "metadata": None,
        }
        return {"items": [row][offset : offset + limit], "total": 1, "limit": limit, "offset": offset}

    async def get_entity(
        self, tenant: str, bank_id: str, entity_id: str, tags: Any, tags_match: str, tag_groups: Any
    ) -> dict[str, Any]:
        raise NotFound(f"Entity '{entity_id}' not found")

    async def list_operations(
        self,
        tenant: str,
        bank_id: str,
        status: str | None,
        type: str | None,
        limit: int,
        offset: int,
        exclude_parents: bool,
    ) -> dict[str, Any]:
        rows = [
            {
                "id": key,
                "task_type": "batch_retain",
                "operation_id": key,
                "operation_type": "batch_retain",
                "items_count": operation["count"],
                "document_id": None,
                "filename": None,
                "mental_model_id": None,
                "details": None,
                "created_at": iso(NOW),
                "updated_at": iso(NOW),
                "status": "completed",
                "error_message": None,
                "retry_count": 0,
                "next_retry_at": None,
                "progress": None,
            }
            for key, operation in self._bank(tenant, bank_id).operations.items()
        ]
        page = rows[offset : offset + limit]
        return {"bank_id": bank_id, "total": len(rows), "limit": limit, "offset": offset, "operations": page}

    async def get_operation(
        self, tenant: str, bank_id: str, operation_id: str, include_payload: bool
    ) -> dict[str, Any]:
        found = operation_id in self.banks.get((tenant, bank_id), Bank()).operations
        return {
            "operation_id": operation_id,
            "status": "completed" if found else "not_found",
            "operation_type": "batch_retain" if found else None,
            "id": operation_id if found else None,
            "task_type": "batch_retain" if found else None,
            "mental_model_id": None,
            "created_at": iso(NOW) if found else None,
            "updated_at": None,
            "completed_at": None,
            "error_message": None,
            "retry_count": None,
            "next_retry_at": None,
            "progress": None,
            "result_metadata": None,
            "details": None,
            "child_operations": None,
            "task_payload": None,
        }

    def _operation(self, tenant: str, bank_id: str, operation_id: str) -> None:
        if operation_id not in self.banks.get((tenant, bank_id), Bank()).operations:
            raise NotFound(f"Operation '{operation_id}' not found")

    async def cancel_operation(self, tenant: str, bank_id: str, operation_id: str) -> dict[str, Any]:
        self._operation(tenant, bank_id, operation_id)
        raise Conflict("The operation has already finished.")

    async def retry_operation(self, tenant: str, bank_id: str, operation_id: str) -> dict[str, Any]:
        self._operation(tenant, bank_id, operation_id)
        raise Conflict("Only a failed or cancelled operation can be retried.")

    async def delete_operation(self, tenant: str, bank_id: str, operation_id: str) -> dict[str, Any]:
        self._operation(tenant, bank_id, operation_id)
        del self.banks[tenant, bank_id].operations[operation_id]
        return {"success": True, "message": "Operation deleted", "operation_id": operation_id}

    async def receipt(self, tenant: str, bank_id: str, operation_id: str) -> dict[str, Any]:
        self._operation(tenant, bank_id, operation_id)
        return {"operation_id": operation_id, "status": "completed", "items": []}

    async def list_llm_requests(self, tenant: str, bank_id: str, filters: dict[str, Any]) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"bank_id": bank_id, "total": 0, "limit": filters["limit"], "offset": filters["offset"], "items": []}

    async def llm_request_stats(self, tenant: str, bank_id: str, filters: dict[str, Any]) -> dict[str, Any]:
        self._bank(tenant, bank_id)
        return {"bank_id": bank_id, "period": filters["period"], "trunc": "day", "start": iso(NOW), "buckets": []}

    async def health(self) -> dict[str, Any]:
        word = "healthy" if self.healthy else "unhealthy"
        return {"status": word, "database": "connected"}

    async def metrics_snapshot(self) -> dict[str, Any]:
        return {"flushes_total": 7, "open_banks": len(self.banks), "phases": {"fuse": {"count": 2, "seconds": 0.5}}}

    async def _pause(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

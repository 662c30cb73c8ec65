"""What the edge needs from the service: the façade that REST, MCP, the command line and the embedded client share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from recalld.actors.filters import DocumentFilters, MemoryFilters
from recalld.daemon.wire.recall_input import RecallInput

if TYPE_CHECKING:
    from recalld.actors.retain.items import RetainItem
    from recalld.daemon.files import FileDesk

Answer = dict[str, Any]


class MemoryServiceApi(Protocol):
    """Every answer is a plain dict in the contract's wire shape: ISO dates, every declared field present.

    Errors are `recalld.storage.errors`; anything else becomes a 500 whose cause stands only in the log. Every method
    may be cancelled when its client leaves. `files` takes uploads.
    """

    @property
    def files(self) -> FileDesk: ...

    async def retain(
        self,
        tenant: str,
        bank_id: str,
        items: list[RetainItem],
        *,
        asynchronous: bool,
        operation_id: str | None,
    ) -> Answer: ...
    async def recall(self, tenant: str, bank_id: str, request: RecallInput) -> Answer: ...

    async def list_banks(self, tenant: str, q: str | None, limit: int, offset: int) -> Answer: ...
    async def put_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> Answer: ...
    async def patch_bank(self, tenant: str, bank_id: str, fields: dict[str, Any]) -> Answer: ...
    async def delete_bank(self, tenant: str, bank_id: str) -> Answer: ...
    async def bank_stats(self, tenant: str, bank_id: str) -> Answer: ...
    async def bank_config(self, tenant: str, bank_id: str) -> Answer: ...
    async def patch_config(self, tenant: str, bank_id: str, updates: dict[str, Any]) -> Answer: ...
    async def reset_config(self, tenant: str, bank_id: str) -> Answer: ...

    async def list_memories(self, tenant: str, bank_id: str, filters: MemoryFilters) -> Answer: ...
    async def get_memory(self, tenant: str, bank_id: str, memory_id: str) -> Answer: ...
    async def clear_memories(self, tenant: str, bank_id: str, type: str | None) -> Answer: ...

    async def list_documents(self, tenant: str, bank_id: str, filters: DocumentFilters) -> Answer: ...
    async def get_document(self, tenant: str, bank_id: str, document_id: str) -> Answer: ...
    async def list_chunks(self, tenant: str, bank_id: str, document_id: str, limit: int, offset: int) -> Answer: ...
    async def patch_document(self, tenant: str, bank_id: str, document_id: str, fields: dict[str, Any]) -> Answer: ...
    async def delete_document(self, tenant: str, bank_id: str, document_id: str) -> Answer: ...
    async def get_chunk(self, tenant: str, chunk_id: str) -> Answer: ...

    async def list_tags(
        self, tenant: str, bank_id: str, q: str | None, source: str, limit: int, offset: int
    ) -> Answer: ...
    async def list_entities(
        self,
        tenant: str,
        bank_id: str,
        tags: Sequence[str],
        tags_match: str,
        tag_groups: list[dict[str, Any]] | None,
        limit: int,
        offset: int,
    ) -> Answer: ...
    async def get_entity(
        self,
        tenant: str,
        bank_id: str,
        entity_id: str,
        tags: Sequence[str],
        tags_match: str,
        tag_groups: list[dict[str, Any]] | None,
    ) -> Answer: ...

    async def list_operations(
        self,
        tenant: str,
        bank_id: str,
        status: str | None,
        type: str | None,
        limit: int,
        offset: int,
        exclude_parents: bool,
    ) -> Answer: ...
    async def get_operation(self, tenant: str, bank_id: str, operation_id: str, include_payload: bool) -> Answer: ...
    async def cancel_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer: ...
    async def retry_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer: ...
    async def delete_operation(self, tenant: str, bank_id: str, operation_id: str) -> Answer: ...
    async def receipt(self, tenant: str, bank_id: str, operation_id: str) -> Answer: ...

    async def health(self) -> Answer: ...
    async def metrics_snapshot(self) -> Answer:
        """Plain numbers by name, shown as `recalld_NAME`; `NAME_total` counts up.

        Three names have parts: `phases` ({phase: {"count": n, "seconds": s}}), `banks_by_state` and
        `operations_by_status` ({word: n}); their keys come from the code, never from a user.
        """
        ...

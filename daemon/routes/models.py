"""Language models: what extraction would do and cost, whether models answer, and the ledger of their calls."""

from __future__ import annotations

from typing import Any, Protocol, cast

from recalld.actors.retain.items import RetainItem
from recalld.daemon.exchange import Call
from recalld.daemon.routes.memories import to_items
from recalld.daemon.routing import Route
from recalld.daemon.wire import model_requests as wire
from recalld.daemon.wire.requests import RetainRequest
from recalld.storage.errors import NotFound

BANK = "/v1/default/banks/{bank_id}"


class Modelled(Protocol):
    """The part of the service that has to do with language models."""

    async def dry_run_extract(
        self, tenant: str, bank_id: str, item: RetainItem, overrides: dict[str, Any]
    ) -> dict[str, Any]: ...
    async def reprocess_document(self, tenant: str, bank_id: str, document_id: str) -> dict[str, Any]: ...
    async def probe_models(self, tenant: str, bank_id: str) -> dict[str, Any]: ...
    async def preview_prompt(
        self, tenant: str, bank_id: str, operation: str, strategy: str | None
    ) -> dict[str, Any]: ...
    async def price_preview(self, tenant: str, bank_id: str, request: dict[str, Any]) -> dict[str, Any]: ...
    async def list_llm_requests(self, tenant: str, bank_id: str, filters: dict[str, Any]) -> dict[str, Any]: ...
    async def llm_request_stats(self, tenant: str, bank_id: str, filters: dict[str, Any]) -> dict[str, Any]: ...


def _service(call: Call) -> Modelled:
    return cast(Modelled, call.service)


async def dry_run(call: Call) -> dict[str, Any]:
    if not call.settings.enable_dry_run_extract:
        raise NotFound("Dry runs are switched off here (enable_dry_run_extract).")
    request = call.body_as(wire.DryRunExtractRequest)
    return await _service(call).dry_run_extract(call.tenant, call.bank, request.to_item(), request.to_overrides())


async def reprocess(call: Call) -> dict[str, Any]:
    return await _service(call).reprocess_document(call.tenant, call.bank, call.path["document_id"])


async def health(call: Call) -> dict[str, Any]:
    if not call.settings.enable_bank_llm_health:
        raise NotFound("Probing the models of a bank is switched off (enable_bank_llm_health).")
    return await _service(call).probe_models(call.tenant, call.bank)


async def preview(call: Call) -> dict[str, Any]:
    request = call.body_as(wire.PromptPreviewRequest)
    return await _service(call).preview_prompt(call.tenant, call.bank, request.operation, request.strategy or None)


async def price(call: Call) -> dict[str, Any]:
    request = call.body_as(wire.PriceRequest)
    items = to_items(RetainRequest.model_construct(items=request.items, document_tags=None))
    fields = {"operation": request.operation, "items": items, "budget": request.budget}
    return await _service(call).price_preview(call.tenant, call.bank, fields)


async def requests(call: Call) -> dict[str, Any]:
    filters = call.query_as(wire.LlmRequestsQuery).to_filters()
    return await _service(call).list_llm_requests(call.tenant, call.bank, filters)


async def stats(call: Call) -> dict[str, Any]:
    filters = call.query_as(wire.LlmStatsQuery).model_dump()
    return await _service(call).llm_request_stats(call.tenant, call.bank, filters)


ROUTES = (
    Route(
        "POST",
        BANK + "/memories/dry-run-extract",
        "dry_run_extract_memories",
        dry_run,
        "Show what extraction would yield; stores nothing",
        body=wire.DryRunExtractRequest,
        response=wire.DryRunExtractionResult,
        lane="retain",
        role="write",
        tag="memories",
    ),
    Route(
        "POST",
        BANK + "/documents/{document_id:any}/reprocess",
        "reprocess_document",
        reprocess,
        "Extract again from the stored text, in the background",
        response=wire.ReprocessDocumentResponse,
        role="write",
        tag="documents",
    ),
    Route(
        "POST",
        BANK + "/health/llm",
        "test_bank_llm",
        health,
        "Probe the models this bank would use",
        response=wire.BankLlmHealthResponse,
        role="write",
        tag="banks",
    ),
    Route(
        "POST",
        BANK + "/prompts/preview",
        "preview_prompt",
        preview,
        "Show the messages an operation would send; no model call",
        body=wire.PromptPreviewRequest,
        response=wire.PromptPreviewResponse,
        tag="banks",
    ),
    Route(
        "POST",
        BANK + "/price-preview",
        "preview_price",
        price,
        "What a retain, a consolidation or a reflect is likely to cost (beyond the contract)",
        body=wire.PriceRequest,
        response=wire.PriceResponse,
        tag="banks",
    ),
    Route(
        "GET",
        BANK + "/llm-requests/stats",
        "llm_request_stats",
        stats,
        "Counts, tokens and money of model calls by hour or day",
        query=wire.LlmStatsQuery,
        response=wire.LLMRequestStatsResponse,
        tag="ledger",
    ),
    Route(
        "GET",
        BANK + "/llm-requests",
        "list_llm_requests",
        requests,
        "Page through model calls, the newest first",
        query=wire.LlmRequestsQuery,
        response=wire.LLMRequestListResponse,
        tag="ledger",
    ),
)

"""Documents and their chunks. A document id may hold slashes, so paths with a suffix stand before the greedy ones."""

from __future__ import annotations

from typing import Any

from recalld.daemon.exchange import Call
from recalld.daemon.routing import Route
from recalld.daemon.wire import queries, requests, responses

DOCUMENTS = "/v1/default/banks/{bank_id}/documents"
DOCUMENT = DOCUMENTS + "/{document_id:any}"


async def list_documents(call: Call) -> dict[str, Any]:
    filters = call.query_as(queries.ListDocumentsQuery).to_filters()
    return await call.service.list_documents(call.tenant, call.bank, filters)


async def list_chunks(call: Call) -> dict[str, Any]:
    query = call.query_as(queries.ListChunksQuery)
    return await call.service.list_chunks(call.tenant, call.bank, call.path["document_id"], query.limit, query.offset)


async def get_document(call: Call) -> dict[str, Any]:
    return await call.service.get_document(call.tenant, call.bank, call.path["document_id"])


async def patch_document(call: Call) -> dict[str, Any]:
    fields = call.body_as(requests.UpdateDocumentRequest).to_fields()
    return await call.service.patch_document(call.tenant, call.bank, call.path["document_id"], fields)


async def delete_document(call: Call) -> dict[str, Any]:
    return await call.service.delete_document(call.tenant, call.bank, call.path["document_id"])


async def get_chunk(call: Call) -> dict[str, Any]:
    return await call.service.get_chunk(call.tenant, call.path["chunk_id"])


ROUTES = (
    Route(
        "GET",
        DOCUMENTS,
        "list_documents",
        list_documents,
        "Page through documents, the latest write first",
        query=queries.ListDocumentsQuery,
        response=responses.ListDocumentsResponse,
        tag="documents",
    ),
    Route(
        "GET",
        DOCUMENT + "/chunks",
        "list_document_chunks",
        list_chunks,
        "Chunks of a document in order",
        query=queries.ListChunksQuery,
        response=responses.ListChunksResponse,
        tag="documents",
    ),
    Route(
        "GET",
        DOCUMENT,
        "get_document",
        get_document,
        "One document with its text",
        response=responses.DocumentResponse,
        tag="documents",
    ),
    Route(
        "PATCH",
        DOCUMENT,
        "update_document",
        patch_document,
        "Replace tags or observation scopes",
        body=requests.UpdateDocumentRequest,
        response=responses.UpdateDocumentResponse,
        role="write",
        tag="documents",
    ),
    Route(
        "DELETE",
        DOCUMENT,
        "delete_document",
        delete_document,
        "Delete a document with its memories",
        response=responses.DeleteDocumentResponse,
        role="write",
        tag="documents",
    ),
    Route(
        "GET",
        "/v1/default/chunks/{chunk_id:any}",
        "get_chunk",
        get_chunk,
        "One chunk",
        response=responses.ChunkResponse,
        tag="documents",
    ),
)

"""Tools about memories: retain, recall, reflect, and the memories, documents, tags and operations of a bank."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from recalld.daemon.mcp.tool import Answer, Arguments, Object, Objects, TagTexts, Texts, Tool, ToolCall
from recalld.daemon.routes.memories import to_items
from recalld.daemon.wire import curation, queries, reflect, requests
from recalld.daemon.wire.base import MAX_PAGE, TagsMatch
from recalld.daemon.wire.requests import require_uuid
from recalld.storage.errors import BadRequest

MAX_INT = 2**31 - 1
ENGINE_FIELDS = ("results", "trace", "entities", "chunks", "source_facts", "source_facts_truncated")
FACT_TYPES = ("world", "experience", "opinion", "observation")
TAGS = "Visibility tags."
LIMIT, OFFSET = "Most entries to return.", "Entries to skip."


class Page(Arguments):
    limit: int = Field(100, ge=0, le=MAX_PAGE, description=LIMIT)
    offset: int = Field(0, ge=0, le=MAX_PAGE, description=OFFSET)


def uuid(value: str, name: str) -> str:
    """An id that must be a UUID, in canonical form. Raises `BadRequest`."""
    try:
        return require_uuid(value, name)
    except ValueError as error:
        raise BadRequest(f"{error}.") from None


# -- retain ----------------------------------------------------------------------------------------------------------


class SyncRetain(Arguments):
    content: str = Field(description="What to remember, in full sentences; relative dates are read from `timestamp`.")
    context: str = Field("general", description="The situation it comes from, or who speaks.")
    timestamp: str | None = Field(None, description="When it was said, ISO 8601; now when left out, 'unset' for never.")
    tags: TagTexts | None = Field(None, description=TAGS)
    metadata: Object | None = Field(None, description="Texts by name, kept with the memory.")
    document_id: str | None = Field(None, description="Document it belongs to; retaining it again replaces it.")
    strategy: str | None = Field(None, description="Name of a retain strategy of the bank.")


class Retain(SyncRetain):
    update_mode: str | None = Field(None, description="'append' adds to the document instead of replacing it.")


async def _retain(call: ToolCall, asynchronous: bool) -> Answer:
    asked = call.as_(SyncRetain)
    item = asked.given("content", "context", "timestamp", "tags", "metadata", "document_id", "strategy")
    if isinstance(asked, Retain):
        item |= asked.given("update_mode")
    request = requests.RetainRequest.model_validate({"items": [item], "async": asynchronous})
    request.check()
    answer: Answer = await call.service.retain(
        call.tenant, call.bank, to_items(request), asynchronous=asynchronous, operation_id=None
    )
    return answer


async def retain(call: ToolCall) -> Answer:
    answer = await _retain(call, True)
    text = f"Memory queued for storage in bank '{call.bank}'"
    return {"status": "accepted", "message": text, "operation_id": answer["operation_id"]}


async def sync_retain(call: ToolCall) -> Answer:
    answer = await _retain(call, False)
    made = [one for item in answer.get("receipt") or () for one in item.get("unit_ids", ())]
    said = [one for item in answer.get("receipt") or () for one in item.get("mention_ids", ())]
    ids = list(dict.fromkeys([*made, *said]))
    return {"status": "completed", "message": f"Memory stored in bank '{call.bank}'", "memory_ids": ids}


def _retain_failed(text: str) -> Answer:
    return {"status": "error", "message": text}


# -- recall and reflect ----------------------------------------------------------------------------------------------


class Recall(Arguments):
    query: str = Field(description="What to look for, as a question or in words.")
    max_tokens: int = Field(4096, ge=0, le=MAX_INT, description="Tokens the memories may take.")
    budget: str = Field("high", description="How hard to look: low, mid or high.")
    types: Texts | None = Field(None, description="Kinds of memories: " + ", ".join(FACT_TYPES) + ".")
    prefer_observations: bool | None = Field(None, description="Put observations in front of the facts they rest on.")
    tags: TagTexts | None = Field(None, description=TAGS)
    tags_match: TagsMatch = Field("any", description="How tags must match.")
    tag_groups: Objects | None = Field(None, description="Conditions on tags, joined by and, or, not.")
    query_timestamp: str | None = Field(None, description="The 'now' of the question, ISO 8601.")
    min_scores: Object | None = Field(None, description="Floors by score: semantic, keyword, reranker, final.")
    temporal_window: Object | None = Field(None, description="Only what overlaps {start, end}, ISO 8601.")
    include_chunks: bool = Field(False, description="Return the source text of the memories.")
    max_chunk_tokens: int = Field(8192, ge=0, le=MAX_INT)
    include_entities: bool = Field(False, description="Return the entities the memories name.")
    max_entity_tokens: int = Field(500, ge=0, le=MAX_INT)
    include_source_facts: bool = Field(False, description="Return the facts that observations rest on.")
    max_source_facts_tokens: int = Field(4096, ge=-1, le=MAX_INT)


async def recall(call: ToolCall) -> Answer:
    asked = call.as_(Recall)
    fields = asked.given(
        "query", "max_tokens", "types", "prefer_observations", "tags", "tags_match", "tag_groups", "query_timestamp",
        "min_scores", "temporal_window",
    )  # fmt: skip
    include = {
        "chunks": {"max_tokens": asked.max_chunk_tokens} if asked.include_chunks else None,
        "entities": {"max_tokens": asked.max_entity_tokens} if asked.include_entities else None,
        "source_facts": {"max_tokens": asked.max_source_facts_tokens} if asked.include_source_facts else None,
    }
    request = requests.RecallRequest.model_validate({**fields, "budget": asked.budget.lower(), "include": include})
    answer = await call.service.recall(call.tenant, call.bank, request.to_input())
    shown = {name: answer[name] for name in ENGINE_FIELDS}
    shown["results"] = [_engine_fact(one) for one in answer["results"]]
    if answer["source_facts"]:
        shown["source_facts"] = {key: _engine_fact(one) for key, one in answer["source_facts"].items()}
    if answer.get("degraded"):
        shown["degraded"] = answer["degraded"]
    return shown


def _engine_fact(fact: Answer) -> Answer:
    """A memory with its kind under the engine's name for it."""
    return {("fact_type" if name == "type" else name): value for name, value in fact.items() if name != "attachments"}


class Reflect(Arguments):
    query: str = Field(description="The question to answer.")
    context: str | None = Field(None, description="What the answer is for.")
    budget: str = Field("low", description="How hard to look: low, mid or high.")
    max_tokens: int = Field(4096, ge=0, le=MAX_INT, description="Tokens the answer may take.")
    response_schema: Object | None = Field(None, description="JSON schema of an object to answer with as well.")
    tags: TagTexts | None = Field(None, description=TAGS)
    tags_match: TagsMatch = Field("any", description="How tags must match.")
    apply_all_directives: bool = Field(False, description="Follow every directive of the bank, whatever its tags.")
    include_based_on: bool = Field(False, description="Return what the answer rests on.")
    include_trace: bool = Field(False, description="Return the steps that led to the answer.")


async def reflect_on(call: ToolCall) -> Answer:
    asked = call.as_(Reflect)
    await call.service.bank_config(call.tenant, call.bank)  # a read makes no bank
    fields = asked.given(
        "query", "context", "max_tokens", "response_schema", "tags", "tags_match", "apply_all_directives"
    )
    include = {"facts": asked.include_based_on, "tool_calls": asked.include_trace}
    request = reflect.ReflectRequest.model_validate({**fields, "budget": asked.budget.lower(), "include": include})
    prepared = request.to_asked(call.tenant, call.bank, *call.service.new_reflect())
    answer = await call.service.reflect(call.tenant, call.bank, prepared, reads_alone=True)
    shown: Answer = {"text": answer["text"]}
    if asked.response_schema is not None:
        shown["structured_output"] = answer["structured_output"]
        if answer.get("structured_output_error"):
            shown["structured_output_error"] = answer["structured_output_error"]
    if answer.get("usage") is not None:
        shown["usage"] = answer["usage"]
    if asked.include_based_on:
        shown["based_on"] = _by_type(answer["based_on"] or {})
    if asked.include_trace:
        trace = answer["trace"] or {}
        shown |= {"tool_trace": trace.get("tool_calls", []), "llm_trace": trace.get("llm_calls", [])}
    return shown


def _by_type(based_on: Answer) -> Answer:
    found: dict[str, list[Any]] = {name: [] for name in FACT_TYPES}
    for one in based_on.get("memories", ()):
        found.setdefault(str(one.get("type")), []).append(_engine_fact(one))
    return {
        **{name: rows for name, rows in found.items() if rows},
        "mental-models": based_on.get("mental_models", []),
        "directives": based_on.get("directives", []),
    }


# -- memories --------------------------------------------------------------------------------------------------------


class ListMemories(Page):
    type: str | None = Field(None, description="Kind of memory: " + ", ".join(FACT_TYPES) + ".")
    q: str | None = Field(None, description="Words that must occur.")
    tags: TagTexts | None = Field(None, description=TAGS)
    tags_match: TagsMatch = Field("any", description="How tags must match.")


async def list_memories(call: ToolCall) -> Answer:
    fields = call.as_(ListMemories).model_dump(exclude={"bank_id"})
    filters = queries.ListMemoriesQuery.model_validate(fields).to_filters()
    answer: Answer = await call.service.list_memories(call.tenant, call.bank, filters)
    return answer


class OneMemory(Arguments):
    memory_id: str = Field(description="Id of a memory.")


async def get_memory(call: ToolCall) -> Answer:
    memory_id = uuid(call.as_(OneMemory).memory_id, "memory_id")
    answer: Answer = await call.service.get_memory(call.tenant, call.bank, memory_id)
    return answer


class UpdateMemory(OneMemory):
    text: str | None = Field(None, description="What the memory says from now on.")
    context: str | None = Field(None, description="The situation it comes from; empty takes it away.")
    occurred_start: str | None = Field(None, description="ISO 8601; empty takes it away.")
    occurred_end: str | None = Field(None, description="ISO 8601; empty takes it away.")
    mentioned_at: str | None = Field(None, description="ISO 8601; empty takes it away.")
    fact_type: str | None = Field(None, description="world or experience.")
    entities: Texts | None = Field(None, description="Names of whom or what it is about.")
    resolve_entities: bool = Field(True, description="Read names as entities the bank knows already.")


async def update_memory(call: ToolCall) -> Answer:
    asked = call.as_(UpdateMemory)
    names = ("text", "context", "occurred_start", "occurred_end", "mentioned_at", "fact_type", "entities")
    return await _curate(call, asked.memory_id, {**asked.given(*names), "resolve_entities": asked.resolve_entities})


async def _curate(call: ToolCall, memory_id: str, changes: Answer) -> Answer:
    fields = curation.UpdateMemoryRequest.model_validate(changes).to_fields()
    answer: Answer = await call.service.patch_memory(call.tenant, call.bank, uuid(memory_id, "memory_id"), fields)
    return answer


class InvalidateMemory(OneMemory):
    reason: str | None = Field(None, description="Why it does not hold.")
    restore: bool = Field(False, description="Bring an invalidated memory back instead.")


async def invalidate_memory(call: ToolCall) -> Answer:
    asked = call.as_(InvalidateMemory)
    state = "valid" if asked.restore else "invalidated"
    return await _curate(call, asked.memory_id, {"state": state, **asked.given("reason")})


class ClearMemories(Arguments):
    type: str | None = Field(None, description="Kind of memory to clear; all kinds when left out.")


async def clear_memories(call: ToolCall) -> Answer:
    kind = queries.ClearMemoriesQuery(type=call.as_(ClearMemories).type).to_type()
    done = await call.service.clear_memories(call.tenant, call.bank, kind)
    return {"status": "cleared", "bank_id": call.bank, "type": kind, "deleted_count": done["deleted_count"]}


# -- documents, tags, operations -------------------------------------------------------------------------------------


class Searched(Page):
    q: str | None = Field(None, description="Words to look for.")


async def list_documents(call: ToolCall) -> Answer:
    fields = call.as_(Searched).model_dump(exclude={"bank_id"})
    filters = queries.ListDocumentsQuery.model_validate(fields).to_filters()
    answer: Answer = await call.service.list_documents(call.tenant, call.bank, filters)
    return answer


class OneDocument(Arguments):
    document_id: str = Field(min_length=1, description="Id of a document.")


async def get_document(call: ToolCall) -> Answer:
    answer: Answer = await call.service.get_document(call.tenant, call.bank, call.as_(OneDocument).document_id)
    return answer


async def delete_document(call: ToolCall) -> Answer:
    document_id = call.as_(OneDocument).document_id
    done = await call.service.delete_document(call.tenant, call.bank, document_id)
    count = done["memory_units_deleted"]
    return {
        "status": "deleted", "document_id": document_id, "document_deleted": True, "memory_units_deleted": count,
    }  # fmt: skip


async def list_tags(call: ToolCall) -> Answer:
    asked = call.as_(Searched)
    answer: Answer = await call.service.list_tags(
        call.tenant, call.bank, asked.q or None, "memories", asked.limit, asked.offset
    )
    return answer


class ListOperations(Arguments):
    status: str | None = Field(None, description="pending, processing, completed, failed or cancelled.")
    type: str | None = Field(None, description="Kind of operation.")
    limit: int = Field(20, ge=1, le=100, description=LIMIT)
    offset: int = Field(0, ge=0, le=MAX_PAGE, description=OFFSET)
    exclude_parents: bool = Field(False, description="Leave out operations that only hold others.")


async def list_operations(call: ToolCall) -> Answer:
    asked = call.as_(ListOperations)
    answer: Answer = await call.service.list_operations(
        call.tenant,
        call.bank,
        asked.status or None,
        asked.type or None,
        asked.limit,
        asked.offset,
        asked.exclude_parents,
    )
    return answer


class OneOperation(Arguments):
    operation_id: str = Field(description="Id of an operation.")


async def get_operation(call: ToolCall) -> Answer:
    operation_id = uuid(call.as_(OneOperation).operation_id, "operation_id")
    answer: Answer = await call.service.get_operation(call.tenant, call.bank, operation_id, False)
    if answer["status"] == "not_found":
        await call.service.bank_config(call.tenant, call.bank)  # of an unknown bank that is what is said
    return answer


async def cancel_operation(call: ToolCall) -> Answer:
    operation_id = uuid(call.as_(OneOperation).operation_id, "operation_id")
    answer: Answer = await call.service.cancel_operation(call.tenant, call.bank, operation_id)
    return answer


NO_RESULTS: Answer = {"results": []}
NO_ITEMS: Answer = {"items": []}

TOOLS = (
    Tool("retain", "Remember something. Use it whenever the user states a fact, a preference, a plan or a correction "
         "that may matter later. Stored in the background; see get_operation.",
         retain, Retain, "write", makes_bank=True, object_always=True, lane="retain", instructed=True,
         failed=_retain_failed),
    Tool("sync_retain", "Remember something and wait until it can be recalled. Slower than retain; for what the very "
         "next step builds on.",
         sync_retain, SyncRetain, "write", makes_bank=True, object_always=True, lane="retain", failed=_retain_failed),
    Tool("recall", "Find memories that bear on a question, the best first. Use it before answering anything that may "
         "depend on what was said or decided earlier.",
         recall, Recall, reads=True, lane="recall", empty=NO_RESULTS, instructed=True),
    Tool("reflect", "Answer a question from everything the bank knows and believes, in prose. Slower than recall; for "
         "questions that need many memories weighed together.",
         reflect_on, Reflect, "write", reads=True, lane="reflect", empty={"text": ""}),
    Tool("list_memories", "Page through memories, the newest first.",
         list_memories, ListMemories, reads=True, empty=NO_ITEMS),
    Tool("get_memory", "One memory with everything that is known about it.", get_memory, OneMemory, reads=True),
    Tool("update_memory", "Correct a memory by hand; its earlier version stays in its history.",
         update_memory, UpdateMemory, "write", lane="retain"),
    Tool("invalidate_memory", "Take a memory that does not hold out of recall, or bring it back with restore=true.",
         invalidate_memory, InvalidateMemory, "write", destructive=True, lane="retain"),
    Tool("list_documents", "Page through documents, the latest write first.",
         list_documents, Searched, reads=True, empty=NO_ITEMS),
    Tool("get_document", "One document with its text.", get_document, OneDocument, reads=True),
    Tool("delete_document", "Delete a document and the memories that come from it. Cannot be undone.",
         delete_document, OneDocument, "write", destructive=True),
    Tool("list_operations", "Page through background operations, the newest first.",
         list_operations, ListOperations, reads=True, empty={"operations": []}),
    Tool("get_operation", "How far a background operation is.", get_operation, OneOperation, reads=True),
    Tool("cancel_operation", "Cancel a background operation that has not ended.",
         cancel_operation, OneOperation, "write"),
    Tool("list_tags", "Tags of memories with counts.", list_tags, Searched, reads=True, empty=NO_ITEMS),
    Tool("clear_memories", "Delete the memories of a bank, all or of one kind. Cannot be undone.",
         clear_memories, ClearMemories, "write", destructive=True),
)  # fmt: skip

"""Tools about mental models, directives and the knowledge base."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from recalld.actors.filters import TagScope
from recalld.daemon.mcp.tool import Answer, Arguments, Object, TagTexts, Tool, ToolCall
from recalld.daemon.wire import pages as wire
from recalld.daemon.wire.base import MAX_PAGE
from recalld.storage.errors import BadRequest

LIMIT, OFFSET = "Most entries to return.", "Entries to skip."
TAGS = "Visibility tags."
TRIGGER = "When and how it is refreshed; fields: " + ", ".join(wire.MentalModelTrigger.model_fields) + "."
QUESTION = "The question it answers."
SHORTHAND = "Refresh it whenever memories were consolidated; the same as that field of the trigger."


def trigger_of(trigger: Answer | None, tags_match: str | None, after_consolidation: bool | None) -> Answer | None:
    """The trigger a call names, its shorthands folded in; None for none. Raises `BadRequest` for an unknown field."""
    unknown = [name for name in trigger or {} if name not in wire.MentalModelTrigger.model_fields]
    if unknown:
        known = ", ".join(wire.MentalModelTrigger.model_fields)
        raise BadRequest(f"trigger has no field {', '.join(map(repr, unknown))}; its fields are {known}.")
    named = dict(trigger or {})
    if tags_match is not None:
        named["tags_match"] = tags_match
    if after_consolidation is not None:
        named["refresh_after_consolidation"] = after_consolidation
    return named or None


class Listed(Arguments):
    tags: TagTexts | None = Field(None, description=TAGS)
    limit: int = Field(100, ge=1, le=1000, description=LIMIT)
    offset: int = Field(0, ge=0, le=MAX_PAGE, description=OFFSET)


# -- mental models ---------------------------------------------------------------------------------------------------


async def list_mental_models(call: ToolCall) -> Answer:
    asked = call.as_(Listed)
    query = wire.ListMentalModelsQuery.model_validate({"tags": asked.tags})
    found = await call.service.list_mental_models(
        call.tenant,
        call.bank,
        tags=tuple(query.tags or ()),
        tags_match=query.tags_match,
        detail=query.detail,
        limit=asked.limit,
        offset=asked.offset,
        exclude_knowledge_pages=False,
    )
    return {"items": found["items"], "total": found["total"]}


class OneModel(Arguments):
    mental_model_id: str = Field(min_length=1, description="Id of a mental model.")


class GetModel(OneModel):
    detail: str = Field("full", description="metadata, content or full.")


async def get_mental_model(call: ToolCall) -> Answer:
    asked = call.as_(GetModel)
    detail = wire.MentalModelQuery.model_validate({"detail": asked.detail}).detail
    answer: Answer = await call.service.get_mental_model(call.tenant, call.bank, asked.mental_model_id, detail)
    return answer


class CreateModel(Arguments):
    name: str = Field(description="What it is called.")
    source_query: str = Field(description=QUESTION)
    mental_model_id: str | None = Field(None, description="Id to give it; made when left out.")
    tags: TagTexts | None = Field(None, description=TAGS)
    trigger: Object | None = Field(None, description=TRIGGER)
    tags_match: str | None = Field(None, description="How its tags must match; the same as that field of the trigger.")
    max_tokens: int = Field(2048, description="Tokens its content may take.")
    trigger_refresh_after_consolidation: bool | None = Field(None, description=SHORTHAND)


async def create_mental_model(call: ToolCall) -> Answer:
    asked = call.as_(CreateModel)
    trigger = trigger_of(asked.trigger, asked.tags_match, asked.trigger_refresh_after_consolidation)
    fields = {**asked.given("name", "source_query", "tags", "max_tokens"), "id": asked.mental_model_id}
    request = wire.CreateMentalModelRequest.model_validate({**fields, "trigger": trigger})
    done = await call.service.create_mental_model(call.tenant, call.bank, request.id or None, request.to_fields())
    text = f"Mental model '{done['mental_model_id']}' created; its content is being made."
    return {
        "mental_model_id": done["mental_model_id"],
        "operation_id": done["operation_id"],
        "status": "created",
        "message": text,
    }


class UpdateModel(OneModel):
    name: str | None = Field(None, description="What it is called.")
    source_query: str | None = Field(None, description=QUESTION)
    max_tokens: int | None = Field(None, description="Tokens its content may take.")
    tags: TagTexts | None = Field(None, description=TAGS)
    trigger: Object | None = Field(None, description=TRIGGER)
    tags_match: str | None = Field(None, description="How its tags must match; the same as that field of the trigger.")
    trigger_refresh_after_consolidation: bool | None = Field(None, description=SHORTHAND)


async def update_mental_model(call: ToolCall) -> Answer:
    asked = call.as_(UpdateModel)
    fields = asked.given("name", "source_query", "max_tokens", "tags")
    trigger = trigger_of(asked.trigger, asked.tags_match, asked.trigger_refresh_after_consolidation)
    request = wire.UpdateMentalModelRequest.model_validate({**fields, "trigger": trigger})
    answer: Answer = await call.service.update_mental_model(
        call.tenant, call.bank, asked.mental_model_id, request.to_fields()
    )
    return answer


async def delete_mental_model(call: ToolCall) -> Answer:
    model_id = call.as_(OneModel).mental_model_id
    await call.service.delete_mental_model(call.tenant, call.bank, model_id)
    return {"status": "deleted", "mental_model_id": model_id}


async def refresh_mental_model(call: ToolCall) -> Answer:
    model_id = call.as_(OneModel).mental_model_id
    done = await call.service.refresh_mental_model(call.tenant, call.bank, model_id, False)
    text = f"A refresh of mental model '{model_id}' is queued."
    return {"operation_id": done["operation_id"], "status": "queued", "message": text}


async def clear_mental_model(call: ToolCall) -> Answer:
    model_id = call.as_(OneModel).mental_model_id
    await call.service.clear_mental_model(call.tenant, call.bank, model_id)
    text = f"Mental model '{model_id}' is empty; its next refresh is a full one."
    return {"mental_model_id": model_id, "status": "cleared", "message": text}


# -- directives ------------------------------------------------------------------------------------------------------


class ListDirectives(Listed):
    active_only: bool = Field(True, description="Leave out those that are switched off.")


async def list_directives(call: ToolCall) -> Answer:
    asked = call.as_(ListDirectives)
    query = wire.ListDirectivesQuery.model_validate(asked.model_dump(exclude={"bank_id"}))
    found = await call.service.list_directives(
        call.tenant, call.bank, query.tags or [], query.tags_match, query.active_only, query.limit, query.offset
    )
    return {"items": found["items"], "total": found["total"]}


class CreateDirective(Arguments):
    name: str = Field(description="What it is called.")
    content: str = Field(description="The rule that reflect is to follow.")
    priority: int = Field(0, description="Higher ones come first.")
    is_active: bool = Field(True, description="Whether it is followed.")
    tags: TagTexts | None = Field(None, description="Follow it only under these tags.")


async def create_directive(call: ToolCall) -> Answer:
    body = wire.CreateDirectiveRequest.model_validate(call.as_(CreateDirective).model_dump(exclude={"bank_id"}))
    fields = {**body.model_dump(), "tags": list(dict.fromkeys(body.tags or ()))}
    answer: Answer = await call.service.create_directive(call.tenant, call.bank, fields)
    return answer


class OneDirective(Arguments):
    directive_id: str = Field(min_length=1, description="Id of a directive.")


async def delete_directive(call: ToolCall) -> Answer:
    directive_id = call.as_(OneDirective).directive_id
    await call.service.delete_directive(call.tenant, call.bank, directive_id)
    return {"status": "deleted", "directive_id": directive_id}


# -- the knowledge base ----------------------------------------------------------------------------------------------


async def get_tree(call: ToolCall) -> Answer:
    tree = await call.service.knowledge_tree(call.tenant, call.bank, TagScope())
    answer: Answer = _without_nulls(tree)
    return answer


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


class Search(Arguments):
    query: str = Field(description="What to look for.")
    limit: int = Field(10, description="Most pages to return, up to 50.")


async def search(call: ToolCall) -> Answer:
    asked = call.as_(Search)
    query = wire.SearchQuery.model_validate({"q": asked.query, "limit": asked.limit})
    answer: Answer = await call.service.search_pages(call.tenant, call.bank, query.q, query.to_scope(), query.limit)
    return answer


class OnePage(Arguments):
    page_id: str = Field(min_length=1, description="Id of a page.")


async def get_page(call: ToolCall) -> Answer:
    answer: Answer = await call.service.get_page(call.tenant, call.bank, call.as_(OnePage).page_id)
    return answer


class CreateFolder(Arguments):
    name: str = Field(description="What it is called.")
    parent_id: str | None = Field(None, description="Folder it goes into; the top when left out.")


async def create_folder(call: ToolCall) -> Answer:
    asked = call.as_(CreateFolder)
    answer: Answer = await call.service.create_folder(call.tenant, call.bank, asked.name, asked.parent_id or "")
    return answer


class CreatePage(CreateFolder):
    source_query: str = Field(description=QUESTION)
    tags: TagTexts | None = Field(None, description=TAGS)
    max_tokens: int | None = Field(None, description="Tokens its content may take.")
    trigger: Object | None = Field(None, description=TRIGGER)
    refresh_after_consolidation: bool | None = Field(None, description=SHORTHAND)


async def create_page(call: ToolCall) -> Answer:
    asked = call.as_(CreatePage)
    fields = asked.given("name", "source_query", "parent_id", "tags", "max_tokens")
    trigger = trigger_of(asked.trigger, None, asked.refresh_after_consolidation)
    request = wire.CreatePageRequest.model_validate({**fields, "trigger": trigger})
    done = await call.service.create_page(call.tenant, call.bank, request)
    return {name: done[name] for name in ("page_id", "mental_model_id", "operation_id")}


class OneNode(Arguments):
    node_id: str = Field(min_length=1, description="Id of a folder or a page.")


class UpdateNode(OneNode):
    name: str | None = Field(None, description="What it is called.")
    parent_id: str | None = Field(None, description="Folder to move it into; empty text is the top.")
    source_query: str | None = Field(None, description=QUESTION)
    tags: TagTexts | None = Field(None, description=TAGS)
    max_tokens: int | None = Field(None, description="Tokens its content may take.")
    trigger: Object | None = Field(None, description=TRIGGER)
    refresh_after_consolidation: bool | None = Field(None, description=SHORTHAND)


async def update_node(call: ToolCall) -> Answer:
    asked = call.as_(UpdateNode)
    fields = asked.given("name", "parent_id", "source_query", "tags", "max_tokens")
    trigger = trigger_of(asked.trigger, None, asked.refresh_after_consolidation)
    if trigger is not None:
        fields["trigger"] = trigger
    request = wire.UpdateNodeRequest.model_validate(fields)
    answer: Answer = await call.service.update_node(call.tenant, call.bank, asked.node_id, request.to_fields())
    return answer


async def delete_node(call: ToolCall) -> Answer:
    node_id = call.as_(OneNode).node_id
    await call.service.delete_node(call.tenant, call.bank, node_id)
    return {"status": "deleted", "node_id": node_id}


NO_ITEMS: Answer = {"items": []}

TOOLS = (
    Tool("list_mental_models", "Page through mental models: stored answers that are kept up to date.",
         list_mental_models, Listed, reads=True, empty=NO_ITEMS),
    Tool("get_mental_model", "One mental model with its content.", get_mental_model, GetModel, reads=True),
    Tool("create_mental_model", "Keep the answer to a question up to date from now on; its first content is made in "
         "the background.",
         create_mental_model, CreateModel, "write", makes_bank=True),
    Tool("update_mental_model", "Change the named fields of a mental model; the trigger is merged.",
         update_mental_model, UpdateModel, "write"),
    Tool("delete_mental_model", "Delete a mental model.", delete_mental_model, OneModel, "write", destructive=True),
    Tool("refresh_mental_model", "Queue a refresh of a mental model.", refresh_mental_model, OneModel, "write"),
    Tool("clear_mental_model", "Empty a mental model; its next refresh is a full one.",
         clear_mental_model, OneModel, "write", destructive=True),
    Tool("list_directives", "Page through directives: rules that reflect follows.",
         list_directives, ListDirectives, reads=True, empty=NO_ITEMS),
    Tool("create_directive", "Give reflect a rule to follow.",
         create_directive, CreateDirective, "write"),
    Tool("delete_directive", "Delete a directive.", delete_directive, OneDirective, "write", destructive=True),
    Tool("get_knowledge_base_tree", "Folders and pages of the knowledge base.",
         get_tree, reads=True, empty={"roots": []}),
    Tool("search_knowledge_base", "Search the pages of the knowledge base by words and meaning.",
         search, Search, reads=True, empty={"results": []}),
    Tool("get_knowledge_page", "One page as markdown.", get_page, OnePage, reads=True),
    Tool("create_knowledge_folder", "Create a folder in the knowledge base.",
         create_folder, CreateFolder, "write", makes_bank=True),
    Tool("create_knowledge_page", "Create a page that keeps the answer to a question; its first content is made in "
         "the background.",
         create_page, CreatePage, "write", makes_bank=True),
    Tool("update_knowledge_node", "Rename, move or reconfigure a folder or a page.", update_node, UpdateNode, "write"),
    Tool("delete_knowledge_node", "Delete a folder or a page with everything under it.",
         delete_node, OneNode, "write", destructive=True),
)  # fmt: skip

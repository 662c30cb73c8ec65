"""The part of the service that knows directives, mental models and the knowledge base."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from recalld.actors.filters import TagScope
from recalld.actors.llm.base import REFLECT
from recalld.actors.llm.models import NONE, SILENT
from recalld.actors.pages.messages import ChangePages, SubmitRefresh
from recalld.actors.pages.refresh import Ask
from recalld.actors.pages.rendering import snippet
from recalld.actors.pages.triggers import merged
from recalld.daemon.settings_llm import llm_config
from recalld.daemon.wire.pages import PAGE_TRIGGER, CreatePageRequest, MentalModelTrigger
from recalld.daemon.wire.recall_input import RecallInput
from recalld.storage.analysis import query_terms
from recalld.storage.errors import BadRequest, BankNotFound, NotFound

if TYPE_CHECKING:
    from recalld.actors.directory import Shards
    from recalld.actors.query_cache import QueryEncoder
    from recalld.daemon.refreshing import Refreshing
    from recalld.daemon.screening import Screening
    from recalld.daemon.settings_table import Settings

Answer = dict[str, Any]
PAGE_TOKENS = 4096
RECALLED_TOKENS = 8192
"""Tokens of memories a page is chosen from where its trigger names no number."""


class PageService:
    """Mixed into the façade, which gives it shards, settings, clock, ids, recall and what refreshes pages."""

    settings: Settings
    shards: Shards
    screening: Screening
    refreshing: Refreshing
    _queries: QueryEncoder
    _clock: Callable[[], int]
    _new_id: Callable[[], str]
    _read: Callable[..., Awaitable[Any]]
    _child: Callable[..., Awaitable[Any]]
    recall: Callable[[str, str, RecallInput], Awaitable[Answer]]

    async def _change_pages(
        self, tenant: str, bank_id: str, action: str, id: str, fields: Answer, *, create: bool = False
    ) -> Answer:
        request = ChangePages(
            tenant,
            bank_id,
            self._new_id(),
            self._clock(),
            action,
            id,
            fields,
            create,
            self.settings.pages_history_max_entries,
        )
        answer: Answer = await self.shards.call(tenant, bank_id, request)
        return answer

    async def _change_child(
        self, tenant: str, bank_id: str, action: str, id: str, fields: Answer, named: str
    ) -> Answer:
        """A change of something inside a bank: when the bank is unknown, it is the child that is not found."""
        try:
            return await self._change_pages(tenant, bank_id, action, id, fields)
        except BankNotFound:
            raise NotFound(f"{named} '{id}' not found") from None

    async def _screened(self, tenant: str, bank_id: str, fields: Answer) -> Answer:
        """Fields as they may be stored, under the bank's redaction policy."""
        tags = fields.get("tags")
        texts = {name: fields[name] for name in ("name", "content", "source_query") if fields.get(name)}
        kept = {**fields, **await self.screening.fields(tenant, bank_id, texts)} if texts else dict(fields)
        if tags:
            kept["tags"] = await self.screening.tags(tenant, bank_id, tags)
        return kept

    # -- directives ------------------------------------------------------------------------------------------------

    async def list_directives(
        self, tenant: str, bank_id: str, tags: list[str], tags_match: str, active_only: bool, limit: int, offset: int
    ) -> Answer:
        params = {"tags": tags, "tags_match": tags_match, "active_only": active_only, "limit": limit, "offset": offset}
        answer: Answer = await self._read("list_directives", tenant, bank_id, **params)
        return answer

    async def create_directive(self, tenant: str, bank_id: str, fields: Answer) -> Answer:
        fields = await self._screened(tenant, bank_id, fields)
        done = await self._change_pages(tenant, bank_id, "create_directive", self._new_id(), _tuples(fields))
        return await self.get_directive(tenant, bank_id, done["id"])

    async def get_directive(self, tenant: str, bank_id: str, directive_id: str) -> Answer:
        text = f"Directive '{directive_id}' not found"
        answer: Answer = await self._child("get_directive", tenant, bank_id, text, directive_id=directive_id)
        return answer

    async def update_directive(self, tenant: str, bank_id: str, directive_id: str, fields: Answer) -> Answer:
        fields = await self._screened(tenant, bank_id, fields)
        await self._change_child(tenant, bank_id, "update_directive", directive_id, _tuples(fields), "Directive")
        return await self.get_directive(tenant, bank_id, directive_id)

    async def delete_directive(self, tenant: str, bank_id: str, directive_id: str) -> Answer:
        await self._change_child(tenant, bank_id, "delete_directive", directive_id, {}, "Directive")
        return {"status": "deleted"}

    # -- mental models ---------------------------------------------------------------------------------------------

    def _check_writer(self) -> None:
        """Raise where the provider `none` leaves nobody to write pages."""
        if llm_config(self.settings).of(REFLECT).provider.strip().lower() == NONE:
            raise BadRequest(
                "The model provider is 'none', so nothing can be refreshed; set llm.provider, or 'local' for pages"
                " composed without a model."
            )

    def writes_with_model(self) -> bool:
        """Whether a model writes pages here; without one they are extractive."""
        return llm_config(self.settings).of(REFLECT).provider.strip().lower() not in SILENT

    async def list_mental_models(self, tenant: str, bank_id: str, **params: Any) -> Answer:
        answer: Answer = await self._read("list_mental_models", tenant, bank_id, **params)
        return answer

    async def create_mental_model(self, tenant: str, bank_id: str, model_id: str | None, fields: Answer) -> Answer:
        self._check_writer()
        fields = await self._screened(tenant, bank_id, fields)
        fields = {**_tuples(fields), "operation_id": self._new_id()}
        model_id = model_id or f"mm-{_hex(self._new_id())}"
        done = await self._change_pages(tenant, bank_id, "create_mental_model", model_id, fields, create=True)
        return {"mental_model_id": done["id"], "operation_id": done["operation_id"]}

    async def get_mental_model(self, tenant: str, bank_id: str, model_id: str, detail: str = "full") -> Answer:
        text = f"Mental model '{model_id}' not found"
        params = {"mental_model_id": model_id, "detail": detail}
        answer: Answer = await self._child("get_mental_model", tenant, bank_id, text, **params)
        return answer

    async def update_mental_model(self, tenant: str, bank_id: str, model_id: str, fields: Answer) -> Answer:
        if fields:
            fields = _tuples(await self._screened(tenant, bank_id, fields))
            await self._change_child(tenant, bank_id, "update_mental_model", model_id, fields, "Mental model")
        return await self.get_mental_model(tenant, bank_id, model_id)

    async def delete_mental_model(self, tenant: str, bank_id: str, model_id: str) -> Answer:
        await self._change_child(tenant, bank_id, "delete_mental_model", model_id, {}, "Mental model")
        return {"status": "deleted"}

    async def clear_mental_model(self, tenant: str, bank_id: str, model_id: str) -> Answer:
        await self._change_child(tenant, bank_id, "clear_mental_model", model_id, {}, "Mental model")
        return await self.get_mental_model(tenant, bank_id, model_id)

    async def mental_model_history(self, tenant: str, bank_id: str, model_id: str) -> list[Answer]:
        text = f"Mental model '{model_id}' not found"
        rows: list[Answer] = await self._child("mental_model_history", tenant, bank_id, text, mental_model_id=model_id)
        return rows

    async def refresh_mental_model(self, tenant: str, bank_id: str, model_id: str, full: bool) -> Answer:
        self._check_writer()
        request = SubmitRefresh(tenant, bank_id, self._clock(), model_id, self._new_id(), full)
        try:
            done = await self.shards.call(tenant, bank_id, request)
        except BankNotFound:
            raise NotFound(f"Mental model '{model_id}' not found") from None
        return {"operation_id": done["operation_id"], "status": "queued"}

    async def dry_run_refresh(self, tenant: str, bank_id: str, model_id: str) -> Answer:
        self._check_writer()
        try:
            return await self.refreshing.dry_run(tenant, bank_id, model_id)
        except BankNotFound:
            raise NotFound(f"Mental model '{model_id}' not found") from None

    async def recall_for_page(self, ask: Ask, first_uid: int) -> list[Answer]:
        """Memories that a page is composed from, best first."""
        plan, trigger = ask.plan, ask.trigger
        tokens = trigger.get("recall_max_tokens")
        found = await self.recall(
            ask.tenant,
            ask.bank_id,
            RecallInput(
                query=ask.question,
                types=tuple(plan["fact_types"]),
                prefer_observations=True,
                budget=trigger.get("budget") or "mid",
                max_tokens=RECALLED_TOKENS if tokens is None else tokens,
                entity_tokens=None,
                tags=tuple(plan["tags"]),
                tags_match=plan["tags_match"],
                tag_groups=plan["tag_groups"],
                first_uid=first_uid,
            ),
        )
        return list(found["results"])

    # -- the knowledge base ----------------------------------------------------------------------------------------

    async def knowledge_tree(self, tenant: str, bank_id: str, scope: TagScope) -> Answer:
        answer: Answer = await self._read("knowledge_tree", tenant, bank_id, **_scoped(scope))
        return answer

    async def _node(self, tenant: str, bank_id: str, node_id: str) -> Answer:
        text = f"Knowledge node '{node_id}' not found"
        answer: Answer = await self._child("get_node", tenant, bank_id, text, node_id=node_id)
        return answer

    async def create_folder(self, tenant: str, bank_id: str, name: str, parent: str) -> Answer:
        fields = await self._screened(tenant, bank_id, {"name": _node_name(name), "parent": parent})
        node_id = f"kf-{_hex(self._new_id())}"
        await self._change_pages(tenant, bank_id, "create_folder", node_id, fields, create=True)
        return await self._node(tenant, bank_id, node_id)

    async def create_page(self, tenant: str, bank_id: str, request: CreatePageRequest) -> Answer:
        self._check_writer()
        number = _hex(self._new_id())
        fields = await self._screened(
            tenant,
            bank_id,
            {
                "name": _node_name(request.name),
                "source_query": request.source_query,
                "tags": list(dict.fromkeys(request.tags or ())),
            },
        )
        fields |= {
            "parent": request.parent_id or "",
            "max_tokens": PAGE_TOKENS if request.max_tokens is None else request.max_tokens,
            "trigger": await self._page_trigger(tenant, bank_id, request),
            "model_id": f"mm-{number}",
            "operation_id": self._new_id(),
        }
        done = await self._change_pages(tenant, bank_id, "create_page", f"kp-{number}", _tuples(fields), create=True)
        return {
            "page_id": done["id"],
            "mental_model_id": done["mental_model_id"],
            "operation_id": done["operation_id"],
        }

    async def _page_trigger(self, tenant: str, bank_id: str, request: CreatePageRequest) -> Answer:
        """The defaults of pages, the bank's own over them, what the caller named over both."""
        defaults, overrides = await self.screening.settings(tenant, bank_id)
        own = {**defaults, **overrides}.get("knowledge_page_default_trigger") or {}
        named = {} if request.trigger is None else request.trigger.named()
        try:
            base = MentalModelTrigger.model_validate(PAGE_TRIGGER).whole()
            base = merged(base, MentalModelTrigger.model_validate(own).named())
            return MentalModelTrigger.model_validate(merged(base, named)).whole()
        except ValidationError as error:
            what = error.errors()[0]
            where = ".".join(map(str, what["loc"])) or "trigger"
            raise BadRequest(f"The trigger of the page does not hold together ({where}: {what['msg']}).") from None

    async def get_page(self, tenant: str, bank_id: str, page_id: str) -> Answer:
        text = f"Knowledge page '{page_id}' not found"
        answer: Answer = await self._child("get_page", tenant, bank_id, text, page_id=page_id)
        return answer

    async def update_node(self, tenant: str, bank_id: str, node_id: str, fields: Answer) -> Answer:
        if "name" in fields:
            fields = {**fields, "name": _node_name(fields["name"])}
        if "source_query" in fields:
            self._check_writer()
        if fields:
            fields = {**_tuples(await self._screened(tenant, bank_id, fields)), "operation_id": self._new_id()}
            await self._change_child(tenant, bank_id, "update_node", node_id, fields, "Knowledge node")
        return await self._node(tenant, bank_id, node_id)

    async def delete_node(self, tenant: str, bank_id: str, node_id: str) -> Answer:
        await self._change_child(tenant, bank_id, "delete_node", node_id, {}, "Knowledge node")
        return {"status": "deleted"}

    async def search_pages(self, tenant: str, bank_id: str, q: str, scope: TagScope, limit: int) -> Answer:
        found = await self.find_models(tenant, bank_id, q, limit, pages_only=True, **_scoped(scope))
        results = [
            {
                "id": one["node_id"],
                "name": one["name"],
                "mental_model_id": one["id"],
                "source_query": one["source_query"],
                "snippet": snippet(one["text"]),
                "score": one["score"],
                "updated_at": one["updated_at"],
            }
            for one in found
            if one["node_id"]
        ]
        return {"results": results, "total": len(results)}

    async def find_models(self, tenant: str, bank_id: str, query: str, limit: int, **params: Any) -> list[Answer]:
        """Mental models for a question, best first: see `reads_pages.find_models`."""
        vector = (await self._queries.embed(query)).vector.astype("<f4").tobytes()
        rows: list[Answer] = await self._read(
            "find_models", tenant, bank_id, terms=query_terms(query), vector=vector, limit=limit, **params
        )
        return rows

    async def export_pages(self, tenant: str, bank_id: str) -> Answer:
        answer: Answer = await self._read("export_pages", tenant, bank_id)
        return answer


def _tuples(fields: Answer) -> Answer:
    return {name: tuple(value) if name == "tags" else value for name, value in fields.items()}


def _scoped(scope: TagScope) -> Answer:
    return {"tags": scope.tags, "tags_match": scope.tags_match, "tag_groups": scope.wire_groups}


def _hex(identity: str) -> str:
    return uuid.UUID(identity).hex


def _node_name(name: str) -> str:
    """A name on one line. Raises `BadRequest` for one that says nothing."""
    kept = " ".join(name.split())
    if not kept:
        raise BadRequest("name must not be blank.")
    if len(kept) > 500:
        raise BadRequest("name may have 500 characters.")
    return kept

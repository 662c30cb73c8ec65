"""Reads of directives, mental models and knowledge pages, in the wire's shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from recalld.actors.pages import rendering, triggers
from recalld.actors.pages.scope import Freshness, scope_of
from recalld.actors.reads_shape import cut, like, page
from recalld.actors.recall.answer import as_result
from recalld.actors.recall.filters import OneThing, group_filter, tag_filter
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import codec, keys, page_rows
from recalld.storage.apply import read_counters
from recalld.storage.audit import plain
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import NotFound
from recalld.storage.isotime import iso
from recalld.storage.pages import FOLDER, PAGE, Directive, MentalModel, PageContent, PageNode
from recalld.storage.partition import Partition
from recalld.storage.records import BankRecord

Params = dict[str, Any]
Row = dict[str, Any]
METADATA, CONTENT, FULL = "metadata", "content", "full"
_LIMITS = RecallSettings()


# -- tags ------------------------------------------------------------------------------------------------------------


def passes(tags: Sequence[str], params: Params) -> bool:
    """Whether something with these tags passes a filter of tags, their match, and tag groups."""
    thing = OneThing(frozenset(tags))
    if params.get("tag_groups"):
        return bool(group_filter(thing, params["tag_groups"], _LIMITS)[0])
    if params.get("tags") or params.get("tags_match") == "exact":
        return bool(tag_filter(thing, params.get("tags") or (), params.get("tags_match") or "any")[0])
    return True


# -- directives ------------------------------------------------------------------------------------------------------


def _directive(one: Directive, bank_id: str) -> Row:
    return {
        "id": one.id,
        "bank_id": bank_id,
        "name": one.name,
        "content": one.content,
        "priority": one.priority,
        "is_active": one.is_active,
        "tags": list(one.tags),
        "created_at": iso(one.created_at),
        "updated_at": iso(one.updated_at),
    }


def list_directives(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """A page of directives, the highest priority first. Raises `BankNotFound`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        every = page_rows.directives(txn, number)
    found = [one for one in every if (one.is_active or not params["active_only"]) and passes(one.tags, params)]
    rows = [_directive(one, bank_id) for one in cut(found, params["limit"], params["offset"])]
    return page(rows, len(found), params["limit"], params["offset"])


def get_directive(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    with partition.peek(tenant, bank_id) as (txn, number):
        found = page_rows.directive(txn, number, params["directive_id"])
    if found is None:
        raise NotFound(f"Directive '{params['directive_id']}' not found")
    return _directive(found, bank_id)


def directives_in_force(partition: Partition, tenant: str, bank_id: str, params: Params) -> list[Row]:
    """Active directives that bind an answer in a scope, the highest priority first: untagged ones always, tagged ones
    where the scope's tags match theirs, or all with `everything`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        every = [one for one in page_rows.directives(txn, number) if one.is_active]
    scoped = bool(params.get("tags") or params.get("tag_groups"))
    return [
        _directive(one, bank_id)
        for one in every
        if not one.tags or params.get("everything") or (scoped and passes(one.tags, params))
    ]


# -- mental models ---------------------------------------------------------------------------------------------------


def _model(one: MentalModel, bank_id: str, detail: str, content: PageContent | None, stale: bool | None) -> Row:
    row: Row = {
        "id": one.id,
        "bank_id": bank_id,
        "name": one.name,
        "source_query": None,
        "content": None,
        "tags": list(one.tags),
        "max_tokens": None,
        "trigger": None,
        "last_refreshed_at": iso(one.last_refreshed_at),
        "last_memory_seen_at": iso(one.last_memory_seen_at),
        "last_refresh_failed_at": iso(one.last_refresh_failed_at),
        "last_full_refreshed_at": iso(one.last_full_refreshed_at),
        "created_at": iso(one.created_at),
        "is_knowledge_page": one.page,
        "reflect_response": None,
        "is_stale": stale,
    }
    if detail != METADATA:
        row |= {
            "source_query": one.source_query,
            "content": content.text if content else "",
            "max_tokens": one.max_tokens,
            "trigger": plain(one.trigger),
        }
    if detail == FULL and content is not None and content.response:
        row["reflect_response"] = plain(content.response)
    return row


def list_mental_models(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """A page of mental models, the newest first. Raises `BankNotFound`."""
    detail = params["detail"]
    with partition.read(tenant, bank_id) as snap:
        found = [
            one
            for one in page_rows.models(snap.txn, snap.bank)
            if passes(one.tags, params) and not (one.page and params["exclude_knowledge_pages"])
        ]
        fresh = Freshness(snap)
        rows = []
        for one in cut(found, params["limit"], params["offset"]):
            content = None if detail == METADATA else page_rows.content(snap.txn, snap.bank, one.id)
            rows.append(_model(one, bank_id, detail, content, fresh.stale(one)))
    return page(rows, len(found), params["limit"], params["offset"])


def _found(txn: ReadTxn, bank: int, model_id: str) -> MentalModel:
    found = page_rows.model(txn, bank, model_id)
    if found is None:
        raise NotFound(f"Mental model '{model_id}' not found")
    return found


def get_mental_model(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    with partition.read(tenant, bank_id) as snap:
        one = _found(snap.txn, snap.bank, params["mental_model_id"])
        content = page_rows.content(snap.txn, snap.bank, one.id)
        return _model(one, bank_id, params["detail"], content, Freshness(snap).stale(one))


def mental_model_history(partition: Partition, tenant: str, bank_id: str, params: Params) -> list[Row]:
    """Former contents, the newest first."""
    with partition.peek(tenant, bank_id) as (txn, number):
        one = _found(txn, number, params["mental_model_id"])
        formers = list(page_rows.formers(txn, number, one.id))
    return [
        {
            "previous_content": former.text,
            "previous_reflect_response": plain(former.response) or None,
            "changed_at": iso(former.changed_at),
        }
        for _, former in reversed(formers)
    ]


def model_tags(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """Tags of mental models, most used first, then by name."""
    counts: dict[str, int] = {}
    with partition.peek(tenant, bank_id) as (txn, number):
        for one in page_rows.models(txn, number):
            for tag in one.tags:
                counts[tag] = counts.get(tag, 0) + 1
    pattern = params.get("q")
    found = [(tag, count) for tag, count in counts.items() if not pattern or like(pattern, tag)]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    items = [{"tag": tag, "count": count} for tag, count in cut(found, params["limit"], params["offset"])]
    return page(items, len(found), params["limit"], params["offset"])


# -- refreshing ------------------------------------------------------------------------------------------------------


def refresh_plan(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """What a refresh starts from: the model, what it says, what is new in its scope, and what of it is gone.

    `renewed` are cited memories that were edited and still stand in scope, in the shape of a recall's result. `known`
    are those of the cited memories that stand as they were. `seen_at` is when the newest memory in scope was recorded.
    """
    with partition.read(tenant, bank_id) as snap:
        one = _found(snap.txn, snap.bank, params["mental_model_id"])
        content = page_rows.content(snap.txn, snap.bank, one.id)
        fresh, scope = Freshness(snap), scope_of(one)
        mask = fresh.mask(scope)
        gone = fresh.gone(one)
        renewed = []
        for unit_id in gone:
            uid = snap.uid_of(unit_id)
            if uid is not None and mask[uid] and (unit := snap.unit(uid)) is not None:
                renewed.append(plain(as_result(unit)))
        recorded = snap.columns.recorded[mask]
        directives = [
            {"id": d.id, "name": d.name, "content": d.content}
            for d in page_rows.directives(snap.txn, snap.bank)
            if d.is_active
            and (not d.tags or (scope.tags and tag_filter(OneThing(frozenset(d.tags)), scope.tags, scope.match)[0]))
        ]
        return {
            "id": one.id,
            "name": one.name,
            "source_query": one.source_query,
            "max_tokens": one.max_tokens,
            "trigger": plain(one.trigger),
            "revision": one.revision,
            "content_query": one.content_query,
            "content": content.text,
            "response": plain(content.response),
            "cited": list(one.cited),
            "gone": gone,
            "renewed": renewed,
            "in_scope": int(mask.sum()),
            "newer": int(mask[one.seen_uid :].sum()),
            "first_uid": one.seen_uid,
            "seen_uid": snap.n,
            "seen_at": int(recorded.max()) if len(recorded) else None,
            "watermark": one.last_memory_seen_at,
            "tags": list(scope.tags),
            "tags_match": scope.match,
            "tag_groups": scope.groups,
            "fact_types": list(scope.fact_types),
            "directives": directives,
        }


def due_models(partition: Partition, tenant: str, bank_id: str, params: Params) -> list[Row]:
    """Mental models whose triggers ask for something, of one bank, or with an empty bank id of every bank.

    `defaults` are the server's bank settings; `consolidated` says that a consolidation ended, or that none is to come.
    """
    if bank_id:
        banks = [(tenant, bank_id)]
    else:
        banks = [(record.tenant, record.bank_id) for record, _ in partition.banks()]
    found: list[Row] = []
    for one_tenant, one_bank in banks:
        with partition.peek(one_tenant, one_bank) as (txn, number):
            models = [m for m in page_rows.models(txn, number) if m.retract or _automatic(m)]
            written = read_counters(txn, number).last_write_at
            overrides = codec.decode(BankRecord, txn.get(keys.table(number, keys.BANK)) or b"").overrides
        if not models:
            continue
        stale: dict[str, bool] = {}
        if any(_may_be_stale(model, written) for model in models):
            with partition.read(one_tenant, one_bank) as snap:
                fresh = Freshness(snap)
                stale = {model.id: fresh.stale(model) for model in models}
        floor = {**params["defaults"], **overrides}.get("mental_model_min_refresh_interval_seconds") or 0
        for model in models:
            what = _due(model, stale.get(model.id, False), floor, params)
            if what is not None:
                found.append({"tenant": one_tenant, "bank_id": one_bank, "model_id": model.id, **what})
    return found


def _automatic(model: MentalModel) -> bool:
    names = ("refresh_after_consolidation", "refresh_cron", "full_refresh_cron")
    return any(model.trigger.get(name) for name in names)


def _may_be_stale(model: MentalModel, written: int | None) -> bool:
    """False where the bank was not written to since the last refresh: an idle bank's caches stay closed."""
    return (
        bool(model.retract) or model.last_refreshed_at is None or written is None or written >= model.last_refreshed_at
    )


def _due(model: MentalModel, stale: bool, floor: int, params: Params) -> Row | None:
    own = model.trigger.get("min_refresh_interval_seconds")
    what = triggers.due(model, stale, params["now"], floor if own is None else own, bool(params["consolidated"]))
    if model.retract and model.last_refresh_failed_at is None:
        # What was erased must leave the text, whatever the triggers say.
        what = triggers.Due(True)
    return None if what is None else dataclasses.asdict(what)


# -- the knowledge base ----------------------------------------------------------------------------------------------


def knowledge_tree(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """Folders and pages as a tree. Under a tag filter a folder is there for the pages in it. Raises `BankNotFound`."""
    filtered = bool(params.get("tags") or params.get("tag_groups") or params.get("tags_match") == "exact")
    with partition.read(tenant, bank_id) as snap:
        models = {one.id: one for one in page_rows.models(snap.txn, snap.bank) if one.page}
        nodes = page_rows.nodes(snap.txn, snap.bank)
        fresh = Freshness(snap)
        shown = [
            one
            for one in nodes
            if one.kind == FOLDER or (one.model in models and passes(models[one.model].tags, params))
        ]
        rows = {one.id: node_row(one, models.get(one.model), fresh) for one in shown}
    children: dict[str, list[Row]] = {}
    for one in shown:
        # What stands in a folder that is not there stands at the root, so that nothing is ever out of reach.
        children.setdefault(one.parent if one.parent in rows else "", []).append(rows[one.id])
    for node_id, row in rows.items():
        row["children"] = children.get(node_id, [])
    roots = children.get("", [])
    return {"roots": [one for one in map(_pruned, roots) if one is not None] if filtered else roots}


def _pruned(row: Row) -> Row | None:
    if row["kind"] == PAGE:
        return row
    kept = [one for one in map(_pruned, row["children"]) if one is not None]
    return {**row, "children": kept} if kept else None


def node_row(node: PageNode, model: MentalModel | None, fresh: Freshness | None) -> Row:
    return {
        "id": node.id,
        "kind": node.kind,
        "name": node.name,
        "parent_id": node.parent or None,
        "mental_model_id": node.model or None,
        "managed": node.managed,
        "description": None if model is None else model.source_query,
        "tags": [] if model is None else list(model.tags),
        "timestamp": None if model is None else iso(model.last_refreshed_at or model.created_at),
        "is_stale": None if model is None or fresh is None else fresh.stale(model),
        "last_refresh_failed_at": None if model is None else iso(model.last_refresh_failed_at),
        "trigger": None if model is None else plain(model.trigger),
        "children": [],
    }


def get_node(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """One node without what is under it."""
    with partition.read(tenant, bank_id) as snap:
        node = page_rows.node(snap.txn, snap.bank, params["node_id"])
        if node is None:
            raise NotFound(f"Knowledge node '{params['node_id']}' not found")
        model = page_rows.model(snap.txn, snap.bank, node.model) if node.model else None
        return node_row(node, model, Freshness(snap))


def get_page(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """A page as a markdown document with front matter."""
    with partition.peek(tenant, bank_id) as (txn, number):
        node = page_rows.node(txn, number, params["page_id"])
        model = page_rows.model(txn, number, node.model) if node is not None and node.kind == PAGE else None
        if node is None or model is None:
            raise NotFound(f"Knowledge page '{params['page_id']}' not found")
        text = page_rows.content(txn, number, model.id).text
    return {
        "id": node.id,
        "name": node.name,
        "type": rendering.page_type(model),
        "description": model.source_query,
        "tags": list(model.tags),
        "timestamp": iso(model.last_refreshed_at or model.created_at),
        "body": text,
        "markdown": rendering.document(node, model, text or rendering.NO_CONTENT),
    }


def export_pages(partition: Partition, tenant: str, bank_id: str, params: Params) -> Row:
    """Every page as a markdown file, an index of them, and a log for each page that has a history."""
    with partition.peek(tenant, bank_id) as (txn, number):
        models = {one.id: one for one in page_rows.models(txn, number)}
        nodes = page_rows.nodes(txn, number)
        files = [{"path": "index.md", "content": rendering.index(nodes, models)}]
        for node in nodes:
            model = models.get(node.model)
            if node.kind != PAGE or model is None:
                continue
            text = page_rows.content(txn, number, model.id).text
            files.append({"path": f"{node.id}.md", "content": rendering.document(node, model, text)})
            formers = [former for _, former in page_rows.formers(txn, number, model.id)]
            if formers:
                files.append({"path": f"{node.id}.log.md", "content": rendering.log(node, formers)})
    return {"files": files}


# -- finding ---------------------------------------------------------------------------------------------------------


def find_models(partition: Partition, tenant: str, bank_id: str, params: Params) -> list[Row]:
    """Mental models ranked for a question: by words (`terms`) and by meaning (`vector`, float32), the ranks fused.

    `pages_only` leaves those of the knowledge base, `excluded` are ids left out. Each row: id, node_id, name,
    source_query, text, tags, score, updated_at, is_stale, newer_facts. A score of 1 means first in both rankings.
    """
    excluded = frozenset(params.get("excluded") or ())
    with partition.read(tenant, bank_id) as snap:
        models = [
            one
            for one in page_rows.models(snap.txn, snap.bank)
            if one.id not in excluded and (one.page or not params.get("pages_only")) and passes(one.tags, params)
        ]
        nodes = {one.model: one for one in page_rows.nodes(snap.txn, snap.bank) if one.model}
        contents = {one.id: page_rows.content(snap.txn, snap.bank, one.id) for one in models}
        ranks = rendering.ranked(models, contents, tuple(params["terms"]), np.frombuffer(params["vector"], np.float32))
        fresh = Freshness(snap)
        found = []
        for one, score in ranks[: params["limit"]]:
            node = nodes.get(one.id)
            found.append(
                {
                    "id": one.id,
                    "node_id": None if node is None else node.id,
                    "name": one.name,
                    "source_query": one.source_query,
                    "text": contents[one.id].text,
                    "tags": list(one.tags),
                    "score": score,
                    "updated_at": iso(one.last_refreshed_at or one.created_at),
                    "is_stale": fresh.stale(one),
                    "newer_facts": fresh.newer(one),
                }
            )
    return found


def read_models(partition: Partition, tenant: str, bank_id: str, params: Params) -> list[Row]:
    """Mental models by id, in the order asked for, with what they say; unknown ids are left out."""
    with partition.read(tenant, bank_id) as snap:
        fresh = Freshness(snap)
        found = []
        for model_id in params["ids"]:
            one = page_rows.model(snap.txn, snap.bank, model_id)
            if one is not None:
                text = page_rows.content(snap.txn, snap.bank, one.id).text
                found.append(
                    {
                        "id": one.id,
                        "name": one.name,
                        "text": text,
                        "tags": list(one.tags),
                        "is_stale": fresh.stale(one),
                        "newer_facts": fresh.newer(one),
                    }
                )
    return found


PAGE_READS = {
    "list_directives": list_directives,
    "get_directive": get_directive,
    "directives_in_force": directives_in_force,
    "list_mental_models": list_mental_models,
    "get_mental_model": get_mental_model,
    "mental_model_history": mental_model_history,
    "refresh_plan": refresh_plan,
    "due_models": due_models,
    "knowledge_tree": knowledge_tree,
    "get_node": get_node,
    "get_page": get_page,
    "export_pages": export_pages,
    "find_models": find_models,
    "read_models": read_models,
}

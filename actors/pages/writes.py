"""Directives, mental models and pages changed inside a write. Each action is a function of applier and message."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

from recalld.actors.operations import document_marks
from recalld.actors.pages import outcomes, triggers
from recalld.actors.pages.erasing import erased, mark_failed
from recalld.actors.pages.messages import ChangePages, CommitRefresh, SubmitRefresh
from recalld.actors.pages.scope import scope_of
from recalld.actors.retain.commit import read_operation
from recalld.storage import codec, page_rows
from recalld.storage.apply import Applier
from recalld.storage.changes import OperationStored
from recalld.storage.errors import BadRequest, Conflict, NotFound, Superseded
from recalld.storage.pages import (
    FOLDER,
    PAGE,
    Directive,
    FormerContent,
    MentalModel,
    PageContent,
    PageNode,
    PagesChanged,
)
from recalld.storage.records import CANCELLED, COMPLETED, FAILED, OPEN_STATES, PENDING, OperationRecord

Answer = dict[str, Any]
MOST_LEVELS = 32
"""Levels of the tree of pages."""


def change(applier: Applier, request: ChangePages) -> Answer:
    """Carry out one action. A queued refresh stands in the answer under `queue`, for the shard's own queue."""
    return _ACTIONS[request.action](applier, request)


# -- directives ------------------------------------------------------------------------------------------------------


def _create_directive(applier: Applier, request: ChangePages) -> Answer:
    directive = Directive(id=request.id, created_at=request.now, updated_at=request.now, **request.fields)
    applier.apply(PagesChanged(request.now, directives=(directive,)))
    return {"id": request.id}


def _directive(applier: Applier, directive_id: str) -> Directive:
    found = page_rows.directive(applier.txn, applier.bank, directive_id)
    if found is None:
        raise NotFound(f"Directive '{directive_id}' not found")
    return found


def _update_directive(applier: Applier, request: ChangePages) -> Answer:
    changed = dataclasses.replace(_directive(applier, request.id), **request.fields, updated_at=request.now)
    applier.apply(PagesChanged(request.now, directives=(changed,)))
    return {"id": request.id}


def _delete_directive(applier: Applier, request: ChangePages) -> Answer:
    _directive(applier, request.id)
    applier.apply(PagesChanged(request.now, directives_gone=(request.id,)))
    return {"id": request.id}


# -- mental models ---------------------------------------------------------------------------------------------------


def _model(applier: Applier, model_id: str) -> MentalModel:
    found = page_rows.model(applier.txn, applier.bank, model_id)
    if found is None:
        raise NotFound(f"Mental model '{model_id}' not found")
    return found


def _create_model(applier: Applier, request: ChangePages) -> Answer:
    if page_rows.model(applier.txn, applier.bank, request.id) is not None:
        raise Conflict(f"There is a mental model '{request.id}' already; give another id, or none.")
    fields = dict(request.fields)
    operation_id = fields.pop("operation_id")
    model = MentalModel(id=request.id, created_at=request.now, updated_at=request.now, **fields)
    model, queue = _queued(applier, model, operation_id, request.now, full=False, at=None, automatic=False)
    applier.apply(PagesChanged(request.now, models=(model,)))
    return {"id": request.id, "operation_id": operation_id, "queue": queue}


def _changed(model: MentalModel, fields: Answer, now: int) -> MentalModel:
    """A model with named fields changed; `trigger` holds the named fields of that alone. Raises `BadRequest`."""
    fields = dict(fields)
    if "trigger" in fields:
        trigger = triggers.merged(model.trigger, fields["trigger"])
        try:
            triggers.check_trigger(trigger)
        except ValueError as error:
            raise BadRequest(f"{error}.") from None
        fields["trigger"] = trigger
    changed = dataclasses.replace(model, **fields, updated_at=now)
    if {"source_query", "tags", "trigger", "max_tokens"} & fields.keys():
        changed = dataclasses.replace(changed, revision=model.revision + 1)
    if scope_of(changed) != scope_of(model):
        # What is in scope now and was not before is not new: only a refresh in full reads it.
        changed = dataclasses.replace(changed, content_query="")
    if changed.trigger.get("refresh_cron") != model.trigger.get("refresh_cron"):
        changed = dataclasses.replace(changed, cron_seen_at=now)
    if changed.trigger.get("full_refresh_cron") != model.trigger.get("full_refresh_cron"):
        changed = dataclasses.replace(changed, full_cron_seen_at=now)
    return changed


def _update_model(applier: Applier, request: ChangePages) -> Answer:
    changed = _changed(_model(applier, request.id), request.fields, request.now)
    applier.apply(PagesChanged(request.now, models=(changed,)))
    return {"id": request.id}


def _delete_model(applier: Applier, request: ChangePages) -> Answer:
    _model(applier, request.id)
    nodes = [one.id for one in page_rows.nodes(applier.txn, applier.bank) if one.model == request.id]
    applier.apply(PagesChanged(request.now, models_gone=(request.id,), nodes_gone=tuple(nodes)))
    return {"id": request.id}


def _clear_model(applier: Applier, request: ChangePages) -> Answer:
    """Empty a model; the next refresh is a full one. What it said goes to its history."""
    model = _model(applier, request.id)
    formers: list[tuple[str, int, FormerContent | None]] = []
    count = model.formers
    if model.has_content:
        count, formers = _former(applier, model, request.now, request.history)
    cleared = dataclasses.replace(
        model,
        has_content=False,
        cited=(),
        retract=(),
        content_query="",
        seen_uid=0,
        last_memory_seen_at=None,
        last_refresh_failed_at=None,
        formers=count,
        revision=model.revision + 1,
        updated_at=request.now,
    )
    gone = ((model.id, None),)
    applier.apply(PagesChanged(request.now, models=(cleared,), contents=gone, formers=tuple(formers)))
    return {"id": request.id}


def _former(
    applier: Applier, model: MentalModel, now: int, keep: int
) -> tuple[int, list[tuple[str, int, FormerContent | None]]]:
    """What the model says now, as the next entry of its history, and the entries that are too many then."""
    held = page_rows.content(applier.txn, applier.bank, model.id)
    known = [number for number, _ in page_rows.formers(applier.txn, applier.bank, model.id)]
    gone = known[: max(0, len(known) + 1 - keep)] if keep > 0 else known
    formers: list[tuple[str, int, FormerContent | None]] = [(model.id, number, None) for number in gone]
    if keep > 0:
        formers.append((model.id, model.formers, FormerContent(held.text, now, held.response, model.cited)))
    return model.formers + 1, formers


# -- the tree --------------------------------------------------------------------------------------------------------


def _nodes(applier: Applier) -> dict[str, PageNode]:
    return {one.id: one for one in page_rows.nodes(applier.txn, applier.bank)}


def _check_parent(nodes: dict[str, PageNode], parent: str) -> None:
    found = nodes.get(parent)
    if parent and (found is None or found.kind != FOLDER):
        raise BadRequest(f"There is no folder '{parent}'.")


def _check_name(nodes: dict[str, PageNode], node: PageNode) -> None:
    for other in nodes.values():
        if (other.kind, other.parent, other.name) == (PAGE, node.parent, node.name) and other.id != node.id:
            raise Conflict(f"There is a page named '{node.name}' in that folder already.")


def _check_depth(nodes: dict[str, PageNode], node: PageNode) -> None:
    """Raise when a node, with what is under it, would stand too deep."""
    above, parent = 0, node.parent
    while parent in nodes and above <= MOST_LEVELS:
        above, parent = above + 1, nodes[parent].parent
    below, level = 0, {node.id}
    while (level := {one.id for one in nodes.values() if one.parent in level}) and below <= MOST_LEVELS:
        below += 1
    if above + below >= MOST_LEVELS:
        raise BadRequest(f"Folders may be nested {MOST_LEVELS} deep.")


def _create_folder(applier: Applier, request: ChangePages) -> Answer:
    nodes = _nodes(applier)
    node = PageNode(request.id, FOLDER, created_at=request.now, updated_at=request.now, **request.fields)
    _check_parent(nodes, node.parent)
    _check_depth(nodes, node)
    applier.apply(PagesChanged(request.now, nodes=(node,)))
    return {"id": request.id}


def _create_page(applier: Applier, request: ChangePages) -> Answer:
    fields = dict(request.fields)
    operation_id, model_id, parent = fields.pop("operation_id"), fields.pop("model_id"), fields.pop("parent")
    nodes = _nodes(applier)
    _check_parent(nodes, parent)
    node = PageNode(request.id, PAGE, fields["name"], request.now, request.now, parent, model_id)
    _check_name(nodes, node)
    _check_depth(nodes, node)
    model = MentalModel(id=model_id, created_at=request.now, updated_at=request.now, page=True, **fields)
    model, queue = _queued(applier, model, operation_id, request.now, full=False, at=None, automatic=False)
    applier.apply(PagesChanged(request.now, models=(model,), nodes=(node,)))
    return {"id": request.id, "mental_model_id": model_id, "operation_id": operation_id, "queue": queue}


def _update_node(applier: Applier, request: ChangePages) -> Answer:
    """Rename, move or reconfigure a node; a new question queues a refresh."""
    nodes = _nodes(applier)
    node = nodes.get(request.id)
    if node is None:
        raise NotFound(f"Knowledge node '{request.id}' not found")
    fields = dict(request.fields)
    operation_id = fields.pop("operation_id")
    own = {name: fields.pop(name) for name in ("parent", "name") if name in fields}
    changed = dataclasses.replace(node, **own, updated_at=request.now)
    if changed.parent != node.parent:
        _check_parent(nodes, changed.parent)
        _check_circle(nodes, node, changed.parent)
        _check_depth(nodes, changed)
    if node.kind == FOLDER:
        if fields:
            raise BadRequest(f"A folder has a name and a place only; {', '.join(sorted(fields))} belong to pages.")
        applier.apply(PagesChanged(request.now, nodes=(changed,)))
        return {"id": node.id}
    if (changed.parent, changed.name) != (node.parent, node.name):
        _check_name(nodes, changed)
    if "name" in own:
        fields["name"] = own["name"]
    before = _model(applier, node.model)
    model = _changed(before, fields, request.now) if fields else before
    answer: Answer = {"id": node.id}
    if model.source_query != before.source_query:
        model, queue = _queued(applier, model, operation_id, request.now, full=False, at=None, automatic=False)
        answer |= {"operation_id": operation_id, "queue": queue}
    applier.apply(PagesChanged(request.now, nodes=(changed,), models=(model,)))
    return answer


def _check_circle(nodes: dict[str, PageNode], node: PageNode, parent: str) -> None:
    seen: set[str] = set()
    while parent and parent not in seen:
        if parent == node.id:
            raise BadRequest("A folder cannot be moved into itself or a folder inside it.")
        seen.add(parent)
        found = nodes.get(parent)
        parent = "" if found is None else found.parent


def _delete_node(applier: Applier, request: ChangePages) -> Answer:
    """A node with all that is under it; the mental models of its pages go with them."""
    nodes = _nodes(applier)
    if request.id not in nodes:
        raise NotFound(f"Knowledge node '{request.id}' not found")
    gone = {request.id}
    while more := {one.id for one in nodes.values() if one.parent in gone} - gone:
        gone |= more
    models = tuple(nodes[one].model for one in gone if nodes[one].model)
    applier.apply(PagesChanged(request.now, nodes_gone=tuple(gone), models_gone=models))
    return {"id": request.id}


_ACTIONS: dict[str, Callable[[Applier, ChangePages], Answer]] = {
    "create_directive": _create_directive,
    "update_directive": _update_directive,
    "delete_directive": _delete_directive,
    "create_mental_model": _create_model,
    "update_mental_model": _update_model,
    "delete_mental_model": _delete_model,
    "clear_mental_model": _clear_model,
    "create_folder": _create_folder,
    "create_page": _create_page,
    "update_node": _update_node,
    "delete_node": _delete_node,
}


# -- refreshes -------------------------------------------------------------------------------------------------------


def _payload(model_id: str, full: bool) -> bytes:
    return zlib.compress(codec.pack([{"mental_model_id": model_id, "mode": "full" if full else None}]), 3)


def _queued(
    applier: Applier, model: MentalModel, operation_id: str, now: int, *, full: bool, at: int | None, automatic: bool
) -> tuple[MentalModel, Answer]:
    """A new refresh operation; the model with its name, and what the shard's queue needs to know."""
    marks = document_marks((outcomes.line_of(model.id),))
    record = OperationRecord(
        id=operation_id,
        kind=outcomes.KIND,
        status=PENDING,
        created_at=now,
        updated_at=now,
        next_retry_at=at,
        result={"mental_model_id": model.id, "automatic": automatic},
        documents=marks,
    )
    applier.apply(OperationStored(record, _payload(model.id, full)))
    queue = {"id": operation_id, "due": at, "documents": marks}
    return dataclasses.replace(model, refresh=operation_id), queue


def submit(applier: Applier, request: SubmitRefresh) -> Answer:
    """Queue a refresh, fold it into one that waits, or note that schedules were looked at."""
    model = _model(applier, request.model_id)
    before = model
    if request.cron_seen is not None:
        model = dataclasses.replace(model, cron_seen_at=request.cron_seen)
    if request.full_cron_seen is not None:
        model = dataclasses.replace(model, full_cron_seen_at=request.full_cron_seen)
    answer: Answer = {"operation_id": None}
    if request.refresh:
        open_ = read_operation(applier, model.refresh) if model.refresh else None
        if open_ is not None and open_.id == request.operation_id:
            answer = {"operation_id": open_.id}
        elif open_ is not None and open_.status == PENDING:
            answer = _folded(applier, model, open_, request)
        elif open_ is not None and open_.status in OPEN_STATES and request.automatic:
            answer = {"operation_id": open_.id}
        else:
            model, queue = _queued(
                applier,
                model,
                request.operation_id,
                request.now,
                full=request.full,
                at=request.at,
                automatic=request.automatic,
            )
            answer = {"operation_id": request.operation_id, "queue": queue}
    if model != before:
        applier.apply(PagesChanged(request.now, models=(model,)))
    return answer


def _folded(applier: Applier, model: MentalModel, open_: OperationRecord, request: SubmitRefresh) -> Answer:
    """A refresh that waits already takes another in: asked for by hand it waits no longer."""
    payload = _payload(model.id, True) if request.full else None
    if request.automatic:
        if payload is not None:
            applier.apply(OperationStored(open_, payload))
        return {"operation_id": open_.id}
    released = dataclasses.replace(open_, next_retry_at=None, waiting="", updated_at=request.now)
    applier.apply(OperationStored(released, payload))
    return {"operation_id": open_.id, "queue": {"id": open_.id, "due": None, "documents": open_.documents}}


def commit(applier: Applier, request: CommitRefresh) -> Answer:
    """Store what a refresh came to and end its operation. Raises `Superseded` when its ground moved."""
    operation = read_operation(applier, request.operation_id)
    if operation is None or operation.status not in OPEN_STATES:
        return {"status": "gone"}
    if operation.cancel_requested:
        applier.apply(OperationStored(_ended(operation, request.now, CANCELLED)))
        return {"status": CANCELLED}
    model = page_rows.model(applier.txn, applier.bank, request.model_id)
    if model is None:
        # Nobody will ask for it again.
        applier.apply(OperationStored(_ended(operation, request.now, CANCELLED), b""))
        return {"status": CANCELLED}
    if model.revision != request.revision:
        raise Superseded("The mental model changed while it was refreshed.")
    if not request.error and erased(applier, request.read):
        raise Superseded("A memory that the mental model was to rest on is gone.")
    if request.error:
        _failed(applier, model, operation, request.now, request.outcome, request.failure, request.error)
        return {"status": FAILED}
    _stored(applier, model, request)
    result = {**operation.result, "details": outcomes.details(request.outcome, None)}
    if request.usage:
        result["usage"] = dict(request.usage)
    done = dataclasses.replace(_ended(operation, request.now, COMPLETED), result=result, error=None)
    applier.apply(OperationStored(done, b""))
    return {"status": COMPLETED}


def _ended(operation: OperationRecord, now: int, status: str) -> OperationRecord:
    return dataclasses.replace(operation, status=status, updated_at=now, completed_at=now, next_retry_at=None)


def _stored(applier: Applier, model: MentalModel, request: CommitRefresh) -> None:
    held = page_rows.content(applier.txn, applier.bank, model.id)
    now = request.now
    text = held.text if request.text is None else request.text
    count: int = model.formers
    formers: list[tuple[str, int, FormerContent | None]] = []
    if text != held.text:
        count, formers = _former(applier, model, now, request.history)
    response = {**(request.response or held.response), "outcome": request.outcome}
    content = PageContent(text, response, request.vector or held.vector, tuple(request.terms) or held.terms)
    changed = dataclasses.replace(
        model,
        has_content=bool(text),
        cited=tuple(request.cited),
        retract=(),
        content_query=request.question if text else "",
        seen_uid=max(model.seen_uid, request.seen_uid),
        formers=count,
        last_refreshed_at=now,
        last_memory_seen_at=request.seen_at if request.seen_at is not None else model.last_memory_seen_at,
        last_refresh_failed_at=None,
        last_full_refreshed_at=now if request.full else model.last_full_refreshed_at,
        revision=model.revision + 1,
    )
    applier.apply(PagesChanged(now, models=(changed,), contents=((model.id, content),), formers=tuple(formers)))


def _failed(
    applier: Applier, model: MentalModel, operation: OperationRecord, now: int, outcome: str, failure: str, error: str
) -> None:
    result = {**operation.result, "details": outcomes.details(outcome, failure)}
    ended = dataclasses.replace(_ended(operation, now, FAILED), result=result, error=error)
    applier.apply(OperationStored(ended))
    mark_failed(applier, model.id, now)

"""Rows of directives, mental models and knowledge pages: how `Applier` writes them and how reads get at them."""

from __future__ import annotations

from collections.abc import Iterator

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn, WriteTxn
from recalld.storage.pages import Directive, FormerContent, MentalModel, PageContent, PageNode, PagesChanged


def write(txn: WriteTxn, bank: int, change: PagesChanged) -> None:
    """Carry a change out: what goes first, then what is written."""
    for one in change.directives_gone:
        txn.delete(keys.named(bank, keys.DIRECTIVE, one))
    for one in change.nodes_gone:
        txn.delete(keys.named(bank, keys.PAGE_NODE, one))
    for one in change.models_gone:
        txn.delete(keys.named(bank, keys.MENTAL_MODEL, one))
        txn.delete(keys.named(bank, keys.MODEL_CONTENT, one))
        txn.delete_prefix(keys.formers(bank, one))
    for directive in change.directives:
        txn.put(keys.named(bank, keys.DIRECTIVE, directive.id), codec.encode(directive))
    for model in change.models:
        txn.put(keys.named(bank, keys.MENTAL_MODEL, model.id), codec.encode(model))
    for node in change.nodes:
        txn.put(keys.named(bank, keys.PAGE_NODE, node.id), codec.encode(node))
    for model_id, content in change.contents:
        key = keys.named(bank, keys.MODEL_CONTENT, model_id)
        if content is None:
            txn.delete(key)
        else:
            txn.put(key, codec.encode(content))
    for model_id, number, former in change.formers:
        key = keys.former(bank, model_id, number)
        if former is None:
            txn.delete(key)
        else:
            txn.put(key, codec.encode(former))


def directive(txn: ReadTxn, bank: int, directive_id: str) -> Directive | None:
    value = txn.get(keys.named(bank, keys.DIRECTIVE, directive_id))
    return None if value is None else codec.decode(Directive, value)


def directives(txn: ReadTxn, bank: int) -> list[Directive]:
    """All of them: the highest priority first, then the oldest."""
    found = [codec.decode(Directive, value) for _, value in txn.scan(keys.table(bank, keys.DIRECTIVE))]
    return sorted(found, key=lambda one: (-one.priority, one.created_at, one.id))


def model(txn: ReadTxn, bank: int, model_id: str) -> MentalModel | None:
    value = txn.get(keys.named(bank, keys.MENTAL_MODEL, model_id))
    return None if value is None else codec.decode(MentalModel, value)


def models(txn: ReadTxn, bank: int) -> list[MentalModel]:
    """All of them, the newest first."""
    found = [codec.decode(MentalModel, value) for _, value in txn.scan(keys.table(bank, keys.MENTAL_MODEL))]
    return sorted(found, key=lambda one: (-one.created_at, one.id))


def content(txn: ReadTxn, bank: int, model_id: str) -> PageContent:
    """What a model says; empty when it says nothing."""
    value = txn.get(keys.named(bank, keys.MODEL_CONTENT, model_id))
    return PageContent() if value is None else codec.decode(PageContent, value)


def formers(txn: ReadTxn, bank: int, model_id: str) -> Iterator[tuple[int, FormerContent]]:
    """(number, former content), the oldest first."""
    for key, value in txn.scan(keys.formers(bank, model_id)):
        yield keys.trailing_u32(key), codec.decode(FormerContent, value)


def node(txn: ReadTxn, bank: int, node_id: str) -> PageNode | None:
    value = txn.get(keys.named(bank, keys.PAGE_NODE, node_id))
    return None if value is None else codec.decode(PageNode, value)


def nodes(txn: ReadTxn, bank: int) -> list[PageNode]:
    """All of them: folders before pages, then by name."""
    found = [codec.decode(PageNode, value) for _, value in txn.scan(keys.table(bank, keys.PAGE_NODE))]
    return sorted(found, key=lambda one: (one.kind, one.name.casefold(), one.id))

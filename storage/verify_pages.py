"""Directives, mental models and knowledge pages counted against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recalld.storage import codec, keys, page_rows
from recalld.storage.environment import ReadTxn
from recalld.storage.pages import FOLDER, PAGE, FormerContent

if TYPE_CHECKING:
    from recalld.storage.verify import Findings


def check_pages(txn: ReadTxn, bank: int, found: Findings) -> None:
    """Every page has its model and a folder that is there, and nothing is left of a model that is gone."""
    models = {one.id: one for one in page_rows.models(txn, bank)}
    nodes = {one.id: one for one in page_rows.nodes(txn, bank)}
    found.checked |= {
        "directives": len(page_rows.directives(txn, bank)),
        "mental_models": len(models),
        "page_nodes": len(nodes),
    }
    paged = set()
    for node in nodes.values():
        parent = nodes.get(node.parent)
        found.expect(
            not node.parent or (parent is not None and parent.kind == FOLDER),
            "page_node",
            node.id,
            "its folder is not there",
        )
        seen = {node.id}
        while parent is not None and parent.id not in seen:
            seen.add(parent.id)
            parent = nodes.get(parent.parent)
        found.expect(parent is None, "page_node", node.id, "its folders stand in a circle")
        if node.kind == PAGE:
            paged.add(node.model)
            found.expect(node.model in models, "page_node", node.id, "its mental model is not there")
    for model in models.values():
        found.expect(model.page == (model.id in paged), "mental_model", model.id, "it is a page in one table alone")
        held = page_rows.content(txn, bank, model.id)
        found.expect(model.has_content == bool(held.text), "mental_model", model.id, "its content is not where it says")
        for number, _ in page_rows.formers(txn, bank, model.id):
            found.expect(number < model.formers, "model_history", model.id, f"entry {number} was never given")
    known = {keys.name_key(model_id) for model_id in models}
    for table, name, tail in ((keys.MODEL_CONTENT, "model_content", 0), (keys.MODEL_HISTORY, "model_history", 4)):
        for key, value in txn.scan(keys.table(bank, table)):
            whose = bytes(key)[5:21]
            found.expect(whose in known, name, whose.hex(), "its mental model is gone")
            if tail:
                codec.decode(FormerContent, value)

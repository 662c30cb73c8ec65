"""What a unit says about its trust: the level of its source, and the risks its own words or its item's carry.

Every extractor's facts come through here, so that no prompt and no provider decides what is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.plan import NewFact
from recalld.actors.trust.instructions import INSTRUCTION, NORMAL, QUOTED, any_instruction, unit_trust
from recalld.actors.trust.redaction import MARK, find
from recalld.storage.records import PreparedUnit


def source_level(item: RetainItem, config: Mapping[str, Any]) -> str:
    """How far the item's source is trusted: as it says, else as the bank says."""
    return item.trust or config.get("source_trust") or NORMAL


def marked(facts: Sequence[NewFact], config: Mapping[str, Any]) -> list[NewFact]:
    """The facts with their trust and their risks: `instruction`, and under `mark` the kinds found in them."""
    around: dict[int, bool] = {}
    found = []
    for new in facts:
        item, fact = new.item, new.fact
        if id(item) not in around:
            around[id(item)] = any_instruction(_around(item))
        names = (fact.speaker, *(entity.name for entity in fact.entities))
        instruction = around[id(item)] or any_instruction((fact.text, *names))
        kinds = {one.kind for one in find(fact.text)} if config.get("redaction") == MARK else set()
        risks = (*((INSTRUCTION,) if instruction else ()), *sorted(kinds))
        trust = unit_trust(source_level(item, config), instruction)
        found.append(replace(new, fact=replace(fact, trust=trust, risks=risks)))
    return found


def _around(item: RetainItem) -> tuple[str, ...]:
    """Every text that goes with an item's content and may one day stand in a prompt beside it."""
    entities = (entity.name for entity in item.entities)
    name = (str((item.file or {}).get("name", "")),)
    return (item.context, item.document_id or "", *item.tags, *item.metadata, *item.metadata.values(), *entities, *name)


def note(row: dict[str, Any], item: RetainItem, facts: Sequence[NewFact]) -> None:
    """Put into an item's receipt what became of it before it was read, and the risks its units carry."""
    notes = dict(item.notes)
    dropped = [*notes.pop("dropped", ()), *row.get("dropped", ())]
    row.update(notes)
    if dropped:
        row["dropped"] = dropped
    if risks := sorted({risk for new in facts for risk in new.fact.risks}):
        row["risks"] = risks


def skipped_row(item: RetainItem) -> dict[str, Any]:
    """The receipt of an item of which nothing was left to read; its document stays as it is."""
    row: dict[str, Any] = {"document_id": item.document_id, "unit_ids": [], "chunks": 0, "chunks_unchanged": 0}
    note(row, item, ())
    row["nothing_stored"] = "all of it was recalled before"
    return row


def marked_again(unit: PreparedUnit) -> PreparedUnit:
    """A unit whose words were changed by hand, with the trust and the risks of its new ones."""
    names = (entity.name for entity in unit.entities)
    instruction = any_instruction((unit.text, unit.context, unit.speaker, *names))
    level = NORMAL if unit.trust == QUOTED else unit.trust
    others = tuple(risk for risk in unit.risks if risk != INSTRUCTION)
    risks = (*((INSTRUCTION,) if instruction else ()), *others)
    return replace(unit, trust=unit_trust(level, instruction), risks=risks)

"""Reads of entities and tags. Counts are of live units; under a tag filter, of the units it lets through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.reads_pages import model_tags
from recalld.actors.reads_shape import cut, like, page, uuid_text
from recalld.actors.recall.filters import group_filter, tag_filter
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import NotFound
from recalld.storage.groups import members_of, read_parents, roots_of, units_of
from recalld.storage.isotime import iso
from recalld.storage.names import CONCEPT
from recalld.storage.partition import Partition
from recalld.storage.records import UNKNOWN, EntityChange, EntityRecord, UnitRecord
from recalld.storage.snapshot import Snapshot

Bools = NDArray[np.bool_]


def list_tags(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Tags of live units, or of mental models, most used first, then by name."""
    limit, offset, pattern = params["limit"], params["offset"], params.get("q")
    if params.get("source") == "mental_models":
        return model_tags(partition, tenant, bank_id, params)
    with partition.read(tenant, bank_id) as snap:
        found = [(tag, count) for tag, count in snap.all_tags() if count and (not pattern or like(pattern, tag))]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    items = [{"tag": tag, "count": count} for tag, count in cut(found, limit, offset)]
    return page(items, len(found), limit, offset)


def list_entities(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Entities that live units name, most mentioned first, then by name.

    Raises `BankNotFound`, and `Unprocessable` for a tag mode or group of no known form.
    """
    limit, offset = params["limit"], params["offset"]
    if _is_scoped(params):
        with partition.read(tenant, bank_id) as snap:
            allowed = tag_scope(snap, params)
            rows = [row for entity in snap.entities() if (row := scoped(snap, entity, allowed)) is not None]
    else:
        with partition.peek(tenant, bank_id) as (txn, number):
            records = [codec.decode(EntityRecord, v) for _, v in txn.scan(keys.table(number, keys.ENTITY))]
            roots = roots_of(read_parents(txn, number))
        kinds = _kinds(records, roots)
        wholes = (entity for entity in records if entity.number not in roots)
        rows = [_row(entity, kinds.get(entity.number, entity.kind)) for entity in wholes if entity.mentions]
    rows.sort(key=lambda row: (-row["mention_count"], row["canonical_name"], row["id"]))
    return page(list(cut(rows, limit, offset)), len(rows), limit, offset)


def get_entity(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One entity, for the id of a part the whole; one that no unit in the tag scope names is not found.

    Raises `BadRequest`, `BankNotFound`, `NotFound`, `Unprocessable`.
    """
    asked: str = params["entity_id"]
    entity_id = uuid_text(asked, "entity_id")
    row: dict[str, Any] | None = None
    if _is_scoped(params):
        with partition.read(tenant, bank_id) as snap:
            entity = snap.entity_by_id(entity_id)
            row = None if entity is None else scoped(snap, entity, tag_scope(snap, params))
    else:
        with partition.peek(tenant, bank_id) as (txn, number):
            whole, parts = _group(txn, number, entity_id)
            row = None if whole is None else _row(whole, _kind(whole, parts))
    if row is None:
        raise NotFound(f"Entity '{asked}' not found")
    return {**row, "observations": []}


def entity_names(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """The names an entity goes by: its own, and those of its parts with what made them parts.

    Raises `BadRequest`, `BankNotFound`, `NotFound`.
    """
    asked: str = params["entity_id"]
    with partition.peek(tenant, bank_id) as (txn, number):
        whole, parts = _group(txn, number, uuid_text(asked, "entity_id"))
        if whole is None:
            raise NotFound(f"Entity '{asked}' not found")
        names = [
            {
                "id": one.id,
                "name": one.name,
                "kind": one.kind,
                "why": one.why or None,
                "unit_count": len(units_of(txn, number, one.number)),
                "evidence": [unit.id for uid in one.evidence if (unit := _unit(txn, number, uid)) is not None],
            }
            for one in (whole, *parts)
        ]
    return {"id": whole.id, "canonical_name": whole.name, "names": names}


def entity_changes(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Merges and splits by hand, the latest first. Raises `BankNotFound`."""
    with partition.peek(tenant, bank_id) as (txn, number):
        found = [codec.decode(EntityChange, v) for _, v in txn.scan(keys.table(number, keys.ENTITY_CHANGE))]
        found.sort(key=lambda one: (-one.at, one.id))
        shown = cut(found, params["limit"], params["offset"])
        labels = {n: _label(txn, number, n) for one in shown for n in (one.part, one.whole)}
    items = [
        {
            "id": one.id,
            "what": one.what,
            "at": iso(one.at),
            "undone_at": iso(one.undone_at),
            "part": labels[one.part],
            "whole": labels[one.whole],
            "units": len(one.units),
        }
        for one in shown
    ]
    return page(items, len(found), params["limit"], params["offset"])


def _label(txn: ReadTxn, bank: int, number: int) -> dict[str, Any] | None:
    value = txn.get(keys.number(bank, keys.ENTITY, number))
    if value is None:
        return None
    entity = codec.decode(EntityRecord, value)
    return {"id": entity.id, "name": entity.name}


def _unit(txn: ReadTxn, bank: int, uid: int) -> UnitRecord | None:
    value = txn.get(keys.number(bank, keys.UNIT, uid))
    return None if value is None else codec.decode(UnitRecord, value)


def _group(txn: ReadTxn, bank: int, entity_id: str) -> tuple[EntityRecord | None, list[EntityRecord]]:
    """(the whole entity, its parts) that an id belongs to."""
    held = txn.get(keys.named(bank, keys.ENTITY_ID, entity_id))
    if held is None:
        return None, []
    roots = roots_of(read_parents(txn, bank))
    number = int.from_bytes(bytes(held), "little")
    number = roots.get(number, number)
    numbers = [number, *sorted(part for part, root in roots.items() if root == number)]
    values = (txn.get(keys.number(bank, keys.ENTITY, one)) for one in numbers)
    found = [codec.decode(EntityRecord, value) for value in values if value is not None]
    return (found[0], found[1:]) if found else (None, [])


def _kind(whole: EntityRecord, parts: Sequence[EntityRecord]) -> str:
    """The kind of a whole: of it and its parts, the first that has one."""
    return next((one.kind for one in (whole, *parts) if one.kind != CONCEPT), CONCEPT)


def _kinds(records: Sequence[EntityRecord], roots: Mapping[int, int]) -> dict[int, str]:
    """{whole entity: its kind} of those that have parts."""
    numbered = {entity.number: entity for entity in records} if roots else {}
    return {
        whole: _kind(numbered[whole], [numbered[part] for part in parts]) for whole, parts in members_of(roots).items()
    }


def _is_scoped(params: Mapping[str, Any]) -> bool:
    return bool(params.get("tags") or params.get("tag_groups") or params.get("tags_match") == "exact")


def tag_scope(snap: Snapshot, params: Mapping[str, Any]) -> Bools:
    """bool[n]: live units that the tags or the groups let through."""
    tags: Sequence[str] = params.get("tags") or ()
    groups: Sequence[Mapping[str, Any]] | None = params.get("tag_groups")
    mask = snap.columns.live.copy()
    if tags or not groups:
        mask &= tag_filter(snap, tags, params.get("tags_match") or "any")
    if groups:
        mask &= group_filter(snap, groups, RecallSettings())
    return mask


def scoped(snap: Snapshot, entity: EntityRecord, allowed: Bools) -> dict[str, Any] | None:
    """The entity as the allowed units know it: their number, and the first and last time they mention it."""
    uids = snap.entity_uids(entity.number, snap.n)
    uids = uids[allowed[uids]]
    if not len(uids):
        return None
    seen = snap.columns.mentioned[uids]
    seen = seen[seen != UNKNOWN]
    first, last = (int(seen.min()), int(seen.max())) if len(seen) else (None, None)
    parts = [part for number in snap.parts.get(entity.number, ()) if (part := snap.entity(number)) is not None]
    return _entity_row(entity, _kind(entity, parts), len(uids), first, last)


def _row(entity: EntityRecord, kind: str) -> dict[str, Any]:
    return _entity_row(entity, kind, entity.mentions, entity.first_seen, entity.last_seen)


def _entity_row(entity: EntityRecord, kind: str, mentions: int, first: int | None, last: int | None) -> dict[str, Any]:
    return {
        "id": entity.id,
        "canonical_name": entity.name,
        "mention_count": mentions,
        "first_seen": iso(first),
        "last_seen": iso(last),
        "metadata": {"kind": kind},
    }

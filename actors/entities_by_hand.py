"""Entities merged and split by hand, inside a write: what is asked is checked here and carried out by the store."""

from __future__ import annotations

import struct
from typing import Any

from recalld.actors.entity_messages import ChangeEntities
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import EntitiesChanged, EntitiesRestored
from recalld.storage.errors import Conflict, NotFound
from recalld.storage.names import Names, agree, folded
from recalld.storage.records import EntityChange, EntityRecord
from recalld.storage.regroup import MERGED, SPLIT_NAME, SPLIT_UNITS

_U32 = struct.Struct("<I")


def change_entities(applier: Applier, request: ChangeEntities) -> dict[str, Any]:
    """Merge, split or undo. Raises `NotFound` and `Conflict`."""
    match request.action:
        case "merge":
            record = _merge(applier, request)
        case "split":
            record = _split_name(applier, request) if request.alias else _split_units(applier, request)
        case _:
            record = _undo(applier, request)
    applier.touch(request.now)
    found = (applier.names.entity(applier.names.root(number)) for number in (record.part, record.whole))
    ids = dict.fromkeys(entity.id for entity in found if entity is not None)
    return {"change_id": record.id, "what": record.what, "entity_ids": list(ids)}


def _entity(applier: Applier, entity_id: str) -> EntityRecord:
    """The whole entity with an id, or that the entity with this id is a part of."""
    value = applier.txn.get(keys.named(applier.bank, keys.ENTITY_ID, entity_id))
    found = None if value is None else applier.names.entity(applier.names.root(_U32.unpack(value)[0]))
    if found is None:
        raise NotFound(f"Entity '{entity_id}' not found")
    return found


def _merge(applier: Applier, request: ChangeEntities) -> EntityChange:
    names = applier.names
    part, whole = _entity(applier, request.entity_id), _entity(applier, request.into)
    if part.number == whole.number:
        raise Conflict(f"'{part.name}' and '{whole.name}' are one entity already.")
    kinds = names.kind_of(part.number), names.kind_of(whole.number)
    if not agree(*kinds):
        raise Conflict(
            f"'{part.name}' is a {kinds[0]} and '{whole.name}' a {kinds[1]}: entities of different kinds are never one."
        )
    record = EntityChange(request.change_id, MERGED, request.now, part.number, whole.number)
    applier.apply(EntitiesChanged(record))
    return record


def _split_name(applier: Applier, request: ChangeEntities) -> EntityChange:
    names = applier.names
    whole = _entity(applier, request.entity_id)
    asked = folded(request.alias)
    if folded(whole.name) == asked:
        raise Conflict(
            f"'{whole.name}' is the name of the entity itself; split its other names off, or some of its units."
        )
    parts = [number for number in names.members(whole.number)[1:] if folded(_name(names, number)) == asked]
    if not parts:
        raise NotFound(f"Entity '{whole.name}' has no name '{request.alias}'.")
    held = tuple((n, one.why, one.evidence) for n in parts if (one := names.entity(n)) is not None)
    wholes = {names.whole_of(number) for number in parts}
    # Each goes back to where it was, so one record tells of one place.
    place = wholes.pop() if len(wholes) == 1 else whole.number
    record = EntityChange(request.change_id, SPLIT_NAME, request.now, parts[0], place, parts=held)
    applier.apply(EntitiesChanged(record))
    return record


def _name(names: Names, number: int) -> str:
    entity = names.entity(number)
    return "" if entity is None else entity.name


def _split_units(applier: Applier, request: ChangeEntities) -> EntityChange:
    names = applier.names
    whole = _entity(applier, request.entity_id)
    group = set(names.members(whole.number))
    units: dict[int, tuple[int, ...]] = {}
    for unit_id in request.unit_ids:
        value = applier.txn.get(keys.named(applier.bank, keys.UNIT_ID, unit_id))
        unit = None if value is None else applier.unit(_U32.unpack(value)[0])
        if unit is None or not group.intersection(unit.entities):
            raise NotFound(f"Memory '{unit_id}' does not name '{whole.name}'.")
        units[unit.uid] = unit.entities
    if not set(names.units(whole.number)) - set(units):
        raise Conflict(f"These are all memories of '{whole.name}': nothing would be left of it.")
    record = EntityChange(
        request.change_id,
        SPLIT_UNITS,
        request.now,
        applier.allocate("entity"),
        whole.number,
        units=tuple(sorted(units.items())),
    )
    applier.apply(EntitiesChanged(record, request.new_id, request.name or whole.name))
    return record


def _undo(applier: Applier, request: ChangeEntities) -> EntityChange:
    names = applier.names
    value = applier.txn.get(keys.named(applier.bank, keys.ENTITY_CHANGE, request.change_id))
    if value is None:
        raise NotFound(f"Change '{request.change_id}' not found")
    record = codec.decode(EntityChange, value)
    if record.undone_at is not None:
        raise Conflict("That change was taken back already.")
    later = Conflict("The entities changed since; take the later change back first.")
    parts = [part for part, _, _ in record.parts] or [record.part]
    if any(names.entity(number) is None for number in (*parts, record.whole)):
        raise Conflict("An entity of that change is gone with its last memory; there is nothing to take back.")
    if record.what == MERGED:
        if names.whole_of(record.part) != record.whole:
            raise later
    elif record.what == SPLIT_NAME:
        if any(names.whole_of(part) or names.root(record.whole) == part for part in parts):
            raise later
        if not all(agree(names.kind_of(part), names.kind_of(record.whole)) for part in parts):
            raise later
    elif len(names.members(record.part)) > 1 or names.whole_of(record.part) not in (0, record.whole):
        raise later
    applier.apply(EntitiesRestored(record, request.now))
    return record

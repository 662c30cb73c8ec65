"""Entities merged and split by hand, and those changes taken back, inside one write."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from recalld.storage import codec, edges, keys
from recalld.storage.changes import EntitiesChanged, EntitiesRestored
from recalld.storage.names import HAND, Names
from recalld.storage.records import EntityChange, EntityRecord

if TYPE_CHECKING:
    from recalld.storage.apply import Applier

MERGED, SPLIT_NAME, SPLIT_UNITS = "merged", "split_name", "split_units"


def change(applier: Applier, names: Names, asked: EntitiesChanged) -> None:
    """Carry out a change by hand and keep its record."""
    record = asked.record
    match record.what:
        case "merged":
            names.join(record.part, record.whole, HAND)
        case "split_name":
            for part, _, _ in record.parts:
                names.part(part)
                _keep_apart(names, part, record.whole)
        case "split_units":
            kind = names.kind_of(record.whole)
            names.put_new(EntityRecord(record.part, asked.entity_id, asked.name, kind, 0, None, None))
            group = set(names.members(record.whole))
            for uid, before in record.units:
                _rename(applier, uid, _replaced(before, group, record.part), record.at)
            _keep_apart(names, record.part, record.whole)
            names.recount(record.part)
            names.recount(record.whole)
    _store(applier, record)


def restore(applier: Applier, names: Names, asked: EntitiesRestored) -> None:
    """Take a change back: the entities are as they were before it."""
    record = asked.record
    match record.what:
        case "merged":
            names.part(record.part)
        case "split_name":
            for part, why, evidence in record.parts:
                _let_near(names, part, record.whole)
                names.join(part, record.whole, why, evidence)
        case "split_units":
            _let_near(names, record.part, record.whole)
            for uid, before in record.units:
                # An entity that is gone meanwhile was a name of the whole.
                numbers = (one if names.entity(one) is not None else record.whole for one in before)
                _rename(applier, uid, tuple(dict.fromkeys(numbers)), asked.at)
            if names.units(record.part):
                # Units that came since stay with the name they were told under.
                if not names.whole_of(record.part):
                    names.join(record.part, record.whole, HAND)
            else:
                names.remove(record.part)
            names.recount(record.whole)
    named = {number for _, before in record.units for number in before}
    names.look_again({record.part, record.whole, *named, *(part for part, _, _ in record.parts)})
    _store(applier, dataclasses.replace(record, undone_at=asked.at))


def _store(applier: Applier, record: EntityChange) -> None:
    applier.txn.put(keys.named(applier.bank, keys.ENTITY_CHANGE, record.id), codec.encode(record))


def _keep_apart(names: Names, part: int, whole: int) -> None:
    entity = names.entity(part)
    if entity is not None and whole not in entity.apart:
        names.change_entity(part, apart=(*entity.apart, whole))


def _let_near(names: Names, part: int, whole: int) -> None:
    entity = names.entity(part)
    if entity is not None:
        names.change_entity(part, apart=tuple(one for one in entity.apart if one != whole))


def _replaced(before: Iterable[int], group: set[int], part: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(part if number in group else number for number in before))


def _rename(applier: Applier, uid: int, numbers: tuple[int, ...], at: int) -> None:
    """Let a unit name other entities, in its record, its edges and their sets; an erased unit is left alone."""
    record = applier.unit(uid)
    if record is None:
        return
    applier.move_entities(record, numbers)
    applier.put_unit(dataclasses.replace(record, entities=numbers, updated_at=at))
    key = keys.number(applier.bank, keys.EDGES, uid)
    value = applier.txn.get(key)
    held = edges.NONE if value is None else edges.decode(value)
    applier.txn.put(key, edges.encode(held._replace(entities=np.array(numbers, np.uint32))))

"""Reads of entities and tags. Counts are of live units; under a tag filter, of the units it lets through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.reads_shape import cut, like, page, uuid_text
from recalld.actors.recall.filters import group_filter, tag_filter
from recalld.actors.recall.settings import RecallSettings
from recalld.storage import codec, keys
from recalld.storage.errors import NotFound
from recalld.storage.isotime import iso
from recalld.storage.partition import Partition
from recalld.storage.records import UNKNOWN, EntityRecord
from recalld.storage.snapshot import Snapshot

Bools = NDArray[np.bool_]


def list_tags(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Tags of live units, most used first, then by name. There are no mental models, so none of theirs."""
    limit, offset, pattern = params["limit"], params["offset"], params.get("q")
    if params.get("source") == "mental_models":
        with partition.peek(tenant, bank_id):
            return page([], 0, limit, offset)
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
            allowed = _scope(snap, params)
            rows = [row for entity in snap.entities() if (row := _scoped(snap, entity, allowed)) is not None]
    else:
        with partition.peek(tenant, bank_id) as (txn, number):
            records = [codec.decode(EntityRecord, v) for _, v in txn.scan(keys.table(number, keys.ENTITY))]
        rows = [_row(entity) for entity in records if entity.mentions]
    rows.sort(key=lambda row: (-row["mention_count"], row["canonical_name"], row["id"]))
    return page(list(cut(rows, limit, offset)), len(rows), limit, offset)


def get_entity(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One entity; one that no unit in the tag scope names is not found.

    Raises `BadRequest`, `BankNotFound`, `NotFound`, `Unprocessable`.
    """
    asked: str = params["entity_id"]
    entity_id = uuid_text(asked, "entity_id")
    row: dict[str, Any] | None = None
    if _is_scoped(params):
        with partition.read(tenant, bank_id) as snap:
            entity = snap.entity_by_id(entity_id)
            row = None if entity is None else _scoped(snap, entity, _scope(snap, params))
    else:
        with partition.peek(tenant, bank_id) as (txn, number):
            held = txn.get(keys.named(number, keys.ENTITY_ID, entity_id))
            place = None if held is None else int.from_bytes(bytes(held), "little")
            value = None if place is None else txn.get(keys.number(number, keys.ENTITY, place))
            row = None if value is None else _row(codec.decode(EntityRecord, value))
    if row is None:
        raise NotFound(f"Entity '{asked}' not found")
    return {**row, "observations": []}


def _is_scoped(params: Mapping[str, Any]) -> bool:
    return bool(params.get("tags") or params.get("tag_groups") or params.get("tags_match") == "exact")


def _scope(snap: Snapshot, params: Mapping[str, Any]) -> Bools:
    """bool[n]: live units that the tags or the groups let through."""
    tags: Sequence[str] = params.get("tags") or ()
    groups: Sequence[Mapping[str, Any]] | None = params.get("tag_groups")
    mask = snap.columns.live.copy()
    if tags or not groups:
        mask &= tag_filter(snap, tags, params.get("tags_match") or "any")
    if groups:
        mask &= group_filter(snap, groups, RecallSettings())
    return mask


def _scoped(snap: Snapshot, entity: EntityRecord, allowed: Bools) -> dict[str, Any] | None:
    """The entity as the allowed units know it: their number, and the first and last time they mention it."""
    uids = snap.entity_uids(entity.number, snap.n)
    uids = uids[allowed[uids]]
    if not len(uids):
        return None
    seen = snap.columns.mentioned[uids]
    seen = seen[seen != UNKNOWN]
    first, last = (int(seen.min()), int(seen.max())) if len(seen) else (None, None)
    return _entity_row(entity, len(uids), first, last)


def _row(entity: EntityRecord) -> dict[str, Any]:
    return _entity_row(entity, entity.mentions, entity.first_seen, entity.last_seen)


def _entity_row(entity: EntityRecord, mentions: int, first: int | None, last: int | None) -> dict[str, Any]:
    return {
        "id": entity.id,
        "canonical_name": entity.name,
        "mention_count": mentions,
        "first_seen": iso(first),
        "last_seen": iso(last),
        "metadata": {"kind": entity.kind},
    }

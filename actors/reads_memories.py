"""Reads of memory units: the filtered list and the single read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.filters import MemoryFilters
from recalld.actors.reads_shape import cut, holds, page, uuid_text
from recalld.actors.recall.filters import tag_filter
from recalld.storage import codec, consolidation, keys, mentions
from recalld.storage.columns import Columns
from recalld.storage.environment import ReadTxn
from recalld.storage.errors import BadRequest, NotFound
from recalld.storage.groups import as_roots, read_parents, roots_of
from recalld.storage.isotime import iso
from recalld.storage.names import folded
from recalld.storage.partition import Partition
from recalld.storage.records import (
    INVALIDATED,
    NETWORK_NAMES,
    OBSERVATION,
    UNKNOWN,
    VALID,
    EntityRecord,
    MentionRecord,
    UnitRecord,
)
from recalld.storage.snapshot import Snapshot

TIME_COLUMNS = {
    "created_at": "recorded",
    "mentioned_at": "mentioned",
    "occurred_start": "occurred_start",
    "occurred_end": "occurred_end",
}
Bools = NDArray[np.bool_]


def list_memories(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """A page of units, latest mentioned first, then latest recorded, undated ones last.

    Everything the resident columns know is filtered there; stored bodies are read for the page alone, unless the
    filter asks for text, for invalidated units or for `updated_at`, which stand in bodies only.
    Raises `BankNotFound`, `BadRequest`, `Unprocessable` (a tag mode).
    """
    filters: MemoryFilters = params["filters"]
    with partition.read(tenant, bank_id) as snap:
        chosen = chosen_units(snap, filters)
        if _needs_bodies(filters):
            chosen = np.array([uid for uid in chosen.tolist() if _body_passes(snap, uid, filters)], np.int64)
        uids = cut(chosen.tolist(), filters.limit, filters.offset)
        names = Names(snap.txn, snap.bank)
        items = [_list_item(snap.txn, snap.bank, unit, names) for unit in snap.units(uids)]
    return page(items, len(chosen), filters.limit, filters.offset)


def chosen_units(snap: Snapshot, filters: MemoryFilters) -> NDArray[np.int64]:
    """uids of what passes all that needs no body, latest mentioned first, then latest recorded, undated ones last."""
    columns = snap.columns
    chosen = np.flatnonzero(_mask(snap, filters))
    # Ascending by (mentioned, recorded, uid) and turned round; an unknown instant is the least of all.
    order = np.lexsort((chosen, columns.recorded[chosen], columns.mentioned[chosen]))[::-1]
    return chosen[order]


def _mask(snap: Snapshot, filters: MemoryFilters) -> Bools:
    """bool[n]: what passes all that needs no body; for invalidated units, every unit that has ended."""
    columns: Columns = snap.columns
    mask = columns.live.copy() if filters.state != INVALIDATED else columns.exists & ~columns.live
    if filters.type is not None:
        if filters.type not in NETWORK_NAMES:
            raise BadRequest(f"type must be one of {', '.join(NETWORK_NAMES)}.")
        mask &= columns.network == NETWORK_NAMES.index(filters.type)
    if filters.consolidation_state is not None:
        mask &= _in_state(snap, filters.consolidation_state)
    if filters.document_id is not None:
        document = snap.document_by_id(filters.document_id)
        mask &= False if document is None else _said_in(snap, document.number)
    if filters.entity_id is not None:
        entity = snap.entity_by_id(uuid_text(filters.entity_id, "entity_id"))
        named = np.zeros(snap.n, np.bool_)
        if entity is not None:
            named[snap.entity_uids(entity.number, snap.n)] = True
        mask &= named
    if filters.tags or filters.tags_match == "exact":
        mask &= tag_filter(snap, filters.tags, filters.tags_match)
    name = TIME_COLUMNS.get(filters.time_field)
    if name is not None:
        mask &= _within(getattr(columns, name), filters.start, filters.end)
    elif filters.time_field != "updated_at":
        raise BadRequest(f"time_field must be one of {', '.join((*TIME_COLUMNS, 'updated_at'))}.")
    return mask


def _in_state(snap: Snapshot, state: str) -> Bools:
    """Facts that are `pending`, `failed` or `done`."""
    marked = {
        name: np.array([uid for uid in consolidation.members(snap.txn, snap.bank, kind) if uid < snap.n], np.int64)
        for name, kind in (("done", keys.SET_CONSOLIDATED), ("failed", keys.SET_FAILED))
    }
    mask: Bools = np.zeros(snap.n, np.bool_)
    if state == "pending":
        mask = np.isin(snap.columns.network, consolidation.FACTS) & snap.columns.live
        for uids in marked.values():
            mask[uids] = False
    else:
        mask[marked.get(state, np.empty(0, np.int64))] = True
    return mask


def _said_in(snap: Snapshot, document: int) -> Bools:
    """Units of a document, and those of other places that it mentions too."""
    mask: Bools = snap.columns.document == document
    if mentions.count_in(snap.txn, snap.bank, document):
        found = (snap.uid_of(unit_id) for unit_id, _ in mentions.mentions_in(snap.chunks(document)))
        mask[[uid for uid in found if uid is not None]] = True
    return mask


def _within(instants: NDArray[np.int64], start: int | None, end: int | None) -> Bools:
    """Instants from `start` on and before `end`; an unknown one is in no bounded window."""
    mask = np.ones(len(instants), np.bool_)
    if start is not None:
        mask &= instants >= start
    if end is not None:
        mask &= instants < end
    if start is not None or end is not None:
        mask &= instants != UNKNOWN
    return mask


def _by_update(filters: MemoryFilters) -> bool:
    return filters.time_field == "updated_at" and (filters.start is not None or filters.end is not None)


def _needs_bodies(filters: MemoryFilters) -> bool:
    return filters.state == INVALIDATED or bool(filters.q) or _by_update(filters)


def _body_passes(snap: Snapshot, uid: int, filters: MemoryFilters) -> bool:
    """The filters that only a body can answer, over its plain form: a listing may look at every unit of a bank."""
    value = snap.txn.get(keys.number(snap.bank, keys.UNIT, uid))
    if value is None:
        return False
    body = codec.unpack(value)
    if filters.state == INVALIDATED and body.get("state", VALID) == VALID:
        return False
    if _by_update(filters):
        updated = body.get("updated_at", 0)
        if not (filters.start is None or updated >= filters.start) or not (
            filters.end is None or updated < filters.end
        ):
            return False
    return not filters.q or holds(folded(filters.q), body["text"], body.get("context", ""))


class Names:
    """Entity names by number, each read once."""

    def __init__(self, txn: ReadTxn, bank: int) -> None:
        self._txn = txn
        self._bank = bank
        self._names: dict[int, str | None] = {}
        self._roots = roots_of(read_parents(txn, bank))

    def of(self, unit: UnitRecord) -> Iterator[str]:
        for number in as_roots(self._roots, unit.entities):
            if number not in self._names:
                value = self._txn.get(keys.number(self._bank, keys.ENTITY, number))
                self._names[number] = None if value is None else codec.decode(EntityRecord, value).name
            name = self._names[number]
            if name is not None:
                yield name


def _dates(unit: UnitRecord) -> dict[str, Any]:
    first = next(at for at in (unit.occurred_start, unit.mentioned_at, unit.recorded_at) if at is not None)
    return {
        "date": iso(first),
        "mentioned_at": iso(unit.mentioned_at),
        "occurred_start": iso(unit.occurred_start),
        "occurred_end": iso(unit.occurred_end),
    }


def _standing(txn: ReadTxn, bank: int, unit: UnitRecord) -> dict[str, Any]:
    """Curation and consolidation; what was superseded is invalidated, and says by whom."""
    ended = unit.state != VALID
    state = consolidation.state_of(txn, bank, unit.uid)
    return {
        "state": INVALIDATED if ended else VALID,
        "invalidation_reason": (unit.reason or None) if ended else None,
        "invalidated_at": iso(unit.retired_at) if ended else None,
        "edited_at": iso(unit.edited_at),
        "trust": unit.trust,
        "risks": list(unit.risks),
        "consolidated_at": iso(state.done_at),
        "consolidation_failed_at": iso(state.failed_at),
        "superseded_by": unit.superseded_by or None,
    }


def _mentions(txn: ReadTxn, bank: int, unit: UnitRecord) -> list[dict[str, Any]]:
    """Where the claim was said: the unit's own place first."""
    places: list[UnitRecord | MentionRecord] = [unit]
    if unit.proof_count > 1 and unit.network != OBSERVATION:
        places += mentions.mentions_of(txn, bank, unit.id)
    return [
        {
            "document_id": one.document_id,
            "chunk_id": one.chunk_id,
            "mentioned_at": iso(one.mentioned_at),
            "recorded_at": iso(one.recorded_at),
            "metadata": dict(one.metadata),
        }
        for one in places
    ]


def _list_item(txn: ReadTxn, bank: int, unit: UnitRecord, names: Names) -> dict[str, Any]:
    return {
        "id": unit.id,
        "text": unit.text,
        "context": unit.context,
        **_dates(unit),
        "fact_type": NETWORK_NAMES[unit.network],
        "document_id": unit.document_id,
        "entities": ", ".join(names.of(unit)),
        "chunk_id": unit.chunk_id,
        "proof_count": unit.proof_count,
        "tags": list(unit.tags),
        "metadata": dict(unit.metadata),
        **_standing(txn, bank, unit),
        "updated_at": iso(unit.updated_at),
        "source_memory_ids": [source.id for source in _sources(txn, bank, unit)],
    }


def _sources(txn: ReadTxn, bank: int, unit: UnitRecord) -> list[UnitRecord]:
    found = (_unit(txn, bank, uid) for uid in unit.sources)
    return [source for source in found if source is not None]


def _unit(txn: ReadTxn, bank: int, uid: int) -> UnitRecord | None:
    value = txn.get(keys.number(bank, keys.UNIT, uid))
    return None if value is None else codec.decode(UnitRecord, value)


def get_memory(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """One unit, live or ended; `retired_at` says when it ended. Raises `BadRequest`, `BankNotFound`, `NotFound`."""
    asked: str = params["memory_id"]
    unit_id = uuid_text(asked, "memory_id")
    with partition.peek(tenant, bank_id) as (txn, number):
        held = txn.get(keys.named(number, keys.UNIT_ID, unit_id))
        unit = None if held is None else _unit(txn, number, int.from_bytes(bytes(held), "little"))
        if unit is None:
            raise NotFound(f"Memory '{asked}' not found")
        document = txn.get(keys.number(number, keys.DOCUMENT, unit.document)) if unit.document else None
        names = Names(txn, number)
        answer = {
            "id": unit.id,
            "text": unit.text,
            "context": unit.context,
            **_dates(unit),
            "type": NETWORK_NAMES[unit.network],
            "entities": list(names.of(unit)),
            "document_id": unit.document_id,
            "chunk_id": unit.chunk_id,
            "tags": list(unit.tags),
            "metadata": dict(unit.metadata),
            "observation_scopes": _scopes(document),
            **_standing(txn, number, unit),
            "proof_count": unit.proof_count,
            "mentions": _mentions(txn, number, unit),
            "updated_at": iso(unit.updated_at),
            "retired_at": iso(unit.retired_at),
        }
        if unit.network == OBSERVATION:
            sources = _sources(txn, number, unit)
            answer["source_memory_ids"] = [source.id for source in sources]
            answer["source_memories"] = [_source(source) for source in sources]
            answer["history"] = []
    return answer


def _scopes(document: memoryview | None) -> Any:
    return None if document is None else codec.unpack(document).get("params", {}).get("observation_scopes")


def _source(unit: UnitRecord) -> dict[str, Any]:
    return {
        "id": unit.id,
        "text": unit.text,
        "type": NETWORK_NAMES[unit.network],
        "context": unit.context,
        "occurred_start": iso(unit.occurred_start),
        "mentioned_at": iso(unit.mentioned_at),
    }


def memory_history(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """{"versions"}: what a unit was before each edit, newest first. Raises `BadRequest`, `BankNotFound`, `NotFound`."""
    asked: str = params["memory_id"]
    unit_id = uuid_text(asked, "memory_id")
    versions: list[dict[str, Any]] = []
    with partition.peek(tenant, bank_id) as (txn, number):
        uid = mentions.uid_of(txn, number, unit_id)
        unit = None if uid is None else _unit(txn, number, uid)
        if unit is None:
            raise NotFound(f"Memory '{asked}' not found")
        while unit.former is not None and (before := _unit(txn, number, unit.former)) is not None:
            if _said(before) != _said(unit) or before.sources != unit.sources:
                observed = unit.network == OBSERVATION
                versions.append(_former(txn, number, before, unit) if observed else _version(before, unit.recorded_at))
            unit = before
    return {"versions": versions}


def _said(unit: UnitRecord) -> tuple[Any, ...]:
    return unit.text, unit.context, unit.tags, unit.occurred_start, unit.occurred_end, unit.mentioned_at, unit.network


def _former(txn: ReadTxn, bank: int, before: UnitRecord, after: UnitRecord) -> dict[str, Any]:
    """A former version of an observation, and what the next one was built on besides."""
    new = [one for one in _sources(txn, bank, after) if one.uid not in before.sources]
    is_new = {one.uid for one in new}
    return {
        **_version(before, after.recorded_at),
        "new_source_memory_ids": [one.id for one in new],
        "source_facts": [
            {"id": one.id, "text": one.text, "type": NETWORK_NAMES[one.network], "context": one.context}
            | {"is_new": one.uid in is_new}
            for one in _sources(txn, bank, after)
        ],
    }


def _version(unit: UnitRecord, changed_at: int) -> dict[str, Any]:
    return {
        "previous_text": unit.text,
        "previous_tags": list(unit.tags),
        "previous_occurred_start": iso(unit.occurred_start),
        "previous_occurred_end": iso(unit.occurred_end),
        "previous_mentioned_at": iso(unit.mentioned_at),
        "changed_at": iso(changed_at),
        "new_source_memory_ids": [],
        "source_facts": [],
    }

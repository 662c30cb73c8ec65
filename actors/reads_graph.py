"""Graphs to draw: units with the links between them, and entities with how often they are named together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recalld.actors.filters import MemoryFilters
from recalld.actors.reads_entities import tag_scope
from recalld.actors.reads_memories import chosen_units
from recalld.actors.reads_shape import holds
from recalld.storage.columns import Columns
from recalld.storage.edges import MAX_OF_A_KIND
from recalld.storage.isotime import iso
from recalld.storage.names import folded
from recalld.storage.partition import Partition
from recalld.storage.records import (
    CAUSED_BY,
    CAUSES,
    LINK_NAMES,
    NETWORK_NAMES,
    OBSERVATION,
    UNKNOWN,
    UnitRecord,
)
from recalld.storage.snapshot import Snapshot

_HOUR_US = 3_600_000_000
_LABEL = 30
_COLOURS = {"world": "#42a5f5", "experience": "#66bb6a", "opinion": "#ab47bc", "observation": "#ffa726"}
_LOOKS = {
    "semantic": ("#ff69b4", "solid"),
    "temporal": ("#00bcd4", "dashed"),
    "entity": ("#ffd700", "solid"),
    "caused_by": ("#ef5350", "solid"),
}


class _Link(NamedTuple):
    """A link between two units: a causal one points from the effect to its cause, the others from the older one."""

    source: int
    target: int
    kind: str
    weight: float
    entity: str = ""


def get_graph(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Units that pass the filters, latest mentioned first, and every link between them.

    Stored links are as stored. Those in time join units no more than `hours` apart, with weight exp(-hours / sigma);
    those by entity weigh more the fewer units name it. Of both a unit has the 20 strongest at most.
    Raises `BankNotFound`, `BadRequest`, `Unprocessable`.
    """
    filters: MemoryFilters = params["filters"]
    limit, q, chunk_id = filters.limit, filters.q, params.get("chunk_id")
    with partition.read(tenant, bank_id) as snap:
        uids: list[int] = chosen_units(snap, filters).tolist()
        if q or chunk_id:
            needle = folded(q or "")
            uids = [
                unit.uid
                for unit in snap.units(uids)
                if (not q or holds(needle, unit.text, unit.context)) and chunk_id in (None, unit.chunk_id)
            ]
        units = {unit.uid: unit for unit in snap.units(uids[:limit])}
        entities = {uid: _entities_of(snap, unit) for uid, unit in units.items()}
        names = _Labels(snap)
        links = [
            *_stored(snap, units),
            *_in_time(snap.columns, sorted(units), params["hours"], params["sigma"]),
            *_by_entity(snap, entities, names),
        ]
        nodes = [_node(unit, names.of(entities[uid])) for uid, unit in units.items()]
        rows = [_row(unit, names.of(entities[uid])) for uid, unit in units.items()]
    return {
        "nodes": nodes,
        "edges": [_edge(link, units) for link in links],
        "table_rows": rows,
        "total_units": len(uids),
        "limit": limit,
    }


class _Labels:
    """Names of entities, each read once."""

    def __init__(self, snap: Snapshot) -> None:
        self._snap = snap

    def name(self, number: int) -> str:
        label = self._snap.entity_label(number)
        return "" if label is None else label[1]

    def of(self, numbers: Iterable[int]) -> str:
        return ", ".join(name for number in numbers if (name := self.name(number)))


def _entities_of(snap: Snapshot, unit: UnitRecord) -> tuple[int, ...]:
    """The entities a unit names; an observation names those of its sources."""
    if unit.network != OBSERVATION:
        return unit.entities
    sources = snap.units(unit.sources)
    return tuple(dict.fromkeys([*unit.entities, *(number for source in sources for number in source.entities)]))


def _stored(snap: Snapshot, units: Mapping[int, UnitRecord]) -> Iterator[_Link]:
    """Stored links between the units, each once; an observation has those of its sources."""
    stands: dict[int, list[int]] = {uid: [uid] for uid in units}
    for uid, unit in units.items():
        for source in unit.sources if unit.network == OBSERVATION else ():
            stands.setdefault(source, []).append(uid)
    found: dict[tuple[int, int, str], float] = {}
    for uid, owners in stands.items():
        _, others, kinds, weights = snap.edges(uid)
        for other, kind, weight in zip(others.tolist(), kinds.tolist(), weights.tolist(), strict=True):
            name = LINK_NAMES.get(CAUSED_BY if kind == CAUSES else kind, "")
            for owner in owners:
                for end in stands.get(other, ()):
                    if owner == end:
                        continue
                    pair = (min(owner, end), max(owner, end))
                    if kind in (CAUSED_BY, CAUSES):
                        pair = (owner, end) if kind == CAUSED_BY else (end, owner)
                    found[*pair, name] = max(found.get((*pair, name), 0.0), weight)
    for (source, target, name), weight in sorted(found.items()):
        yield _Link(source, target, name, weight)


def _instants(columns: Columns, uids: NDArray[np.int64]) -> NDArray[np.int64]:
    start = columns.occurred_start[uids]
    return np.where(start != UNKNOWN, start, columns.mentioned[uids])


def _in_time(columns: Columns, uids: list[int], hours: float, sigma: float) -> list[_Link]:
    """Links between units whose events, or what was said, lie no more than `hours` apart."""
    chosen = np.array(uids, np.int64)
    at = _instants(columns, chosen)
    chosen, at = chosen[at != UNKNOWN], at[at != UNKNOWN]
    order = np.argsort(at, kind="stable")
    chosen, at = chosen[order], at[order]
    found = []
    for step in range(1, min(MAX_OF_A_KIND, len(chosen) - 1) + 1):
        apart = (at[step:] - at[:-step]) / _HOUR_US
        for i in np.flatnonzero(apart <= hours).tolist():
            weight = math.exp(-float(apart[i]) / sigma)
            found.append(_Link(int(chosen[i]), int(chosen[i + step]), "temporal", weight))
    return _strongest(found)


def _by_entity(snap: Snapshot, entities: Mapping[int, tuple[int, ...]], names: _Labels) -> list[_Link]:
    """Links between units that name one entity, by the rarest they share; near ones first where it is named often."""
    members: dict[int, list[int]] = {}
    for uid in sorted(entities):
        for number in entities[uid]:
            members.setdefault(number, []).append(uid)
    best: dict[tuple[int, int], tuple[float, int]] = {}
    ceiling = math.log(2.0 + snap.originals())
    for number, uids in members.items():
        weight = max(0.0, 1.0 - math.log(max(1, snap.entity_count(number))) / ceiling)
        for i, uid in enumerate(uids):
            for other in uids[i + 1 : i + 1 + MAX_OF_A_KIND]:
                if weight > best.get((uid, other), (-1.0, 0))[0]:
                    best[uid, other] = (weight, number)
    return _strongest(_Link(*pair, "entity", weight, names.name(n)) for pair, (weight, n) in best.items())


def _strongest(links: Iterable[_Link]) -> list[_Link]:
    """At most 20 links a unit, the strongest; of equal ones those between near units."""
    kept: list[_Link] = []
    held: dict[int, int] = {}
    for link in sorted(links, key=lambda one: (-one.weight, one.target - one.source, one.source)):
        if max(held.get(link.source, 0), held.get(link.target, 0)) < MAX_OF_A_KIND:
            kept.append(link)
            for end in (link.source, link.target):
                held[end] = held.get(end, 0) + 1
    return kept


def _date(unit: UnitRecord) -> str | None:
    return iso(next((at for at in (unit.occurred_start, unit.mentioned_at) if at is not None), unit.recorded_at))


def _node(unit: UnitRecord, entities: str) -> dict[str, Any]:
    label = unit.text if len(unit.text) <= _LABEL else unit.text[:_LABEL] + "..."
    return {
        "data": {
            "id": unit.id,
            "label": label,
            "text": unit.text,
            "date": _date(unit) or "",
            "context": unit.context,
            "entities": entities,
            "color": _COLOURS[NETWORK_NAMES[unit.network]],
        }
    }


def _row(unit: UnitRecord, entities: str) -> dict[str, Any]:
    return {
        "id": unit.id,
        "text": unit.text,
        "context": unit.context,
        "occurred_start": iso(unit.occurred_start),
        "occurred_end": iso(unit.occurred_end),
        "mentioned_at": iso(unit.mentioned_at),
        "date": _date(unit),
        "entities": entities,
        "document_id": unit.document_id,
        "chunk_id": unit.chunk_id,
        "fact_type": NETWORK_NAMES[unit.network],
        "tags": list(unit.tags),
        "created_at": iso(unit.recorded_at),
        "proof_count": unit.proof_count,
    }


def _edge(link: _Link, units: Mapping[int, UnitRecord]) -> dict[str, Any]:
    source, target = units[link.source].id, units[link.target].id
    colour, style = _LOOKS.get(link.kind, ("#9e9e9e", "solid"))
    return {
        "data": {
            "id": f"{source}-{target}-{link.kind}",
            "source": source,
            "target": target,
            "linkType": link.kind,
            "weight": round(link.weight, 6),
            "entityName": link.entity,
            "color": colour,
            "lineStyle": style,
        }
    }


def get_entity_graph(partition: Partition, tenant: str, bank_id: str, params: dict[str, Any]) -> dict[str, Any]:
    """Entities that units name together at least `min_count` times; of such pairs the `limit` most frequent.

    Under a tag filter only the units it lets through count. Raises `BankNotFound`, `Unprocessable`.
    """
    limit, least = params["limit"], params["min_count"]
    with partition.read(tenant, bank_id) as snap:
        allowed = tag_scope(snap, params)
        mentions: dict[int, int] = {}
        pairs: dict[tuple[int, int], tuple[int, int]] = {}
        said = snap.columns.mentioned
        for uid in np.flatnonzero(allowed).tolist():
            numbers = sorted(snap.edges(uid)[0].tolist())
            at = int(said[uid])
            for number in numbers:
                mentions[number] = mentions.get(number, 0) + 1
            for pair in combinations(numbers, 2):
                count, last = pairs.get(pair, (0, UNKNOWN))
                pairs[pair] = (count + 1, max(last, at))
        found = [(count, last, pair) for pair, (count, last) in pairs.items() if count >= least]
        found.sort(key=lambda one: (-one[0], -one[1], one[2]))
        shown = found[:limit]
        labels = {number: snap.entity_label(number) for _, _, pair in shown for number in pair}
    nodes = [
        {"data": {"id": label[0], "label": label[1], "mentionCount": mentions[number], "color": "#42a5f5"}}
        for number, label in sorted(labels.items(), key=lambda one: (-mentions[one[0]], one[0]))
        if label is not None
    ]
    edges = []
    for count, last, pair in shown:
        one, other = labels[pair[0]], labels[pair[1]]
        if one is not None and other is not None:
            edges.append(
                {
                    "data": {
                        "id": f"{one[0]}-{other[0]}",
                        "source": one[0],
                        "target": other[0],
                        "linkType": "cooccurrence",
                        "weight": count,
                        "color": "#ffd700",
                        "lineStyle": "solid",
                        "lastCooccurred": None if last == UNKNOWN else iso(last),
                    }
                }
            )
    return {
        "nodes": nodes,
        "edges": edges,
        "total_entities": len({number for _, _, pair in found for number in pair}),
        "total_edges": len(found),
        "limit": limit,
    }

"""Semantic links of new units: to their nearest stored units, and among themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recalld.actors.messages import Moved
from recalld.actors.retain.document_write import Similar
from recalld.storage.edges import MAX_OF_A_KIND
from recalld.storage.quantise import unit_rows
from recalld.storage.records import PreparedUnit
from recalld.storage.snapshot import Snapshot

FLOOR = 0.7
FLOORS = {"e5": 0.86}
"""Least cosine of a link for models whose similarities crowd together, by a part of their name."""


def link_floor(model: Mapping[str, Any], asked: float) -> float:
    """The least cosine of a semantic link: what the settings ask for, else (0) what suits the bank's model."""
    if asked:
        return asked
    name = str(model.get("name", "")).lower()
    return next((floor for part, floor in FLOORS.items() if part in name), FLOOR)


def similar_units(
    snap: Snapshot | None, units: Sequence[PreparedUnit | Moved], dim: int, floor: float = FLOOR
) -> Similar:
    """For each unit id: (stored uid, cosine) and (id of a unit of the request, cosine) pairs at or above `floor`.

    Of a unit with several vectors the first stands for it.
    """
    if not units:
        return {}
    rows = unit_rows(np.stack([np.frombuffer(unit.vectors, np.int8, dim) for unit in units]))
    found: Similar = {}
    products = rows @ rows.T if len(units) > 1 else None
    for index, unit in enumerate(units):
        stored: list[tuple[int, float]] = []
        if snap is not None and snap.n:
            uids, scores = snap.semantic(rows[index], MAX_OF_A_KIND, snap.columns.live, floor)
            stored = [(int(uid), float(score)) for uid, score in zip(uids, scores, strict=True)]
        own: list[tuple[str, float]] = []
        if products is not None and index:
            earlier = products[index, :index]
            near = np.flatnonzero(earlier >= floor)
            best = near[np.argsort(-earlier[near])][:MAX_OF_A_KIND]
            own = [(units[int(other)].id, float(earlier[other])) for other in best]
        found[unit.id] = (stored, own)
    return found

"""A reading as plain data and back, and the facts of a stored chunk as a reading: so that none is paid for twice."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from recalld.actors.retain.extraction import Dropped, Fact, Reading
from recalld.storage import codec
from recalld.storage.records import EntityMention, UnitRecord

_FACT_FIELDS = tuple(field.name for field in dataclasses.fields(Fact))
_KEPT = {field.name for field in dataclasses.fields(UnitRecord)} - {"entities", "tags", "mentioned_at"}
_SHARED = tuple(name for name in _FACT_FIELDS if name in _KEPT)
"""Fields that a unit keeps as its fact gave them. When it was said is its item's."""


def to_bytes(reading: Reading) -> bytes:
    """A reading as the journal keeps it; of what was dropped the reasons alone."""
    return zlib.compress(codec.pack(to_plain(reading)), 3)


def from_bytes(data: bytes) -> Reading:
    return from_plain(codec.unpack(zlib.decompress(data)))


def to_plain(reading: Reading) -> dict[str, Any]:
    facts = []
    for fact in reading.facts:
        plain = {f.name: getattr(fact, f.name) for f in dataclasses.fields(fact) if getattr(fact, f.name) != f.default}
        if fact.entities:
            plain["entities"] = [[one.name, one.kind, one.exact] for one in fact.entities]
        facts.append(plain)
    return {"facts": facts, "dropped": [one.reason for one in reading.dropped], "undated": reading.undated}


def from_plain(plain: Mapping[str, Any]) -> Reading:
    """The inverse of `to_plain`; fields that this version does not know are left out."""
    facts = []
    for one in plain["facts"]:
        known = {name: _tuples(value) for name, value in one.items() if name in _FACT_FIELDS}
        known["entities"] = tuple(EntityMention(*entity) for entity in one.get("entities", ()))
        facts.append(Fact(**known))
    return Reading(tuple(facts), tuple(Dropped("", reason) for reason in plain["dropped"]), plain["undated"])


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list | tuple) else value


def from_units(units: Iterable[UnitRecord], names: Mapping[int, tuple[str, str]], questions: set[int]) -> Reading:
    """The facts that a chunk's stored units came from; `names` are (name, kind) of their entities.

    Causes stay out: the links they made are stored.
    """
    facts = []
    for unit in units:
        known = [names[number] for number in unit.entities if number in names]
        # A label is taken literally, and its tag, where it has one, is spelled like it.
        entities = tuple(EntityMention(name, kind, exact=":" in name) for name, kind in known)
        labels = tuple(tag for tag in unit.tags if ":" in tag and any(tag == name for name, _ in known))
        shared = {name: getattr(unit, name) for name in _SHARED}
        facts.append(Fact(**{**shared, "entities": entities, "question": unit.uid in questions, "tags": labels}))
    return Reading(tuple(facts))

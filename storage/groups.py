"""Entities that are one: each part points to a whole, and a whole may be a part itself.

A unit keeps naming the entity whose name stands in it; what it means is the root at the end of the pointers. So joining
two entities, and parting them again, moves one pointer and touches no unit. Writers find the pointers in the entities'
records; readers, who need all of them, in one record of the bank that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from pyroaring import BitMap

from recalld.storage import keys
from recalld.storage.environment import ReadTxn

Parents = Mapping[int, int]


def number_key(number: int) -> bytes:
    """A set named by a number, in the 16 bytes that names have."""
    return number.to_bytes(16, "big")


def read_parents(txn: ReadTxn, bank: int) -> dict[int, int]:
    """{part: whole} of a bank, from one record."""
    value = txn.get(keys.table(bank, keys.ENTITY_PARENTS))
    if value is None:
        return {}
    pairs = np.frombuffer(bytes(value), "<u4").reshape(-1, 2)
    return dict(pairs.tolist())


def pack_parents(parents: Parents) -> bytes:
    return np.array(sorted(parents.items()), "<u4").tobytes()


def root_of(parents: Parents, number: int) -> int:
    """The entity that `number` is in the end; a circle, which only a damaged store has, ends too."""
    for _ in range(len(parents)):
        if number not in parents:
            break
        number = parents[number]
    return number


def roots_of(parents: Parents) -> dict[int, int]:
    """{part: root}, so that a reader follows one pointer."""
    return {part: root_of(parents, part) for part in parents}


def members_of(roots: Parents) -> dict[int, tuple[int, ...]]:
    """{root: its parts} from what `roots_of` gave."""
    found: dict[int, tuple[int, ...]] = {}
    for part, root in roots.items():
        found[root] = (*found.get(root, ()), part)
    return found


def as_roots(roots: Parents, numbers: Iterable[int]) -> tuple[int, ...]:
    """Entities of a unit as what they are in the end, each once, in order."""
    return tuple(dict.fromkeys(roots.get(number, number) for number in numbers))


def units_of(txn: ReadTxn, bank: int, entity: int) -> BitMap:
    """uids of the units that name one entity by its own name, live or retired."""
    held = BitMap()
    for _, value in txn.scan(keys.containers(bank, keys.SET_ENTITY, number_key(entity))):
        held |= BitMap.deserialize(bytes(value))
    return held

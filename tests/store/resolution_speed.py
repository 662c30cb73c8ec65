"""What resolving names costs a commit in a bank of 10,000 entities: `python tests/store/resolution_speed.py`.

Units name three entities each, of which one in five is new: another person, or another spelling of one there is.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import sys
import tempfile
import time
from pathlib import Path

from builders import START, World

from recalld.storage import apply
from recalld.storage.records import EntityMention
from recalld.storage.resolution import entities_of

ENTITIES, UNITS, EACH = 10_000, 2_000, 3
_SOUNDS = "ba do ka li mo na re su ti vo chen ster wick lan gard ny fro gus hol jan mir pel qui ros tam ur vin wes xan yor zel bri dru".split()
PARTS = 100
"""Entities that are spellings or aliases of others."""


def names(count: int) -> list[str]:
    """Full names of people, no two alike."""
    chosen = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < count:
        words = ("".join(chosen.choices(_SOUNDS, k=chosen.randint(2, 3))).capitalize() for _ in range(2))
        found[" ".join(words)] = None
    return list(found)


def measure(folder: Path, entities: int = ENTITIES, units: int = UNITS) -> dict[str, float]:
    """Milliseconds a unit: of resolving its names, and of its whole commit; for units told one by one."""
    world = World(folder)
    known = names(entities)
    for start in range(0, entities, 500):
        rows = [world.unit(f"About {a}.", entities=(a,), mentioned_at=START) for a in known[start : start + 500]]
        world.add("t", "b", f"d{start}", rows)
    spelt = [world.unit(f"{a}!", entities=(f"{a}'s",), mentioned_at=START) for a in known[:PARTS]]
    world.add("t", "b", "spellings", spelt)
    spent = [0.0]

    def timed(*arguments: object) -> tuple[int, ...]:
        # Of the writer's own thread, so that other work on the machine does not count.
        started = time.thread_time()
        try:
            return entities_of(*arguments)  # type: ignore[arg-type]
        finally:
            spent[0] += time.thread_time() - started

    chosen = random.Random(11)
    fresh = itertools.cycle(names(entities + units)[entities:])
    told = []
    for number in range(units):
        mentions = [EntityMention(name, "PERSON") for name in chosen.sample(known, EACH)]
        if number % 5 == 0:
            mentions[0] = EntityMention(next(fresh), "PERSON")
        elif number % 5 == 1 and number % 2:
            first, last = mentions[0].name.split(" ", 1)
            mentions[0] = EntityMention(f"{first[0]}. {last}", "PERSON")
        unit = world.unit(f"They met, note {number}.", mentioned_at=START)
        told.append(dataclasses.replace(unit, entities=tuple(mentions)))
    original, apply.entities_of = apply.entities_of, timed  # type: ignore[assignment]
    started = time.perf_counter()
    try:
        for number, unit in enumerate(told):
            world.add("t", "b", f"one {number}", [unit])
    finally:
        apply.entities_of = original
    whole = time.perf_counter() - started
    world.close()
    return {"resolving_ms": spent[0] / units * 1e3, "commit_ms": whole / units * 1e3}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        for name, value in measure(Path(home)).items():
            sys.stdout.write(f"{name}: {value:.4f} a unit\n")

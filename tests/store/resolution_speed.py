"""What resolving names costs a commit in a bank of 10,000 entities: `python tests/store/resolution_speed.py`.

Units name three entities each, of which one in five is new: another person, or another spelling of one there is.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from builders import START, World

from recalld.storage import apply
from recalld.storage.records import EntityMention
from recalld.storage.resolution import entities_of

ENTITIES, UNITS, EACH, TOGETHER = 10_000, 2_000, 3, 10
_SOUNDS = [
    "ba", "do", "ka", "li", "mo", "na", "re", "su", "ti", "vo", "chen", "ster", "wick", "lan", "gard", "ny", "fro",
    "gus", "hol", "jan", "mir", "pel", "qui", "ros", "tam", "ur", "vin", "wes", "xan", "yor", "zel", "bri", "dru",
]  # fmt: skip
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
    """Milliseconds of the writer's own time that resolving the names of a unit takes."""
    world = World(folder)
    known = names(entities)
    for start in range(0, entities, 500):
        rows = [world.unit(f"About {a}.", entities=(a,), mentioned_at=START) for a in known[start : start + 500]]
        world.add("t", "b", f"d{start}", rows)
    spelt = [world.unit(f"{a}!", entities=(f"{a}'s",), mentioned_at=START) for a in known[:PARTS]]
    world.add("t", "b", "spellings", spelt)
    spent: list[float] = []

    def timed(*arguments: object) -> tuple[int, ...]:
        # Of the writer's own thread, so that other work on the machine does not count.
        started = time.thread_time()
        try:
            return entities_of(*arguments)  # type: ignore[arg-type]
        finally:
            spent.append((time.thread_time() - started) * 1e3)

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
    try:
        for number in range(0, units, TOGETHER):
            world.add("t", "b", f"told {number}", told[number : number + TOGETHER])
    finally:
        apply.entities_of = original
    world.close()
    spent.sort()
    return {
        "median": statistics.median(spent),
        "mean": statistics.fmean(spent),
        "mean of the faster half": statistics.fmean(spent[: units // 2]),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        for name, value in measure(Path(home)).items():
            sys.stdout.write(f"{name}: {value:.4f} ms a unit\n")

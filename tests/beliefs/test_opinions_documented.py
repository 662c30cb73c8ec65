"""What docs/opinions.md says is so."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from recalld.actors.opinions.evidence import weigh
from recalld.actors.opinions.judge import Pair, by_rules
from recalld.daemon.bank_settings import BY_NAME
from recalld.daemon.routes import ROUTES
from recalld.storage.beliefs import JUDGEMENTS, STEPS

from .conftest import Open
from .opinion_bank import TENANT, Beliefs

PAGE = (Path(__file__).parents[2] / "docs" / "opinions.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Rows of the table whose head begins with a cell."""
    body = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_the_examples_of_the_rules_are_what_they_say() -> None:
    examples = rows("opinion")
    assert len(examples) >= 8
    for opinion, evidence, said in examples:
        assert by_rules(Pair(opinion, evidence)).verdict == said, (opinion, evidence)


def test_the_steps_settings_and_routes_are_those_of_the_code() -> None:
    steps = {row[0].strip("`"): row[1] for row in rows("judgement")}
    assert steps == {"reinforce": "+a", "weaken": "-a", "contradict": "-2a", "neutral": "0"} and set(steps) == set(
        JUDGEMENTS
    )
    assert [STEPS[one] for one in ("reinforce", "weaken", "contradict", "neutral")] == [1.0, -1.0, -2.0, 0.0]
    for name, default, _ in rows("setting of the bank"):
        assert BY_NAME[name.strip("`")].default == float(default)
    known = {(route.method, route.path.partition("/opinions")[2]) for route in ROUTES if "/opinions" in route.path}
    told = set()
    for route, _ in rows("route"):
        method, path = route.strip("`").split()
        told.add((method, re.sub(r"\{id\}", "{opinion_id}", path.partition("/opinions")[2])))
    assert told == known


async def test_a_bank_without_opinions_pays_next_to_nothing(open_wire: Open) -> None:
    service = (await open_wire(extraction_provider="local")).service
    bank = Beliefs(service)
    for number in range(3):
        await bank.say(f"Vespa has {number} nodes.")
    shard: Any = service._resolver._actors._hosts["shard-0"]._actor  # type: ignore[attr-defined]
    partition = shard._partitions[service.home.partition_of(TENANT, bank.id)]
    with partition.read(TENANT, bank.id) as snap:
        vector = np.ones(snap.dim, np.int8)
        unit: Any = type("Unit", (), {"network": 0, "vectors": vector.tobytes(), "question": False})()
        took = []
        for _ in range(200):
            started = time.perf_counter()
            assert weigh(snap, [unit], snap.dim, {}) is None
            took.append(time.perf_counter() - started)
    assert min(took) < 50e-6

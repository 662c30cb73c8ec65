"""Whatever is told, merged, split, taken back, replaced, invalidated and deleted: the tables agree."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recalld.daemon.service import MemoryService
from recalld.storage.errors import BadRequest, Conflict, NotFound

from .entity_bank import EntityBank, entity_bank

T = "default"
NAMES = ("Zoë Lima", "Zoe Lima", "Z. Lima", "Robert Chen", "Robert", "Bob", "Acme", "Acme Inc", "GitHub", "Git Hub")
ORGS = {"Acme", "Acme Inc", "GitHub", "Git Hub"}
DOCUMENTS = ("d1", "d2", "d3")
_numbers = itertools.count()

names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
say = st.tuples(st.just("say"), st.sampled_from(DOCUMENTS), st.lists(names, min_size=1, max_size=3))
steps = st.one_of(
    say,
    say,
    say,
    st.tuples(st.just("delete"), st.sampled_from(DOCUMENTS)),
    st.tuples(st.just("merge"), st.integers(0, 20), st.integers(0, 20)),
    st.tuples(st.just("split"), st.integers(0, 20), st.integers(0, 20)),
    st.tuples(st.just("part"), st.integers(0, 20), st.integers(0, 20)),
    st.tuples(st.just("undo"), st.integers(0, 5)),
    st.tuples(st.just("state"), st.integers(0, 20), st.sampled_from(["valid", "invalidated"])),
    st.tuples(st.just("clear")),
)


async def carry_out(bank: EntityBank, step: tuple[Any, ...], changes: list[str], units: list[str]) -> None:
    service = bank.service
    rows = await bank.rows()
    kind, *arguments = step
    if kind == "say":
        document, told = arguments
        items = [
            {
                "content": f"{' and '.join(who)} met, note {number}.",
                "document_id": document,
                "timestamp": f"2026-03-{number + 1:02}T10:00:00Z",
                "entities": [{"text": one, "type": "ORG" if one in ORGS else "PERSON"} for one in who],
            }
            for number, who in enumerate(told)
        ]
        for receipt in await bank.retain(*items):
            units += receipt["unit_ids"]
    elif kind == "delete":
        await service.delete_document(T, bank.id, arguments[0])
    elif kind == "clear":
        await service.clear_memories(T, bank.id, None)
    elif kind == "undo" and changes:
        await service.undo_entity_change(T, bank.id, changes[arguments[0] % len(changes)])
    elif kind == "state" and units:
        fields = {"state": arguments[1], "reason": "so"} if arguments[1] == "invalidated" else {"state": "valid"}
        await service.patch_memory(T, bank.id, units[arguments[0] % len(units)], fields)
    elif rows and kind in ("merge", "split", "part"):
        one, other = rows[arguments[0] % len(rows)]["id"], rows[arguments[1] % len(rows)]["id"]
        if kind == "merge":
            done = await service.merge_entities(T, bank.id, one, other)
        elif kind == "part":
            known = (await service.entity_names(T, bank.id, one))["names"]
            done = await service.split_entity(T, bank.id, one, known[arguments[1] % len(known)]["name"], (), "")
        elif units:
            done = await service.split_entity(T, bank.id, one, "", (units[arguments[1] % len(units)],), "")
        else:
            return
        changes.append(done["change_id"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(begun=st.lists(say, min_size=2, max_size=4), told=st.lists(steps, min_size=3, max_size=12))
@example(
    begun=[("say", "d1", [["Zoë Lima"]]), ("say", "d1", [["Zoë Lima"], ["Zoë Lima", "Zoe Lima", "Z. Lima"]])],
    told=[("merge", 0, 2), ("split", 0, 1), ("say", "d1", [["Zoë Lima"]]), ("undo", 0)],
)
async def test_the_tables_agree_whatever_happens_to_entities(
    service: MemoryService, begun: list[tuple[Any, ...]], told: list[tuple[Any, ...]]
) -> None:
    bank = entity_bank(service, f"bank {next(_numbers)}")
    changes: list[str] = []
    units: list[str] = []
    await bank.say("Robert Chen leads.", "Robert Chen")
    for step in [*begun, *told]:
        with contextlib.suppress(BadRequest, Conflict, NotFound):
            await carry_out(bank, step, changes, units)
        assert not await bank.verified(), (step, begun, told)

"""The examples of docs/entities.md are what the daemon does, over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from recalld.daemon.app import build_app
from recalld.daemon.service import MemoryService

from .entity_bank import EntityBank, entity_bank

PAGE = (Path(__file__).parents[2] / "docs" / "entities.md").read_text(encoding="utf-8")
BANK = "/v1/default/banks/b"


@pytest.fixture
def bank(service: MemoryService) -> EntityBank:
    return entity_bank(service)


def example(number: int, **values: str) -> tuple[str, dict[str, Any]]:
    """(path, body) of an example of the page, with values for its placeholders."""
    block = re.findall(r"```http\nPOST (\S+)\n(.*?)```", PAGE, re.DOTALL)[number]
    path, body = (re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], part) for part in block)
    return BANK + path, json.loads(body)


async def test_the_examples_of_the_page_part_two_alices_and_join_two_names(bank: EntityBank) -> None:
    await bank.say("Alice from payroll is on leave.", "Alice")
    sister = await bank.say("My sister Alice had a baby.", "Alice")
    await bank.say("Bob likes jazz.", "Bob")
    await bank.say("Robert Chen resigned.", "Robert Chen")
    ids = {name: await bank.entity(name) for name in ("Alice", "Bob", "Robert Chen")}
    async with TestClient(TestServer(build_app(bank.service, bank.service.settings))) as client:
        path, body = example(0, alice=ids["Alice"], sister=sister[0])
        parted = await (await client.post(path, json=body)).json()
        assert set(parted) == {"success", "change_id", "what", "entities"} and parted["what"] == "split_units"
        path, body = example(1, bob=ids["Bob"], robert=ids["Robert Chen"])
        joined = await (await client.post(path, json=body)).json()
        assert joined["what"] == "merged"
        assert await bank.entities() == {"Alice": 1, "Alice (sister)": 1, "Robert Chen": 2}
        names = await (await client.get(f"{BANK}/entities/{ids['Bob']}/names")).json()
        assert [(one["name"], one["why"]) for one in names["names"]] == [("Robert Chen", None), ("Bob", "hand")]
        changes = await (await client.get(f"{BANK}/entities/changes")).json()
        assert [one["what"] for one in changes["items"]] == ["merged", "split_units"]
        for change in (joined, parted):
            undone = await client.post(f"{BANK}/entities/changes/{change['change_id']}/undo", json={})
            assert undone.status == 200
        assert await bank.entities() == {"Alice": 2, "Bob": 1, "Robert Chen": 1}
        again = await client.post(f"{BANK}/entities/{ids['Bob']}/merge", json={"into": ids["Bob"]})
        assert again.status == 409
        assert (await client.post(f"{BANK}/entities/{ids['Bob']}/split", json={})).status == 422
        assert (await client.get(f"{BANK}/verify")).status == 200
        gone = await client.post(f"{BANK}/entities/{ids['Bob']}/regenerate", json={})
        assert gone.status == 410
        described = await (await client.get("/openapi.json")).json()
        for route in re.findall(r"^\| `(?:GET|POST) (/entities\S*)` \|", PAGE, re.MULTILINE):
            assert f"/v1/default/banks/{{bank_id}}{route}" in described["paths"], route


async def test_the_names_the_page_keeps_apart_are_kept_apart(bank: EntityBank) -> None:
    pairs = re.findall(r"`([^`]+)`,\s`([^`]+)`", PAGE[PAGE.index("Never one") : PAGE.index("**Aliases.**")])
    assert len(pairs) >= 4
    for one, other in pairs:
        if one == "Mr":
            one, other = "Mr Lima", "Mrs Lima"
        await bank.say(f"{one} met Ana.", one, "Ana")
        await bank.say(f"{other} met Ana.", other, "Ana")
    found = await bank.entities()
    assert all(found[name] == 1 for pair in pairs if pair[0] != "Mr" for name in pair)
    assert found["Mr Lima"] == found["Mrs Lima"] == 1

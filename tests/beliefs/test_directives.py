"""Directives through the real HTTP path, and through the official client."""

from __future__ import annotations

import uuid

import hindsight_client_api as low
import pytest
from hindsight_client import Hindsight

from recalld.actors.messages import Read

from .conftest import Wire

RULE = {"name": "Tone", "content": "Answer in one sentence."}


async def test_a_directive_is_created_read_changed_and_deleted(wire: Wire) -> None:
    await wire.retain("Ana likes tea.")
    made = await wire.ok("POST", "/directives", {**RULE, "priority": 3, "tags": ["a", "a", "b"]})
    assert set(made) == {
        "id", "bank_id", "name", "content", "priority", "is_active", "tags", "created_at", "updated_at",
    }  # fmt: skip
    assert (made["bank_id"], made["priority"], made["is_active"], made["tags"]) == ("b", 3, True, ["a", "b"])
    assert str(uuid.UUID(made["id"])) == made["id"] and made["created_at"].endswith("+00:00")
    path = f"/directives/{made['id']}"
    assert await wire.ok("GET", path) == made
    changed = await wire.ok("PATCH", path, {"is_active": False, "priority": None})
    assert changed == {**made, "is_active": False, "updated_at": changed["updated_at"]}
    assert (await wire.ok("PATCH", path, {"tags": []}))["tags"] == []
    assert await wire.ok("DELETE", path) == {"status": "deleted"}
    assert await wire("GET", path) == (404, {"detail": f"Directive '{made['id']}' not found"})
    for method, body in (("PATCH", {}), ("DELETE", None)):
        assert (await wire(method, path, body))[0] == 404


async def test_an_unknown_bank_has_no_directives_and_gets_none(wire: Wire) -> None:
    assert await wire("POST", "/directives", RULE) == (404, {"detail": "Bank 'b' not found"})
    assert await wire("GET", "/directives") == (404, {"detail": "Bank 'b' not found"})
    assert (await wire("GET", "/directives/x"))[0] == 404


@pytest.mark.parametrize(
    "body", [{"name": "x"}, {"name": " ", "content": "y"}, {"name": "x", "content": 3}, {**RULE, "priority": "high"}]
)
async def test_a_directive_needs_a_name_and_a_content(wire: Wire, body: dict[str, object]) -> None:
    await wire.retain("Ana likes tea.")
    assert (await wire("POST", "/directives", body))[0] == 422


async def test_the_list_is_ordered_and_filtered(wire: Wire) -> None:
    await wire.retain("Ana likes tea.")
    for name, extra in {
        "low": {"priority": -1},
        "first": {"tags": ["a"]},
        "second": {"tags": ["a", "b"]},
        "high": {"priority": 9, "tags": ["c"]},
        "off": {"is_active": False},
    }.items():
        await wire.ok("POST", "/directives", {"name": name, "content": "x", **extra})

    async def names(**query: str) -> list[str]:
        found = await wire.ok("GET", "/directives", **query)
        assert found["total"] >= len(found["items"])
        return [one["name"] for one in found["items"]]

    assert await names() == ["high", "first", "second", "low"]
    assert await names(active_only="false") == ["high", "first", "second", "off", "low"]
    assert await names(tags="b") == ["second", "low"]
    assert await names(tags='["a","b"]', tags_match="all") == ["second", "low"]
    assert await names(tags="a", tags_match="exact") == ["first"]
    assert await names(limit="1", offset="1") == ["first"]
    assert (await wire("GET", "/directives", tags_match="any_strict"))[0] == 422
    assert (await wire("GET", "/directives", limit="0"))[0] == 422


async def test_those_in_force_follow_the_scope(wire: Wire) -> None:
    await wire.retain("Ana likes tea.")
    for name, extra in {"all": {}, "a": {"tags": ["a"]}, "b": {"tags": ["b"]}, "off": {"is_active": False}}.items():
        await wire.ok("POST", "/directives", {"name": name, "content": "x", **extra})

    async def in_force(**params: object) -> list[str]:
        read = Read("directives_in_force", "default", "b", params)
        return [one["name"] for one in await wire.service.shards.call("default", "b", read)]

    assert await in_force() == ["all"]
    assert await in_force(tags=["a"], tags_match="any") == ["all", "a"]
    assert await in_force(tag_groups=[{"tags": ["b"]}]) == ["all", "b"]
    assert await in_force(everything=True) == ["all", "a", "b"]


async def test_the_official_client_has_all_of_it(wire: Wire) -> None:
    await wire.retain("Ana likes tea.")
    client = Hindsight(base_url=wire.host)
    try:
        made = await client.acreate_directive("b", "Tone", "Be brief.", priority=2, tags=["a"])
        assert (made.name, made.priority, made.tags, made.is_active) == ("Tone", 2, ["a"], True)
        assert [one.id for one in (await client.alist_directives("b")).items] == [made.id]
        assert (await client.aget_directive("b", made.id)).content == "Be brief."
        changed = await client.aupdate_directive("b", made.id, content="Be kind.", is_active=False)
        assert (changed.content, changed.is_active, changed.priority) == ("Be kind.", False, 2)
        await client.adelete_directive("b", made.id)
        with pytest.raises(low.ApiException) as gone:
            await client.aget_directive("b", made.id)
        assert gone.value.status == 404
    finally:
        await client.aclose()


async def test_a_deleted_bank_takes_its_directives_along(wire: Wire) -> None:
    await wire.retain("Ana likes tea.")
    await wire.ok("POST", "/directives", RULE)
    assert (await wire.ok("GET", "/verify"))["checked"]["directives"] == 1
    await wire.ok("DELETE", "")
    await wire.retain("Ben likes coffee.")
    assert (await wire.ok("GET", "/directives"))["total"] == 0


async def test_the_policy_of_the_bank_holds_for_rules_and_questions_too(wire: Wire) -> None:
    await wire.ok("PATCH", "/config", {"updates": {"redaction": "block"}})
    secret = "Write to ana.meier@example.com."
    assert (await wire("POST", "/directives", {"name": "Mail", "content": secret}))[0] == 422
    assert (await wire("POST", "/mental-models", {"name": "Mail", "source_query": secret}))[0] == 422
    await wire.ok("PATCH", "/config", {"updates": {"redaction": "redact"}})
    made = await wire.ok("POST", "/directives", {"name": "Mail", "content": secret})
    assert "ana.meier" not in made["content"] and "[redacted:" in made["content"]

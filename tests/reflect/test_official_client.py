"""The official client reflects with every option it has; each answer validates in its models."""

from __future__ import annotations

from hindsight_client import Hindsight
from llm.model_server import Heard, Say

from recalld.client import AsyncClient

from .conftest import SEARCHES, World, done, system_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_reflect_with_every_option(world: World) -> None:
    ids = await world.ids()
    url = str(world.client.make_url("")).rstrip("/")
    client = Hindsight(base_url=url)
    try:
        world.says(*SEARCHES, done(memory_ids=[ids["Ana"]]))
        plain = await client.areflect(bank_id="b", query="Where does Ana live?")
        assert plain.text == "Ana lives in Lyon." and plain.based_on is None and plain.trace is None
        assert plain.usage is not None and plain.usage.total_tokens > 0

        def answer(heard: Heard) -> Say:
            wanted = heard.body.get("tool_choice")
            if "tools" not in heard.body:
                return Say(text='{"city": "Lyon"}')
            name = wanted["function"]["name"] if isinstance(wanted, dict) else ""
            return Say(tools=((name, {"query": "Ana"}) if name else done(memory_ids=[ids["Ana"]]),))

        world.script(answer)
        await world.send("POST", "/v1/default/banks/b/directives", {"name": "d", "content": "Be brief.", "tags": ["x"]})
        full = await client.areflect(
            bank_id="b",
            query="Where does Ana live?",
            budget="mid",
            context="She moved lately.",
            max_tokens=500,
            response_schema=SCHEMA,
            tags=["x"],
            tags_match="any",
            include_facts=True,
            include_tool_calls=True,
            fact_types=["world", "experience", "observation"],
            exclude_mental_models=True,
            exclude_mental_model_ids=["mm-1"],
            apply_all_directives=True,
        )
    finally:
        await client.aclose()
    assert full.structured_output == {"city": "Lyon"} and full.structured_output_error is None
    assert full.based_on is not None and full.trace is not None
    assert [one.id for one in full.based_on.memories or []] == [ids["Ana"]]
    assert [one.name for one in full.based_on.directives or []] == ["d"]
    assert [one.tool for one in full.trace.tool_calls or []] == ["search_observations", "recall"]
    assert "Be brief." in system_of(world.bodies[-2])


async def test_our_own_client_reflects(world: World) -> None:
    async with AsyncClient(str(world.client.make_url("")).rstrip("/")) as client:
        found = await client.reflect("b", "When did Ana move to Lyon?", mode="extractive")
    assert found["text"].startswith("12 May 2026.")

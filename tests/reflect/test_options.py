"""What a request may ask for, one promise a test: sources, scopes, shapes, lengths, caps, streams."""

from __future__ import annotations

import json

import pytest
from llm.model_server import Heard, Say

from .conftest import BANK, SEARCHES, World, done, told


async def test_without_includes_neither_sources_nor_trace_are_given(world: World) -> None:
    world.says(*SEARCHES, done())
    found = await world.reflect(include={})
    assert found["based_on"] is None and found["trace"] is None and found["explain"] is None
    assert found["usage"]["total_tokens"] > 0


async def test_outputs_of_tools_can_be_left_out(world: World) -> None:
    world.says(*SEARCHES, done())
    found = await world.reflect(include={"tool_calls": {"output": False}})
    assert [one["output"] for one in found["trace"]["tool_calls"]] == [None, None]
    assert found["trace"]["tool_calls"][0]["input"] == {"query": "Ana", "reason": "first"}


async def test_explain_gives_the_path_from_question_to_answer(world: World) -> None:
    ids = await world.ids()
    world.says(*SEARCHES, done(memory_ids=[ids["Ana"]]))
    path = (await world.reflect(include={"explain": {}}))["explain"]
    recall = path["searches"][1]
    assert recall["query"] == "where Ana lives" and recall["reason"] == "facts"
    assert recall["used"] == [ids["Ana"]] and recall["left_out"] == [ids["Ben"]]
    assert path["disposition"] and path["question"] == "Where does Ana live?"


async def test_fact_types_bound_what_is_searched(world: World) -> None:
    world.says(SEARCHES[1], done())
    found = await world.reflect(fact_types=["world"])
    names = [one["function"]["name"] for one in world.bodies[0]["tools"]]
    assert names == ["recall", "expand", "done"]
    assert {one["type"] for one in found["based_on"]["memories"]} == {"world"}
    await world.reflect(fact_types=[], status=422)
    await world.reflect(fact_types=["rumour"], status=422)


async def test_tags_and_groups_bound_every_search(world: World) -> None:
    await world.retain("Zoe: I sail to Crete.", tags=["sea"])
    world.says(SEARCHES[0], ("recall", {"query": "everything"}), done())
    found = await world.reflect("Who sails?", tags=["sea"], tags_match="all_strict")
    assert [one["text"].split(":")[0] for one in found["based_on"]["memories"]] == ["Zoe"]
    world.says(SEARCHES[0], ("recall", {"query": "everything"}), done())
    found = await world.reflect("Who sails?", tag_groups=[{"not": {"tags": ["sea"]}}])
    assert "Zoe" not in {one["text"].split(":")[0] for one in found["based_on"]["memories"]}
    await world.reflect(tags=["a"], tag_groups=[{"tags": ["b"]}], status=422)


async def test_a_source_outside_the_tags_is_not_opened(world: World) -> None:
    talk = {"document_id": "talk", "update_mode": "append"}
    await world.retain("Zoe: I sail to Crete.", tags=["sea"], **talk)
    await world.retain("Carl: The vault code is 4711.", tags=["vault"], **talk)
    ids = await world.ids()
    for tags, shown in ((["sea"], False), ([], True)):
        world.says(*(SEARCHES[0], ("recall", {"query": "Zoe sails", "reason": str(tags)})))
        world.says(("expand", {"memory_ids": [ids["Zoe"]], "depth": "document"}), done())
        await world.reflect("Who sails?", tags=tags, tags_match="any_strict" if tags else "any")
        assert ("4711" in told(world.bodies[-1])) == shown


async def test_mental_models_come_first_and_a_fresh_one_frees_the_rest(world: World) -> None:
    def as_told(heard: Heard) -> Say:
        """A model that searches when it must, and then answers; it writes the page too."""
        wanted = heard.body.get("tool_choice")
        name = wanted["function"]["name"] if isinstance(wanted, dict) else ""
        return Say(tools=((name, {"query": "Ana"}) if name else done(),))

    world.script(as_told)
    body = {"name": "Ana", "source_query": "Where does Ana live?"}
    model = (await world.send("POST", BANK + "/mental-models?wait=20", body))["mental_model_id"]
    page = ("search_mental_models", {"query": "Ana"})
    world.says(page, done(mental_model_ids=[model]))
    found = await world.reflect()
    assert found["stats"]["tool_calls"] == {"search_mental_models": 1}
    assert [one["id"] for one in found["based_on"]["mental_models"]] == [model]
    world.says(*SEARCHES, done())
    found = await world.reflect(exclude_mental_models=True)
    assert "search_mental_models" not in found["stats"]["tool_calls"]
    world.says(*SEARCHES, done())
    found = await world.reflect(exclude_mental_model_ids=[model])
    assert "search_mental_models" not in found["stats"]["tool_calls"]
    await world.retain("Ana: I moved to Oslo today.")
    world.says(page, *SEARCHES, done())
    found = await world.reflect()
    assert list(found["stats"]["tool_calls"]) == ["search_mental_models", "search_observations", "recall"]
    assert "(stale" in told(world.bodies[-1])


SCHEMA = {"properties": {"city": {"type": "string"}, "sure": {"type": "boolean"}}, "required": ["city"]}


async def test_a_response_schema_is_a_second_call(world: World) -> None:
    world.says(*SEARCHES, done(), '{"city": "Lyon", "sure": true}')
    found = await world.reflect(response_schema=SCHEMA)
    assert found["structured_output"] == {"city": "Lyon", "sure": True} and found["structured_output_error"] is None
    assert found["trace"]["llm_calls"][-1]["scope"] == "structured"


async def test_a_shape_that_cannot_be_had_is_said_beside_the_text(world: World) -> None:
    world.says(*SEARCHES, done())
    world.script(lambda heard: Say(text="I cannot do that."))
    found = await world.reflect(response_schema=SCHEMA)
    assert found["text"] == "Ana lives in Lyon." and found["structured_output"] is None
    assert found["structured_output_error"]


@pytest.mark.parametrize(
    "schema", [{}, {"properties": {}}, {"type": "array"}, {"properties": {"x": {"type": "date"}}}, {"properties": 5}]
)
async def test_a_bad_response_schema_is_refused(world: World, schema: object) -> None:
    await world.reflect(response_schema=schema, status=422)


async def test_an_answer_that_is_too_long_is_written_again_once(world: World) -> None:
    world.says(*SEARCHES, done("Lyon is where Ana lives now. " * 30), "Ana lives in Lyon.")
    found = await world.reflect(max_tokens=40)
    assert found["text"] == "Ana lives in Lyon."
    assert [one["scope"] for one in found["trace"]["llm_calls"]][-1] == "final_rewrite"


async def test_max_llm_calls_is_kept_with_an_answer(world: World) -> None:
    def answer(heard: Heard) -> Say:
        if "tools" not in heard.body:
            return Say(text='{"answer": "Lyon.", "answer_found": true}')
        return Say(tools=(("recall", {"query": f"Ana {len(world.bodies)}"}),))

    world.script(answer)
    found = await world.reflect(max_llm_calls=2)
    assert found["stats"]["llm_calls"] == 2 and found["text"] == "Lyon."
    found = await world.reflect(max_llm_calls=1)
    assert found["stats"]["llm_calls"] == 1 and found["text"] == "Lyon."
    assert "moved to Lyon" in told(world.bodies[-1])
    await world.reflect(max_llm_calls=1, response_schema=SCHEMA, status=422)


async def test_max_cost_is_kept_before_a_call_is_made(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(budget_prices=("openai/tiny=1/2",))
    await world.retain("Ana: I live in Lyon.")
    world.says(*SEARCHES, done())
    found = await world.reflect(max_cost=1.0)
    assert 0 < found["stats"]["cost"] < 0.001
    found = await world.reflect(max_cost=0.0000001, status=422)
    assert "max_cost" in found["detail"] and len(world.bodies) == 3


async def test_max_cost_without_a_price_is_refused(world: World) -> None:
    assert "price" in (await world.reflect(max_cost=1.0, status=422))["detail"]


async def test_a_budget_of_the_day_that_is_used_up_is_429(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(budget_calls_per_day=1)
    await world.retain("Ana: I live in Lyon.")
    world.says(*SEARCHES, done())
    assert "budget" in (await world.reflect(status=429))["detail"]


async def test_every_call_stands_in_the_ledger(world: World) -> None:
    world.says(*SEARCHES, done())
    await world.reflect()
    page = await world.send("GET", BANK + "/llm-requests?operation=reflect")
    assert page["total"] == 3


async def test_a_blank_question_is_refused_unless_there_is_context(world: World) -> None:
    await world.reflect("  ", status=422)
    await world.reflect("?", status=422)
    world.says(*SEARCHES, done())
    await world.reflect("", context="Where does Ana live?")
    world.says(*SEARCHES, done())
    await world.reflect("Where?", context="It is about Ana.")
    assert "Additional context: It is about Ana." in told(world.bodies[-1])


async def test_steps_come_as_server_sent_events(world: World) -> None:
    world.says(*SEARCHES, done())
    headers = {"Accept": "text/event-stream"}
    async with world.client.post(BANK + "/reflect", json={"query": "Where?"}, headers=headers) as answer:
        assert answer.status == 200 and answer.content_type == "text/event-stream"
        seen = parse(await answer.text())
    assert [event for event, _ in seen] == ["tool", "tool", "text", "done"]
    assert seen[0][1]["tool"] == "search_observations" and seen[2][1]["text"] == "Ana lives in Lyon."
    assert seen[3][1]["mode"] == "model" and seen[3][1]["stats"]["llm_calls"] == 3


async def test_the_steps_of_a_fast_answer_are_told_too(world: World) -> None:
    headers = {"Accept": "text/event-stream"}
    body = {"query": "Where does Ana live?", "mode": "extractive"}
    for _ in range(20):
        async with world.client.post(BANK + "/reflect", json=body, headers=headers) as answer:
            seen = parse(await answer.text())
        assert [event for event, _ in seen] == ["tool", "text", "done"]


async def test_an_error_in_a_stream_is_its_last_event(world: World) -> None:
    world.script(lambda heard: Say(text=""))
    headers = {"Accept": "text/event-stream"}
    async with world.client.post(BANK + "/reflect", json={"query": "Where?"}, headers=headers) as answer:
        seen = parse(await answer.text())
    assert seen[-1][0] == "error" and seen[-1][1]["status"] == 500 and seen[-1][1]["code"] == "no_answer"
    assert world.nothing_runs()


def parse(text: str) -> list[tuple[str, dict[str, object]]]:
    out = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            out.append((fields["event"], json.loads(fields["data"])))
    return out


async def test_the_provider_none_reflects_on_nothing(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(llm_reflect_provider="none", llm_reflect_model=None, llm_reflect_base_url=None)
    assert "none" in (await world.reflect(status=400))["detail"]


async def test_an_extractive_answer_can_be_asked_for(world: World) -> None:
    found = await world.reflect("When did Ana move to Lyon?", mode="extractive", include={"facts": {}, "explain": {}})
    assert found["mode"] == "extractive" and found["text"].startswith("12 May 2026.") and found["certainty"] == "high"
    assert not world.bodies and found["explain"]["kind"] == "when"


async def test_open_fields_take_the_banks_default_options(world: World) -> None:
    options = {"fact_types": ["world"], "budget": "high", "max_tokens": 77, "query": "never this"}
    await world.send("PATCH", BANK + "/config", {"updates": {"reflect_default_options": options}})
    world.says(SEARCHES[1], done())
    await world.reflect(max_tokens=None)
    assert "at most about 77 tokens" in told(world.bodies[0]) and "Where does Ana live?" in told(world.bodies[0])
    assert "search_observations" not in str(world.bodies[0]["tools"])
    world.says(*SEARCHES, done())
    await world.reflect(fact_types=["world", "observation"], max_tokens=55)
    assert "about 55 tokens" in told(world.bodies[-1])
    await world.send("PATCH", BANK + "/config", {"updates": {"reflect_default_options": {"budget": "endless"}}})
    assert "reflect_default_options" in (await world.reflect(status=400))["detail"]


async def test_the_prompt_can_be_looked_at_without_a_call(world: World) -> None:
    await world.send("PUT", BANK, {"disposition": {"skepticism": 5, "literalism": 3, "empathy": 3}})
    found = await world.send("POST", BANK + "/prompts/preview", {"operation": "reflect"})
    system, user = (one["blocks"][0]["text"] for one in found["messages"])
    assert "You are skeptical" in system and "Question: The question stands here." in user
    assert not world.bodies


async def test_the_price_of_a_reflect_follows_its_rounds(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(reflect_max_iterations=5)
    await world.send("PUT", BANK, {})
    for budget, rounds in (("low", 3), ("mid", 5), ("high", 10)):
        found = await world.send("POST", BANK + "/price-preview", {"operation": "reflect", "budget": budget})
        assert found["iterations"] == rounds

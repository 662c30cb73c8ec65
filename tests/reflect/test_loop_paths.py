"""Every way a model may behave in the tool loop, over HTTP: each ends in a documented status, and nothing runs on."""

from __future__ import annotations

import asyncio
import json

import pytest
from llm.model_server import Heard, Say

from recalld.daemon.wire.reflect import ReflectResponse

from .conftest import SEARCHES, World, done, system_of, told, until


async def test_the_first_searches_are_forced_in_order_then_the_model_is_free(world: World) -> None:
    ids = await world.ids()
    world.says(*SEARCHES, done(memory_ids=[ids["Ana"]]))
    found = await world.reflect()
    ReflectResponse.model_validate(found)
    choices = [body["tool_choice"] for body in world.bodies]
    assert [one["function"]["name"] if isinstance(one, dict) else one for one in choices] == [
        "search_observations",
        "recall",
        "auto",
    ]
    assert found["text"] == "Ana lives in Lyon." and found["found"] and found["mode"] == "model"
    assert [one["id"] for one in found["based_on"]["memories"]] == [ids["Ana"]]
    assert [(one["tool"], one["iteration"]) for one in found["trace"]["tool_calls"]] == [
        ("search_observations", 1),
        ("recall", 2),
    ]
    assert [one["scope"] for one in found["trace"]["llm_calls"]] == ["agent_1", "agent_2", "agent_3"]
    assert found["usage"]["input_tokens"] == 33 and found["stats"]["tool_calls"] == {
        "search_observations": 1,
        "recall": 1,
    }
    assert world.nothing_runs()


async def test_an_early_done_waits_for_the_searches(world: World) -> None:
    world.says(done("I know it already."), done())
    found = await world.reflect()
    assert found["text"] == "Ana lives in Lyon."
    assert [one["tool"] for one in found["trace"]["tool_calls"]] == ["search_observations", "recall"]
    assert "moved to Lyon" in told(world.bodies[1]) and "moved to Lyon" not in told(world.bodies[0])


async def test_a_model_that_calls_for_ever_is_made_to_answer(world: World) -> None:
    turn = iter(range(1000))

    def answer(heard: Heard) -> Say:
        if "tools" not in heard.body:
            return Say(text=json.dumps({"answer": "Lyon.", "answer_found": True}))
        return Say(tools=(("recall", {"query": f"Ana {next(turn)}"}),) * 20)

    world.script(answer)
    found = await world.reflect(budget="low")
    assert found["text"] == "Lyon."
    assert [one["scope"] for one in found["trace"]["llm_calls"]] == [*(f"agent_{n}" for n in range(1, 6)), "final"]
    assert found["stats"]["rounds"] == 5 and found["stats"]["tool_calls"]["recall"] <= 5 * 8


@pytest.mark.parametrize(("budget", "rounds"), [("low", 3), ("mid", 5), ("high", 10)])
async def test_iterations_are_the_base_times_the_budget_rounded_up(
    open_world,
    budget: str,
    rounds: int,  # type: ignore[no-untyped-def]
) -> None:
    world: World = await open_world(reflect_max_iterations=5)
    turn = iter(range(1000))
    world.script(
        lambda heard: (
            Say(tools=(("recall", {"query": f"Ana {next(turn)}"}),))
            if "tools" in heard.body
            else Say(text='{"answer": "Nothing.", "answer_found": false}')
        )
    )
    found = await world.reflect(budget=budget)
    assert found["stats"]["rounds"] == rounds and found["found"] is False


async def test_an_unknown_tool_is_answered_with_the_known_ones(world: World) -> None:
    world.says(*SEARCHES, ("drop_table", {"x": 1}), done())
    found = await world.reflect()
    assert found["text"] == "Ana lives in Lyon."
    assert "There is no tool 'drop_table'" in told(world.bodies[3]) and "expand" in told(world.bodies[3])
    assert found["trace"]["tool_calls"][2]["output"]["error"].startswith("There is no tool")


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "?!"}, {"memory_ids": ["x"]}, {"q": 5}])
async def test_wrong_arguments_are_answered_and_the_loop_goes_on(world: World, arguments: dict[str, object]) -> None:
    world.says(*SEARCHES, ("recall", dict(arguments)), ("expand", {"memory_ids": ["none such"]}), done())
    found = await world.reflect()
    assert found["text"] == "Ana lives in Lyon."
    errors = [one["output"].get("error") for one in found["trace"]["tool_calls"][2:]]
    assert errors[0] == "Give a query in words." and "ids of memories" in errors[1]


async def test_arguments_that_are_no_json_are_forgiven_and_then_the_answer_is_forced(world: World) -> None:
    broken = Say(tools=(("recall", '{"query": "An'),))
    world.says(broken, broken, broken, broken, Say(text='{"answer": "Lyon.", "answer_found": true}'))
    found = await world.reflect()
    assert found["text"] == "Lyon."
    assert "moved to Lyon" in told(world.bodies[-1])


async def test_an_empty_answer_is_an_error_and_never_a_placeholder(world: World) -> None:
    world.script(lambda heard: Say(text=""))
    found = await world.reflect(status=500)
    assert "gave no answer" in found["detail"]
    assert world.nothing_runs()


async def test_an_empty_done_is_sent_back(world: World) -> None:
    world.says(*SEARCHES, done("  "), done())
    assert (await world.reflect())["text"] == "Ana lives in Lyon."
    assert "The answer is empty" in told(world.bodies[3])


async def test_a_refusal_is_an_error_of_its_own(world: World) -> None:
    world.says(*SEARCHES, Say(refusal="I would rather not."))
    found = await world.reflect(status=422)
    assert "refused" in found["detail"] and "rather not" not in found["detail"]


async def test_a_cut_off_answer_is_asked_for_again_shorter(world: World) -> None:
    world.says(*SEARCHES, Say(text="Ana lives in Lyon. She moved ther", finish="length"), "Ana lives in Lyon.")
    found = await world.reflect()
    assert found["text"] == "Ana lives in Lyon."
    assert found["trace"]["llm_calls"][-1]["scope"] == "final_rewrite"


async def test_an_answer_that_stays_cut_off_ends_with_its_last_whole_sentence(world: World) -> None:
    cut = Say(text="Ana lives in Lyon. She moved ther", finish="length")
    world.says(*SEARCHES, cut, cut)
    assert (await world.reflect())["text"] == "Ana lives in Lyon."


async def test_a_call_that_is_cut_off_leads_to_a_forced_answer(world: World) -> None:
    world.says(
        SEARCHES[0],
        SEARCHES[1],
        Say(tools=(("recall", {"query": "x"}),), finish="length"),
        Say(text='{"answer": "Lyon.", "answer_found": true}'),
    )
    assert (await world.reflect())["text"] == "Lyon."


async def test_an_overflow_leads_to_an_answer_from_less(world: World) -> None:
    long = Say(status=400, code="context_length_exceeded", message="maximum context length is 8 tokens")
    world.says(*SEARCHES, long, long, Say(text='{"answer": "Lyon.", "answer_found": true}'))
    found = await world.reflect()
    assert found["text"] == "Lyon." and found["trace"]["llm_calls"][-1]["scope"] == "final"


async def test_an_overflow_that_stays_is_an_error(world: World) -> None:
    world.script(lambda heard: Say(status=400, code="context_length_exceeded", message="maximum context length"))
    assert "too long" in (await world.reflect(status=422))["detail"]


async def test_evidence_is_cut_to_the_context_cap(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(reflect_max_context_tokens=2500)
    texts = [f"Ana: On day {n} I walked {n} miles along the river with my old friend Marguerite." for n in range(150)]
    await world.retain(*texts)
    world.says(SEARCHES[0], SEARCHES[1], Say(text='{"answer": "Far.", "answer_found": true}'))
    found = await world.reflect("How far does Ana walk?")
    assert found["text"] == "Far." and found["stats"]["rounds"] <= 2
    assert "more were left out for want of room" in told(world.bodies[-1])


async def test_past_the_wall_limit_it_is_504(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(reflect_wall_timeout=0.5)
    world.script(lambda heard: Say(tools=SEARCHES[:1], delay=5.0))
    assert "reflect.wall_timeout" in (await world.reflect(status=504))["detail"]
    await until(world.nothing_runs)


async def test_a_model_that_is_slow_once_is_tried_again(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(llm_reflect_timeout=0.3)
    world.says(Say(tools=SEARCHES[:1], delay=1.0), *SEARCHES, done())
    assert (await world.reflect())["text"] == "Ana lives in Lyon."


async def test_a_model_that_is_down_is_503(world: World) -> None:
    world.script(lambda heard: Say(status=500, message="on fire"))
    await world.reflect(status=503)
    assert world.nothing_runs()


async def test_when_the_client_hangs_up_the_model_is_asked_no_more(world: World) -> None:
    world.script(lambda heard: Say(tools=(("recall", {"query": f"Ana {len(world.bodies)}"}),), delay=0.2))
    task = asyncio.create_task(world.reflect(budget="high"))
    await until(lambda: len(world.bodies) >= 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(world.nothing_runs)
    asked = len(world.bodies)
    await asyncio.sleep(0.5)
    assert len(world.bodies) == asked


async def test_a_server_that_takes_no_tools_is_spoken_to_in_json(world: World) -> None:
    steps = iter([{"tool": "recall", "query": "Ana home"}, {"tool": "done", "answer": "Lyon.", "answer_found": True}])

    def answer(heard: Heard) -> Say:
        if "tools" in heard.body:
            return Say(status=400, message="this model does not support tools")
        return Say(text=json.dumps(next(steps)))

    world.script(answer)
    found = await world.reflect()
    assert found["text"] == "Lyon."
    assert [one["tool"] for one in found["trace"]["tool_calls"]] == ["search_observations", "recall", "recall"]
    assert "Tools. Name one at a time" in system_of(world.bodies[-1])


async def test_a_model_that_writes_its_calls_as_text_is_understood(world: World) -> None:
    world.says(
        '{"name": "recall", "arguments": {"query": "Ana"}}',
        '{"tool": "done", "answer": "Lyon.", "answer_found": true}',
    )
    found = await world.reflect()
    assert found["text"] == "Lyon." and found["stats"]["rounds"] == 2


async def test_a_model_that_only_talks_gets_the_searches_made_and_answers(world: World) -> None:
    world.says("Sure, let me look that up!", '{"tool": "done", "answer": "Lyon.", "answer_found": true}')
    found = await world.reflect()
    assert found["text"] == "Lyon."
    assert [one["tool"] for one in found["trace"]["tool_calls"]] == ["search_observations", "recall"]


async def test_a_claim_of_absence_needs_a_recall(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world()
    await world.retain("Ana: I moved to Lyon.")
    await world.service.put_bank("default", "b", {})
    world.says(SEARCHES[0], done("I do not know.", answer_found=False), done("Nothing.", answer_found=False))
    found = await world.reflect("Where was Zoe born?")
    assert found["found"] is False and found["text"] == "Nothing."
    assert "recall" in found["stats"]["tool_calls"]


async def test_only_ids_that_a_tool_gave_are_cited(world: World) -> None:
    ids = await world.ids()
    made_up = "00000000-0000-4000-8000-000000000000"
    world.says(*SEARCHES, done(memory_ids=[made_up, ids["Ana"], "nonsense"]))
    found = await world.reflect()
    assert [one["id"] for one in found["based_on"]["memories"]] == [ids["Ana"]]


async def test_a_model_that_names_no_ids_rests_on_all_it_saw(world: World) -> None:
    world.says(*SEARCHES, done())
    found = await world.reflect()
    assert {one["text"].split(":")[0] for one in found["based_on"]["memories"]} == {"Ana", "Ben"}


async def test_a_bank_that_is_not_there_is_made(world: World) -> None:
    world.says(*SEARCHES, done("Nothing is known.", answer_found=False))
    new = "/v1/default/banks/new"
    await world.send("POST", new + "/reflect", {"query": "What is known?"})
    await world.send("GET", new + "/config")

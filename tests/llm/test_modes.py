"""The walk down the ways a schema can travel, and that a server is asked each thing it refuses only once."""

from __future__ import annotations

import json

import pytest

from recalld.actors.llm.base import LlmRequest, Message, Tool, user
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, TEXT
from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow, ModelRefused

from .model_server import Heard, Say
from .stages import GOOD, Stage, off_stage, on_stage, request, texts


def wants_no(*types: str, status: int = 400, message: str = "'response_format.type' must be 'text'") -> object:
    """A server that refuses some types of response format."""

    def script(heard: Heard) -> Say:
        asked = heard.body.get("response_format", {}).get("type")
        return Say(status=status, message=message) if asked in types else Say(text=GOOD)

    return script


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "'response_format.type' must be 'json_object' or 'text'"),
        (400, "This response_format type is unavailable now"),
        (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
        (422, "[{'loc': ['body', 'response_format', 'type'], 'msg': 'unexpected value'}]"),
        (500, 'response_format type must be one of "text" or "json_object", but got: json_schema'),
        (400, "json mode is not supported for this model"),
        (400, "This model does not support response format `json_schema`."),
        (400, "Failed to parse grammar"),
        (501, "structured output is not implemented"),
    ],
)
async def test_servers_refuse_a_mode_in_many_words_and_the_next_is_taken(
    openai_stage: Stage, status: int, message: str
) -> None:
    assert openai_stage.server is not None
    openai_stage.server.script = wants_no("json_schema", "json_object", status=status, message=message)  # type: ignore[assignment]
    first = await openai_stage.client.complete(request())
    assert (first.mode, first.attempts) == (TEXT, 3)
    for raw in openai_stage.raw:
        assert raw.count("MARK-OF-THE-SCHEMA") == 1
    second = await openai_stage.client.complete(request())
    assert (second.mode, second.attempts) == (TEXT, 1), "what was refused is remembered"
    assert openai_stage.client.habits.modes == {JSON_SCHEMA, JSON_OBJECT}


async def test_what_one_model_refuses_is_not_held_against_another(openai_stage: Stage) -> None:
    assert openai_stage.server is not None
    openai_stage.server.script = wants_no("json_schema")  # type: ignore[assignment]
    assert (await openai_stage.client.complete(request())).mode == JSON_OBJECT
    assert openai_stage.server.heard[-1].body["response_format"]["schema"]["required"] == ["facts"]
    other = openai_stage.memory.of((openai_stage.server.url, "another-model"))
    assert not other.modes and openai_stage.client.habits.modes == {JSON_SCHEMA}


async def test_a_server_that_ignores_the_field_is_found_out(openai_stage: Stage) -> None:
    """It answers 200 and prose, because the model never saw the schema. Twice is a habit."""
    assert openai_stage.server is not None

    def script(heard: Heard) -> Say:
        return Say(text=GOOD if "response_format" not in heard.body else "Ana likes tea, it seems.")

    openai_stage.server.script = script
    attempts = [(await openai_stage.client.complete(request())).attempts for _ in range(3)]
    assert attempts == [3, 3, 1]


async def test_a_model_that_slips_once_keeps_its_mode(stage: Stage) -> None:
    stage.say(GOOD)
    await stage.client.complete(request())
    for _ in range(3):
        stage.say("Oops, no JSON.", GOOD)
        answer = await stage.client.complete(request())
        assert (answer.mode, answer.attempts) == (JSON_SCHEMA, 2)
    assert not stage.client.habits.modes


async def test_anthropic_falls_back_to_a_tool_that_must_be_called() -> None:
    stage = await on_stage("anthropic")
    assert stage.server is not None

    def script(heard: Heard) -> Say:
        if "output_config" in heard.body:
            return Say(
                status=400, code="invalid_request_error", message="output_config: Extra inputs are not permitted"
            )
        assert heard.body["tool_choice"] == {"type": "tool", "name": "answer"}
        return Say(text="Here it is.", tools=(("answer", json.loads(GOOD)),))

    stage.server.script = script
    answer = await stage.client.complete(request())
    assert answer.mode == JSON_OBJECT and texts(answer.parsed) == ["Ana drinks tea."] and answer.finish_reason == "stop"
    await off_stage(stage)


async def test_anthropic_gets_closed_schemas_without_limits_it_refuses() -> None:
    stage = await on_stage("anthropic")
    assert stage.server is not None
    stage.say(GOOD)
    await stage.client.complete(request())
    sent = stage.server.heard[0].body["output_config"]["format"]
    assert sent["type"] == "json_schema" and sent["schema"]["additionalProperties"] is False
    assert "maxLength" not in json.dumps(sent) and "maximum" not in json.dumps(sent)
    await off_stage(stage)


async def test_gemini_falls_back_to_the_openapi_form() -> None:
    stage = await on_stage("gemini")
    assert stage.server is not None

    def script(heard: Heard) -> Say:
        if "responseJsonSchema" in heard.body["generationConfig"]:
            return Say(
                status=400, code="INVALID_ARGUMENT", message='Unknown name "responseJsonSchema": Cannot find field.'
            )
        return Say(text=GOOD)

    stage.server.script = script
    assert (await stage.client.complete(request())).mode == JSON_OBJECT
    assert stage.server.heard[1].body["generationConfig"]["responseSchema"]["type"] == "OBJECT"
    await off_stage(stage)


# -- parameters --------------------------------------------------------------------------------------------------------


async def test_a_temperature_that_is_not_taken_is_left_out_from_then_on(openai_stage: Stage) -> None:
    assert openai_stage.server is not None

    def script(heard: Heard) -> Say:
        if "temperature" in heard.body:
            said = "Unsupported value: 'temperature' does not support 0.1 here. Only the default (1) is supported."
            return Say(status=400, code="unsupported_value", message=said)
        return Say(text=GOOD)

    openai_stage.server.script = script
    asked = request(temperature=0.1)
    assert [(await openai_stage.client.complete(asked)).attempts for _ in range(2)] == [2, 1]
    assert openai_stage.client.habits.open_modes([JSON_SCHEMA]) == [JSON_SCHEMA], "no mode was blamed"


async def test_either_name_of_the_output_limit_is_found(openai_stage: Stage) -> None:
    assert openai_stage.server is not None

    def script(heard: Heard) -> Say:
        if "max_tokens" in heard.body:
            said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return Say(status=400, code="unsupported_parameter", message=said)
        return Say(text=GOOD)

    openai_stage.server.script = script
    assert [(await openai_stage.client.complete(request(max_tokens=900))).attempts for _ in range(2)] == [2, 1]
    assert openai_stage.server.heard[-1].body["max_completion_tokens"] == 900


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens.",
        "max_tokens: 64000 > 16384, which is the maximum allowed number of output tokens for this model",
    ],
)
async def test_an_output_limit_above_the_models_own_is_lowered_once(http_stage: Stage, said: str) -> None:
    assert http_stage.server is not None
    http_stage.say(Say(status=400, code="invalid_request_error", message=said), GOOD, GOOD)
    assert [(await http_stage.client.complete(request(max_tokens=64000))).attempts for _ in range(2)] == [2, 1]
    assert all("16384" in raw and "64000" not in raw for raw in http_stage.raw[1:])


async def test_room_for_the_answer_that_crowds_out_the_prompt_is_given_up_before_the_text_is_split(
    openai_stage: Stage,
) -> None:
    said = (
        "This model's maximum context length is 4096 tokens. However, you requested 64100 tokens (100 in the messages, "
        "64000 in the completion). Please reduce the length of the messages or completion."
    )
    openai_stage.say(Say(status=400, message=said), GOOD)
    answer = await openai_stage.client.complete(request(max_tokens=64000))
    assert answer.attempts == 2 and "max_tokens" not in openai_stage.raw[1]
    openai_stage.say(Say(status=400, message=said), Say(status=400, message="maximum context length is 4096 tokens"))
    with pytest.raises(ModelOverflow):
        await openai_stage.client.complete(request(max_tokens=64000))


async def test_thirty_first_calls_at_once_learn_together(openai_stage: Stage) -> None:
    import asyncio

    assert openai_stage.server is not None

    def script(heard: Heard) -> Say:
        if "temperature" in heard.body:
            return Say(status=400, message="Unsupported value: temperature", delay=0.05)
        return wants_no("json_schema")(heard)  # type: ignore[operator, no-any-return]

    openai_stage.server.script = script
    asked = request(temperature=0.3)
    answers = await asyncio.gather(*(openai_stage.client.complete(asked) for _ in range(30)))
    assert {one.mode for one in answers} == {JSON_OBJECT}
    assert (await openai_stage.client.complete(asked)).attempts == 1


async def test_a_server_that_refuses_everything_is_not_asked_for_ever(openai_stage: Stage) -> None:
    assert openai_stage.server is not None
    openai_stage.server.script = lambda heard: Say(status=400, message="response_format, temperature: not supported")
    with pytest.raises(ModelRefused):
        await openai_stage.client.complete(request(temperature=0.1))
    assert openai_stage.calls <= 7


async def test_a_schema_and_tools_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="not both"):
        LlmRequest("reflect", (), schema={"type": "object"}, tools=(Tool("t", "", {}),))


async def test_unusable_answers_in_every_mode_end_in_one_error(openai_stage: Stage) -> None:
    openai_stage.say(*["no"] * 9)
    with pytest.raises(ModelAnswerUnusable):
        await openai_stage.client.complete(request())
    asked = [json.loads(raw).get("response_format", {}).get("type", "text") for raw in openai_stage.raw]
    assert asked == ["json_schema", "json_object", "text", "text"]
    assert not openai_stage.client.habits.modes, "no mode is blamed when none did better"


async def test_a_server_that_says_the_model_missed_the_schema_this_time_keeps_its_mode(openai_stage: Stage) -> None:
    missed = Say(status=400, code="json_validate_failed", message="Failed to generate JSON. See failed_generation.")
    openai_stage.say(GOOD, missed, GOOD, GOOD)
    modes = [(await openai_stage.client.complete(request())).mode for _ in range(3)]
    assert modes == [JSON_SCHEMA, JSON_OBJECT, JSON_SCHEMA]


async def test_gemini_gets_the_mark_of_a_call_back() -> None:
    stage = await on_stage("gemini")
    part = {"functionCall": {"name": "recall", "args": {"query": "tea"}}, "thoughtSignature": "abc="}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    stage.say(Say(raw=json.dumps(body), headers={"Content-Type": "application/json"}), "Done.")
    tools = (Tool("recall", "Look.", {"type": "object", "properties": {"query": {"type": "string"}}}),)
    first = await stage.client.complete(request(schema=None, tools=tools))
    turns = (user("?"), Message("assistant", "", first.tool_calls), Message("tool", "tea", name="recall"))
    await stage.client.complete(request(schema=None, tools=tools, messages=turns))
    assert '"thoughtSignature":"abc="' in stage.raw[1]
    await off_stage(stage)

"""What every provider promises, seen through the one client against a server that speaks its API."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from recalld.actors.llm.base import Llm, Message, Tool, ToolCall, user
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, TEXT
from recalld.storage.errors import (
    ModelAnswerUnusable,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
)

from .model_server import Say
from .stages import GOOD, QUICK, Stage, off_stage, on_stage, request, texts, until

CALL = Tool("recall", "Look something up.", {"type": "object", "properties": {"query": {"type": "string"}}})


async def test_an_answer_comes_parsed_with_its_usage(stage: Stage) -> None:
    stage.say(GOOD)
    assert isinstance(stage.client, Llm)
    answer = await stage.client.complete(request())
    assert texts(answer.parsed) == ["Ana drinks tea."]
    assert (answer.finish_reason, answer.mode, answer.attempts) == ("stop", JSON_SCHEMA, 1)
    assert (answer.usage.input, answer.usage.output, answer.usage.reported) == (11, 7, True)
    assert answer.usage.own_input > 20 and answer.usage.own_output > 5, "our own count stands beside"
    (record,) = stage.records
    assert (record.operation, record.bank, record.outcome, record.usage) == (
        "retain", ("default", "b"), "ok", answer.usage,
    )  # fmt: skip


async def test_plain_text_needs_no_schema(stage: Stage) -> None:
    stage.say("<think>\nshort\n</think>\n\nTea, said <think> Ana.")
    answer = await stage.client.complete(request(schema=None))
    assert answer.text == "Tea, said <think> Ana." and answer.parsed is None


@pytest.mark.parametrize("mode", [JSON_SCHEMA, JSON_OBJECT, TEXT])
async def test_the_schema_is_sent_once(stage: Stage, mode: str) -> None:
    habits = stage.client.habits
    habits.modes |= {JSON_SCHEMA: set(), JSON_OBJECT: {JSON_SCHEMA}, TEXT: {JSON_SCHEMA, JSON_OBJECT}}[mode]
    stage.say(GOOD)
    answer = await stage.client.complete(request())
    assert answer.mode == mode
    assert stage.raw[0].count("MARK-OF-THE-SCHEMA") == 1


async def test_real_characters_cross_the_wire(stage: Stage) -> None:
    stage.say(GOOD)
    await stage.client.complete(request("東京の猫 {brace} 100% \\u0041 Ω 🙂 \ud800"))
    assert "東京の猫 {brace} 100%" in stage.raw[0] and "🙂" in stage.raw[0]
    assert "\\ud83d" not in stage.raw[0] and "\\u6771" not in stage.raw[0]


async def test_the_key_goes_in_its_header_and_nowhere_else(http_stage: Stage) -> None:
    assert http_stage.server is not None
    http_stage.say(Say(status=401, message="Incorrect API key provided: sk-the-secret-key."))
    with pytest.raises(ModelRefused) as caught:
        await http_stage.client.complete(request())
    heard = http_stage.server.heard[0]
    assert "sk-the-secret-key" in heard.headers[http_stage.server.dialect.key_header]
    assert b"sk-the-secret-key" not in heard.raw and "sk-the" not in heard.path
    shown = [str(caught.value), caught.value.detail, repr(caught.value.to_wire()), repr(http_stage.provider.choice)]
    assert not any("secret" in one for one in [*shown, *(one.detail for one in http_stage.records)])
    assert caught.value.cause == "unauthorized"


async def test_tools_are_offered_called_and_answered(stage: Stage) -> None:
    stage.say(Say(tools=(("recall", {"query": "tea"}), ("recall", {"query": "cake"}))))
    first = await stage.client.complete(request(schema=None, tools=(CALL,)))
    assert first.finish_reason == "tool_calls"
    assert [(one.name, one.arguments) for one in first.tool_calls] == [
        ("recall", {"query": "tea"}),
        ("recall", {"query": "cake"}),
    ]
    stage.say("Done.")
    turns = (
        user("What does Ana drink?"),
        Message("assistant", "", tool_calls=first.tool_calls),
        *(Message("tool", f"found {one.id}", tool_call_id=one.id, name=one.name) for one in first.tool_calls),
    )
    second = await stage.client.complete(request(schema=None, tools=(CALL,), messages=turns))
    assert second.text == "Done." and "found" in stage.raw[1]


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("say", "cause"),
    [
        (Say(refusal="I will not."), "content_policy"),
        (Say(status=400, message="this request is wrong"), "bad_request"),
        (Say(status=400, code="content_filter", message="blocked by content management policy"), "content_policy"),
        (Say(status=401, message="bad key"), "unauthorized"),
        (Say(status=403, message="not for you"), "forbidden"),
        (Say(status=404, message="The model `m` does not exist"), "model_not_found"),
        (Say(status=429, code="insufficient_quota", message="You exceeded your current quota"), "quota"),
    ],
    ids=lambda one: one if isinstance(one, str) else str(one.status),
)
async def test_what_will_not_change_is_asked_once_and_says_why(stage: Stage, say: Say, cause: str) -> None:
    stage.say(*[say] * 5)
    with pytest.raises(ModelRefused) as caught:
        await stage.client.complete(request())
    assert stage.calls == 1 and caught.value.cause == cause and not caught.value.retryable
    assert stage.outcomes == ["model_refused"] and caught.value.status == 422


@pytest.mark.parametrize(
    "say",
    [
        Say(status=400, code="context_length_exceeded", message="maximum context length is 8192 tokens"),
        Say(status=400, message="prompt is too long: 210000 tokens > 200000 maximum"),
        Say(status=400, message="The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        Say(status=400, message="the request exceeds the available context size, try increasing it"),
        Say(status=413, message="request_too_large"),
        Say(status=429, message="Request too large for m: Limit 30000, Requested 40000. Tokens must be reduced."),
    ],
    ids=["openai", "anthropic", "gemini", "llama", "size", "rate"],
)
async def test_a_prompt_that_does_not_fit_is_told_apart_so_that_it_can_be_split(stage: Stage, say: Say) -> None:
    stage.say(*[say] * 3)
    with pytest.raises(ModelOverflow) as caught:
        await stage.client.complete(request())
    assert caught.value.kind == "input" and stage.calls == 1


async def test_an_answer_that_was_cut_off_gives_its_whole_items_to_the_splitter(stage: Stage) -> None:
    cut = '{"facts": [{"text": "Ana drinks tea.", "kind": "world"}, {"text": "Ana does not like'
    stage.say(Say(text=cut, finish="length"))
    with pytest.raises(ModelOverflow) as caught:
        await stage.client.complete(request())
    assert caught.value.kind == "output" and stage.calls == 1
    assert texts(caught.value.answer.parsed) == ["Ana drinks tea."]
    assert caught.value.answer.usage.output == 7


async def test_a_passing_failure_is_tried_again(stage: Stage) -> None:
    stage.say(Say(status=500, message="oops"), Say(hang_up=True), GOOD)
    answer = await stage.client.complete(request())
    assert texts(answer.parsed) == ["Ana drinks tea."] and stage.calls == answer.attempts == 3
    assert stage.outcomes == ["model_unavailable"] * 2 + ["ok"]
    assert stage.slept == sorted(stage.slept), "the waits grow"
    stage.say(Say(raw="<html>busy</html>"), Say(status=529, code="overloaded_error"), GOOD)
    assert (await stage.client.complete(request())).attempts == 3


async def test_retry_after_is_honoured_without_holding_a_permit(stage: Stage) -> None:
    stage.say(*[Say(status=429, message="slow down", headers={"Retry-After": "0.3"})] * 2, GOOD)
    held: list[int] = []

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.05)
            held.append(stage.permits.held)

    watcher = asyncio.create_task(watch())
    began = time.monotonic()
    answer = await stage.client.complete(request())
    took = time.monotonic() - began
    watcher.cancel()
    assert texts(answer.parsed) == ["Ana drinks tea."] and stage.calls == 3
    assert 0.6 <= took < 3 and held.count(0) >= len(held) - 3
    assert stage.outcomes == ["model_rate_limited", "model_rate_limited", "ok"]


async def test_retry_after_may_be_a_date(http_stage: Stage) -> None:
    now = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    headers = {
        "Retry-After": format_datetime(now + timedelta(seconds=1), usegmt=True),
        "Date": format_datetime(now, usegmt=True),
    }
    http_stage.say(Say(status=429, headers=headers), GOOD)
    began = time.monotonic()
    await http_stage.client.complete(request())
    assert 1.0 <= time.monotonic() - began < 4, "measured by the server's clock, whatever ours says"


async def test_a_provider_that_wants_minutes_gets_them_and_the_work_is_put_aside(stage: Stage) -> None:
    stage.say(Say(status=429, message="slow down", headers={"Retry-After": "90"}))
    with pytest.raises(ModelRateLimited) as caught:
        await stage.client.complete(request())
    assert caught.value.retry_after == 90 and caught.value.status == 503 and stage.calls == 1
    with pytest.raises(ModelRateLimited) as caught:
        await stage.client.complete(request())
    assert stage.calls == 1, "the next call does not even try"
    assert caught.value.retry_after in (89, 90)


async def test_a_slow_model_is_given_up_after_its_time(stage: Stage) -> None:
    stage.say(*[Say(text=GOOD, delay=5)] * 4)
    stage.limits = replace(QUICK, retries=0)
    stage.client = stage.make()
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match="timeout"):
        await stage.client.complete(request(timeout=0.2))
    assert time.monotonic() - began < 4 and stage.calls == 1 and stage.permits.held == 0


async def test_a_cancelled_call_ends_at_once_and_is_on_record(stage: Stage) -> None:
    stage.say(Say(text=GOOD, delay=5))
    task = asyncio.create_task(stage.client.complete(request()))
    await until(lambda: stage.calls > 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.outcomes == ["cancelled"] and stage.permits.held == 0


async def test_an_unusable_answer_is_asked_for_again_and_then_told(stage: Stage) -> None:
    stage.say("I am sorry, here are no facts.", "Still none.", "None at all.", "Never.")
    with pytest.raises(ModelAnswerUnusable, match="no JSON"):
        await stage.client.complete(request())
    assert 2 <= stage.calls <= 4 and set(stage.outcomes) == {"model_answer_unusable"}
    assert ModelAnswerUnusable.retryable


async def test_a_closed_client_can_be_closed_again(stage: Stage) -> None:
    await stage.client.close()
    await stage.client.close()


async def test_the_provider_says_whether_it_has_the_model(http_stage: Stage) -> None:
    assert http_stage.server is not None
    assert await http_stage.client.known() is True
    http_stage.server.models = ["another"]
    assert await http_stage.client.known() is False


async def test_extra_body_and_headers_travel_along() -> None:
    for name in ("openai", "anthropic", "gemini"):
        stage = await on_stage(name, extra_body={"seed": 7}, headers={"X-Team": "a"})
        try:
            assert stage.server is not None
            stage.say(GOOD)
            await stage.client.complete(request())
            assert stage.server.heard[0].body["seed"] == 7 and stage.server.heard[0].headers["x-team"] == "a"
        finally:
            await off_stage(stage)


def test_tool_arguments_and_calls_are_plain_data() -> None:
    assert json.dumps(ToolCall("1", "recall", {"query": "猫"}).arguments, ensure_ascii=False) == '{"query": "猫"}'


async def test_a_quota_that_names_a_time_is_waited_for(stage: Stage) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    stage.say(Say(status=429, message=said, headers={"Retry-After": "0.05"}), GOOD)
    assert (await stage.client.complete(request())).attempts == 2


async def test_googles_retry_delay_is_honoured() -> None:
    stage = await on_stage("gemini")
    assert stage.server is not None
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}
    body = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [delay]}}
    stage.say(Say(status=429, raw=json.dumps(body)), GOOD)
    began = time.monotonic()
    await stage.client.complete(request())
    assert time.monotonic() - began >= 0.3
    await off_stage(stage)


async def test_no_log_line_holds_what_was_asked_or_the_key(http_stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    http_stage.say(GOOD, Say(status=400, message="no"))
    await http_stage.client.complete(request("the private matter"))
    with pytest.raises(ModelRefused):
        await http_stage.client.complete(request("the private matter"))
    assert "private matter" not in caplog.text and "secret-key" not in caplog.text
    assert not [one for one in caplog.records if one.name.startswith(("openai", "httpx", "httpcore"))]

"""Permits, pauses and the state of an endpoint that is down: who waits, who does not, and for how long."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from recalld.actors.llm.base import Limits, user
from recalld.actors.llm.client import ModelClient
from recalld.actors.llm.gate import Endpoint, Gate, Permits
from recalld.actors.llm.models import filled, open_provider
from recalld.actors.llm.provider import ModelChoice
from recalld.storage.errors import ModelAnswerUnusable, ModelRateLimited, ModelUnavailable

from .model_server import Heard, ModelServer, Say
from .stages import GOOD, QUICK, Stage, off_stage, on_stage, request, until


async def test_no_more_than_the_permitted_calls_run_at_once() -> None:
    stage = await on_stage("openai", replace(QUICK, concurrent=8, per_operation={"retain": 3}))
    assert stage.server is not None
    stage.server.script = lambda heard: Say(text=GOOD, delay=0.05)
    await asyncio.gather(*(stage.client.complete(request()) for _ in range(12)))
    assert stage.permits.most_held == 3 and stage.server.most_busy <= 3
    others = [request(operation="reflect") for _ in range(16)]
    await asyncio.gather(*(stage.client.complete(one) for one in [*others, *[request()] * 12]))
    assert stage.permits.most_held == 8 and stage.server.most_busy <= 8
    await off_stage(stage)


async def test_a_capped_operation_in_line_takes_no_permit_from_others() -> None:
    stage = await on_stage("openai", replace(QUICK, concurrent=4, per_operation={"retain": 1}))
    assert stage.server is not None
    stage.server.script = lambda heard: Say(text=GOOD, delay=0.3 if "slow" in str(heard.body) else 0)
    slow = [asyncio.create_task(stage.client.complete(request("slow"))) for _ in range(8)]
    await until(lambda: stage.calls > 0)
    await stage.client.complete(request("fast", operation="reflect"))
    assert sum(one.done() for one in slow) < 4, "it did not stand behind the eight"
    for one in slow:
        one.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert stage.permits.held == 0
    await off_stage(stage)


async def test_a_call_that_finds_no_permit_in_time_says_so() -> None:
    stage = await on_stage("openai", replace(QUICK, concurrent=1))
    stage.say(Say(text=GOOD, delay=1.0))
    first = asyncio.create_task(stage.client.complete(request()))
    await until(lambda: stage.calls > 0)
    with pytest.raises(ModelUnavailable, match="under way"):
        await stage.client.complete(request(deadline=0.1))
    await first
    await off_stage(stage)


async def test_thirty_calls_into_a_rate_limit_wait_together_and_do_not_storm() -> None:
    """The provider takes no call for a second after each 429; what comes earlier is counted as a storm."""
    stage = await on_stage("openai", replace(QUICK, concurrent=32))
    assert stage.server is not None
    server, opened, storm = stage.server, [0.0], [0]

    def script(heard: Heard) -> Say:
        now = time.monotonic()
        if opened[0] == 0.0:
            opened[0] = now + 1.0
        if now < opened[0] - 0.02:
            storm[0] += 1
            return Say(status=429, message="slow down", headers={"Retry-After": "1"})
        return Say(text=GOOD)

    server.script = script
    await asyncio.gather(*(stage.client.complete(request()) for _ in range(30)))
    assert storm[0] <= 30, "those that were already under way"
    assert len(server.heard) == 30 + storm[0]
    await off_stage(stage)


async def test_one_model_that_limits_its_rate_slows_no_other() -> None:
    limited, free = await ModelServer().start(), await ModelServer().start()
    limited.script = lambda heard: Say(status=429, headers={"Retry-After": "5"})
    free.script = lambda heard: Say(text=GOOD)
    stage = Stage(
        open_provider(filled(ModelChoice("openai", "m", "k", limited.url))), limited, replace(QUICK, concurrent=4)
    )
    other = ModelClient(
        open_provider(filled(ModelChoice("openai", "m", "k", free.url))), stage.gate, stage.memory, stage.limits
    )
    waiting = [asyncio.create_task(stage.client.complete(request())) for _ in range(30)]
    await until(lambda: len(limited.heard) >= 4)
    began = time.monotonic()
    await asyncio.gather(*(other.complete(request()) for _ in range(10)))
    assert time.monotonic() - began < 4
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await stage.client.close()
    await other.close()
    await limited.stop()
    await free.stop()


async def test_a_model_that_is_down_is_asked_seldom_and_answers_others_at_once_with_the_cause(stage: Stage) -> None:
    stage.say(*[Say(status=503, message="down for maintenance")] * 20)
    with pytest.raises(ModelUnavailable) as caught:
        await stage.client.complete(request())
    assert caught.value.status == 503 and caught.value.retryable and "overloaded" in caught.value.message
    assert 1 <= caught.value.retry_after <= 5
    tried = stage.calls
    assert tried <= 4
    began = time.monotonic()
    for _ in range(20):
        with pytest.raises(ModelUnavailable):
            await stage.client.complete(request())
    assert stage.calls == tried and time.monotonic() - began < 2, "no call, no wait"


async def test_nobody_listening_is_a_passing_failure_with_its_cause() -> None:
    choice = ModelChoice("openai", "m", "k", "http://127.0.0.1:9/v1")
    stage = Stage(open_provider(filled(choice)), None)
    with pytest.raises(ModelUnavailable, match="connection"):
        await stage.client.complete(request())
    await stage.client.close()


def endpoint(clock: list[float]) -> Endpoint:
    return Endpoint("m", lambda: clock[0])


def test_a_circuit_opens_probes_and_closes() -> None:
    clock = [0.0]
    one = endpoint(clock)
    for _ in range(2):
        one.failed("connection", probe=False)
        assert not one.check()
    one.failed("connection", probe=False)
    waits = []
    for _ in range(5):
        with pytest.raises(ModelUnavailable) as caught:
            one.check()
        waits.append(caught.value.retry_after)
        clock[0] = one.open_until
        assert one.check(), "the first call after the wait is a probe"
        with pytest.raises(ModelUnavailable):
            one.check()
        one.probing = False
        one.failed("connection", probe=True)
    assert waits == [5, 10, 20, 40, 60], "it grows to a minute"
    clock[0] = one.open_until
    assert one.check()
    one.probing = False
    one.succeeded()
    assert not one.down and not one.check()


async def test_a_probe_that_finds_the_model_back_lets_everybody_in() -> None:
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    stage = await on_stage("openai")
    gate = Gate(Permits(32, {}), monotonic=lambda: clock[0], sleep=sleep, chance=lambda: 0.0)
    client = ModelClient(stage.provider, gate, stage.memory, Limits(deadline=1000.0))
    stage.say(*[Say(status=503)] * 3)
    with pytest.raises(ModelUnavailable):
        await client.complete(request())
    clock[0] += 60
    stage.say(Say(text=GOOD, delay=0.2), GOOD, GOOD)
    probe = asyncio.create_task(client.complete(request()))
    await until(lambda: stage.calls == 4)
    with pytest.raises(ModelUnavailable):
        await client.complete(request())
    await probe
    await asyncio.gather(client.complete(request()), client.complete(request()))
    await off_stage(stage)


async def test_a_cancelled_probe_leaves_the_door_to_the_next() -> None:
    clock = [0.0]
    stage = await on_stage("openai")
    gate = Gate(Permits(32, {}), monotonic=lambda: clock[0], sleep=asyncio.sleep, chance=lambda: 0.0)
    client = ModelClient(stage.provider, gate, stage.memory, replace(QUICK, retries=0, deadline=1000))
    stage.say(*[Say(status=503)] * 3)
    for _ in range(3):
        with pytest.raises(ModelUnavailable):
            await client.complete(request())
    clock[0] += 60
    stage.say(Say(text=GOOD, delay=5), GOOD)
    probe = asyncio.create_task(client.complete(request()))
    await until(lambda: stage.calls == 4)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    assert (await client.complete(request())).text
    await off_stage(stage)


async def test_a_pause_longer_than_the_deadline_is_not_sat_out() -> None:
    stage = await on_stage("openai")
    stage.say(Say(status=429, headers={"Retry-After": "4"}))
    began = time.monotonic()
    with pytest.raises(ModelRateLimited) as caught:
        await stage.client.complete(request(deadline=1.0))
    assert time.monotonic() - began < 3 and caught.value.retry_after == 4
    await off_stage(stage)


async def test_retries_end_with_their_number_and_count_as_calls(stage: Stage) -> None:
    stage.say(*[Say(status=429, headers={"Retry-After": "0.01"})] * 10)
    with pytest.raises(ModelRateLimited):
        await stage.client.complete(request(schema=None, messages=(user("hi"),)))
    assert stage.calls == len(stage.records) == 1 + QUICK.retries


async def test_a_text_that_a_server_stumbles_over_does_not_pass_for_a_model_that_is_down() -> None:
    """Other texts are answered in between, so the failure belongs to the text: it counts, and ends."""
    stage = await on_stage("openai")
    assert stage.server is not None
    stage.server.script = lambda heard: Say(status=500) if "poison" in str(heard.body) else Say(text=GOOD)
    poison = asyncio.create_task(stage.client.complete(request("poison")))
    while not poison.done():
        await stage.client.complete(request("fine"))
    with pytest.raises(ModelAnswerUnusable, match="answers on others"):
        await poison
    assert not stage.gate.endpoint(stage.server.url, "test-model").down
    await off_stage(stage)


async def test_a_server_that_stumbles_over_everything_is_down() -> None:
    stage = await on_stage("openai")
    stage.say(*[Say(status=500)] * 20)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="server_error"):
            await stage.client.complete(request())
    tried = stage.calls
    with pytest.raises(ModelUnavailable):
        await stage.client.complete(request())
    assert stage.calls == tried
    await off_stage(stage)

"""What every runtime promises. A suite subclasses `RuntimeContract` and says how to make a runtime and crash actors."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from runtime_actors import Ask, Big, Echo, Facts, Fail, Sleep, Unregistered

from recalld.actors.runtime import ActorRef, ActorSpec
from recalld.storage.errors import (
    BankNotFound,
    Conflict,
    DeadlineExceeded,
    RecalldError,
    TooManyRequests,
    Unavailable,
)

FACTORY = "runtime_actors:echo"
_numbers = itertools.count()


@dataclass
class Bench:
    """A runtime under test; `crash` ends an actor as a killed process would, and returns when the blow has fallen."""

    runtime: Any
    crash: Callable[[ActorRef], Awaitable[None]]
    crosses: bool  # messages go through the codec

    async def spawn(self, max_concurrency: int = 64, **kwargs: Any) -> ActorRef:
        spec = ActorSpec(f"echo-{next(_numbers)}", FACTORY, kwargs, max_concurrency)
        ref: ActorRef = await self.runtime.spawn(spec)
        return ref


async def eventually(ask: Callable[[], Awaitable[Any]], seconds: float = 15.0) -> Any:
    """Retry while the actor is `Unavailable`, as a gateway does."""
    until = time.monotonic() + seconds
    while True:
        try:
            return await ask()
        except Unavailable:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


class RuntimeContract:
    """Inherited by one class per runtime; `bench` and the shared actor `ref` are fixtures of the subclass's module."""

    async def test_answer_comes_back(self, ref: ActorRef) -> None:
        value = {"text": "Zoë 記憶", "tuple": (1, (2.5, None)), "list": [b"\x00\xff", True], "big": 2**63}
        assert await ref.call(Echo(value)) == value
        assert (await ref.call(Echo(Echo((1,))))).payload == (1,)

    async def test_typed_errors_keep_class_message_and_retry_after(self, ref: ActorRef) -> None:
        with pytest.raises(BankNotFound, match="Bank 'café' not found"):
            await ref.call(Fail("missing"))
        with pytest.raises(TooManyRequests) as busy:
            await ref.call(Fail("busy"))
        assert busy.value.retry_after == 7

    async def test_unexpected_error_becomes_ours_without_its_text(self, ref: ActorRef) -> None:
        with pytest.raises(RecalldError) as caught:
            await ref.call(Fail("unexpected"))
        assert type(caught.value) is RecalldError
        assert "secret" not in caught.value.message

    async def test_timeout_ends_the_waiting_not_the_work(self, bench: Bench, tmp_path: Path) -> None:
        journal = tmp_path / "journal"
        ref = await bench.spawn(log=str(journal))
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await ref.call(Sleep(0.5), timeout=0.1)
        assert time.monotonic() - started < 0.4
        await asyncio.sleep(0.7)
        assert "slept 0.5" in journal.read_text()
        await bench.runtime.stop(ref)

    async def test_cancelled_caller_cancels_nothing_in_the_actor(self, bench: Bench, tmp_path: Path) -> None:
        journal = tmp_path / "journal"
        ref = await bench.spawn(log=str(journal))
        caller = asyncio.create_task(ref.call(Sleep(0.4)))
        await asyncio.sleep(0.1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.sleep(0.6)
        assert "slept 0.4" in journal.read_text()
        assert await ref.call(Echo(1)) == 1
        await bench.runtime.stop(ref)

    async def test_calls_run_at_once_up_to_the_limit(self, bench: Bench) -> None:
        ref = await bench.spawn(max_concurrency=4)
        started = time.monotonic()
        await asyncio.gather(*(ref.call(Sleep(0.1)) for _ in range(12)))
        assert 0.28 < time.monotonic() - started < 1.0
        assert (await ref.call(Facts()))["most"] == 4
        await bench.runtime.stop(ref)

    async def test_full_actor_still_says_that_it_lives(self, bench: Bench) -> None:
        ref = await bench.spawn(max_concurrency=1)
        calls = [asyncio.create_task(ref.call(Sleep(0.2))) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert await ref.alive()
        await asyncio.gather(*calls)
        await bench.runtime.stop(ref)

    async def test_half_a_megabyte_comes_back_whole(self, ref: ActorRef) -> None:
        assert await ref.call(Big(500_000)) == b"\x07" * 500_000

    async def test_three_megabytes_come_back_whole(self, ref: ActorRef) -> None:
        assert await ref.call(Big(3_000_000)) == b"\x07" * 3_000_000

    async def test_tell_arrives_and_its_failure_reaches_nobody(self, ref: ActorRef) -> None:
        before = (await ref.call(Facts()))["handled"]
        ref.tell(Echo("x"))
        ref.tell(Fail("unexpected"))
        await asyncio.sleep(0.2)
        assert (await ref.call(Facts()))["handled"] == before + 3

    async def test_actors_find_each_other_by_name(self, bench: Bench, ref: ActorRef) -> None:
        other = await bench.spawn()
        assert await other.call(Ask(ref.name, ("hello", 1))) == ("hello", 1)
        with pytest.raises(Unavailable, match="nobody"):
            await other.call(Ask("nobody", 1))
        found = await bench.runtime.lookup(other.name)
        assert await found.call(Echo(2)) == 2
        await bench.runtime.stop(other)

    async def test_dead_actor_is_unavailable_then_serves_again(self, bench: Bench, tmp_path: Path) -> None:
        journal = tmp_path / "journal"
        ref = await bench.spawn(log=str(journal))
        await ref.call(Echo(1))
        waiting = asyncio.create_task(ref.call(Sleep(20)))
        await asyncio.sleep(0.1)
        await bench.crash(ref)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(waiting, 10)
        facts = await eventually(lambda: ref.call(Facts()))
        assert facts["handled"] == 1
        assert journal.read_text().splitlines() == ["start", "start"]
        assert await ref.alive()
        await bench.runtime.stop(ref)

    async def test_first_calls_wait_for_the_start(self, bench: Bench) -> None:
        started = time.monotonic()
        ref = await bench.spawn(start_seconds=0.3)
        assert time.monotonic() - started >= 0.3
        assert await ref.call(Echo(1)) == 1
        await bench.runtime.stop(ref)

    async def test_failing_start_is_raised_and_leaves_no_actor(self, bench: Bench) -> None:
        spec = ActorSpec("stillborn", FACTORY, {"fail_start": True})
        with pytest.raises(BankNotFound, match="of the start"):
            await bench.runtime.spawn(spec)
        with pytest.raises(Unavailable):
            await (await bench.runtime.lookup("stillborn")).call(Echo())

    async def test_name_is_taken_while_the_actor_runs(self, bench: Bench, ref: ActorRef) -> None:
        with pytest.raises(Conflict):
            await bench.runtime.spawn(ActorSpec(ref.name, FACTORY))

    async def test_stop_runs_the_actors_stop_after_its_calls(self, bench: Bench, tmp_path: Path) -> None:
        journal = tmp_path / "journal"
        ref = await bench.spawn(log=str(journal))
        call = asyncio.create_task(ref.call(Sleep(0.3)))
        await asyncio.sleep(0.1)
        await bench.runtime.stop(ref)
        assert await call == 0.3
        assert journal.read_text().splitlines() == ["start", "slept 0.3", "stop"]
        with pytest.raises(Unavailable):
            await ref.call(Echo())
        assert not await ref.alive()
        await bench.runtime.stop(ref)

    async def test_what_cannot_cross_is_refused_to_the_caller(self, bench: Bench, ref: ActorRef) -> None:
        if not bench.crosses:
            pytest.skip("this runtime passes objects as they are")
        for value in (Unregistered(), {1, 2}, 2**64, object()):
            with pytest.raises(RecalldError, match="cannot cross"):
                await ref.call(Echo(value))

    async def test_unexpected_error_is_logged_with_frames_and_without_text(self, bench: Bench, ref: ActorRef) -> None:
        with structlog.testing.capture_logs() as logs, pytest.raises(RecalldError):
            await ref.call(Fail("unexpected"))
        if logs:  # an actor in a process of its own logs there
            assert "_do" in logs[0]["traceback"]
            assert "secret" not in str(logs)

    async def test_description_names_the_actors(self, bench: Bench, ref: ActorRef) -> None:
        assert ref.name in bench.runtime.describe()["actors"]

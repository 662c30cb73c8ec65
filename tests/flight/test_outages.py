"""Parts that are busy, away, or refuse: what is asked again, how often, and what a caller hears."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flight_service import TENANT, ended, item, opened, operation, queue, retain, texts, until

from recalld.actors import messages, shard
from recalld.actors.directory import with_patience
from recalld.actors.encoder_client import EncoderClient
from recalld.actors.encoder_messages import EmbeddedTexts, EmbedTexts
from recalld.actors.runtime import ActorSpec
from recalld.actors.shard import Shard
from recalld.daemon import composition, dispatch
from recalld.daemon.lifecycle import _LazyWorker
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings
from recalld.storage.errors import (
    DeadlineExceeded,
    Quarantined,
    RecalldError,
    TooManyRequests,
    Unavailable,
    Unprocessable,
)
from recalld.storage.home import Home

FAST = {"operations_backoff_seconds": 0.05, "operations_backoff_max_seconds": 0.2, "shards": 1}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    running = await opened(tmp_path / "home", **FAST)
    yield running
    await running.close()


async def shard_of(service: MemoryService) -> Shard:
    runtime: Any = service._resolver
    found: Any = await runtime._actors._hosts["shard-0"].ready()
    assert isinstance(found, Shard)
    return found


@contextmanager
def stalled(partition: Any) -> Iterator[None]:
    """The partition's writer busy with something long, as with a compaction."""
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(partition.environment._exclusive, free.wait)
        try:
            yield
        finally:
            free.set()
            running.result()


# -- a busy writer -----------------------------------------------------------------------------------------------------


async def test_a_claim_that_comes_too_late_leaves_the_operation_pending_and_queued(service: MemoryService) -> None:
    await service._dispatcher.stop()
    owner = await shard_of(service)
    owner._queue.closed = False
    await queue(service, "b", item("patient"))
    partition = await owner._of(TENANT, "b")
    with stalled(partition):
        claim = asyncio.create_task(owner.handle(messages.ClaimOperations(1, 0, 0.0, patience=0.1)))
        await asyncio.sleep(0.3)
        assert not claim.done()
    assert await claim == ()
    (claimed,) = await owner.handle(messages.ClaimOperations(1, 0))
    assert claimed.attempts == 1, "the late claim took nothing"


async def test_an_operation_whose_claimer_is_gone_goes_back_soon(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(shard, "KEPT_US", 1_500_000)
    await service._dispatcher.stop()
    owner = await shard_of(service)
    owner._queue.closed = False
    await queue(service, "b", item("kept"))
    (first,) = await owner.handle(messages.ClaimOperations(1, 0))
    for _ in range(6):
        await asyncio.sleep(0.4)
        await owner.handle(messages.KeepOperations((first.id,)))
    assert (await operation(service, "b", first.id))["status"] == "processing"

    async def pending() -> bool:
        return bool((await operation(service, "b", first.id))["status"] == "pending")

    await until(pending)
    (claimed,) = await owner.handle(messages.ClaimOperations(1, 0))
    assert claimed.id == first.id


async def test_the_dispatcher_names_what_it_works_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "KEEP_SECONDS", 0.05)
    monkeypatch.setattr(shard, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(shard, "KEPT_US", 400_000)
    service = await opened(tmp_path / "home", **FAST)
    try:
        real = service._dispatcher._worker
        calls = []

        class Slow:
            async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
                calls.append(message)
                await asyncio.sleep(1.5)
                return await (await real()).call(message, timeout=timeout)

        async def ref() -> Any:
            return Slow()

        service._dispatcher._worker = ref  # type: ignore[method-assign]
        assert (await ended(service, "b", await queue(service, "b", item("slow"))))["status"] == "completed"
        assert len(calls) == 1, "it was not taken back while it ran"
    finally:
        await service.close()


async def test_a_commit_has_the_time_of_its_retain(service: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await shard_of(service)
    seen: list[float] = []
    real = service.shards.__class__.call_named

    async def spy(self: Any, name: str, request: Any, seconds: float = 30.0) -> Any:
        if isinstance(request, messages.CommitRetains):
            seen.append(seconds)
        return await real(self, name, request, seconds)

    monkeypatch.setattr(service.shards.__class__, "call_named", spy)
    await retain(service, "b", "first")
    with stalled(await owner._of(TENANT, "b")):
        waiting = asyncio.create_task(retain(service, "b", "second"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
    await waiting
    assert sorted(await texts(service, "b")) == ["first", "second"]
    limit = service.settings.retain_wall_timeout
    assert all(limit - 60 < one <= limit for one in seen) and len(seen) == 2


async def test_a_busy_shard_keeps_no_lane_from_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recalld.actors import worker

    monkeypatch.setattr(worker, "COMMIT_PATIENCE", 0.05)
    service = await opened(tmp_path / "home", **FAST)
    try:
        owner = await shard_of(service)
        banks = [f"bank{n}" for n in range(12)]
        await retain(service, "bank0", "seed")
        busy = await owner._of(TENANT, "bank0")
        free = next(b for b in banks if service.home.partition_of(TENANT, b) != int(busy.folder.name))
        await retain(service, free, "seed")
        with stalled(busy):
            waiting = [asyncio.create_task(retain(service, "bank0", f"fact {n}")) for n in range(6)]
            for n in range(3):
                await asyncio.sleep(0.1)
                await asyncio.wait_for(retain(service, free, f"fact {n}"), 10)
            assert not any(one.done() for one in waiting)
        await asyncio.gather(*waiting)
    finally:
        await service.close()


# -- what is asked again -----------------------------------------------------------------------------------------------


async def test_what_is_away_is_asked_a_bounded_number_of_times_with_growing_waits() -> None:
    times: list[float] = []

    async def away(left: float) -> None:
        times.append(time.monotonic())
        raise Unavailable("It is away.")

    with pytest.raises(Unavailable):
        await with_patience(away, 60.0, 4)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert len(times) == 4 and gaps[1] > 1.5 * gaps[0] and gaps[2] > 1.5 * gaps[1]


async def test_only_what_may_pass_is_asked_again() -> None:
    for error in (Quarantined(), TooManyRequests(), DeadlineExceeded(), RecalldError()):
        calls = []

        async def refuses(left: float, calls: list[float] = calls, error: RecalldError = error) -> None:
            calls.append(left)
            raise error

        with pytest.raises(type(error)):
            await with_patience(refuses, 60.0, 5)
        assert len(calls) == 1
    with pytest.raises(Unavailable):  # a peer that wants more time than there is
        await asyncio.wait_for(with_patience(_raises(Unavailable("Later.", retry_after=30)), 5.0, 5), 1)


def _raises(error: RecalldError) -> Any:
    async def call(left: float) -> None:
        raise error

    return call


async def test_a_call_that_never_answers_ends_with_its_time() -> None:
    async def hangs(left: float) -> None:
        await asyncio.sleep(60)

    with pytest.raises(DeadlineExceeded):
        await with_patience(hangs, 0.05, 3)


async def test_a_retain_into_a_quarantined_bank_is_refused_at_once(tmp_path: Path) -> None:
    service = await opened(tmp_path / "home", **FAST)
    await retain(service, "b", "seed")
    partition = await (await shard_of(service))._of(TENANT, "b")
    with partition.read(TENANT, "b") as snap:
        number = snap.bank
    await service.close()
    (partition.folder / "deaths.json").write_text(json.dumps({str(number): {"advance": 3}}))
    service = await opened(tmp_path / "home", **FAST)
    try:
        started = time.monotonic()
        with pytest.raises(Quarantined) as caught:
            await retain(service, "b", "more")
        assert time.monotonic() - started < 3
        assert caught.value.retry_after == 60 and caught.value.status == 503
        assert await texts(service, "b") == ["seed"]
    finally:
        await service.close()


# -- a dying encoder ---------------------------------------------------------------------------------------------------


class DyingEncoder:
    """The real Encoder, but for a text under which its process ends; it is back after a moment."""

    name = "encoder-0"

    def __init__(self, real: Any, back_after: float = 0.05) -> None:
        self._real = real
        self._back = 0.0
        self._after = back_after
        self.deaths = 0
        self.hangs = False

    async def call(self, message: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        if time.monotonic() < self._back:
            raise Unavailable("The actor encoder-0 is restarting; try again shortly.")
        if isinstance(message, EmbedTexts) and any("DEADLY" in text for text in message.texts):
            self.deaths += 1
            self._back = time.monotonic() + self._after
            raise Unavailable("The actor encoder-0 is restarting; try again shortly.")
        return await self._real.call(message, timeout=timeout)

    async def alive(self) -> bool:
        return time.monotonic() >= self._back


async def test_a_text_that_ends_the_encoder_fails_alone_after_few_deaths(service: MemoryService) -> None:
    await retain(service, "b", "seed")
    runtime: Any = service._resolver
    worker: Any = await runtime._actors._hosts[composition.WORKER].ready()
    dying = DyingEncoder(worker._encoder._encoder)
    worker._encoder._encoder = dying
    good = [retain(service, "b", f"good {i}") for i in range(8)]
    outcomes = await asyncio.wait_for(
        asyncio.gather(*good[:4], retain(service, "b", "DEADLY words"), *good[4:], return_exceptions=True), 20
    )
    assert [type(one) for one in outcomes].count(Unprocessable) == 1
    assert isinstance(outcomes[4], Unprocessable)
    assert dying.deaths <= 4
    assert sorted(await texts(service, "b")) == sorted(["seed", *(f"good {i}" for i in range(8))])
    wanted = await queue(service, "b", item("DEADLY again"))
    assert (await ended(service, "b", wanted))["status"] == "failed"
    await retain(service, "b", "after")


async def test_an_encoder_that_stays_away_is_an_answer_and_not_a_wait() -> None:
    dying = DyingEncoder(None, back_after=3600)
    client = EncoderClient(dying, back_seconds=0.2)
    with pytest.raises(Unavailable):
        await client.embed([("DEADLY", "", "")])
    started = time.monotonic()
    with pytest.raises(TooManyRequests) as caught:
        await client.embed([("harmless", "", "")])
    assert not isinstance(caught.value, Unavailable), "nobody in the daemon asks again"
    assert time.monotonic() - started < 5
    assert isinstance(await client.embed([]), EmbeddedTexts)


async def test_a_worker_that_does_not_start_is_an_answer_and_its_start_goes_on(tmp_path: Path) -> None:
    class SlowRuntime:
        started = 0

        async def spawn(self, spec: ActorSpec) -> Any:
            self.started += 1
            await asyncio.sleep(0.3)
            return "the worker"

    runtime: Any = SlowRuntime()
    lazy = _LazyWorker(Settings(home=tmp_path / "home"), Home.create(tmp_path / "home", 0, 1), runtime)
    lazy._seconds = 0.05
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="model_init_timeout"):
            await lazy.ref()
    lazy._seconds = 5.0
    found: Any = await lazy.ref()
    assert found == "the worker" and runtime.started == 1

"""The contract on Ray, with one local instance for the module, and what only Ray promises."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from runtime_actors import Big, Die, Echo, Facts, Fail
from runtime_contract import Bench, RuntimeContract, eventually
from runtime_probe import METHODS, OK, UNAUTHENTICATED, UNIMPLEMENTED, grpc_status

from recalld.actors import watcher
from recalld.actors.ray_runtime import RayOptions, RayRuntime
from recalld.actors.runtime import ActorRef, ActorSpec
from recalld.storage.errors import DeadlineExceeded, RecalldError, Unavailable

pytestmark = [pytest.mark.ray, pytest.mark.asyncio(loop_scope="module")]


async def _crash(ref: ActorRef) -> None:
    with pytest.raises(Unavailable):
        await ref.call(Die())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(home: Path) -> AsyncIterator[Bench]:
    runtime = RayRuntime(RayOptions(run_folder=home / "run"))
    await runtime.start()
    yield Bench(runtime, _crash, crosses=True)
    processes, folder = runtime.describe()["processes"], runtime.describe()["folder"]
    started = time.monotonic()
    await runtime.shutdown()
    await runtime.shutdown()
    assert time.monotonic() - started < 5
    assert len(processes) >= 5
    assert not [entry for entry in processes if watcher.alive(entry)]
    assert _folder_facts(folder) == (0, [])
    assert not list((home / "run").iterdir())
    assert "RAY_AUTH_TOKEN" not in os.environ


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ref(bench: Bench) -> ActorRef:
    return await bench.spawn()


class TestRay(RuntimeContract):
    pass


async def test_an_actor_that_does_not_start_in_time_is_a_typed_error_and_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime: RayRuntime = bench.runtime  # type: ignore[assignment]
    monkeypatch.setattr(runtime, "_options", replace(runtime._options, begin_seconds=1.0))
    spec = ActorSpec("sluggish", "runtime_actors:echo", {"start_seconds": 600.0})
    with pytest.raises(DeadlineExceeded, match="sluggish"):
        await runtime.spawn(spec)
    assert "sluggish" not in runtime.describe()["actors"]


async def test_everything_listens_on_loopback_only(bench: Bench, ref: ActorRef) -> None:
    pids = [entry["pid"] for entry in bench.runtime.describe()["processes"]] + [os.getpid()]
    listening = []
    for pid in pids:
        # The record follows the processes: one that an earlier test killed may still stand in it.
        with contextlib.suppress(psutil.NoSuchProcess):
            listening += [
                connection.laddr
                for connection in psutil.Process(pid).net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            ]
    assert listening
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


async def test_only_needed_processes_run_and_they_fit(bench: Bench, ref: ActorRef) -> None:
    roles = sorted(entry["role"] for entry in bench.runtime.describe()["processes"])
    assert [role for role in roles if not role.startswith("actor")] == [
        "DashboardAgent",
        "RuntimeEnvAgent",
        "gcs_server",
        "raylet",
    ]
    runtime_only = sum(
        psutil.Process(entry["pid"]).memory_full_info().pss
        for entry in bench.runtime.describe()["processes"]
        if not entry["role"].startswith("actor")
    )
    assert runtime_only < 250 << 20


async def test_record_is_private_and_follows_a_restart(bench: Bench, home: Path) -> None:
    record = home / "run" / "processes.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    actor = await bench.spawn()
    before = (await actor.call(Facts()))["pid"]
    await _crash(actor)
    after = (await eventually(lambda: actor.call(Facts())))["pid"]
    until = time.monotonic() + 15
    recorded: dict[int, str] = {}
    while recorded.get(after) != f"actor {actor.name}" and time.monotonic() < until:
        await asyncio.sleep(0.1)
        recorded = {entry["pid"]: entry["role"] for entry in json.loads(record.read_text())["processes"]}
    assert recorded[after] == f"actor {actor.name}"
    assert before not in recorded
    await bench.runtime.stop(actor)


async def test_session_folder_is_private_and_its_sockets_have_short_paths(bench: Bench) -> None:
    mode, sockets = _folder_facts(bench.runtime.describe()["folder"])
    assert mode == 0o700
    assert sockets
    assert all(len(os.fsencode(path)) < 107 for path in sockets)


def _folder_facts(folder: str) -> tuple[int, list[Path]]:
    if not Path(folder).exists():
        return 0, []
    sockets = [path for path in Path(folder).rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]
    return stat.S_IMODE(Path(folder).stat().st_mode), sockets


def _log_text(folder: str) -> bytes:
    return b"".join(path.read_bytes() for path in Path(folder).rglob("logs/**/*") if path.is_file())


async def test_no_text_of_a_user_in_rays_logs(bench: Bench, ref: ActorRef) -> None:
    await ref.call(Echo("marker-7f3a passport"))
    with pytest.raises(RecalldError):
        await ref.call(Fail("unexpected"))
    await asyncio.sleep(0.2)
    text = _log_text(bench.runtime.describe()["folder"])
    assert b"marker-7f3a" not in text
    assert b"a secret sentence" not in text
    assert b"actor_handler_failed" in text


async def test_hosted_actor_switches_threads_often(ref: ActorRef) -> None:
    assert (await ref.call(Facts()))["switch"] == pytest.approx(0.0005)


async def test_round_trip_stays_in_the_low_milliseconds(
    ref: ActorRef, record_property: Callable[[str, object], None]
) -> None:
    for name, message, bound in (("empty", Echo(), 4.0), ("20kB", Big(20_000), 5.0), ("500kB", Big(500_000), 15.0)):
        times = []
        for _ in range(150):
            started = time.perf_counter()
            await ref.call(message)
            times.append(time.perf_counter() - started)
        times.sort()
        record_property(name, f"p50 {times[75] * 1e3:.2f} ms")
        assert times[75] * 1e3 < bound


def _listening(pids: list[int]) -> list[tuple[int, int]]:
    """Each process and a port it listens on."""
    return [
        (pid, connection.laddr.port)
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]


async def test_every_port_asks_for_the_token(bench: Bench, ref: ActorRef) -> None:
    """Whoever may call any of them may run code as us: each refuses the methods it serves, and serves at least one."""
    token = (await ref.call(Facts()))["token"]
    roles = {entry["pid"]: entry["role"] for entry in bench.runtime.describe()["processes"]} | {os.getpid(): "daemon"}
    checked = []
    for pid, port in _listening(list(roles)):
        if roles[pid] == "RuntimeEnvAgent":
            assert await asyncio.to_thread(_http_status, port) == 401
        else:
            answers = {method: await asyncio.to_thread(grpc_status, "127.0.0.1", port, method) for method in METHODS}
            assert set(answers.values()) <= {UNAUTHENTICATED, UNIMPLEMENTED}, (roles[pid], answers)
            assert UNAUTHENTICATED in answers.values(), (roles[pid], answers)
            for method, answer in answers.items():
                if answer == UNAUTHENTICATED and "Pull" not in method:
                    wrong = await asyncio.to_thread(grpc_status, "127.0.0.1", port, method, "0" * 64)
                    right = await asyncio.to_thread(grpc_status, "127.0.0.1", port, method, token)
                    assert (wrong, right) == (UNAUTHENTICATED, OK)
        checked.append(roles[pid])
    assert {"daemon", "gcs_server", "raylet", "RuntimeEnvAgent", f"actor {ref.name}"} <= set(checked)


def _http_status(port: int) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/get_or_create_runtime_env", data=b"", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


async def test_no_port_of_another_address_answers(bench: Bench) -> None:
    address = other_address()
    if address is None:
        pytest.skip("this machine has one address only")
    ports = [
        connection.laddr.port
        for entry in bench.runtime.describe()["processes"]
        for connection in psutil.Process(entry["pid"]).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert ports
    for port in ports:
        with socket.socket() as client:
            client.settimeout(1)
            assert client.connect_ex((address, port)) != 0


def other_address() -> str | None:
    """An IPv4 address of this machine that is not loopback."""
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and not address.address.startswith("127."):
                return str(address.address)
    return None

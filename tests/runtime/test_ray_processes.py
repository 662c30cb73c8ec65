"""A daemon with Ray as a process of its own: killed, joined without a token, beside another Ray, and listened to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from test_ray_runtime import other_address
from test_watcher import HERE, Daemon, daemon, entry_of, wait_gone

from recalld.actors import watcher
from recalld.actors.processes import tree

pytestmark = pytest.mark.ray
__all__ = ["daemon"]

# The first thing a driver does: ask the GCS server. `ray.init` itself would try for half a minute.
PROBE = textwrap.dedent(
    """
    import sys
    from ray._raylet import GcsClient
    try:
        print("IN", GcsClient(address=sys.argv[1]).internal_kv_get(b"session_name", b"session", timeout=3))
    except Exception as error:
        print("OUT", type(error).__name__)
    """
)
# A whole driver that would run code in somebody's instance.
DRIVER = textwrap.dedent(
    """
    import sys
    import ray
    ray.init(address=sys.argv[1], namespace="recalld", log_to_driver=False)
    print("IN", ray.get(ray.get_actor("echo", namespace="recalld").ping.remote(), timeout=5))
    """
)


# A gateway on another node: joins by address, starts an actor that stays, leaves; another one finds it.
MEMBER = textwrap.dedent(
    """
    import asyncio, sys
    from recalld.actors.ray_runtime import RayOptions, RayRuntime
    from recalld.actors.runtime import ActorSpec
    from runtime_actors import Ask, Echo

    async def join(spawn):
        runtime = RayRuntime(RayOptions(address=sys.argv[1]))
        await runtime.start()
        if spawn:
            await runtime.spawn(ActorSpec("stays", "runtime_actors:echo"))
        answer = await (await runtime.lookup("stays")).call(Ask("echo", (1, "x")), timeout=10)
        await runtime.shutdown()
        return answer

    print("IN", asyncio.run(join(True)), asyncio.run(join(False)))
    """
)


def intrude(program: str, address: str, home: Path, seconds: float = 30, **environment: str) -> str:
    """The last line a program says that tries to use the instance at `address` with this environment alone."""
    loopback = "0" if address.startswith("127.") else "1"
    base = {"PATH": "/usr/bin:/bin", "HOME": str(home), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": loopback}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, address],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env={**base, "RAY_USAGE_STATS_ENABLED": "0", **environment},
        )
    except subprocess.TimeoutExpired:
        return "OUT still trying"
    said = done.stdout.strip().splitlines()
    return said[-1] if said else f"OUT {done.stderr.strip().splitlines()[-1]}"


@pytest.fixture
def foreign() -> Iterator[subprocess.Popen[str]]:
    """Another Ray instance of the same user, in a program that has nothing to do with us."""
    folder = watcher_folder()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "runtime_foreign.py"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)
    watcher.remove_folder(str(folder))


def watcher_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{watcher.FOLDER_PREFIX}foreign-", dir="/tmp"))


def ask(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_killed_daemon_leaves_no_ray_process_and_another_ray_survives(
    daemon: Callable[..., Daemon], foreign: subprocess.Popen[str]
) -> None:
    one = daemon("ray")
    assert foreign.stdout is not None
    assert int(foreign.stdout.readline()) == 1
    others = [entry_of(process.pid) for process in tree(foreign.pid)]
    assert len(others) > 4
    ours: list[dict[str, Any]] = [*one.facts["processes"], entry_of(one.facts["watcher"])]
    assert {entry["role"] for entry in ours} >= {"gcs_server", "raylet", "actor echo"}
    one.kill9()
    assert wait_gone(ours, 10) < 10
    assert not Path(one.facts["folder"]).exists()
    assert not (one.run / "processes.json").exists()

    two = daemon("ray")
    assert two.facts["seconds"] < 10
    started = time.monotonic()
    assert two.stop() == (b"", b"")
    assert time.monotonic() - started < 5
    assert not [entry for entry in two.facts["processes"] if watcher.alive(entry)]

    assert [entry for entry in others if watcher.alive(entry)] == others
    assert ask(foreign) == 2


def test_runtime_joins_a_cluster_by_address_and_its_actors_stay(daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    # Every node of a cluster finds the factories by itself.
    one = daemon("ray", PYTHONPATH=str(HERE))
    token = one.facts["actor"]["token"]
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "PYTHONPATH": str(HERE)}
    assert intrude(MEMBER, one.facts["address"], tmp_path, **environment) == "IN (1, 'x') (1, 'x')"
    one.stop()


def test_killed_actor_and_raylet_are_gone_too_when_the_daemon_follows(daemon: Callable[..., Daemon]) -> None:
    one = daemon("ray")
    for entry in one.facts["processes"]:
        if entry["role"] in {"raylet", "actor echo"}:
            psutil.Process(entry["pid"]).kill()
    one.kill9()
    wait_gone(one.facts["processes"], 10)


def test_ray_keeps_off_the_terminal_even_when_an_actor_dies(daemon: Callable[..., Daemon]) -> None:
    one = daemon("ray", RUNTIME_DAEMON_CRASHES="1")
    out, err = one.stop()
    # Our own log line about it is the only one.
    assert [line for line in (out + err).splitlines() if b"ray_message" not in line] == []


def test_token_is_random_and_stays_with_rays_processes(daemon: Callable[..., Daemon]) -> None:
    one = daemon("ray")
    first = one.facts["actor"]["token"]
    assert len(first) == 64
    assert one.facts["child_token"] == ""
    assert "RAY_AUTH_TOKEN" not in psutil.Process(one.facts["pid"]).environ()
    assert "RAY_AUTH_TOKEN" not in psutil.Process(one.facts["watcher"]).environ()
    assert first not in (one.run / "processes.json").read_text()
    one.stop()


@pytest.mark.parametrize("place", ["loopback", "other address"])
def test_driver_without_the_token_is_refused(daemon: Callable[..., Daemon], tmp_path: Path, place: str) -> None:
    """From the other address too, with the instance opened to it on purpose: there the token is all that guards it."""
    host = "127.0.0.1" if place == "loopback" else other_address()
    if host is None:
        pytest.skip("this machine has one address only")
    one = daemon("ray", host)
    address, token = one.facts["address"], one.facts["actor"]["token"]
    assert address.startswith(f"{host}:")
    for program in (PROBE, DRIVER) if place == "loopback" else (PROBE,):
        mine = intrude(program, address, tmp_path, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
        assert mine.startswith("IN"), mine
    assert intrude(PROBE, address, tmp_path, RAY_AUTH_MODE="disabled") == "OUT AuthenticationError"
    assert (
        intrude(PROBE, address, tmp_path, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64) == "OUT AuthenticationError"
    )
    without = intrude(DRIVER, address, tmp_path, seconds=4, RAY_AUTH_MODE="disabled")
    assert without.startswith("OUT"), without
    one.stop()

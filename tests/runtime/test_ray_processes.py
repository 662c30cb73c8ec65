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

# A driver that would run code in somebody's instance: says what came of it.
INTRUDER = textwrap.dedent(
    """
    import os, sys
    os.environ.update({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": sys.argv[2], "RAY_py_gcs_connect_timeout_s": "4"})
    os.environ["RAY_gcs_rpc_server_connect_timeout_s"] = "2"
    import ray
    try:
        ray.init(address=sys.argv[1], namespace="recalld", log_to_driver=False)
        print("IN", ray.get(ray.get_actor("echo", namespace="recalld").ping.remote(), timeout=5))
    except BaseException as error:
        print("OUT", type(error).__name__, str(error)[:300].replace(chr(10), " "))
    """
)


def intrude(address: str, home: Path, loopback: bool, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", INTRUDER, address, "0" if loopback else "1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0", **environment},
    )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"OUT {done.stderr[-400:]}"


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


def test_driver_without_the_token_is_refused_from_loopback(daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    one = daemon("ray")
    address, token = one.facts["address"], one.facts["actor"]["token"]
    assert address.startswith("127.0.0.1:")
    mine = intrude(address, tmp_path, True, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    assert mine.startswith("IN"), mine
    without = intrude(address, tmp_path, True, RAY_AUTH_MODE="disabled")
    assert without.startswith("OUT"), without
    wrong = intrude(address, tmp_path, True, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)
    assert wrong.startswith("OUT"), wrong
    one.stop()


def test_driver_without_the_token_is_refused_from_the_other_address(
    daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    """Opened to the network on purpose, so that the token is all that stands between."""
    address = other_address()
    if address is None:
        pytest.skip("this machine has one address only")
    one = daemon("ray", address)
    assert one.facts["address"].startswith(f"{address}:")
    port = one.facts["address"].rpartition(":")[2]
    mine = intrude(
        f"{address}:{port}", tmp_path, False, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=one.facts["actor"]["token"]
    )
    assert mine.startswith("IN"), mine
    without = intrude(f"{address}:{port}", tmp_path, False, RAY_AUTH_MODE="disabled")
    assert without.startswith("OUT"), without
    one.stop()

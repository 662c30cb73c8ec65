"""A daemon in small, for tests that kill one: `python runtime_daemon.py RUN_FOLDER ray|sleep [NODE_IP]`.

Says one line of JSON when it is up, and stops cleanly at end of input. `sleep` starts processes that survive their
parent, as Ray's do not, so that only the watcher can end them.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from recalld.actors.processes import ProcessRecord
from recalld.actors.runtime import ActorSpec
from recalld.actors.watcher import FOLDER_PREFIX

DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"


def say(facts: dict[str, Any]) -> None:
    # Not stdout: that is checked for noise.
    with open(os.environ["RUNTIME_DAEMON_SAYS"], "w", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


async def with_ray(run: Path, node_ip: str) -> None:
    from runtime_actors import Die, Echo, Facts

    from recalld.actors.ray_runtime import RayOptions, RayRuntime
    from recalld.storage.errors import Unavailable

    started = time.monotonic()
    runtime = RayRuntime(RayOptions(run_folder=run, node_ip_address=node_ip))
    await runtime.start()
    ref = await runtime.spawn(ActorSpec("echo", "runtime_actors:echo"))
    assert await ref.call(Echo(1)) == 1
    seconds = time.monotonic() - started
    if os.environ.get("RUNTIME_DAEMON_CRASHES"):
        try:
            await ref.call(Die())
        except Unavailable:
            await asyncio.sleep(2)
    facts = await ref.call(Facts())
    # Read, to show what any later child of ours would inherit.
    inherits = await asyncio.to_thread(subprocess.getoutput, "printenv RAY_AUTH_TOKEN")
    say({"pid": os.getpid(), "seconds": seconds, "child_token": inherits, "actor": facts, **runtime.describe()})
    await asyncio.to_thread(sys.stdin.read)
    await runtime.shutdown()


def with_sleepers(run: Path) -> None:
    record = ProcessRecord(run)
    ended = record.recover()
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    (folder / "sockets").mkdir()
    (folder / "sockets" / "file").write_text("x")
    record.add_folder(folder)
    record.start_watcher()
    # What outlives us must not hold our output open, or whoever reads that waits for it.
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    soft = subprocess.Popen(["sleep", "300"], **quiet)
    deaf = subprocess.Popen(
        [sys.executable, "-c", DEAF], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert deaf.stdout is not None
    deaf.stdout.readline()
    foreign = subprocess.Popen(["sleep", "300"], start_new_session=True, **quiet)
    record.refresh([soft.pid, deaf.pid])
    say(
        {
            "pid": os.getpid(),
            "processes": record.processes,
            "foreign": foreign.pid,
            "folder": str(folder),
            "watcher": record.watcher_pid,
            "ended": ended,
        }
    )
    sys.stdin.read()
    record.close()


if __name__ == "__main__":
    if sys.argv[2] == "ray":
        asyncio.run(with_ray(Path(sys.argv[1]), sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"))
    else:
        with_sleepers(Path(sys.argv[1]))

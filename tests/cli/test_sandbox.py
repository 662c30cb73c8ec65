"""A sandbox leaves nothing behind: no process and no folder, however the program that uses it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = """
import asyncio, json, sys
from recalld.daemon.sandbox import sandbox
async def main():
    async with sandbox({"runtime": "inline"}) as daemon:
        print(json.dumps({"pid": daemon.pid, "home": str(daemon.home)}), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_daemon_outlives_its_program(how: signal.Signals) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert program.stdout is not None
        facts = json.loads(program.stdout.readline())
        daemon = psutil.Process(facts["pid"])
        os.kill(program.pid, how)
        program.wait(20)
        end = time.monotonic() + 10
        while daemon.is_running() and daemon.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
            time.sleep(0.05)
        assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE
        if how is not signal.SIGKILL:
            assert not Path(facts["home"]).exists()
    finally:
        program.kill()
        program.wait()

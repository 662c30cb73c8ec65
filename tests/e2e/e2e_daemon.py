"""A daemon as a user starts it, `recalld serve` in a process of its own, and a plain client that talks to it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil

from recalld.daemon.owner import find_owner

START_SECONDS = 90.0
STOP_SECONDS = 15.0
COMMAND = [sys.executable, "-m", "recalld.daemon"]


def environment() -> dict[str, str]:
    """This process's environment without settings that could reach the daemon."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("RECALLD_", "HINDSIGHT_API_"))}


def command(*arguments: object, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run `recalld` with these arguments to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=environment(),
    )


@dataclass(frozen=True)
class Answer:
    """Status, parsed body and headers of one answer."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def detail(self) -> Any:
        return self.body["detail"]


class Wire:
    """HTTP with a daemon. Every call has a connection of its own, so threads may share one `Wire`."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def send(self, method: str, path: str, body: Any = None, *, seconds: float = 60.0) -> Answer:
        """`body` is sent as it is when it is bytes, as JSON otherwise."""
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        try:
            headers = {"Content-Type": "application/json"} if payload is not None else {}
            connection.request(method, path, body=payload, headers=headers)
            response = connection.getresponse()
            raw = response.read()
            kind = response.headers.get_content_type()
            return Answer(
                response.status, json.loads(raw) if kind == "application/json" else raw, dict(response.headers)
            )
        finally:
            connection.close()

    def bank(self, bank_id: str) -> Bank:
        return Bank(self, bank_id)


class Bank:
    """One bank over the wire."""

    def __init__(self, wire: Wire, bank_id: str) -> None:
        self.wire = wire
        self.id = bank_id
        self.path = "/v1/default/banks/" + quote(bank_id, safe="")

    def send(self, method: str, tail: str = "", body: Any = None, **query: Any) -> Answer:
        suffix = "?" + urlencode(query, doseq=True) if query else ""
        return self.wire.send(method, self.path + tail + suffix, body)

    def post_items(self, *items: Any, **fields: Any) -> Answer:
        body = {"items": [one if isinstance(one, dict) else {"content": one} for one in items], **fields}
        return self.send("POST", "/memories", body)

    def retain(self, *items: Any, **fields: Any) -> dict[str, Any]:
        """Retain and insist on success."""
        answer = self.post_items(*items, **fields)
        assert answer.status == 200, answer.body
        body: dict[str, Any] = answer.body
        return body

    def post_recall(self, query: str, **fields: Any) -> Answer:
        return self.send("POST", "/memories/recall", {"query": query, **fields})

    def recall(self, query: str, **fields: Any) -> dict[str, Any]:
        """Recall and insist on success."""
        answer = self.post_recall(query, **fields)
        assert answer.status == 200, answer.body
        body: dict[str, Any] = answer.body
        return body

    def texts(self, query: str, **fields: Any) -> list[str]:
        return [one["text"] for one in self.recall(query, **fields)["results"]]

    def get(self, tail: str, **query: Any) -> Any:
        answer = self.send("GET", tail, **query)
        assert answer.status == 200, answer.body
        return answer.body

    def list(self, **query: Any) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get("/memories/list", **query)["items"]
        return items

    def usable(self, canary: str = "The lighthouse keeper is called Tobias Grinde.") -> None:
        """A new memory goes in and comes out first: whatever was sent before broke nothing."""
        self.retain(canary)
        assert self.texts("What is the name of the lighthouse keeper?")[0] == canary

    def wait_for(self, operation_id: str, seconds: float = 30.0) -> dict[str, Any]:
        """The operation once it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            operation: dict[str, Any] = self.get(f"/operations/{operation_id}")
            if operation["status"] not in ("pending", "processing"):
                return operation
            time.sleep(0.03)
        raise AssertionError(f"the operation did not end: {operation}")


class Daemon:
    """A running `recalld serve`."""

    def __init__(self, home: Path, runtime: str, *arguments: str) -> None:
        self.home = home
        self.runtime = runtime
        self.log = home.with_name(home.name + ".log")
        line = [*COMMAND, "serve", "--home", str(home), "--port", "0", "--runtime", runtime, *arguments]
        with self.log.open("wb") as out:
            # A session of its own: what a terminal sends to the test run is not sent to it.
            self.process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment(), start_new_session=True
            )
        try:
            self.wire = self._wait()
        except BaseException:
            self.process.kill()
            raise

    def _wait(self) -> Wire:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.printed}"
            owner = find_owner(self.home)
            if owner is not None and owner.pid == self.process.pid:
                wire = Wire(owner.host, owner.port)
                if wire.send("GET", "/health").status == 200 and "Ready." in self.printed:
                    return wire
            time.sleep(0.03)
        raise AssertionError(f"the daemon was not ready in {START_SECONDS} s:\n{self.printed}")

    @property
    def printed(self) -> str:
        """All it wrote on standard output and standard error."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    @property
    def url(self) -> str:
        return self.wire.url

    def tree(self) -> list[psutil.Process]:
        """The daemon's process and all below it."""
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def interrupt(self, number: int) -> float:
        """Send a signal; the seconds until the process has ended."""
        begun = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(STOP_SECONDS)
        return time.monotonic() - begun

    def end(self) -> None:
        """End it, whatever it takes. psutil compares start times, so a reused pid is safe."""
        if self.process.poll() is not None:
            return
        below = self.tree()[1:]
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for process in below:
            try:
                process.kill()
            except psutil.Error:
                continue

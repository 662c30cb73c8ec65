"""Fixtures of the end-to-end tests: one daemon a runtime for the whole session, started when first asked for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from e2e_daemon import Bank, Daemon
from hindsight_client import Hindsight
from official_client import LIBRARY

_count = itertools.count(1)


_shared: list[Daemon] = []


@pytest.fixture(scope="session", params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp(f"e2e-{request.param}") / "home", request.param)
    _shared.append(running)
    try:
        yield running
    finally:
        running.end()


EDGE = {"test_bad_input.py", "test_files.py", "test_recall_semantics.py"}
"""What these promise is decided before an actor is asked, or inside one: with Ray they run in the soak."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in EDGE and item.get_closest_marker("ray") is not None:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """End the shared daemons behind the last test that needs one: what is tested after these wants the machine."""
    yield
    here, items = Path(__file__).parent, item.session.items
    later = (one for one in items[items.index(item) + 1 :] if here in one.path.parents)
    if not any("daemon" in getattr(one, "fixturenames", ()) for one in later):
        while _shared:
            _shared.pop().end()


@pytest.fixture
def bank(daemon: Daemon, request: pytest.FixtureRequest) -> Bank:
    """A bank nobody else uses; it comes into being with the first write."""
    return daemon.wire.bank(name_of(request))


def name_of(request: pytest.FixtureRequest) -> str:
    return f"{re.sub(r'[^a-z]+', '-', request.node.originalname.lower())[:60]}-{next(_count)}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a daemon of the test's own; it is ended with the test."""
    running: list[Daemon] = []

    def make(runtime: str, *arguments: str, home: Path | None = None) -> Daemon:
        running.append(Daemon(home or tmp_path / f"home-{len(running)}", runtime, *arguments))
        return running[-1]

    yield make
    for one in running:
        one.end()


@pytest.fixture(scope="session")
def library(daemon: Daemon) -> Bank:
    """A bank with seven memories that tests only read."""
    bank = daemon.wire.bank("library")
    with Hindsight(base_url=daemon.url) as client:
        kept = client.retain_batch(bank.id, LIBRARY)
        assert (kept.items_count, kept.var_async, kept.operation_id) == (7, False, None)
    return bank

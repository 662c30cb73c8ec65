"""Rows of public faults, replayed over HTTP at one daemon a module, and a model that says what a test wants."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from e2e_daemon import Bank, Daemon
from scripted_server import Model

_count = itertools.count(1)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp("cases") / "home", "inline")
    yield running
    running.end()


@pytest.fixture
def bank(daemon: Daemon) -> Bank:
    return daemon.wire.bank(f"case-{next(_count)}")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.close()


@pytest.fixture(scope="module")
def reading(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose texts are read by `model`."""
    folder = tmp_path_factory.mktemp("reading")
    settings = folder / "recalld.toml"
    settings.write_text(
        f'[llm]\nprovider = "openai"\napi_key = "k"\nmodel = "m"\nbase_url = "{model.url}"\ninitial_backoff = 0.01\n'
    )
    running = Daemon(folder / "home", "inline", "--config", str(settings))
    yield running
    running.end()


@pytest.fixture
def read_bank(reading: Daemon) -> Bank:
    return reading.wire.bank(f"case-{next(_count)}")

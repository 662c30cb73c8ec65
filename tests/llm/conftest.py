"""Stages for every provider."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from .small_model import SmallModel, WrongProcessor, missing, small_model
from .stages import Stage, off_stage, on_stage

HTTP = ["openai", "anthropic", "gemini"]
WITHOUT_LITELLM = importlib.util.find_spec("litellm") is None
LITELLM = pytest.param("litellm", marks=pytest.mark.skipif(WITHOUT_LITELLM, reason="the extra litellm is not here"))


@pytest.fixture(params=[*HTTP, LITELLM, "scripted"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """Every provider."""
    made = await on_stage(request.param)
    yield made
    await off_stage(made)


@pytest.fixture(params=HTTP)
async def http_stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """The providers that cross a wire of which the body can be looked at."""
    made = await on_stage(request.param)
    yield made
    await off_stage(made)


@pytest.fixture
async def openai_stage() -> AsyncIterator[Stage]:
    made = await on_stage("openai")
    yield made
    await off_stage(made)


@pytest.fixture(scope="session")
def small_llm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallModel]:
    """A real small model behind a real compatible server, one for the session."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:
        try:
            made = stack.enter_context(small_model(tmp_path_factory.mktemp("small-model") / "server.log"))
        except WrongProcessor:
            pytest.skip("the small model's server is built for another processor")
        yield made

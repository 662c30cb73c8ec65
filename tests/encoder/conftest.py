"""One loaded default model for all encoder tests: loading takes a quarter of a second."""

from __future__ import annotations

import pytest

from recalld.actors.embedding import Embedder
from recalld.actors.models import find_model


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder(find_model(), device="cpu")


@pytest.fixture(scope="session")
def dated_embedder() -> Embedder:
    return Embedder(find_model(), device="cpu", date_suffix=True)

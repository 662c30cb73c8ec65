"""Short ways to say what goes into the extractor and what comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recalld.actors.retain.extraction import ExtractionInput, Reading
from recalld.actors.retain.local_extractor import LocalExtractor

ANCHOR = 1_780_000_000_000_000
Read = Callable[..., Reading]


@pytest.fixture(scope="session")
def read() -> Read:
    """`read(text, context=..., speaker_hint=...)` gives the reading of one chunk."""
    extractor = LocalExtractor()

    def _read(text: str, **fields: object) -> Reading:
        return extractor.read(ExtractionInput(text, **{"mentioned_at": ANCHOR, **fields}))  # type: ignore[arg-type]

    return _read

"""An answer put together from memories, without a language model. Pure.

    extract = answer("When did Ana move to Lyon?", results, asked_at=now)
    extract.text        # "On 12 May 2026: Ana moved to Lyon on 12 May 2026. (memory 1f0c...)"
    extract.found       # False: "Not found in memory."

`results` are those of a recall, best first, with their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Extract:
    """An extractive answer. `kind` is what the question was taken for; `cited` are ids of units, in order of use."""

    text: str
    kind: str
    found: bool
    certainty: str
    cited: tuple[str, ...] = ()
    signals: dict[str, float] = field(default_factory=dict)


def answer(
    query: str, results: Sequence[dict[str, Any]], *, asked_at: int, utc_offset: int = 0, max_tokens: int = 4096
) -> Extract:
    """A short answer to a question. Without a result good enough it says that it was not found."""
    raise NotImplementedError


def page(query: str, results: Sequence[dict[str, Any]], *, asked_at: int, max_tokens: int = 2048) -> Extract:
    """A page of markdown on a question: what the memories say of it, grouped and dated."""
    raise NotImplementedError

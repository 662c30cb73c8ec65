"""Where an unexpected exception came from, fit for a log: its type and frames, never its message.

A message may quote a user's text (a name, a question, a value that could not be read); frames hold our code alone.
"""

from __future__ import annotations

import traceback

LINKS = 5
FRAMES = 12


def origin(error: BaseException) -> str:
    """Types and frames of an exception and of those that led to it, the exception itself first."""
    chain: list[str] = []
    link: BaseException | None = error
    while link is not None and len(chain) < LINKS:
        frames = "".join(traceback.format_tb(link.__traceback__, limit=-FRAMES))
        chain.append(f"{type(link).__module__}.{type(link).__qualname__}\n{frames}")
        link = link.__cause__ or link.__context__
    return "caused by\n".join(chain)

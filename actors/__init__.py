"""Who does the work, and the messages between them.

The public names are loaded when first used, so that importing one module of the folder does not load all of them.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ActorSpec": "runtime",
    "Directory": "directory",
    "Embedder": "embedding",
    "Encoder": "encoder",
    "InlineRuntime": "inline_runtime",
    "RayRuntime": "ray_runtime",
    "Runtime": "runtime",
    "Shard": "shard",
    "Worker": "worker",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

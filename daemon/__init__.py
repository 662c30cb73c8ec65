"""Everything a person, a client or an operator touches.

The public names are loaded when first used: `recalld --help` must not load a model's runtime.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "MemoryService": "service",
    "Settings": "settings_table",
    "build_app": "app",
    "load": "settings",
    "open_service": "lifecycle",
    "run_daemon": "lifecycle",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

"""From settings to the numbers the recall engine ranks by."""

from __future__ import annotations

from typing import Any

from recalld.actors.recall.settings import RankWeights, RecallSettings
from recalld.daemon.settings_table import SETTINGS, Settings


def recall_settings(settings: Settings) -> RecallSettings:
    """The engine's numbers as the server's settings give them."""
    flat: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for row in SETTINGS:
        if row.engine:
            section, _, name = row.engine.rpartition(".")
            (weights if section else flat)[name] = getattr(settings, row.attribute)
    return RecallSettings(**flat, weights=RankWeights(**weights))

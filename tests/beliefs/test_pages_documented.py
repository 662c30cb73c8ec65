"""The examples of docs/pages.md are what recalld does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from recalld.actors.pages import outcomes
from recalld.actors.pages.blocks import OPERATIONS
from recalld.daemon.settings_table import BY_NAME
from recalld.daemon.wire.pages import MentalModelTrigger

from .conftest import Wire

PAGE = (Path(__file__).parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


async def test_the_bodies_of_the_page_are_taken(wire: Wire) -> None:
    model, directive = map(json.loads, blocks("json"))
    await wire.retain("Ana lives in Lyon.")
    await wire.ok("POST", "/mental-models", model, wait="20")
    assert "Ana lives in Lyon." in (await wire.ok("GET", "/mental-models/ana"))["content"]
    assert (await wire.ok("POST", "/directives", directive))["priority"] == 5


def test_the_edits_of_the_page_do_that() -> None:
    exec(blocks("python")[0], {})


def test_every_operation_outcome_field_and_setting_is_named_and_exists() -> None:
    assert [name for name in OPERATIONS if f"`{name}`" not in PAGE] == []
    named = {value for name, value in vars(outcomes).items() if name.isupper() and isinstance(value, str)}
    rows = {row for row in re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE)}
    assert {one for one in named if one.startswith(("content_", "refresh_failed_"))} <= rows
    assert {row for row in rows if row not in named} <= set(MentalModelTrigger.model_fields)
    assert {name for name in re.findall(r"`(pages\.[a-z_]+)`", PAGE)} <= set(BY_NAME)

"""What docs/mcp.md shows can be used as it stands."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recalld.daemon.mcp import catalog, extras
from recalld.daemon.settings_table import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def entries(value: Any) -> list[dict[str, Any]]:
    """Descriptions of a server, wherever a client has them."""
    if not isinstance(value, dict):
        return []
    own = [value] if {"command", "url", "httpUrl"} & set(value) else []
    return own + [one for inner in value.values() for one in entries(inner)]


def test_every_snippet_is_whole_and_names_our_program_or_our_path() -> None:
    found = [json.loads(block) for block in blocks("json")] + [tomllib.loads(block) for block in blocks("toml")]
    assert len(found) >= 8
    for snippet in found:
        (entry,) = entries(snippet)
        if "command" in entry:
            command = entry["command"]
            words = command if isinstance(command, list) else [command, *entry["args"]]
            assert words[:2] == ["recalld", "mcp"]
        else:
            assert urlsplit(entry.get("url") or entry["httpUrl"]).path == "/mcp/notes/"


def test_the_python_of_the_page_is_python() -> None:
    for block in blocks("python"):
        ast.parse(block)


def test_figures_and_names_of_the_page_are_the_codes() -> None:
    assert f"There are {len(catalog.TOOLS)}\n" in PAGE
    assert f"there are {sum(not tool.multi_only for tool in catalog.TOOLS)}:" in PAGE
    for one in extras.READABLE:
        assert one.uri in PAGE
    for prompt in extras.PROMPTS:
        assert prompt.name in PAGE
    for row in SETTINGS:
        if row.name.startswith("mcp."):
            assert f"`{row.name}`" in PAGE, row.name

"""The examples of docs/trust.md and docs/files.md are what recalld does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from recalld.actors.files import formats
from recalld.actors.trust import personal, secrets
from recalld.actors.trust.instructions import SOURCE_LEVELS
from recalld.actors.trust.redaction import POLICIES
from recalld.daemon.settings_table import BY_NAME

from .conftest import Bank

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


async def test_the_item_of_the_page_is_taken(bank: Bank) -> None:
    (item,) = json.loads(blocks("trust.md", "json")[0])["items"]
    await bank.retain(item)
    (unit,) = (await bank.recall("shipping"))["results"]
    assert unit["trust"] == "untrusted"


def test_the_fence_of_the_page_holds() -> None:
    exec(blocks("trust.md", "python")[0], {})


def test_the_page_names_every_policy_level_and_kind() -> None:
    page = (DOCS / "trust.md").read_text(encoding="utf-8")
    for policy in POLICIES:
        assert f"| `{policy}` |" in page
    assert " | ".join(f'"{level}"' for level in SOURCE_LEVELS) in page
    source = Path(secrets.__file__).read_text() + Path(personal.__file__).read_text()
    kinds = set(re.findall(r'^\s+\("([a-z_]+)", "[^"]+", rf?"', source, re.MULTILINE))
    kinds |= set(re.findall(r'Finding\(.*, "([a-z_]+)"\)', source)) | {"private_key"}
    assert len(kinds) > 18
    assert [kind for kind in sorted(kinds) if f"`{kind}`" not in page] == []


def test_the_files_page_names_settings_and_formats_that_exist() -> None:
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(files\.[a-z_]+)`", page))
    assert named
    assert {name for name in BY_NAME if name.startswith("files.")} - named == {"files.parser", "files.convert_at_once"}
    for kind in formats.BY_LIBRARY:
        assert kind.upper() in page

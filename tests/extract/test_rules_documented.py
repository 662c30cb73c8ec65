"""The examples of docs/rules.md are what the extractor does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from recalld.storage.records import NETWORK_NAMES

from .conftest import Read

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
_BLOCK = re.search(r"```json facts\n(.*?)```", PAGE, re.DOTALL)
assert _BLOCK is not None
EXAMPLES = json.loads(_BLOCK[1])


@pytest.mark.parametrize(("text", "fields"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_an_example_of_the_page_gives_the_fields_it_says(read: Read, text: str, fields: dict[str, object]) -> None:
    fact = read(text).facts[-1]
    for name, wanted in fields.items():
        got = getattr(fact, name)
        got = NETWORK_NAMES[got] if name == "network" else [list(p) for p in got] if name == "aliases" else got
        assert got == wanted, name

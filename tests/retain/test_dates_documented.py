"""The examples of docs/dates.md are what retain does."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from recalld.actors import dateranges as r
from recalld.actors.retain.dating import dated

PAGE = Path(__file__).parents[2] / "docs" / "dates.md"


def test_every_example_of_the_page_holds() -> None:
    anchor = (datetime(2026, 5, 13, 19, 17) - r.EPOCH) // timedelta(microseconds=1)  # noqa: DTZ001
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    examples = [row for row in rows if row != ("said", "stored")]
    assert len(examples) > 15
    for said, stored in examples:
        assert dated(said, anchor).text == stored

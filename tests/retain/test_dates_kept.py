"""Times from the item to the answer: zones, anchors, order, windows of a recall, recency. The real service, always."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.daemon.lifecycle import open_service
from recalld.daemon.settings_table import Settings

from .conftest import Bank


@pytest.fixture
async def bank(tmp_path: Path) -> AsyncIterator[Bank]:
    home = tmp_path / "home"
    opened = await open_service(replace(Settings(), home=home, runtime="inline", extraction_provider="local"))
    yield Bank(opened, "b")
    await opened.close()


async def memories(bank: Bank, **filters: Any) -> list[dict[str, Any]]:
    answer = await bank.service.list_memories("default", bank.id, MemoryFilters(**filters))
    items: list[dict[str, Any]] = answer["items"]
    return items


async def only(bank: Bank, content: str, **fields: Any) -> dict[str, Any]:
    """The one memory a text becomes."""
    (row,) = await bank.retain({"content": content, **fields})
    (unit_id,) = row["unit_ids"]
    return {**row, **(await bank.service.get_memory("default", bank.id, unit_id))}


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


async def test_a_bare_number_opens_no_window_beside_a_date(bank: Bank) -> None:
    await bank.retain({"content": "Ana runs the cache on port 9077.", "timestamp": "2026-06-16T10:00:00Z"})
    now = micros("2026-06-17T15:00:00+00:00")
    answer = await bank.recall("what runs on port 9077 since last Tuesday", query_timestamp=now, trace=True)
    first, last = answer["trace"]["query"]["temporal_constraint"]
    assert first.startswith("2026-06-16T00:00") and last.startswith("2026-06-17T23:59")
    assert (await bank.recall("what runs on port 9077", query_timestamp=now, trace=True))["trace"]["query"][
        "temporal_constraint"
    ] is None


async def test_small_words_are_no_weekdays(bank: Bank) -> None:
    await bank.retain({"content": "We decided to ship.", "timestamp": "2026-06-10T10:00:00Z"})
    now = micros("2026-09-01T15:00:00+00:00")
    answer = await bank.recall("what did we decide on 10 June 2026", query_timestamp=now, trace=True)
    first, last = answer["trace"]["query"]["temporal_constraint"]
    assert first.startswith("2026-06-10T00:00") and last.startswith("2026-06-10T23:59")


async def test_an_evening_in_the_callers_zone_stays_an_evening(bank: Bank) -> None:
    memory = await only(bank, "Ana started dinner now", timestamp="2026-06-12T19:17:00+08:00")
    assert memory["text"] == "Ana started dinner on the evening of 12 June 2026"
    assert memory["mentioned_at"].startswith("2026-06-12T11:17:00")
    assert memory["occurred_start"].startswith("2026-06-12T11:17:00")


async def test_instants_are_compared_not_their_spelling(bank: Bank) -> None:
    await bank.retain({"content": "The pump failed.", "timestamp": "2026-07-25T02:00:00Z"})
    border = micros("2026-07-25T01:00:00-01:00")  # the same instant, which an exclusive end leaves out
    assert await memories(bank, time_field="mentioned_at", end=border) == []
    assert len(await memories(bank, time_field="mentioned_at", end=border + 1)) == 1
    assert len(await memories(bank, time_field="mentioned_at", start=border)) == 1


async def test_last_week_is_read_from_the_timestamp_or_from_an_assumed_one(bank: Bank) -> None:
    dated = await only(bank, "Last week the pump failed", timestamp="2026-05-13")
    assert dated["text"] == "In the week of 4 to 10 May 2026 the pump failed"
    assert (dated["occurred_start"][:10], dated["occurred_end"][:10]) == ("2026-05-04", "2026-05-10")
    assert "time_assumed" not in dated
    assumed = await only(bank, "Last week the valve failed")
    monday = datetime.now(UTC) - timedelta(days=7)
    monday -= timedelta(days=monday.weekday())
    assert "time_assumed" in assumed
    assert abs((datetime.fromisoformat(assumed["occurred_start"]) - monday).days) <= 1


async def test_six_hundred_lines_of_one_moment_keep_order_and_time(bank: Bank) -> None:
    lines = "\n".join(f"Ana: Crate {n} holds {n + 3} red bolts." for n in range(600))
    await bank.retain({"content": lines, "timestamp": "2026-05-13T10:00:00Z", "document_id": "d"})
    kept = [memory for page in range(6) for memory in await memories(bank, limit=100, offset=100 * page)]
    moments = [datetime.fromisoformat(memory["mentioned_at"]) for memory in kept]
    assert len(kept) == 600 and max(moments) - min(moments) < timedelta(seconds=10)
    chunks = await bank.service.get_document("default", bank.id, "d")
    assert chunks["original_text"] == lines
    by_place = sorted(kept, key=lambda memory: int(memory["text"].split("Crate ")[1].split()[0]))
    numbers = [memory["date"] for memory in by_place]
    assert numbers == sorted(numbers)


async def test_recency_is_measured_from_the_time_asked_for(bank: Bank) -> None:
    await bank.retain({"content": "Ana keeps bees in Lyon.", "timestamp": "2025-05-10T10:00:00Z"})
    near = await bank.recall("Ana bees", query_timestamp=micros("2025-05-13T10:00:00+00:00"))
    far = await bank.recall("Ana bees", query_timestamp=micros("2026-05-13T10:00:00+00:00"))
    assert near["results"][0]["scores"]["final"] > far["results"][0]["scores"]["final"]


@pytest.mark.parametrize(
    ("stamp", "instant"),
    [
        ("2026-03-29T02:30:00[Europe/Berlin]", "2026-03-29T01:30:00"),  # skipped: as far behind the jump
        ("2026-10-25T02:30:00[Europe/Berlin]", "2026-10-25T00:30:00"),  # twice: the first
        ("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00"),  # an offset settles which
    ],
)
async def test_a_wall_time_that_is_skipped_or_twice_has_one_instant(bank: Bank, stamp: str, instant: str) -> None:
    memory = await only(bank, "Backup ran at 2:30", timestamp=stamp)
    assert memory["mentioned_at"].startswith(instant)


AMBIGUOUS = {
    # Sunday 15 February, Friday 13 March and Saturday 31 January 2026.
    ("Rent is due the 31st.", "2026-02-15"): ("Rent is due 31 March 2026.", "2026-03-31", "2026-03-31"),
    ("Rent was paid on the 31st.", "2026-02-15"): ("Rent was paid on 31 January 2026.", "2026-01-31", "2026-01-31"),
    ("Ana flies next Friday.", "2026-02-15"): ("Ana flies on Friday 20 February 2026.", "2026-02-20", "2026-02-20"),
    ("Ana flies next Friday.", "2026-03-13"): ("Ana flies on Friday 20 March 2026.", "2026-03-20", "2026-03-20"),
    ("Ana flies next Friday.", "2026-01-31"): ("Ana flies on Friday 6 February 2026.", "2026-02-06", "2026-02-06"),
    ("It rains this weekend.", "2026-02-15"): (
        "It rains on the weekend of 14 and 15 February 2026.",
        "2026-02-14",
        "2026-02-15",
    ),
    ("It rains this weekend.", "2026-03-13"): (
        "It rains on the weekend of 14 and 15 March 2026.",
        "2026-03-14",
        "2026-03-15",
    ),
    ("The report is due by the end of the month.", "2026-02-15"): (
        "The report is due by the end of February 2026.",
        "2026-02-22",
        "2026-02-28",
    ),
    ("The report is due by the end of the month.", "2026-01-31"): (
        "The report is due by the end of January 2026.",
        "2026-01-25",
        "2026-01-31",
    ),
}


async def test_ambiguous_words_have_one_stated_reading_each(bank: Bank) -> None:
    for (text, when), expected in AMBIGUOUS.items():
        memory = await only(bank, text, timestamp=when, document_id=f"{text} {when}")
        assert (memory["text"], memory["occurred_start"][:10], memory["occurred_end"][:10]) == expected


async def test_a_far_past_dates_nothing_and_breaks_nothing(bank: Bank) -> None:
    memory = await only(bank, "这种鸟十万年前就有了", timestamp="2026-05-13")
    assert memory["text"] == "这种鸟十万年前就有了" and memory["occurred_start"] is None
    answer = await bank.recall("这种鸟十万年前就有了吗", trace=True)
    assert answer["results"] and answer["trace"]["query"]["temporal_constraint"] is None


async def test_verbatim_text_stays_and_only_its_fields_carry_the_range(bank: Bank) -> None:
    await bank.service.patch_config("default", bank.id, {"retain_extraction_mode": "verbatim"})
    memory = await only(bank, "Last week the pump failed.", timestamp="2026-05-13")
    assert memory["text"] == "Last week the pump failed."
    assert (memory["occurred_start"][:10], memory["occurred_end"][:10]) == ("2026-05-04", "2026-05-10")


async def test_an_undated_item_takes_no_day_from_the_server(bank: Bank) -> None:
    relative = await only(bank, "Last week the pump failed.", timestamp="unset")
    assert relative["text"] == "Last week the pump failed." and relative["occurred_start"] is None
    absolute = await only(bank, "The valve failed on 3 May 2024.", timestamp="unset")
    assert absolute["occurred_start"].startswith("2024-05-03") and absolute["mentioned_at"] is None


async def test_a_chunk_kept_whole_carries_its_range_in_the_fields(bank: Bank) -> None:
    await bank.service.patch_config("default", bank.id, {"retain_extraction_mode": "chunks"})
    memory = await only(bank, "Last week the pump failed.", timestamp="2026-05-13")
    assert memory["text"] == "Last week the pump failed." and memory["occurred_start"][:10] == "2026-05-04"


async def test_the_chunk_keeps_the_words_that_were_said(bank: Bank) -> None:
    await bank.retain({"content": "Last week the pump failed.", "timestamp": "2026-05-13", "document_id": "d"})
    assert (await bank.document("d"))["original_text"] == "Last week the pump failed."
    answer = await bank.recall("pump", chunk_tokens=100)
    assert [chunk["text"] for chunk in answer["chunks"].values()] == ["Last week the pump failed."]


async def test_a_broken_date_parser_shows_in_the_receipt(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    import dateparser.search

    monkeypatch.setattr(dateparser.search, "search_dates", lambda *_, **__: [("вчера",)])
    (row,) = await bank.retain({"content": "Насос сломался вчера."})
    assert len(row["unit_ids"]) == 1
    assert {"reason": "unread date", "pieces": 1, "characters": 0} in row["dropped"]


SAID = [
    ("Last week the pump failed.", "2026-05-13T23:30:00-07:00"),
    ("Yesterday we sailed.", "2026-01-01T00:15:00+13:00"),
    ("I'll see her next Friday.", "2026-02-28T12:00:00Z"),
    ("This morning it rained.", "2026-06-12T19:17:00+08:00"),
    ("Ana started dinner now", "2026-06-12T19:17:00+08:00"),
    ("We moved two years ago.", "2026-12-31T23:59:00-10:00"),
    ("上周的稿子", "2026-10-01T00:30:00+08:00"),
    ("先週ポンプが壊れた", "2026-10-01T00:30:00+09:00"),
    ("Ayer fui al médico.", "2026-10-01T00:30:00+02:00"),
    ("Gestern war ich beim Arzt.", "2026-10-01T00:30:00+02:00"),
    ("Мы встретились вчера.", "2026-10-01T00:30:00+03:00"),
    ("Backup ran today.", "2026-03-29T02:30:00[Europe/Berlin]"),
]
READ = """
import json, sys
from recalld.actors.retain.items import RetainItem
from recalld.actors.retain.dating import dated
for text, stamp in json.loads(sys.argv[1]):
    item = RetainItem.parse({"content": text, "timestamp": stamp})
    read = dated(text, item.timestamp, item.utc_offset_minutes)
    print(json.dumps([text, read.text, read.start, read.end]))
"""


def test_the_servers_own_zone_changes_no_instant() -> None:
    seen = {}
    for zone in ("Pacific/Kiritimati", "Pacific/Midway"):
        done = subprocess.run(
            [sys.executable, "-c", READ, json.dumps(SAID)],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        seen[zone] = [json.loads(line) for line in done.stdout.splitlines()]
    assert seen["Pacific/Kiritimati"] == seen["Pacific/Midway"]
    assert all(start is not None for _, _, start, _ in seen["Pacific/Midway"])
    assert seen["Pacific/Midway"][0][1] == "In the week of 4 to 10 May 2026 the pump failed."


def test_dating_a_turn_costs_a_fraction_of_a_millisecond() -> None:
    from recalld.actors.retain.dating import dated

    turns = [
        "Ana: Hey! How have you been? I finally finished the shelf in the hall and it looks so good.",
        "Ben: That sounds great! I've been busy with the new kitchen, it takes up all of my evenings.",
        "Ana: I went to Lyon last week and met Carla, we will see each other again next month.",
        "我们团队一直用 Postgres，不想再要一个向量库。",
    ]
    for turn in turns:
        dated(turn, 1_780_000_000_000_000)
    started = time.process_time()
    for _ in range(100):
        for turn in turns:
            dated(turn, 1_780_000_000_000_000)
    assert (time.process_time() - started) / 400 < 0.0006

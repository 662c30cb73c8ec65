"""Schedules, and when a model is refreshed by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recalld.actors.pages import triggers
from recalld.storage.pages import MentalModel

DAY = 86_400_000_000
MODEL = MentalModel("m", "M", "What?", 0, 0)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def model(**trigger: Any) -> MentalModel:
    return replace(MODEL, trigger=trigger, created_at=at("2026-03-01T00:00"), updated_at=at("2026-03-01T00:00"))


@pytest.mark.parametrize("good", ["0 3 * * *", "*/5 * * * *", " 30  6 * * 1-5 ", "0 0 29 2 *", "0 0 1 jan,jul *"])
def test_five_fields_make_a_schedule(good: str) -> None:
    assert triggers.check_cron(good) == " ".join(good.split())


@pytest.mark.parametrize(
    "bad", ["", "daily", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "a b c d e", "@daily", "*" * 300]
)
def test_anything_else_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="five fields"):
        triggers.check_cron(bad)


def test_the_last_instant_is_not_after_now_and_in_utc() -> None:
    assert triggers.last_due("0 3 * * *", at("2026-03-02T02:59")) == at("2026-03-01T03:00")
    assert triggers.last_due("0 3 * * *", at("2026-03-02T03:00")) == at("2026-03-02T03:00")


@given(st.integers(at("1990-01-01T00:00"), at("2090-01-01T00:00")))
def test_a_daily_schedule_came_within_the_last_day(now: int) -> None:
    found = triggers.last_due("30 6 * * *", now)
    assert now - DAY < found <= now


def test_a_schedule_refreshes_what_is_stale_once() -> None:
    one, now = model(refresh_cron="0 3 * * *"), at("2026-03-01T10:00")
    found = triggers.due(one, True, now, 0, consolidated=False)
    assert found == triggers.Due(True, cron_seen=at("2026-03-01T03:00"))
    seen = replace(one, cron_seen_at=found.cron_seen)
    assert triggers.due(seen, True, now, 0, consolidated=False) is None
    assert triggers.due(seen, True, at("2026-03-02T03:01"), 0, consolidated=False) is not None


def test_a_schedule_that_comes_due_while_nothing_is_new_passes() -> None:
    found = triggers.due(model(refresh_cron="0 3 * * *"), False, at("2026-03-01T10:00"), 0, consolidated=False)
    assert found is not None and not found.refresh and found.cron_seen == at("2026-03-01T03:00")


def test_a_failure_holds_automatic_refreshes_back() -> None:
    failed = replace(model(refresh_after_consolidation=True), last_refresh_failed_at=1)
    assert triggers.due(failed, True, at("2026-03-01T10:00"), 0, consolidated=True) is None


def test_after_consolidation_means_after() -> None:
    one, now = model(refresh_after_consolidation=True), at("2026-03-01T10:00")
    assert triggers.due(one, True, now, 0, consolidated=False) is None
    assert triggers.due(one, False, now, 0, consolidated=True) is None
    assert triggers.due(one, True, now, 0, consolidated=True) == triggers.Due(True)


def test_the_floor_between_two_refreshes_parks_the_next() -> None:
    now = at("2026-03-01T10:00")
    one = replace(model(refresh_after_consolidation=True), last_refreshed_at=now - 10_000_000)
    found = triggers.due(one, True, now, 60, consolidated=True)
    assert found is not None and found.at == now + 50_000_000
    assert triggers.due(one, True, now, 5, consolidated=True) == triggers.Due(True)


def test_the_schedule_of_full_refreshes_asks_for_one() -> None:
    one = model(refresh_after_consolidation=True, full_refresh_cron="0 4 * * 0")
    found = triggers.due(one, True, at("2026-03-01T05:00"), 0, consolidated=False)
    assert found is not None and found.full and found.full_cron_seen == at("2026-03-01T04:00")


def test_one_kind_of_automatic_refresh_ends_the_other() -> None:
    stored = {"refresh_after_consolidation": True, "refresh_cron": None, "mode": "delta"}
    cron = triggers.merged(stored, {"refresh_cron": "0 3 * * *"})
    assert cron == {"refresh_after_consolidation": False, "refresh_cron": "0 3 * * *", "mode": "delta"}
    assert triggers.merged(cron, {"refresh_after_consolidation": True})["refresh_cron"] is None
    assert triggers.merged(cron, {"mode": "full"})["refresh_cron"] == "0 3 * * *"
    with pytest.raises(ValueError, match="exclude each other"):
        triggers.check_trigger({"refresh_cron": "0 3 * * *", "refresh_after_consolidation": True})
    with pytest.raises(ValueError, match="fuzzy"):
        triggers.check_trigger({"tag_groups": [{"not": {"tags": ["a"], "resolve": "fuzzy"}}]})

"""When a mental model is refreshed by itself: schedules, the floor between two refreshes, what holds it back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from croniter import croniter
from croniter.croniter import CroniterError

from recalld.storage.pages import MentalModel

FULL = "full"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXCLUSIVE = {"refresh_cron": "refresh_after_consolidation", "refresh_after_consolidation": "refresh_cron"}


def check_cron(expression: str) -> str:
    """The expression with single spaces. Raises `ValueError` with the end of a sentence."""
    text = " ".join(expression.split())
    if len(text) > 200 or len(text.split(" ")) != 5:
        raise ValueError("must be a cron expression of five fields, such as '0 3 * * *' (UTC)")
    try:
        croniter(text, _EPOCH).get_next(datetime)
    except (CroniterError, ValueError, TypeError, KeyError, OverflowError):
        raise ValueError("must be a cron expression of five fields that comes due, such as '0 3 * * *' (UTC)") from None
    return text


def last_due(expression: str, now: int) -> int:
    """The latest instant (µs) at or before `now` at which a schedule comes due."""
    # The next second, because the library looks strictly before where it starts.
    start = _EPOCH + timedelta(microseconds=now) + timedelta(microseconds=1)
    found: datetime = croniter(expression, start).get_prev(datetime)
    return (found - _EPOCH) // _MICROSECOND


def merged(stored: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """A trigger with the named fields changed. One kind of automatic refresh that is switched on ends the other."""
    trigger = {**stored, **named}
    for name, other in _EXCLUSIVE.items():
        if named.get(name) and not named.get(other):
            trigger[other] = False if other == "refresh_after_consolidation" else None
    return trigger


def check_trigger(trigger: Mapping[str, Any]) -> None:
    """Rules between fields. Raises `ValueError` with a sentence."""
    if trigger.get("refresh_cron") and trigger.get("refresh_after_consolidation"):
        raise ValueError("refresh_cron and refresh_after_consolidation exclude each other; name one of them")
    if trigger.get("tag_groups") and _has_fuzzy(trigger["tag_groups"]):
        raise ValueError("tag_groups of a trigger cannot be fuzzy: what it reads must not change with the bank's tags")


def _has_fuzzy(node: Any) -> bool:
    if isinstance(node, Mapping):
        return node.get("resolve") == "fuzzy" or any(_has_fuzzy(one) for one in node.values())
    return isinstance(node, list | tuple) and any(_has_fuzzy(one) for one in node)


@dataclass(frozen=True, slots=True)
class Due:
    """What the triggers of a model ask for: a refresh (`refresh`), in full (`full`), not before `at` (µs; None: now).

    `cron_seen` and `full_cron_seen` are the schedules' latest instants, to be noted whether or not it is refreshed.
    """

    refresh: bool
    full: bool = False
    at: int | None = None
    cron_seen: int | None = None
    full_cron_seen: int | None = None


def due(model: MentalModel, stale: bool, now: int, floor_seconds: int, consolidated: bool) -> Due | None:
    """What comes due for a model; None when there is nothing to do and nothing to note.

    A schedule that comes due while nothing is new passes; so it does while the last refresh stands as failed.
    `consolidated`: a consolidation ended just now, or none is under way at all.
    """
    trigger = model.trigger
    cron = _came(trigger.get("refresh_cron"), model.cron_seen_at, model, now)
    full = _came(trigger.get("full_refresh_cron"), model.full_cron_seen_at, model, now)
    wanted = cron is not None or full is not None or (bool(trigger.get("refresh_after_consolidation")) and consolidated)
    refresh = wanted and stale and model.last_refresh_failed_at is None
    if not refresh and cron is None and full is None:
        return None
    at = None
    if refresh and floor_seconds > 0 and model.last_refreshed_at is not None:
        earliest = model.last_refreshed_at + floor_seconds * 1_000_000
        at = earliest if earliest > now else None
    return Due(refresh, refresh and full is not None, at, cron, full)


def _came(expression: Any, seen: int | None, model: MentalModel, now: int) -> int | None:
    """When a schedule came due since it was last looked at; None when it did not."""
    if not expression:
        return None
    try:
        latest = last_due(str(expression), now)
    except (CroniterError, ValueError, OverflowError):
        return None
    return latest if latest > (model.updated_at if seen is None else seen) else None

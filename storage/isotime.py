"""Instants as the wire writes them: ISO 8601 with microseconds and the UTC offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800_000_000
_LAST = 253_402_300_799_999_999


@overload
def iso(us: int) -> str: ...
@overload
def iso(us: None) -> None: ...
def iso(us: int | None) -> str | None:
    """`2026-11-30T15:20:07.207444+00:00` for int microseconds since the epoch; None stays None.

    An instant outside the years 1 to 9999 is written as the nearest one inside, since the format has no other.
    """
    if us is None:
        return None
    return _text(us)


@lru_cache(maxsize=8192)  # the turns of one session share their time
def _text(us: int) -> str:
    moment = _EPOCH + timedelta(microseconds=min(max(us, _FIRST), _LAST))
    return moment.isoformat(timespec="microseconds")

"""Turns what a caller sent into what the engine keeps: clean text, string metadata, tag lists, instants.

Each function takes a plain JSON value and returns the canonical one, or raises `ValueError` with a sentence for the
caller.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MIN_YEAR: Final = 1000
MAX_YEAR: Final = 3000
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
# A zone by name, as RFC 9557 writes it (`...[Europe/Berlin]`) or after a space.
_ZONE_NAME: Final = re.compile(r"\s*(?:\[!?([A-Za-z0-9_+\-/]{1,64})\]|\s([A-Za-z_]+(?:/[A-Za-z0-9_+\-]+)+|UTC|GMT))$")


@dataclass(frozen=True, slots=True)
class Stamp:
    """When an item was said: `instant` in µs since the epoch (None: not known), and the zone its words are read in.

    `given` is False when the caller named no time, so that the server's clock stands in; `undated` is True when the
    caller asked for no time at all.
    """

    instant: int | None = None
    utc_offset_minutes: int = 0
    given: bool = False
    undated: bool = False


def clean_text(text: str) -> str:
    """`text` without NUL, lone surrogates as U+FFFD; the rest verbatim."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if text.isascii() or _SURROGATES.search(text) is None:
        return text
    # A decoder may have left both halves of one character apart: join those first.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_optional(value: object, field: str) -> str | None:
    """A cleaned, trimmed string, or None when absent or blank."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"The field '{field}' must be a string.")
    return clean_text(value).strip() or None


def clean_metadata(value: Mapping[str, object] | None) -> dict[str, str]:
    """A map of strings: numbers, bools and nested values become strings (JSON's spelling), null values are dropped."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("The field 'metadata' must be an object of strings.")
    return {clean_text(str(key)): clean_text(_string(item)) for key, item in value.items() if item is not None}


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def clean_tags(value: object) -> tuple[str, ...]:
    """Tags in order, each once, trimmed, blank ones dropped.

    Takes a list, a JSON list in a string, or one bare string.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = _json_list(value)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError("The field 'tags' must be a list of strings, or one string.")
    tags: dict[str, None] = {}
    for tag in value:
        if not isinstance(tag, str):
            raise ValueError("Every tag must be a string.")
        if cleaned := clean_text(tag).strip():
            tags[cleaned] = None
    return tuple(tags)


def _json_list(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, list):
            return decoded
    return [text]


def parse_timestamp(value: object) -> Stamp:
    """The `timestamp` of an item. Absent, null or blank: now (the caller fills it in). `unset`: undated.

    ISO 8601 with `Z`, an offset, a zone by name in brackets, or none of them (UTC). Numbers are seconds since the
    epoch. Years outside 1000..3000 are placeholders (0001, 9999) and refused. The offset is kept: relative words in
    the text are read in the item's own zone. A wall time that a zone by name skips (spring) is read with the offset
    before the jump, so it lands just as far behind it; one that occurs twice (autumn) is the first.
    """
    if value is None:
        return Stamp()
    if isinstance(value, bool):
        raise ValueError(_BAD_TIME)
    if isinstance(value, int | float):
        return _from_number(value)
    if isinstance(value, datetime):
        return _from_datetime(value)
    if not isinstance(value, str):
        raise ValueError(_BAD_TIME)
    text = clean_text(value).strip()
    if not text:
        return Stamp()
    if text.lower() == "unset":
        return Stamp(undated=True)
    return _from_datetime(_from_iso(text))


_BAD_TIME: Final = "The timestamp must be an ISO 8601 date and time such as 2026-06-12T19:17:00+08:00, or 'unset'."
_BAD_YEAR: Final = (
    f"The timestamp's year is a placeholder: years {MIN_YEAR} to {MAX_YEAR} are taken. "
    "Send 'unset' for an undated item."
)


def _from_iso(text: str) -> datetime:
    zone: ZoneInfo | None = None
    if (match := _ZONE_NAME.search(text)) is not None:
        name = match[1] or match[2]
        try:
            zone = ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            raise ValueError(f"The time zone '{name}' is not known; give an offset such as +01:00.") from None
        text = text[: match.start()]
    if re.match(r"0000-?\d\d|[+-]\d{5,}-", text):
        raise ValueError(_BAD_YEAR)
    try:
        moment = datetime.fromisoformat(text.upper() if "t" in text or "z" in text else text)
    except (ValueError, OverflowError):
        raise ValueError(_BAD_TIME) from None
    if zone is not None:
        try:
            return moment.astimezone(zone) if moment.tzinfo is not None else moment.replace(tzinfo=zone, fold=0)
        except OverflowError:
            raise ValueError(_BAD_YEAR) from None
    return moment


def _from_datetime(moment: datetime) -> Stamp:
    if not MIN_YEAR <= moment.year <= MAX_YEAR:
        raise ValueError(_BAD_YEAR)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    offset = moment.utcoffset() or timedelta()
    return Stamp((moment - EPOCH) // timedelta(microseconds=1), round(offset.total_seconds() / 60), given=True)


def _from_number(value: int | float) -> Stamp:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(_BAD_TIME)
    seconds = value / 1000 if abs(value) > 2e10 else value  # milliseconds, as JavaScript counts
    try:
        return _from_datetime(EPOCH + timedelta(seconds=seconds))
    except OverflowError:
        raise ValueError(_BAD_YEAR) from None

"""What every request and response model shares, and the small parsers of the wire: instants, tags, cleaned text."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

MAX_PAGE = 2**31 - 1

TagsMatch = Literal["any", "all", "any_strict", "all_strict", "exact"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class RequestModel(BaseModel):
    """A request body or query. Unknown fields are no error: the edge names them in `X-Ignored-Params`."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class ResponseModel(BaseModel):
    """A response body, for the OpenAPI page and for tests; answers themselves are plain dicts of this shape."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())


def clean_text(text: str) -> str:
    """`text` without NUL characters and with lone surrogates as U+FFFD, so that it can be stored and sent anywhere."""
    if not _UNSTORABLE.search(text):
        return text
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_tree(value: Any) -> Any:
    """`clean_text` on every string of a JSON value, keys included."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_tree(one) for one in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_tree(one) for key, one in value.items()}
    return value


def _tag_list(value: Any) -> Any:
    """Tags as people send them: a list, a JSON-encoded list in a string, or one bare string."""
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                decoded = json.loads(value)
            except ValueError:
                return [value]
            if isinstance(decoded, list):
                return decoded
        return [value] if value.strip() else []
    return value


Tags = Annotated[list[str], BeforeValidator(_tag_list)]


def parse_datetime(text: str) -> datetime:
    """An ISO 8601 text as an aware datetime; no offset means UTC. Raises `ValueError` with a sentence."""
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("must be an ISO 8601 date or time such as 2026-06-12T19:17:00+08:00") from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    try:
        value.astimezone(UTC)
    except (OverflowError, ValueError):
        raise ValueError("is outside the years 1 to 9999 once its offset is applied") from None
    return value


def micros(value: datetime) -> int:
    """Microseconds since the epoch; exact, unlike `timestamp()`."""
    return (value - EPOCH) // _MICROSECOND


def parse_instant(text: str) -> int:
    """An ISO 8601 text as microseconds since the epoch. Raises `ValueError` with a sentence."""
    return micros(parse_datetime(text))


def iso(instant: int) -> str:
    """Microseconds since the epoch in the wire's form: `2026-11-30T15:20:07.207444+00:00`."""
    return (EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds")

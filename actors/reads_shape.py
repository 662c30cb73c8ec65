"""What all listings share: ids, pages, and how text is searched."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from recalld.storage.errors import BadRequest
from recalld.storage.names import folded

T = TypeVar("T")


def uuid_text(value: str, field: str) -> str:
    """`value` as the store writes a UUID. Raises `BadRequest` naming the field."""
    try:
        return str(uuid.UUID(value))
    except (ValueError, AttributeError, TypeError):
        raise BadRequest(f"{field} must be a UUID.") from None


def cut(rows: Sequence[T], limit: int, offset: int) -> Sequence[T]:
    """The rows of one page; a limit of 0 is an empty page."""
    return rows[offset : offset + limit]


def page(items: list[Any], total: int, limit: int, offset: int) -> dict[str, Any]:
    return {"items": items, "total": total, "limit": limit, "offset": offset}


def holds(needle: str, *texts: str) -> bool:
    """Whether one of the texts contains `needle`, which is folded already (case, compatibility forms, white space)."""
    return any(needle in folded(text) for text in texts if text)


def like(pattern: str, text: str) -> bool:
    """Whether the whole text fits a pattern in which `*` stands for anything; case makes no difference.

    Walks the text once: a pattern of many stars costs no more than its length times the text's.
    """
    first, *rest = pattern.casefold().split("*")
    fold = text.casefold()
    if not rest:
        return fold == first
    *middle, last = rest
    if not fold.startswith(first) or not fold.endswith(last) or len(fold) < len(first) + len(last):
        return False
    at, end = len(first), len(fold) - len(last)
    for part in middle:
        found = fold.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def after(items: Iterable[T], offset: int, limit: int) -> Iterator[tuple[bool, T]]:
    """(is on the page, item) for each item, so that a total can be counted without decoding what is not shown."""
    for index, item in enumerate(items):
        yield offset <= index < offset + limit, item

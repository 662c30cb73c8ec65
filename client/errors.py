"""What a call to the daemon can raise.

RecalldError
├── ApiError       the daemon answered with an error; carries `status`, `detail` and `retry_after`
└── Unreachable    nobody answered: not running, wrong address, or the time-out passed
"""

from __future__ import annotations

from typing import Any


class RecalldError(Exception):
    """Base of every error the client raises on purpose."""


class ApiError(RecalldError):
    """The daemon refused the request.

    `detail` is the daemon's own: a sentence, or for a 422 the list of `{type, loc, msg, input}` records.
    `retry_after` is in seconds, None when the daemon gave none.
    """

    def __init__(self, status: int, detail: Any, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {in_words(detail)}")
        self.status = status
        self.detail = detail
        self.retry_after = retry_after


class Unreachable(RecalldError):
    """The daemon did not answer. `url` is what was tried."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"No answer from {url} ({reason}). Is the daemon running? Start it with: recalld serve")
        self.url = url


def in_words(detail: Any) -> str:
    """One line for a person out of an error's detail."""
    if isinstance(detail, list):
        return "; ".join(_one(entry) for entry in detail)
    return str(detail)


def _one(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    where = ".".join(str(part) for part in entry.get("loc", ()))
    said = str(entry.get("msg", "is not valid"))
    return f"{where}: {said}" if where else said

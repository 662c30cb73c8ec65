"""What a detector hands over: where something stands in a text, and of what kind it is. Never the thing itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

# Fullwidth forms and the digits of other scripts, one character for one, so that places in the text stay.
_NARROW: Final = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    0x3000: 0x20,
    **{zero + digit: 0x30 + digit for zero in (0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0E50) for digit in range(10)},
    # Hyphens and dots that people paste out of documents.
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), 0x2D),
    **dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F), 0x20),
}


class Finding(NamedTuple):
    """`start` and `end` are characters of the text; `kind` is one of the words of docs/trust.md."""

    start: int
    end: int
    kind: str


def narrow(text: str) -> str:
    """The text with fullwidth letters and foreign digits as ASCII, of the same length."""
    return text if text.isascii() else text.translate(_NARROW)


_UNSEEN: Final = re.compile(
    r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]+"
)
"""Characters without a width: whoever pastes a key with one in it sees the key."""
_BROKEN: Final = re.compile(
    r"(?<=[A-Za-z0-9_\-])[ \t]*\\?(?:\r\n|[\n\r\x0b\x0c\x85\u2028\u2029])[ \t>|]*(?=[A-Za-z0-9_\-])"
)
"""A line break between two characters of a key."""


def seen_only(text: str) -> tuple[str, Sequence[int]]:
    """(the text without what has no width, the place in `text` of each of its characters)."""
    return (text, range(len(text))) if text.isascii() else _without(text, _UNSEEN)


def joined(text: str) -> tuple[str, Sequence[int]]:
    """(the text without line breaks that may stand inside a key, the place in `text` of each of its characters)."""
    return _without(text, _BROKEN)


def _without(text: str, pattern: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in pattern.finditer(text):
        parts.append(text[at : match.start()])
        places += range(at, match.start())
        at = match.end()
    if not at:
        return text, range(len(text))
    return "".join((*parts, text[at:])), [*places, *range(at, len(text))]


def without_overlaps(found: list[Finding]) -> list[Finding]:
    """Findings in order; of those that overlap the one that begins first, then the longest, grown over the others."""
    kept: list[Finding] = []
    for one in sorted(found, key=lambda f: (f.start, -f.end)):
        if kept and one.start < kept[-1].end:
            last = kept[-1]
            kept[-1] = Finding(last.start, max(last.end, one.end), last.kind)
        else:
            kept.append(one)
    return kept

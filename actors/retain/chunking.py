"""Cuts a text into chunks at natural borders. `"".join(chunk_text(text)) == text`, always.

What decides a cut lies before it or within one chunk size behind it, so a text and a longer one that begins with it
share their cuts up to the last chunk: an append re-reads only the tail. A chunk fed back in comes out whole.

* A JSON array of objects is a conversation: cut between its objects, the brackets and commas staying with the turn
  before.
* JSON Lines: cut between lines. A single JSON object stays whole up to `WHOLE_OBJECT` characters.
* A turn or line over the limit stays whole up to `structured_size`, else it is cut as text.
* Text: the latest blank line in the second half of the window, else newline, else sentence end, and so on down to a
  space, else anywhere that does not part a letter from its mark.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

CHUNK_SIZE: Final = 3000
WHOLE_OBJECT: Final = 100_000

# From the strongest border to the weakest; the cut falls behind the match. CJK writes its own stops, without a space.
_BORDERS: Final = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"\.\s+|[。．]"),
    re.compile(r"!\s+|！"),
    re.compile(r"\?\s+|？"),
    re.compile(r";\s+|；"),
    re.compile(r",\s+|[，、]"),
    re.compile(r"\s+"),
)
_SPACE: Final = re.compile(r"\s*")
_BETWEEN: Final = re.compile(r"\s*,\s*")
_LOOK_BACK: Final = 16  # characters given up at most to keep a letter with its marks


def chunk_text(text: str, size: int = CHUNK_SIZE, structured_size: int | None = None) -> list[str]:
    """The chunks of `text`, none longer than `size` except structured pieces as the module says. No text, no chunk."""
    if size < 1:
        raise ValueError("The chunk size is too small; give at least 1 character.")
    if not text:
        return []
    if len(text) <= size:
        return [text]
    limit = max(size, structured_size or size)
    pieces = _turns(text)
    if pieces is not None:
        return list(_pack(pieces, size, limit))
    if _is_single_object(text):
        # One turn of a conversation looks the same when it comes back alone, so both are kept whole by one rule.
        return [text] if len(text) <= max(limit, WHOLE_OBJECT) else list(_cut(text, size))
    lines = _lines(text)
    return list(_pack(lines, size, limit)) if lines is not None else list(_cut(text, size))


def _pack(pieces: list[str], size: int, limit: int) -> Iterator[str]:
    """Whole pieces, as many as fit `size`; a piece over `size` stands alone, one over `limit` is cut as text."""
    held: list[str] = []
    length = 0
    for piece in pieces:
        if held and length + len(piece) > size:
            yield "".join(held)
            held, length = [], 0
        if len(piece) > size:
            yield from [piece] if len(piece) <= limit else _cut(piece, size)
        else:
            held.append(piece)
            length += len(piece)
    if held:
        yield "".join(held)


def _cut(text: str, size: int) -> Iterator[str]:
    start = 0
    while len(text) - start > size:
        end = _border(text, start, size)
        yield text[start:end]
        start = end
    yield text[start:]


def _border(text: str, start: int, size: int) -> int:
    """Where the chunk that begins at `start` ends.

    The first half of the window counts only when the second has no border.
    """
    stop = start + size
    for first in (start + size // 2, start):
        for border in _BORDERS:
            found = 0
            for match in border.finditer(text, first, stop):
                found = match.end()
            if found > start:
                return found
    return _between_letters(text, start, stop)


def _between_letters(text: str, start: int, stop: int) -> int:
    """`stop`, or a little before it when a combining mark, a joiner or half an emoji would be parted from its base."""
    end = stop
    while end > start + 1 and stop - end < _LOOK_BACK:
        here, before = text[end], text[end - 1]
        if unicodedata.category(here) not in ("Mn", "Mc", "Me", "Cf") and before != "\u200d":
            return end
        end -= 1
    return stop


def _turns(text: str) -> list[str] | None:
    """Raw slices of a JSON array of objects, one an object, that join to `text`; None when it is no such array.

    The opening bracket and the closing one may be missing: a chunk cut out of a conversation is one too.
    """
    position = _space(text, 0)
    opened = text.startswith("[", position)
    if opened:
        position = _space(text, position + 1)
    if not text.startswith("{", position):
        return None
    decode = json.JSONDecoder().raw_decode
    starts: list[int] = []
    commas = False
    while True:
        starts.append(position)
        try:
            value, position = decode(text, position)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        between = _BETWEEN.match(text, position)
        position = between.end() if between else _space(text, position)
        commas = commas or between is not None
        if position == len(text):
            break
        if text.startswith("]", position) and _space(text, position + 1) == len(text):
            commas = True
            break
        if between is None or not text.startswith("{", position):
            return None
    if not opened and not commas:
        return None
    borders = [0, *starts[1:], len(text)]
    return [text[a:b] for a, b in pairwise(borders)]


def _lines(text: str) -> list[str] | None:
    """The lines of JSON Lines (each an object, blank ones allowed), at least two; else None."""
    if not text.lstrip().startswith("{"):
        return None
    lines = _newlines(text)
    objects = 0
    for line in lines:
        if not line.strip():
            continue
        if not _is_single_object(line):
            return None
        objects += 1
    return lines if objects >= 2 else None


def _newlines(text: str) -> list[str]:
    """Split after `\\n` alone: the other line ends may stand inside a JSON string."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _is_single_object(text: str) -> bool:
    if not text.lstrip().startswith("{") or not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position

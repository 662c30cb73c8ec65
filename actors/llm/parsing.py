"""Read JSON out of what a model wrote. Pure.

`candidates` finds the JSON values in a text, in order: strict ones as they are, broken ones through a reader that mends
what can be mended safely (trailing and missing commas, single quotes, bare keys, Python's words, quotes inside texts)
and keeps the whole items of what was cut off. A half item is never kept: half a sentence can say the opposite.

`without_reasoning` takes off a `<think>` block where one really opens the text; words that mention the tag stay.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

DEEPEST = 48
"""Levels of nesting that are read; an answer any deeper is nobody's schema."""

_MOST_STARTS = 256
_STEPS_A_CHARACTER = 4
_LEAST_STEPS = 20_000
_OPENERS = re.compile(r"[{\[]")
_SPACE = re.compile(r"[\s\ufeff\u200b]*")
_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD = re.compile(r"[A-Za-z0-9_+.\-]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "undefined": None,
    "nan": None, "infinity": None, "-infinity": None, "inf": None, "-inf": None,
}  # fmt: skip
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_CLOSERS = {'"': '"', "'": "'", "\u201c": "\u201d"}
_NEXT_KEY = re.compile(r"""\s*(["'\u201c][^"'\u201c\u201d\n]{1,80}["'\u201d]|[A-Za-z_]\w*)\s*:""")
_REASONING = re.compile(r"\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSED_ALONE = re.compile(
    r"(?!\s*[{\[\"`])(?:(?!<think).)*?</think(?:ing)?>\s*\n\s*(?=[{\[`])", re.IGNORECASE | re.DOTALL
)
# What may stand between a reasoning block and the answer behind it. A blank and a word is a sentence about the tag.
_ANSWER_FOLLOWS = re.compile(r"[ \t]*(\r?\n|$|[{\[`\"])|\S")


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value in a text: where it starts and ends, whether it was all there, and what had to be mended.

    `inside` says that it stands in brackets that cannot be read: it is a part of something, not what was meant whole.
    """

    value: Any
    start: int
    end: int
    complete: bool = True
    repairs: tuple[str, ...] = ()
    inside: bool = False


class _Broken(Exception):
    """What stands here is not JSON, nor anything like it."""


class _Steps:
    """How much mending one text is worth: a heap of openers must not be read again from each of them to the end."""

    def __init__(self, text: str) -> None:
        self.left = _LEAST_STEPS + _STEPS_A_CHARACTER * len(text)

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Broken


def without_reasoning(text: str) -> str:
    """`text` without the reasoning block that opens it, if one does.

    An opening tag that is never closed is taken for a block only when a tag alone stands in its line.
    """
    opened = _REASONING.match(text)
    if opened is None:
        # Some chat templates write the opening tag into the prompt, and the answer holds the closing one alone.
        closed = _CLOSED_ALONE.match(text)
        return text[closed.end() :] if closed else text
    closing = re.compile(f"</{opened[1]}>", re.IGNORECASE)
    ends = [match.end() for match in closing.finditer(text, opened.end())]
    if not ends:
        return "" if text[opened.end() : opened.end() + 2].strip(" \r").startswith("\n") else text
    real = [end for end in ends if _ANSWER_FOLLOWS.match(text, end)]
    if not real:
        return text
    # Reasoning may itself speak of the tag: the first end behind which the whole rest is JSON is the right one.
    for end in real:
        rest = text[end:].strip()
        if rest[:1] in ("{", "[") and _strict(rest, 0) is not None:
            return text[end:].lstrip()
    return text[real[0] :].lstrip()


def candidates(text: str) -> list[Found]:
    """Every object and array in the text that is not part of another, in order; [] when there is none."""
    text = text.lstrip("\ufeff")
    whole = _quoted(text)
    if whole is not None:
        text = whole
    found = list(_scan(text))
    if not found and '\\"' in text:
        found = list(_scan(text.replace('\\"', '"').replace("\\n", "\n")))
    return found


def parse(text: str) -> Any:
    """The largest JSON value in the text. Raises `ValueError` when there is none."""
    found = candidates(without_reasoning(text))
    if not found:
        raise ValueError("There is no JSON in the text.")
    return max(found, key=lambda one: one.end - one.start).value


def clean(value: Any) -> Any:
    """`value` with texts that can be encoded (surrogates joined or replaced) and without NaN and infinities."""
    if isinstance(value, str):
        return _mended(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [clean(one) for one in value]
    if isinstance(value, dict):
        return {_mended(str(key)): clean(one) for key, one in value.items()}
    return value


def _mended(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves of a pair that stand together are joined, a lone one becomes the replacement character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _quoted(text: str) -> str | None:
    """The inside of a text that is, as a whole, one JSON string with JSON in it."""
    stripped = text.strip()
    if not (stripped.startswith('"') and stripped.endswith('"') and len(stripped) > 2):
        return None
    try:
        inside = json.loads(stripped, strict=False)
    except (ValueError, RecursionError):
        return None
    return inside if isinstance(inside, str) else None


def _scan(text: str) -> Iterator[Found]:
    position, steps, unread = 0, _Steps(text), 0
    for _ in range(_MOST_STARTS):
        opener = _OPENERS.search(text, position)
        if opener is None:
            return
        start = opener.start()
        unread = max(0, unread - sum(text.count(closer, position, start) for closer in "}]"))
        found = _strict(text, start) or _tolerant(text, start, steps)
        if found is None:
            position, unread = start + 1, unread + 1
            continue
        yield replace(found, inside=unread > 0)
        position = found.end


def _strict(text: str, start: int) -> Found | None:
    repairs: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in members:
            _put(table, key, value, repairs)
        return table

    def constant(_: str) -> None:
        repairs.append("not a number")

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant, strict=False)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if _depth(value) > DEEPEST:
        return None
    return Found(clean(value), start, end, True, tuple(dict.fromkeys(repairs)))


def _depth(value: Any) -> int:
    deepest, layer = 0, [value]
    while layer and deepest <= DEEPEST:
        deepest += 1
        layer = [
            child
            for one in layer
            if isinstance(one, dict | list)
            for child in (one.values() if isinstance(one, dict) else one)
        ]
    return deepest


def _tolerant(text: str, start: int, steps: _Steps) -> Found | None:
    reader = _Reader(text, start, steps)
    try:
        value = reader.container(inside=False)
    except _Broken:
        return None
    if reader.cut and not value:
        return None
    repairs = tuple(dict.fromkeys([*reader.repairs, *(["cut off"] if reader.lost else [])]))
    return Found(clean(value), start, reader.position, not reader.lost, repairs)


def _put(table: dict[str, Any], key: str, value: Any, repairs: list[str]) -> None:
    """Set a member; of a key given twice two lists become one, so that nothing is lost, else the later value counts."""
    if key in table:
        repairs.append("key given twice")
        before = table[key]
        if isinstance(before, list) and isinstance(value, list):
            value = before + [one for one in value if one not in before]
    table[key] = value


class _Cut:
    """Stands for a value that the end of the text cut off."""


_CUT = _Cut()


class _Reader:
    """Reads one broken container. `cut` tells that the text ended inside it, `lost` that something may be missing then
    (and not the last closing brace alone); `position` is where reading stopped.

    `inside` says that an array is somewhere above: what is cut off there is an item, and is dropped whole.
    """

    def __init__(self, text: str, position: int, steps: _Steps) -> None:
        self.text, self.position, self._steps = text, position, steps
        self.repairs: list[str] = []
        self.cut = self.lost = False
        self._open: list[str] = []

    def container(self, inside: bool) -> Any:
        if len(self._open) >= DEEPEST:
            raise _Broken
        opener = self.text[self.position]
        self.position += 1
        self._open.append(opener)
        value = self._array() if opener == "[" else self._object(inside)
        self._open.pop()
        return _CUT if self.cut and inside else value

    def _value(self, inside: bool) -> Any:
        ahead = self._peek()
        if ahead == "":
            return _CUT
        if ahead in "{[":
            return self.container(inside)
        if ahead in _CLOSERS:
            return self._string(key=False)
        return self._word()

    def _array(self) -> list[Any]:
        items: list[Any] = []
        while not self._closed("]", "}"):
            self._steps.take()
            if self.cut:
                self.lost = True
                return items
            if self._skip(",", "comma"):
                continue
            item = self._value(inside=True)
            if item is _CUT:
                self.cut = self.lost = True
                return items
            items.append(item)
            self._separator("]}")
        return items

    def _object(self, inside: bool) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while not self._closed("}", "]"):
            self._steps.take()
            if self.cut:
                self.repairs.append("bracket")
                return table
            if self._skip(",", "comma"):
                continue
            key = self._key()
            if key is _CUT or self._peek() == "":
                self.cut = self.lost = True
                return table
            if not self._skip(":"):
                raise _Broken
            value = self._value(inside)
            if value is not _CUT:
                _put(table, key, value, self.repairs)
            if value is _CUT or self.cut:
                self.lost = self.lost or value is _CUT
                self.cut = True
                return table
            self._separator("}]")
        return table

    def _closed(self, own: str, other: str) -> bool:
        """Whether this container ends here. A closer of the other kind ends it too where one such is open above."""
        ahead = self._peek()
        if ahead == "":
            self.cut = True
            return False
        if ahead == own:
            self.position += 1
            return True
        if ahead == other:
            if (other == "}" and "{" in self._open) or (other == "]" and "[" in self._open):
                self.repairs.append("bracket")
                return True
            raise _Broken
        return False

    def _separator(self, closers: str) -> None:
        """Pass the comma behind an item; note where it is missing."""
        ahead = self._peek()
        if ahead == ",":
            self.position += 1
            if self._peek() in tuple(closers):
                self.repairs.append("comma")
        elif ahead and ahead not in closers:
            if ahead not in "{[" and ahead not in _CLOSERS and not ahead.isalnum():
                raise _Broken
            self.repairs.append("comma")

    def _key(self) -> Any:
        if self._peek() in _CLOSERS:
            return self._string(key=True)
        bare = _BARE_KEY.match(self.text, self.position)
        if bare is None:
            raise _Broken
        self.repairs.append("bare key")
        self.position = bare.end()
        return bare[0]

    def _word(self) -> Any:
        word = _WORD.match(self.text, self.position)
        if word is None:
            raise _Broken
        self.position = word.end()
        if self.position == len(self.text):
            return _CUT
        written = word[0]
        if written.lower() in _WORDS:
            if written not in ("true", "false", "null"):
                self.repairs.append("word")
            return _WORDS[written.lower()]
        if _NUMBER.fullmatch(written) is None:
            raise _Broken
        try:
            return int(written)
        except ValueError:
            return float(written) if len(written) < 400 else None

    def _string(self, key: bool) -> Any:
        quote = self.text[self.position]
        closer = _CLOSERS[quote]
        if quote != '"':
            self.repairs.append("quotes")
        text, position, parts = self.text, self.position + 1, []
        special = re.compile(f"[\\\\{closer}]")
        while True:
            self._steps.take()
            hit = special.search(text, position)
            if hit is None:
                self.position = len(text)
                return _CUT
            parts.append(text[position : hit.start()])
            position = hit.start()
            if hit[0] == "\\":
                said, position = self._escape(position)
                if position > len(text):
                    self.position = len(text)
                    return _CUT
                parts.append(said)
                continue
            position += 1
            if self._ends_string(position, key):
                self.position = position
                return "".join(parts)
            self.repairs.append("quote inside a text")
            parts.append(closer)

    def _escape(self, position: int) -> tuple[str, int]:
        """What the escape at `position` stands for, and the position behind it (past the end when it is cut off)."""
        letter = self.text[position + 1 : position + 2]
        if letter == "":
            return "", len(self.text) + 1
        if letter == "u":
            digits = self.text[position + 2 : position + 6]
            if re.fullmatch("[0-9a-fA-F]{4}", digits):
                return chr(int(digits, 16)), position + 6
            if len(digits) < 4 and re.fullmatch("[0-9a-fA-F]*", digits) and position + 6 > len(self.text):
                return "", len(self.text) + 1
        if letter in _ESCAPES:
            return _ESCAPES[letter], position + 2
        self.repairs.append("escape")
        return "\\" + letter, position + 2

    def _ends_string(self, position: int, key: bool) -> bool:
        """Whether the quote before `position` closes the string, judged by what follows it."""
        behind = _SPACE.match(self.text, position)
        assert behind is not None
        ahead = self.text[behind.end() : behind.end() + 1]
        if key:
            return ahead in ("", ":")
        if ahead in ("", "}", "]"):
            return True
        if ahead == ",":
            after = _SPACE.match(self.text, behind.end() + 1)
            assert after is not None
            following = self.text[after.end() : after.end() + 1]
            if self._open[-1] == "[":
                return following == "" or following in "{[]\"'\u201c-" or following.isdigit() or following in "tfnNTF"
            return following in ("", "}") or _NEXT_KEY.match(self.text, behind.end() + 1) is not None
        if self._open[-1] == "{":
            return _NEXT_KEY.match(self.text, position) is not None  # a comma is missing
        return ahead in ('"', "'", "\u201c") and "\n" in behind[0]

    def _skip(self, mark: str, repair: str = "") -> bool:
        if self._peek() != mark:
            return False
        self.position += 1
        if repair:
            self.repairs.append(repair)
        return True

    def _peek(self) -> str:
        """The next character that is not space, or "" at the end."""
        match = _SPACE.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return self.text[self.position : self.position + 1]

"""The redaction policy: secrets and personal data found, and marked, replaced or refused, before anything is stored.

A text that is JSON is read as JSON: its strings are looked at decoded, so that no escape hides anything, and with the
names of their fields, so that `{"password": "tulip"}` is seen. It is written again only when something was replaced.
The result depends on the text and the policy alone: the same item gives the same chunks, whenever it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from recalld.actors.trust.findings import Finding, narrow, seen_only, without_overlaps
from recalld.actors.trust.personal import find_personal
from recalld.actors.trust.secrets import PRIVATE_KEY, broken_secrets, find_secrets, is_value, secret_name

POLICIES: Final = ("off", "mark", "redact", "block")
OFF, MARK, REDACT, BLOCK = POLICIES

PIECE: Final = 20_000
"""Characters searched at once: one search of a huge text would keep the interpreter from everybody else."""

Walk = Callable[[str, str], str]
"""(text, name of its field or "") -> the text to keep."""


def find(text: str) -> list[Finding]:
    """What must not stand in the open in `text`, in order, none overlapping another."""
    shown, places = seen_only(text)
    if len(shown) < len(text):
        return [Finding(places[one.start], places[one.end - 1] + 1, one.kind) for one in find(shown)]
    seen = narrow(text)
    secrets = [Finding(m.start(), m.end(), "private_key") for m in _key_blocks(seen)]
    personal: list[Finding] = []
    for start, piece in _pieces(seen):
        inside = [*find_secrets(piece), *broken_secrets(piece)]
        secrets += (Finding(start + one.start, start + one.end, one.kind) for one in inside)
        personal += (Finding(start + one.start, start + one.end, one.kind) for one in find_personal(piece))
    kept = without_overlaps(secrets)
    # The password of an address and its host look like an e-mail: a secret is not looked at twice.
    taken = iter([*kept, Finding(len(text) + 1, len(text) + 1, "")])
    secret = next(taken)
    for one in without_overlaps(personal):
        while secret.end <= one.start:
            secret = next(taken)
        if one.end <= secret.start:
            kept.append(one)
    return sorted(kept)


def _key_blocks(text: str) -> Iterator[re.Match[str]]:
    return PRIVATE_KEY.finditer(text) if "PRIVATE KEY" in text else iter(())


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text in pieces that end at line breaks, or where a line is endless at a space."""
    start = 0
    while len(text) - start > PIECE:
        end = text.rfind("\n", start, start + PIECE) + 1
        if end <= start:
            end = text.find(" ", start + PIECE - 500) + 1
        if end <= start:
            break
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def placeholder(kind: str) -> str:
    """What stands for a thing that was taken out. It holds nothing that JSON, Markdown or we ourselves would read."""
    return f"[redacted:{kind}]"


@dataclass(slots=True)
class Sweep:
    """One item under a policy. `counts` is what was found, by kind; `places` where, as "field, line n", never what."""

    policy: str
    counts: dict[str, int] = field(default_factory=dict)
    places: list[tuple[str, str]] = field(default_factory=list)

    def text(self, text: str, where: str, name: str = "") -> str:
        """A text under the policy. `name` is what its field is called, which may make all of it a secret."""
        if self.policy == OFF or not text:
            return text
        if name and secret_name(seen_only(name)[0]) and is_value(text):
            found = [Finding(0, len(text), "password")]
        else:
            found = find(text)
        return self._replaced(text, found, where)

    def content(self, text: str, where: str = "content") -> str:
        """The same for a text that may be JSON or JSON lines."""
        if self.policy == OFF:
            return text
        return map_strings(text, lambda part, name: self.text(part, where, name))

    def _replaced(self, text: str, found: list[Finding], where: str) -> str:
        for one in found:
            self.counts[one.kind] = self.counts.get(one.kind, 0) + 1
            if len(self.places) < 20:
                line = text.count("\n", 0, one.start) + 1
                self.places.append((one.kind, where if line == 1 and "\n" not in text else f"{where}, line {line}"))
        if not found or self.policy != REDACT:
            return text
        parts: list[str] = []
        place = 0
        for one in found:
            parts += (text[place : one.start], placeholder(one.kind))
            place = one.end
        return "".join((*parts, text[place:]))

    @property
    def refusal(self) -> str | None:
        """Why the policy `block` refuses the item, as the rest of a sentence; None when it does not."""
        if self.policy != BLOCK or not self.places:
            return None
        shown = "; ".join(f"{kind} in {where}" for kind, where in self.places[:5])
        more = sum(self.counts.values()) - min(5, len(self.places))
        return shown + (f"; and {more} more" if more > 0 else "")


def map_strings(text: str, change: Walk) -> str:
    """`text` with `change` applied: to each of its strings when it is JSON or JSON lines, else to the whole.

    It comes back as it was, to the letter, when `change` changes nothing.
    """
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        return change(text, "")
    whole = _json(text)
    if whole is not None:
        return _rewritten(text, whole, change)
    lines = text.split("\n")
    values = [_json(line) if line.strip() else None for line in lines]
    if any(value is None for value, line in zip(values, lines, strict=True) if line.strip()):
        return change(text, "")
    return "\n".join(
        line if value is None else _rewritten(line, value, change) for line, value in zip(lines, values, strict=True)
    )


def _json(text: str) -> Any:
    """The object or list a text is, None when it is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _rewritten(text: str, value: Any, change: Walk) -> str:
    try:
        mapped = _mapped(value, change, "")
    except RecursionError:
        return change(text, "")
    return text if mapped == value else json.dumps(mapped, ensure_ascii=False)


def _mapped(value: Any, change: Walk, name: str) -> Any:
    if isinstance(value, str):
        return change(value, name)
    if isinstance(value, dict):
        return {change(str(key), ""): _mapped(one, change, str(key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_mapped(one, change, name) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and (abs(value) > 9_999_999 or secret_name(name)):
        said = str(value)  # a card or a telephone as a number
        changed = change(said, name)
        return value if changed == said else changed
    return value

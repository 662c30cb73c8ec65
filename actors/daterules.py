"""What a rule of the English date grammar is, and the list they are kept in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from recalld.actors import dateranges as r
from recalld.actors.dateranges import Anchor, Range

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Found:
    """One expression: its span in the text and its range. `redo(year)` re-reads a date that named no year."""

    start: int
    end: int
    low: datetime
    high: datetime
    redo: Callable[[int], Range] | None = None
    weak: bool = False  # a number that only looks like a year

    @property
    def range(self) -> Range:
        return self.low, self.high


class Yearless(NamedTuple):
    """A range whose words named no year, and how to read them in a given one."""

    span: Range
    redo: Callable[[int], Range]


Reading = Range | Yearless | None
Reader = Callable[[Match, Anchor], Reading]
RULES: Final[list[tuple[re.Pattern[str], Reader]]] = []


def rule(pattern: str) -> Callable[[Reader], Reader]:
    """Registers a reader; earlier rules win where spans overlap."""

    def keep(reader: Reader) -> Reader:
        RULES.append((re.compile(pattern, re.IGNORECASE), reader))
        return reader

    return keep


Rules = list[tuple[re.Pattern[str], Callable[[Match, Anchor], Range]]]


def expressions(text: str, rules: Rules, anchor: Anchor) -> list[Found]:
    """Matches in rule order, none overlapping; one that is no date still holds its words, with an empty range."""
    found: list[Found] = []
    for pattern, reader in rules:
        for match in pattern.finditer(text):
            at = match.span("x") if "x" in pattern.groupindex else match.span()
            if any(at[0] < f.end and f.start < at[1] for f in found):
                continue
            try:
                span = reader(match, anchor)
                valid = r.in_bounds(span)
            except (ValueError, OverflowError, StopIteration, IndexError, KeyError):
                valid = False
            found.append(Found(*at, *(span if valid else (anchor.now, anchor.now))))
    return sorted(found, key=lambda f: f.start)

"""Date expressions in their sentence: the word before them (`since`, `every`), ranges (`from X to Y`), and offsets
(`the week before X`). The single expressions and their readings are `dategrammar`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from recalld.actors import dateranges as r
from recalld.actors.dategrammar import atoms
from recalld.actors.dateranges import DAY, Anchor
from recalld.actors.daterules import Found
from recalld.actors.datewords import GATE, NUMBER, SEASONS, TRIGGER, UNIT, WEEKDAY, WEEKDAY_NUMBERS, Triggers, number_of

Match = re.Match[str]

_REACH: Final = 60  # characters looked at before an expression
_PREFIX: Final = re.compile(
    r"\b(?P<word>every(?= (?:other|second|third|last|first) )|every|each|since|starting(?: from| in| on)?"
    r"|prior to|before|until|till|after|between"
    r"|from)\s+(?:about\s+|around\s+)?(?:the\s+)?(?:(?<=every )(?:other|second|third|last|first)\s+)?$"
)
_JOIN: Final = re.compile(
    r"^\s*,?\s*(?P<word>and|or|to|until|till|through|thru|up to|vs\.?|versus|-|–|—)\s*(?:the\s+)?$"
)
_BESIDE: Final = re.compile(
    rf"\b(?:the\s+|(?P<n>{NUMBER})\s+)(?P<u>{UNIT}|{WEEKDAY})s?\s+(?P<w>before|after|prior to"
    rf"|following)\s+(?:the\s+)?$"
)
# "the weekend before the wedding", "the Friday after": measured from what is no date.
_BESIDE_NO_DATE: Final = re.compile(r"\s+(?:before|after|prior to|following|of|when|that)\b")
_NAMED_UNIT: Final = re.compile(rf"(?:the\s+)?(?:weekend|{WEEKDAY}|week|month|year|night)")
# "the following week" in a tale, "a fiscal year", "feels like yesterday": no calendar tells.
_OF_A_TALE: Final = re.compile(r"the\s+(?:following|next|previous)\s")
_FISCAL: Final = re.compile(
    r"\b(?:fiscal|financial|academic|school|tax|light|(?:like|as if|seems)(?: it (?:was|were))?(?: just| only)?"
    r"|black|good|ash|cyber|casual|holy|palm|shrove|maundy|bloody|fat|giving)\s*$"
)
# "our Monday standup", "a Friday afternoon": a habit or any such day.
_DETERMINED: Final = re.compile(
    r"\b(?:our|my|your|his|her|their|its|an?|any|some|most|weekly|usual|regular"
    r"|that|one|same)\s+$"
)
_OWN_LAST: Final = re.compile(r"\b(?:our|my|their|your)\s+$")
_HABITUAL: Final = re.compile(
    r"\b(?:every|each) (?:year|month|week|day|spring|summer|autumn|fall|winter)\b|\b(?:annually|yearly|usually"
    r"|always|often|typically|normally)\b"
)
_SEASON_ALONE: Final = re.compile(r"\bin\s+$")
_NAMED_BY_ANOTHER: Final = re.compile(r"\s+(?:today|tomorrow)\b")
_NAMES_ANOTHER: Final = re.compile(r"\b(?:today|tomorrow|[12]\d{3})(?:'s|’s| is| was)\s+(?:a\s+)?$")
_DATED_FROM: Final = re.compile(r"\b(?:of|from|dated)\s+(?:the\s+)?$")
_MEANT_FOR: Final = re.compile(
    r"\b(?:order|book|reserv|plan|schedul|set|fix|move|postpone|delay|push|invit|announc|promis|agre|arrang"
    r"|due|slat|pencil|ask"
    r"|appointment|reservation|table|tickets?|flights?|meeting|booking|deadline)\w*\b[^.!?]{0,40}?\b(?:for|to"
    r"|until|by)"
    r"\s+(?:the\s+)?$"
)
_ONWARDS: Final = re.compile(r"^\s*(?:onwards?|and later|or later|and after)\b")


@dataclass(frozen=True, slots=True)
class Expression:
    """One or two joined expressions with the word before: `since`, `before`, `after`, `every` or "".

    `language` is the one whose words they are, "" when a library read them.
    """

    found: Found
    word: str
    language: str = "en"


_triggers: Final = Triggers(TRIGGER)


def may_hold(text: str) -> bool:
    """The gate in front of `find`: False is certain, True is not."""
    return _triggers.any_in(text) and GATE.search(text) is not None


def find(text: str, anchor: Anchor) -> Iterator[Expression]:
    """Date expressions of `text`, ranges (`from X to Y`) joined. The gate is the caller's."""
    items = atoms(text, anchor)
    index = 0
    while index < len(items):
        one = items[index]
        index += 1
        if index < len(items) and (beside := _beside(text, items[index])) and beside[1] <= one.start:
            continue  # "the Friday before 20 May": the weekday belongs to what follows
        if beside := _beside(text, one):
            if (moved := _moved(*beside, one)) is not None:
                yield Expression(moved, "")
            continue
        lead = text[max(0, one.start - _REACH) : one.start].lower()
        before = _PREFIX.search(lead)
        word = before["word"] if before else ""
        inside = text[one.start : one.end].lower()
        if anchor.lean > 0 and one.redo and one.low > anchor.now and _DATED_FROM.search(lead):
            one = _nearest(one, anchor)
        if anchor.lean <= 0 and one.low < anchor.today and _MEANT_FOR.search(lead):
            one = _ahead(text, one, anchor)
        if _FISCAL.search(lead) or (anchor.lean < 0 and _OF_A_TALE.match(inside)):
            continue
        bare = inside in WEEKDAY_NUMBERS
        if bare and (_NAMED_BY_ANOTHER.match(text[one.end :].lower()) or _NAMES_ANOTHER.search(lead)):
            continue  # "tomorrow is Friday" names one day, by tomorrow
        if _OWN_LAST.search(lead) and inside.startswith(("last", "next", "past")):
            continue
        if inside in SEASONS and anchor.lean >= 0 and _SEASON_ALONE.search(lead):
            continue  # "in winter it snows"
        if (bare or one.redo or inside in SEASONS) and _HABITUAL.search(text[: one.start].lower()):
            continue
        if _NAMED_UNIT.fullmatch(inside) and (
            _DETERMINED.search(lead)
            or ((inside.startswith("the") or lead.endswith("the ")) and _BESIDE_NO_DATE.match(text[one.end :].lower()))
        ):
            continue
        if index < len(items):
            other = items[index]
            join = _JOIN.match(text[one.end : other.start].lower())
            if join and (word in ("between", "from") or join["word"] not in ("and", "or", "vs", "vs.", "versus")):
                yield Expression(hull(one, other, anchor.lean > 0), "")
                index += 1
                continue
        if word.startswith("starting") or _ONWARDS.match(text[one.end :].lower()) or inside.startswith("since"):
            word = "since"
        if word in ("prior to", "until", "till"):
            word = "before"
        if word == "since" and one.low > anchor.now:
            one = _back(one)
        yield Expression(one, word if word in ("since", "before", "after", "every", "each") else "")


def _beside(text: str, one: Found) -> tuple[Match, int] | None:
    """The words `the week before`, `two days after` in front of an expression, and where they start."""
    low = max(0, one.start - _REACH)
    match = _BESIDE.search(text[low : one.start].lower())
    return (match, low + match.start()) if match else None


def _moved(beside: Match, start: int, one: Found) -> Found | None:
    """`the week before`, `two days after`, `the Friday before` a date."""
    unit, step = beside["u"], -1 if beside["w"] in ("before", "prior to") else 1
    border = one.low if step < 0 else one.high - DAY
    try:
        if unit in WEEKDAY_NUMBERS:
            at = Anchor(border)
            span = r.relative_weekday(at, WEEKDAY_NUMBERS[unit], -1 if step < 0 else 0)
            if step > 0 and span[0] == at.today:
                span = span[0] + 7 * DAY, span[1] + 7 * DAY
        else:
            least, most = number_of(beside["n"] or "a")
            near, far = r.ago(unit, border, -step * least), r.ago(unit, border, -step * most)
            span = min(near[0], far[0]), max(near[1], far[1])
    except (ValueError, OverflowError):
        return None
    return Found(start, one.end, *span) if r.in_bounds(span) else None


def _ahead(text: str, one: Found, anchor: Anchor) -> Found:
    """The same words read as to come: what was ordered or booked for a day lies before us."""
    later = atoms(text, replace(anchor, lean=1))
    return next((other for other in later if other.start == one.start and other.end == one.end), one)


def _nearest(one: Found, anchor: Anchor) -> Found:
    """A date without year read as the one nearest to now: "the invoice from 3 March is open" is no promise."""
    before = _back(one)
    return before if anchor.now - before.low < one.low - anchor.now else one


def _back(one: Found) -> Found:
    """What a sentence that looks ahead read as a coming weekday, day or month, as the one before (`since`)."""
    try:
        low, high = one.redo(one.low.year - 1) if one.redo else (one.low - 7 * DAY, one.high - 7 * DAY)
    except (ValueError, OverflowError):
        return one
    return replace(one, low=low, high=high)


def hull(one: Found, other: Found, ahead: bool) -> Found:
    """From the first to the second; a side without year takes it from the other."""
    low, high = one.range, other.range
    try:
        if one.redo and not other.redo:
            low = one.redo(other.low.year)
            if low[0] > high[1]:
                low = one.redo(other.low.year - 1)
        elif other.redo and not one.redo:
            high = other.redo(one.low.year)
            if high[1] < low[0]:
                high = other.redo(one.low.year + 1)
        elif one.redo and low[0] > high[0]:
            low = one.redo(low[0].year - 1)
        elif low[0] > high[0] and (low[0] - high[0]).days < 7 and low[1] - low[0] <= DAY and high[1] - high[0] <= DAY:
            # "from Monday to Wednesday", said on a Tuesday: the Wednesday is the one after that Monday.
            if ahead:
                high = high[0] + 7 * DAY, high[1] + 7 * DAY
            else:
                low = low[0] - 7 * DAY, low[1] - 7 * DAY
    except (ValueError, OverflowError):
        low, high = one.range, other.range
    span = (min(low[0], high[0]), max(low[1], high[1]))
    return Found(one.start, other.end, *span)

"""`Now it is B`: a change that names no attribute means that of what the same speaker claimed right before.

Read without its neighbours such a sentence claims nothing. Inside the write, where the unit before is known, it takes
the attribute and the subject of the speaker's last claim in the same document, or, without document, in the same
thread within 30 minutes. Where that claim has no attribute, one of many values, or a value of another sort, it claims
nothing still.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from recalld.actors.retain.attributes import NOTHING, Statement, folded_value, plain
from recalld.actors.retain.comparable import OTHER, kind
from recalld.actors.retain.plan import TURN_GAP_US
from recalld.storage.names import folded
from recalld.storage.records import PreparedUnit, UnitRecord

IT = "it"
"""The attribute of a change that names none, until it is resolved. Never stored."""
STEPS_BACK = 12
_OPENS = r"^\W*(?:(?:but|and|well|actually|no|oh|ok|okay|update)[,: ]+)*"
_VALUE = r"(?P<v>(?!not\b|no\b|an?\b|so\b|very\b|too\b|all\b)[^\s,;:.!?][^,;:!?\n]{0,60}?)"
_ENDS = r"[\s.!]*$"
_NOW = r"(?:now|nowadays|these days|currently|from now on)"
_FORMS = tuple(
    re.compile(_OPENS + form + _ENDS, re.IGNORECASE)
    for form in (
        rf"{_NOW},? (?:it|that) is(?: now)? {_VALUE}(?: instead)?",
        rf"it is {_NOW} {_VALUE}(?: instead)?",
        rf"it is {_VALUE},? (?:{_NOW}|instead)",
        rf"it (?:has )?(?:changed|became|switched)(?: now)? to {_VALUE}(?: now)?",
    )
)
_ZH = re.compile(
    r"^\W*(?:不过|但是?)?[，, ]*(?:它)?(?:现在|如今|目前)(?:它)?(?:是|换成|改成|变成)(?:了)?"
    r"(?P<v>[^，。！？,!?\s是]{1,16}?)了?[。！!]*$"
)
_NO_NAME = re.compile(
    r"^(?:late|early|time|over|done|fine|ok|okay|good|better|worse|bad|cold|hot|warm|dark|gone|clear|ready|open|closed"
    r"|safe|possible|easy|hard|official|public|live|up|down|on|off|in|out|about|just|more|less|much|almost|nearly|your"
    r"|my|mine|yours|\w+ing|\w+ed|never)\b",
    re.IGNORECASE,
)
_ONE_VALUED = frozenset(
    {"lives_in", "works_at", "role", "name", "birthday", "scheduled", "is", "age", "diet", "nationality"}
    | {"phone", "email", "address", "boss", "manager", "hobby", "goal", "dog", "cat", "car"}
)


def elliptic(said: str) -> Statement:
    """A sentence that is a change of something it does not name, as a claim about `IT`; else `NOTHING`."""
    if len(said) > 120 or said.rstrip().endswith(("?", "？")):
        return NOTHING
    text = plain(said)
    match = _ZH.match(text) or next((found for form in _FORMS if (found := form.match(text))), None)
    if match is None or _NO_NAME.match(match["v"]):
        return NOTHING
    return Statement("", "", IT, folded_value(match["v"]))


Before = Callable[[int], tuple[PreparedUnit | UnitRecord, int] | None]
"""A unit by its uid, and the uid it stands behind; None for none."""


def resolved(unit: PreparedUnit, prev: int, before: Before, *, undocumented: bool) -> PreparedUnit:
    """The unit about what its speaker claimed last, or about nothing. `prev`: the unit it stands behind."""
    last = _last_of_speaker(unit, prev, before, undocumented)
    if last is None or not _fits(unit, last):
        return dataclasses.replace(unit, subject="", attribute="", value="")
    return dataclasses.replace(unit, subject=last.subject, attribute=last.attribute)


def _last_of_speaker(
    unit: PreparedUnit, prev: int, before: Before, undocumented: bool
) -> PreparedUnit | UnitRecord | None:
    for _ in range(STEPS_BACK):
        found = before(prev) if prev >= 0 else None
        if found is None:
            return None
        other, prev = found
        if folded(other.speaker) != folded(unit.speaker) or folded(other.text).endswith(("?", "？")):
            continue
        near = (
            other.mentioned_at is not None
            and unit.mentioned_at is not None
            and abs(unit.mentioned_at - other.mentioned_at) <= TURN_GAP_US
        )
        return other if near or not undocumented else None
    return None


def _fits(unit: PreparedUnit, last: PreparedUnit | UnitRecord) -> bool:
    """One value takes the place of the other: the attribute has one at a time, and both are of one sort."""
    if not (last.subject and last.value) or not (
        last.attribute in _ONE_VALUED or last.attribute.startswith("favourite:")
    ):
        return False
    sorts = kind(unit.text, unit.value), kind(last.text, last.value)
    return sorts[0] == sorts[1] and (sorts[0] != OTHER or last.attribute.startswith("favourite:"))

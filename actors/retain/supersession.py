"""Which claims end because another took their place, and which come back when that one goes.

Two claims contradict each other when they are about the same attribute of the same subject and cannot both hold: one
value stated against another value, or a value stated against the same value denied (`no longer`). The one that speaks
from later on stays (`holds_since`), whatever came in first; of two from the same instant, the later in the text. A
correction ends the claim of the same speaker, a few units before it, that it is nearest to. Claims meet only under the
same tags and trust, so that none ends for readers who may not see why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recalld.actors.retain.comparable import denies_all, replaces, says_more
from recalld.actors.retain.matching import holds_since
from recalld.storage import keys, mentions
from recalld.storage.apply import Applier
from recalld.storage.changes import End, NewUnit, UnitsEnded, UnitsLinked, UnitsRestored
from recalld.storage.names import folded
from recalld.storage.records import EXPERIENCE, SUPERSEDED, SUPERSEDES, WORLD, UnitRecord

CHANGED, NO_LONGER, AGAIN, CORRECTED = "attribute changed", "no longer", "holds again", "corrected"
LOOKED_AT = 64
"""Units about one attribute that are compared with a new claim, newest first; older live ones ended long ago."""
STEPS_BACK = 6
MUCH = 160
"""A text of more characters tells more than the one thing that changed, so it stays: dated, beside what is newer."""
ALIKE = 0.5
"""Share of the fewer words that a correction and what it takes back have in common."""
_PASSING = frozenset({"status", "is"})
SELF = "i"
"""The subject of `I` where nobody is named."""
_FLIPPED = {"dislikes": ("", -1), "likes": ("", 1), "hates": ("", -1), "loves": ("", 1)}
_MANY = frozenset(
    {"likes", "owns", "uses", "speaks", "plays", "eats", "drinks", "drives", "knows", "leads", "responsible_for"}
    | {"allergic_to", "wants", "needs", "visited", "has", "prefers", "enjoys", "reads", "watches", "supports"}
    | {"believes", "interested_in", "member_of"}
)
"""Attributes of which one has many values at once, so that a second value ends no first."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i’m|my|me|mine|we|our|ich|mein\w*|wir|yo|mis?|je|mon|ma|mes)\b|[我私僕俺]|咱", re.IGNORECASE
)
_WORD = re.compile(r"\w{4,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_EMPTY = frozenset(
    {"this", "that", "with", "have", "from", "they", "were", "been", "what", "when", "then", "than", "just", "also"}
    | {"very", "really", "actually", "sorry", "wrong", "correction", "mean", "meant", "said", "there", "here", "your"}
    | {"about", "would", "could", "should", "because", "which"}
)


class Change(NamedTuple):
    """One claim took the place of another: ids and the reason."""

    superseded: str
    by: str
    reason: str


def contradiction(new: UnitRecord, old: UnitRecord) -> str | None:
    """Why two claims about one attribute of one subject cannot both hold; None when they can. `new` speaks later."""
    value, polarity = _meaning(new)
    before, stood = _meaning(old)
    if polarity == stood:
        many = new.attribute in _MANY
        differ = bool(value) and bool(before) and value != before
        if polarity < 0 or not differ or many:
            return None
        return CHANGED if replaces(new.attribute, (new.text, value), (old.text, before)) else None
    if value and before and value != before:
        return None
    if polarity < 0 and not denies_all(new.attribute, new.text, value):
        return None
    if polarity > 0 and says_more(old.attribute, old.text, before):
        return None
    keyed = new.attribute in _MANY and not (value and before)
    return None if keyed else NO_LONGER if polarity < 0 else AGAIN


def _meaning(unit: UnitRecord) -> tuple[str, int]:
    """(value, polarity) of a claim; `dislikes` is a denied `likes`."""
    value = folded(unit.value)
    says, sign = _FLIPPED.get(value, (value, 1))
    return says, unit.polarity * sign


def _comparable(one: UnitRecord, other: UnitRecord) -> bool:
    return one.tags == other.tags and one.trust == other.trust and one.network in (WORLD, EXPERIENCE)


def _same_thing(applier: Applier, one: UnitRecord, other: UnitRecord) -> bool:
    """Whether the same subject is the same thing: a name is, `the deadline` only where the talk is the same."""
    if not (one.subject.isascii() and one.subject == one.subject.lower() and other.subject == other.subject.lower()):
        return True
    if folded(one.subject) in (SELF, folded(one.speaker)):
        return True
    near = one.document == other.document or applier.thread_of(one.uid) == applier.thread_of(other.uid)
    about = bool(one.context) and one.context == other.context
    return near or about or bool(set(one.entities) & set(other.entities))


def subject_of(subject: str, speaker: str, text: str) -> str:
    """Whom a claim is about: as read, or the speaker where the words say `I` and nobody resolved it; "" unknown."""
    if subject and folded(subject) not in ("i", "we", "me"):
        return subject
    return (speaker or SELF) if subject or _FIRST_PERSON.search(text) else ""


def judge(
    applier: Applier, uids: Iterable[int], corrections: frozenset[int], now: int, *, spare: bool = False
) -> list[Change]:
    """Compare units, in the order they were said, with what else is current, and end what does not hold any more.

    `spare`: the units themselves stay.
    """
    found: list[Change] = []
    for uid in uids:
        unit = applier.unit(uid)
        if unit is None or unit.retired_at is not None:
            continue
        if unit.attribute and unit.subject:
            found += _by_attribute(applier, unit, now, spare)
        if uid in corrections and applier.is_live(uid):
            found += _by_correction(applier, unit, now)
    return found


def _by_attribute(applier: Applier, unit: UnitRecord, now: int, spare: bool) -> list[Change]:
    found: list[Change] = []
    uids = mentions.about(applier.txn, applier.bank, folded(unit.subject), unit.attribute)
    for uid in uids[:LOOKED_AT]:
        if uid == unit.uid or not applier.is_live(uid):
            continue
        other = applier.unit(uid)
        if other is None or not _comparable(unit, other) or not _comparable(other, unit):
            continue
        if not _same_thing(applier, unit, other):
            continue
        later, earlier = _in_order(unit, other)
        reason = contradiction(later, earlier)
        if reason is None or (spare and earlier is unit) or _passing(earlier) or len(earlier.text) > MUCH:
            continue
        found.append(supersede(applier, earlier, later, reason, now))
        if earlier is unit:
            break
    return found


def _passing(unit: UnitRecord) -> bool:
    """It tells how somebody is doing: the next such word makes it no less true."""
    return unit.attribute in _PASSING and folded(unit.subject) in (SELF, folded(unit.speaker))


def _in_order(one: UnitRecord, other: UnitRecord) -> tuple[UnitRecord, UnitRecord]:
    """(the one that speaks from later on, the other)."""
    pair = sorted((one, other), key=lambda unit: (holds_since(unit, unit.recorded_at), unit.uid))
    return pair[1], pair[0]


def supersede(applier: Applier, old: UnitRecord, new: UnitRecord, reason: str, now: int) -> Change:
    until = holds_since(new, new.recorded_at) - 1
    applier.apply(UnitsEnded((End(old.uid, SUPERSEDED, reason, new.id, until),), now))
    applier.apply(UnitsLinked(new.uid, ((old.uid, 1.0),), SUPERSEDES, now))
    return Change(old.id, new.id, reason)


def _by_correction(applier: Applier, unit: UnitRecord, now: int) -> list[Change]:
    """The claim a correction takes back: of the same speaker, a few units before, about the same."""
    words = _words(unit)
    best: tuple[int, UnitRecord] | None = None
    uid = applier.prev_of(unit.uid)
    for _ in range(STEPS_BACK):
        if uid < 0:
            break
        before = applier.unit(uid)
        if before is None:
            break
        if (
            before.retired_at is None
            and folded(before.speaker) == folded(unit.speaker)
            and _comparable(unit, before)
            and _comparable(before, unit)
            and not _agree(unit, before)
            and len(before.text) <= MUCH
        ):
            told = _words(before)
            shared = len(words & told)
            if unit.subject and folded(unit.subject) == folded(before.subject) and unit.attribute == before.attribute:
                shared += 1
            if shared and shared >= ALIKE * min(len(words), len(told)) and (best is None or shared > best[0]):
                best = shared, before
        uid = applier.prev_of(uid)
    return [] if best is None else [supersede(applier, best[1], unit, CORRECTED, now)]


def _agree(one: UnitRecord, other: UnitRecord) -> bool:
    """Both claim the same, so neither takes the other back; nor does one about another attribute of its subject."""
    if not (one.attribute and other.attribute):
        return False
    return one.attribute != other.attribute or _meaning(one) == _meaning(other)


def _words(unit: UnitRecord) -> frozenset[str]:
    speaker = set(_WORD.findall(folded(unit.speaker)))
    return frozenset(
        word[:6] for word in _WORD.findall(folded(unit.text)) if word not in _EMPTY and word not in speaker
    )


def new_corrections(units: Sequence[NewUnit]) -> frozenset[int]:
    return frozenset(new.uid for new in units if new.unit.corrects)


def release(applier: Applier, unit_ids: Iterable[str], now: int) -> tuple[list[str], list[Change]]:
    """Units are gone or ended: what they had superseded comes back, unless something else contradicts it.

    The ids of those that are current again, and what took the place of others now.
    """
    back: list[int] = []
    for unit_id in dict.fromkeys(unit_ids):
        for ended_id in mentions.ended_by(applier.txn, applier.bank, unit_id):
            ended = applier.current(ended_id)
            if ended is None or not ended.stands or ended.superseded_by != unit_id:
                applier.txn.delete(keys.ended_by(applier.bank, unit_id, ended_id))
                continue
            again = applier.claimed(ended.claims[0]) if ended.claims else None
            if again is not None and again.id != ended.id and again.retired_at is None:
                # Another unit says the same, and holds: the bank needs no second.
                supersede(applier, ended, again, AGAIN, now)
            else:
                back.append(ended.uid)
    if not back:
        return [], []
    applier.apply(UnitsRestored(tuple(back), now))
    changes = judge(applier, sorted(back), frozenset(), now)
    live = [unit.id for uid in back if (unit := applier.unit(uid)) is not None and unit.retired_at is None]
    return live, changes

"""Which entity a name means: the name itself first, then what is spelt alike, with company and time as witnesses.

    score = 0.5 spelling + 0.3 company + 0.2 time, accepted from 0.6

Spelling is `likeness`; company is how many of the unit's other entities were met with the candidate before, rarer ones
counting more; time falls from 1 to 0 over seven days. Where two candidates come close to each other, neither is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from recalld.storage import likeness
from recalld.storage.names import ALIAS, CONCEPT, EVIDENCE_KEPT, LIKENESS, Names, agree, folded
from recalld.storage.records import EntityMention, EntityRecord

ACCEPTED = 0.6
SPELLING, COMPANY, TIME = 0.5, 0.3, 0.2
TOO_CLOSE = 0.05
"""Two candidates whose scores lie no further apart leave the name undecided."""
WEEK_US = 7 * 86_400_000_000
FORM_CANDIDATES = 32
CANDIDATES = 8
COMPANY_ASKED = 8
STRONG_COMPANY, STRONG_SHARED = 0.5, 2
"""What a person's first or last name alone needs to mean the full one."""


class _Candidate(NamedTuple):
    root: int
    spelling: float
    same_kind: bool


def entities_of(
    names: Names,
    mentions: Sequence[EntityMention],
    seen: int | None,
    uid: int,
    aliases: Sequence[tuple[str, str]] = (),
) -> tuple[int, ...]:
    """The entities that a new unit names, each once, in order, and counted; aliases that it gives are learnt."""
    if not mentions:
        return ()
    found = tuple(dict.fromkeys(_learnt(names, _resolved(names, mentions, seen, aliases), aliases, uid).values()))
    names.count(found, uid, seen)
    return found


def _resolved(
    names: Names, mentions: Sequence[EntityMention], seen: int | None, aliases: Sequence[tuple[str, str]]
) -> dict[str, int]:
    """{folded name (with its kind where two share it): entity} for the mentions and the names that aliases give."""
    wanted = [
        (folded(mention.name), mention) for mention in (_with_aliases(mentions, aliases) if aliases else mentions)
    ]
    found: dict[int, int] = {}
    for index, (fold, mention) in enumerate(wanted):
        number = _known(names, fold, mention)
        if number is not None:
            found[index] = number
    if len(found) < len(wanted):
        for index, (fold, mention) in enumerate(wanted):
            if index not in found:
                found[index] = _other(names, fold, mention, seen, list(found.values()))
    numbers: dict[str, int] = {}
    for index, (fold, mention) in enumerate(wanted):
        numbers[fold if fold not in numbers else f"{fold}\0{mention.kind}"] = found[index]
    return numbers


def _known(names: Names, fold: str, mention: EntityMention) -> int | None:
    """The one entity that bears the very name, stands by itself and is of an agreeing kind: nearly always there is."""
    numbers = names.named(fold)
    entity = names.entity(numbers[0]) if len(numbers) == 1 else None
    if entity is None or entity.into or entity.parts:
        return None
    if entity.kind != mention.kind:
        if entity.kind == CONCEPT:
            names.take_kind(entity.number, mention.kind)
        elif mention.kind != CONCEPT and not mention.exact:
            return None
    return entity.number


def _other(names: Names, fold: str, mention: EntityMention, seen: int | None, found: Sequence[int]) -> int:
    """The entity of a name that several bear, or one that is part of a whole, or nobody yet."""
    company = list(dict.fromkeys(names.root(number) for number in found))
    bearers = _bearers(names, fold, mention)
    if not bearers:
        return _new(names, mention, seen, company)
    number = bearers[0]
    if len(bearers) > 1:
        number = max(bearers, key=lambda n: (_company(names, names.root(n), company)[0], -n))
    if agree(names.kind_of(number), mention.kind):
        names.take_kind(number, mention.kind)
    return number


def _with_aliases(mentions: Sequence[EntityMention], aliases: Sequence[tuple[str, str]]) -> list[EntityMention]:
    wanted = list(mentions)
    if aliases:
        kinds = {folded(mention.name): mention.kind for mention in mentions}
        for pair in aliases:
            known = next((kinds[folded(name)] for name in pair if kinds.get(folded(name), CONCEPT) != CONCEPT), "")
            for name in pair:
                if folded(name) and folded(name) not in kinds:
                    kinds[folded(name)] = known or likeness.PERSON
                    wanted.append(EntityMention(name, kinds[folded(name)]))
    return wanted


def _bearers(names: Names, fold: str, mention: EntityMention) -> list[int]:
    """Entities that bear the very name and whose kind agrees; those of the same kind alone, where there are any."""
    numbers = [number for number in names.named(fold) if names.entity(number) is not None]
    if mention.exact:
        agreeing = [n for n in numbers if names.kind_of(n) == mention.kind]
        return agreeing or numbers[:1]
    kinds = {number: names.kind_of(number) for number in numbers}
    same = [number for number, kind in kinds.items() if kind == mention.kind]
    return same or [number for number, kind in kinds.items() if agree(kind, mention.kind)]


def _new(names: Names, mention: EntityMention, seen: int | None, company: list[int]) -> int:
    """A name that is new in the bank: an entity, and a part of the one it is spelt like where that is clear."""
    whole = None if mention.exact else _alike(names, mention, seen, company)
    number = names.add(mention.name, mention.kind)
    if whole is not None:
        names.join(number, whole, LIKENESS)
    return number


def _alike(names: Names, mention: EntityMention, seen: int | None, company: list[int]) -> int | None:
    candidates = _candidates(names, mention)
    same = [one for one in candidates if one.spelling == likeness.SAME]
    if same:
        best = [one for one in same if one.same_kind] or same
        return best[0].root if len(best) == 1 else _decided(names, best, seen, company)
    return _decided(names, [one for one in candidates if one.same_kind], seen, company)


def _candidates(names: Names, mention: EntityMention) -> list[_Candidate]:
    """Entities spelt alike, most alike first, then the newest; one a whole."""
    found: dict[int, _Candidate] = {}
    forms = likeness.sought(mention.name, mention.kind)
    for number in dict.fromkeys(n for form in forms for n in reversed(names.spelt(form, FORM_CANDIDATES))):
        entity = names.entity(number)
        if entity is None or not agree(entity.kind, mention.kind):
            continue
        spelling = likeness.likeness(mention.name, entity.name, mention.kind)
        root = names.root(number)
        if spelling > 0 and agree(names.kind_of(root), mention.kind):
            held = found.get(root)
            if held is None or spelling > held.spelling:
                found[root] = _Candidate(root, spelling, names.kind_of(root) == mention.kind)
    return sorted(found.values(), key=lambda one: (-one.spelling, -one.root))[:CANDIDATES]


def _decided(names: Names, candidates: list[_Candidate], seen: int | None, company: list[int]) -> int | None:
    scored: list[tuple[float, int]] = []
    parts = sum(one.spelling == likeness.PART for one in candidates)
    for one in candidates:
        met, shared = _company(names, one.root, company)
        if one.spelling == likeness.PART and (parts > 1 or met < STRONG_COMPANY or shared < STRONG_SHARED):
            continue
        score = SPELLING * one.spelling + COMPANY * met + TIME * _closeness(names.entity(one.root), seen)
        if score >= ACCEPTED:
            scored.append((score, one.root))
    scored.sort(reverse=True)
    if not scored or (len(scored) > 1 and scored[0][0] - scored[1][0] <= TOO_CLOSE):
        return None
    return scored[0][1]


def _company(names: Names, root: int, company: list[int]) -> tuple[float, int]:
    """(share of the company that was met with an entity before, rarer ones counting more; how many that are)."""
    asked = [one for one in company if one != root][:COMPANY_ASKED]
    if not asked:
        return 0.0, 0
    units = names.units(root)
    total = met = 0.0
    shared = 0
    for one in asked:
        others = names.units(one)
        weight = 1.0 / math.log(2.0 + len(others))
        total += weight
        if not units.isdisjoint(others):
            met += weight
            shared += 1
    return met / total, shared


def _closeness(entity: EntityRecord | None, seen: int | None) -> float:
    """1 while an entity is being talked of, falling to 0 a week before or after."""
    if entity is None or seen is None or entity.first_seen is None or entity.last_seen is None:
        return 0.0
    apart = max(entity.first_seen - seen, seen - entity.last_seen, 0)
    return max(0.0, 1.0 - apart / WEEK_US)


def _learnt(names: Names, numbers: dict[str, int], aliases: Sequence[tuple[str, str]], uid: int) -> dict[str, int]:
    """Join the names that unit `uid` gives to one thing; `numbers` with what its names mean then."""
    for short, full in aliases:
        part, whole = numbers.get(folded(short)), numbers.get(folded(full))
        if part is None or whole is None or part == whole:
            continue
        if whole > part and len(short.split()) >= len(full.split()):
            # Neither is the fuller name: the one known first stays the name of the thing.
            part, whole, short = whole, part, full
        one, other = names.entity(part), names.entity(whole)
        if one is None or other is None or not agree(names.kind_of(part), names.kind_of(whole)):
            continue
        if names.root(part) == names.root(whole):
            if one.why == ALIAS and uid not in one.evidence:
                names.change_entity(part, evidence=(*one.evidence, uid)[-EVIDENCE_KEPT:])
            continue
        group = set(names.members(names.root(whole)))
        if group.intersection(one.apart) or part in other.apart:
            continue
        if names.whole_of(part):
            # The short name is somebody else's already; here it is a name of this one.
            part = names.add(short, one.kind)
            numbers[folded(short)] = part
        names.join(part, whole, ALIAS, (uid,))
    return numbers

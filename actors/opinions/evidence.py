"""Which opinions new units touch, and what the rules say of each: read from a snapshot, before the write.

A unit touches an opinion when both are about an entity (the holder of the opinion apart, who is in all they say), or
when their vectors are closer than the bank's threshold; the closest are looked at, at most `LOOKED_AT` a unit. What
another holder thinks is no evidence, nor is a question, nor what readers of the opinion may not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recalld.actors.opinions.holders import same_holder
from recalld.actors.opinions.judge import Pair, by_rules
from recalld.actors.retain.similar import link_floor
from recalld.actors.trust.instructions import NORMAL, TRUSTED
from recalld.storage import keys
from recalld.storage.beliefs import NEUTRAL
from recalld.storage.names import folded
from recalld.storage.quantise import unit_rows
from recalld.storage.records import OBSERVATION, OPINION, PreparedUnit, UnitRecord
from recalld.storage.snapshot import Snapshot

LOOKED_AT = 12
"""Opinions that are judged for one unit, the closest first."""
ALIKE = 0.5
"""How far above the least similarity of evidence, towards 1, two opinions are alike."""
NEUTRALS = 3
"""Neutral judgements by rules that are kept for one unit: of the closest opinions, where the vectors are close too."""


@dataclass(frozen=True, slots=True)
class BeliefSettings:
    """Of a bank: what a confirmation moves, the least similarity of evidence (0: the model's own), and the floor."""

    step: float = 0.1
    similarity: float = 0.0
    floor: float = 0.1

    @classmethod
    def of_bank(cls, config: Mapping[str, Any]) -> BeliefSettings:
        """From the settings in force; a setting that is missing takes its default."""
        names = {"step": "confidence_step", "similarity": "similarity_threshold", "floor": "retirement_floor"}
        given = {field: config.get(f"opinion_{name}") for field, name in names.items()}
        return cls(**{field: float(value) for field, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Weighed:
    """A unit of a write (by its prepared id) and an opinion it touches: stored, or of the same write."""

    opinion: str
    unit: str
    verdict: str = NEUTRAL
    reason: str = ""
    same: bool = False
    alike: bool = False
    """Their vectors are so close that, both judging the same, they are one opinion in other words."""


@dataclass(frozen=True, slots=True)
class Believing:
    """What a write brings to the opinions of its bank. `judged`: by rules, so it is carried out in the write."""

    settings: BeliefSettings
    weighed: tuple[Weighed, ...]
    judged: bool = True


def weigh(
    snap: Snapshot | None,
    units: Sequence[PreparedUnit],
    dim: int,
    config: Mapping[str, Any],
    *,
    judge: bool = True,
) -> Believing | None:
    """The opinions that `units` touch; None where there is none. Without `judge` a model will say what that means."""
    opinions = _opinions(snap)
    own = [at for at, unit in enumerate(units[:-1]) if unit.network == OPINION]
    if not len(opinions) and not own:
        return None
    settings = BeliefSettings.of_bank({**config, **({} if snap is None else snap.record.overrides)})
    least = link_floor({} if snap is None else snap.record.model, settings.similarity)
    alike = least + ALIKE * (1.0 - least)
    rows = unit_rows(np.stack([np.frombuffer(unit.vectors, np.int8, dim) for unit in units]))
    said_here = _OfTheWrite(units, rows, own)
    found: list[Weighed] = []
    for at, unit in enumerate(units):
        if unit.question or unit.network == OBSERVATION:
            continue
        touched = said_here.before(at, least)
        if snap is not None and len(opinions):
            touched += _stored(snap, opinions, unit, rows[at], least)
        neutrals = 0
        for one in touched:
            if not counts_for(one.opinion, unit):
                continue
            weighed = _weighed(one, unit, judge, alike)
            if judge and weighed.verdict == NEUTRAL:
                neutrals += 1
                if neutrals > NEUTRALS or one.similarity < least:
                    continue
            found.append(weighed)
    return Believing(settings, tuple(found), judge) if found else None


def _opinions(snap: Snapshot | None) -> NDArray[np.int64]:
    if snap is None or not snap.n:
        return np.empty(0, np.int64)
    return np.flatnonzero(snap.columns.live & (snap.columns.network == OPINION))


class Touched(NamedTuple):
    """An opinion that a unit touches, and the names of what both are about."""

    opinion: PreparedUnit | UnitRecord
    shared: tuple[str, ...]
    similarity: float


class _OfTheWrite:
    """Opinions among the units of one write; what is said after them in it may touch them."""

    def __init__(self, units: Sequence[PreparedUnit], rows: NDArray[np.float32], own: list[int]) -> None:
        self._units, self._rows = units, rows
        self._own = np.array(own, np.int64)
        self._by_name: dict[str, list[int]] = {}
        for place, at in enumerate(own):
            for name in units[at].entities:
                self._by_name.setdefault(folded(name.name), []).append(place)

    def before(self, at: int, least: float) -> list[Touched]:
        """What unit `at` touches among the opinions before it, the closest first."""
        earlier = int(np.searchsorted(self._own, at))
        if not earlier:
            return []
        scores = self._rows[self._own[:earlier]] @ self._rows[at]
        near = set(np.flatnonzero(scores >= least).tolist())
        for name in self._units[at].entities:
            near.update(place for place in self._by_name.get(folded(name.name), ()) if place < earlier)
        found = []
        for place in sorted(near, key=lambda place: -float(scores[place]))[: 2 * LOOKED_AT]:
            opinion, score = self._units[int(self._own[place])], float(scores[place])
            shared = _shared_names(opinion, self._units[at])
            if shared or score >= least:
                found.append(Touched(opinion, shared, score))
        return found[:LOOKED_AT]


def _stored(
    snap: Snapshot, opinions: NDArray[np.int64], unit: PreparedUnit, row: NDArray[np.float32], least: float
) -> list[Touched]:
    scores = snap.cosine(opinions, row)
    near = scores >= least
    numbers = entity_numbers(snap, (one.name for one in unit.entities))
    for number in numbers:
        near[np.searchsorted(opinions, _among(snap, number, opinions))] = True
    chosen = np.flatnonzero(near)
    if not len(chosen):
        return []
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")][: 2 * LOOKED_AT]
    score_of = {int(opinions[at]): float(scores[at]) for at in chosen}
    out: list[Touched] = []
    for body in snap.bodies(list(score_of)):
        shared, score = _shared(snap, body.record, numbers), score_of[body.record.uid]
        if shared or score >= least:
            out.append(Touched(body.record, shared, score))
    return out[:LOOKED_AT]


def _among(snap: Snapshot, entity: int, opinions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of `opinions` that name an entity."""
    named = snap.entity_uids(entity, snap.n)
    return np.intersect1d(opinions, named, assume_unique=True)


def entity_numbers(snap: Snapshot, names: Iterable[str]) -> set[int]:
    """The entities that bear these very names."""
    found: set[int] = set()
    for name in names:
        value = snap.txn.get(keys.named(snap.bank, keys.ENTITY_NAME, folded(name)))
        if value is not None:
            found |= {snap.roots.get(number, number) for number in np.frombuffer(bytes(value), "<u4").tolist()}
    return found


def _shared(snap: Snapshot, opinion: UnitRecord, numbers: set[int]) -> tuple[str, ...]:
    """Names of entities, by number, that an opinion names too: not its holder, who is in everything they say."""
    labels = (snap.entity_label(number) for number in opinion.entities if number in numbers)
    return tuple(label[1] for label in labels if label is not None and folded(label[1]) != folded(opinion.speaker))


def _shared_names(opinion: PreparedUnit, unit: PreparedUnit) -> tuple[str, ...]:
    names = {folded(one.name) for one in unit.entities} - {folded(opinion.speaker)}
    return tuple(one.name for one in opinion.entities if folded(one.name) in names)


def counts_for(opinion: PreparedUnit | UnitRecord, unit: PreparedUnit | UnitRecord) -> bool:
    """Whether a unit may be evidence for an opinion, whatever it says."""
    if unit.network == OPINION and not same_holder(opinion.speaker, unit.speaker):
        return False
    if unit.tags and tuple(sorted(set(unit.tags))) != tuple(sorted(set(opinion.tags))):
        return False
    return unit.trust in (NORMAL, TRUSTED) or unit.trust == opinion.trust


def _weighed(touched: Touched, unit: PreparedUnit, judge: bool, alike: float) -> Weighed:
    opinion, shared, similarity = touched
    if not judge:
        return Weighed(opinion.id, unit.id)
    said = by_rules(Pair(opinion.text, unit.text, shared=shared))
    same = said.same and unit.network == OPINION
    return Weighed(opinion.id, unit.id, said.verdict, said.reason, same, similarity >= alike)

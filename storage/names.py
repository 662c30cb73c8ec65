"""Entities and speakers of a bank inside one write transaction: names in, numbers out.

A name is looked up under its folded form first: a name that is known is what it was, whatever else is near. Only a new
name is compared with others (`resolution`), and then becomes an entity of its own that is a part of the one it means,
so that nothing is lost when that turns out to be wrong. Everything is read from the transaction, so that the same
writes give the same entities.
"""

from __future__ import annotations

import dataclasses
import struct
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from pyroaring import BitMap

from recalld.storage import codec, keys
from recalld.storage.changes import Delta
from recalld.storage.columns import LIVE, rows_at
from recalld.storage.environment import WriteTxn
from recalld.storage.groups import number_key, pack_parents, read_parents, units_of
from recalld.storage.likeness import spellings
from recalld.storage.records import OBSERVATION, UNKNOWN, EntityRecord, UnitRecord

_U32 = struct.Struct("<I")
CONCEPT = "CONCEPT"
ALIAS, LIKENESS, HAND = "alias", "likeness", "hand"
EVIDENCE_KEPT = 8
MOST_STEPS = 1000
"""From a part to its root; only a damaged store has more."""

__all__ = ["ALIAS", "CONCEPT", "HAND", "LIKENESS", "Names", "agree", "folded", "number_key"]


@lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """The form under which names meet: NFKC, case folded, white space folded."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def agree(one: str, other: str) -> bool:
    """Whether two kinds can be one: a CONCEPT is what nobody gave a kind."""
    return one == other or CONCEPT in (one, other)


class Names:
    """Resolves names, counts mentions, joins and parts entities, and writes what changed back at `finish`."""

    def __init__(
        self, txn: WriteTxn, bank: int, allocate: Callable[[str], int], new_id: Callable[[], str], delta: Delta
    ) -> None:
        self.txn = txn
        self.bank = bank
        self.created = 0
        """Whole entities made less those removed or joined to others."""
        self._allocate = allocate
        self._new_id = new_id
        self._delta = delta
        self._entities: dict[int, EntityRecord] = {}
        self._speakers: dict[str, int] | None = None
        self._moved: dict[int, int] = {}
        self._emptied: set[int] = set()
        self._doubted: dict[str, list[int]] = {}
        self._recounts: set[int] = set()
        self._fresh: dict[int, list[int]] = {}

    def finish(self) -> None:
        """Count anew where groups or dates changed, and write the records."""
        self.settle()
        for root in {self.root(number) for number in self._recounts}:
            self._recount(root)
        for number, record in self._entities.items():
            self.txn.put(keys.number(self.bank, keys.ENTITY, number), codec.encode(record))
        if self._moved:
            key = keys.table(self.bank, keys.ENTITY_PARENTS)
            moved = {**read_parents(self.txn, self.bank), **self._moved}
            parents = {part: whole for part, whole in moved.items() if whole}
            if parents:
                self.txn.put(key, pack_parents(parents))
            else:
                self.txn.delete(key)
            self._delta.add("set_parents", parents)

    # -- reading ---------------------------------------------------------------------------------------------------

    def whole_of(self, number: int) -> int:
        """The entity that this one is a part of; 0 when it is whole, or gone."""
        entity = self.entity(number)
        return 0 if entity is None else entity.into

    def root(self, number: int) -> int:
        """The entity that this one is in the end."""
        for _ in range(MOST_STEPS):
            whole = self.whole_of(number)
            if not whole:
                break
            number = whole
        return number

    def members(self, root: int) -> list[int]:
        """An entity and its parts, with the parts of those."""
        found = [root]
        for number in found:
            entity = self.entity(number)
            found += () if entity is None else entity.parts
        return found

    def entity(self, number: int) -> EntityRecord | None:
        held = self._entities.get(number)
        if held is None:
            value = self.txn.get(keys.number(self.bank, keys.ENTITY, number))
            if value is not None:
                held = self._entities[number] = codec.decode(EntityRecord, value)
        return held

    def change_entity(self, number: int, **fields: object) -> None:
        entity = self.entity(number)
        if entity is not None:
            self._entities[number] = dataclasses.replace(entity, **fields)  # type: ignore[arg-type]

    def kind_of(self, number: int) -> str:
        """The kind of the whole that an entity belongs to: of its parts, the first that has one."""
        entity = self.entity(number)
        if entity is not None and not entity.into and not entity.parts:
            return entity.kind
        kinds = (entity.kind for one in self.members(self.root(number)) if (entity := self.entity(one)) is not None)
        return next((kind for kind in kinds if kind != CONCEPT), CONCEPT)

    def named(self, fold: str) -> Sequence[int]:
        """Entities that bear a name, given in its folded form."""
        return self._list(keys.named(self.bank, keys.ENTITY_NAME, fold))

    def spelt(self, form: str, most: int) -> Sequence[int]:
        """Entities whose names share a form of spelling, the newest `most`."""
        return self._list(keys.named(self.bank, keys.ENTITY_SPELLING, form))[-most:]

    def units(self, root: int) -> BitMap:
        """uids of all units that name an entity or its parts, those of this write too."""
        held = BitMap()
        for number in self.members(root):
            held |= units_of(self.txn, self.bank, number)
            held.update(self._fresh.get(number, ()))
        return held

    def _list(self, key: bytes) -> Sequence[int]:
        value = self.txn.get(key)
        if value is None:
            return ()
        # Nearly always one: numpy costs more than it saves.
        return _U32.unpack(value) if len(value) == 4 else np.frombuffer(bytes(value), "<u4").tolist()

    def _store_list(self, key: bytes, numbers: Sequence[int]) -> None:
        if numbers:
            self.txn.put(key, np.array(numbers, "<u4").tobytes())
        else:
            self.txn.delete(key)

    # -- adding ----------------------------------------------------------------------------------------------------

    def count(self, numbers: Sequence[int], uid: int, seen: int | None) -> None:
        """A new unit names these entities."""
        for number in numbers:
            self._fresh.setdefault(number, []).append(uid)
        counted: set[int] = set()
        for number in numbers:
            entity = self.entity(number)
            if entity is not None and entity.into:
                entity = self.entity(self.root(number))
            if entity is None or entity.number in counted:
                continue
            counted.add(entity.number)
            # By hand: `replace` looks every field up, and this runs for each name of each unit.
            self._entities[entity.number] = EntityRecord(
                entity.number,
                entity.id,
                entity.name,
                entity.kind,
                entity.mentions + 1,
                _least(entity.first_seen, seen),
                _greatest(entity.last_seen, seen),
                entity.why,
                entity.evidence,
                entity.apart,
                entity.into,
                entity.parts,
            )

    def add(self, name: str, kind: str, entity_id: str = "") -> int:
        """A new entity."""
        number = self._allocate("entity")
        self.put_new(EntityRecord(number, entity_id or self._new_id(), name, kind, 0, None, None))
        return number

    def put_new(self, record: EntityRecord) -> None:
        """An entity under a number that was allocated for it."""
        number = record.number
        self.created += 1
        self._entities[number] = record
        key = keys.named(self.bank, keys.ENTITY_NAME, folded(record.name))
        self._store_list(key, [*self._list(key), number])
        self.txn.put(keys.named(self.bank, keys.ENTITY_ID, record.id), _U32.pack(number))
        self._spell(record, spellings(record.name, record.kind))

    def take_kind(self, number: int, kind: str) -> None:
        """An entity nobody gave a kind gets one."""
        entity = self.entity(number)
        if entity is None or entity.kind != CONCEPT or kind == CONCEPT:
            return
        had = spellings(entity.name, CONCEPT)
        self._entities[number] = dataclasses.replace(entity, kind=kind)
        self._spell(entity, [form for form in spellings(entity.name, kind) if form not in had])

    def _spell(self, record: EntityRecord, forms: Iterable[str]) -> None:
        for form in forms:
            key = keys.named(self.bank, keys.ENTITY_SPELLING, form)
            self._store_list(key, [*self._list(key), record.number])

    # -- joining and parting ---------------------------------------------------------------------------------------

    def join(self, part: int, whole: int, why: str, evidence: tuple[int, ...] = ()) -> None:
        """An entity becomes a part of another; it must be whole and not that one's root."""
        assert not self.whole_of(part) and self.root(whole) != part, "only a whole entity joins another"
        self._point(part, whole)
        self.created -= 1
        self.change_entity(part, why=why, evidence=evidence, mentions=0, first_seen=None, last_seen=None)
        self._recounts.add(whole)

    def part(self, part: int) -> None:
        """A part becomes whole again, with its own parts."""
        whole = self.whole_of(part)
        self._point(part, 0)
        self.created += 1
        self.change_entity(part, why="", evidence=())
        self._recounts |= {part, whole}

    def _point(self, part: int, whole: int) -> None:
        """Let a part point to another whole, or (0) to none."""
        before = self.entity(self.whole_of(part))
        if before is not None:
            self.change_entity(before.number, parts=tuple(one for one in before.parts if one != part))
        after = self.entity(whole)
        if after is not None:
            self.change_entity(whole, parts=tuple(sorted({*after.parts, part})))
        self.change_entity(part, into=whole)
        self._moved[part] = whole

    def recount(self, number: int) -> None:
        """Count the units of an entity's whole anew when the write ends."""
        self._recounts.add(number)

    def _recount(self, root: int) -> None:
        if self.entity(root) is None:
            return
        self._fresh.clear()
        rows = rows_at(self.txn, self.bank, self.units(root))
        rows = rows[rows["network"] != OBSERVATION]
        said = rows["mentioned"][rows["mentioned"] != UNKNOWN]
        self.change_entity(
            root,
            mentions=int(np.count_nonzero(rows["flags"] & LIVE)),
            first_seen=int(said.min()) if len(said) else None,
            last_seen=int(said.max()) if len(said) else None,
        )

    # -- units that go ---------------------------------------------------------------------------------------------

    def forget_mentions(self, record: UnitRecord) -> None:
        """The unit is no longer current: its entities lose a mention."""
        if record.network == OBSERVATION:
            return  # it repeats what its sources say, and those count
        for number in dict.fromkeys(map(self.root, record.entities)):
            entity = self.entity(number)
            if entity is not None:
                self.change_entity(number, mentions=max(0, entity.mentions - 1))

    def count_mentions(self, record: UnitRecord) -> None:
        """The unit is current again: its entities gain a mention."""
        if record.network == OBSERVATION:
            return
        for number in dict.fromkeys(map(self.root, record.entities)):
            entity = self.entity(number)
            if entity is not None:
                self.change_entity(number, mentions=entity.mentions + 1)

    def prune(self, record: UnitRecord) -> None:
        """A unit was erased; what it alone said is forgotten when the write settles, unless it comes back till then."""
        for number in record.entities:
            entity = self.entity(number)
            if entity is None:
                continue
            self._emptied.add(number)
            if record.uid in entity.evidence:
                self.change_entity(number, evidence=tuple(uid for uid in entity.evidence if uid != record.uid))
                self._doubted.setdefault(record.id, []).append(number)

    def look_again(self, numbers: Iterable[int]) -> None:
        """Units may have gone from these by other ways than erasing: who has none goes when the write settles."""
        self._emptied.update(numbers)

    def renew(self, unit_id: str, uid: int) -> None:
        """A unit that was erased in this write is there again, from another place: what it said still stands."""
        for number in self._doubted.pop(unit_id, ()):
            entity = self.entity(number)
            if entity is not None:
                self.change_entity(number, evidence=(*entity.evidence, uid)[-EVIDENCE_KEPT:])

    def settle(self) -> None:
        """Part aliases that nobody says any more, and remove entities that no unit, live or retired, names."""
        for numbers in self._doubted.values():
            for number in numbers:
                entity = self.entity(number)
                if entity is not None and entity.why == ALIAS and not entity.evidence:
                    self.part(number)
        self._doubted.clear()
        for number in sorted(self._emptied):
            # Its parts too: a split may have left one of them without units.
            for member in self.members(self.root(number)):
                if not units_of(self.txn, self.bank, member):
                    self.remove(member)
        self._emptied.clear()

    def forget_dates(self, seen: set[tuple[int, int | None]]) -> None:
        """An erased unit's time must not live on as an entity's first or last: those come from the units left."""
        for number, at in seen:
            root = self.root(number)
            entity = self.entity(root)
            if entity is not None and at is not None and at in (entity.first_seen, entity.last_seen):
                self._recounts.add(root)

    def remove(self, number: int) -> None:
        """An entity that no unit names goes; its parts stay together under the oldest of them."""
        entity = self.entity(number)
        if entity is None:
            return
        heir = entity.into
        if entity.parts and not heir:
            # The name of the whole is gone; its oldest part stands for the others now.
            heir = min(entity.parts)
            self._point(heir, 0)
            self.change_entity(heir, why="", evidence=())
            self._recounts.add(heir)
        for part in entity.parts:
            if part != heir:
                self._point(part, heir)
        if entity.into:
            self._point(number, 0)
        elif not entity.parts:
            self.created -= 1
        del self._entities[number]
        self.txn.delete(keys.number(self.bank, keys.ENTITY, number))
        self.txn.delete(keys.named(self.bank, keys.ENTITY_ID, entity.id))
        lists = [keys.named(self.bank, keys.ENTITY_NAME, folded(entity.name))]
        lists += [keys.named(self.bank, keys.ENTITY_SPELLING, form) for form in spellings(entity.name, entity.kind)]
        for key in lists:
            self._store_list(key, [n for n in self._list(key) if n != number])

    # -- speakers --------------------------------------------------------------------------------------------------

    def speaker(self, name: str) -> int:
        if self._speakers is None:
            self._speakers = {
                folded(bytes(value).decode()): keys.trailing_u32(key)
                for key, value in self.txn.scan(keys.table(self.bank, keys.SPEAKER))
            }
        fold = folded(name)
        number = self._speakers.get(fold)
        if number is None:
            number = self._speakers[fold] = self._allocate("speaker")
            self.txn.put(keys.number(self.bank, keys.SPEAKER, number), name.encode("utf-8", "replace"))
            self._delta.add("add_speaker", fold, number)
        return number

    def drop_speaker(self, number: int) -> None:
        """Forget a speaker's name."""
        self.txn.delete(keys.number(self.bank, keys.SPEAKER, number))
        if self._speakers is not None:
            self._speakers = {fold: n for fold, n in self._speakers.items() if n != number}
        self._delta.add("drop_speaker", number)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)

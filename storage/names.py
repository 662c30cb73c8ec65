"""Entities and speakers of a bank inside one write transaction: names in, numbers out."""

from __future__ import annotations

import dataclasses
import struct
import unicodedata
from collections.abc import Callable

import numpy as np

from recalld.storage import codec, keys
from recalld.storage.changes import Delta
from recalld.storage.environment import WriteTxn
from recalld.storage.records import EntityMention, EntityRecord, UnitRecord

_U32 = struct.Struct("<I")


def folded(name: str) -> str:
    """The form under which names meet: NFKC, case folded, white space folded."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def number_key(number: int) -> bytes:
    """A set named by a number, in the 16 bytes that names have."""
    return number.to_bytes(16, "big")


class Names:
    """Resolves names, counts mentions, and writes the changed entity records back at `finish`."""

    def __init__(
        self, txn: WriteTxn, bank: int, allocate: Callable[[str], int], new_id: Callable[[], str], delta: Delta
    ) -> None:
        self.txn = txn
        self.bank = bank
        self.created = 0
        """Entities made less entities removed."""
        self._allocate = allocate
        self._new_id = new_id
        self._delta = delta
        self._entities: dict[int, EntityRecord] = {}
        self._speakers: dict[str, int] | None = None

    def finish(self) -> None:
        for number, record in self._entities.items():
            self.txn.put(keys.number(self.bank, keys.ENTITY, number), codec.encode(record))

    def _entity(self, number: int) -> EntityRecord | None:
        if number not in self._entities:
            value = self.txn.get(keys.number(self.bank, keys.ENTITY, number))
            if value is None:
                return None
            self._entities[number] = codec.decode(EntityRecord, value)
        return self._entities[number]

    def resolve(self, mention: EntityMention, seen: int | None) -> int:
        """The entity a name means: the same folded name, and kinds that agree (a CONCEPT agrees with any).

        For an exact mention any kind does.
        """
        key = keys.named(self.bank, keys.ENTITY_NAME, folded(mention.name))
        value = self.txn.get(key)
        numbers = [] if value is None else np.frombuffer(bytes(value), "<u4").tolist()
        for number in numbers:
            entity = self._entity(number)
            agree = entity is not None and (entity.kind == mention.kind or "CONCEPT" in (entity.kind, mention.kind))
            if entity is not None and (agree or mention.exact):
                kind = mention.kind if entity.kind == "CONCEPT" else entity.kind
                self._entities[number] = dataclasses.replace(
                    entity,
                    kind=kind,
                    mentions=entity.mentions + 1,
                    first_seen=_least(entity.first_seen, seen),
                    last_seen=_greatest(entity.last_seen, seen),
                )
                return int(number)
        number = self._allocate("entity")
        self.created += 1
        record = EntityRecord(number, self._new_id(), mention.name, mention.kind, 1, seen, seen)
        self._entities[number] = record
        self.txn.put(key, np.array([*numbers, number], "<u4").tobytes())
        self.txn.put(keys.named(self.bank, keys.ENTITY_ID, record.id), _U32.pack(number))
        return number

    def prune(self, record: UnitRecord) -> None:
        """Remove entities that no unit, live or retired, names any more."""
        for number in record.entities:
            entity = self._entity(number)
            held = next(iter(self.txn.scan(keys.containers(self.bank, keys.SET_ENTITY, number_key(number)))), None)
            if entity is None or held is not None:
                continue
            del self._entities[number]
            self.txn.delete(keys.number(self.bank, keys.ENTITY, number))
            self.txn.delete(keys.named(self.bank, keys.ENTITY_ID, entity.id))
            name_key = keys.named(self.bank, keys.ENTITY_NAME, folded(entity.name))
            value = self.txn.get(name_key)
            left = [n for n in np.frombuffer(bytes(value or b""), "<u4").tolist() if n != number]
            if left:
                self.txn.put(name_key, np.array(left, "<u4").tobytes())
            else:
                self.txn.delete(name_key)
            self.created -= 1

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

    def forget_dates(self, seen: set[tuple[int, int | None]], mentions: Callable[[int], list[int]]) -> None:
        """An erased unit's time must not live on as an entity's first or last: take those from the units left."""
        for number in {number for number, _ in seen}:
            entity = self._entity(number)
            if entity is None or not {entity.first_seen, entity.last_seen} & {t for n, t in seen if n == number}:
                continue
            left = mentions(number)
            self._entities[number] = dataclasses.replace(
                entity, first_seen=min(left, default=None), last_seen=max(left, default=None)
            )

    def drop_speaker(self, number: int) -> None:
        """Forget a speaker's name."""
        self.txn.delete(keys.number(self.bank, keys.SPEAKER, number))
        if self._speakers is not None:
            self._speakers = {fold: n for fold, n in self._speakers.items() if n != number}
        self._delta.add("drop_speaker", number)

    def count_mentions(self, record: UnitRecord) -> None:
        """The unit is current again: its entities gain a mention."""
        for number in record.entities:
            entity = self._entity(number)
            if entity is not None:
                self._entities[number] = dataclasses.replace(entity, mentions=entity.mentions + 1)

    def forget_mentions(self, record: UnitRecord) -> None:
        """The unit is no longer current: its entities lose a mention."""
        for number in record.entities:
            entity = self._entity(number)
            if entity is not None:
                self._entities[number] = dataclasses.replace(entity, mentions=max(0, entity.mentions - 1))


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)

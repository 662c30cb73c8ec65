"""Documents of a retain inside its write: which units are added, kept, moved, replaced, and which become mentions."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recalld.actors.messages import ChunkWrite, CommitRetain, DocumentWrite
from recalld.actors.retain import elliptic, moving
from recalld.actors.retain.matching import Matcher
from recalld.actors.retain.outcome import Outcome
from recalld.actors.retain.supersession import judge, release
from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    DocumentStored,
    MentionsAdded,
    MentionsMoved,
    MentionsRemoved,
    NewUnit,
    UnitsAdded,
    UnitsMoved,
    UnitsRelinked,
    UnitsRetagged,
    UnitsRetired,
)
from recalld.storage.errors import Superseded
from recalld.storage.records import ChunkRecord, DocumentRecord, MentionRecord, PreparedUnit, UnitRecord

_U32 = struct.Struct("<I")
Similar = dict[str, tuple[list[tuple[int, float]], list[tuple[str, float]]]]


@dataclass(frozen=True, slots=True)
class Target:
    """A document to be written and how it stands: its old chunks, and what goes with those that are not kept."""

    write: DocumentWrite
    stored: DocumentRecord | None
    number: int
    old: Mapping[int, ChunkRecord]
    gone: tuple[int, ...]
    gone_mentions: tuple[tuple[str, int], ...]


def target_of(applier: Applier, document: DocumentWrite) -> Target:
    """Raises `Superseded` when the document changed since the plan."""
    stored = _document(applier, document.document_id)
    if (stored.revision if stored else 0) != document.revision:
        raise Superseded("The document changed while the request was prepared.")
    number = stored.number if stored else applier.allocate("document")
    old: dict[int, ChunkRecord] = {}
    if stored is not None and not document.append:
        found = applier.txn.scan(keys.chunks(applier.bank, number))
        old = {chunk.index: chunk for chunk in (codec.decode(ChunkRecord, value) for _, value in found)}
    kept = {chunk.keep for chunk in document.chunks if chunk.keep is not None}
    leaving = [chunk for index, chunk in old.items() if index not in kept]
    return Target(
        document,
        stored,
        number,
        old,
        tuple(uid for chunk in leaving for uid in chunk.uids),
        tuple((unit_id, one) for chunk in leaving for unit_id, one in chunk.mentions),
    )


def _document(applier: Applier, document_id: str) -> DocumentRecord | None:
    number = applier.txn.get(keys.named(applier.bank, keys.DOCUMENT_ID, document_id))
    if number is None:
        return None
    value = applier.txn.get(keys.number(applier.bank, keys.DOCUMENT, _U32.unpack(number)[0]))
    return None if value is None else codec.decode(DocumentRecord, value)


@dataclass(slots=True)
class DocumentWriter:
    """Writes the documents of one retain, one after the other, then what all of them bring about (`finish`)."""

    applier: Applier
    commit: CommitRetain
    similar: Similar
    targets: list[Target]
    uids: dict[str, int] = field(default_factory=dict)
    """Of each prepared unit, the unit it became or mentions."""
    new: list[NewUnit] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    """Stored units that were retired or tagged anew."""
    added: int = 0
    """Units that are new to the bank, not those that stand elsewhere now."""
    matcher: Matcher = field(init=False)
    _units: dict[str, PreparedUnit] = field(init=False)
    _said: dict[str, MentionRecord] = field(default_factory=dict)
    _formers: dict[str, moving.Former] = field(default_factory=dict)
    _leaving: list[UnitRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        going = {uid for target in self.targets for uid in target.gone}
        claims = frozenset(unit.claim for unit in self.commit.units if unit.claim)
        self.matcher = Matcher(self.applier, self.commit.now, claims, going)
        self._units = {unit.id: unit for unit in self.commit.units}
        gone = tuple(pair for target in self.targets for pair in target.gone_mentions)
        if gone:
            self.applier.apply(MentionsRemoved(gone, self.commit.now))
        self._leaving = moving.leaving(self.applier, going)

    # -- one document ----------------------------------------------------------------------------------------------

    def write(self, target: Target) -> None:
        document, stored, now = target.write, target.stored, self.commit.now
        thread, prev = self._thread(target)
        if document.append and stored is not None:
            prev = self._last_uid(stored)
        first = stored.chunks if stored is not None and document.append else 0
        place = {unit: first + at for at, chunk in enumerate(document.chunks) for unit in chunk.units}
        relinked: dict[int, int] = {}
        for entry in document.sequence:
            if isinstance(entry, int):
                before = self._check_place(target, entry)
                if before != prev and not self._stays_behind(target, entry, before):
                    relinked[entry] = prev
                prev = entry
            else:
                prev = self._unit(target, entry, place[entry], thread, prev)
        chunks = [self._chunk(target, chunk, first + at) for at, chunk in enumerate(document.chunks)]
        if target.gone:
            self.applier.apply(UnitsRetired(target.gone, now, unchunked=True))
        dropped = tuple(i for i in target.old if i >= len(document.chunks)) if not document.append else ()
        self.applier.apply(DocumentStored(_record(target, thread, len(chunks), now), tuple(chunks), dropped))
        if relinked:
            self.applier.apply(UnitsRelinked(relinked, now))
        self._move_kept(target, first)
        self.changed += target.gone
        for chunk in document.chunks:
            if chunk.keep is not None and chunk.tags is not None:
                self.applier.apply(UnitsRetagged(target.old[chunk.keep].uids, chunk.tags, now))
                self.changed += target.old[chunk.keep].uids

    def _check_place(self, target: Target, uid: int) -> int:
        """The neighbour a kept unit has now."""
        unit = self.applier.unit(uid)
        if unit is None or not unit.stands or unit.document != target.number:
            raise Superseded("A unit of the document went while the request was prepared.")
        return self.applier.prev_of(uid)

    def _stays_behind(self, target: Target, uid: int, before: int) -> bool:
        """It stands behind a unit of another document because its own mentions that one, and still does."""
        unit = self.applier.unit(uid)
        other = self.applier.unit(before) if before >= 0 else None
        if unit is None or other is None or unit.predecessor != before or other.document == target.number:
            return False
        said = self.applier.mentions_of(other.id) if other.stands and other.proof_count > 1 else []
        return any(one.document == target.number for one in said)

    def _unit(self, target: Target, entry: str, index: int, thread: int, prev: int) -> int:
        """Write a prepared unit, or what it mentions; the uid the next unit stands behind."""
        unit, document = self._units[entry], target.write
        found = self.matcher.find(unit)
        if unit.attribute == elliptic.IT:
            unit = elliptic.resolved(unit, prev, self._before, undocumented=document.undocumented)
            if found is not None and not self._same_matter(unit, found):
                # The same words about something else: no mention of it.
                unit, found = dataclasses.replace(unit, claim=b""), None
        chunk_id = _chunk_id(self.commit, document, index)
        if found is not None and not (isinstance(found, UnitRecord) and self._continues(found)):
            unit_id, uid = (found.id, found.uid) if isinstance(found, UnitRecord) else found
            spot = MentionRecord(
                unit_id,
                0,
                target.number,
                document.document_id,
                index,
                chunk_id,
                self.commit.now,
                self._id_of(unit.predecessor),
                document.undocumented,
            )
            self._said[entry] = self.matcher.add(unit, unit_id, spot)
            self.uids[entry] = uid
            return uid
        former = found if isinstance(found, UnitRecord) else None
        if former is not None:
            unit = dataclasses.replace(unit, id=former.id)
            self.matcher.continued.add(former.uid)
            self.matcher.matched[entry] = former.id
            self._formers[former.id] = moving.former_of(self.applier, former)
        else:
            self.added += 1
        uid = self.uids[entry] = self.applier.allocate("uid")
        stored_links, own_links = self.similar.get(entry, ([], []))
        own = ((self.uids[other], weight) for other, weight in own_links if other in self.uids)
        causes = [
            (self.uids[cause], weight)
            for cause, weight in itertools.zip_longest(unit.causes, unit.cause_weights, fillvalue=1.0)
            if cause in self.uids and self.uids[cause] != uid
        ]
        made = NewUnit(
            unit=unit,
            uid=uid,
            document=target.number,
            document_id=document.document_id,
            chunk_index=index,
            chunk_id=chunk_id,
            thread=thread,
            prev=prev,
            predecessor=self._uid(unit.predecessor),
            causes=tuple(cause for cause, _ in causes),
            cause_weights=tuple(weight for _, weight in causes),
            similar=tuple(dict((*stored_links, *own)).items()),
            undocumented=document.undocumented,
            former=former,
            proof=1 if former is None else 1 + len(self.applier.mentions_of(former.id)),
        )
        if former is not None:
            self.uids[former.id] = uid
        self.new.append(made)
        self.matcher.keep(made)
        return uid

    def _before(self, uid: int) -> tuple[PreparedUnit | UnitRecord, int] | None:
        """A unit of the bank or of this write, and the one it stands behind."""
        for new in reversed(self.new):
            if new.uid == uid:
                return new.unit, new.prev
        unit = self.applier.unit(uid)
        return None if unit is None else (unit, self.applier.prev_of(uid))

    def _same_matter(self, unit: PreparedUnit, found: UnitRecord | tuple[str, int]) -> bool:
        held = self._before(found.uid if isinstance(found, UnitRecord) else found[1])
        return held is not None and (held[0].subject, held[0].attribute) == (unit.subject, unit.attribute)

    def _continues(self, found: UnitRecord) -> bool:
        return found.uid in self.matcher.going and found.uid not in self.matcher.continued

    def _uid(self, reference: int | str | None) -> int | None:
        return self.uids[reference] if isinstance(reference, str) else reference

    def _id_of(self, reference: int | str | None) -> str:
        """The id under which the unit before is known."""
        if isinstance(reference, str):
            return self.matcher.matched.get(reference, reference)
        unit = None if reference is None else self.applier.unit(reference)
        return "" if unit is None else unit.id

    def _chunk(self, target: Target, chunk: ChunkWrite, index: int) -> ChunkRecord:
        if chunk.keep is not None:
            return dataclasses.replace(target.old[chunk.keep], index=index, glue=chunk.glue)
        said = [self._said[unit] for unit in chunk.units if unit in self._said]
        return ChunkRecord(
            target.number,
            index,
            chunk.text if target.write.keep_text else "",
            chunk.digest,
            chunk.glue,
            tuple(self.uids[unit] for unit in chunk.units if unit not in self._said),
            self.commit.now,
            extractor=chunk.extractor,
            reading=chunk.reading,
            mentions=tuple((one.unit, one.number) for one in said),
        )

    def _move_kept(self, target: Target, first: int) -> None:
        """Kept chunks that stand elsewhere now take their units and mentions along."""
        units: dict[int, tuple[int, str]] = {}
        mentions: dict[tuple[str, int], tuple[int, str]] = {}
        for at, chunk in enumerate(target.write.chunks):
            index = first + at
            if chunk.keep is not None and chunk.keep != index:
                there = index, _chunk_id(self.commit, target.write, index)
                units.update(dict.fromkeys(target.old[chunk.keep].uids, there))
                mentions.update(((name, number), there) for name, number in target.old[chunk.keep].mentions)
        if units:
            self.applier.apply(UnitsMoved(units, self.commit.now))
        if mentions:
            self.applier.apply(MentionsMoved(mentions, self.commit.now))

    def _last_uid(self, stored: DocumentRecord) -> int:
        for _, value in self.applier.txn.scan_reverse(keys.chunks(self.applier.bank, stored.number)):
            for uid in reversed(codec.decode(ChunkRecord, value).uids):
                unit = self.applier.unit(uid)
                if unit is not None and unit.stands:
                    return uid
        return -1

    def _thread(self, target: Target) -> tuple[int, int]:
        """(thread, neighbour before the first unit): its own, or that of the turn an undocumented text follows."""
        if target.stored is not None:
            return target.stored.thread, -1
        sequence = target.write.sequence
        first = next((self._units[entry] for entry in sequence if isinstance(entry, str)), None)
        if target.write.undocumented and first is not None and isinstance(first.predecessor, int):
            before = self.applier.unit(first.predecessor)
            if before is None or not before.stands:
                raise Superseded("The turn before changed while the request was prepared.")
            return self.applier.thread_of(first.predecessor), first.predecessor
        return self.applier.allocate("thread"), -1

    # -- all of them -----------------------------------------------------------------------------------------------

    def finish(self) -> Outcome:
        """Add the units, move those whose place went, then see what ends and what comes back."""
        applier, now = self.applier, self.commit.now
        going = [unit for unit in self._leaving if unit.uid not in self.matcher.continued]
        placed = moving.take(applier, going, self.commit.moves)
        taken = [(one.former.unit.id, one.mention.number) for one in placed]
        moved, formers = moving.place(applier, placed, self.uids, now, erased=False, similar=self.similar)
        own = list(self.new)
        self.new += moved
        if self.new:
            applier.apply(UnitsAdded(tuple(self.new), now))
        continuing = [one for one in own if one.former is not None]
        moving.take_over(applier, continuing, [self._formers[one.unit.id] for one in continuing], now)
        moving.take_over(applier, moved, formers, now)
        moving.settle_chunks(applier, moved, taken, now)
        if self.matcher.mentions:
            applier.apply(MentionsAdded(tuple(self.matcher.mentions), now))
        gone = [unit.id for uid in self.matcher.going if (unit := applier.unit(uid)) and applier.uid_of(unit.id) == uid]
        restored, changes = release(applier, gone, now)
        corrections = frozenset(one.uid for one in own if one.unit.corrects)
        changes += judge(applier, [one.uid for one in own], corrections, now)
        return Outcome(
            now=now,
            units={entry: self._id_of(entry) for entry in self._units},
            mentioned=frozenset(self._said),
            changes=tuple(changes),
            restored=tuple(restored),
            replaced=len(gone),
            moved=tuple(one.unit.id for one in moved),
        )


def _chunk_id(commit: CommitRetain, document: DocumentWrite, index: int) -> str:
    return f"{commit.bank_id}_{document.document_id}_{index}"


def _record(target: Target, thread: int, written: int, now: int) -> DocumentRecord:
    document, stored = target.write, target.stored
    before = stored if document.append else None
    fields: dict[str, Any] = {"content_hash": document.content_hash, "keep_text": document.keep_text}
    return DocumentRecord(
        number=target.number,
        id=document.document_id,
        text_length=document.text_length + (before.text_length if before else 0),
        chunks=written + (before.chunks if before else 0),
        created_at=stored.created_at if stored else now,
        updated_at=now,
        revision=(stored.revision if stored else 0) + 1,
        tags=document.tags,
        metadata=document.metadata,
        params=document.params,
        thread=thread,
        **fields,
    )

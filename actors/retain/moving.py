"""Units that lose their place in a document's text while another document still says the same: they move there.

The unit that moves is written anew, under its id, from what that mention holds alone: its text, context, metadata, time
and neighbours, with vectors of its own. So nothing of the place that went lives on in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recalld.actors.encoder_messages import EmbeddedTexts
from recalld.actors.messages import Move, Moved
from recalld.actors.retain.matching import holds_since
from recalld.actors.retain.plan import day
from recalld.storage import codec, keys, mentions
from recalld.storage.analysis import term_frequencies
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    DocumentStored,
    End,
    MentionsAdded,
    MentionsRemoved,
    NewUnit,
    UnitsEnded,
    UnitsLinked,
)
from recalld.storage.edges import decode
from recalld.storage.errors import Superseded
from recalld.storage.mentions import claim_of, entities_of
from recalld.storage.records import (
    CAUSED_BY,
    CAUSES,
    SUPERSEDED,
    SUPERSEDES,
    VALID,
    ChunkRecord,
    DocumentRecord,
    EntityMention,
    MentionRecord,
    PreparedUnit,
    UnitRecord,
)
from recalld.storage.snapshot import Snapshot

Similar = Mapping[str, tuple[list[tuple[int, float]], list[tuple[str, float]]]]

# -- planning --------------------------------------------------------------------------------------------------------


def move_to(snap: Snapshot, unit: UnitRecord, mention: MentionRecord, going: Mapping[str, str]) -> Move:
    """What embedding a mention takes. `going` are the texts of units that move in the same write, by id."""
    before: int | str | None = None
    text = ""
    if mention.predecessor in going and mention.predecessor != unit.id:
        before, text = mention.predecessor, going[mention.predecessor]
    elif mention.predecessor:
        uid = snap.uid_of(mention.predecessor)
        stands = snap.unit(uid) if uid is not None else None
        if stands is not None and stands.stands and stands.tags == unit.tags and stands.trust == unit.trust:
            before, text = stands.uid, stands.text
    return Move(
        unit=unit.id,
        number=mention.number,
        document_id=mention.document_id,
        chunk=mention.chunk_index,
        text=mention.text,
        context=mention.context,
        names=tuple(name for name, _, _ in mention.entities),
        date=day(mention.occurred_start if mention.occurred_start is not None else mention.mentioned_at),
        before=before,
        before_text=text,
    )


def is_current(snap: Snapshot, unit: UnitRecord) -> bool:
    """No later version of the unit has taken its id over."""
    return snap.uid_of(unit.id) == unit.uid


def moves_out_of(snap: Snapshot, uids: Iterable[int], document: int) -> list[Move]:
    """For each unit of a document that goes, its first mention outside of it, if any."""
    found: list[tuple[UnitRecord, MentionRecord]] = []
    for uid in uids:
        unit = snap.unit(uid) if snap.columns.proof[uid] > 1 else None
        if unit is None or not unit.stands or not is_current(snap, unit):
            continue
        outside = (one for one in mentions.mentions_of(snap.txn, snap.bank, unit.id) if one.document != document)
        mention = next(outside, None)
        if mention is not None:
            found.append((unit, mention))
    going = {unit.id: mention.text for unit, mention in found}
    return [_unless_gone(snap, move_to(snap, unit, mention, going), document) for unit, mention in found]


def _unless_gone(snap: Snapshot, move: Move, document: int) -> Move:
    """A predecessor that goes with the document is none."""
    if isinstance(move.before, int) and snap.columns.document[move.before] == document:
        return dataclasses.replace(move, before=None, before_text="")
    return move


def moves_apart(snap: Snapshot, uids: Iterable[int], document: int, tags: tuple[str, ...]) -> list[Move]:
    """What parts when a document gets new tags: other documents' mentions of its units, and its mentions of others'."""
    new = tuple(sorted(set(tags)))
    found: list[Move] = []
    for uid in uids:
        unit = snap.unit(uid) if snap.columns.proof[uid] > 1 else None
        if unit is None or not unit.stands or unit.tags == new or not is_current(snap, unit):
            continue
        outside = [one for one in mentions.mentions_of(snap.txn, snap.bank, unit.id) if one.document != document]
        found += [_apart(snap, unit, one) for one in outside[:1]]
    seen: set[str] = set()
    for unit_id, number in mentions.mentions_in(snap.chunks(document)):
        held = snap.uid_of(unit_id)
        unit = None if held is None else snap.unit(held)
        mention = mentions.mention(snap.txn, snap.bank, unit_id, number)
        if unit is None or mention is None or unit_id in seen or unit.document == document or unit.tags == new:
            continue
        seen.add(unit_id)
        found.append(_apart(snap, unit, mention))
    return found


def _apart(snap: Snapshot, unit: UnitRecord, mention: MentionRecord) -> Move:
    return dataclasses.replace(move_to(snap, unit, mention, {}), before=None, before_text="", parts=True)


def terms_of(text: str, context: str, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Keyword terms of a unit: its text and context, and names of entities that the text does not hold already."""
    fold = text.casefold()
    names = [name for name in names if name.casefold() not in fold]
    return term_frequencies("\n".join((text, context, *names)) if names or context else text)


def moved(move: Move, unit_id: str, embedded: EmbeddedTexts, index: int) -> Moved:
    """A move with its vectors."""
    return Moved(
        unit=move.unit,
        number=move.number,
        id=unit_id,
        terms=terms_of(move.text, move.context, move.names),
        tokens=embedded.tokens[index],
        vectors=embedded.vectors[index],
        scales=embedded.scales[index],
        token_vectors=embedded.token_vectors[index],
        token_ids=embedded.token_ids[index],
        before=move.before,
    )


# -- in the write ----------------------------------------------------------------------------------------------------


class Former(NamedTuple):
    """A unit whose place goes, and its links that stay: (causes, effects) with weights."""

    unit: UnitRecord
    causes: tuple[tuple[int, float], ...]
    effects: tuple[tuple[int, float], ...]


class Placed(NamedTuple):
    """A mention that becomes the place of a unit."""

    former: Former
    mention: MentionRecord
    move: Moved


def former_of(applier: Applier, unit: UnitRecord) -> Former:
    value = applier.txn.get(keys.number(applier.bank, keys.EDGES, unit.uid))
    if value is None:
        return Former(unit, (), ())
    held = decode(value)
    pairs = list(zip(held.others.tolist(), held.kinds.tolist(), held.weights.tolist(), strict=True))
    return Former(
        unit,
        tuple((other, weight) for other, kind, weight in pairs if kind == CAUSED_BY),
        tuple((other, weight) for other, kind, weight in pairs if kind == CAUSES),
    )


def leaving(applier: Applier, uids: Iterable[int]) -> list[UnitRecord]:
    """Of units whose place goes, those that are said elsewhere too."""
    found = []
    for uid in uids:
        unit = applier.unit(uid)
        if unit is not None and unit.proof_count > 1 and unit.stands and applier.uid_of(unit.id) == uid:
            found.append(unit)
    return found


def take(applier: Applier, units: Iterable[UnitRecord], moves: Sequence[Moved]) -> list[Placed]:
    """The prepared move of each unit that needs one. Raises `Superseded` when one was not planned, or is stale."""
    prepared = {move.unit: move for move in moves}
    found = []
    for unit in units:
        move = prepared.get(unit.id)
        mention = None if move is None else mentions.mention(applier.txn, applier.bank, unit.id, move.number)
        if move is None or mention is None:
            raise Superseded("A claim gained or lost a mention while its change was prepared.")
        found.append(Placed(former_of(applier, unit), mention, move))
    return found


def prepared_unit(mention: MentionRecord, like: UnitRecord, move: Moved, tags: tuple[str, ...]) -> PreparedUnit:
    """A mention as a unit of its own; network and trust are those of the unit it was a mention of."""
    unit = PreparedUnit(
        id=move.id,
        text=mention.text,
        network=like.network,
        context=mention.context,
        speaker=mention.speaker,
        entities=entities_of(mention),
        occurred_start=mention.occurred_start,
        occurred_end=mention.occurred_end,
        mentioned_at=mention.mentioned_at,
        anchor_assumed=mention.anchor_assumed,
        metadata=mention.metadata,
        tags=tags,
        chunk_index=mention.chunk_index,
        tokens=move.tokens,
        terms=move.terms,
        question=mention.question,
        trust=like.trust,
        confidence=mention.confidence,
        vectors=move.vectors,
        scales=move.scales,
        token_vectors=move.token_vectors,
        token_ids=move.token_ids,
        subject=mention.subject,
        attribute=mention.attribute,
        value=mention.value,
        polarity=mention.polarity,
        risks=like.risks,
    )
    return dataclasses.replace(unit, claim=claim_of(unit))


def place(
    applier: Applier,
    placed: Sequence[Placed],
    uids: dict[str, int],
    now: int,
    *,
    erased: bool,
    similar: Similar | None = None,
) -> tuple[list[NewUnit], list[Former]]:
    """The units of some moves, to be added after those they follow are gone; `uids` learns their uids.

    `erased`: what they follow was never known, so they were known since their own mention was. Raises `Superseded`
    when a predecessor changed.
    """
    new: list[NewUnit] = []
    formers: list[Former] = []
    for former, _, _ in placed:
        uids[former.unit.id] = applier.allocate("uid")
    for former, mention, move in placed:
        document = document_by(applier, mention.document)
        if document is None:
            raise Superseded("A document changed while units were to move there.")
        before = uids.get(move.before) if isinstance(move.before, str) else move.before
        if before is not None and isinstance(move.before, int):
            stands = applier.unit(before)
            if stands is None or not stands.stands or stands.tags != former.unit.tags:
                raise Superseded("The unit that another is to be embedded behind changed.")
        if isinstance(move.before, str) and before is None:
            raise Superseded("The unit that another is to be embedded behind changed.")
        applier.apply(MentionsRemoved(((former.unit.id, mention.number),), now))
        uid = uids[former.unit.id]
        new.append(
            NewUnit(
                unit=prepared_unit(mention, former.unit, move, former.unit.tags),
                uid=uid,
                document=document.number,
                document_id=document.id,
                chunk_index=mention.chunk_index,
                chunk_id=mention.chunk_id,
                thread=document.thread,
                prev=-1 if before is None else before,
                predecessor=before,
                undocumented=mention.undocumented,
                former=former.unit,
                proof=1 + len(applier.mentions_of(former.unit.id)),
                recorded_at=mention.recorded_at if erased else None,
                similar=stored_links(similar, move.id),
            )
        )
        formers.append(former)
    return new, formers


def take_over(applier: Applier, new: Iterable[NewUnit], formers: Iterable[Former], now: int) -> None:
    """After they were added, units that continue others get their links, and end where those had ended."""
    for one, former in zip(new, formers, strict=True):
        unit = former.unit
        if unit.state != VALID and unit.retired_at is not None:
            by = applier.current(unit.superseded_by) if unit.superseded_by else None
            until = None
            if unit.state == SUPERSEDED and by is not None:
                until = holds_since(by, by.recorded_at) - 1
            end = End(one.uid, unit.state, unit.reason, unit.superseded_by, until)
            applier.apply(UnitsEnded((end,), unit.retired_at))
            if by is not None:
                applier.apply(UnitsLinked(by.uid, ((one.uid, 1.0),), SUPERSEDES, now))
        ended = [applier.uid_of(name) for name in mentions.ended_by(applier.txn, applier.bank, unit.id)]
        pairs = tuple((uid, 1.0) for uid in ended if uid is not None)
        if pairs:
            applier.apply(UnitsLinked(one.uid, pairs, SUPERSEDES, now))
        if former.causes:
            applier.apply(UnitsLinked(one.uid, former.causes, CAUSED_BY, now))
        for effect, weight in former.effects:
            if applier.unit(effect) is not None:
                applier.apply(UnitsLinked(effect, ((one.uid, weight),), CAUSED_BY, now))


def settle_chunks(applier: Applier, new: Iterable[NewUnit], taken: Iterable[tuple[str, int]], now: int) -> None:
    """Chunks whose mentions became units, or left: each names its units and mentions; its document has changed.

    `taken` are (unit id, number) of mentions that are rows no more.
    """
    gone = set(taken)
    added: dict[tuple[int, int], list[int]] = {}
    for one in new:
        added.setdefault((one.document, one.chunk_index), []).append(one.uid)
    by_document: dict[int, list[ChunkRecord]] = {}
    for (number, index), uids in added.items():
        value = applier.txn.get(keys.chunk(applier.bank, number, index))
        if value is None:
            raise Superseded("A document changed while units were to move there.")
        chunk = codec.decode(ChunkRecord, value)
        left = tuple(pair for pair in chunk.mentions if tuple(pair) not in gone)
        changed = dataclasses.replace(chunk, uids=(*chunk.uids, *uids), mentions=left)
        by_document.setdefault(number, []).append(changed)
    for number, chunks in by_document.items():
        document = document_by(applier, number)
        if document is not None:
            record = dataclasses.replace(document, revision=document.revision + 1, updated_at=document.updated_at)
            applier.apply(DocumentStored(record, tuple(chunks)))


def document_by(applier: Applier, number: int) -> DocumentRecord | None:
    value = applier.txn.get(keys.number(applier.bank, keys.DOCUMENT, number))
    return None if value is None else codec.decode(DocumentRecord, value)


def check_apart(
    applier: Applier, moves: Sequence[Moved], uids: Iterable[int], document: int, tags: tuple[str, ...]
) -> None:
    """Raise `Superseded` unless `moves` hold whatever is to part under new tags."""
    prepared = {move.unit for move in moves}
    for unit in leaving(applier, uids):
        outside = unit.tags != tags and any(one.document != document for one in applier.mentions_of(unit.id))
        if outside and unit.id not in prepared:
            raise Superseded("A claim gained a mention while new tags were prepared.")


def part(
    applier: Applier,
    moves: Sequence[Moved],
    document: int,
    tags: tuple[str, ...],
    now: int,
    similar: Similar | None = None,
) -> tuple[list[NewUnit], list[tuple[str, int]]]:
    """Mentions that become units of their own because a document gets new `tags`; and the rows that they were.

    A unit of the document keeps what the document itself mentions; the first mention outside of it becomes a unit with
    the tags it had, and the others go with that one. A mention in the document becomes a unit with the new tags.
    """
    new: list[NewUnit] = []
    taken: list[tuple[str, int]] = []
    for move in moves:
        unit = applier.current(move.unit)
        mention = mentions.mention(applier.txn, applier.bank, move.unit, move.number)
        if unit is None or mention is None:
            raise Superseded("A claim changed while new tags were prepared.")
        inside = unit.document != document
        rest = [
            one
            for one in applier.mentions_of(unit.id)
            if one.number != mention.number and (one.document == document) == inside
        ]
        owner = document_by(applier, mention.document)
        if owner is None:
            raise Superseded("A document changed while new tags were prepared.")
        rows = ((unit.id, mention.number), *((unit.id, one.number) for one in rest))
        applier.apply(MentionsRemoved(rows, now))
        taken += rows
        prepared = prepared_unit(mention, unit, move, tags if inside else unit.tags)
        uid = applier.allocate("uid")
        new.append(
            NewUnit(
                unit=prepared,
                uid=uid,
                document=owner.number,
                document_id=owner.id,
                chunk_index=mention.chunk_index,
                chunk_id=mention.chunk_id,
                thread=owner.thread,
                prev=-1,
                predecessor=None,
                undocumented=mention.undocumented,
                proof=1 + len(rest),
                recorded_at=mention.recorded_at,
                similar=stored_links(similar, move.id),
            )
        )
        for one in rest:
            _rename(applier, one, move.id, now)
    return new, taken


def _rename(applier: Applier, mention: MentionRecord, unit_id: str, now: int) -> None:
    """A mention goes over to another unit, in its chunk too; the unit's count follows when it is added."""
    value = applier.txn.get(keys.chunk(applier.bank, mention.document, mention.chunk_index))
    document = document_by(applier, mention.document)
    if value is None or document is None:
        return
    chunk = codec.decode(ChunkRecord, value)
    named = tuple((unit_id, number) if number == mention.number else (name, number) for name, number in chunk.mentions)
    record = dataclasses.replace(document, revision=document.revision + 1)
    applier.apply(DocumentStored(record, (dataclasses.replace(chunk, mentions=named),)))
    applier.apply(MentionsAdded((dataclasses.replace(mention, unit=unit_id),), now))


def stored_links(similar: Similar | None, unit_id: str) -> tuple[tuple[int, float], ...]:
    """Links of a unit to stored ones."""
    return () if similar is None else tuple(similar.get(unit_id, ([], []))[0])


def names_of(entities: Iterable[EntityMention]) -> tuple[str, ...]:
    return tuple(entity.name for entity in entities)

"""Where a claim was said besides the place of its unit, who ended whom, and how both are found: rows and their reads.

The same line from the same speaker, with the same tags, trust, network and event days, is one claim (`claim_of`). The
unit that carries it stands at one place; every further place is a `MentionRecord`. Rows name units by their ids, not by
uid: a unit whose text is edited, or that moves to another of its mentions, gets a new uid and keeps its id.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from pyroaring import BitMap

from recalld.storage import codec, keys
from recalld.storage.environment import ReadTxn
from recalld.storage.groups import number_key
from recalld.storage.names import folded
from recalld.storage.records import ChunkRecord, EntityMention, MentionRecord, PreparedUnit, UnitRecord

_U32 = struct.Struct("<I")
_DAY_US = 86_400_000_000
_ENDS = " .!,;:…。、，．！；：~～-–—"


def folded_line(text: str) -> str:
    """A line without case, width, runs of spaces and the punctuation it ends with; a question mark stays."""
    if text.isascii():
        return " ".join(text.lower().split()).rstrip(_ENDS)
    return folded(unicodedata.normalize("NFKC", text)).rstrip(_ENDS)


def claim_of(unit: PreparedUnit | UnitRecord) -> bytes:
    """16 bytes that are the same for two units exactly when they are one claim."""
    days = ("" if instant is None else str(instant // _DAY_US) for instant in (unit.occurred_start, unit.occurred_end))
    parts = (
        folded_line(unit.text),
        folded(unit.speaker),
        unit.trust,
        str(unit.network),
        *days,
        *sorted(set(unit.tags)),
    )
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def mention_of(unit: PreparedUnit, place: MentionRecord) -> MentionRecord:
    """`place` with all that the unit says."""
    return MentionRecord(
        unit=place.unit,
        number=place.number,
        document=place.document,
        document_id=place.document_id,
        chunk_index=place.chunk_index,
        chunk_id=place.chunk_id,
        recorded_at=place.recorded_at,
        predecessor=place.predecessor,
        undocumented=place.undocumented,
        text=unit.text,
        context=unit.context,
        speaker=unit.speaker,
        entities=tuple((one.name, one.kind, one.exact) for one in unit.entities),
        occurred_start=unit.occurred_start,
        occurred_end=unit.occurred_end,
        mentioned_at=unit.mentioned_at,
        anchor_assumed=unit.anchor_assumed,
        metadata=unit.metadata,
        question=unit.question,
        confidence=unit.confidence,
        subject=unit.subject,
        attribute=unit.attribute,
        value=unit.value,
        polarity=unit.polarity,
    )


def entities_of(mention: MentionRecord) -> tuple[EntityMention, ...]:
    return tuple(EntityMention(name, kind, exact) for name, kind, exact in mention.entities)


# -- reads -----------------------------------------------------------------------------------------------------------


def uid_of(txn: ReadTxn, bank: int, unit_id: str) -> int | None:
    """The uid a unit has now."""
    value = txn.get(keys.named(bank, keys.UNIT_ID, unit_id))
    return None if value is None else int(_U32.unpack(value)[0])


def unit_of_claim(txn: ReadTxn, bank: int, claim: bytes) -> str | None:
    """The id of the unit that carries a claim."""
    value = txn.get(keys.raw(bank, keys.CLAIM, claim))
    return None if value is None else bytes(value).decode()


def mentions_of(txn: ReadTxn, bank: int, unit_id: str) -> list[MentionRecord]:
    """The further mentions of a unit, in the order they came."""
    found = txn.scan(keys.named(bank, keys.MENTION, unit_id))
    return [codec.decode(MentionRecord, value) for _, value in found]


def mention(txn: ReadTxn, bank: int, unit_id: str, number: int) -> MentionRecord | None:
    value = txn.get(keys.mention(bank, unit_id, number))
    return None if value is None else codec.decode(MentionRecord, value)


def about(txn: ReadTxn, bank: int, subject: str, attribute: str) -> list[int]:
    """uids of the units, live or ended, that say something about an attribute of a subject, newest first."""
    prefix = keys.attribute(bank, subject, attribute)
    return [keys.trailing_u32(key) for key, _ in txn.scan_reverse(prefix)]


def ended_by(txn: ReadTxn, bank: int, unit_id: str) -> list[str]:
    """Ids of the units that this one superseded."""
    return [bytes(value).decode() for _, value in txn.scan(keys.named(bank, keys.ENDED_BY, unit_id))]


def count_in(txn: ReadTxn, bank: int, document: int) -> int:
    """Mentions in a document of units that stand elsewhere."""
    prefix = keys.containers(bank, keys.SET_MENTION, number_key(document))
    return sum(len(BitMap.deserialize(bytes(value))) for _, value in txn.scan(prefix))


def mentions_in(chunks: Iterable[ChunkRecord]) -> Iterator[tuple[str, int]]:
    """(unit id, number) of the mentions that stand in some chunks."""
    for chunk in chunks:
        yield from chunk.mentions

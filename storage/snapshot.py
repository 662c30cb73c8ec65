"""One bank as it stood at one sequence number: what every arm of a recall reads.

The resident columns are taken first and the transaction second, so the store may be newer than the columns but never
older: units at or beyond `n` are masked, and a unit the columns hold has its body unless it is being erased right now.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from recalld.storage import beliefs, codec, edges, keys, postings
from recalld.storage.apply import read_counters
from recalld.storage.apply_places import tagset_key
from recalld.storage.bodies import Bodies, Body
from recalld.storage.columns import Columns
from recalld.storage.consolidation import EVERY
from recalld.storage.environment import ReadTxn
from recalld.storage.groups import as_roots, members_of, number_key
from recalld.storage.names import folded
from recalld.storage.records import BankCounters, BankRecord, ChunkRecord, DocumentRecord, EntityRecord, UnitRecord
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS

if TYPE_CHECKING:
    from recalld.storage.tokens import TokenRows
    from recalld.storage.vectors import VectorIndex

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
_U32 = struct.Struct("<I")
LABELS_KEPT = 20_000


class Snapshot:
    """Read access to one bank, valid inside its `with` block. Everything returned is a copy or fixed."""

    def __init__(
        self,
        txn: ReadTxn,
        record: BankRecord,
        seq: int,
        columns: Columns,
        index: VectorIndex | None,
        tokens: TokenRows,
        speakers: Mapping[str, int],
        labels: dict[int, tuple[str, str]] | None = None,
        bodies: Bodies | None = None,
        derived: dict[str, Any] | None = None,
        roots: Mapping[int, int] | None = None,
    ) -> None:
        self.txn = txn
        self.record = record
        self.bank = record.number
        self.seq = seq
        self.columns = columns
        self.n = len(columns.live)
        self._index = index
        self._tokens = tokens
        self._speakers = speakers
        self._labels = {} if labels is None else labels
        self._bodies = Bodies() if bodies is None else bodies
        self._derived = {} if derived is None else derived
        self.roots = {} if roots is None else roots
        """What each entity that is a part of another is in the end."""
        self._entities: dict[int, BitMap] = {}

    @property
    def dim(self) -> int:
        return int(self.record.model.get("dim", 0))

    # -- vectors ---------------------------------------------------------------------------------------------------

    def semantic(self, query: Floats, k: int, allowed: Bools | None, floor: float) -> tuple[NDArray[np.int64], Floats]:
        """At most `k` (uids, cosines), best first, each unit once, none below `floor`."""
        if self._index is None or not self.n:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self._index.search(query, k, allowed, floor, self.n)

    def cosine(self, uids: NDArray[Any], query: Floats) -> Floats:
        if self._index is None:
            return np.zeros(len(uids), np.float32)
        return self._index.rows.cosine(uids, query)

    def maxsim(self, uids: NDArray[Any], query_tokens: Floats, weights: Floats) -> Floats:
        return self._tokens.maxsim(uids, query_tokens, weights)

    def vector_row(self, uid: int) -> bytes:
        """The stored vector row of a unit, byte for byte."""
        return VECTOR_ROWS.get(self.txn, self.bank, uid)

    def token_row(self, uid: int) -> bytes:
        return TOKEN_ROWS.get(self.txn, self.bank, uid)

    # -- keywords --------------------------------------------------------------------------------------------------

    def postings(self, term: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """uids ascending and frequencies; dead uids may be among them, uids beyond the snapshot are not."""
        prefix = keys.postings(self.bank, keys.name_key(term))
        uids, freqs = postings.join(value for _, value in self.txn.scan(prefix))
        if len(uids) and uids[-1] >= self.n:
            end = int(np.searchsorted(uids, self.n))
            return uids[:end], freqs[:end]
        return uids, freqs

    def thread_lengths(self) -> NDArray[np.float64]:
        """Analysed terms of each thread's live units but for echoes, by its number; 0 for thread 0. Do not write to it.

        Counted once for all snapshots of a commit: a pass over all units.
        """
        held: NDArray[np.float64] | None = self._derived.get("thread_lengths")
        if held is not None:
            return held
        columns = self.columns
        # Floats, because bincount casts whole numbers itself, four times slower.
        weights = columns.length.astype(np.float32) * self.without_echoes()
        lengths: NDArray[Any] = np.bincount(columns.thread, weights=weights, minlength=1)
        lengths[0] = 0.0
        lengths.flags.writeable = False
        self._derived["thread_lengths"] = lengths
        return lengths

    def token_df(self, token_ids: Sequence[int]) -> NDArray[np.uint32]:
        """Units that hold each token."""
        counts = []
        for token in token_ids:
            value = self.txn.get(keys.number(self.bank, keys.TOKEN_COUNT, token))
            counts.append(0 if value is None else _U32.unpack(value)[0])
        return np.array(counts, np.uint32)

    # -- sets ------------------------------------------------------------------------------------------------------

    def _set(self, kind: int, name: bytes) -> BitMap:
        held = BitMap()
        for _, value in self.txn.scan(keys.containers(self.bank, kind, name)):
            held |= BitMap.deserialize(bytes(value))
        return held

    def _mask(self, held: BitMap) -> Bools:
        mask = np.zeros(self.n, np.bool_)
        uids = np.frombuffer(held.to_array(), np.uint32) if held else np.empty(0, np.uint32)
        mask[uids[: np.searchsorted(uids, self.n)]] = True
        return mask

    def tag_mask(self, tag: str) -> Bools:
        return self._mask(self._set(keys.SET_TAG, keys.name_key(tag)))

    def tagset_mask(self, tags: frozenset[str]) -> Bools:
        """Units that carry exactly `tags`; the empty set selects untagged units."""
        return self._mask(self._set(keys.SET_TAGSET, tagset_key(tags)))

    def echoes(self) -> Bools:
        """Observations that say what one of their sources says, word for word."""
        held: Bools | None = self._derived.get("echoes")
        if held is None:
            held = self._mask(self._echo_set())
            held.flags.writeable = False
            self._derived["echoes"] = held
        return held

    def _echo_set(self) -> BitMap:
        held: BitMap | None = self._derived.get("echo_set")
        if held is None:
            held = self._derived["echo_set"] = self._set(keys.SET_ECHO, EVERY)
        return held

    def originals(self) -> int:
        """Units, live or not, that are no echoes."""
        return self.n - len(self._echo_set())

    def without_echoes(self) -> Bools:
        """Live units but for echoes; the very array `columns.live` where there are none."""
        held: Bools | None = self._derived.get("without_echoes")
        if held is None:
            echoes = self.echoes()
            held = self.columns.live & ~echoes if echoes.any() else self.columns.live
            self._derived["without_echoes"] = held
        return held

    def all_tags(self) -> list[tuple[str, int]]:
        """(tag, live units that carry it), in no order."""
        found = []
        for _, value in self.txn.scan(keys.table(self.bank, keys.TAG)):
            tag = bytes(value).decode("utf-8", "surrogatepass")
            found.append((tag, int((self.tag_mask(tag) & self.columns.live).sum())))
        return found

    def entity_uids(self, entity: int, limit: int) -> NDArray[np.uint32]:
        """At most `limit` units that name the entity, newest first; echoes only where the limit cuts nothing off."""
        held = self._entity_set(entity)
        if limit < self.n:
            held = held - self._echo_set()
        uids = np.frombuffer(held.to_array(), np.uint32) if held else np.empty(0, np.uint32)
        newest: NDArray[np.uint32] = uids[: np.searchsorted(uids, self.n)][::-1][:limit].copy()
        return newest

    def entity_count(self, entity: int) -> int:
        return len(self._entity_set(entity) - self._echo_set())

    def _entity_set(self, entity: int) -> BitMap:
        """Units that name an entity or a part of it.

        Kept for the life of the snapshot: spreading asks for the units of an entity, then for their number.
        """
        held = self._entities.get(entity)
        if held is None:
            held = self._set(keys.SET_ENTITY, number_key(entity))
            for part in self.parts.get(entity, ()) if self.roots else ():
                held |= self._set(keys.SET_ENTITY, number_key(part))
            self._entities[entity] = held
        return held

    @property
    def parts(self) -> dict[int, tuple[int, ...]]:
        """The parts of each entity that has some."""
        held: dict[int, tuple[int, ...]] | None = self._derived.get("parts")
        if held is None:
            held = self._derived["parts"] = members_of(self.roots)
        return held

    def document_uids(self, document: int) -> NDArray[np.uint32]:
        """Every unit of a document that exists, live or retired, oldest first."""
        held = self._set(keys.SET_DOCUMENT, number_key(document))
        uids: NDArray[np.uint32] = np.array(held.to_array(), np.uint32)
        return uids[: np.searchsorted(uids, self.n)]

    def edges(self, uid: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8], NDArray[np.float32]]:
        """(entity numbers, linked uids, kinds, weights) of a unit; a part of an entity is given as the whole."""
        value = self.txn.get(keys.number(self.bank, keys.EDGES, uid))
        found = edges.NONE if value is None else edges.decode(value)
        if self.roots and len(found.entities):
            found = found._replace(entities=np.array(as_roots(self.roots, found.entities.tolist()), np.uint32))
        if not len(found.others):
            return found
        keep = found.others < self.n
        if keep.all():
            return found
        return found.entities, found.others[keep], found.kinds[keep], found.weights[keep]

    def speaker_numbers(self, text: str) -> list[int]:
        """Speakers of the bank whose name stands in `text` as a whole word."""
        fold = folded(text)
        return [
            number
            for name, number in self._speakers.items()
            if name in fold and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", fold)
        ]

    # -- records ---------------------------------------------------------------------------------------------------

    def uid_of(self, unit_id: str) -> int | None:
        value = self.txn.get(keys.named(self.bank, keys.UNIT_ID, unit_id))
        if value is None:
            return None
        uid: int = _U32.unpack(value)[0]
        return uid if uid < self.n else None

    def unit(self, uid: int) -> UnitRecord | None:
        value = self.txn.get(keys.number(self.bank, keys.UNIT, uid))
        return None if value is None else self._unit(value)

    def _unit(self, value: memoryview) -> UnitRecord:
        """A body, with parts of entities given as the wholes."""
        found = codec.decode(UnitRecord, value)
        if self.roots:
            found.entities = as_roots(self.roots, found.entities)
        return found

    def units(self, uids: Sequence[int]) -> list[UnitRecord]:
        """Bodies in the order asked for; a unit that is just being erased is left out."""
        return [unit for uid in uids if (unit := self.unit(int(uid))) is not None]

    def bodies(self, uids: Sequence[int]) -> list[Body]:
        """`units` for readers that return them: kept decoded until their record changes."""
        found = []
        for uid in uids:
            body = self._bodies.get(uid)
            if body is None:
                value = self.txn.get(keys.number(self.bank, keys.UNIT, uid))
                if value is None:
                    continue
                body = Body(self._unit(value))
                self._bodies.keep(body, len(value))
            found.append(body)
        return found

    def confidence_at(self, opinion: UnitRecord, at: int) -> float | None:
        """How surely an opinion was held at an instant (µs)."""
        return beliefs.confidence_at(self.txn, self.bank, opinion, at)

    def entity(self, number: int) -> EntityRecord | None:
        value = self.txn.get(keys.number(self.bank, keys.ENTITY, number))
        return None if value is None else codec.decode(EntityRecord, value)

    def entity_label(self, number: int) -> tuple[str, str] | None:
        """(id, name) of an entity; they never change and a number is never given twice, so the bank keeps them."""
        number = self.roots.get(number, number)
        label = self._labels.get(number)
        if label is None:
            entity = self.entity(number)
            if entity is None:
                return None
            if len(self._labels) >= LABELS_KEPT:
                self._labels.clear()
            label = self._labels[number] = (entity.id, entity.name)
        return label

    def entity_by_id(self, entity_id: str) -> EntityRecord | None:
        """The entity with an id; for the id of a part, the whole."""
        value = self.txn.get(keys.named(self.bank, keys.ENTITY_ID, entity_id))
        if value is None:
            return None
        number: int = _U32.unpack(value)[0]
        return self.entity(self.roots.get(number, number))

    def entities(self) -> list[EntityRecord]:
        """Every whole entity of the bank."""
        found = (codec.decode(EntityRecord, v) for _, v in self.txn.scan(keys.table(self.bank, keys.ENTITY)))
        return [entity for entity in found if entity.number not in self.roots]

    def document(self, number: int) -> DocumentRecord | None:
        value = self.txn.get(keys.number(self.bank, keys.DOCUMENT, number))
        return None if value is None else codec.decode(DocumentRecord, value)

    def document_by_id(self, document_id: str) -> DocumentRecord | None:
        value = self.txn.get(keys.named(self.bank, keys.DOCUMENT_ID, document_id))
        return None if value is None else self.document(_U32.unpack(value)[0])

    def documents(self) -> list[DocumentRecord]:
        return [codec.decode(DocumentRecord, v) for _, v in self.txn.scan(keys.table(self.bank, keys.DOCUMENT))]

    def chunk(self, document: int, index: int) -> ChunkRecord | None:
        value = self.txn.get(keys.chunk(self.bank, document, index))
        return None if value is None else codec.decode(ChunkRecord, value)

    def chunks(self, document: int) -> list[ChunkRecord]:
        """The chunks of a document, in order."""
        return [codec.decode(ChunkRecord, v) for _, v in self.txn.scan(keys.chunks(self.bank, document))]

    def counters(self) -> BankCounters:
        return read_counters(self.txn, self.bank)

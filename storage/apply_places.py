"""Carrying out what happens to units that stay what they say: vectors, neighbours, places and tags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from recalld.storage import keys
from recalld.storage.changes import Delta, UnitsMoved, UnitsReembedded, UnitsRetagged
from recalld.storage.columns import COLUMN_ROWS, EXISTS, ColumnRow
from recalld.storage.environment import WriteTxn
from recalld.storage.records import UnitRecord
from recalld.storage.vector_rows import TOKEN_ROWS, VECTOR_ROWS, pack_tokens, pack_vectors


class PlaceChanges:
    """The part of an `Applier` that knows where a unit stands and under which tags."""

    txn: WriteTxn
    bank: int
    delta: Delta
    unit: Callable[[int], UnitRecord | None]
    _column: Callable[[int], ColumnRow]
    _put_unit: Callable[..., None]
    _reclaim: Callable[[UnitRecord, UnitRecord], UnitRecord]
    _memberships: Callable[[UnitRecord], list[tuple[int, bytes]]]
    _join_set: Callable[[int, bytes, list[int]], None]
    _leave_set: Callable[[int, bytes, int], bool]
    _drop_tag: Callable[[bytes], None]
    _unsettle: Callable[[UnitRecord], None]
    _end_built_on: Callable[[list[int], int], None]

    def _reembed(self, change: UnitsReembedded) -> None:
        vectors: dict[int, bytes] = {}
        tokens: dict[int, bytes] = {}
        for embedding in change.embeddings:
            record = self.unit(embedding.uid)
            if record is None:
                continue
            before = embedding.predecessor
            assert not isinstance(before, str), "ids are resolved to uids before a change is applied"
            self._put_unit(dataclasses.replace(record, predecessor=before, updated_at=change.at))
            vectors[embedding.uid] = pack_vectors(embedding.vectors, embedding.scales)
            tokens[embedding.uid] = pack_tokens(embedding.token_vectors, embedding.token_ids)
        VECTOR_ROWS.replace(self.txn, self.bank, vectors)
        TOKEN_ROWS.replace(self.txn, self.bank, tokens)
        self.delta.add("replace_vectors", list(vectors), list(vectors.values()), list(tokens.values()))

    def _relink(self, prev: dict[int, int]) -> None:
        rows = {}
        for uid, before in prev.items():
            row = self._column(uid)
            if row.flags & EXISTS:
                rows[uid] = row._replace(prev=before).pack()
                if row.prev >= 0:
                    self.txn.delete(keys.follower(self.bank, row.prev, uid))
                if before >= 0:
                    self.txn.put(keys.follower(self.bank, before, uid), b"")
        COLUMN_ROWS.replace(self.txn, self.bank, rows)
        self.delta.add("relink_units", list(rows), [prev[uid] for uid in rows])

    def _move(self, change: UnitsMoved) -> None:
        for uid, (index, chunk_id) in change.places.items():
            record = self.unit(uid)
            if record is not None:
                moved = dataclasses.replace(record, chunk_index=index, chunk_id=chunk_id, updated_at=change.at)
                self._put_unit(moved)

    def _retag(self, change: UnitsRetagged) -> None:
        tags = tuple(sorted(set(change.tags)))
        for uid in change.uids:
            record = self.unit(uid)
            if record is None or record.tags == tags:
                continue
            for tag in record.tags:
                if self._leave_set(keys.SET_TAG, keys.name_key(tag), uid):
                    self._drop_tag(keys.name_key(tag))
            self._leave_set(keys.SET_TAGSET, tagset_key(record.tags), uid)
            changed = self._reclaim(record, dataclasses.replace(record, tags=tags, updated_at=change.at))
            self._put_unit(changed)
            for kind, name in self._memberships(changed):
                self._join_set(kind, name, [uid])
            self._unsettle(record)
        self._end_built_on(list(change.uids), change.at)


def tagset_key(tags: Iterable[str]) -> bytes:
    """Name of the set of units that carry exactly `tags`; the empty set is the untagged units."""
    return keys.name_key("\0".join(sorted(set(tags))))

"""Small banks for tests over a real partition: documents with units go in through the store's own changes.

world = World(tmp_path)                       # a partition in a folder, a clock, ids
world.add("t", "b", "d1", [world.unit("Ana likes tea.", entities=["Ana"])])
world.apply("t", "b", UnitsRetired((0,), world.now()))
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recalld.storage import codec, keys
from recalld.storage.analysis import term_frequencies
from recalld.storage.apply import Applier
from recalld.storage.changes import BankStored, Change, DocumentStored, NewUnit, OperationStored, UnitsAdded
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.records import (
    WORLD,
    BankRecord,
    ChunkRecord,
    DocumentRecord,
    EntityMention,
    OperationRecord,
    PreparedUnit,
)

DIM = 384
MODEL = {"dim": DIM, "hash": "test"}
START = 1_780_000_000_000_000
HOUR = 3600 * 1_000_000
DAY = 24 * HOUR


class World:
    """A partition with a clock that ticks a millisecond a look, and ids that repeat from run to run."""

    def __init__(self, folder: Path, start: int = START, **settings: Any) -> None:
        self._ticks = itertools.count(start, 1000)
        self._ids = itertools.count(1)
        self._random = np.random.default_rng(0)
        self.partition = Partition(folder / "0000", StoreSettings(**settings), self.now, self.new_id)

    def now(self) -> int:
        return next(self._ticks)

    def new_id(self) -> str:
        return str(uuid.UUID(int=next(self._ids), version=4))

    def close(self) -> None:
        self.partition.close()

    def unit(self, text: str, *, entities: Sequence[str] = (), rows: int = 1, **fields: Any) -> PreparedUnit:
        """A unit with random vectors; entities are names of people, other fields are those of `PreparedUnit`."""
        tokens = max(1, len(text.split()))
        values: dict[str, Any] = {
            "id": self.new_id(),
            "text": text,
            "network": WORLD,
            "context": "",
            "speaker": "",
            "entities": tuple(EntityMention(name, "PERSON") for name in entities),
            "occurred_start": None,
            "occurred_end": None,
            "mentioned_at": None,
            "anchor_assumed": False,
            "metadata": {},
            "tags": (),
            "chunk_index": 0,
            "tokens": tokens,
            "terms": tuple(term_frequencies(text)),
            "question": text.endswith("?"),
            "trust": "normal",
            "confidence": None,
            "vectors": self._random.integers(-127, 128, (rows, DIM)).astype(np.int8).tobytes(),
            "scales": np.ones(rows, np.float32).tobytes(),
            "token_vectors": self._random.integers(-127, 128, (tokens, 64)).astype(np.int8).tobytes(),
            "token_ids": np.arange(tokens, dtype=np.uint32).tobytes(),
        }
        return PreparedUnit(**{**values, **fields})

    def bank(self, tenant: str, bank_id: str, name: str | None = None, **overrides: Any) -> None:
        """Make a bank, or change its name and overrides."""

        def run(applier: Applier) -> None:
            record = _bank_record(applier)
            applier.apply(BankStored(dataclasses.replace(record, name=name, overrides=overrides, model=MODEL)))

        self.partition.write(tenant, bank_id, run, create=True)

    def apply(self, tenant: str, bank_id: str, *changes: Change) -> None:
        """Apply changes to a bank in one write."""

        def run(applier: Applier) -> None:
            for change in changes:
                applier.apply(change)

        self.partition.write(tenant, bank_id, run, create=True)

    def operation(self, tenant: str, bank_id: str, payload: bytes | None = None, **fields: Any) -> str:
        """Store an operation; its id."""
        now = self.now()
        values = {"id": self.new_id(), "kind": "retain", "status": "pending", "created_at": now, "updated_at": now}
        record = OperationRecord(**{**values, **fields})
        self.apply(tenant, bank_id, OperationStored(record, payload))
        return record.id

    def add(
        self,
        tenant: str,
        bank_id: str,
        document_id: str,
        units: Sequence[PreparedUnit],
        *,
        chunks: Sequence[tuple[str, str]] | None = None,
        similar: dict[int, list[tuple[int, float]]] | None = None,
        causes: dict[int, list[int]] | None = None,
        at: int | None = None,
        **document: Any,
    ) -> int:
        """Add a document with units, chained one behind the other; the uid of the first.

        `chunks` are (glue, text), by default one of all units' texts; a unit stands in the chunk its `chunk_index`
        names. `similar` and `causes` are by position: uids with cosines, and uids. Other fields are `DocumentRecord`'s.
        """
        now = self.now() if at is None else at
        parts = [("", "\n".join(unit.text for unit in units))] if chunks is None else list(chunks)

        def run(applier: Applier) -> int:
            record = _bank_record(applier)
            if not record.model:
                applier.apply(BankStored(dataclasses.replace(record, model=MODEL)))
            number, thread = applier.allocate("document"), applier.allocate("thread")
            first = applier.allocate("uid", len(units))
            members = [[first + i for i, unit in enumerate(units) if unit.chunk_index == c] for c in range(len(parts))]
            values: dict[str, Any] = {
                "number": number,
                "id": document_id,
                "content_hash": "",
                "text_length": sum(len(glue) + len(text) for glue, text in parts),
                "chunks": len(parts),
                "created_at": now,
                "updated_at": now,
                "revision": 1,
                "tags": tuple(dict.fromkeys(tag for unit in units for tag in unit.tags)),
                "thread": thread,
            }
            stored = DocumentRecord(**{**values, **document})
            applier.apply(
                DocumentStored(
                    stored,
                    tuple(
                        ChunkRecord(number, i, text if stored.keep_text else "", "digest", glue, tuple(uids), now)
                        for i, ((glue, text), uids) in enumerate(zip(parts, members, strict=True))
                    ),
                )
            )
            new = [
                NewUnit(
                    unit=unit,
                    uid=first + i,
                    document=number,
                    document_id=document_id,
                    chunk_index=unit.chunk_index,
                    chunk_id=f"{bank_id}_{document_id}_{unit.chunk_index}",
                    thread=thread,
                    prev=first + i - 1 if i else -1,
                    predecessor=None,
                    causes=tuple((causes or {}).get(i, ())),
                    similar=tuple((similar or {}).get(i, ())),
                )
                for i, unit in enumerate(units)
            ]
            applier.apply(UnitsAdded(tuple(new), now))
            applier.touch(now, new_document=True)
            return first

        return self.partition.write(tenant, bank_id, run, create=True)


def _bank_record(applier: Applier) -> BankRecord:
    value = applier.txn.get(keys.table(applier.bank, keys.BANK))
    assert value is not None
    return codec.decode(BankRecord, value)

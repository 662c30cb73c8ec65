"""Units and partitions for tests of the store: no model, vectors that follow from the text alone."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recalld.storage import quantise
from recalld.storage.analysis import term_frequencies
from recalld.storage.apply import Applier
from recalld.storage.changes import BankStored, DocumentStored, NewUnit, UnitsAdded
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.records import DocumentRecord, EntityMention, PreparedUnit

DIM = 16
DAY = 86_400_000_000
NOW = 1_700_000_000_000_000
MODEL = {"name": "test", "dim": DIM}
NO_RESERVE = StoreSettings(map_size=1 << 30, reserve=0)


class Ids:
    """Ids in a fixed order, so that two runs of the same writes store the same bytes."""

    def __init__(self, space: str = "test") -> None:
        self._space = uuid.uuid5(uuid.NAMESPACE_OID, space)
        self._count = itertools.count()

    def __call__(self) -> str:
        return str(uuid.uuid5(self._space, str(next(self._count))))


def open_partition(
    folder: Path, settings: StoreSettings = NO_RESERVE, new_id: Callable[[], str] | None = None
) -> Partition:
    return Partition(folder, settings, lambda: NOW, new_id or Ids())


def vector(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A unit vector that follows from the text; different texts are nearly orthogonal or at least apart."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return quantise.unit_rows(np.random.default_rng(seed).standard_normal((1, DIM)).astype(np.float32))[0]


def prepared(
    text: str,
    unit_id: str,
    *,
    tags: Sequence[str] = (),
    entities: Sequence[str] = (),
    network: int = 0,
    speaker: str = "",
    mentioned_at: int | None = NOW,
    rows: int = 1,
    tokens: Sequence[int] = (1, 2, 3),
) -> PreparedUnit:
    parts = np.stack([vector(text if i == 0 else f"{text} part {i}") for i in range(rows)])
    vectors, scales = quantise.pack_rows(parts)
    rng = np.random.default_rng(len(text))
    own = quantise.quantise_unit(
        quantise.unit_rows(rng.standard_normal((max(1, len(tokens)), 64)).astype(np.float32))[: len(tokens)]
    )
    return PreparedUnit(
        id=unit_id,
        text=text,
        network=network,
        context="",
        speaker=speaker,
        entities=tuple(EntityMention(name) for name in entities),
        occurred_start=None,
        occurred_end=None,
        mentioned_at=mentioned_at,
        anchor_assumed=False,
        metadata={},
        tags=tuple(tags),
        chunk_index=0,
        tokens=len(text.split()),
        terms=term_frequencies(text),
        question=text.endswith("?"),
        trust="normal",
        confidence=None,
        vectors=vectors,
        scales=scales,
        token_vectors=own.tobytes(),
        token_ids=np.array(tokens, "<u4").tobytes(),
    )


def bind_model(applier: Applier) -> None:
    """Give a new bank its model, as the first retain does."""
    from recalld.actors.banks import bank_record

    record = bank_record(applier)
    if not record.model:
        applier.apply(BankStored(dataclasses.replace(record, model=MODEL)))


def add(
    applier: Applier,
    units: Sequence[PreparedUnit],
    *,
    document_id: str | None = None,
    prevs: Sequence[int] | None = None,
    similar: Sequence[Sequence[tuple[int, float]]] | None = None,
    at: int = NOW,
) -> list[int]:
    """Add units in one change, as a document of its own when it is named; their uids."""
    bind_model(applier)
    number = 0
    thread = applier.allocate("thread")
    if document_id is not None:
        number = applier.allocate("document")
        applier.apply(DocumentStored(DocumentRecord(number, document_id, "", 0, 0, at, at, 1, thread=thread)))
    new = []
    prev = -1
    for index, unit in enumerate(units):
        uid = applier.allocate("uid")
        new.append(
            NewUnit(
                unit=unit,
                uid=uid,
                document=number,
                document_id=document_id or "",
                chunk_index=0,
                chunk_id="",
                thread=thread,
                prev=prevs[index] if prevs is not None else prev,
                predecessor=None,
                similar=tuple(similar[index]) if similar is not None else (),
            )
        )
        prev = uid
    applier.apply(UnitsAdded(tuple(new), at))
    applier.touch(at, document_id is not None)
    return [entry.uid for entry in new]


def replace_settings(settings: StoreSettings, **changes: Any) -> StoreSettings:
    return dataclasses.replace(settings, **changes)

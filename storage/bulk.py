"""Made-up banks of any size, written through the normal path: for benchmarks and tests of large banks.

Vectors stand in clusters, half of a document's in one of them. Words follow a Zipf law without its head, as stop words
are not indexed, beside the name of one of two speakers, so that a query of a name and five words meets as many
postings as questions about real chats do (measured: the terms of a question together are held by 0.85 times as many
units as a bank has, most of that the speaker's name). Each twenty units are a document. Everything follows from the
seed: two runs make the same bank.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage import codec, keys
from recalld.storage.apply import Applier
from recalld.storage.changes import BankStored, DocumentStored, NewUnit, UnitsAdded
from recalld.storage.partition import Partition
from recalld.storage.quantise import quantise, unit_rows
from recalld.storage.records import WORLD, BankRecord, ChunkRecord, DocumentRecord, EntityMention, PreparedUnit
from recalld.storage.vector_rows import TOKEN_DIM

A_COMMIT = 1000
A_DOCUMENT = 20
MODEL = "synthetic"
_VOCABULARY, _WORDS = 30_000, 20
_ZIPF_SLOPE, _ZIPF_HEAD = 1.2, 30
_NAMES = 2_000
_TOKENS = (12, 38)
_NOISE = 0.6
_ON_TOPIC = 0.5
_MINUTE = 60_000_000

Progress = Callable[[int], None]


def load_synthetic(
    partition: Partition,
    tenant: str,
    bank_id: str,
    units: int,
    dim: int,
    seed: int,
    now: int,
    progress: Progress | None = None,
) -> None:
    """Add `units` made-up units to a bank (made when missing); `progress` is told how many each commit wrote."""
    maker = Maker(dim, seed)
    partition.write(tenant, bank_id, partial(_bind, dim=dim), create=True)
    for number, first in enumerate(range(0, units, A_COMMIT)):
        batch = maker.batch(number, min(A_COMMIT, units - first))
        partition.write(tenant, bank_id, partial(write_units, units=batch, now=now))
        if progress is not None:
            progress(len(batch))


class Maker:
    """Makes units in batches; the same seed and number of the batch make the same units."""

    def __init__(self, dim: int, seed: int, clusters: int = 500) -> None:
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.centres = unit_rows(rng.normal(size=(clusters, dim)).astype(np.float32))
        shares = (np.arange(_VOCABULARY) + 1.0 + _ZIPF_HEAD) ** -_ZIPF_SLOPE
        self._shares = np.cumsum(shares / shares.sum())
        self._tokens = unit_rows(rng.normal(size=(_VOCABULARY, TOKEN_DIM)).astype(np.float32))

    def batch(self, number: int, count: int) -> list[PreparedUnit]:
        rng = np.random.default_rng((self.seed, number))
        topics = np.repeat(rng.integers(0, len(self.centres), count // A_DOCUMENT + 1), A_DOCUMENT)[:count]
        near = np.where(rng.random(count) < _ON_TOPIC, topics, rng.integers(0, len(self.centres), count))
        noise = unit_rows(rng.normal(size=(count, self.centres.shape[1])).astype(np.float32))
        codes, scales = quantise(unit_rows(self.centres[near] + np.float32(_NOISE) * noise))
        words = np.searchsorted(self._shares, rng.random((count, _WORDS))).clip(max=_VOCABULARY - 1)
        names = rng.zipf(1.5, count) % _NAMES
        lengths = rng.integers(*_TOKENS, count)
        return [
            self._unit(rng, number * A_COMMIT + at, codes[at], scales[at], words[at], int(names[at]), int(lengths[at]))
            for at in range(count)
        ]

    def _unit(
        self,
        rng: np.random.Generator,
        number: int,
        codes: NDArray[np.int8],
        scale: np.float32,
        words: NDArray[Any],
        name: int,
        length: int,
    ) -> PreparedUnit:
        ids = np.resize(words, length).astype("<u4")
        tokens = self._tokens[ids] + np.float32(0.1) * rng.standard_normal((length, TOKEN_DIM), np.float32)
        counted = Counter(f"word{word}" for word in words.tolist())
        speaker = f"Speaker{number % 2}"
        said = 1_700_000_000_000_000 + number * _MINUTE
        return PreparedUnit(
            id=str(uuid.UUID(int=(self.seed << 64) + number + 1, version=4)),
            text=f"{speaker}: " + " ".join(f"word{word}" for word in words.tolist()) + f" Person{name}",
            network=WORLD,
            context="",
            speaker=speaker,
            entities=(EntityMention(f"Person{name}", "PERSON"),),
            occurred_start=said if number % 3 == 0 else None,
            occurred_end=said + 60 * _MINUTE if number % 3 == 0 else None,
            mentioned_at=said,
            anchor_assumed=False,
            metadata={},
            tags=(),
            chunk_index=0,
            tokens=length,
            terms=(*counted.items(), (f"person{name}", 1), (speaker.lower(), 1)),
            question=False,
            trust="normal",
            confidence=None,
            vectors=codes.tobytes(),
            scales=np.float32(scale).tobytes(),
            token_vectors=np.rint(unit_rows(tokens) * np.float32(127)).astype(np.int8).tobytes(),
            token_ids=ids.tobytes(),
        )


def write_units(applier: Applier, units: list[PreparedUnit], now: int) -> list[int]:
    """Write prepared units, each twenty as a document of one chunk; their uids."""
    first = applier.allocate("uid", len(units))
    for at in range(0, len(units), A_DOCUMENT):
        part = units[at : at + A_DOCUMENT]
        number, thread = applier.allocate("document"), applier.allocate("thread")
        text = "\n".join(unit.text for unit in part)
        digest = hashlib.sha256(text.encode()).hexdigest()
        uids = tuple(range(first + at, first + at + len(part)))
        name = f"document-{number}"
        record = DocumentRecord(number, name, digest, len(text), 1, now, now, 1, live_units=len(part), thread=thread)
        applier.apply(DocumentStored(record, (ChunkRecord(number, 0, text, digest, "", uids, now),)))
        placed = [
            NewUnit(unit, uid, number, name, 0, f"{name}_0", thread, before, before if before >= 0 else None)
            for unit, uid, before in zip(part, uids, (-1, *uids[:-1]), strict=True)
        ]
        applier.apply(UnitsAdded(tuple(placed), now))
    applier.touch(now, new_document=True)
    return list(range(first, first + len(units)))


def _bind(applier: Applier, dim: int) -> None:
    """Give a bank without vectors the made-up model."""
    value = applier.txn.get(keys.table(applier.bank, keys.BANK))
    assert value is not None, "a bank that is written to has a record"
    record = codec.decode(BankRecord, value)
    if not record.model:
        applier.apply(BankStored(replace(record, model={"name": MODEL, "dim": dim})))

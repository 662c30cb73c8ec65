"""A partition whose banks soon outgrow a scan, and what tests ask of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.storage import upkeep
from recalld.storage.bulk import load_synthetic
from recalld.storage.changes import Embedding, UnitsErased, UnitsReembedded
from recalld.storage.hnsw import HnswIndex
from recalld.storage.open_bank import OpenBank
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.quantise import quantise, unit_rows
from recalld.storage.snapshot import Snapshot
from recalld.storage.vector_rows import unpack_vectors

T, B, DIM, NOW, THRESHOLD = "t", "b", 32, 1_750_000_000_000_000, 200
SETTINGS = StoreSettings(map_size=1 << 30, reserve=0, vector_threshold=THRESHOLD)
F32 = NDArray[np.float32]


def new_ids() -> Callable[[], str]:
    count = itertools.count()
    return lambda: f"00000000-0000-4000-8000-{next(count):012d}"


def opened(folder: Path, settings: StoreSettings = SETTINGS) -> Partition:
    return Partition(folder, settings, lambda: NOW, new_ids())


def load(store: Partition, units: int, seed: int = 1, bank: str = B) -> None:
    load_synthetic(store, T, bank, units, DIM, seed, NOW)


def bank_of(store: Partition, bank: str = B) -> OpenBank:
    with store.read(T, bank) as snap:
        return store.open_bank(snap.bank)


def large(store: Partition, units: int = 600) -> HnswIndex:
    """A bank of `units` with its graph built and saved; its index."""
    load(store, units)
    bank_of(store)
    upkeep.settle(store)
    index = bank_of(store).index
    assert isinstance(index, HnswIndex) and index.tail == 0
    return index


def reload(store: Partition) -> Any:
    """The bank's index after its caches were dropped and opened again."""
    store.drop_caches()
    return bank_of(store).index


def stored(snap: Snapshot, uid: int) -> F32:
    """The vector the store holds for a unit."""
    row: F32 = unit_rows(unpack_vectors(snap.vector_row(uid))[0])[0]
    return row


def check(store: Partition, gone: frozenset[int] = frozenset(), bank: str = B) -> None:
    """Every unit that exists is found by the vector the store holds of it, and no other is ever returned."""
    with store.read(T, bank) as snap:
        everything = set()
        for uid in range(snap.n):
            if uid in gone:
                assert not snap.columns.exists[uid]
                continue
            found, scores = snap.semantic(stored(snap, uid), 3, None, -1.0)
            assert found[0] == uid and scores[0] > 0.999, uid
            assert snap.cosine(np.array([uid]), stored(snap, uid))[0] > 0.999
            everything |= set(found.tolist())
        assert not everything & gone


def erase(store: Partition, uids: list[int]) -> None:
    store.write(T, B, lambda applier: applier.apply(UnitsErased(tuple(uids), NOW)), frees=True)


def reembed(store: Partition, uids: list[int], seed: int, tokens: NDArray[np.int8] | None = None) -> F32:
    """Give units new vectors, and these tokens each; returns the vectors as they are stored."""
    own = b"" if tokens is None else tokens.tobytes()
    ids = np.arange(len(own) // 64, dtype="<u4").tobytes()
    rng = np.random.default_rng(seed)
    codes, scales = quantise(unit_rows(rng.normal(size=(len(uids), DIM)).astype(np.float32)))
    made = tuple(
        Embedding(uid, code.tobytes(), scale.tobytes(), own, ids, None)
        for uid, code, scale in zip(uids, codes, scales, strict=True)
    )
    store.write(T, B, lambda applier: applier.apply(UnitsReembedded(made, NOW)))
    return unit_rows(codes)


def vector_files(store: Partition) -> list[Path]:
    return [path for path in (store.folder / "vectors").rglob("*") if path.is_file()]

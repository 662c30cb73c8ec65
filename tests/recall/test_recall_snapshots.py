"""The store's snapshot and the one in memory answer alike, so what the engine's tests show holds for both."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_snapshot import MemoryBank, MemorySnapshot

from recalld.actors.recall.engine import recall
from recalld.actors.recall.query import ARMS, RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.snapshot import Snapshot
from recalld.storage.changes import BankStored, NewUnit, UnitsAdded, UnitsRetired
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.quantise import pack_rows, unit_rows, unpack_rows
from recalld.storage.records import BankRecord, EntityMention, PreparedUnit

DIM, UNITS, HOUR = 16, 240, 3_600_000_000
RETIRED = tuple(range(5, UNITS, 17))
WORDS = [f"word{i}" for i in range(30)]


class Unit:
    """One random unit in the terms of both sides."""

    def __init__(self, uid: int, rng: np.random.Generator) -> None:
        self.uid = uid
        words = [str(word) for word in rng.choice(WORDS, int(rng.integers(3, 9)))]
        self.text = f"{'Ana' if uid % 2 else 'Bo'}: " + " ".join(words) + f" {uid}" + ("?" if uid % 5 == 0 else ".")
        self.terms = tuple((word, words.count(word)) for word in dict.fromkeys(words))
        self.vectors, self.scales = pack_rows(unit_rows(rng.normal(size=(2 if uid % 40 == 0 else 1, DIM)).astype("f4")))
        self.token_vectors = np.rint(127 * unit_rows(rng.normal(size=(len(words), 64)).astype("f4"))).astype(np.int8)
        self.token_ids = np.array([int(word[4:]) for word in words], np.uint32)
        self.tags = tuple(tag for tag in ("red", "blue") if rng.random() < 0.4)
        self.entities = tuple(f"entity{i}" for i in dict.fromkeys(rng.integers(0, 25, 2).tolist()))
        self.mentioned = uid * HOUR
        self.thread = uid // 12 + 1
        self.prev = uid - 1 if uid % 12 else -1
        self.similar = ((uid - 7, 0.75),) if uid % 9 == 0 and uid >= 7 else ()
        self.network = uid % 4

    def prepared(self) -> NewUnit:
        unit = PreparedUnit(
            id=str(uuid.UUID(int=self.uid + 1)), text=self.text, network=self.network, context="",
            speaker="Ana" if self.uid % 2 else "Bo", entities=tuple(EntityMention(name) for name in self.entities),
            occurred_start=None, occurred_end=None, mentioned_at=self.mentioned, anchor_assumed=False, metadata={},
            tags=self.tags, chunk_index=0, tokens=len(self.text) // 4, terms=self.terms,
            question=self.text.endswith("?"), trust="normal", confidence=None, vectors=self.vectors,
            scales=self.scales, token_vectors=self.token_vectors.tobytes(), token_ids=self.token_ids.tobytes(),
        )  # fmt: skip
        return NewUnit(unit, self.uid, 0, "", 0, "", self.thread, self.prev, None, (), self.similar, True)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Snapshot, MemorySnapshot]]:
    rng = np.random.default_rng(3)
    units = [Unit(uid, rng) for uid in range(UNITS)]
    folder: Path = tmp_path_factory.mktemp("partition")
    ids = itertools.count(10**9)
    partition = Partition(folder, StoreSettings(durable=False), lambda: 1, lambda: str(uuid.UUID(int=next(ids))))

    def write(applier: Any) -> None:
        applier.apply(BankStored(BankRecord(applier.bank, "t", "b", 1, 1, model={"dim": DIM})))
        applier.allocate("uid", UNITS)
        applier.apply(UnitsAdded(tuple(unit.prepared() for unit in units), 1))
        applier.apply(UnitsRetired(RETIRED, 2))

    partition.write("t", "b", write, create=True)
    bank = MemoryBank(dim=DIM)
    for unit in units:
        codes, _ = unpack_rows(unit.vectors, unit.scales)
        bank.add(
            unit.text, vector=unit_rows(codes), token_vectors=unit.token_vectors, token_ids=unit.token_ids.tolist(),
            terms=unit.terms, network=unit.network, document=f"thread {unit.thread}",
            speaker="Ana" if unit.uid % 2 else "Bo", tags=unit.tags, entities=unit.entities, mentioned=unit.mentioned,
            recorded=1, retired=2 if unit.uid in RETIRED else None, tokens=len(unit.text) // 4,
        )  # fmt: skip
        for other, weight in unit.similar:
            bank.link(unit.uid, other, 1, weight)
    with partition.read("t", "b") as snap:
        yield snap, bank.snapshot()
    partition.close()


def random_query(seed: int, **fields: Any) -> RecallQuery:
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.choice(WORDS, 4, replace=False)]
    return RecallQuery(
        tenant="t",
        bank_id="b",
        query="What did Ana say about " + " ".join(words),
        vector=unit_rows(rng.normal(size=(1, DIM)).astype("f4"))[0].tobytes(),
        token_vectors=unit_rows(rng.normal(size=(4, 64)).astype("f4")).tobytes(),
        token_ids=tuple(int(word[4:]) for word in words),
        terms=tuple(words),
        now=UNITS * HOUR,
        **fields,
    )


def test_both_snapshots_answer_each_read_alike(both: tuple[Snapshot, MemorySnapshot]) -> None:
    real, memory = both
    query = np.frombuffer(random_query(1).vector, np.float32)
    uids = np.arange(0, UNITS, 3)
    for one, other in zip(real.columns, memory.columns, strict=True):  # type: ignore[call-overload]
        if one is not real.columns.document:
            assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    assert real.n == memory.n and real.dim == memory.dim
    for floor in (-1.0, 0.3):
        found, expected = (s.semantic(query, 20, s.columns.live, floor) for s in both)
        assert found[0].tolist() == expected[0].tolist() and np.allclose(found[1], expected[1], atol=1e-5)
    assert np.allclose(real.cosine(uids, query), memory.cosine(uids, query), atol=1e-5)
    tokens = np.frombuffer(random_query(1).token_vectors, np.float32).reshape(-1, 64)
    weights = np.array([0.4, 0.3, 0.2, 0.1], np.float32)
    assert np.allclose(real.maxsim(uids, tokens, weights), memory.maxsim(uids, tokens, weights), atol=1e-5)
    for word in (*WORDS, "absent"):
        assert [a.tolist() for a in real.postings(word)] == [a.tolist() for a in memory.postings(word)]
    assert real.token_df([1, 2, 999]).tolist() == memory.token_df([1, 2, 999]).tolist()
    for tags in ((), ("red",), ("blue", "red"), ("green",)):
        assert np.array_equal(real.tagset_mask(frozenset(tags)), memory.tagset_mask(frozenset(tags)))
    assert np.array_equal(real.tag_mask("red"), memory.tag_mask("red"))
    assert sorted(real.all_tags()) == memory.all_tags()
    assert real.speaker_numbers("did ana call?") and not real.speaker_numbers("banana")
    assert real.uid_of(memory.records[7].id) == 7 and real.uid_of("nothing") is None
    assert [unit.text for unit in real.units([3, 1])] == [memory.records[3].text, memory.records[1].text]
    for uid in range(0, UNITS, 10):
        mine, theirs = real.edges(uid), memory.edges(uid)
        assert sorted(mine[1].tolist()) == sorted(theirs[1].tolist())
        named = [real.entity(int(number)) for number in mine[0]]
        assert [e.name for e in named if e] == [memory.entity(int(number)).name for number in theirs[0]]
        for number, entity in zip(mine[0].tolist(), theirs[0].tolist(), strict=True):
            assert real.entity_uids(number, 5).tolist() == memory.entity_uids(entity, 5).tolist()


@pytest.mark.parametrize("arms", [ARMS, *((arm,) for arm in ARMS)])
def test_recall_over_both_snapshots_gives_the_same_answer(both: tuple[Snapshot, MemorySnapshot], arms: Any) -> None:
    for seed in range(12):
        fields: dict[str, Any] = {"arms": arms, "window": (20 * HOUR, 90 * HOUR), "max_tokens": 600}
        if seed % 3 == 1:
            fields |= {"tags": ("red",), "tags_match": "all_strict"}
        if seed % 3 == 2:
            fields |= {"types": (0, 1), "as_of": 1}
        first, second = (recall(snap, random_query(seed, **fields), RecallSettings()) for snap in both)
        assert [r["id"] for r in first.results] == [r["id"] for r in second.results]
        for one, other in zip(first.results, second.results, strict=True):
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-4)


def test_no_arm_returns_what_the_filter_hides(both: tuple[Snapshot, MemorySnapshot]) -> None:
    real, _ = both
    for seed, arm in itertools.product(range(5), ARMS):
        found = recall(real, random_query(seed, arms=(arm,), window=(0, 10**18), max_tokens=10**6), RecallSettings())
        uids = {real.uid_of(result["id"]) for result in found.results}
        assert uids and not uids & set(RETIRED)

"""Caches that followed commits, caches read from disk, and a plain model of the bank: always the same."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_units import NOW, Ids, add, open_partition, prepared, vector

from recalld.storage import keys
from recalld.storage.apply import Applier
from recalld.storage.changes import (
    Embedding,
    UnitsErased,
    UnitsReembedded,
    UnitsRelinked,
    UnitsRetagged,
    UnitsRetired,
)
from recalld.storage.edges import MAX_OF_A_KIND
from recalld.storage.names import folded
from recalld.storage.partition import Partition
from recalld.storage.quantise import unit_rows
from recalld.storage.records import SEMANTIC
from recalld.storage.snapshot import Snapshot
from recalld.storage.vector_rows import pack_tokens, pack_vectors

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord")
TAGS = ("red", "green", "blue")
NAMES = ("Ann", "Bob", "Cho")
EXAMPLES = 400 if os.environ.get("RECALLD_SOAK") else 25
PLAIN = (
    "network",
    "document",
    "thread",
    "prev",
    "next",
    "length",
    "tokens",
    "recorded",
    "retired",
    "question",
    "proof",
)


@dataclasses.dataclass
class Unit:
    """One unit as the model knows it."""

    text: str
    network: int
    document: str | None
    tags: frozenset[str]
    entities: frozenset[str]
    speaker: str
    prev: int
    terms: dict[str, int]
    tokens: frozenset[int]
    vectors: bytes
    token_row: bytes
    live: bool = True
    retired: int | None = None


class Model:
    """The bank as plain Python: what every structure of the store must agree with."""

    def __init__(self) -> None:
        self.units: dict[int, Unit] = {}
        self.links: dict[tuple[int, int], float] = {}
        self.n = 0
        self.documents = 0

    def next_of(self, uid: int) -> int:
        """The newest live unit behind one, else the newest."""
        behind = [(unit.live, other) for other, unit in self.units.items() if unit.prev == uid]
        return max(behind, default=(False, -1))[1]

    def erase(self, gone: set[int]) -> None:
        gone &= set(self.units)
        before = {uid: self.units[uid].prev for uid in gone}
        for unit in self.units.values():
            while unit.prev in gone:
                unit.prev = before[unit.prev]
        for uid in gone:
            del self.units[uid]
        self.links = {pair: w for pair, w in self.links.items() if not gone & set(pair)}


NUMBERS = st.integers(0, 10**6)
ADD = st.fixed_dictionaries(
    {
        "op": st.just("add"),
        "units": st.lists(
            st.fixed_dictionaries(
                {
                    "words": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
                    "tags": st.sets(st.sampled_from(TAGS)),
                    "entities": st.sets(st.sampled_from(NAMES)),
                    "speaker": st.sampled_from(("", *NAMES)),
                    "network": st.integers(0, 2),  # observations are stored by a change of their own
                    "rows": st.integers(1, 3),
                    "tokens": st.lists(st.integers(1, 9), max_size=5),
                    "links": st.lists(NUMBERS, max_size=3),
                    "prev": NUMBERS,
                }
            ),
            min_size=1,
            max_size=6,
        ),
        "document": st.booleans(),
    }
)
SOME = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["retire", "erase", "relink", "retag", "reembed", "reopen"]),
        "picks": st.lists(NUMBERS, min_size=1, max_size=5),
        "tags": st.sets(st.sampled_from(TAGS)),
    }
)
# A run of many units in one add makes sealed blocks; the rest works on tails and blocks alike.
BULK = st.fixed_dictionaries({"op": st.just("bulk"), "count": st.sampled_from([64, 70, 260])})


class Play:
    """Carries the same steps out on a partition and on the model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = Ids()  # one for all openings: ids are never given twice
        self.partition = open_partition(folder, new_id=self.ids)
        self.model = Model()
        self.made = 0
        self.partition.write("t", "b", lambda applier: add(applier, []), create=True)
        self.partition.open_bank(0 if self.partition.bank("t", "b") is None else self._number())

    def _number(self) -> int:
        found = self.partition.bank("t", "b")
        assert found is not None
        return found[0].number

    def pick(self, number: int, among: list[int]) -> int:
        return among[number % len(among)] if among else -1

    def step(self, step: dict[str, Any]) -> None:
        if step["op"] == "add":
            self.add(step["units"], step["document"])
        elif step["op"] == "bulk":
            plain = {"words": ["amber"], "tags": set(), "entities": set(), "speaker": "", "network": 0, "rows": 1}
            self.add([{**plain, "tokens": [1], "links": [], "prev": i} for i in range(step["count"])], True)
        elif step["op"] == "reopen":
            self.partition.close()
            self.partition = open_partition(self.folder, new_id=self.ids)
        else:
            self.change(step)
        with self.partition.read("t", "b"):
            pass

    def add(self, wanted: list[dict[str, Any]], document: bool) -> None:
        model = self.model
        there = sorted(model.units)
        first = model.n
        units, prevs, similar, links = [], [], [], []
        for offset, w in enumerate(wanted):
            self.made += 1
            text = " ".join([*w["words"], f"unit{self.made}"])
            units.append(
                prepared(
                    text,
                    f"id{self.made}",
                    tags=sorted(w["tags"]),
                    entities=sorted(w["entities"]),
                    speaker=w["speaker"],
                    network=w["network"],
                    rows=w["rows"],
                    tokens=w["tokens"],
                )
            )
            prevs.append(self.pick(w["prev"], [-1, *there, *range(first, first + offset)]))
            own = {self.pick(k, [*there, *range(first, first + offset)]) for k in w["links"]} - {-1}
            similar.append([(other, 0.5 + (other % 7) / 20) for other in sorted(own)])
            links += [(first + offset, other, 0.5 + (other % 7) / 20) for other in sorted(own)]
        name = f"doc{self.made}" if document else None
        uids = self.partition.write(
            "t", "b", lambda applier: add(applier, units, document_id=name, prevs=prevs, similar=similar)
        )
        assert uids == list(range(first, first + len(units)))
        model.n += len(units)
        model.documents += document
        for uid, unit, prev in zip(uids, units, prevs, strict=True):
            model.units[uid] = Unit(
                text=unit.text,
                network=unit.network,
                document=name,
                tags=frozenset(unit.tags),
                entities=frozenset(e.name for e in unit.entities),
                speaker=unit.speaker,
                prev=prev,
                terms=dict(unit.terms),
                tokens=frozenset(np.frombuffer(unit.token_ids, "<u4").tolist()),
                vectors=pack_vectors(unit.vectors, unit.scales),
                token_row=pack_tokens(unit.token_vectors, unit.token_ids),
            )
        for a, b, weight in links:
            model.links[(a, b)] = model.links[(b, a)] = weight

    def change(self, step: dict[str, Any]) -> None:
        model = self.model
        there = sorted(model.units)
        picked = sorted({self.pick(k, there) for k in step["picks"]} - {-1})
        at = NOW + self.made
        changes: list[Any] = []
        if step["op"] == "retire":
            changes.append(UnitsRetired(tuple(picked), at))
            for uid in picked:
                if model.units[uid].live:
                    model.units[uid].live, model.units[uid].retired = False, at
        elif step["op"] == "erase":
            changes.append(UnitsErased(tuple(picked), at))
            model.erase(set(picked))
        elif step["op"] == "relink":
            moved = {
                uid: self.pick(k, [-1, *(u for u in there if u < uid)])
                for uid, k in zip(picked, step["picks"], strict=False)
            }
            changes.append(UnitsRelinked(moved, at))
            for uid, prev in moved.items():
                model.units[uid].prev = prev
        elif step["op"] == "retag":
            changes.append(UnitsRetagged(tuple(picked), tuple(step["tags"]), at))
            for uid in picked:
                model.units[uid].tags = frozenset(step["tags"])
        elif step["op"] == "reembed":
            embeddings = []
            for uid in picked:
                self.made += 1
                fresh = prepared(f"anew {self.made}", "x", rows=1 + uid % 2, tokens=list(model.units[uid].tokens))
                embeddings.append(
                    Embedding(uid, fresh.vectors, fresh.scales, fresh.token_vectors, fresh.token_ids, None)
                )
                model.units[uid].vectors = pack_vectors(fresh.vectors, fresh.scales)
                model.units[uid].token_row = pack_tokens(fresh.token_vectors, fresh.token_ids)
            changes.append(UnitsReembedded(tuple(embeddings), at))

        def run(applier: Applier) -> None:
            for change in changes:
                applier.apply(change)

        self.partition.write("t", "b", run)


def check(snap: Snapshot, model: Model) -> None:
    """The snapshot against the model, structure by structure."""
    columns = snap.columns
    assert snap.n == model.n
    alive = sorted(model.units)
    live = [uid for uid in alive if model.units[uid].live]
    assert np.flatnonzero(columns.exists).tolist() == alive
    assert np.flatnonzero(columns.live).tolist() == live
    for uid, unit in model.units.items():
        assert columns.network[uid] == unit.network
        assert columns.prev[uid] == unit.prev
        assert columns.next[uid] == model.next_of(uid), f"next of {uid}"
        assert columns.length[uid] == sum(unit.terms.values())
        if unit.retired is not None:
            assert columns.retired[uid] == unit.retired
        assert snap.vector_row(uid) == unit.vectors
        assert snap.token_row(uid) == unit.token_row
    records = {unit.uid: unit for unit in snap.units(alive)}
    assert {uid: record.text for uid, record in records.items()} == {u: model.units[u].text for u in alive}
    for uid, record in records.items():
        assert set(record.tags) == model.units[uid].tags
        assert snap.uid_of(record.id) == uid
    # keywords
    for term in {term for unit in model.units.values() for term in unit.terms}:
        uids, frequencies = snap.postings(term)
        found = {int(u): int(f) for u, f in zip(uids, frequencies, strict=True) if columns.exists[u]}
        assert found == {u: unit.terms[term] for u, unit in model.units.items() if term in unit.terms}
        assert (np.diff(uids.astype(np.int64)) > 0).all()
    counts = snap.token_df(range(1, 10)).tolist()
    assert counts == [sum(t in unit.tokens for unit in model.units.values()) for t in range(1, 10)]
    # sets
    for tag in TAGS:
        assert np.flatnonzero(snap.tag_mask(tag)).tolist() == [u for u in alive if tag in model.units[u].tags]
    sets = {unit.tags for unit in model.units.values()}
    for tags in sets | {frozenset()}:
        assert np.flatnonzero(snap.tagset_mask(tags)).tolist() == [u for u in alive if model.units[u].tags == tags]
    used = {tag for unit in model.units.values() for tag in unit.tags}
    assert dict(snap.all_tags()) == {tag: sum(tag in model.units[u].tags for u in live) for tag in used}
    entities = {entity.name: entity for entity in snap.entities()}
    assert set(entities) == {name for unit in model.units.values() for name in unit.entities}
    for name, entity in entities.items():
        holders = [u for u in alive if name in model.units[u].entities]
        assert snap.entity_uids(entity.number, 10**6).tolist() == holders[::-1]
        assert entity.mentions == sum(model.units[u].live for u in holders)
        assert snap.entity_by_id(entity.id) == entity
    for document in snap.documents():
        uids = [u for u in alive if model.units[u].document == document.id]
        assert snap.document_uids(document.number).tolist() == uids
    # links
    for uid in alive:
        names, others, kinds, weights = snap.edges(uid)
        assert {snap.entity(int(n)).name for n in names} == model.units[uid].entities  # type: ignore[union-attr]
        assert (kinds == SEMANTIC).all()
        found_links = dict(zip(others.tolist(), weights.tolist(), strict=True))
        wanted_links = {b: w for (a, b), w in model.links.items() if a == uid}
        if max((sum(a == o for a, _ in model.links) for o in {uid, *wanted_links}), default=0) <= MAX_OF_A_KIND:
            assert found_links.keys() == wanted_links.keys()
            assert all(abs(found_links[o] - w) < 1e-6 for o, w in wanted_links.items())
    # vectors
    query = vector("amber")
    for mask in (columns.live, columns.exists):
        uids, scores = snap.semantic(query, model.n + 5, mask, -1.0)
        best = {u: float((unit_rows(rows_of(model.units[u].vectors)) @ query).max()) for u in np.flatnonzero(mask)}
        assert set(uids.tolist()) == set(best)
        assert all(abs(best[int(u)] - s) < 1e-5 for u, s in zip(uids, scores, strict=True))
        assert (np.diff(scores) <= 1e-6).all()
    tokens = unit_rows(np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32))
    if alive:
        found_scores = snap.maxsim(np.array(alive), tokens, np.ones(2, np.float32))
        for uid, score in zip(alive, found_scores, strict=True):
            count = int.from_bytes(model.units[uid].token_row[:4], "little")
            rows = np.frombuffer(model.units[uid].token_row, np.int8, -1, 4 + 4 * count).reshape(count, 64)
            best_score = float((rows.astype(np.float32) / 127 @ tokens.T).max(axis=0).sum()) if count else 0.0
            assert abs(best_score - float(score)) < 1e-3
    # counters
    counters = snap.counters()
    assert counters.live == tuple(sum(model.units[u].network == k for u in live) for k in range(4))
    assert counters.next_uid == model.n
    assert counters.entities == len(entities)
    assert counters.documents == model.documents
    stored = sum(len(snap.edges(uid)[1]) for uid in alive)
    assert sum(counters.edges.values()) in (stored, stored // 2)
    # speakers: a name stays while any unit of theirs does
    speaking = {unit.speaker for unit in model.units.values() if unit.speaker}
    for name in NAMES:
        assert len(snap.speaker_numbers(f"said {name}.")) == (name in speaking)


def rows_of(row: bytes) -> np.ndarray[Any, np.dtype[np.int8]]:
    count = int.from_bytes(row[:2], "little")
    return np.frombuffer(row, np.int8, -1, 4 + 4 * count).reshape(count, -1)


def caches(snap: Snapshot) -> dict[str, Any]:
    """What is resident, in a comparable form."""
    exists = snap.columns.exists
    return {name: getattr(snap.columns, name)[exists].tolist() for name in PLAIN} | {
        "live": snap.columns.live.tolist(),
        "exists": exists.tolist(),
        "confidence": np.isnan(snap.columns.confidence[exists]).tolist(),
        "speakers": sorted(snap._speakers.items()),
    }


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(ADD, ADD, SOME, SOME, BULK), min_size=1, max_size=14))
def test_caches_that_followed_equal_caches_reloaded_and_a_plain_model(steps: list[dict[str, Any]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="caches-"))
    play = Play(folder / "p")
    try:
        for step in steps:
            play.step(step)
        with play.partition.read("t", "b") as snap:
            check(snap, play.model)
            followed = caches(snap)
        play.partition.close()
        play.partition = open_partition(folder / "p")
        with play.partition.read("t", "b") as snap:
            assert caches(snap) == followed
            check(snap, play.model)
        # Compaction sweeps what is dead out of the posting lists and changes nothing else.
        from recalld.storage.upkeep import compact

        compact(play.partition)
        with play.partition.read("t", "b") as snap:
            check(snap, play.model)
            assert_no_dead_postings(play.partition, snap)
    finally:
        play.partition.close()
        shutil.rmtree(folder, ignore_errors=True)


def assert_no_dead_postings(partition: Partition, snap: Snapshot) -> None:
    from recalld.storage import postings

    with partition.environment.read() as txn:
        for _, value in txn.scan(keys.table(snap.bank, keys.POSTING)):
            uids, _ = postings.join([value])
            assert snap.columns.exists[uids].all()


def test_links_beyond_the_cap_leave_no_half_links(tmp_path: Path) -> None:
    """A unit keeps its 20 heaviest links of a kind. One that lost its place there lists nobody who is gone."""
    partition = open_partition(tmp_path / "p")
    partition.write("t", "b", lambda applier: add(applier, [prepared("hub", "hub")]), create=True)
    for i in range(30):
        partition.write(
            "t",
            "b",
            lambda applier, i=i: add(applier, [prepared(f"leaf {i}", f"leaf{i}")], similar=[[(0, 0.7 + i / 200)]]),
        )
    partition.write("t", "b", lambda applier: applier.apply(UnitsErased((0,), NOW)))
    with partition.read("t", "b") as snap:
        dangling = [uid for uid in range(1, 31) if 0 in snap.edges(uid)[1]]
        assert dangling == []
        assert sum(snap.counters().edges.values()) == 0
    partition.close()


def test_a_link_to_a_unit_erased_meanwhile_is_not_made(tmp_path: Path) -> None:
    """Similar units are looked up before the write, so one may be gone when it runs."""
    partition = open_partition(tmp_path / "p")
    partition.write("t", "b", lambda applier: add(applier, [prepared("a", "a"), prepared("b", "b")]), create=True)
    partition.write("t", "b", lambda applier: applier.apply(UnitsErased((0,), NOW)))
    partition.write(
        "t", "b", lambda applier: add(applier, [prepared("c", "c")], prevs=[-1], similar=[[(0, 0.9), (1, 0.8)]])
    )
    with partition.read("t", "b") as snap:
        assert snap.edges(2)[1].tolist() == [1]
        assert snap.edges(0)[1].tolist() == []
    partition.close()


def test_speakers_of_odd_spelling_are_one(tmp_path: Path) -> None:
    partition = open_partition(tmp_path / "p")
    for index, name in enumerate(["Zoë  Ng", "ZOË NG", "Zoe\u0308 Ng"]):
        partition.write(
            "t",
            "b",
            lambda applier, n=name, i=index: add(applier, [prepared(f"x {i}", f"u{i}", speaker=n)]),
            create=True,
        )
    with partition.read("t", "b") as snap:
        assert len(snap.speaker_numbers("what did zoë ng say?")) == 1
        assert len({folded(name) for name in ["Zoë  Ng", "ZOË NG"]}) == 1
        assert len(set(snap.columns.speaker.tolist())) == 1
    partition.close()

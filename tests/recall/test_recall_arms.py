"""Each arm alone: what it finds and how it orders it."""

from __future__ import annotations

import numpy as np
import pytest
from memory_snapshot import MemoryBank, MemorySnapshot

from recalld.actors.recall import arms
from recalld.actors.recall.arms import Hits, top
from recalld.actors.recall.fusion import candidates, fuse
from recalld.actors.recall.graph import graph
from recalld.actors.recall.settings import RecallSettings
from recalld.actors.recall.temporal import temporal
from recalld.storage import analysis
from recalld.storage.records import CAUSED_BY, SEMANTIC

SETTINGS = RecallSettings()
DAY = 86_400_000_000


def spoken(*texts: str) -> MemorySnapshot:
    bank = MemoryBank()
    for text in texts:
        bank.add(text, terms=analysis.term_frequencies(text), document="d")
    return bank.snapshot()


def keyword(snap: MemorySnapshot, text: str, k: int = 10, allowed: np.ndarray | None = None) -> Hits:
    mask = snap.columns.live if allowed is None else allowed
    return arms.keyword(snap, analysis.query_terms(text), k, mask, SETTINGS).hits


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("外币汇率换算由财务部的林芳负责", "外币汇率"),
        ("外币汇率换算由财务部的林芳负责", "现在外币的汇率换算是谁在负责？"),
        ("経費精算の締切は毎月25日", "経費精算"),
        ("회의실 예약은 민지가 담당", "회의실"),
    ],
)
def test_keyword_arm_alone_finds_cjk(fact: str, question: str) -> None:
    snap = spoken("The office closes at six.", fact, "Lunch is at noon.")
    assert keyword(snap, question).uids.tolist()[:1] == [1]


def test_bm25_is_the_published_formula() -> None:
    bank = MemoryBank()
    bank.add("", terms=(("cat", 2), ("dog", 1)))
    bank.add("", terms=(("cat", 1),))
    bank.add("", terms=(("bird", 3),))
    snap = bank.snapshot()
    found = arms.keyword(snap, ("cat", "dog"), 10, snap.columns.live, SETTINGS)
    mean = 7 / 3

    def part(tf: int, df: int, length: int) -> float:
        idf = np.log(1 + (3 - df + 0.5) / (df + 0.5))
        return idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean))

    assert found.hits.uids.tolist() == [0, 1]
    assert found.hits.scores == pytest.approx([part(2, 2, 3) + part(1, 1, 3), part(1, 2, 1)], rel=1e-5)


def test_document_frequency_counts_allowed_units_alone() -> None:
    bank = MemoryBank()
    for i in range(20):
        bank.add("rare common" if i == 0 else "common", tags=("mine",) if i < 2 else ())
    snap = bank.snapshot()
    mask = snap.tag_mask("mine")
    found = arms.keyword(snap, ("common",), 10, mask, SETTINGS)
    assert set(found.hits.uids.tolist()) == {0, 1}
    assert found.terms[0].idf == pytest.approx(np.log(1 + 0.5 / 2.5))


def test_only_the_most_selective_terms_of_a_long_query_are_used() -> None:
    bank = MemoryBank()
    for i in range(200):
        bank.add(" ".join(f"common{j}" for j in range(40)) + (" needle" if i == 77 else ""))
    snap = bank.snapshot()
    terms = [*(f"common{j}" for j in range(40)), "needle", *(f"absent{j}" for j in range(2000))]
    found = arms.keyword(snap, terms, 10, snap.columns.live, SETTINGS)
    assert len(found.terms) <= 16 and found.terms[0].term == "needle"
    assert found.hits.uids[0] == 77
    assert snap.reads <= SETTINGS.probed_terms


def test_cutting_to_k_keeps_the_exact_best_however_common_the_terms() -> None:
    rng = np.random.default_rng(1)
    bank = MemoryBank()
    for _ in range(3000):
        terms = [
            (f"t{i}", int(rng.integers(1, 4))) for i, share in enumerate((0.5, 0.2, 0.02, 0.01)) if rng.random() < share
        ]
        bank.add("", terms=(*terms, ("pad", int(rng.integers(1, 9)))))
    snap = bank.snapshot()
    for k in (5, 50, 300, 2900):
        found = arms.keyword(snap, ("t0", "t1", "t2", "t3"), k, snap.columns.live, SETTINGS)
        whole = np.sort(found.dense[found.dense > 0])[::-1][:k]
        assert np.array_equal(found.hits.scores, whole)


def test_top_breaks_ties_by_position_and_clamps_k() -> None:
    assert top(np.array([1, 3, 3, 2, 3], np.float32), 2).tolist() == [1, 2]
    assert top(np.array([1, 2], np.float32), 9).tolist() == [1, 0]


def vector(*values: float) -> np.ndarray:
    v = np.zeros(8, np.float32)
    v[: len(values)] = values
    return v / np.linalg.norm(v)


def test_semantic_arm_keeps_its_floor_and_clamps_k_to_what_is_left() -> None:
    bank = MemoryBank()
    for i in range(10):
        bank.add(f"u{i}", vector=vector(1, i), retired=1 if i > 1 else None)
    snap = bank.snapshot()
    found = arms.semantic(snap, vector(1, 0), 50, snap.columns.live, 0.3)
    assert found.uids.tolist() == [0, 1]
    assert arms.semantic(snap, vector(1, 0), 50, snap.columns.live, 0.99).uids.tolist() == [0]
    assert arms.semantic(snap, np.zeros(8, np.float32), 50, snap.columns.live, 0.3).uids.tolist() == []


def test_graph_follows_links_entities_and_neighbours_within_two_hops() -> None:
    bank = MemoryBank()
    seed = bank.add("seed", entities=("Ana",), document="d", mentioned=0)
    after = bank.add("after", document="d", mentioned=0)
    caused = bank.add("caused")
    second = bank.add("second")
    third = bank.add("third")
    shared = bank.add("shared", entities=("Ana",))
    for i in range(30):
        bank.add(f"other {i}")
    bank.link(seed, caused, CAUSED_BY)
    bank.link(caused, second, SEMANTIC, 0.8)
    bank.link(second, third, SEMANTIC, 1.0)
    snap = bank.snapshot()
    found = graph(
        snap, Hits(np.array([seed]), np.array([0.8], np.float32)), 50, snap.columns.live, SETTINGS, record=True
    )
    activation = dict(zip(found.hits.uids.tolist(), found.hits.scores.tolist(), strict=True))
    assert activation[seed] == pytest.approx(0.8)
    assert activation[caused] == pytest.approx(0.8 * 0.5 * 1.5)
    assert activation[second] == pytest.approx(0.8 * 0.75 * 0.8 * 0.5)
    assert activation[after] == pytest.approx(0.8 * 0.5 * 0.8)
    assert 0 < activation[shared] < activation[caused]
    assert third not in activation
    assert {visit.kind for visit in found.visits} >= {"causal", "semantic", "entity", "temporal"}
    assert {visit.hop for visit in found.visits} == {1, 2}


def test_graph_stays_inside_the_filter_and_stops_when_faint() -> None:
    bank = MemoryBank()
    a, hidden, faint = bank.add("a"), bank.add("hidden", tags=("x",)), bank.add("faint")
    bank.link(a, hidden, CAUSED_BY)
    bank.link(hidden, faint, CAUSED_BY)
    bank.link(a, faint, SEMANTIC, 0.05)
    snap = bank.snapshot()
    found = graph(snap, Hits(np.array([a]), np.array([0.9], np.float32)), 50, ~snap.tag_mask("x"), SETTINGS)
    assert found.hits.uids.tolist() == [a]


def test_graph_reads_stay_bounded_in_a_dense_bank() -> None:
    bank = MemoryBank()
    for i in range(400):
        bank.add(f"u{i}", entities=(f"e{i % 40}", f"f{i % 37}", "everyone"))
    for i in range(400):
        for j in range(1, 20):
            bank.link(i, (i + j) % 400, SEMANTIC, 0.9)
    snap = bank.snapshot()
    graph(snap, Hits(np.arange(300), np.full(300, 0.9, np.float32)), 300, snap.columns.live, SETTINGS)
    assert snap.reads <= SETTINGS.graph_seeds + SETTINGS.graph_frontier + 4 * SETTINGS.graph_entities


def test_temporal_scores_by_distance_from_the_middle_of_the_window() -> None:
    bank = MemoryBank()
    for day in range(10):
        bank.add(f"day {day}", vector=vector(1, 0), mentioned=day * DAY)
    bank.add("undated", vector=vector(1, 0))
    bank.add("range", vector=vector(1, 0), occurred=(3 * DAY, 5 * DAY), mentioned=99 * DAY)
    bank.add("unlike", vector=vector(0, 1), mentioned=4 * DAY)
    snap = bank.snapshot()
    found = temporal(snap, (2 * DAY, 6 * DAY), vector(1, 0), 50, snap.columns.live, SETTINGS)
    scores = dict(zip(found.uids.tolist(), found.scores.tolist(), strict=True))
    assert scores == pytest.approx({2: 0.0, 3: 0.5, 4: 1.0, 5: 0.5, 6: 0.0, 11: 1.0})
    assert set(found.uids.tolist()[:2]) == {4, 11}


def test_temporal_survives_every_year_and_a_window_of_one_instant() -> None:
    bank = MemoryBank()
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    bank.add("year 1", vector=vector(1), occurred=(first, first))
    bank.add("year 9999", vector=vector(1), occurred=(last, last))
    snap = bank.snapshot()
    assert set(temporal(snap, (first, last), vector(1), 9, snap.columns.live, SETTINGS).uids.tolist()) == {0, 1}
    assert temporal(snap, (last, last), vector(1), 9, snap.columns.live, SETTINGS).uids.tolist() == [1]
    assert temporal(snap, (last, first), vector(1), 1, snap.columns.live, SETTINGS).uids.tolist() != []


def test_fusion_sums_reciprocal_ranks() -> None:
    found = fuse(
        {"a": Hits(np.array([7, 3]), np.ones(2, np.float32)), "b": Hits(np.array([3]), np.ones(1, np.float32))}, 60
    )
    assert found.uids.tolist() == [3, 7]
    assert found.scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61])
    assert len(fuse({}, 60).uids) == 0


def test_candidates_take_allowed_neighbours_one_and_two_away() -> None:
    bank = MemoryBank()
    for i in range(8):
        bank.add(f"u{i}", document="d", tags=("x",) if i == 2 else ())
    bank.add("elsewhere", document="e")
    snap = bank.snapshot()
    fused = fuse({"a": Hits(np.array([3]), np.ones(1, np.float32))}, 60)
    assert candidates(fused, snap.columns, ~snap.tag_mask("x"), 10, 10).tolist() == [1, 3, 4, 5]

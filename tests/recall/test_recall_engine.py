"""A whole recall: ranking, gates, answers, explanations and deadlines."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from memory_snapshot import MemoryBank, MemorySnapshot

from recalld.actors.recall.engine import recall
from recalld.actors.recall.late import token_weights
from recalld.actors.recall.query import ARMS, RecallAnswer, RecallQuery
from recalld.actors.recall.rank import blended
from recalld.actors.recall.settings import RankWeights, RecallSettings
from recalld.storage import analysis
from recalld.storage.errors import BadRequest
from recalld.storage.records import EVIDENCE, OBSERVATION, OPINION

SETTINGS = RecallSettings()
DAY = 86_400_000_000


def direction(i: int) -> np.ndarray:
    """One of eight unit vectors that have nothing in common."""
    return np.eye(8, dtype=np.float32)[i]


def token(i: int) -> np.ndarray:
    return np.eye(64, dtype=np.float32)[i]


def asking(text: str, vector: np.ndarray | None = None, tokens: tuple[int, ...] = (), **fields: Any) -> RecallQuery:
    return RecallQuery(
        tenant="t",
        bank_id="b",
        query=text,
        vector=(np.zeros(8, np.float32) if vector is None else vector).tobytes(),
        token_vectors=np.stack([token(i) for i in tokens]).tobytes() if tokens else b"",
        token_ids=tokens,
        terms=analysis.query_terms(text),
        **fields,
    )


def add(bank: MemoryBank, text: str, topic: int = 7, marks: tuple[int, ...] = (), **fields: Any) -> int:
    vectors = np.stack([127 * token(i) for i in marks]) if marks else None
    return bank.add(
        text,
        vector=direction(topic),
        token_vectors=vectors,
        token_ids=marks,
        terms=analysis.term_frequencies(text),
        **fields,
    )


def talk() -> MemorySnapshot:
    bank = MemoryBank()
    add(bank, "Ana: I moved to Lisbon in May.", 0, (1, 2), document="d1", speaker="Ana", entities=("Ana", "Lisbon"))
    add(bank, "Bo: How is the flat?", 1, (3,), document="d1", speaker="Bo", mentioned=DAY)
    add(bank, "Ana: Small but sunny.", 2, (4,), document="d1", speaker="Ana", mentioned=DAY)
    add(bank, "Bo: My sister breeds cats.", 3, (5, 6), document="d2", speaker="Bo", entities=("Bo",), tags=("pets",))
    add(bank, "Bo: The kettle broke.", 4, (8,), document="d2", speaker="Bo", mentioned=40 * DAY)
    return bank.snapshot()


def texts(answer: RecallAnswer) -> list[str]:
    return [result["text"] for result in answer.results]


def test_best_match_comes_first_with_every_declared_field() -> None:
    answer = recall(talk(), asking("When did Ana move to Lisbon?", direction(0), (1, 2)), SETTINGS)
    first = answer.results[0]
    assert first["text"] == "Ana: I moved to Lisbon in May."
    assert set(first) == {
        *("id", "text", "type", "entities", "context", "occurred_start", "occurred_end", "mentioned_at"),
        *("document_id", "metadata", "chunk_id", "tags", "source_fact_ids", "scores", "attachments"),
        *("trust", "risks"),
    }
    assert set(first["scores"]) == {"final", "reranker", "semantic", "keyword", "late"}
    assert first["scores"]["reranker"] is None and first["scores"]["late"] == pytest.approx(1.0, abs=0.01)
    assert answer.entities is not None and answer.entities["Lisbon"]["observations"] == []
    finals = [result["scores"]["final"] for result in answer.results]
    assert finals == sorted(finals, reverse=True) and all(0 <= final <= 1.2 for final in finals)
    assert answer.seq == 1 and answer.degraded == () and answer.trace is None


def test_neighbours_of_a_hit_are_recalled_with_it() -> None:
    answer = recall(talk(), asking("Lisbon", direction(0), (1,)), SETTINGS)
    assert "Ana: Small but sunny." in texts(answer)


def test_switching_off_entities_leaves_none_on_results() -> None:
    answer = recall(talk(), asking("Lisbon", direction(0), include_entities=False), SETTINGS)
    assert answer.entities is None and answer.results[0]["entities"] is None


@pytest.mark.parametrize("arm", ARMS)
def test_one_arm_alone_answers_in_its_own_order(arm: str) -> None:
    snap = talk()
    question = asking("cats kettle", direction(3) + direction(4), window=(30 * DAY, 50 * DAY), arms=(arm,), trace=True)
    answer = recall(snap, question, SETTINGS)
    assert answer.trace is not None and answer.results
    by_name = {found["method_name"]: found for found in answer.trace["retrieval_results"]}
    assert [r["id"] for r in answer.results] == [r["id"] for r in by_name[arm]["results"]]
    assert all(found["metadata"]["status"] == "off" for name, found in by_name.items() if name != arm)


def test_every_unit_is_found_by_each_arm_alone() -> None:
    snap = talk()
    for uid, record in enumerate(snap.records):
        at = record.mentioned_at
        for arm in ARMS:
            if arm == "temporal" and at is None:
                continue
            window = None if at is None else (at - 1, at + 1)
            question = asking(record.text, snap.vectors[uid], arms=(arm,), window=window)
            assert record.text in texts(recall(snap, question, SETTINGS)), (arm, record.text)


def test_filters_hold_in_every_arm_and_for_neighbours() -> None:
    bank = MemoryBank()
    for i in range(20):
        add(bank, f"tea {i}", 0, (1,), document="d", tags=("a",) if i % 2 else ("b",), mentioned=i)
    snap = bank.snapshot()
    for arms in (ARMS, *((arm,) for arm in ARMS)):
        question = asking("tea", direction(0), (1,), tags=("a",), tags_match="any_strict", window=(0, 99), arms=arms)
        found = recall(snap, question, SETTINGS).results
        assert len(found) == 10 and all(result["tags"] == ["a"] for result in found)


def test_small_filtered_rest_of_a_bank_is_returned_whole_and_no_more() -> None:
    bank = MemoryBank()
    for i in range(10):
        add(bank, f"fact {i}", 0, tags=("keep",), retired=None if i < 2 else 5)
    answer = recall(bank.snapshot(), asking("fact", direction(0), tags=("keep",), budget="high"), SETTINGS)
    assert sorted(texts(answer)) == ["fact 0", "fact 1"]


def test_empty_bank_and_query_without_meaning_give_no_results() -> None:
    assert recall(MemoryBank().snapshot(), asking("x"), SETTINGS).results == []
    assert recall(talk(), asking("???"), SETTINGS).results == []


def test_min_scores_cut_inside_their_arms_and_on_the_result() -> None:
    snap = talk()
    everything = recall(snap, asking("Lisbon", direction(0), (1,)), SETTINGS)
    top = everything.results[0]["scores"]["final"]
    cut = recall(snap, asking("Lisbon", direction(0), (1,), min_scores={"final": top}), SETTINGS)
    assert len(cut.results) == 1
    assert recall(snap, asking("Lisbon", direction(0), (1,), min_scores={"final": top + 1}), SETTINGS).results == []
    keyword = asking("Lisbon", arms=("keyword",), min_scores={"keyword": 1e6})
    assert recall(snap, keyword, SETTINGS).results == []
    semantic = asking("x", direction(0) + 0.9 * direction(1), arms=("semantic",), min_scores={"semantic": 0.95})
    assert len(recall(snap, semantic, SETTINGS).results) == 1
    with pytest.raises(BadRequest):
        recall(snap, asking("Lisbon", min_scores={"reranker": 0.5}), SETTINGS)


def test_max_tokens_zero_gives_no_facts_but_chunks_when_asked() -> None:
    answer = recall(talk(), asking("Lisbon", direction(0), max_tokens=0, include_chunks=True), SETTINGS)
    assert answer.results == [] and answer.entities is None
    assert answer.chunks is not None and "bank_d1_0" in answer.chunks
    assert recall(talk(), asking("Lisbon", direction(0), max_tokens=-5), SETTINGS).results == []
    assert len(recall(talk(), asking("Lisbon", direction(0), max_tokens=1), SETTINGS).results) == 1


def test_chunks_obey_their_budget_and_the_tag_filter_of_their_document() -> None:
    cut = recall(talk(), asking("Lisbon", direction(0), include_chunks=True, chunk_tokens=2), SETTINGS)
    assert cut.chunks is not None and [c["truncated"] for c in cut.chunks.values()] == [True]
    bank = MemoryBank()
    add(bank, "tea first", 0, document="private", tags=("x",))
    add(bank, "tea second", 0, document="private", tags=("y",))
    asked = asking("tea", direction(0), include_chunks=True, tags=("y",), tags_match="any_strict")
    answer = recall(bank.snapshot(), asked, SETTINGS)
    assert texts(answer) == ["tea second"] and answer.chunks is None


def belief() -> MemorySnapshot:
    bank = MemoryBank()
    facts = [add(bank, f"Ana drinks tea, day {i}", 0, document="d") for i in range(3)]
    seen = add(bank, "Ana is a tea drinker", 0, network=OBSERVATION, proof=3, sources=facts)
    add(bank, "Tea is better than coffee", 0, network=OPINION, confidence=0.7)
    for fact in facts:
        bank.link(seen, fact, EVIDENCE)
    return bank.snapshot()


def test_observation_brings_its_sources_within_their_budgets() -> None:
    asked = asking("tea", direction(0), include_source_facts=True, types=(OBSERVATION,))
    answer = recall(belief(), asked, SETTINGS)
    assert answer.source_facts is not None and len(answer.source_facts) == 3
    assert answer.results[0]["source_fact_ids"] == list(answer.source_facts) and answer.source_facts_truncated is False
    assert answer.results[0]["chunk_id"] is None
    less = recall(belief(), asking("tea", direction(0), include_source_facts=True, source_tokens=6), SETTINGS)
    assert less.source_facts is not None and len(less.source_facts) == 1 and less.source_facts_truncated is True
    each = recall(belief(), asking("tea", direction(0), include_source_facts=True, source_tokens_each=10), SETTINGS)
    assert each.source_facts is not None and len(each.source_facts) == 2
    none = recall(belief(), asking("tea", direction(0)), SETTINGS)
    assert none.source_facts is None and none.source_facts_truncated is None


def test_preferred_observations_stand_for_the_facts_they_were_built_from() -> None:
    both = texts(recall(belief(), asking("Ana tea", direction(0)), SETTINGS))
    assert len(both) == 5
    answer = recall(belief(), asking("Ana tea", direction(0), prefer_observations=True), SETTINGS)
    assert sorted(texts(answer)) == ["Ana is a tea drinker", "Tea is better than coffee"]


def test_opinions_carry_their_confidence_and_facts_none() -> None:
    results = recall(belief(), asking("tea", direction(0)), SETTINGS).results
    assert {r["type"]: r.get("confidence") for r in results} == {
        "world": None,
        "observation": None,
        "opinion": pytest.approx(0.7),
    }


def test_boosts_break_ties_and_only_ties() -> None:
    bank = MemoryBank()
    for name, days in (("old", 300), ("new", 1)):
        add(bank, f"tea {name}", 0, (1,), mentioned=-days * DAY)
    add(bank, "tea exactly this, long ago", 0, (1, 2), mentioned=-3000 * DAY)
    answer = recall(bank.snapshot(), asking("tea", direction(0), (1, 2), now=0), SETTINGS)
    assert texts(answer) == ["tea exactly this, long ago", "tea new", "tea old"]


def test_recency_counts_from_the_query_time() -> None:
    bank = MemoryBank()
    add(bank, "tea one", 0, (1,), mentioned=0)
    add(bank, "tea two", 0, (1,), mentioned=400 * DAY)
    early = recall(bank.snapshot(), asking("tea", direction(0), (1,), now=400 * DAY), SETTINGS)
    assert texts(early) == ["tea two", "tea one"]


def test_unreadable_query_is_led_by_its_words() -> None:
    bank = MemoryBank()
    add(bank, "天气很好", 0, (1,))
    add(bank, "外币汇率换算由财务部的林芳负责", 5)
    for i in range(50):
        add(bank, f"noise {i}", 0, (1,))
    asked = asking("现在外币的汇率换算是谁在负责？", direction(0), (1,), unknown_share=1.0)
    assert texts(recall(bank.snapshot(), asked, SETTINGS))[0] == "外币汇率换算由财务部的林芳负责"


def test_blend_is_continuous_and_gives_the_lost_weight_to_words() -> None:
    weights = RankWeights()
    assert blended(weights, 0.0) == weights
    half, full = blended(weights, 0.5), blended(weights, 1.0)
    assert full.maxsim == full.cosine == full.near1 == 0
    assert weights.keyword < half.keyword < full.keyword
    assert blended(weights, 0.001).keyword == pytest.approx(weights.keyword, abs=0.01)


def test_prior_counts_as_pseudo_units_and_fades_as_the_bank_grows() -> None:
    priors = np.array([0.9, 0.001, 1.0], np.float32)
    tiny = token_weights(np.array([1, 1, 1]), 3, priors, 100)
    assert tiny[1] > 3 * tiny[0] > 0 and tiny[2] == 0
    grown = token_weights(np.array([10, 5000, 10]), 10_000, priors, 100)
    assert grown[0] > grown[1]
    bare = token_weights(np.array([0, 3]), 3, np.zeros(0, np.float32), 100)
    assert bare == pytest.approx(np.log(1 + 3 / np.array([1.0, 4.0])), rel=1e-5)


def test_answer_keeps_one_voice_per_claim() -> None:
    bank = MemoryBank()
    for _ in range(5):
        add(bank, "Ana likes tea.", 0, (1,))
    add(bank, "Bo likes tea too.", 0)
    assert texts(recall(bank.snapshot(), asking("tea", direction(0), (1,)), SETTINGS)) == [
        "Ana likes tea.",
        "Bo likes tea too.",
    ]


def why(snap: MemorySnapshot, unit_id: str, **fields: Any) -> dict[str, Any]:
    asked = asking("Lisbon tea", direction(0), (1,), why_not=(unit_id,), **fields)
    trace = recall(snap, asked, SETTINGS).trace
    assert trace is not None
    found: dict[str, Any] = trace["why_not"][unit_id]
    assert found["reason"]
    return found


def test_why_not_names_the_gate_that_dropped_a_unit() -> None:
    bank = MemoryBank()
    ids = {}
    for name, topic, text, fields in (
        ("hit", 0, "Lisbon tea", {}),
        ("copy", 0, "Lisbon tea", {}),
        ("long", 0, "Lisbon tea at length", {"tokens": 5000}),
        ("erased", 0, "Lisbon gone", {"erased": True}),
        ("retired", 0, "Lisbon then", {"retired": 50, "recorded": 10}),
        ("tagged", 0, "Lisbon tagged", {"tags": ("x",)}),
        ("opinion", 0, "Lisbon is nice", {"network": OPINION}),
        ("past", 0, "Lisbon was", {"occurred": (1, 2)}),
        ("far", 6, "kettle", {}),
    ):
        ids[name] = bank.snapshot().n
        add(bank, text, topic, (1,), **fields)
    snap = bank.snapshot()

    def gate(name: str, **fields: Any) -> str:
        return str(why(snap, snap.records[ids[name]].id, **fields)["gate"])

    assert why(snap, "no such id")["gate"] == "unknown id"
    assert gate("hit") == "returned"
    assert why(snap, snap.records[0].id)["rank"] == 1
    assert gate("copy") == "duplicate"
    assert gate("long", max_tokens=100) == "max_tokens"
    assert gate("erased") == "erased"
    assert gate("retired") == "not live"
    assert gate("retired", as_of=5) == "as_of"
    assert gate("tagged", tags=("y",)) == "tags"
    assert gate("opinion", types=(0,)) == "network"
    assert gate("past", valid_at=9) == "valid_at"
    assert gate("far", min_scores={"semantic": 0.3}) == "no arm"
    assert gate("tagged", min_scores={"final": 2.0}) == "min_scores"


def test_why_not_tells_a_unit_cut_by_the_candidate_limit() -> None:
    bank = MemoryBank()
    for i in range(400):
        add(bank, f"tea {i}", 0)
    snap = bank.snapshot()
    limited = RecallSettings(budget_low=20, candidates_low=10)
    asked = asking("tea", direction(0), budget="low", why_not=tuple(r.id for r in snap.records), max_tokens=10**6)
    trace = recall(snap, asked, limited).trace
    assert trace is not None
    gates = {found["gate"] for found in trace["why_not"].values()}
    assert gates == {"returned", "no arm"}


def test_trace_has_the_contracts_shape() -> None:
    answer = recall(talk(), asking("Lisbon cats", direction(0), (1,), window=(0, DAY), trace=True), SETTINGS)
    assert answer.trace is not None
    assert set(answer.trace) >= {
        *("query", "retrieval_results", "rrf_merged", "reranked", "entry_points", "visits", "summary", "final_results"),
    }
    assert set(answer.trace["query"]) == {
        *("query_text", "query_embedding", "timestamp", "budget", "max_tokens", "tags", "tags_match"),
        "temporal_constraint",
    }
    assert [found["method_name"] for found in answer.trace["retrieval_results"]] == list(ARMS)
    assert {"total_nodes_visited", "entry_points_found", "budget_used", "budget_remaining", "phase_metrics"} <= set(
        answer.trace["summary"]
    )
    assert [r["id"] for r in answer.trace["final_results"]] == [r["id"] for r in answer.results]
    assert answer.trace["visits"] and answer.trace["entry_points"]


def test_broken_date_parser_is_loud_in_the_trace_and_harmless_to_the_answer() -> None:
    answer = recall(talk(), asking("Lisbon", direction(0), window_error="the date parser failed", trace=True), SETTINGS)
    assert answer.results and answer.trace is not None
    temporal = answer.trace["retrieval_results"][ARMS.index("temporal")]
    assert temporal["metadata"] == {"status": "failed", "error": "the date parser failed"}


def stepping(seconds: float) -> Any:
    """A clock that moves on by a step each time it is read."""
    at = [0.0]

    def now() -> float:
        at[0] += seconds
        return at[0]

    return now


def test_deadline_drops_parts_one_by_one_and_says_so() -> None:
    snap, asked = talk(), asking("Lisbon", direction(0), (1,), window=(0, DAY), deadline=0.02)
    assert recall(snap, asked, SETTINGS, stepping(0.0)).degraded == ()
    seen = [recall(snap, asked, SETTINGS, stepping(step)).degraded for step in (0.003, 0.0045, 0.01)]
    assert [len(parts) for parts in seen] == sorted(len(parts) for parts in seen)
    assert seen[-1] == ("graph", "temporal", "late interaction")
    for step in (0.003, 0.01, 1.0):
        assert texts(recall(snap, asked, SETTINGS, stepping(step)))[0] == "Ana: I moved to Lisbon in May."


def test_huge_query_is_answered_quickly() -> None:
    bank = MemoryBank()
    for i in range(3000):
        add(bank, f"spam ham {i}")
    snap = bank.snapshot()
    start = time.perf_counter()
    recall(snap, asking("spam ham eggs beans " * 15_000), SETTINGS)
    words = " ".join(f"word{i}" for i in range(20_000))
    recall(snap, asking(words), SETTINGS)
    assert time.perf_counter() - start < 2.0


def test_many_query_tokens_are_cut_to_the_weightiest() -> None:
    snap = talk()
    asked = asking("Lisbon", direction(0), tuple(range(60)))
    assert recall(snap, asked, SETTINGS).results


def test_timings_name_every_part() -> None:
    timings = recall(talk(), asking("Lisbon", direction(0), (1,)), SETTINGS).timings
    assert {"filters", "semantic", "keyword", "graph", "fusion", "late", "rank", "packing", "bodies", "engine"} <= set(
        timings
    )

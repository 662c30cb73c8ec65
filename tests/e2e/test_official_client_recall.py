"""The official client 1.1.0, unmodified, recalls: against a running daemon in both runtimes.

Every test checks a value that only a working implementation gives: the right memory first, the right instant, a filter
that leaves the other memory out.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from e2e_daemon import Bank, Daemon
from hindsight_client import Hindsight
from official_client import (
    BOAT,
    FERRY,
    KETTLE,
    LYON,
    PUMP,
    ROOF_KEPT,
    RUST,
    official,
    status_of,
    texts,
)


async def test_the_right_memory_comes_first(daemon: Daemon, library: Bank) -> None:
    questions = {
        "Where does Ana live?": LYON,
        "What is the dog scared of?": KETTLE,
        "Which language suits servers?": RUST,
        "What happened to the pump in the cellar?": PUMP,
        "Where is Carla's boat?": BOAT,
        "Which ferry did you book?": FERRY,
    }
    async with official(daemon) as client:
        for budget in ("low", "mid", "high"):
            for question, answer in questions.items():
                assert texts(await client.arecall(library.id, question, budget=budget))[0] == answer, (budget, question)
        ranked = (await client.arecall(library.id, "Where does Ana live?")).results
        finals = [one.scores.final for one in ranked]
        assert finals == sorted(finals, reverse=True)
        assert ranked[0].scores.semantic > 0.3 and ranked[0].scores.keyword > 0 and ranked[0].scores.reranker is None


async def test_types_choose_networks_and_all_four_are_the_default(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        question = "Rust servers, the ferry to Corsica and Ana in Lyon"
        for kind, expected in (("experience", [FERRY]), ("opinion", [RUST]), ("observation", [])):
            found = await client.arecall(library.id, question, types=[kind])
            assert texts(found) == expected
            assert all(one.type == kind for one in found.results)
        both = await client.arecall(library.id, question, types=["world", "experience"])
        assert {one.type for one in both.results} == {"world", "experience"} and RUST not in texts(both)
        absent = await client.arecall(library.id, question)
        assert {one.type for one in absent.results} == {"world", "experience", "opinion"}


async def test_max_tokens_cuts_by_text_and_zero_gives_no_fact_but_chunks(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        question = "Where does Ana live?"
        nothing = await client.arecall(library.id, question, max_tokens=0, include_chunks=True)
        assert nothing.results == [] and LYON in {one.text for one in nothing.chunks.values()}
        # Nothing fits one token: the best alone is given rather than none.
        assert texts(await client.arecall(library.id, question, max_tokens=1)) == [LYON]
        wide = await client.arecall(library.id, "Ana, Ben, Carla and the house", max_tokens=4096)
        narrow = await client.arecall(library.id, "Ana, Ben, Carla and the house", max_tokens=30)
        assert 1 <= len(narrow.results) < len(wide.results)
        assert texts(narrow)[0] == texts(wide)[0]


async def test_the_trace_shows_each_step_of_the_pipeline(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        assert (await client.arecall(library.id, "Where does Ana live?")).trace is None
        found = await client.arecall(
            library.id,
            "Where did Ana live in May 2024?",
            trace=True,
            budget="low",
            max_tokens=500,
            query_timestamp="2026-03-01T00:00:00Z",
        )
        trace = found.trace
        assert trace["query"]["query_text"] == "Where did Ana live in May 2024?"
        assert len(trace["query"]["query_embedding"]) == 384
        assert (trace["query"]["budget"], trace["query"]["max_tokens"]) == ("low", 500)
        assert trace["query"]["timestamp"] == "2026-03-01T00:00:00.000000+00:00"
        window = trace["query"]["temporal_constraint"]
        assert window == ["2024-05-01T00:00:00.000000+00:00", "2024-05-31T23:59:59.999999+00:00"]
        arms = {one["method_name"]: one for one in trace["retrieval_results"]}
        assert set(arms) == {"semantic", "keyword", "graph", "temporal"}
        for name in ("semantic", "keyword", "temporal"):
            assert arms[name]["results"][0]["text"] == LYON, name
        assert trace["rrf_merged"][0]["text"] == LYON
        assert {"semantic", "keyword", "temporal"} <= set(trace["rrf_merged"][0]["source_ranks"])
        assert trace["reranked"][0]["text"] == LYON and trace["entry_points"][0]["text"] == LYON
        assert trace["summary"]["results_returned"] == len(found.results) == len(trace["final_results"])
        assert trace["final_results"][0]["final_score"] == pytest.approx(found.results[0].scores.final)
        assert trace["summary"]["total_duration_seconds"] > 0


async def test_relative_words_are_read_from_the_query_timestamp(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        question = "What was repaired or broken this month?"
        for at, month in (("2025-09-20T12:00:00Z", "2025-09"), ("2025-06-20T12:00:00+00:00", "2025-06")):
            found = await client.arecall(library.id, question, query_timestamp=at, trace=True)
            start, end = found.trace["query"]["temporal_constraint"]
            assert start.startswith(month + "-01") and end.startswith(month + "-30")
            temporal = next(a for a in found.trace["retrieval_results"] if a["method_name"] == "temporal")
            assert [one["text"] for one in temporal["results"]] == [ROOF_KEPT if month == "2025-09" else PUMP]


async def test_included_parts_come_within_their_budgets(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        plain = await client.arecall(library.id, "Where does Ana live?")
        assert (plain.entities, plain.chunks, plain.source_facts) == (None, None, None)
        assert plain.results[0].entities is None
        full = await client.arecall(
            library.id,
            "Where does Ana live?",
            include_entities=True,
            include_chunks=True,
            include_source_facts=True,
            max_source_facts_tokens=50,
        )
        assert {"Ana", "Porto", "Lyon"} <= set(full.entities)
        assert str(uuid.UUID(full.entities["Lyon"].entity_id)) == full.entities["Lyon"].entity_id
        assert full.chunks["library_trip/1_0"].text == LYON and not full.chunks["library_trip/1_0"].truncated
        # No observation was returned, so none has source facts: the contract's null, and nothing was cut.
        assert full.source_facts is None and full.source_facts_truncated is False
        few = await client.arecall(
            library.id,
            "Where does Ana live?",
            include_entities=True,
            max_entity_tokens=2,
            include_chunks=True,
            max_chunk_tokens=5,
        )
        assert 1 <= len(few.entities) < len(full.entities)
        assert len(few.chunks) == 1
        (chunk,) = few.chunks.values()
        assert chunk.truncated and LYON.startswith(chunk.text) and len(chunk.text) < len(LYON)


@pytest.mark.parametrize(
    ("tags", "mode", "expected"),
    [
        (["ana"], "any", {LYON, PUMP, RUST, FERRY, ROOF_KEPT}),
        (["ana"], "any_strict", {LYON, PUMP}),
        (["ana", "ben"], "any_strict", {LYON, PUMP, KETTLE}),
        (["ana", "house"], "all", {PUMP, RUST, FERRY, ROOF_KEPT}),
        (["ana", "house"], "all_strict", {PUMP}),
        (["house", "ana"], "exact", {PUMP}),
        (["ana"], "exact", set()),
        ([], "exact", {RUST, FERRY, ROOF_KEPT}),
        ([], "any_strict", {LYON, KETTLE, RUST, FERRY, PUMP, ROOF_KEPT, BOAT}),
    ],
)
async def test_tags_filter_in_every_mode(
    daemon: Daemon, library: Bank, tags: list[str], mode: Any, expected: set[str]
) -> None:
    async with official(daemon) as client:
        listed = await client.alist_memories(library.id, tags=tags, tags_match=mode)
        if tags:
            assert {one.text for one in listed.items} == expected
        found: set[str] = set()
        for question in ("Ana in Lyon", "the kettle", "Rust or Go", "ferry", "pump", "roof", "Carla's boat"):
            found |= set(texts(await client.arecall(library.id, question, tags=tags, tags_match=mode)))
        assert found == expected


async def test_tag_groups_nest(daemon: Daemon, library: Bank) -> None:
    async def seen(client: Hindsight, *groups: dict[str, Any]) -> set[str]:
        found: set[str] = set()
        for question in ("Ana in Lyon", "the kettle", "Rust or Go", "ferry", "pump", "roof", "Carla's boat"):
            found |= set(texts(await client.arecall(library.id, question, tag_groups=list(groups))))
        return found

    async with official(daemon) as client:
        assert await seen(client, {"tags": ["ana"]}) == {LYON, PUMP}
        assert await seen(client, {"tags": ["ana"]}, {"not": {"tags": ["house"]}}) == {LYON}
        either = {
            "or": [{"and": [{"tags": ["ana"]}, {"tags": ["home"]}]}, {"tags": ["carla", "ben"], "match": "any_strict"}]
        }
        assert await seen(client, either) == {LYON, BOAT, KETTLE}
        assert await seen(client, either, {"not": {"or": [{"tags": ["ben"]}, {"tags": ["home"]}]}}) == {BOAT}
        assert await seen(client, {"tags": ["ana", "house"], "match": "exact"}) == {PUMP}
        assert await seen(client, {"tags": ["carlla"], "resolve": "fuzzy"}) == {BOAT}
        assert await seen(client, {"tags": ["carlla"]}) == set()


async def test_floors_drop_what_scores_below_them(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        question = "Where does Ana live?"
        everything = (await client.arecall(library.id, question)).results
        best = everything[0]
        floors = {"final": best.scores.final - 1e-6}
        assert texts(await client.arecall(library.id, question, min_scores=floors)) == [LYON]
        assert texts(await client.arecall(library.id, question, min_scores={"final": best.scores.final + 1})) == []
        high = await client.arecall(library.id, question, min_scores={"semantic": 0.99, "keyword": 1e9}, trace=True)
        arms = {one["method_name"]: one["results"] for one in high.trace["retrieval_results"]}
        assert arms["semantic"] == [] and arms["keyword"] == []
        status, text = await status_of(lambda: client.arecall(library.id, question, min_scores={"reranker": 0.5}))
        assert status == 400 and "cross-encoder" in text


async def test_a_temporal_window_raises_what_happened_in_it_and_filters_nothing(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client:
        question = "What happened to the pump and to the roof?"
        june = {"start": "2025-06-01T00:00:00Z", "end": "2025-06-30T23:59:59Z"}
        september = {"start": datetime(2025, 9, 1, tzinfo=UTC), "end": datetime(2025, 9, 30, tzinfo=UTC)}
        assert texts(await client.arecall(library.id, question, temporal_window=june))[0] == PUMP
        found = await client.arecall(library.id, question, temporal_window=september, trace=True)
        assert texts(found)[0] == ROOF_KEPT and PUMP in texts(found)
        assert found.trace["query"]["temporal_constraint"][0] == "2025-09-01T00:00:00.000000+00:00"


async def test_preferring_observations_is_accepted_and_loses_no_fact_without_observations(
    daemon: Daemon, library: Bank
) -> None:
    async with official(daemon) as client:
        plain = texts(await client.arecall(library.id, "Where does Ana live?", prefer_observations=False))
        assert texts(await client.arecall(library.id, "Where does Ana live?", prefer_observations=True)) == plain
        assert plain[0] == LYON


async def test_unknown_banks_are_404_for_reads_and_a_count_of_zero_for_deletes(daemon: Daemon) -> None:
    async with official(daemon) as client:
        assert (await status_of(lambda: client.arecall("nobody", "tea")))[0] == 404
        status, text = await status_of(lambda: client.alist_memories("nobody"))
        assert status == 404 and "Bank 'nobody' not found" in text
        assert (await client.adelete_bank("nobody")).deleted_count == 0

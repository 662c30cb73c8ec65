"""The official client 1.1.0, unmodified, against a running daemon in both runtimes.

Every test checks a value that only a working implementation gives: the right memory first, the right instant, a filter
that leaves the other memory out.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hindsight_client_api as low
import pytest
from e2e_daemon import Bank, Daemon
from hindsight_client import Hindsight

LYON = "Ana: I moved from Porto to Lyon in May 2024."
KETTLE = "Ben: My greyhound Miso is afraid of the kettle."
RUST = "I think that Rust is better than Go for servers."
FERRY = "assistant: I booked the ferry to Corsica for you."
PUMP = "The cellar pump failed on 10 June 2025."
ROOF = "Yesterday the roof was repaired."
BOAT = "Carla's sailing boat is moored in Trieste."

LIBRARY: list[dict[str, Any]] = [
    {
        "content": LYON,
        "document_id": "trip/1",
        "tags": ["ana", "home"],
        "timestamp": datetime(2026, 2, 1, 10, tzinfo=UTC),
        "metadata": {"source": "chat"},
        "context": "a chat about moving",
        "entities": [{"text": "Acme", "type": "ORG"}],
    },
    {"content": KETTLE, "document_id": "dog", "tags": ["ben"], "timestamp": datetime(2026, 2, 2, 10)},  # noqa: DTZ001
    {"content": RUST, "document_id": "talk", "timestamp": "2026-02-03T10:00:00Z"},
    {"content": FERRY, "document_id": "ferry", "timestamp": "2026-02-04T10:00:00"},
    {
        "content": PUMP,
        "document_id": "pump",
        "tags": ["house", "ana"],
        "timestamp": datetime(2026, 2, 5, 10, tzinfo=timezone(timedelta(hours=8))),
    },
    {"content": ROOF, "document_id": "roof", "timestamp": "2025-09-04T10:00:00Z"},
    {"content": BOAT, "document_id": "boat", "tags": ["carla"], "timestamp": "2026-02-06T10:00:00Z"},
]


@asynccontextmanager
async def official(daemon: Daemon) -> AsyncIterator[Hindsight]:
    client = Hindsight(base_url=daemon.url)
    try:
        yield client
    finally:
        await client.aclose()


@asynccontextmanager
async def generated(daemon: Daemon) -> AsyncIterator[low.ApiClient]:
    async with low.ApiClient(low.Configuration(host=daemon.url)) as api:
        yield api


@pytest.fixture(scope="session")
def library(daemon: Daemon) -> Bank:
    """A bank with seven memories that tests only read."""
    bank = daemon.wire.bank("library")
    with Hindsight(base_url=daemon.url) as client:
        kept = client.retain_batch(bank.id, LIBRARY)
        assert (kept.items_count, kept.var_async, kept.operation_id) == (7, False, None)
    return bank


def texts(found: Any) -> list[str]:
    return [one.text for one in found.results]


async def ended(api: low.ApiClient, bank_id: str, operation_id: str) -> Any:
    for _ in range(600):
        status = await low.OperationsApi(api).get_operation_status(bank_id, operation_id)
        if status.status not in ("pending", "processing"):
            return status
        await asyncio.sleep(0.05)
    raise AssertionError(f"the operation did not end: {status}")


async def status_of(call: Callable[[], Awaitable[Any]]) -> tuple[int, str]:
    """Status and text of a refused call."""
    with pytest.raises(low.ApiException) as refused:
        await call()
    return refused.value.status, str(refused.value.body)


# --- retain -----------------------------------------------------------------------------------------------------------


def test_a_synchronous_retain_is_recallable_at_once_with_all_it_was_given(daemon: Daemon, bank: Bank) -> None:
    with Hindsight(base_url=daemon.url + "/") as client:
        kept = client.retain(
            bank.id,
            "Zoe plays the theremin in a quartet called Copper Moth.",
            timestamp=datetime(2026, 5, 13, 1, 30, tzinfo=timezone(timedelta(hours=2))),
            context="an interview",
            document_id="interviews/zoe",
            metadata={"page": "7"},
            entities=[{"text": "Copper Moth", "type": "ORG"}],
            tags=["music"],
        )
        assert kept.success and not kept.var_async
        assert (kept.items_count, kept.usage.total_tokens, kept.operation_id) == (1, 0, None)
        client.retain(bank.id, "The bakery opens at six.")
        found = client.recall(bank.id, "Which instrument does Zoe play?", include_entities=True)
        first = found.results[0]
        assert first.text.startswith("Zoe plays the theremin")
        # An offset is applied: half past one in the morning at +02:00 is the evening before in UTC.
        assert first.mentioned_at == "2026-05-12T23:30:00.000000+00:00"
        assert (first.context, first.document_id, first.metadata, first.tags) == (
            "an interview",
            "interviews/zoe",
            {"page": "7"},
            ["music"],
        )
        assert "Copper Moth" in first.entities
        assert found.entities["Copper Moth"].canonical_name == "Copper Moth"
        listed = client.list_memories(bank.id)
        assert listed.total == 2


async def test_an_asynchronous_retain_is_an_operation_that_ends_with_the_memory_there(
    daemon: Daemon, bank: Bank
) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        operation = str(uuid.uuid4())
        for _ in range(2):  # a lost answer, repeated: the same operation, done once
            begun = await client.aretain(
                bank.id, "The vault code is kept by Mirela.", retain_async=True, operation_id=operation
            )
            assert (begun.operation_id, begun.var_async, begun.usage) == (operation, True, None)
        done = await ended(api, bank.id, operation)
        assert (done.status, done.operation_type, done.error_message) == ("completed", "batch_retain", None)
        assert done.completed_at is not None and done.result_metadata["items_count"] == 1
        assert [child.status for child in done.child_operations] == ["completed"]
        assert texts(await client.arecall(bank.id, "Who has the code of the vault?")) == [
            "The vault code is kept by Mirela."
        ]
        assert (await client.alist_memories(bank.id)).total == 1


async def test_a_batch_makes_its_documents_and_keeps_what_each_item_says(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        listed = {one.text: one for one in (await client.alist_memories(library.id)).items}
        assert set(listed) == {LYON, KETTLE, RUST, FERRY, PUMP, ROOF, BOAT}
        assert listed[LYON].metadata == {"source": "chat"} and listed[LYON].context == "a chat about moving"
        assert {"Ana", "Porto", "Lyon", "Acme"} <= set(listed[LYON].entities.split(", "))
        assert (listed[LYON].occurred_start, listed[LYON].occurred_end) == (
            "2024-05-01T00:00:00.000000+00:00",
            "2024-05-31T23:59:59.999999+00:00",
        )
        # Naive timestamps are UTC; zoned ones keep their instant, and their zone says which day "10 June" is.
        assert listed[KETTLE].mentioned_at == "2026-02-02T10:00:00.000000+00:00"
        assert listed[FERRY].mentioned_at == "2026-02-04T10:00:00.000000+00:00"
        assert listed[PUMP].mentioned_at == "2026-02-05T02:00:00.000000+00:00"
        assert listed[PUMP].occurred_start == "2025-06-09T16:00:00.000000+00:00"
        # "Yesterday" is the day before its own timestamp, not before today.
        assert listed[ROOF].occurred_start == "2025-09-03T00:00:00.000000+00:00"
        assert {text: listed[text].fact_type for text in (LYON, RUST, FERRY)} == {
            LYON: "world",
            RUST: "opinion",
            FERRY: "experience",
        }
        documents = await low.DocumentsApi(api).list_documents(library.id)
        assert {one.id for one in documents.items} == {one["document_id"] for one in LIBRARY}


async def test_items_without_documents_share_one_and_document_tags_reach_all(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain_batch(
            bank.id,
            [{"content": "The kiln runs at 900 degrees.", "tags": ["kiln"]}, {"content": "Glaze dries overnight."}],
            document_tags=["pottery"],
        )
        units = (await client.alist_memories(bank.id)).items
        assert len({one.document_id for one in units}) == 1
        assert {one.text: sorted(one.tags) for one in units} == {
            "The kiln runs at 900 degrees.": ["kiln", "pottery"],
            "Glaze dries overnight.": ["pottery"],
        }
        text = await low.DocumentsApi(api).get_document(bank.id, units[0].document_id)
        assert text.original_text == "The kiln runs at 900 degrees.\nGlaze dries overnight."
        # One item names a document: then each of the others has one of its own.
        await client.aretain_batch(
            bank.id,
            [{"content": "One.", "document_id": "d"}, {"content": "Two is enough."}, {"content": "Three it is."}],
        )
        assert len({one.document_id for one in (await client.alist_memories(bank.id)).items}) == 4


async def test_undated_items_have_no_time_and_append_joins_texts_without_touching_what_stood(
    daemon: Daemon, bank: Bank
) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain(bank.id, "The harbour was built by Romans.", timestamp="unset", document_id="log")
        before = (await client.alist_memories(bank.id)).items
        assert [(one.mentioned_at, one.occurred_start) for one in before] == [(None, None)]
        await client.aretain_batch(
            bank.id,
            [
                {
                    "content": "Its mole was rebuilt in 1840.",
                    "document_id": "log",
                    "update_mode": "append",
                    "tags": ["history"],
                    "metadata": {"by": "Ida"},
                }
            ],
        )
        document = await low.DocumentsApi(api).get_document(bank.id, "log")
        joined = "The harbour was built by Romans.\nIts mole was rebuilt in 1840."
        assert document.original_text == joined
        assert document.content_hash == hashlib.sha256(joined.encode()).hexdigest()
        assert (document.memory_unit_count, document.tags) == (2, ["history"])
        after = {one.id: one for one in (await client.alist_memories(bank.id)).items}
        assert before[0].id in after and after[before[0].id].text == "The harbour was built by Romans."
        found = await client.arecall(bank.id, "When was the mole rebuilt?")
        assert found.results[0].text == "Its mole was rebuilt in 1840."
        assert found.results[0].occurred_start == "1840-01-01T00:00:00.000000+00:00"


# --- recall -----------------------------------------------------------------------------------------------------------


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
            assert [one["text"] for one in temporal["results"]] == [ROOF if month == "2025-09" else PUMP]


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
        (["ana"], "any", {LYON, PUMP, RUST, FERRY, ROOF}),
        (["ana"], "any_strict", {LYON, PUMP}),
        (["ana", "ben"], "any_strict", {LYON, PUMP, KETTLE}),
        (["ana", "house"], "all", {PUMP, RUST, FERRY, ROOF}),
        (["ana", "house"], "all_strict", {PUMP}),
        (["house", "ana"], "exact", {PUMP}),
        (["ana"], "exact", set()),
        ([], "exact", {RUST, FERRY, ROOF}),
        ([], "any_strict", {LYON, KETTLE, RUST, FERRY, PUMP, ROOF, BOAT}),
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
        assert texts(found)[0] == ROOF and PUMP in texts(found)
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


# --- listings ---------------------------------------------------------------------------------------------------------


async def test_memories_are_listed_newest_first_and_filtered(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:

        async def listed(**filters: Any) -> list[str]:
            return [one.text for one in (await client.alist_memories(library.id, **filters)).items]

        assert await listed() == [BOAT, PUMP, FERRY, RUST, KETTLE, LYON, ROOF]
        page = await client.alist_memories(library.id, limit=2, offset=1)
        assert ([one.text for one in page.items], page.total, page.limit, page.offset) == ([PUMP, FERRY], 7, 2, 1)
        empty = await client.alist_memories(library.id, limit=0)
        assert (empty.items, empty.total) == ([], 7)
        assert await listed(type="opinion") == [RUST]
        assert await listed(type="world") == [BOAT, PUMP, KETTLE, LYON, ROOF]
        assert await listed(search_query="KETTLE") == [KETTLE]
        assert await listed(document_id="trip/1") == [LYON]
        assert await listed(tags=["ana"], tags_match="all_strict") == [PUMP, LYON]
        assert await listed(state="valid") == await listed() and await listed(state="invalidated") == []
        assert await listed(consolidation_state="failed") == [] and await listed(consolidation_state="done") == []
        assert set(await listed(consolidation_state="pending")) >= {LYON, KETTLE, PUMP, ROOF, BOAT, FERRY}
        lyon = next(
            one for one in (await low.EntitiesApi(api).list_entities(library.id)).items if one.canonical_name == "Lyon"
        )
        assert await listed(entity_id=lyon.id) == [LYON]
        occurred: dict[str, Any] = {"time_field": "occurred_start"}
        assert await listed(**occurred, start_date="2025-01-01", end_date="2026-01-01") == [PUMP, ROOF]
        # Instants are compared, not texts, and the end is exclusive.
        said: dict[str, Any] = {"time_field": "mentioned_at", "start_date": "2026-02-05T09:59:59+08:00"}
        assert await listed(**said) == [BOAT, PUMP]
        assert await listed(**said, end_date="2026-02-06T10:00:00Z") == [PUMP]
        assert await listed(start_date="2020-01-01", end_date="2020-02-01") == []


async def test_one_memory_is_read_with_all_its_fields(daemon: Daemon, library: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        listed = next(one for one in (await client.alist_memories(library.id)).items if one.text == LYON)
        memory = await low.MemoryApi(api).get_memory(library.id, listed.id)
        assert (memory["text"], memory["type"], memory["state"]) == (LYON, "world", "valid")
        assert {"Ana", "Lyon"} <= set(memory["entities"]) and memory["document_id"] == "trip/1"
        assert memory["occurred_start"] == "2024-05-01T00:00:00.000000+00:00"
        unknown = str(uuid.uuid4())
        assert (await status_of(lambda: low.MemoryApi(api).get_memory(library.id, unknown)))[0] == 404


async def test_tags_and_entities_are_counted(daemon: Daemon, library: Bank) -> None:
    async with generated(daemon) as api:
        tags = await low.MemoryApi(api).list_tags(library.id)
        assert [(one.tag, one.count) for one in tags.items] == [
            ("ana", 2),
            ("ben", 1),
            ("carla", 1),
            ("home", 1),
            ("house", 1),
        ]
        some = await low.MemoryApi(api).list_tags(library.id, q="HO*", limit=1)
        assert ([one.tag for one in some.items], some.total) == (["home"], 2)
        entities = low.EntitiesApi(api)
        names = {one.canonical_name: one for one in (await entities.list_entities(library.id)).items}
        assert {"Ana", "Lyon", "Porto", "Acme", "Corsica"} <= set(names)
        only = await entities.list_entities(library.id, tags=["carla"], tags_match="all_strict")
        assert "Ana" not in {one.canonical_name for one in only.items}
        ana = await entities.get_entity(library.id, names["Ana"].id)
        assert (ana.canonical_name, ana.mention_count, ana.observations) == ("Ana", names["Ana"].mention_count, [])
        assert ana.first_seen == "2026-02-01T10:00:00.000000+00:00"
        assert (await status_of(lambda: entities.get_entity(library.id, str(uuid.uuid4()))))[0] == 404
        assert (await status_of(lambda: entities.get_entity(library.id, "abc")))[0] == 400


async def test_statistics_are_exact_at_once(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain_batch(
            bank.id, [{"content": RUST, "document_id": "a"}, {"content": LYON, "document_id": "b"}]
        )
        first = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (first.total_nodes, first.total_documents) == (2, 2)
        assert first.nodes_by_fact_type == {"world": 1, "opinion": 1}
        await client.aretain(bank.id, KETTLE, document_id="c")
        second = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (second.total_nodes, second.nodes_by_fact_type["world"], second.pending_operations) == (3, 2, 0)
        (row,) = (await low.BanksApi(api).list_banks(q=bank.id)).banks
        assert row.fact_count == 3 and row.last_write_at is not None
        assert second.last_memory_write_at == row.last_write_at


# --- banks and settings -----------------------------------------------------------------------------------------------


async def test_banks_are_made_changed_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        made = await client.acreate_bank(
            bank.id, name="Notes", mission="Help Ana", disposition={"skepticism": 5, "literalism": 1, "empathy": 2}
        )
        assert (made.bank_id, made.name, made.mission, made.disposition.skepticism) == (bank.id, "Notes", "Help Ana", 5)
        await client.aset_mission(bank.id, "Be brief")
        await client.aset_reflect_mission(bank.id, "Be very brief")
        again = await client.acreate_bank(bank.id, disposition_empathy=4)
        assert (again.name, again.mission, again.disposition.empathy) == ("Notes", "Be very brief", 4)
        assert again.disposition.skepticism == 5
        await client.aretain(bank.id, LYON, document_id="d")
        units = await client.alist_memories(bank.id)
        entities = await low.EntitiesApi(api).list_entities(bank.id)
        gone = await client.adelete_bank(bank.id)
        assert gone.deleted_count == units.total + entities.total + 1
        assert (await status_of(lambda: client.alist_memories(bank.id)))[0] == 404
        assert bank.id not in [one.bank_id for one in (await low.BanksApi(api).list_banks()).banks]
        # A bank made again under the same id starts empty.
        await client.acreate_bank(bank.id)
        assert (await client.alist_memories(bank.id)).total == 0
        assert (await client.aget_bank_config(bank.id))["overrides"] == {}


async def test_settings_of_a_bank_work_and_go_away(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        changed = await client.aupdate_bank_config(
            bank.id, retain_extraction_mode="chunks", retain_chunk_size=200, enable_text_search=False
        )
        assert changed["overrides"] == {
            "retain_extraction_mode": "chunks",
            "retain_chunk_size": 200,
            "enable_text_search": False,
        }
        text = " ".join(f"Ana lives in Lyon in room {n}." for n in range(10)) + " Ben lives in Oslo with his dog."
        await client.aretain(bank.id, text, document_id="d")
        pieces = [one.text for one in (await client.alist_memories(bank.id)).items]
        assert len(pieces) == 2 and all(len(piece) <= 200 for piece in pieces)
        found = await client.arecall(bank.id, "Ben Oslo", trace=True)
        assert "Oslo" in found.results[0].text and found.results[0].scores.keyword is None
        reset = await client.areset_bank_config(bank.id)
        assert reset["overrides"] == {} and reset["config"]["retain_chunk_size"] == 3000
        assert (await client.arecall(bank.id, "Ben Oslo")).results[0].scores.keyword > 0
        await client.aretain(bank.id, text, document_id="e")
        assert len((await client.alist_memories(bank.id, document_id="e")).items) != len(pieces)


async def test_texts_that_are_not_to_be_kept_are_not_shown_and_still_recalled(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aupdate_bank_config(bank.id, store_document_text=False)
        await client.aretain(bank.id, LYON, document_id="d")
        await client.aretain_batch(bank.id, [{"content": KETTLE, "document_id": "d", "update_mode": "append"}])
        document = await low.DocumentsApi(api).get_document(bank.id, "d")
        assert (document.original_text, document.memory_unit_count) == (None, 2)
        assert (await low.DocumentsApi(api).list_document_chunks(bank.id, "d")).items == []
        found = await client.arecall(bank.id, "Where does Ana live?", include_chunks=True)
        assert texts(found)[0] == LYON and found.chunks is None


async def test_recall_over_plain_http_has_entities_by_default_and_names_what_it_ignored(
    daemon: Daemon, library: Bank
) -> None:
    answer = library.post_recall("Where does Ana live?", surprise=1)
    assert answer.headers["X-Ignored-Params"] == "surprise"
    assert "Lyon" in answer.body["entities"] and "Lyon" in answer.body["results"][0]["entities"]
    off = library.recall("Where does Ana live?", include={"entities": None})
    assert off["entities"] is None and off["results"][0]["entities"] is None


async def test_budgets_bound_the_candidates_of_an_arm_and_banks_may_set_their_own(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        items = [
            {"content": f"The ferry to Corsica leaves pier {n} on time.", "document_id": f"d{n}"} for n in range(130)
        ]
        await client.aretain_batch(bank.id, items)

        async def found(budget: str) -> dict[str, Any]:
            answer = await client.arecall(bank.id, "When does the ferry to Corsica leave?", budget=budget, trace=True)
            return {one["method_name"]: one["metadata"] for one in answer.trace["retrieval_results"]}

        assert [(await found(budget))["semantic"]["found"] for budget in ("low", "mid", "high")] == [100, 130, 130]
        await client.aupdate_bank_config(
            bank.id, recall_budget_fixed_low=20, enable_graph_retrieval=False, enable_temporal_retrieval=False
        )
        arms = await found("low")
        assert arms["semantic"]["found"] == arms["keyword"]["found"] == 20
        assert (arms["graph"]["status"], arms["temporal"]["status"]) == ("off", "off")
        adaptive: dict[str, Any] = {"recall_budget_function": "adaptive", "recall_budget_adaptive_mid": 0.0125}
        await client.aupdate_bank_config(bank.id, **adaptive)
        assert (await found("mid"))["semantic"]["found"] == 51  # an eightieth of 4096 tokens


async def test_clearing_memories_by_type_leaves_the_others(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aretain_batch(
            bank.id, [{"content": one["content"], "document_id": one["document_id"]} for one in LIBRARY]
        )
        opinions = await low.MemoryApi(api).clear_bank_memories(bank.id, type="opinion")
        assert opinions.deleted_count == 1
        assert RUST not in [one.text for one in (await client.alist_memories(bank.id)).items]
        assert RUST not in texts(await client.arecall(bank.id, "Is Rust better than Go?"))
        rest = await low.MemoryApi(api).clear_bank_memories(bank.id)
        assert rest.deleted_count >= 6 + 7
        assert (await client.alist_memories(bank.id)).total == 0
        assert (await low.DocumentsApi(api).list_documents(bank.id)).total == 0
        assert texts(await client.arecall(bank.id, "Where does Ana live?")) == []


# --- documents --------------------------------------------------------------------------------------------------------


async def test_documents_and_chunks_are_listed_read_and_searched(daemon: Daemon, library: Bank) -> None:
    async with generated(daemon) as api:
        documents = low.DocumentsApi(api)
        one = await documents.get_document(library.id, "trip/1")
        assert (one.original_text, one.content_hash) == (LYON, hashlib.sha256(LYON.encode()).hexdigest())
        assert (one.memory_unit_count, one.nodes_by_fact_type) == (1, {"world": 1})
        assert (sorted(one.tags), one.document_metadata) == (["ana", "home"], {"source": "chat"})
        assert one.retain_params["context"] == "a chat about moving"
        chunks = await documents.list_document_chunks(library.id, "trip/1")
        assert [(c.chunk_id, c.chunk_text) for c in chunks.items] == [("library_trip/1_0", LYON)]
        assert (await documents.get_chunk("library_trip/1_0")).chunk_text == LYON
        tagged = await documents.list_documents(library.id, tags=["ana"])
        assert {d.id for d in tagged.items} == {"trip/1", "pump"}
        assert {d.id for d in (await documents.list_documents(library.id, q="kettle")).items} == {"dog"}
        by_id = (await documents.list_documents(library.id, q="trip")).items
        assert [(d.id, d.text_length) for d in by_id] == [("trip/1", len(LYON))]
        page = await documents.list_documents(library.id, limit=2, offset=6)
        assert (len(page.items), page.total) == (1, 7)
        later = await documents.list_documents(library.id, start_date="2090-01-01")
        assert later.total == 0
        assert (await status_of(lambda: documents.get_document(library.id, "nothing")))[0] == 404
        assert (await status_of(lambda: documents.get_chunk("library_trip/1_9")))[0] == 404


def long_text(changed: int | None = None) -> str:
    """A text of three chunks; `changed` names the paragraph that reads differently."""
    paragraphs = []
    for number in range(12):
        word = "granite" if number == changed else "marble"
        lines = [f"Paragraph {number} describes the {word} statue number {number * 50 + line}." for line in range(14)]
        paragraphs.append(" ".join(lines))
    return "\n\n".join(paragraphs)


async def test_a_replaced_document_keeps_the_memories_of_unchanged_chunks(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        documents = low.DocumentsApi(api)
        await client.aretain(bank.id, long_text(), document_id="statues", timestamp="2026-01-01T00:00:00Z")
        created = (await documents.get_document(bank.id, "statues")).created_at
        chunks = (await documents.list_document_chunks(bank.id, "statues")).items
        assert len(chunks) >= 3 and "".join(c.chunk_text for c in chunks).replace("\n", "") == long_text().replace(
            "\n", ""
        )
        before = (await client.alist_memories(bank.id, limit=1000)).items
        await client.aretain(bank.id, long_text(changed=11), document_id="statues", timestamp="2026-01-01T00:00:00Z")
        after = (await client.alist_memories(bank.id, limit=1000)).items
        kept = {one.id for one in before} & {one.id for one in after}
        last = chunks[-1].chunk_index
        assert kept == {one.id for one in before if not one.chunk_id.endswith(f"_{last}")} and kept
        assert {one.id for one in after} - kept
        document = await documents.get_document(bank.id, "statues")
        assert document.original_text == long_text(changed=11) and document.created_at == created
        assert document.updated_at > created
        # The old paragraph is gone from every arm, the new one is found.
        assert "granite" in texts(await client.arecall(bank.id, "granite statue"))[0]
        everything = await client.arecall(bank.id, "Paragraph 11 marble", budget="high", max_tokens=50_000)
        assert not any("Paragraph 11 describes the marble" in text for text in texts(everything))


async def test_what_was_replaced_is_still_there_as_of_the_time_before(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client:
        await client.aretain(bank.id, "The office is on Elm Street.", document_id="office")
        # An instant the daemon itself gave: the first version was recorded then.
        then = bank.get("/documents/office")["updated_at"]
        await client.aretain(bank.id, "The office is on Birch Avenue.", document_id="office")
    assert bank.texts("Where is the office?") == ["The office is on Birch Avenue."]
    assert bank.texts("Where is the office?", as_of=then) == ["The office is on Elm Street."]
    assert bank.texts("Where is the office?", as_of="2020-01-01T00:00:00Z") == []
    # An erase, unlike a replace, takes it from every instant.
    assert bank.send("DELETE", "/documents/office").body["memory_units_deleted"] == 1
    assert bank.texts("Where is the office?", as_of=then) == []


async def test_documents_are_retagged_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        documents = low.DocumentsApi(api)
        await client.aretain(bank.id, LYON, document_id="a/b c", tags=["old"])
        await client.aretain(bank.id, KETTLE, document_id="other", tags=["old"])
        assert (await documents.update_document(bank.id, "a/b c", low.UpdateDocumentRequest(tags=["new"]))).success
        assert (await documents.get_document(bank.id, "a/b c")).tags == ["new"]
        for tag, expected in (("new", [LYON]), ("old", [KETTLE])):
            found = await client.arecall(bank.id, "Ana, Lyon and the kettle", tags=[tag], tags_match="any_strict")
            assert texts(found) == expected
        gone = await documents.delete_document(bank.id, "a/b c")
        assert (gone.document_id, gone.memory_units_deleted) == ("a/b c", 1)
        for arm in ("semantic", "keyword", "graph"):
            assert LYON not in bank.texts("Where does Ana live? Lyon", arms=[arm]), arm
        assert (await status_of(lambda: documents.delete_document(bank.id, "a/b c")))[0] == 404
        assert (await documents.get_document(bank.id, "other")).tags == ["old"]


# --- operations -------------------------------------------------------------------------------------------------------


async def test_operations_are_listed_cancelled_retried_and_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        operations = low.OperationsApi(api)
        # Long enough to be still running when the next call comes.
        text = "\n\n".join(long_text(changed) for changed in range(2))
        begun = await client.aretain(bank.id, text, document_id="long", retain_async=True)
        cancelled = await operations.cancel_operation(bank.id, begun.operation_id)
        assert (cancelled.success, cancelled.operation_id) == (True, begun.operation_id)
        status = await ended(api, bank.id, begun.operation_id)
        assert status.status == "cancelled"
        assert (await status_of(lambda: operations.cancel_operation(bank.id, begun.operation_id)))[0] == 409
        for _ in range(200):  # what was in hand when it was cancelled is let go before it is taken up again
            parent = await operations.get_operation_status(bank.id, begun.operation_id)
            if all(child.status == "cancelled" for child in parent.child_operations):
                break
            await asyncio.sleep(0.05)
        assert (await client.alist_memories(bank.id)).total == 0, "a cancelled retain stores nothing"

        assert (await operations.retry_operation(bank.id, begun.operation_id)).success
        done = await ended(api, bank.id, begun.operation_id)
        assert (done.status, done.error_message) == ("completed", None)
        assert (await low.DocumentsApi(api).get_document(bank.id, "long")).original_text == text
        assert (await status_of(lambda: operations.retry_operation(bank.id, begun.operation_id)))[0] == 409

        listed = await operations.list_operations(bank.id)
        assert {one.task_type for one in listed.operations} == {"batch_retain", "retain"}
        parents = await operations.list_operations(bank.id, type="batch_retain", status="completed")
        assert [one.id for one in parents.operations] == [begun.operation_id]
        children = await operations.list_operations(bank.id, exclude_parents=True)
        assert [one.task_type for one in children.operations] == ["retain"]
        assert (await operations.list_operations(bank.id, status="failed")).total == 0
        stats = await low.BanksApi(api).get_agent_stats(bank.id)
        assert (stats.pending_operations, stats.failed_operations) == (0, 0)

        assert (await operations.delete_operation(bank.id, begun.operation_id)).success
        gone = await operations.get_operation_status(bank.id, begun.operation_id)
        assert gone.status == "not_found"
        assert (await status_of(lambda: operations.delete_operation(bank.id, begun.operation_id)))[0] == 404


async def test_items_of_several_strategies_are_read_each_its_own_way(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        await client.aupdate_bank_config(
            bank.id,
            retain_strategies={"raw": {"retain_extraction_mode": "chunks"}, "small": {"retain_chunk_size": 200}},
        )
        opinion = "I think that Rust is better than Go."
        ledger = " ".join(f"Entry {n} says that the mill ground {n} sacks." for n in range(10))
        begun = await client.aretain_batch(
            bank.id,
            [
                {"content": opinion, "document_id": "raw", "strategy": "raw"},
                {"content": opinion, "document_id": "plain"},
                {"content": ledger, "document_id": "small", "strategy": "small"},
            ],
            retain_async=True,
        )
        assert len(set(begun.operation_ids)) == 3 and begun.operation_id == begun.operation_ids[0]
        assert {(await ended(api, bank.id, one)).status for one in begun.operation_ids} == {"completed"}
        # Chunks mode reads nothing into a text: what is an opinion elsewhere is a plain fact there.
        kinds = {one.document_id: one.fact_type for one in (await client.alist_memories(bank.id)).items}
        assert (kinds["raw"], kinds["plain"]) == ("world", "opinion")
        chunks = low.DocumentsApi(api)
        assert (await chunks.list_document_chunks(bank.id, "small")).total > 1
        assert (await chunks.list_document_chunks(bank.id, "raw")).total == 1


async def test_a_bank_deleted_with_work_in_hand_stays_deleted(daemon: Daemon, bank: Bank) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        begun = await client.aretain(bank.id, long_text(), document_id="long", retain_async=True)
        assert (await client.adelete_bank(bank.id)).success
        await client.acreate_bank(bank.id)
        await client.aretain(bank.id, "The new bank has one memory.")
        marker = daemon.wire.bank(bank.id + "-marker")
        # Retained behind it in the same queue: once this is done, the deleted bank's work is over too.
        marker.wait_for(marker.retain(long_text(1), **{"async": True})["operation_id"])
        assert (await low.OperationsApi(api).get_operation_status(bank.id, begun.operation_id)).status == "not_found"
        assert [one.text for one in (await client.alist_memories(bank.id)).items] == ["The new bank has one memory."]
        assert texts(await client.arecall(bank.id, "marble statue")) in ([], ["The new bank has one memory."])


# --- the daemon -------------------------------------------------------------------------------------------------------


async def test_version_and_health_are_what_clients_wait_for(daemon: Daemon) -> None:
    async with official(daemon) as client, generated(daemon) as api:
        version = await client.aget_version()
        assert version.api_version == "1.1.0" and version.features.bank_config_api is True
        health = await low.MonitoringApi(api).health_endpoint_health_get()
        assert (health["status"], health["database"]) == ("healthy", "connected")
        assert (await low.MonitoringApi(api).get_readiness())["status"] == "healthy"
        assert (await low.MonitoringApi(api).get_liveness()).status == "alive"
        metrics = await low.MonitoringApi(api).metrics_endpoint_metrics_get()
        flushes = [line for line in str(metrics).splitlines() if "flushes_total" in line and not line.startswith("#")]
        assert flushes

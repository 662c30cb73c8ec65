"""The official client 1.1.0, unmodified, retains: against a running daemon in both runtimes.

Every test checks a value that only a working implementation gives: the right memory first, the right instant, a filter
that leaves the other memory out.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime, timedelta, timezone

import hindsight_client_api as low
from e2e_daemon import Bank, Daemon
from hindsight_client import Hindsight
from official_client import (
    BOAT,
    FERRY,
    KETTLE,
    LIBRARY,
    LYON,
    PUMP,
    ROOF_KEPT,
    RUST,
    ended,
    generated,
    official,
    texts,
)


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
        assert set(listed) == {LYON, KETTLE, RUST, FERRY, PUMP, ROOF_KEPT, BOAT}
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
        assert listed[ROOF_KEPT].occurred_start == "2025-09-03T00:00:00.000000+00:00"
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

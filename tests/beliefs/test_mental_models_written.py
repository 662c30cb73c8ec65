"""Mental models that a model writes: what a refresh gives is what a reflect gives, and edits touch what they name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from llm.model_server import Heard, ModelServer, Say

from .conftest import Open, Wire

ANA = {"id": "ana", "name": "Ana", "source_query": "Where does Ana live?"}
DELTA = {**ANA, "trigger": {"mode": "delta"}}
LYON = {"content": "Ana lives in Lyon.", "document_id": "lyon", "timestamp": "2026-02-01T10:00:00Z"}
NURSE = {"content": "Ana works as a nurse.", "document_id": "nurse", "timestamp": "2026-02-02T10:00:00Z"}
PAGE = "# Ana\n\nAna lives in Lyon.\n\n- a nurse\n- kind *to* all\n\n## Other\n\n   kept  as it is"


class Written:
    """A bank whose pages a scripted model writes."""

    def __init__(self, wire: Wire, model: ModelServer) -> None:
        self.wire, self.model = wire, model
        self.page = PAGE
        self.found = True
        self.edits: list[dict[str, Any]] = []
        self.used: list[str] = []
        self.structured: Any = None
        model.script = self.say

    def say(self, heard: Heard) -> Say:
        sent = heard.body
        if "new memories" in str(sent["messages"][0]["content"]) or "memories that are new" in str(sent["messages"][0]):
            return Say(text=json.dumps({"edits": self.edits, "memory_ids": self.used}))
        if "tools" in sent:
            done = {"answer": self.page, "answer_found": self.found, "memory_ids": self.used}
            return Say(tools=(("done", done),))
        return Say(text=json.dumps(self.structured or {}) if "response_format" in sent else "")

    def told(self, number: int = -1) -> str:
        return "\n".join(str(one.get("content")) for one in self.model.heard[number].body["messages"])

    async def id_of(self, word: str) -> str:
        rows = (await self.wire.ok("GET", "/memories/list"))["items"]
        return next(str(one["id"]) for one in rows if word in one["text"])

    async def refresh(self, body: Any = None) -> dict[str, Any]:
        answer = await self.wire.ok("POST", "/mental-models/ana/refresh", body, wait="20")
        operation: dict[str, Any] = answer["operation"]
        return operation

    async def get(self) -> dict[str, Any]:
        one: dict[str, Any] = await self.wire.ok("GET", "/mental-models/ana")
        return one


@pytest.fixture
async def written(open_wire: Open) -> AsyncIterator[Written]:
    server = await ModelServer("openai").start()
    wire = await open_wire(
        enable_auto_consolidation=False,
        llm_reflect_provider="openai",
        llm_reflect_api_key="sk-test",
        llm_reflect_model="tiny",
        llm_reflect_base_url=server.url,
        llm_initial_backoff=0.01,
        llm_max_retries=1,
    )
    await wire.retain(LYON, NURSE)
    made = Written(wire, server)
    made.used = [await made.id_of("Lyon")]
    yield made
    await server.stop()


async def test_a_refresh_gives_what_a_reflect_with_the_same_inputs_gives(written: Written) -> None:
    wire = written.wire
    made = await wire.ok("POST", "/mental-models", ANA, wait="20")
    assert made["operation"]["details"]["outcome"] == "content_written"
    refreshed = [one.body for one in written.model.heard]
    written.model.heard.clear()
    body = {
        "query": ANA["source_query"], "budget": "mid", "max_tokens": 2048, "include": {"facts": {}},
        "fact_types": ["world", "experience", "observation"], "exclude_mental_model_ids": ["ana"],
    }  # fmt: skip
    reflected = await wire.ok("POST", "/reflect", body)
    one = await written.get()
    assert one["content"] == reflected["text"] == PAGE
    assert [fact["id"] for fact in one["reflect_response"]["based_on"]["world"]] == [
        fact["id"] for fact in reflected["based_on"]["memories"]
    ]
    asked = [one.body for one in written.model.heard]
    assert [len(sent["messages"]) for sent in refreshed] == [len(sent["messages"]) for sent in asked]
    assert refreshed[0]["messages"][0] == asked[0]["messages"][0]
    ledger = (await wire.ok("GET", "/llm-requests"))["items"]
    assert {row["operation"] for row in ledger} >= {"mental_model_refresh"}


async def test_edits_leave_every_other_block_byte_for_byte(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", DELTA, wait="20")
    await written.wire.retain({"content": "Ana lives in Nice now.", "timestamp": "2026-03-01T10:00:00Z"})
    written.used = [await written.id_of("Nice")]
    written.edits = [
        {"op": "replace_block", "block": "s1b1", "text": "Since March 2026 Ana lives in Nice."},
        {"op": "remove_block", "block": "s9b9"},
        {"op": "append_block", "section": "s1", "text": "- moved once"},
    ]
    done = await written.refresh()
    assert done["details"]["outcome"] == "content_written"
    one = await written.get()
    assert one["content"] == PAGE.replace("Ana lives in Lyon.", "Since March 2026 Ana lives in Nice.").replace(
        "- kind *to* all", "- kind *to* all\n- moved once"
    )
    assert len(one["reflect_response"]["based_on"]["world"]) == 2
    prompt = written.told()
    assert "[s1b1] Ana lives in Lyon." in prompt and "Ana lives in Nice now." in prompt and "<<quoted" in prompt
    assert "Ana works as a nurse." not in prompt


async def test_edits_that_do_not_fit_fail_and_the_content_stays(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", DELTA, wait="20")
    await written.wire.retain({"content": "Ana lives in Nice now."})
    written.edits = [{"op": "replace_block", "block": "s7b7", "text": "x"}]
    done = await written.refresh()
    assert (done["status"], done["details"]) == (
        "failed",
        {
            "operation_type": "refresh_mental_model",
            "outcome": "refresh_failed_delta_not_applied",
            "failure_reason": "delta_ops_all_skipped",
        },
    )
    one = await written.get()
    assert one["content"] == PAGE and one["last_refresh_failed_at"] is not None and one["is_stale"] is True


async def test_no_edits_are_an_answer(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", DELTA, wait="20")
    await written.wire.retain({"content": "Ana lives in a quiet street."})
    done = await written.refresh()
    assert done["details"]["outcome"] == "content_unchanged"
    one = await written.get()
    assert one["content"] == PAGE and one["is_stale"] is False


async def test_a_model_that_finds_nothing_leaves_the_content(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", ANA, wait="20")
    written.found, written.page, written.used = False, "I do not know.", []
    done = await written.refresh()
    assert done["details"]["outcome"] == "content_preserved_no_new_facts"
    assert (await written.get())["content"] == PAGE


async def test_a_model_that_says_nothing_fails_and_the_content_stays(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", ANA, wait="20")
    written.page, written.structured = "  ", {"answer": " "}
    done = await written.refresh()
    assert (done["status"], done["details"]["outcome"], done["details"]["failure_reason"]) == (
        "failed",
        "refresh_failed_empty_candidate",
        "no_answer",
    )
    assert (await written.get())["content"] == PAGE


async def test_a_deleted_source_goes_from_the_sources_at_once_and_from_the_text_by_a_refresh(written: Written) -> None:
    wire = written.wire
    written.used = [await written.id_of("Lyon"), await written.id_of("nurse")]
    await wire.ok("POST", "/mental-models", DELTA, wait="20")
    written.edits = [{"op": "remove_block", "block": "s1b2"}]
    await wire.ok("DELETE", "/documents/nurse")
    one = await written.get()
    for _ in range(200):
        if "nurse" not in one["content"]:
            break
        assert one["is_stale"] is True
        one = await written.get()
    assert one["content"] == PAGE.replace("- a nurse\n", "") and one["is_stale"] is False
    assert len(one["reflect_response"]["based_on"]["world"]) == 1
    history = await wire.ok("GET", "/mental-models/ana/history")
    assert "Ana works as a nurse" not in json.dumps(history)
    await wire.ok("DELETE", "/documents/lyon")
    assert (await written.get())["content"] == ""


async def test_a_schema_gives_an_object_beside_the_text(written: Written) -> None:
    schema = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
    written.structured = {"town": "Lyon"}
    await written.wire.ok("POST", "/mental-models", {**ANA, "trigger": {"response_schema": schema}}, wait="20")
    assert (await written.get())["reflect_response"]["structured_output"] == {"town": "Lyon"}
    written.structured = {"city": 3}
    done = await written.refresh()
    assert done["details"]["outcome"] == "refresh_failed_structured_output"
    assert (await written.get())["content"] == PAGE


async def test_directives_bind_refreshes_and_stand_in_the_sources(written: Written) -> None:
    await written.wire.ok("POST", "/directives", {"name": "Tone", "content": "Never use the word very."})
    await written.wire.ok("POST", "/mental-models", DELTA, wait="20")
    assert "Never use the word very." in written.told(0)
    one = await written.get()
    assert [rule["name"] for rule in one["reflect_response"]["based_on"]["directives"]] == ["Tone"]
    await written.wire.retain({"content": "Ana lives in Nice now."})
    written.edits = [{"op": "append_block", "section": "s1", "text": "Nice."}]
    await written.refresh()
    assert "Never use the word very." in written.told()


async def test_a_dry_run_asks_the_model_and_stores_nothing(written: Written) -> None:
    await written.wire.ok("POST", "/mental-models", ANA, wait="20")
    before = await written.get()
    written.page = "# Ana\n\nNew."
    preview = await written.wire.ok("POST", "/mental-models/ana/dry-run-refresh")
    assert preview["would_persist"] and preview["preview_content"] == preview["candidate_content"] == written.page
    assert preview["usage"]["input_tokens"] > 0 and preview["trace"]["llm_calls"]
    assert preview["facts"]["retrieved"]["world"] == 2 and preview["facts"]["used"] == {"world": 1}
    assert await written.get() == before

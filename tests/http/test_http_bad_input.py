"""Bad input gets a clear error in shape, nothing is lost, and the bank is usable after."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from http_edge import Edge

BANK = "/v1/default/banks/b"
JSON = {"Content-Type": "application/json"}


async def _usable(edge: Edge) -> None:
    assert (await edge.retain("Zoe sings")).status == 200
    assert (await edge.recall(query="sings")).body["results"][0]["text"] == "Zoe sings"


@pytest.mark.parametrize(
    "item",
    [
        {"content": ""},
        {"content": "  \n\t "},
        {"content": "\x00\x00"},
        {"content": None},
        {"content": []},
        {"content": [{"type": "text", "text": " "}]},
        {"content": [{"type": "sound"}]},
        {},
        {"content": "x", "metadata": {"a": None}},
        {"content": "x", "metadata": {"a": 3}},
        {"content": "x", "metadata": {"a": {"b": "c"}}},
        {"content": "x", "timestamp": "0000-01-01T00:00:00"},
        {"content": "x", "timestamp": "0001-01-01T00:00:00Z"},
        {"content": "x", "timestamp": "9999-12-31T23:59:59Z"},
        {"content": "x", "timestamp": "9999-12-31T23:59:59-12:00"},
        {"content": "x", "timestamp": "yesterday"},
        {"content": "x", "timestamp": 5},
        {"content": "x", "tags": [1]},
        {"content": "x", "entities": [{"type": "PERSON"}]},
        {"content": "x", "observation_scopes": "some"},
        {"content": "x", "update_mode": "merge"},
        {"content": "x", "document_id": "d" * 5000},
    ],
    ids=lambda item: json.dumps(item)[:60],
)
async def test_a_bad_item_is_422_and_nothing_is_stored(edge: Edge, item: dict[str, Any]) -> None:
    answer = await edge.retain("Ana likes tea", item)
    assert answer.status == 422
    assert answer.detail[0]["loc"][:3] == ["body", "items", 1]
    assert edge.service.banks == {}
    await _usable(edge)


async def test_append_without_a_document_is_400(edge: Edge) -> None:
    answer = await edge.retain({"content": "x", "update_mode": "append"})
    assert answer.status == 400 and "document_id" in answer.detail and "items[0]" in answer.detail


async def test_one_operation_id_for_several_strategies_is_400(edge: Edge) -> None:
    items = [{"content": "x", "strategy": "a"}, {"content": "y", "strategy": "b"}]
    answer = await edge.retain(*items, operation_id="0b9ab6d4-7b2f-4a34-8d3c-111111111111", **{"async": True})
    assert answer.status == 400 and "strategies" in answer.detail


async def test_attachments_are_422_with_a_sentence(edge: Edge) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    answer = await edge.retain({"content": [{"type": "text", "text": "see"}, image]})
    assert answer.status == 422 and "images" in answer.detail


async def test_text_blocks_equal_their_text(edge: Edge) -> None:
    answer = await edge.retain({"content": [{"type": "text", "text": "Ana likes"}, {"type": "text", "text": "tea"}]})
    assert answer.status == 200
    assert (await edge.recall()).body["results"][0]["text"] == "Ana likes\ntea"


async def test_nul_and_lone_surrogates_are_cleaned_everywhere(edge: Edge) -> None:
    raw = (
        b'{"items": [{"content": "Ana\\u0000 likes tea \\ud83d end", "context": "c\\u0000", "document_id": "d\\u0000",'
        b' "tags": ["t\\u0000", "\\udc00"], "metadata": {"k\\u0000": "v\\ud800"}}]}'
    )
    assert (await edge.send("POST", BANK + "/memories", data=raw, headers=JSON)).status == 200
    result = (await edge.recall()).body["results"][0]
    assert result["text"] == "Ana likes tea \ufffd end"
    assert (result["context"], result["document_id"], result["tags"]) == ("c", "d", ["t", "\ufffd"])
    assert result["metadata"] == {"k": "v\ufffd"}
    assert (await edge.send("GET", BANK + "/documents/d%00")).body["id"] == "d"
    whole = await edge.send("POST", BANK + "/memories", data=b'{"items":[{"content":"\\ud83d\\ude00"}]}', headers=JSON)
    assert whole.status == 200  # a pair is one character
    assert (await edge.send("GET", BANK + "/memories/list?q=%F0%9F%98%80")).body["total"] == 1


@pytest.mark.parametrize(
    "content",
    ["a" * 100_000, "🙂🙂", "Cafe\u0301 Zoe\u0308", "ＡＢＣ１２３", "مدير المشروع هو سامي \u202e x", "tea " * 500_000],
    ids=["word", "emoji", "nfd", "full-width", "bidi", "2 MB"],
)
async def test_odd_content_is_kept_verbatim(edge: Edge, content: str) -> None:
    assert (await edge.retain({"content": content, "document_id": "odd"})).status == 200
    assert (await edge.send("GET", BANK + "/documents/odd")).body["original_text"] == content


@pytest.mark.parametrize("query", ["", "   ", "?!", "🙂", '"', "\x00"])
async def test_a_query_without_a_word_is_422(edge: Edge, query: str) -> None:
    await edge.retain("Ana likes tea")
    answer = await edge.recall(query=query)
    assert answer.status == 422 and answer.detail[0]["loc"] == ["body", "query"]


@pytest.mark.parametrize(
    "query", ["C:\\repo\\src\\main.py", "`foo`", "a/b|c (d)", "the of and", "spam " * 60_000, "日本"]
)
async def test_odd_queries_are_answered(edge: Edge, query: str) -> None:
    await edge.retain("Ana likes tea")
    assert (await edge.recall(query=query)).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": "huge"},
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"max_tokens": 2**40},
        {"max_tokens": 2**70},
        {"tags_match": "some"},
        {"tags": ["a"], "tag_groups": [{"tags": ["b"]}]},
        {"tag_groups": [{"xor": []}]},
        {"tag_groups": [{"and": [{"tags": "a"}]}]},
        {"include": {"chunks": {"max_tokens": -5}}},
        {"include": {"source_facts": {"max_tokens": -2}}},
        {"temporal_window": {"start": "2026-06-10", "end": "2026-06-09"}},
        {"temporal_window": {"start": "soon", "end": "later"}},
        {"min_scores": {"final": "high"}},
        {"max_ms": 0},
        {"arms": []},
        {"arms": ["magic"]},
        {"why_not": ["abc"]},
        {"types": [1]},
    ],
    ids=lambda fields: json.dumps(fields)[:60],
)
async def test_bad_recall_fields_are_422(edge: Edge, fields: dict[str, Any]) -> None:
    await edge.retain("Ana likes tea")
    answer = await edge.recall(**fields)
    assert answer.status == 422 and isinstance(answer.detail, list)
    await _usable(edge)


async def test_a_window_end_that_names_a_day_means_the_whole_day(edge: Edge) -> None:
    await edge.retain("Ana likes tea")
    await edge.recall(temporal_window={"start": "2026-06-10", "end": "2026-06-10"})
    assert edge.service.recalls[-1].window == (1_781_049_600_000_000, 1_781_135_999_999_999)


async def test_an_unknown_type_is_422_with_a_sentence_and_opinion_is_known(edge: Edge) -> None:
    await edge.retain("Ana likes tea")
    answer = await edge.recall(types=["world", "gossip"])
    assert answer.status == 422 and "gossip" in answer.detail
    assert (await edge.recall(types=["opinion"])).status == 200
    listed = await edge.send("GET", BANK + "/memories/list?type=gossip")
    assert listed.status == 400 and "world" in listed.detail


@pytest.mark.parametrize("field", ["query_timestamp", "as_of", "valid_at"])
async def test_a_bad_instant_of_a_recall_is_400_naming_it(edge: Edge, field: str) -> None:
    await edge.retain("Ana likes tea")
    answer = await edge.recall(**{field: "31 June"})
    assert answer.status == 400 and answer.detail.startswith(field)
    assert (await edge.recall(**{field: "2026-06-12T19:17:00+08:00"})).status == 200
    assert getattr(edge.service.recalls[-1], field) == 1_781_263_020_000_000


async def test_tag_groups_nested_without_end_are_refused(edge: Edge) -> None:
    await edge.retain("Ana likes tea")
    deep: Any = {"tags": ["a"]}
    for _ in range(300):
        deep = {"not": deep}
    assert (await edge.recall(tag_groups=[deep])).status == 422
    listed = await edge.send("GET", BANK + "/entities", params={"tag_groups": json.dumps([deep])})
    assert listed.status == 400


@pytest.mark.parametrize("groups", ["{", "{}", "[1]", '[{"tags": 1}]', '[{"and": 1}]'])
async def test_bad_tag_groups_in_a_query_are_400(edge: Edge, groups: str) -> None:
    await edge.retain("Ana likes tea")
    answer = await edge.session.get(edge.url + BANK + "/entities", params={"tag_groups": groups})
    assert answer.status == 400
    both = await edge.session.get(edge.url + BANK + "/entities", params={"tag_groups": '[{"tags":[]}]', "tags": "a"})
    assert both.status == 400


@pytest.mark.parametrize(
    "query",
    [
        "banks?limit=-1",
        "banks?limit=abc",
        "banks?offset=-1",
        "banks?limit=99999999999999999999",
        "banks/b/operations?limit=0",
        "banks/b/operations?limit=101",
        "banks/b/operations?exclude_parents=maybe",
        "banks/b/documents/d/chunks?limit=0",
        "banks/b/memories/list?tags_match=some",
        "banks/b/memories/list?time_field=x",
    ],
)
async def test_bad_query_values_are_422(edge: Edge, query: str) -> None:
    await edge.retain({"content": "tea", "document_id": "d"})
    answer = await edge.send("GET", "/v1/default/" + query)
    assert answer.status == 422 and answer.detail[0]["loc"][0] == "query"


async def test_limit_zero_is_an_empty_page_with_the_total(edge: Edge) -> None:
    await edge.retain("tea")
    answer = await edge.send("GET", BANK + "/memories/list?limit=0")
    assert (answer.body["items"], answer.body["total"]) == ([], 1)


@pytest.mark.parametrize(
    "query", ["start_date=soon", "start_date=2026-02-30", "start_date=2026-02-02&end_date=2026-02-01", "state=x",
              "consolidation_state=x"],
)  # fmt: skip
async def test_bad_listing_windows_and_states_are_400(edge: Edge, query: str) -> None:
    await edge.retain("tea")
    assert (await edge.send("GET", BANK + "/memories/list?" + query)).status == 400


async def test_tags_come_as_list_json_text_or_bare_text(edge: Edge) -> None:
    for tags in (["a"], '["a"]', "a"):
        assert (await edge.retain({"content": "tea", "tags": tags})).status == 200
    assert (await edge.send("GET", BANK + "/tags")).body["items"] == [{"tag": "a", "count": 3}]
    assert (await edge.send("GET", BANK + "/memories/list?tags=a&tags=z")).body["total"] == 3
    assert (await edge.send("GET", BANK + "/memories/list?tags=%5B%22z%22%5D")).body["total"] == 0


async def test_an_operation_id_must_be_a_uuid_and_is_replayed(edge: Edge) -> None:
    bad = await edge.retain("tea", operation_id="mine", **{"async": True})
    assert bad.status == 422 and bad.detail[0]["loc"] == ["body", "operation_id"]
    one = "0b9ab6d4-7b2f-4a34-8d3c-111111111111"
    for _ in range(2):
        answer = await edge.retain("tea", operation_id=one, **{"async": True})
        assert (answer.status, answer.body["operation_id"]) == (200, one)
    assert (await edge.send("GET", BANK + "/memories/list")).body["total"] == 1


async def test_twenty_parallel_first_writes_make_one_bank(edge: Edge) -> None:
    answers = await asyncio.gather(*(edge.retain(f"tea {n}", bank="new") for n in range(20)))
    assert [one.status for one in answers] == [200] * 20
    assert (await edge.send("GET", "/v1/default/banks/new/memories/list")).body["total"] == 20


async def test_bad_bank_fields_are_refused_and_nothing_changes(edge: Edge) -> None:
    for body in ({"disposition_skepticism": 0.5}, {"disposition": {"skepticism": 9, "literalism": 1, "empathy": 1}}):
        assert (await edge.send("PUT", BANK, json=body)).status == 422
    for body in ({"retain_extraction_mode": "poetry"}, {"retain_chunk_size": -4}):
        assert (await edge.send("PUT", BANK, json=body)).status == 400
    assert edge.service.banks == {}
    one = {"mission": "m", "background": "b", "disposition": {"skepticism": 1, "literalism": 2, "empathy": 3}}
    profile = await edge.send("PUT", BANK, json=one | {"disposition_empathy": 5})
    assert profile.body["mission"] == "m" == profile.body["background"]
    assert profile.body["disposition"] == {"skepticism": 1, "literalism": 2, "empathy": 5}


@pytest.mark.parametrize(
    "updates",
    [{"retain_chunk_size": "big"}, {"unknown": 1}, {"llm_api_key": "x"}, {"HINDSIGHT_API_LLM_API_KEY": "x"},
     {"port": 1}, {"enable_reranking": 1}, {"recall_budget_fixed_low": 9999}, {"retain_default_strategy": "none such"},
     {"retain_chunk_size": True}, {"recall_budget_adaptive_low": None, "x": None}],
)  # fmt: skip
async def test_a_refused_configuration_stores_nothing_and_makes_no_bank(edge: Edge, updates: dict[str, Any]) -> None:
    answer = await edge.send("PATCH", BANK + "/config", json={"updates": {"retain_mission": "m"} | updates})
    assert answer.status == 400 and answer.detail.startswith("Nothing was stored.")
    assert edge.service.banks == {}


async def test_configuration_takes_either_spelling_and_null_removes(edge: Edge) -> None:
    updates: dict[str, Any] = {"HINDSIGHT_API_RETAIN_CHUNK_SIZE": 500, "retain_mission": "m"}
    first = await edge.send("PATCH", BANK + "/config", json={"updates": updates})
    assert first.body["overrides"] == {"retain_chunk_size": 500, "retain_mission": "m"}
    second = await edge.send("PATCH", BANK + "/config", json={"updates": {"RETAIN_CHUNK_SIZE": None}})
    assert second.body["overrides"] == {"retain_mission": "m"}
    assert second.body["config"]["retain_chunk_size"] == 3000


async def test_a_document_patch_must_name_a_field(edge: Edge) -> None:
    await edge.retain({"content": "tea", "document_id": "d"})
    assert (await edge.send("PATCH", BANK + "/documents/d", json={})).status == 422
    assert (await edge.send("PATCH", BANK + "/documents/d", json={"observation_scopes": "x"})).status == 422

"""Ids of any form survive the URL byte for byte."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from http_edge import Edge

BANKS = [
    "мой проект",
    "a/b",
    "agent-1::chan-2::user-3",
    "50% off",
    "日本",
    "100%25",
    "a+b",
    "a?b#c",
    "x y",
    "main",
    "AND",
]
MORE = ["__proto__"[2:], "..a", "e\u0301", "🙂", "a\\b", "a%2Fb", "memories", "a&b=c", "é" * 96]


@pytest.mark.parametrize("bank", BANKS + MORE)
async def test_bank_ids_round_trip_byte_for_byte(edge: Edge, bank: str) -> None:
    path = "/v1/default/banks/" + quote(bank, safe="")
    kept = await edge.send("POST", path + "/memories", json={"items": [{"content": "Ana likes tea"}]})
    assert kept.status == 200 and kept.body["bank_id"] == bank
    assert (await edge.send("GET", "/v1/default/banks")).body["banks"][0]["bank_id"] == bank
    found = await edge.send("POST", path + "/memories/recall", json={"query": "tea"})
    assert found.body["results"][0]["text"] == "Ana likes tea"
    assert (await edge.send("GET", path + "/memories/list")).body["total"] == 1
    assert (await edge.send("DELETE", path)).body["deleted_count"] == 1


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        ("", "empty"),
        ("_x", "underscore"),
        ("a%00b", "control"),
        ("a%0Ab", "control"),
        ("a%7Fb", "control"),
        ("a%C2%85b", "control"),
        ("%ff", "UTF-8"),
        ("%ED%A0%BD", "UTF-8"),
        ("x" * 193, "192"),
        ("%C3%A9" * 97, "192"),
        ("x" * 600, "192"),
        ("x" * 9000, "192"),
    ],
)
async def test_bad_bank_ids_are_400_with_the_rule(edge: Edge, raw: str, rule: str) -> None:
    for method, tail in (("PUT", ""), ("GET", "/stats"), ("POST", "/memories")):
        body = {"json": {"items": []} if tail else {}} if method != "GET" else {}
        answer = await edge.send(method, f"/v1/default/banks/{raw}{tail}", **body)
        assert answer.status == 400 and rule in answer.detail
    assert edge.service.banks == {}


@pytest.mark.parametrize(
    "document", ["a/b/c", "chunks", "a/chunks", "x" * 600, "пример 1", "50%", "a?b", "..", "/", "a//b"]
)
async def test_document_ids_may_hold_slashes_and_suffixes(edge: Edge, document: str) -> None:
    await edge.retain({"content": "Ana likes tea", "document_id": document})
    path = "/v1/default/banks/b/documents/" + quote(document, safe="").replace("..", "%2E%2E")
    assert (await edge.send("GET", path)).body["id"] == document
    chunks = await edge.send("GET", path + "/chunks")
    assert chunks.body["items"][0]["document_id"] == document
    assert (await edge.send("PATCH", path, json={"tags": []})).body == {"success": True}
    chunk = await edge.send("GET", "/v1/default/chunks/" + quote(chunks.body["items"][0]["chunk_id"], safe=""))
    assert chunk.body["chunk_text"] == "Ana likes tea"
    assert (await edge.send("DELETE", path)).body["document_id"] == document


async def test_unescaped_slashes_of_a_document_id_work_too(edge: Edge) -> None:
    await edge.retain({"content": "Ana likes tea", "document_id": "notes/2026/may"})
    path = "/v1/default/banks/b/documents/notes/2026/may"
    assert (await edge.send("GET", path)).body["id"] == "notes/2026/may"
    assert (await edge.send("GET", path + "/chunks")).body["total"] == 1
    assert (await edge.send("DELETE", path)).status == 200


async def test_long_urls_are_answered_in_shape(edge: Edge) -> None:
    answer = await edge.send("GET", "/v1/default/banks?q=" + "a" * 9000)
    assert (answer.status, answer.body["total"]) == (200, 0)
    longer = await edge.send("GET", "/v1/default/banks?q=" + "a" * 100_000)
    assert longer.status == 414 and "65536" in longer.detail
    await edge.retain("tea", bank="b")
    nowhere = await edge.send("GET", "/v1/default/banks/b/documents/" + "d" * 9000)
    assert nowhere.status == 404


@pytest.mark.parametrize("path", ["memories/abc", "entities/abc", "operations/abc", "operations/abc/receipt"])
async def test_ids_that_are_no_uuid_are_400(edge: Edge, path: str) -> None:
    await edge.retain("tea")
    answer = await edge.send("GET", f"/v1/default/banks/b/{path}")
    assert answer.status == 400 and "UUID" in answer.detail


async def test_an_unknown_operation_answers_200_not_found(edge: Edge) -> None:
    answer = await edge.send("GET", "/v1/default/banks/b/operations/00000000-0000-0000-0000-000000000000")
    assert (answer.status, answer.body["status"]) == (200, "not_found")

"""Answers and errors have the contract's shape."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
from http_edge import Edge, Start
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from recalld.daemon.routes import ROUTES
from recalld.daemon.wire.encoding import EncodedList, encode
from recalld.storage.errors import DeadlineExceeded, DiskFull, OperationIdTaken

BANK = "/v1/default/banks/b"
NO_FIELD = FieldInfo(default=None)


async def test_every_get_route_answers_every_declared_field(edge: Edge) -> None:
    operation = str(uuid.uuid4())
    await edge.retain({"content": "Ana likes tea", "document_id": "d"}, **{"async": True}, operation_id=operation)
    memory = (await edge.send("GET", BANK + "/memories/list")).body["items"][0]["id"]
    values = {"bank_id": "b", "document_id": "d", "memory_id": memory, "chunk_id": "b_d_0", "operation_id": operation}
    checked = 0
    for route in ROUTES:
        if route.method != "GET" or route.response is None or not set(route.parameters) <= set(values):
            continue
        if route.query.model_fields.get("q", NO_FIELD).is_required():
            continue
        path = re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], route.template)
        answer = await edge.send("GET", path)
        assert answer.status == 200, path
        TypeAdapter(route.response).validate_python(answer.body)
        declared = {one.alias or name for name, one in route.response.model_fields.items()}
        assert declared <= set(answer.body), path
        checked += 1
    assert checked >= 18


async def test_unknown_path_is_404_and_wrong_method_405_in_shape(edge: Edge) -> None:
    missing = await edge.send("GET", "/v1/default/nothing")
    assert (missing.status, missing.body) == (404, {"detail": "Not Found"})
    wrong = await edge.send("POST", "/v1/default/banks")
    assert (wrong.status, wrong.body, wrong.headers["Allow"]) == (405, {"detail": "Method Not Allowed"}, "GET")
    assert (await edge.send("GET", "/v1/other/banks")).status == 404


async def test_reads_of_an_unknown_bank_are_404_and_deletes_200(edge: Edge) -> None:
    answer = await edge.send("GET", "/v1/default/banks/none/stats")
    assert (answer.status, answer.body) == (404, {"detail": "Bank 'none' not found"})
    assert (await edge.recall("none")).status == 404
    gone = await edge.send("DELETE", "/v1/default/banks/none")
    assert (gone.status, gone.body["deleted_count"]) == (200, 0)


async def test_validation_errors_name_place_and_input(edge: Edge) -> None:
    answer = await edge.retain({"content": 5, "tags": ["x"]})
    assert answer.status == 422
    first = answer.detail[0]
    assert set(first) == {"type", "loc", "msg", "input", "ctx"}
    assert first["loc"][:4] == ["body", "items", 0, "content"] and first["input"] == 5
    query = await edge.send("GET", "/v1/default/banks?limit=-1")
    assert query.status == 422
    assert query.detail[0]["loc"] == ["query", "limit"] and query.detail[0]["ctx"] == {"ge": 0}


async def test_huge_input_is_cut_in_the_error(edge: Edge) -> None:
    answer = await edge.recall(budget="x" * 1_000_000)
    assert answer.status == 422 and len(answer.detail[0]["input"]) < 250
    many = await edge.send("POST", BANK + "/memories", json={"items": [{"content": 1}] * 5000})
    assert many.status == 422 and len(json.dumps(many.body)) < 50_000


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"",
        b"nope",
        b'{"query": "a\xff"}',
        b'{"query": NaN}',
        b'{"query": "a", "max_tokens": Infinity}',
        b'{"query": "a\x00"}',
        b'{"a":' * 100_000,
        b'{"max_tokens": ' + b"9" * 5000 + b"}",
    ],
    ids=["cut", "empty", "words", "utf8", "nan", "infinity", "raw nul", "deep", "digits"],
)
async def test_what_is_no_json_is_422(edge: Edge, raw: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await edge.send("POST", BANK + "/memories/recall", data=raw, headers=headers)
    assert answer.status == 422
    problem = answer.detail[0]
    assert problem["type"] == ("json_invalid" if raw else "missing") and problem["loc"][0] == "body"


async def test_a_body_that_is_no_object_is_422(edge: Edge) -> None:
    for value in ([], "x", 1, None):
        assert (await edge.send("POST", BANK + "/memories/recall", json=value)).status == 422


async def test_bodies_need_a_json_content_type(edge: Edge) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = await edge.send("POST", BANK + "/memories", data=b'{"items": []}', headers={"Content-Type": kind})
        assert answer.status == 415 and "application/json" in answer.detail
    ok = await edge.send(
        "POST", BANK + "/memories", data=b'{"items": []}', headers={"Content-Type": "application/json; charset=utf-8"}
    )
    assert ok.status == 200


async def test_unknown_names_are_listed_not_refused(edge: Edge) -> None:
    answer = await edge.send(
        "POST", BANK + "/memories?later=1&pretty=2", json={"items": [], "colour": 1, "sh,ape\n": 2, "async": False}
    )
    assert answer.status == 200
    assert answer.headers["X-Ignored-Params"] == "later, pretty, colour, sh?ape?"
    assert "X-Ignored-Params" not in (await edge.retain("Ana likes tea")).headers


async def test_answers_over_the_limit_are_compressed_when_accepted(edge: Edge) -> None:
    await edge.retain("tea " * 2000)
    big = await edge.recall()
    assert big.headers["Content-Encoding"] == "gzip"  # the client asks for it by itself
    plain = await edge.session.post(
        edge.url + BANK + "/memories/recall", json={"query": "tea"}, headers={"Accept-Encoding": "identity"}
    )
    assert "Content-Encoding" not in plain.headers
    assert "Content-Encoding" not in (await edge.send("GET", "/version")).headers


async def test_a_body_above_the_limit_is_413(start: Start) -> None:
    edge = await start(max_body_mb=1)
    answer = await edge.send("POST", BANK + "/memories", json={"items": [{"content": "a" * 1_200_000}]})
    assert answer.status == 413 and "1 MB" in answer.detail

    async def stream() -> Any:
        for _ in range(20):
            yield b" " * 65536

    chunked = await edge.send("POST", BANK + "/memories", data=stream(), headers={"Content-Type": "application/json"})
    assert chunked.status == 413


@pytest.mark.parametrize(
    ("error", "status"),
    [(DiskFull("The disk is full."), 507), (DeadlineExceeded("Too late."), 504), (OperationIdTaken("Taken."), 409)],
)
async def test_errors_of_the_service_keep_status_and_sentence(edge: Edge, error: Exception, status: int) -> None:
    edge.service.failure = error
    answer = await edge.retain("tea")
    assert (answer.status, answer.body) == (status, {"detail": str(error)})


async def test_an_unexpected_error_shows_a_request_id_and_nothing_else(edge: Edge) -> None:
    edge.service.failure = RuntimeError("secret text from the store")
    answer = await edge.retain("tea")
    assert answer.status == 500
    assert "secret" not in json.dumps(answer.body) and answer.headers["X-Request-Id"] in answer.detail


async def test_health_is_503_when_unhealthy_and_liveness_stays_200(edge: Edge) -> None:
    edge.service.healthy = False
    for path in ("/health", "/health/ready"):
        answer = await edge.send("GET", path)
        assert (answer.status, answer.body["status"], answer.body["database"]) == (503, "unhealthy", "connected")
    live = await edge.send("GET", "/health/live")
    assert live.status == 200 and live.body["status"] == "alive"


async def test_version_names_the_wire_and_honest_features(edge: Edge) -> None:
    for path in ("/version", "/v1/version"):
        answer = await edge.send("GET", path)
        assert answer.body["api_version"] == "1.1.0" and answer.body["features"]["mcp"] is True


async def test_base_path_stands_before_every_route(start: Start) -> None:
    edge = await start(base_path="/memory")
    assert (await edge.send("GET", "/memory/health")).status == 200
    assert (await edge.send("GET", "/health")).status == 404
    assert (await edge.send("GET", "/memory/v1/default/banks")).status == 200


async def test_list_that_came_encoded_goes_out_as_it_is_and_reads_like_a_list() -> None:
    encoded = EncodedList('[{"text":"né"},{"text":"b"}]'.encode())
    answer = {"results": encoded, "trace": None, "many": list(range(300)), "entities": {}}
    assert json.loads(await encode(answer)) == {**answer, "results": [{"text": "né"}, {"text": "b"}]}
    assert len(encoded) == 2 and encoded[0]["text"] == "né" and encoded == [{"text": "né"}, {"text": "b"}]

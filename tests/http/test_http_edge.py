"""Who may ask, who waits, what is counted, and that nothing holds the event loop."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from http_edge import Edge, Start

from recalld.daemon.admission import Lane
from recalld.daemon.app import build_app
from recalld.daemon.routes import ROUTES
from recalld.storage.errors import TooManyRequests

BANK = "/v1/default/banks/b"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8888", "127.0.0.1.evil.example", "10.0.0.5", "[::2]:80"]
)
async def test_a_foreign_host_is_refused_on_every_route(edge: Edge, host: str) -> None:
    for path in ("/v1/default/banks", "/health", "/docs"):
        answer = await edge.send("GET", path, headers={"Host": host})
        assert answer.status == 403 and "allowed_hosts" in answer.detail


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.3.2.1:9", "[::1]:8888", "x.localhost", "mem.lan"]
)
async def test_loopback_and_configured_hosts_are_served(start: Start, host: str) -> None:
    edge = await start(allowed_hosts=("mem.lan",))
    assert (await edge.send("GET", "/version", headers={"Host": host})).status == 200


async def test_a_wildcard_bind_answers_addresses_but_no_foreign_names(start: Start) -> None:
    edge = await start(host="0.0.0.0", allow_insecure_bind=True)
    assert (await edge.send("GET", "/version", headers={"Host": "192.168.1.7:8888"})).status == 200
    assert (await edge.send("GET", "/version", headers={"Host": "evil.example"})).status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost", "http://localhost:1"])
async def test_a_foreign_origin_is_refused(edge: Edge, origin: str) -> None:
    for method in ("GET", "OPTIONS"):
        answer = await edge.send(method, "/v1/default/banks", headers={"Origin": origin})
        assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers


async def test_own_and_configured_origins_are_served(start: Start) -> None:
    edge = await start(allowed_origins=("https://app.example",))
    assert (await edge.send("GET", "/v1/default/banks", headers={"Origin": edge.url})).status == 200
    other = {"Origin": "https://app.example"}
    answer = await edge.send("GET", "/v1/default/banks", headers=other)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "https://app.example")
    asked = await edge.send("OPTIONS", BANK + "/memories", headers=other)
    assert asked.status == 204 and "Content-Type" in asked.headers["Access-Control-Allow-Headers"]


async def test_with_a_key_every_route_but_the_public_ones_needs_it(start: Start) -> None:
    edge = await start(api_key="sesame")
    for route in ROUTES:
        path = route.template.replace("{bank_id}", "b").replace("{", "").replace("}", "")
        body = {"json": {}} if route.body else {}
        answer = await edge.send(route.method, path, **body)
        assert (answer.status == 401) != route.public, path
        if answer.status == 401:
            assert answer.detail == "Authentication failed: Invalid API key"
    for value in ("Bearer sesame", "bearer sesame", "sesame"):
        assert (await edge.send("GET", "/v1/default/banks", headers={"Authorization": value})).status == 200
    for value in ("Bearer sesam", "Bearer", "Basic sesame", "sésame"):
        assert (await edge.send("GET", "/v1/default/banks", headers={"Authorization": value})).status == 401


async def test_a_full_lane_answers_503_with_retry_after_and_others_go_on(start: Start) -> None:
    edge = await start(admission_retain_max_in_flight=2, admission_retain_max_wait_ms=50)
    edge.service.gate = asyncio.Event()
    held = [asyncio.create_task(edge.retain(f"tea {n}")) for n in range(2)]
    await asyncio.sleep(0.1)
    started = time.perf_counter()
    refused = await edge.retain("tea 3")
    assert refused.status == 503 and int(refused.headers["Retry-After"]) >= 1
    assert 0.04 < time.perf_counter() - started < 2
    assert (await edge.send("GET", "/v1/default/banks")).status == 200
    waiting = asyncio.create_task(edge.retain("tea 4"))
    await asyncio.sleep(0.01)
    edge.service.gate.set()
    assert [one.status for one in await asyncio.gather(*held, waiting)] == [200] * 3


async def test_a_client_that_hangs_up_cancels_its_work_and_frees_its_turn(start: Start) -> None:
    edge = await start(admission_retain_max_in_flight=1, admission_retain_max_wait_ms=2000)
    edge.service.gate = asyncio.Event()
    gone = asyncio.create_task(edge.retain("tea"))
    await asyncio.sleep(0.1)
    gone.cancel()
    for _ in range(100):
        if edge.service.cancelled:
            break
        await asyncio.sleep(0.02)
    assert edge.service.cancelled == 1
    edge.service.gate.set()
    assert (await edge.retain("tea")).status == 200
    page = (await edge.send("GET", "/metrics")).body
    assert 'status="499"' in page


async def test_a_lane_serves_in_order_and_survives_those_who_leave() -> None:
    lane = Lane("x", 1, 1.0, max_waiting=3)
    order: list[int] = []

    async def visit(number: int) -> None:
        async with lane.turn():
            order.append(number)
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(visit(n)) for n in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await visit(9)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 1, 3] and (lane.in_flight, lane.waiting, lane.refused) == (0, 0, 1)


async def test_metrics_have_bounded_labels(edge: Edge) -> None:
    for number in range(30):
        await edge.retain("tea", bank=f"bank{number}")
        await edge.send("GET", f"/nowhere/{number}")
        await edge.session.request(f"X{number}", edge.url + "/version")
    page = (await edge.send("GET", "/metrics")).body
    assert "bank7" not in page and "nowhere" not in page and "X7" not in page
    assert (
        'recalld_http_requests_total{method="POST",route="/v1/default/banks/{bank_id}/memories",status="200"} 30.0'
        in page
    )
    assert "recalld_flushes_total 7.0" in page and "recalld_open_banks 30.0" in page
    assert 'recalld_recall_phase_seconds_count{phase="fuse"} 2.0' in page
    assert 'recalld_lane_in_flight{lane="recall"} 0.0' in page
    assert "recalld_date_parser_failures_total 0.0" in page and "recalld_retained_items_total 0.0" in page


async def test_openapi_names_every_route_and_resolves_every_reference(edge: Edge) -> None:
    document = (await edge.send("GET", "/openapi.json")).body
    operations = {one["operationId"] for methods in document["paths"].values() for one in methods.values()}
    assert operations == {route.operation for route in ROUTES} and len(operations) == len(ROUTES)
    text = json.dumps(document)
    for part in text.split('"$ref": "')[1:]:
        assert part.split('"')[0].rpartition("/")[2] in document["components"]["schemas"]
    recall = document["components"]["schemas"]["RecallRequest"]["properties"]
    assert (
        recall["budget"]["default"] == "mid"
        and "async" in document["components"]["schemas"]["RetainRequest"]["properties"]
    )


async def test_docs_need_no_network(edge: Edge) -> None:
    answer = await edge.send("GET", "/docs")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
    assert "recall_memories" in answer.body or "/memories/recall" in answer.body
    assert "http://" not in answer.body and "https://" not in answer.body and "<script" not in answer.body


async def _longest_stall(work: asyncio.Task[Any]) -> float:
    longest, last = 0.0, time.perf_counter()
    while not work.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def test_an_app_can_be_built_without_metrics() -> None:
    from http_memory_service import MemoryService

    from recalld.daemon.settings import Settings

    assert build_app(MemoryService(), Settings()) is not None

"""Recall over HTTP beside the bare embedding of the same queries: idle, beside a retain at full speed, many clients."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from recalld.actors.embedding import Embedder
from recalld.actors.models import find_model
from recalld.client import AsyncClient
from recalld.daemon.bench import load, texts
from recalld.daemon.bench.report import TIMES, Report, times
from recalld.daemon.bench.score import percentiles
from recalld.daemon.commands.output import progress, size

BANK, OTHER = "bench-latency", "bench-latency-writes"
BATCH = 100
DATES = ("2026-01-12", "2026-02-20", "2026-03-05")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: a bank of `units`, `recalls` in each part, `clients` in the last. `url` None starts a daemon."""

    units: int
    recalls: int
    clients: int
    budget: str
    settings: dict[str, str]
    url: str | None


async def run(plan: Plan) -> Report:
    # One shard, unless asked otherwise, so that the writes of the middle part share it with the recalls.
    settings = {"shards": "1", **plan.settings}
    material = list(texts.turns(plan.units))
    queries = texts.queries(plan.recalls * 4 + 20)
    embedder = Embedder(find_model(settings.get("embedding.model", "default")), force_cpu=True)
    async with load.target(settings, plan.url) as target:
        client = target.client
        facts = await asyncio.to_thread(target.facts)
        built = await build(client, material)
        warm, rest = queries[:20], queries[20:]
        await load.one_by_one(client, [(BANK, query) for query in warm], budget=plan.budget)
        parts = [[(BANK, q) for q in rest[at * plan.recalls : (at + 1) * plan.recalls]] for at in range(4)]
        bare = await asyncio.to_thread(bare_queries, embedder, [query for _, query in parts[0]])
        idle = await load.one_by_one(client, parts[0], budget=plan.budget)
        beside, written = await while_writing(client, parts[1], plan.budget)
        together = await load.at_once(client, parts[2], plan.clients, budget=plan.budget)
        facts["memory_after_bytes"] = target.own.memory() if target.own else None
        if plan.url is not None:
            for bank in (BANK, OTHER):
                await client.delete_bank(bank)
    # Last, with the cores free: what the model alone can do with the same texts.
    embedding_rate = await asyncio.to_thread(bare_texts, embedder, material[:1000])
    data: dict[str, Any] = {
        "benchmark": "latency",
        "units": plan.units,
        "budget": plan.budget,
        "settings": settings,
        "bare_query_embedding": percentiles(bare),
        "recall_idle": idle.summary(),
        "recall_beside_retain": beside.summary(),
        f"recall_{plan.clients}_clients": together.summary(),
        "retain_items_per_second": built,
        "retain_items_per_second_beside_recall": written,
        "bare_texts_per_second": embedding_rate,
        **facts,
    }
    return report(plan, data)


async def build(client: AsyncClient, material: Sequence[str]) -> float:
    """Retain the material as documents of twenty turns; items per second."""
    begun = time.perf_counter()
    with progress("Retaining", len(material)) as advance:
        for at in range(0, len(material), BATCH):
            items = [
                {"content": text, "document_id": f"d{(at + n) // 20}", "timestamp": DATES[(at + n) // 20 % len(DATES)]}
                for n, text in enumerate(material[at : at + BATCH])
            ]
            await client.retain_batch(BANK, items)
            advance(len(items))
    return len(material) / (time.perf_counter() - begun)


async def while_writing(client: AsyncClient, work: list[tuple[str, str]], budget: str) -> tuple[load.Timed, float]:
    """Recalls one after another while another client retains into another bank as fast as it can; items/s beside."""
    written = 0

    async def write() -> None:
        nonlocal written
        material = texts.turns(1_000_000, seed=3)
        while True:
            items = [{"content": next(material), "document_id": f"w{written}"} for _ in range(32)]
            await client.retain_batch(OTHER, items)
            written += len(items)

    writer = asyncio.create_task(write())
    try:
        await asyncio.sleep(0.5)
        begun, before = time.perf_counter(), written
        timed = await load.one_by_one(client, work, budget=budget)
        rate = (written - before) / (time.perf_counter() - begun)
        if writer.done():
            writer.result()
        return timed, rate
    finally:
        writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writer


def bare_queries(embedder: Embedder, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query's embedding alone, in this process."""
    embedder.embed_query("warm up")
    spent = []
    for query in queries:
        begun = time.perf_counter()
        embedder.embed_query(query)
        spent.append((time.perf_counter() - begun) * 1000)
    return spent


def bare_texts(embedder: Embedder, material: Sequence[str]) -> float:
    """Texts per second, each behind the one before it, by as many threads as there are cores."""
    import os

    before = ["", *material[:-1]]
    begun = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(embedder.embed_text, material, before))
    return len(material) / (time.perf_counter() - begun)


def report(plan: Plan, data: dict[str, Any]) -> Report:
    made = Report(data)
    bare = data["bare_query_embedding"]
    many = data[f"recall_{plan.clients}_clients"]
    rows = [
        ["bare query embedding", bare["p50"], bare["p95"], bare["p99"], "", plan.recalls],
        times("recall, idle", data["recall_idle"]),
        times("recall beside a retain", data["recall_beside_retain"]),
        times(f"recall, {plan.clients} clients", many),
    ]
    made.table(f"Recall over HTTP, {plan.units:,} units, budget {plan.budget}", TIMES, rows)
    idle, beside = data["recall_idle"], data["recall_beside_retain"]
    rest: list[list[Any]] = [
        ["recall p50 above the bare embedding, ms", idle["p50"] - bare["p50"]],
        ["idle p95 / p50", idle["p95"] / idle["p50"]],
        ["p95 beside a retain / idle p95", beside["p95"] / idle["p95"]],
        ["retain items/s", data["retain_items_per_second"]],
        ["the model alone, texts/s", data["bare_texts_per_second"]],
        ["retain items/s beside recalls", data["retain_items_per_second_beside_recall"]],
    ]
    if data.get("cold_start_seconds"):
        rest.append(["cold start s", data["cold_start_seconds"]])
        rest.append(["memory idle", size(data["memory_bytes"])])
        rest.append(["memory after", size(data["memory_after_bytes"])])
    made.table("The rest", ["", ""], rest)
    return made

"""How a bank grows: engine and HTTP latency, time to build and to open, disk and memory, by number of units."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from recalld.actors.embedding import Embedder, pack_query
from recalld.actors.models import find_model
from recalld.actors.recall.engine import recall
from recalld.actors.recall.query import RecallQuery
from recalld.actors.recall.settings import RecallSettings
from recalld.client import AsyncClient
from recalld.daemon.bench import load, synthetic, texts
from recalld.daemon.bench.report import Report
from recalld.daemon.bench.score import percentiles
from recalld.daemon.commands.output import progress, size
from recalld.daemon.sandbox import sandbox
from recalld.storage.analysis import query_terms
from recalld.storage.changes import BankStored
from recalld.storage.home import Home
from recalld.storage.partition import Partition, StoreSettings
from recalld.storage.upkeep import settle

BANK, TENANT = "scale", "default"
WARM = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """Banks of these many units each; `recalls` in the engine and as many over HTTP."""

    sizes: Sequence[int]
    recalls: int
    settings: dict[str, str]


async def run(plan: Plan) -> Report:
    embedder = Embedder(find_model("default"), force_cpu=True)
    found = await asyncio.to_thread(synthetic.seeds, embedder)
    queries = texts.queries(plan.recalls + WARM)
    rows = []
    for units in plan.sizes:
        folder = Path(tempfile.mkdtemp(prefix="recalld-scale-"))
        try:
            home = folder / "home"
            row = await asyncio.to_thread(engine, home, units, embedder, found, queries)
            async with (
                sandbox(plan.settings, home=home) as daemon,
                AsyncClient(daemon.url, timeout=3600) as client,
            ):
                row["cold_start_seconds"] = daemon.cold_start
                begun = time.perf_counter()
                await client.recall(BANK, queries[0])
                row["first_recall_seconds"] = time.perf_counter() - begun
                await load.one_by_one(client, [(BANK, query) for query in queries[:WARM]])
                timed = await load.one_by_one(client, [(BANK, query) for query in queries[WARM:]])
                row["http"] = timed.summary()
                row["memory_bytes"] = await asyncio.to_thread(daemon.memory)
            rows.append(row)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)
    return report({"benchmark": "scale", "settings": plan.settings, "sizes": rows})


def engine(
    home: Path, units: int, embedder: Embedder, found: synthetic.Seeds, queries: Sequence[str]
) -> dict[str, Any]:
    """Build one bank in a new home and time recalls inside this process, without HTTP and without embedding."""
    row: dict[str, Any] = {"units": units}
    made = Home.create(home, _now(), partitions=1)
    made.bind_model(embedder.identity.to_plain())
    partition = made.open_partition(0, StoreSettings(), _now, lambda: str(uuid.uuid4()))
    try:
        row["build_seconds"] = _build(partition, units, found, embedder.identity.to_plain())
        begun = time.perf_counter()
        with partition.read(TENANT, BANK) as snap:
            assert snap.n == units
        row["open_seconds"] = time.perf_counter() - begun
        begun = time.perf_counter()
        with progress(f"Growing the index over {units:,} units", None):
            settle(partition)
        row["index_seconds"] = time.perf_counter() - begun
        asked = [_query(embedder, query) for query in queries]
        spent, parts = _ask(partition, asked)
        row["engine"] = percentiles(spent)
        row["engine_parts_p50"] = parts
        row["engine_high"] = percentiles(_ask(partition, [replace(q, budget="high") for q in asked])[0])
    finally:
        partition.close()
    row["disk_bytes"] = sum(path.stat().st_blocks * 512 for path in home.rglob("*") if path.is_file())
    return row


def _build(partition: Partition, units: int, found: synthetic.Seeds, model: dict[str, Any]) -> float:
    """Seconds spent writing, the making of the units apart."""
    partition.write(TENANT, BANK, lambda _: None, create=True)
    held = partition.bank(TENANT, BANK)
    assert held is not None
    partition.write(TENANT, BANK, lambda applier: applier.apply(BankStored(replace(held[0], model=model))))
    maker, spent = synthetic.Maker(found), 0.0
    with progress(f"Building {units:,} units", units) as advance:
        for number, at in enumerate(range(0, units, synthetic.BATCH)):
            batch = maker.batch(number, min(synthetic.BATCH, units - at))
            begun = time.perf_counter()
            partition.write(TENANT, BANK, synthetic.writer(batch, _now()), create=True)
            spent += time.perf_counter() - begun
            advance(len(batch))
    return spent


def _query(embedder: Embedder, text: str) -> RecallQuery:
    return RecallQuery(
        tenant=TENANT,
        bank_id=BANK,
        query=text,
        terms=query_terms(text),
        now=_now(),
        **pack_query(embedder.embed_query(text)),
    )


def _ask(partition: Partition, queries: Sequence[RecallQuery]) -> tuple[list[float], dict[str, float]]:
    """Milliseconds of each recall but the first few, and the median of each part."""
    settings = RecallSettings()
    spent: list[float] = []
    parts: dict[str, list[float]] = {}
    for number, query in enumerate(queries):
        begun = time.perf_counter()
        with partition.read(TENANT, BANK) as snap:
            answer = recall(snap, query, settings)
        if number < WARM:
            continue
        spent.append((time.perf_counter() - begun) * 1000)
        for part, milliseconds in answer.timings.items():
            parts.setdefault(part, []).append(milliseconds)
    return spent, {part: median(values) for part, values in parts.items()}


def _now() -> int:
    return time.time_ns() // 1000


def report(data: dict[str, Any]) -> Report:
    made = Report(data)
    rows = data["sizes"]
    made.table(
        "Recall by size of the bank, ms",
        ["units", "engine p50", "engine p95", "budget high p50", "HTTP p50", "HTTP p95", "first recall s"],
        [
            [
                row["units"],
                row["engine"]["p50"],
                row["engine"]["p95"],
                row["engine_high"]["p50"],
                row["http"]["p50"],
                row["http"]["p95"],
                row["first_recall_seconds"],
            ]
            for row in rows
        ],
    )
    names = list(dict.fromkeys(part for row in rows for part in row["engine_parts_p50"]))
    made.table(
        "Parts of the engine, p50 ms, by units",
        ["", *(f"{row['units']:,}" for row in rows)],
        [[name, *(row["engine_parts_p50"].get(name, "") for row in rows)] for name in names],
    )
    made.table(
        "Building and keeping",
        ["units", "write s", "units/s", "open s", "index s", "daemon ready s", "disk", "memory"],
        [
            [
                row["units"],
                row["build_seconds"],
                row["units"] / max(row["build_seconds"], 1e-9),
                row["open_seconds"],
                row["index_seconds"],
                row["cold_start_seconds"],
                size(row["disk_bytes"]),
                size(row["memory_bytes"]),
            ]
            for row in rows
        ],
    )
    return made

"""Where actors are put together: factories that a runtime calls in whatever process hosts the actor.

The wall clock and the maker of ids enter here and are handed down. Every argument is plain data, so that a factory can
be called across processes.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recalld.actors.directory import Assignment, Directory, Shards
from recalld.actors.embedding import Embedder
from recalld.actors.encoder import Encoder
from recalld.actors.ledger import Ledger, observe
from recalld.actors.llm.base import OPERATIONS, Limits
from recalld.actors.llm.models import SILENT, LlmConfig, Models
from recalld.actors.llm.provider import ModelChoice
from recalld.actors.model_stage import ModelStage
from recalld.actors.models import find_model
from recalld.actors.recall.bank import settings_from_plain
from recalld.actors.runtime import ActorSpec, Resolver
from recalld.actors.shard import Shard
from recalld.actors.spending import Caps, PriceTable
from recalld.actors.worker import Worker
from recalld.daemon import bank_settings
from recalld.daemon.settings_llm import llm_config
from recalld.daemon.settings_recall import recall_settings
from recalld.daemon.settings_table import Settings
from recalld.storage.home import Home
from recalld.storage.ledger import DAY_US
from recalld.storage.partition import StoreSettings

ENCODER, WORKER, DIRECTORY = "encoder", "worker-0", "directory"
HERE = "recalld.daemon.composition"

_shared_embedder: dict[str, Embedder] = {}


def clock() -> int:
    """µs since the epoch."""
    return time.time_ns() // 1000


def new_id() -> str:
    return str(uuid.uuid4())


def make_embedder(embedding: dict[str, Any]) -> Embedder:
    """The embedder these settings describe, once a process: the gateway and an inline Encoder share it."""
    key = repr(sorted(embedding.items()))
    if key not in _shared_embedder:
        name = embedding["model"]
        files = find_model("" if name == "default" else name, trust_remote_code=embedding["trust_remote_code"])
        _shared_embedder[key] = Embedder(
            files,
            device=embedding["device"],
            force_cpu=embedding["force_cpu"],
            date_suffix=embedding["date_suffix"],
        )
    return _shared_embedder[key]


def embedding_values(settings: Settings) -> dict[str, Any]:
    """What `make_embedder` needs."""
    return {
        "model": settings.embedding_model,
        "device": settings.embedding_device,
        "force_cpu": settings.embedding_force_cpu,
        "trust_remote_code": settings.embedding_trust_remote_code,
        "date_suffix": settings.embedding_date_suffix,
    }


def store_values(settings: Settings) -> dict[str, Any]:
    """What `StoreSettings` needs; each shard gets its share of the memory, which its partitions have in common."""
    return {
        "map_size": settings.store_map_size_gb << 30,
        "reserve": settings.store_disk_reserve_mb << 20,
        "max_readers": settings.store_max_readers,
        "durable": settings.durability != "none",
        "memory_budget": (settings.bank_memory_mb << 20) // settings.shard_count,
        "vector_threshold": settings.store_vector_threshold,
    }


# -- factories -------------------------------------------------------------------------------------------------------


def shard(
    resolver: Resolver,
    home: str,
    numbers: list[int],
    store: dict[str, Any],
    recall: dict[str, Any],
    bank: dict[str, Any],
    wall_limit_us: int,
) -> Shard:
    return Shard(
        Home(Path(home)),
        list(numbers),
        StoreSettings(**store),
        settings_from_plain(recall),
        clock,
        new_id,
        bank_defaults=bank,
        wall_limit_us=wall_limit_us,
    )


def encoder(resolver: Resolver, embedding: dict[str, Any], threads: int, nice: int) -> Encoder:
    return Encoder(lambda: make_embedder(embedding), threads=threads, nice=nice)


def worker(
    resolver: Resolver, home: str, shards: int, models: dict[str, Any] | None = None, nli_folder: str = ""
) -> Worker:
    place = Home(Path(home))
    routes = Shards(Assignment(place.info.partitions, shards), place.partition_of, resolver)
    stage = None if models is None else _model_stage(routes, models)
    return Worker(routes, lambda: resolver.lookup(ENCODER), new_id, stage, nli_folder)


def _model_stage(routes: Shards, values: dict[str, Any]) -> ModelStage:
    ledger = Ledger(routes, PriceTable(values["prices"]), Caps(*values["caps"]), clock, new_id, values["keep_us"])
    return ModelStage(routes, ledger, Models(_llm_from_plain(values["llm"]), chance=random.random, observe=observe))


def model_values(settings: Settings) -> dict[str, Any] | None:
    """What the worker needs for language models; None where nothing calls one."""
    config = llm_config(settings)
    if all(config.of(operation).provider in SILENT for operation in OPERATIONS):
        return None
    return {
        "llm": asdict(config),
        "prices": list(settings.budget_prices),
        "caps": [settings.budget_calls_per_day, settings.budget_tokens_per_day, settings.budget_cost_per_day],
        "keep_us": int(settings.ledger_days * DAY_US),
    }


def _llm_from_plain(plain: dict[str, Any]) -> LlmConfig:
    return LlmConfig(
        ModelChoice(**plain["general"]),
        {name: ModelChoice(**one) for name, one in plain["operations"].items()},
        Limits(**plain["limits"]),
    )


def directory(resolver: Resolver, partitions: int, shards: int) -> Directory:
    return Directory(Assignment(partitions, shards), resolver)


# -- specs -----------------------------------------------------------------------------------------------------------


def shard_specs(settings: Settings, home: Home, assignment: Assignment) -> list[ActorSpec]:
    return [
        ActorSpec(
            name,
            f"{HERE}:shard",
            {
                "home": str(home.path),
                "numbers": assignment.numbers(number),
                "store": store_values(settings),
                "recall": asdict(recall_settings(settings)),
                "bank": bank_settings.resolve(settings, {}),
                "wall_limit_us": int(settings.operations_wall_seconds * 1e6),
            },
            max_concurrency=256,
        )
        for number, name in enumerate(assignment.names())
    ]


def encoder_spec(settings: Settings) -> ActorSpec:
    own_process = settings.runtime == "ray"
    return ActorSpec(
        ENCODER,
        f"{HERE}:encoder",
        {
            "embedding": embedding_values(settings),
            "threads": settings.encoder_threads,
            # Embedding for a retain gives way to a recall's query, whichever process that runs in.
            "nice": 10 if own_process else 0,
        },
        max_concurrency=256,
    )


def worker_spec(settings: Settings, home: Home) -> ActorSpec:
    return ActorSpec(
        WORKER,
        f"{HERE}:worker",
        {
            "home": str(home.path),
            "shards": settings.shard_count,
            "models": model_values(settings),
            "nli_folder": settings.opinions_nli_model,
        },
        max_concurrency=1024,
    )


def directory_spec(settings: Settings, home: Home) -> ActorSpec:
    return ActorSpec(
        DIRECTORY, f"{HERE}:directory", {"partitions": home.info.partitions, "shards": settings.shard_count}
    )

"""Links between memories, and the graphs that show them: kinds, weights, directions, and twenty of a kind at most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.actors.retain.extraction import ExtractionInput, extractor_for
from recalld.actors.retain.similar import link_floor
from recalld.daemon.lifecycle import open_service
from recalld.daemon.service import MemoryService
from recalld.daemon.settings_table import Settings

from .conftest import snapshot
from .entity_bank import ANY, EntityBank, entity_bank

T = "default"


@pytest.fixture
def bank(service: MemoryService) -> EntityBank:
    return entity_bank(service)


@pytest.fixture
async def reading(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = await open_service(replace(Settings(), home=tmp_path / "reading", runtime="inline"))
    yield opened
    await opened.close()


async def graph(bank: EntityBank, chunk_id: str | None = None, **filters: Any) -> dict[str, Any]:
    options = {"limit": 1000, "tags_match": "all_strict", **filters}
    return await bank.service.graph(T, bank.id, MemoryFilters(**options), chunk_id)


def edges(found: dict[str, Any], kind: str) -> dict[tuple[str, str], float]:
    """{(source text, target text): weight}."""
    texts = {node["data"]["id"]: node["data"]["text"] for node in found["nodes"]}
    rows = [edge["data"] for edge in found["edges"] if edge["data"]["linkType"] == kind]
    return {(texts[row["source"]], texts[row["target"]]): row["weight"] for row in rows}


async def test_a_link_in_time_weighs_one_at_the_same_moment_and_a_third_at_the_border(bank: EntityBank) -> None:
    for text, at in (
        ("noon", "2026-03-02T12:00:00Z"),
        ("noon too", "2026-03-02T12:00:00Z"),
        ("six hours on", "2026-03-02T18:00:00Z"),
        ("a day on", "2026-03-03T12:00:00Z"),
        ("more than a day on", "2026-03-03T18:00:01Z"),
    ):
        await bank.say(text, at=at)
    found = edges(await graph(bank), "temporal")
    assert found["noon", "noon too"] == 1.0
    assert found["noon", "six hours on"] == pytest.approx(math.exp(-0.25), abs=1e-5)
    assert found["noon", "a day on"] == pytest.approx(0.367879, abs=1e-5)
    assert ("noon", "more than a day on") not in found and ("six hours on", "more than a day on") not in found


async def test_sigma_of_links_in_time_is_a_setting(tmp_path: Path) -> None:
    settings = replace(
        Settings(), home=tmp_path / "sigma", runtime="inline", extraction_provider="none", graph_sigma=6.0
    )
    service = await open_service(settings)
    try:
        bank = entity_bank(service)
        await bank.say("noon", at="2026-03-02T12:00:00Z")
        await bank.say("six", at="2026-03-02T18:00:00Z")
        assert edges(await graph(bank), "temporal") == {("noon", "six"): pytest.approx(math.exp(-1), abs=1e-5)}
    finally:
        await service.close()


async def test_a_memory_has_twenty_links_of_a_kind_at_most(bank: EntityBank) -> None:
    items = [
        {"content": f"Ana fed the greyhound {n} times.", "entities": [{"text": "Ana", "type": "PERSON"}],
         "timestamp": f"2026-03-02T{n // 60:02}:{n % 60:02}:00Z"}
        for n in range(40)
    ]  # fmt: skip
    await bank.retain(*items)
    found = await graph(bank)
    assert {edge["data"]["linkType"] for edge in found["edges"]} >= {"temporal", "entity", "semantic"}
    for kind in ("temporal", "entity"):
        ends = Counter(end for pair in edges(found, kind) for end in pair)
        assert max(ends.values()) <= 20
    with snapshot(bank.service, bank.id) as snap:
        for uid in range(snap.n):
            _, _, kinds, weights = snap.edges(uid)
            assert len(kinds) <= 20 and (weights >= 0.7).all()
    assert not await bank.verified()


async def test_a_causal_link_points_from_the_effect_to_its_cause_and_weighs_what_the_words_say(
    reading: MemoryService,
) -> None:
    bank = entity_bank(reading)
    text = "Ben: The valve froze in the old mill.\nAna: So the pump failed in the night."
    facts = extractor_for("local", "concise").read(ExtractionInput(text)).facts
    weights = [
        (fact.text, facts[cause].text, fact.cause_weights[i] if i < len(fact.cause_weights) else 1.0)
        for fact in facts
        for i, cause in enumerate(fact.causes)
    ]
    assert len(weights) == 1 and 0 < weights[0][2] < 1
    await bank.say(text)
    found = edges(await graph(bank), "caused_by")
    assert [(*pair, pytest.approx(weight, abs=1e-5)) for pair, weight in found.items()] == weights
    stats = await reading.bank_stats(T, bank.id)
    assert stats["links_by_link_type"]["caused_by"] == 1
    assert not await bank.verified()


async def test_links_of_like_meaning_weigh_their_cosine_above_the_floor_of_the_model(bank: EntityBank) -> None:
    await bank.say("The greyhound is afraid of the kettle.")
    await bank.say("The greyhound fears the kettle.")
    await bank.say("Taxes are due in April.")
    found = edges(await graph(bank), "semantic")
    assert list(found) == [("The greyhound is afraid of the kettle.", "The greyhound fears the kettle.")]
    assert 0.7 <= next(iter(found.values())) <= 1.0
    assert link_floor({"name": "shodh MiniLM"}, 0.0) == 0.7
    assert link_floor({"name": "multilingual-e5-small"}, 0.0) > 0.8
    assert link_floor({"name": "multilingual-e5-small"}, 0.5) == 0.5


async def test_a_link_by_entity_names_it_and_weighs_more_the_rarer_it_is(bank: EntityBank) -> None:
    for number in range(6):
        await bank.say(f"user wrote note {number}.", "user")
    await bank.say("user met Mia.", "user", "Mia")
    await bank.say("Mia sails with user.", "Mia", "user")
    found = await graph(bank)
    row = next(
        edge["data"]
        for edge in found["edges"]
        if edge["data"]["linkType"] == "entity" and edge["data"]["entityName"] == "Mia"
    )
    others = [w for pair, w in edges(found, "entity").items() if pair != ("user met Mia.", "Mia sails with user.")]
    assert others and row["weight"] > max(others)


async def test_the_graph_shows_what_passes_its_filters_and_says_how_much_there_is(bank: EntityBank) -> None:
    long = "Ana likes the taste of green tea in the morning."
    await bank.say(long, "Ana", tags=["a"], document_id="d1", context="breakfast")
    await bank.say("Ben sails.", "Ben", tags=["b"], document_id="d2")
    await bank.say("Cleo runs.", "Cleo", document_id="d3")
    whole = await graph(bank)
    assert (len(whole["nodes"]), whole["total_units"], whole["limit"]) == (3, 3, 1000)
    node = next(one["data"] for one in whole["nodes"] if one["data"]["text"] == long)
    assert node["label"] == long[:30] + "..." and node["context"] == "breakfast" and node["entities"] == "Ana"
    row = next(one for one in whole["table_rows"] if one["text"] == long)
    assert (row["document_id"], row["fact_type"], row["tags"], row["proof_count"]) == ("d1", "world", ["a"], 1)
    cut = await graph(bank, limit=2)
    assert (len(cut["nodes"]), cut["total_units"]) == (2, 3)
    for options, expected in (
        ({"tags": ("a",)}, [long]),
        ({"q": "SAILS"}, ["Ben sails."]),
        ({"document_id": "d3"}, ["Cleo runs."]),
        ({"type": "opinion"}, []),
        ({"chunk_id": f"{bank.id}_d2_0"}, ["Ben sails."]),
    ):
        shown = await graph(bank, **options)
        assert [one["data"]["text"] for one in shown["nodes"]] == expected, options


async def test_the_entity_graph_counts_how_often_entities_are_named_together(bank: EntityBank) -> None:
    await bank.say("Ana met Ben.", "Ana", "Ben", at="2026-03-02T12:00:00Z", tags=["x"])
    await bank.say("Ben met Ana and Cleo.", "Ben", "Ana", "Cleo", at="2026-03-04T12:00:00Z")
    await bank.say("Dora sails.", "Dora")
    found = await bank.service.entity_graph(T, bank.id, limit=1000, min_count=1, **ANY)
    names = {node["data"]["id"]: node["data"]["label"] for node in found["nodes"]}
    rows = {
        frozenset((names[edge["data"]["source"]], names[edge["data"]["target"]])): edge["data"]
        for edge in found["edges"]
    }
    assert {pair: row["weight"] for pair, row in rows.items()} == {
        frozenset(("Ana", "Ben")): 2, frozenset(("Ana", "Cleo")): 1, frozenset(("Ben", "Cleo")): 1
    }  # fmt: skip
    assert rows[frozenset(("Ana", "Ben"))]["lastCooccurred"] == "2026-03-04T12:00:00.000000+00:00"
    assert rows[frozenset(("Ana", "Ben"))]["linkType"] == "cooccurrence"
    assert (found["total_entities"], found["total_edges"], found["limit"]) == (3, 3, 1000)
    often = await bank.service.entity_graph(T, bank.id, limit=1000, min_count=2, **ANY)
    assert [edge["data"]["weight"] for edge in often["edges"]] == [2] and often["total_entities"] == 2
    scope: dict[str, Any] = {"tags": ("x",), "tags_match": "any_strict", "tag_groups": None}
    tagged = await bank.service.entity_graph(T, bank.id, limit=1000, min_count=1, **scope)
    assert [edge["data"]["weight"] for edge in tagged["edges"]] == [1]

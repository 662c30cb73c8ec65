"""A real model of 135 million parameters behind a real server: reflect ends in an answer bound to its schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientTimeout
from llm.small_model import SmallModel, WrongProcessor, missing, small_model

from .conftest import ANA, BANK, BEN, World

pytestmark = pytest.mark.slow
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 60}}, "required": ["city"]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallModel]:
    if why := missing():
        pytest.skip(why)
    try:
        with small_model(Path(tmp_path_factory.mktemp("small")) / "server.log") as running:
            yield running
    except WrongProcessor:
        pytest.skip("the server of the small model is made for another processor")


@pytest.mark.timeout(900)
async def test_a_small_model_gives_a_grounded_structured_answer(open_world, small: SmallModel) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(
        llm_reflect_model=small.name,
        llm_reflect_base_url=small.url,
        llm_reflect_timeout=300.0,
        llm_deadline=600.0,
        reflect_wall_timeout=800.0,
        reflect_max_context_tokens=5000,
        llm_temperature_reflect=0.0,
    )
    await world.retain(ANA, BEN)
    body = {"query": "Where does Ana live?", "response_schema": SCHEMA, "max_tokens": 120, "max_llm_calls": 4}
    body["include"] = {"facts": {}}
    patience = ClientTimeout(total=850)
    found = await world.send("POST", BANK + "/reflect", body, timeout=patience)
    assert found["text"].strip() and found["mode"] == "model"
    assert isinstance(found["structured_output"], dict) and isinstance(found["structured_output"]["city"], str)
    page = await world.send("GET", BANK + "/memories/list?limit=100")
    known = {one["id"] for one in page["items"]}
    assert {one["id"] for one in found["based_on"]["memories"]} <= known
    assert 2 <= found["stats"]["llm_calls"] <= 4 and found["usage"]["total_tokens"] > 0
    assert world.nothing_runs()

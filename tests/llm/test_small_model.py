"""A real model of 135 million parameters behind a real server: what is promised of the wire holds there too."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from recalld.actors.llm.base import CallRecord, Limits, LlmRequest, system, user
from recalld.actors.llm.models import LlmConfig, Models
from recalld.actors.llm.modes import JSON_SCHEMA, TEXT
from recalld.actors.llm.probe import probe
from recalld.actors.llm.provider import ModelChoice
from recalld.storage.errors import ModelOverflow

from .small_model import SmallModel

pytestmark = pytest.mark.slow
FACTS = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "minLength": 1, "maxLength": 80},
                    "kind": {"enum": ["world", "experience", "opinion"]},
                },
                "required": ["text", "kind"],
            },
        }
    },
    "required": ["facts"],
}


@pytest.fixture
async def models(small_llm: SmallModel) -> AsyncIterator[tuple[Models, list[CallRecord]]]:
    records: list[CallRecord] = []
    choice = ModelChoice("openai", small_llm.name, "any", small_llm.url)
    made = Models(
        LlmConfig(choice, limits=Limits(timeout=300, deadline=900)), chance=random.random, observe=records.append
    )
    yield made, records
    await made.close()


def asked(text: str, schema: object = FACTS, max_tokens: int = 200) -> LlmRequest:
    rules = system("Say what the text says as short facts.")
    return LlmRequest("retain", (rules, user(text)), schema=schema, max_tokens=max_tokens, temperature=0.1)  # type: ignore[arg-type]


async def test_an_answer_is_bound_to_the_schema_with_tokens_reported(models: tuple[Models, list[CallRecord]]) -> None:
    llm, records = models[0].llm("retain"), models[1]
    answers = await asyncio.gather(*(llm.complete(asked(f"Ana: I drink {what}.")) for what in ("tea", "milk", "水")))
    for answer in answers:
        assert 1 <= len(answer.parsed["facts"]) <= 2 and not answer.rejected and not answer.repairs
        assert answer.mode == JSON_SCHEMA and answer.finish_reason == "stop"
        assert answer.usage.reported and answer.usage.input > 10 and answer.usage.output > 5
        assert 0.3 < answer.usage.own_input / answer.usage.input < 6
    assert [one.outcome for one in records] == ["ok"] * 3 and all(one.milliseconds > 1 for one in records)


async def test_the_probe_finds_it_and_how_a_schema_travels(models: tuple[Models, list[CallRecord]]) -> None:
    seen = await probe(models[0].llm("retain"), "retain", 60)
    assert seen.ok and seen.mode == JSON_SCHEMA and seen.listed is True


async def test_an_answer_cut_off_and_a_prompt_too_long_are_told_apart(models: tuple[Models, list[CallRecord]]) -> None:
    llm = models[0].llm("retain")
    with pytest.raises(ModelOverflow) as caught:
        await llm.complete(asked("Ana drinks tea.", max_tokens=6))
    assert caught.value.kind == "output"
    with pytest.raises(ModelOverflow) as caught:
        await llm.complete(asked("tea " * 20_000))
    assert caught.value.kind == "input"


async def test_plain_text_and_a_schema_in_the_prompt_work_too(
    small_llm: SmallModel, models: tuple[Models, list[CallRecord]]
) -> None:
    llm = models[0].llm("retain")
    answer = await llm.complete(asked("Say hello.", schema=None, max_tokens=30))
    assert answer.text and answer.parsed is None
    models[0].memory.of((small_llm.url, small_llm.name)).modes |= {JSON_SCHEMA, "json_object"}
    try:
        answer = await llm.complete(asked("Ana drinks tea."))
    except Exception as error:  # a model this small may well not keep to a schema it only reads
        assert type(error).__name__ in ("ModelAnswerUnusable", "ModelOverflow")
    else:
        assert answer.mode == TEXT

"""A real small model behind a real compatible server reads twenty turns, bound to the schema, every call on record."""

from __future__ import annotations

from pathlib import Path

import pytest
from llm.small_model import missing, small_model

from .model_server import ModelServer, ledger, memories, retain, service_with

TURNS = [
    ("Ana", "We moved the bakery to Nantes in March 2026."),
    ("Ben", "I like the new oven, it is quieter than the old one."),
    ("Ana", "The old one broke twice last winter."),
    ("Ben", "Who takes the Saturday shift?"),
    ("Ana", "Chloe takes it until the end of June."),
    ("Ben", "Chloe no longer works on Sundays."),
    ("Ana", "I ordered two hundred kilos of rye flour from Moulin Perrot."),
    ("Ben", "They deliver on Thursdays."),
    ("Ana", "The rent is due on the fifth of each month."),
    ("Ben", "I think the rent is too high for this street."),
    ("Ana", "My daughter Lou starts school in September."),
    ("Ben", "Congratulations!"),
    ("Ana", "We need a second car because the market is far away."),
    ("Ben", "My brother Paul sells used vans in Rennes."),
    ("Ana", "Ask him for a small diesel."),
    ("Ben", "He said he has one for four thousand euros."),
    ("Ana", "That is fine if the brakes are good."),
    ("Ben", "He changed the brakes in April."),
    ("Ana", "Then let us take it."),
    ("Ben", "I will pick it up on Friday."),
]


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "it is here")
async def test_twenty_turns_through_a_real_model_with_every_call_in_the_ledger(tmp_path: Path) -> None:
    with small_model(tmp_path / "server.log") as model:
        server = ModelServer()
        server.url = model.url
        settings = {"llm_model": model.name, "retain_max_completion_tokens": 1500, "retain_chunk_size": 600}
        async with service_with(
            server, tmp_path / "home", llm_timeout=600.0, llm_deadline=1800.0, **settings
        ) as service:
            text = "\n".join(f"{who}: {said}" for who, said in TURNS)
            answer = await retain(service, "b", text, timestamp="2026-05-13T10:00:00+02:00", document_id="talk")
            rows = await ledger(service, "b")
            stored = await memories(service, "b")
    assert rows and all(row["model"] == model.name and row["trace_id"] for row in rows)
    assert any(row["status"] == "success" for row in rows)
    assert answer["usage"]["input_tokens"] == sum(row["input_tokens"] or 0 for row in rows)
    assert answer["usage"]["output_tokens"] == sum(row["output_tokens"] or 0 for row in rows)
    assert all(row["text"].strip() for row in stored)
    assert answer["receipt"][0]["chunks"] >= 2

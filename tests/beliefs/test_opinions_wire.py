"""An agent's belief over HTTP: a story with a scripted judge, instants, the audit log, giving and revising by hand."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hindsight_client import Hindsight

from .conftest import Open, Wire

FACTS = {
    "Vespa served a billion queries so far.": ("reinforce", "it held up"),
    "Vespa passed the audit of its backups.": ("reinforce", "it passed"),
    "Vespa came back within a second after the power cut.": ("reinforce", "it came back"),
    "Vespa lost one of its indexes.": ("contradict", "data was lost"),
    "Vespa has a new logo.": ("neutral", "a logo says nothing"),
}


def script(folder: Path, rows: dict[str, tuple[str, str]], **more: Any) -> str:
    """A file of standing answers: what the judge says of a pair that holds a text."""
    answers = [
        {"when": text, "text": json.dumps({"judgements": [{"pair": 1, "verdict": said, "reason": why}]}), **more}
        for text, (said, why) in rows.items()
    ]
    path = folder / "script.json"
    path.write_text(json.dumps(answers), encoding="utf-8")
    return str(path)


def scripted(path: str) -> dict[str, Any]:
    return {
        "extraction_provider": "local",
        "llm_provider": "scripted",
        "llm_base_url": path,
        "llm_max_retries": 0,
        "operations_backoff_seconds": 0.05,
        "operations_model_wait_seconds": 0.05,
        "operations_model_wait_max_seconds": 0.2,
    }


async def until(wire: Wire, opinion: str, steps: int) -> dict[str, Any]:
    """The history of an opinion once it has so many steps."""
    for _ in range(500):
        history: dict[str, Any] = await wire.ok("GET", f"/opinions/{opinion}/history")
        if len(history["items"]) >= steps:
            return history
        await asyncio.sleep(0.02)
    raise AssertionError(history)


def now() -> str:
    return datetime.now(UTC).isoformat()


async def opinions(wire: Wire, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await wire.ok("GET", "/opinions", **query))["items"]
    return rows


async def test_three_confirmations_a_contradiction_and_a_neutral_give_the_exact_confidences(
    open_wire: Open, tmp_path: Path
) -> None:
    wire = await open_wire(**scripted(script(tmp_path, FACTS)))
    body = {"text": "Vespa is reliable.", "confidence": 0.6, "entities": ["Vespa"]}
    made = await wire.ok("POST", "/opinions", body)
    opinion = made["id"]
    assert (made["holder"], made["confidence"], made["state"], made["outcome"]) == ("agent", 0.6, "active", "formed")
    instants, seen = [now()], [0.6]
    for number, text in enumerate(FACTS):
        await wire.retain(text)
        history = await until(wire, opinion, number + 2)
        seen.append((await wire.ok("GET", f"/opinions/{opinion}"))["confidence"])
        instants.append(now())
    assert seen == [0.6, 0.7, 0.8, 0.9, 0.7, 0.7]
    steps = history["items"]
    assert [one["confidence"] for one in steps] == seen
    assert [one["what"] for one in steps] == ["formed", *(verdict for verdict, _ in FACTS.values())]
    assert [one["change"] for one in steps[1:]] == [0.1, 0.1, 0.1, -0.2, 0.0]
    assert [one["reason"] for one in steps[1:]] == [reason for _, reason in FACTS.values()]
    assert [one["by"] for one in steps] == ["hand", *["model"] * 5] and all(one["unit_id"] for one in steps[1:])
    for instant, confidence in zip(instants, seen, strict=True):
        (then,) = await opinions(wire, as_of=instant)
        assert then["confidence"] == confidence
        query = {"query": "Is Vespa reliable?", "types": ["opinion"], "as_of": instant}
        (recalled,) = (await wire.ok("POST", "/memories/recall", query))["results"]
        assert (recalled["type"], recalled["confidence"]) == ("opinion", confidence)
    assert await opinions(wire, as_of="2020-01-01T00:00:00Z") == []
    (shown,) = await opinions(wire)
    assert [one["text"] for one in shown["evidence_for"]] == list(FACTS)[:3]
    assert [one["text"] for one in shown["evidence_against"]] == [list(FACTS)[3]]
    told = [row["metadata"] for row in (await wire.ok("GET", "/audit-logs", action="opinion_judged"))["items"]][::-1]
    assert [(one["before"], one["after"]) for one in told] == list(itertools.pairwise(seen))
    assert [one["judgement"] for one in told] == [verdict for verdict, _ in FACTS.values()]
    assert not any("reason" in one for one in told), "a model's words may repeat a text that is erased one day"
    calls = (await wire.ok("GET", "/llm-requests"))["items"]
    assert {one["operation"] for one in calls} == {"judge_opinions"} and len(calls) == 5


async def test_evidence_waits_for_a_model_that_is_away(open_wire: Open, tmp_path: Path) -> None:
    path = script(tmp_path, FACTS, status=503)
    wire = await open_wire(**scripted(path))
    opinion = (await wire.ok("POST", "/opinions", {"text": "Vespa is reliable.", "entities": ["Vespa"]}))["id"]
    await wire.retain(next(iter(FACTS)))
    for _ in range(200):
        rows = (await wire.ok("GET", "/operations", type="judge_opinions"))["operations"]
        if rows and rows[0]["status"] == "pending":
            break
        await asyncio.sleep(0.02)
    assert len((await wire.ok("GET", f"/opinions/{opinion}/history"))["items"]) == 1
    script(tmp_path, FACTS)
    wire = await open_wire(**scripted(path)) if await closed(wire) else wire
    assert (await until(wire, opinion, 2))["confidence"] == 0.8


async def test_evidence_erased_while_the_model_thinks_moves_nothing(open_wire: Open, tmp_path: Path) -> None:
    wire = await open_wire(**scripted(script(tmp_path, FACTS, delay=0.5)))
    opinion = (await wire.ok("POST", "/opinions", {"text": "Vespa is reliable.", "entities": ["Vespa"]}))["id"]
    await wire.retain({"content": next(iter(FACTS)), "document_id": "d"})
    await ended(wire, ("processing",))
    await wire.ok("DELETE", "/documents/d")
    assert (await ended(wire, ("completed",)))["status"] == "completed"
    assert (await wire.ok("GET", f"/opinions/{opinion}"))["confidence"] == 0.7
    assert len((await wire.ok("GET", f"/opinions/{opinion}/history"))["items"]) == 1
    found = await wire.ok("GET", "/verify")
    assert found["ok"] and found["checked"]["belief_events"] == 0


async def ended(wire: Wire, states: tuple[str, ...]) -> dict[str, Any]:
    """The judgement that was queued, once it is in one of some states."""
    for _ in range(500):
        rows = (await wire.ok("GET", "/operations", type="judge_opinions"))["operations"]
        if rows and rows[0]["status"] in states:
            return dict(rows[0])
        await asyncio.sleep(0.01)
    raise AssertionError(rows)


async def closed(wire: Wire) -> bool:
    await wire.client.close()
    await wire.service.close()
    return True


async def test_opinions_are_given_filtered_and_revised_by_hand(open_wire: Open) -> None:
    wire = await open_wire(extraction_provider="local")
    await wire.retain("Vespa crashed on Friday.", "Vespa ran for a year without errors.")
    listed = (await wire.ok("GET", "/memories/list"))["items"]
    crash = next(one["id"] for one in listed if "crashed" in one["text"])
    body = {
        "text": "Vespa is reliable.",
        "holder": "Mara",
        "confidence": 0.8,
        "tags": ["db"],
        "evidence": [{"id": crash, "judgement": "weaken", "reason": "once only"}],
    }
    mara = await wire.ok("POST", "/opinions", body)
    assert (mara["confidence"], mara["holder"], mara["tags"], mara["entities"]) == (0.8, "Mara", ["db"], ["Vespa"])
    assert [one["change"] for one in mara["evidence_against"]] == [0.0], "it is in what the opinion began with"
    other = await wire.ok("POST", "/opinions", {"text": "Tea is better than coffee."})
    assert [one["id"] for one in await opinions(wire)] == [mara["id"], other["id"]]
    assert [one["id"] for one in await opinions(wire, holder="agent")] == [other["id"]]
    assert [one["id"] for one in await opinions(wire, q="VESPA")] == [mara["id"]]
    assert [one["id"] for one in await opinions(wire, min_confidence=0.75)] == [mara["id"]]
    page = await wire.ok("GET", "/opinions", limit=1, offset=1)
    assert (page["total"], page["limit"], page["offset"], len(page["items"])) == (2, 1, 1, 1)
    again = await wire.ok("POST", "/opinions", {**body, "confidence": 0.1})
    assert (again["id"], again["outcome"], again["confidence"]) == (mara["id"], "unchanged", 0.8)
    path = f"/opinions/{mara['id']}"
    changed = await wire.ok("PATCH", path, {"confidence": 0.3, "reason": "asked her"})
    assert (changed["confidence"], changed["state"]) == (0.3, "active")
    changed = await wire.ok("PATCH", path, {"state": "retired", "reason": "she left"})
    assert (changed["state"], changed["state_reason"]) == ("retired", "she left")
    query = {"query": "Is Vespa reliable?", "types": ["opinion"]}
    found = (await wire.ok("POST", "/memories/recall", query))["results"]
    assert mara["id"] not in [one["id"] for one in found]
    assert [one["id"] for one in await opinions(wire, state="retired")] == [mara["id"]]
    changed = await wire.ok("PATCH", path, {"state": "active"})
    assert changed["state"] == "active"
    low = await wire.ok("PATCH", path, {"confidence": 0.05})
    assert low["state"] == "retired"
    assert (await wire("PATCH", path, {"state": "active"}))[0] == 409
    assert (await wire.ok("PATCH", path, {"state": "active", "confidence": 0.5}))["state"] == "active"
    whats = [one["what"] for one in (await wire.ok("GET", path + "/history"))["items"]]
    assert whats == ["formed", "weaken", "set", "set", "set"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/opinions?as_of=soon", None, 400),
        ("GET", "/opinions?state=asleep", None, 422),
        ("GET", "/opinions/nonsense", None, 400),
        ("GET", "/opinions/00000000-0000-4000-8000-000000000000", None, 404),
        ("GET", "/opinions/00000000-0000-4000-8000-000000000000/history", None, 404),
        ("PATCH", "/opinions/00000000-0000-4000-8000-000000000000", {"confidence": 0.5}, 404),
        ("PATCH", "/opinions/00000000-0000-4000-8000-000000000000", {}, 422),
        ("POST", "/opinions", {"text": "  "}, 422),
        ("POST", "/opinions", {"text": "x", "confidence": 2}, 422),
        ("POST", "/opinions", {"text": "x", "evidence": [{"id": "y"}]}, 422),
    ],
)
async def test_what_makes_no_sense_is_refused(open_wire: Open, method: str, path: str, body: Any, status: int) -> None:
    wire = await open_wire(extraction_provider="local")
    await wire.retain("Tea is hot.")
    assert (await wire(method, path, body))[0] == status


async def test_a_fact_is_no_opinion_and_an_unknown_bank_has_none(open_wire: Open) -> None:
    wire = await open_wire(extraction_provider="local")
    assert (await wire("GET", "/opinions"))[0] == 404
    await wire.retain("Tea is grown in Assam.")
    (fact,) = (await wire.ok("GET", "/memories/list"))["items"]
    assert (await wire("GET", f"/opinions/{fact['id']}"))[0] == 404
    assert await opinions(wire) == []


async def test_step_threshold_and_floor_are_the_banks(open_wire: Open) -> None:
    wire = await open_wire(extraction_provider="local")
    opinion = (await wire.ok("POST", "/opinions", {"text": "Vespa is reliable.", "confidence": 0.6}))["id"]
    updates = {"opinion_confidence_step": 0.25, "opinion_retirement_floor": 0.3}
    await wire.ok("PATCH", "/config", {"updates": updates})
    await wire.retain("Vespa ran for a year without errors.")
    assert (await wire.ok("GET", f"/opinions/{opinion}"))["confidence"] == 0.85
    await wire.retain("Vespa had a minor outage once.", "Vespa was a bit unstable for one day.")
    shown = await wire.ok("GET", f"/opinions/{opinion}")
    assert (shown["confidence"], shown["state"]) == (0.35, "active")
    await wire.retain("Vespa crashed on Friday.")
    shown = await wire.ok("GET", f"/opinions/{opinion}")
    assert (shown["confidence"], shown["state"]) == (0.0, "retired")
    for name in ("opinion_confidence_step", "opinion_retirement_floor", "opinion_similarity_threshold"):
        assert (await wire("PATCH", "/config", {"updates": {name: 3}}))[0] == 400


async def test_the_official_client_reads_banks_with_opinions(open_wire: Open) -> None:
    wire = await open_wire(extraction_provider="local")
    await wire.retain("Mara: I think Vespa is reliable.", "Vespa crashed on Friday.")
    client = Hindsight(base_url=wire.host)

    def ask() -> Any:
        return client.recall(bank_id=wire.bank, query="Is Vespa reliable?", types=["opinion"])

    found = await asyncio.to_thread(ask)
    assert [one.type for one in found.results] == ["opinion"]
    described = await wire.client.get("/openapi.json")
    paths = (await described.json())["paths"]
    assert set(paths["/v1/default/banks/{bank_id}/opinions"]) == {"get", "post"}
    assert set(paths["/v1/default/banks/{bank_id}/opinions/{opinion_id}"]) == {"get", "patch"}

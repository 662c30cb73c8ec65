"""Many clients write, change, erase and read one bank at once: nothing fails, and what is left agrees with itself."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from e2e_daemon import Answer, Bank

SECONDS = 3.0
CLIENTS = 8
DOCUMENTS = 6
NAMES = ("Ana", "Ben", "Carla", "Dora", "Emil")
PLACES = ("Lyon", "Oslo", "Turku", "Porto", "Bergen")
TAGS = ("a", "b", "c")


def some_text(rng: random.Random) -> str:
    sentences = [
        f"{rng.choice(NAMES)} visited {rng.choice(PLACES)} on day {rng.randrange(1000)}."
        for _ in range(rng.randrange(1, 6))
    ]
    # Now and then a text of several chunks, so that a replace keeps some of them and moves others.
    if rng.random() < 0.1:
        sentences += [f"{name} keeps a diary about {place}. " * 9 + "\n" for name in NAMES for place in PLACES]
    return "\n".join(sentences)


def one_request(bank: Bank, rng: random.Random) -> Answer:
    document = f"doc{rng.randrange(DOCUMENTS)}"
    tags = rng.sample(TAGS, rng.randrange(3))
    item: dict[str, Any] = {"content": some_text(rng), "document_id": document, "tags": tags}
    draw = rng.random()
    if draw < 0.25:
        return bank.post_items(item)
    if draw < 0.45:
        return bank.post_items({**item, "update_mode": "append"})
    if draw < 0.5:
        return bank.post_items({"content": item["content"], "tags": tags})
    if draw < 0.6:
        return bank.post_items(item, **{"async": True})
    if draw < 0.7:
        return bank.send("DELETE", f"/documents/{document}")
    if draw < 0.8:
        return bank.send("PATCH", f"/documents/{document}", {"tags": tags})
    if draw < 0.95:
        return bank.post_recall(item["content"][:60], tags=tags or None, include={"chunks": {}}, trace=draw < 0.85)
    return bank.send("GET", "/memories/list", limit=5)


def test_mixed_work_of_many_clients_leaves_a_bank_that_agrees_with_itself(bank: Bank) -> None:
    bank.retain("The beginning.")
    end = time.monotonic() + SECONDS

    def client(seed: int) -> list[Answer]:
        rng = random.Random(seed)
        answers = []
        while time.monotonic() < end:
            answers.append(one_request(bank, rng))
        return answers

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = [answer for answers in pool.map(client, range(CLIENTS)) for answer in answers]
    # A document another client has just deleted is not found; nothing else may go wrong.
    assert {one.status for one in answers} <= {200, 404}, [one.body for one in answers if one.status not in (200, 404)]
    assert all("not found" in one.detail for one in answers if one.status == 404)
    for one in answers:
        if one.body.get("operation_id"):
            assert bank.wait_for(one.body["operation_id"], seconds=60)["status"] == "completed"

    units, stats = bank.list(limit=100_000), bank.get("/stats")
    documents = bank.get("/documents", limit=1000)["items"]
    assert len(units) == stats["total_nodes"] == sum(one["memory_unit_count"] for one in documents)
    assert len(documents) == stats["total_documents"]
    for one in documents:
        whole_and_sound(bank, one, [unit for unit in units if unit["document_id"] == one["id"]])

    counted = Counter(tag for unit in units for tag in unit["tags"])
    assert {one["tag"]: one["count"] for one in bank.get("/tags")["items"]} == counted
    for entity in bank.get("/entities", limit=1000)["items"]:
        assert entity["mention_count"] == bank.get("/memories/list", entity_id=entity["id"], limit=0)["total"]
    named = Counter(name for unit in units for name in unit["entities"].split(", ") if name)
    held: Counter[str] = Counter()
    for entity in bank.get("/entities", limit=1000)["items"]:
        held[entity["canonical_name"]] += entity["mention_count"]
    assert held == named

    for unit in random.Random(3).sample(units, min(10, len(units))):
        for arm in ("semantic", "keyword"):
            found = bank.texts(unit["text"][:300], arms=[arm], max_tokens=100_000, budget="high")
            assert unit["text"] in found, (arm, unit["text"])
    bank.usable()


def whole_and_sound(bank: Bank, listed: dict[str, Any], units: list[dict[str, Any]]) -> None:
    """A document's text, hash, length, chunks and memories fit together."""
    document = bank.get(f"/documents/{listed['id']}")
    text = document["original_text"]
    assert document["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert listed["text_length"] == len(text)
    chunks = {one["chunk_id"]: one for one in bank.get(f"/documents/{listed['id']}/chunks", limit=1000)["items"]}
    assert [one["chunk_index"] for one in chunks.values()] == list(range(len(chunks)))
    for unit in units:
        assert unit["text"] in chunks[unit["chunk_id"]]["chunk_text"], unit

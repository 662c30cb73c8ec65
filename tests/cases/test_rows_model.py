"""Answers of a model as they were met, from its bytes to what a client lists: nothing lost, nothing made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from e2e_daemon import Bank
from scripted_server import Model

TALK = "Ana: I like tea.\nBen: I like jam."
TWO = '{"facts": [{"text": "Ana likes tea", "network": "world"}, {"text": "Ben likes jam", "network": "world"}]}'


def texts(bank: Bank) -> list[str]:
    return sorted(row["text"] for row in bank.list())


def said(*facts: Any) -> str:
    return json.dumps({"facts": list(facts)})


def test_filler_of_a_model_is_no_memory_and_the_vectors_keep_their_texts(read_bank: Bank, model: Model) -> None:
    model.says = said("...", "-", " ", "Ana likes tea", "--", "Ben likes jam")
    read_bank.retain(TALK)
    assert texts(read_bank) == ["Ana likes tea", "Ben likes jam"]
    assert read_bank.texts("Who likes jam?", arms=["semantic"])[0] == "Ben likes jam"


def test_names_with_line_breaks_are_one_and_blank_ones_none(read_bank: Bank, model: Model) -> None:
    names = [{"name": "Acme\n\tCorp ", "kind": "ORG"}, {"name": "  "}, {"name": "Acme Corp"}]
    model.says = said({"text": "Acme Corp hired Ana", "entities": names})
    read_bank.retain("Acme Corp hired Ana")
    assert [row["canonical_name"] for row in read_bank.get("/entities")["items"]] == ["Acme Corp"]


def test_a_tag_of_reasoning_that_is_talked_about_stays_in_the_text(read_bank: Bank, model: Model) -> None:
    model.says = "<think>They mention <think>.</think>\n" + said(
        "The tag <think> opens reasoning.", "Ana owns the fix."
    )
    read_bank.retain("The tag <think> opens reasoning. Ana owns the fix.")
    assert texts(read_bank) == ["Ana owns the fix.", "The tag <think> opens reasoning."]


def test_numbers_that_point_to_nothing_are_left_out(read_bank: Bank, model: Model) -> None:
    first = {"text": "Ana likes tea", "duplicate_idx": 99, "caused_by": [99, -1, "x", 0]}
    model.says = said(first, {"text": "Ben likes jam", "caused_by": [99]})
    read_bank.retain(TALK)
    assert texts(read_bank) == ["Ana likes tea", "Ben likes jam"]
    assert read_bank.get("/verify")["ok"]


@pytest.mark.parametrize(
    "answer",
    [
        f"Here you go:\n```json\n{TWO}\n```\nHope it helps",
        f"<think>\nmaybe []\n</think>\n{TWO}",
        json.dumps(TWO),
        "\n".join(json.dumps(one) for one in json.loads(TWO)["facts"]),
    ],
)
def test_what_stands_around_an_answer_costs_no_fact(read_bank: Bank, model: Model, answer: str) -> None:
    model.says = answer
    read_bank.retain(TALK)
    assert texts(read_bank) == ["Ana likes tea", "Ben likes jam"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "There are no facts that I could see.",
        "facts:\n- text: Ana likes tea\n  entities: []\n",
        '{"facts"：[{"text"："Ana likes tea"，"entities"：["Ana"]}]}',
        '{"summary": "Ana likes tea", "entities": ["Ana"]}',
    ],
)
def test_an_answer_nobody_can_read_stores_nothing_and_says_so(read_bank: Bank, model: Model, answer: str) -> None:
    model.says = answer
    refused = read_bank.post_items(TALK)
    assert refused.status == 502 and "cannot be used" in refused.detail
    assert read_bank.send("GET", "/memories/list").body.get("items", []) == []
    model.says = TWO
    read_bank.retain(TALK)
    assert texts(read_bank) == ["Ana likes tea", "Ben likes jam"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((400, {"error": {"message": "bad request", "type": "invalid_request_error"}}), "refused the request"),
        ((400, {"error": {"message": "blocked by content_filter", "code": "content_filter"}}), "content policy"),
        ({"role": "assistant", "content": None, "refusal": "I cannot help with that."}, "content policy"),
    ],
)
def test_a_refusal_is_asked_once_and_told(read_bank: Bank, model: Model, answer: Any, words: str) -> None:
    model.says = answer
    before = len(model.prompts)
    refused = read_bank.post_items(TALK)
    assert (refused.status, len(model.prompts) - before) == (422, 1)
    assert words in refused.detail

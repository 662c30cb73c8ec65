"""`docs/reflect.md` is true: its words are the prompt's, its tools, events and codes those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from recalld.actors.reflect.deps import Limits
from recalld.actors.reflect.disposition import STEPS, WORDS
from recalld.actors.reflect.questions import KINDS
from recalld.actors.reflect.tools import DONE, EXPAND, READ_PAGES, RECALL, SEARCH_OBSERVATIONS, SEARCH_PAGES
from recalld.daemon.bank_settings import BY_NAME as BANK_SETTINGS
from recalld.daemon.settings_table import BY_NAME
from recalld.daemon.wire.reflect import ReflectIncludeOptions, ReflectRequest, ReflectResponse
from recalld.storage import errors

PAGE = (Path(__file__).parents[2] / "docs" / "reflect.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    table = PAGE.split(f"| {heading} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_words_of_each_level_are_those_of_the_prompt() -> None:
    for trait, sentences in WORDS.items():
        assert rows(trait) == [[str(level), sentence] for level, sentence in enumerate(sentences, 1)]
    assert rows("beta up to") == [[f"{bound:g}", sentence] for bound, sentence in STEPS]


def test_the_tools_are_those_there_are() -> None:
    named = [row[0].strip("`") for row in rows("tool")]
    assert named == [SEARCH_PAGES, SEARCH_OBSERVATIONS, RECALL, EXPAND, READ_PAGES, DONE]


def test_codes_and_settings_exist() -> None:
    codes = {code for row in rows("ends in") for code in re.findall(r"`([a-z_]+)`", row[-1])}
    assert codes and all(
        isinstance(errors.from_wire({"code": one, "message": ""}), errors.RecalldError) for one in codes
    )
    assert {errors.from_wire({"code": one, "message": ""}).code for one in codes} == codes
    for name in re.findall(r"`(reflect\.[a-z_]+)`", PAGE):
        assert name in BY_NAME, name
    assert Limits().wall_seconds == 300 and Limits().iterations == 10
    for name in (
        "disposition_bias_strength",
        "reflect_form_opinions",
        "reflect_default_options",
        "background_from_retain",
    ):
        assert name in BANK_SETTINGS and f"`{name}`" in PAGE


def test_fields_exist() -> None:
    for row in rows("field of the request"):
        for name in re.findall(r"`([a-z_.]+)`", row[0]):
            fields = ReflectIncludeOptions if name.startswith("include.") else ReflectRequest
            assert name.removeprefix("include.") in fields.model_fields, name
    for name in ("mode", "found", "certainty", "opinions", "explain", "stats"):
        assert name in ReflectResponse.model_fields


def test_kinds_of_questions_are_named() -> None:
    listed = PAGE.split("taken for one of ")[1].split(";")[0].replace("\n", " ")
    assert set(listed.split(", ")) == set(KINDS)

"""Kinds of names, talk about the talk and splits, on sentences with names and words the labelled tuning half never had.

The `work` halves were worked on; the `control` halves were written with them, before the rules, and only ever scored.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from recalld.actors.retain import cleaning, name_lists, phatic
from recalld.actors.retain.entities import one_kind_each
from recalld.daemon.bench.extraction import Plan, figures, score
from recalld.storage.records import EntityMention

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("file", "figure", "least"),
    [
        ("kinds_work", "entities", 0.95),
        ("kinds_control", "entities", 0.92),
        ("kinds_invented_work", "entities", 0.85),
        ("kinds_invented_control", "entities", 0.8),
        ("talk_work", "junk left out", 0.97),
        ("talk_control", "junk left out", 0.85),
        ("talk_work", "found", 1.0),
        ("talk_control", "found", 1.0),
        ("talk_work", "splits", 0.95),
        ("talk_control", "splits", 0.8),
    ],
)
def test_unheard_names_and_talk_reach_their_figures(file: str, figure: str, least: float) -> None:
    share = figures(score(Plan((HERE / f"{file}.jsonl",))))[figure].share
    assert share >= least, f"{file}: {figure} is {share:.3f}"


def test_the_lists_know_names_of_many_lands() -> None:
    assert all(map(name_lists.is_given, ("Obinna", "Gudrun", "Zeynep", "Piotr", "Siobhan")))
    assert all(map(name_lists.is_family, ("Iyer", "Quispe")))
    assert all(map(name_lists.is_place, ("Enugu", "Bydgoszcz", "Alemania", "Italien")))
    assert not any(map(name_lists.is_known, ("Traffic", "Coffee", "Orgel", "The")))


def test_a_name_has_one_kind_over_its_document() -> None:
    weighed = [(EntityMention("Ilse Brandt", "PERSON"), 4.0), (EntityMention("Ilse", "ORG"), 1.5)]
    assert one_kind_each(weighed) == {"ilse brandt": "PERSON", "ilse": "PERSON"}


@pytest.mark.parametrize(
    "line",
    [
        "I can't hear well since the accident.",
        "My mic is broken, I ordered a new one.",
        "I have a meeting with Ola.",
        "I stopped smoking.",
        "We sold the house.",
        "Version 2 breaks the import.",
        "Decisions: none on the roof",
        "My camera was stolen.",
    ],
)
def test_a_line_that_carries_a_fact_stays(line: str) -> None:
    assert not phatic.is_idle(line) and not phatic.is_furniture(line) and cleaning.drop_reason(line) is None

"""What kind of saying a text is."""

from __future__ import annotations

import pytest

from recalld.actors.retain.stance import is_question, network_of, opinion_confidence
from recalld.storage.records import EXPERIENCE, WORLD


@pytest.mark.parametrize(
    "text",
    ["Why?", "Where is it? 😀", "你去吗？", "“Really?”", "Are you sure?!", "行きますか", "هل أنت هنا؟", "Who (me?)"],
)
def test_a_trailing_mark_makes_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["Why not? Because.", "It is.", "", "x = a ? b : c", "好"])
def test_a_mark_inside_makes_none(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("I'm sure Vespa is reliable.", 0.85, 0.95),
        ("I think Vespa is reliable.", 0.65, 0.75),
        ("In my opinion, the seals should be replaced.", 0.65, 0.75),
        ("I guess the old pump is better", 0.45, 0.55),
        ("Maybe the train is faster.", 0.35, 0.45),
        ("I think the meeting is on Friday", 0.65, 0.75),
        ("Frankly, the soup was bland.", 0.7, 0.8),
        ("I find the crossing horrible.", 0.65, 0.75),
        ("The form is far too long.", 0.75, 0.85),
        ("我觉得这个数据库很可靠", 0.65, 0.75),
        ("Creo que este coche es mejor", 0.65, 0.75),
    ],
)
def test_confidence_falls_with_the_hedge(text: str, least: float, most: float) -> None:
    confidence = opinion_confidence(text)
    assert confidence is not None and least <= confidence <= most


@pytest.mark.parametrize(
    "text",
    [
        "I think I'll go to Lyon, it is better there",
        "I think about my life sometimes",
        "I believe we met in May",
        "I love jazz",
        "I think Vespa is reliable. Ana bought one in May.",
        "Do you think Vespa is reliable?",
        "I think we should meet on Friday",
    ],
)
def test_plans_memories_tastes_and_questions_are_no_opinions(text: str) -> None:
    assert opinion_confidence(text) is None


def test_only_the_agents_doing_is_its_experience() -> None:
    assert network_of("I ran the tests and they pass.", "assistant")[0] == EXPERIENCE
    assert network_of("Deployed the fix to staging.", "assistant")[0] == EXPERIENCE
    assert network_of("A list is reversed by swapping its ends.", "assistant")[0] == WORLD
    assert network_of("I ran the tests and they pass.", "user")[0] == WORLD

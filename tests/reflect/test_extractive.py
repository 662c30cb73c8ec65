"""Answers put together without a model: what a question is taken for, what is cited, and when nothing was found."""

from __future__ import annotations

from typing import Any

import pytest

from recalld.actors.reflect.extractive import answer, date_words
from recalld.actors.reflect.questions import kind_of, read
from recalld.daemon.bench.reflect_score import Answered, covered, period, right_date

KINDS = [
    ("When did Ana move?", "when"),
    ("What year was Ana born?", "when"),
    ("How long ago did she call?", "when"),
    ("¿Cuándo llegó Ana?", "when"),
    ("Wann kam Ana?", "when"),
    ("安娜什么时候搬家的？", "when"),
    ("Who called Ben?", "who"),
    ("Where does Ana live?", "where"),
    ("Which city is Ana in?", "where"),
    ("How many turtles does Nate have?", "how many"),
    ("Does Ana like jazz?", "yes-no"),
    ("What instruments does Ben play?", "list"),
    ("Which books did Tim read?", "list"),
    ("Tell me about Ana", "summary"),
    ("What do you know about Ana?", "summary"),
    ("Why did Ana move?", "why"),
    ("What did Ana paint?", "what"),
]


def memory(text: str, late: float = 0.7, **fields: Any) -> dict[str, Any]:
    scores = {"final": late, "semantic": late, "late": late, "keyword": 3.0}
    return {
        "id": text[:8],
        "text": text,
        "type": "world",
        "occurred_start": None,
        "occurred_end": None,
        "mentioned_at": "2026-05-13T10:00:00+00:00",
        "scores": scores,
        **fields,
    }


def said(query: str, *memories: dict[str, Any], **options: Any) -> Any:
    return answer(query, list(memories), asked_at=0, **options)


@pytest.mark.parametrize(("question", "kind"), KINDS)
def test_questions_are_taken_for_what_they_ask(question: str, kind: str) -> None:
    assert kind_of(question) == kind


def test_names_and_words_of_a_question() -> None:
    question = read("When did Caroline's group paint the sunrises?")
    assert question.names == {"caroline"} and "sunris" in question.words and "group" in question.words


def test_a_date_is_absolute_and_cited() -> None:
    moved = memory(
        "Ana: I moved to Lyon on 12 May 2026.",
        occurred_start="2026-05-12T00:00:00+00:00",
        occurred_end="2026-05-12T23:59:59+00:00",
    )
    found = said("When did Ana move to Lyon?", moved, memory("Ben: Lyon is nice.", 0.4))
    assert found.text.startswith("12 May 2026.\n- Ana: I moved to Lyon") and found.cited[0] == moved["id"]
    assert found.dates == ("2026-05-12", "2026-05-12") and found.certainty == "high"


def test_a_day_on_which_it_was_only_said_is_named_as_such() -> None:
    found = said("When did Ana move to Lyon?", memory("Ana: I moved to Lyon."))
    assert found.text.startswith("Said on 13 May 2026, with no other date:")


def test_what_another_person_said_is_not_found_of_this_one() -> None:
    jazz = memory("Ben: I love jazz because it calms me.")
    assert not said("Why does Ana love jazz?", jazz).found
    assert said("Why does Ben love jazz?", jazz).found
    assert said("Why does Ben love jazz?", jazz).text.startswith("- Ben: I love jazz because")


def test_what_is_said_to_a_person_is_about_that_person() -> None:
    assert said(
        "Which team did John sign with?", memory("Tim: Congrats on signing with your new team, the Wolves!")
    ).found


def test_facts_in_the_third_person_count_for_whom_they_name() -> None:
    assert said("Where does Ana live?", memory("Ana lives in Lyon.")).found
    assert not said("Where does Zoe live?", memory("Ana lives in Lyon.")).found


def test_nothing_near_is_not_found() -> None:
    found = said("What is the capital of France?", memory("Ben: I love jazz.", 0.15))
    assert not found.found and found.text.startswith("Not found in memory.") and found.cited == ()
    assert said("Anything?").certainty == "none"


def test_a_question_for_a_number_leads_with_it() -> None:
    found = said("How many turtles does Nate have?", memory("Nate: I have three turtles."))
    assert found.text.startswith("Three.")


def test_a_denial_answers_no() -> None:
    assert said("Does Ana like jazz?", memory("Ana: I don't like jazz.")).text.startswith("It seems not")
    assert said("Does Ana like jazz?", memory("Ana: I like jazz.")).text.startswith("It seems so")


def test_an_opinion_is_told_as_one() -> None:
    found = said("Is Rust better than Go?", memory("Rust is better than Go.", type="opinion", confidence=0.6))
    assert "- An opinion (confidence 0.60): Rust is better than Go." in found.text


def test_at_most_ten_are_cited_and_no_stranger_is_shown() -> None:
    many = [memory(f"Ana: I painted picture number {n}.", 0.7 - n / 100) for n in range(20)]
    found = said("What did Ana paint?", *many, memory("Ben: Rain again.", 0.1))
    assert len(found.cited) == 10 and "Rain" not in found.text


def test_the_length_target_is_kept() -> None:
    many = [memory(f"Ana: I painted picture number {n} of the long series.", 0.7) for n in range(20)]
    assert len(said("List all the pictures of Ana", *many, max_tokens=60).text) < 400


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2023-05-07", "2023-05-07", "7 May 2023"),
        ("2023-05-01", "2023-05-31", "May 2023"),
        ("2023-01-01", "2023-12-31", "2023"),
        ("2019-01-01", "2021-12-31", "2019 to 2021"),
        ("2023-05-01", "2023-05-07", "1 to 7 May 2023"),
        ("2023-06-26", "2023-07-02", "26 June to 2 July 2023"),
        ("2022-12-30", "2023-01-02", "30 December 2022 to 2 January 2023"),
        ("2023-05-01", "2023-06-30", "May 2023 to June 2023"),
    ],
)
def test_periods_in_words_are_read_back_by_the_scorer(first: str, last: str, words: str) -> None:
    assert date_words(first, last) == words
    if words not in ("2019 to 2021", "May 2023 to June 2023", "30 December 2022 to 2 January 2023"):
        found = period(words)
        assert found is not None and (found[0].isoformat(), found[1].isoformat()) == (first, last)


# -- the scorer ------------------------------------------------------------------------------------------------------


def test_the_scorer_wants_the_gold_period_and_no_wider_one() -> None:
    def right(gold: str, stated: str) -> bool:
        return right_date(Answered("temporal", gold, f"{stated}.\n- x", True, ()))

    assert right("7 May 2023", "7 May 2023") and right("7 May 2023", "8 May 2023")
    assert not right("7 May 2023", "10 May 2023") and not right("7 May 2023", "May 2023")
    assert right("May 2023", "7 May 2023") and right("2022", "March 2022")
    assert right("The week before 25 August 2023", "14 to 20 August 2023")
    assert right("The Friday before 22 October 2023", "20 October 2023")
    assert right("December 11, 2023", "11 December 2023") and not right("10 years ago", "2013")


def test_the_scorer_looks_for_the_gold_words_in_what_is_cited() -> None:
    one = Answered("single hop", "Figurines, shoes", "", True, ("I bought these figurines.", "New shoe!"))
    assert covered(one) == 1.0

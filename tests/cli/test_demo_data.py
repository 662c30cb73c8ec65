"""The shipped conversation keeps its promises: long, dated, and each question answered by the turns it names."""

from __future__ import annotations

from datetime import datetime, timedelta

from recalld.daemon.demo import DEPTH, Answer, Question, items_of, load, verdict


def test_the_conversation_is_long_and_spans_months() -> None:
    sessions, _ = load()
    times = [datetime.fromisoformat(session["date_time"]) for session in sessions]
    assert sum(len(session["turns"]) for session in sessions) >= 170
    assert len(sessions) >= 10
    assert all(time.tzinfo is not None for time in times)
    assert times == sorted(times)
    assert times[-1] - times[0] > timedelta(days=240)
    assert {turn["speaker"] for session in sessions for turn in session["turns"]} == {"Priya", "Mateo"}


def test_every_question_names_turns_that_exist() -> None:
    sessions, questions = load()
    turns = {item["metadata"]["turn"] for session in sessions for item in items_of(session)}
    assert len(questions) == 6
    for question in questions:
        assert question.evidence
        assert set(question.evidence) <= turns
    assert {"temporal", "multi-hop", "reversed preference"} <= {question.kind for question in questions}


def answer_with(evidence: tuple[str, ...], ranked: list[str]) -> Answer:
    question = Question("q?", "k", "a", evidence)
    return Answer(question, [{"id": t, "metadata": {"turn": t}} for t in ranked], {}, 1.0)


def test_the_verdict_counts_only_whole_evidence_in_the_first_ten() -> None:
    filler = [f"f{n}" for n in range(DEPTH)]
    whole = answer_with(("a", "b"), ["a", "b", *filler])
    half = answer_with(("a", "b"), ["a", *filler, "b"])
    assert whole.found
    assert not half.found
    assert verdict([whole] * 5 + [half])[0] == 0
    code, text = verdict([whole] * 4 + [half] * 2)
    assert code == 1
    assert "missing b" in text

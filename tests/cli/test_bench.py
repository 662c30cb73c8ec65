"""The benchmark's arithmetic, its file format, and a small bank built straight through the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recalld.daemon.bench import data, locomo, score, synthetic, texts
from recalld.daemon.bench.baselines import Bm25, fuse
from recalld.daemon.bench.scale import engine
from recalld.daemon.bench.turns import TurnFinder
from recalld.daemon.commands.common import CommandError


def sample(number: int) -> dict[str, object]:
    return {
        "sample_id": f"s{number}",
        "conversation": {
            "speaker_a": "A",
            "session_2_date_time": "12:05 am on 3 March, 2024",
            "session_2": [{"speaker": "B", "dia_id": "D2:1", "text": "Look.", "blip_caption": "a red boat"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "A", "dia_id": "D1:1", "text": "Hello."},
                {"speaker": "B", "dia_id": "D1:2", "text": "Hi."},
            ],
        },
        "qa": [
            {"question": "q?", "evidence": ["D2:1", "D9:9"], "category": 2},
            {"question": "none", "evidence": ["D9:9"], "category": 1},
        ],
    }


def test_a_file_is_read_in_the_order_of_its_sessions(tmp_path: Path) -> None:
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([sample(n) for n in range(7)]))
    talks = data.load(file)
    turns = talks[0].turns
    assert [turn.id for turn in turns] == ["D1:1", "D1:2", "D2:1"]
    assert turns[0].text == "A: Hello."
    assert turns[2].text == "B: Look. [shares a red boat]"
    assert turns[0].when == "2023-05-08T13:56:00+00:00"
    assert turns[2].when == "2024-03-03T00:05:00+00:00"
    assert [question.evidence for question in talks[0].questions] == [("D2:1",)]
    assert talks[0].questions[0].category == "temporal"
    tuned, held = data.load(file, "tune"), data.load(file, "held")
    assert [talk.id for talk in tuned] == ["s0", "s1", "s5", "s6"]
    assert [talk.id for talk in held] == ["s2", "s3", "s4"]


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    for text in ("{}x", "[1]", '[{"conversation": {}}]'):
        file.write_text(text)
        with pytest.raises(CommandError, match="LoCoMo"):
            data.load(file)


def test_each_form_sends_every_turn_once(tmp_path: Path) -> None:
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([sample(0)]))
    talk = data.load(file)[0]
    by_form = {form: locomo.calls(talk, form) for form in ("document", "single", "append")}
    for calls in by_form.values():
        assert [item["metadata"]["dia_id"] for call in calls for item in call] == ["D1:1", "D1:2", "D2:1"]
    assert [len(call) for call in by_form["document"]] == [2, 1]
    assert all("document_id" not in item for call in by_form["single"] for item in call)
    assert all(item["update_mode"] == "append" for call in by_form["append"] for item in call)


def test_both_variants_stand_side_by_side() -> None:
    plan = locomo.Plan(Path("x"), "document", "held", False, 0, "mid", {"runtime": "inline"}, None, date_suffix="both")
    variants = plan.variants()
    assert [settings["embedding.date_suffix"] for settings in variants.values()] == ["false", "true"]
    assert all(settings["runtime"] == "inline" for settings in variants.values())
    asked = [score.Asked("temporal", ("a",), ("a",), {})]
    outcomes = {name: locomo.Outcome(asked=asked, items=4, retain_seconds=2.0) for name in variants}
    made = locomo.report(plan, outcomes, {"BM25": asked}, [data.Conversation("s", (), ())], 0)
    assert list(made.data["quality"]) == [*variants, "BM25"]
    assert [row[0] for row in made.tables[0][2]] == [*variants, "BM25"]
    assert made.data["speed"][next(iter(variants))]["retain_items_per_second"] == 2.0


def test_extraction_stands_beside_the_turns_as_they_are() -> None:
    plan = locomo.Plan(Path("x"), "session", "all", False, 0, "mid", {}, None, extraction="both")
    assert plan.variants() == {"recalld": {}, "recalld, verbatim": {"retain.extraction_mode": "verbatim"}}
    outcomes = {
        "recalld": locomo.Outcome([score.Asked("temporal", ("a",), ("a",), {})], texts=["b"], tokens=1),
        "recalld, verbatim": locomo.Outcome([score.Asked("temporal", ("a",), ("b",), {})], texts=["a", "b"], tokens=3),
    }
    made = locomo.report(plan, outcomes, {}, [data.Conversation("s", (), ())], 3)
    assert made.data["size"]["recalld"] == {"units": 1, "tokens": 1}
    assert made.data["size"]["turns"]["tokens"] == 3
    assert made.data["quality"]["recalld"]["all"]["@1"] == 1
    assert made.data["quality"]["recalld, verbatim"]["all"]["@1"] == 0


def test_a_unit_is_traced_to_the_turns_whose_words_it_holds() -> None:
    turns = [
        data.Turn("D1:1", "Ana: Where did you buy that red kayak?", "s1", None),
        data.Turn("D1:2", "Ben: In Lyon, at the spring market.", "s1", None),
        data.Turn("D1:3", "Ana: My sister paints houses.", "s1", None),
        data.Turn("D2:1", "Ana: My sister paints houses in Lyon.", "s2", None),
    ]
    finder = TurnFinder(turns)
    assert finder.find("s1", "Ana's sister paints houses.") == ("D1:3",)
    exchange = "Ana: Where did you buy that red kayak?\nBen: In Lyon, at the spring market."
    assert set(finder.find("s1", exchange)) == {"D1:1", "D1:2"}
    assert finder.find("s1", "zeppelin") == ()
    assert finder.find("s9", exchange) == ()


def test_spaced_turns_stay_in_order_and_in_their_session(tmp_path: Path) -> None:
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([sample(0)]))
    talk = data.load(file)[0]
    assert locomo.spaced(talk, 0) == talk
    apart = locomo.spaced(talk, 90)
    assert [turn.when for turn in apart.turns] == [
        "2023-05-08T13:56:00+00:00",
        "2023-05-08T15:26:00+00:00",
        "2024-03-03T00:05:00+00:00",
    ]
    assert [turn.id for turn in apart.turns] == [turn.id for turn in talk.turns]


def test_metrics_of_a_question_by_hand() -> None:
    asked = score.Asked(
        "temporal", ("a", "b"), ("x", "a", "a", *(f"f{n}" for n in range(8)), "b"), {512: frozenset({"a"})}
    )
    metrics = score.question_metrics(asked)
    assert metrics["@1"] == 0
    assert metrics["@5"] == 0.5
    assert metrics["@10"] == 0.5
    assert metrics["@20"] == 1.0
    assert metrics["mrr"] == 0.5
    assert metrics["512t"] == 0.5
    assert metrics["4096t"] == 0
    means = score.summary([asked, score.Asked("other", ("z",), (), {})])
    assert means["all"]["@20"] == 0.5
    assert means["temporal"]["@20"] == 1.0
    assert means["other"]["mrr"] == 0


def test_budgets_hold_the_longest_prefix_that_fits() -> None:
    inside = score.inside_budgets(["a", "b", "c"], [500, 12, 600])
    assert inside[512] == {"a", "b"}
    assert inside[1024] == {"a", "b"}
    assert inside[2048] == {"a", "b", "c"}


def test_percentiles_are_values_that_were_measured() -> None:
    times = [float(n) for n in range(1, 101)]
    assert score.percentiles(times) == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "mean": 50.5}
    assert score.percentiles([7.0])["p99"] == 7.0


def test_the_plain_methods_rank_as_their_formulas_say() -> None:
    bm25 = Bm25([["cat", "dog"], ["cat", "cat", "cat"], ["bird"]])
    scores = bm25.score(["cat"])
    assert scores[1] > scores[0] > scores[2] == 0
    assert bm25.score(["bird"])[2] > scores[0], "a rarer term weighs more"
    fused = fuse(scores, bm25.score(["bird"]))
    assert fused.argmax() in (1, 2)


def test_made_up_texts_are_the_same_in_every_run() -> None:
    assert list(texts.turns(20)) == list(texts.turns(20))
    queries = texts.queries(300)
    assert queries == texts.queries(300)
    assert len(set(queries)) == 300


def test_a_made_up_bank_answers_from_its_arms(tmp_path: Path) -> None:
    from recalld.actors.embedding import Embedder
    from recalld.actors.models import find_model

    embedder = Embedder(find_model("default"), force_cpu=True)
    row = engine(tmp_path / "home", 1500, embedder, synthetic.seeds(embedder), texts.queries(14))
    assert row["units"] == 1500
    assert row["disk_bytes"] > 1_000_000
    assert row["engine"]["p50"] > 0
    assert {"semantic", "keyword", "late"} <= set(row["engine_parts_p50"])

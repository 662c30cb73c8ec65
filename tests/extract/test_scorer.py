"""The scorer of labelled items: what counts as right, and that nothing is won by keeping less."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recalld.actors.retain.extraction import Fact
from recalld.daemon.bench.commands import app
from recalld.daemon.bench.extraction import WANTED, figures
from recalld.daemon.bench.labelled import Judged, LabelledItem, judge, load, parse
from recalld.daemon.commands.common import CommandError
from recalld.storage.records import EXPERIENCE, EntityMention

LABELLED = Path(__file__).parent / "labelled"


def item(facts: list[dict[str, Any]] | None = None, **fields: Any) -> LabelledItem:
    row = {
        "id": "x",
        "source": "chat",
        "language": "en",
        "tags": [],
        "item": {"content": "words", "timestamp": "2026-06-12T19:17:00+08:00"},
        "facts": facts or [],
    }
    return parse(row | fields)


def wrong(judged: Judged) -> list[str]:
    return [check.figure for check in judged.misses]


def instant(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * 1_000_000


def test_a_lost_fact_is_wrong_in_every_field_it_has() -> None:
    label = {"keys": [["tea"]], "speaker": ["Ana"], "network": "world", "polarity": 1, "dates": None}
    assert wrong(judge(item([label]), [])) == ["found", "speaker/subject", "network", "polarity", "dates"]
    judged = judge(item([label]), [Fact("Ana likes tea", speaker="Ana")])
    assert wrong(judged) == []
    assert figures([judged])["dates"].share == 1


def test_days_are_those_of_the_zone_of_the_item() -> None:
    label = {"keys": [["tea"]], "dates": [["2026-06-11", "2026-06-11"]]}
    local = Fact(
        "tea", occurred_start=instant("2026-06-10T16:00:00+00:00"), occurred_end=instant("2026-06-11T15:59:59+00:00")
    )
    utc = Fact(
        "tea", occurred_start=instant("2026-06-11T00:00:00+00:00"), occurred_end=instant("2026-06-11T23:59:59+00:00")
    )
    assert wrong(judge(item([label]), [local])) == []
    assert wrong(judge(item([label]), [utc])) == ["dates"]
    assert wrong(judge(item([label]), [Fact("tea")])) == ["dates"]


def test_a_negation_must_be_in_the_field_and_in_the_words() -> None:
    label = {"keys": [["meat"]], "must": [["not", "n't"]], "polarity": -1}
    assert wrong(judge(item([label]), [Fact("Ana doesn't eat meat", polarity=-1)])) == []
    assert wrong(judge(item([label]), [Fact("Ana doesn't eat meat")])) == ["polarity"]
    assert wrong(judge(item([label]), [Fact("Ana eats meat", polarity=-1)])) == ["wording", "polarity"]


def test_a_word_is_found_from_its_start_and_a_short_one_whole() -> None:
    label = {"keys": [["no"], ["walk"]]}
    assert wrong(judge(item([label]), [Fact("Ana knows about walking")])) == ["found"]
    assert wrong(judge(item([label]), [Fact("No, Ana walked")])) == []


def test_a_subject_is_named_by_the_field_or_else_by_the_text() -> None:
    label = {"keys": [["Lyon"]], "subject": ["Ana"]}
    assert wrong(judge(item([label]), [Fact("Ana moved to Lyon")])) == []
    assert wrong(judge(item([label]), [Fact("She moved to Lyon", subject="Ana")])) == []
    assert wrong(judge(item([label]), [Fact("She moved to Lyon")])) == ["speaker/subject"]
    assert wrong(judge(item([label]), [Fact("Ben says Ana moved to Lyon", subject="Ben")])) == ["speaker/subject"]
    sister = Fact("Ana: My sister Lena moved to Lyon", subject="Ana's sister Lena")
    assert wrong(judge(item([label]), [sister])) == ["speaker/subject"]
    assert wrong(judge(item([label | {"subject": ["Lena"]}]), [sister])) == []


def test_claims_in_one_fact_are_not_split_and_an_exchange_in_two_is_not_whole() -> None:
    claims = item([{"keys": [["car"]]}, {"keys": [["cat"]]}], count=[2, 2])
    assert wrong(judge(claims, [Fact("the car"), Fact("the cat")])) == []
    assert wrong(judge(claims, [Fact("the car and the cat")])) == ["splits"]
    assert wrong(judge(claims, [Fact("the car and the cat"), Fact("a dog")])) == ["splits"]
    exchange = item([{"keys": [["park"], ["loft"]], "exchange": True}], count=[1, 1])
    assert wrong(judge(exchange, [Fact("the park, no, the loft")])) == []
    assert wrong(judge(exchange, [Fact("the park?"), Fact("the loft")])) == ["exchanges"]


def test_what_must_not_be_taken_as_fact_may_be_kept_with_its_condition_or_as_a_question() -> None:
    rule = {"keys": [["lighthouse"]], "without": ["if", "would"], "why": "hypothetical"}
    one = item(forbidden=[rule])
    assert wrong(judge(one, [Fact("Lars would buy a lighthouse")])) == []
    assert wrong(judge(one, [Fact("Lars and a lighthouse?", question=True)])) == []
    assert wrong(judge(one, [Fact("Lars bought a lighthouse")])) == ["restraint"]
    role = item(forbidden=[{"keys": [["lighthouse"]], "speaker": ["user"], "why": "role"}])
    assert wrong(judge(role, [Fact("a lighthouse", speaker="User")])) == ["speaker/subject"]
    assert wrong(judge(role, [Fact("a lighthouse", speaker="Assistant", network=EXPERIENCE)])) == []


def test_junk_is_what_is_kept_of_junk_items_and_parts() -> None:
    assert wrong(judge(item(junk=True), [Fact("ok")])) == ["junk left out"]
    part = item(junk_parts=[[["regards"]]])
    assert wrong(judge(part, [Fact("Kind regards, Ana")])) == ["junk left out"]
    assert wrong(judge(part, [Fact("Ana came")])) == []


def test_entities_count_once_by_name_and_kind_and_speakers_not_at_all() -> None:
    one = item(
        [{"keys": [["office"]], "speaker": ["Ana"]}],
        entities=[
            {"name": ["Dr. Holm", "Renate Holm"], "kind": ["PERSON"]},
            {"name": ["Gera"], "kind": ["LOCATION"]},
            {"name": ["Java"], "kind": ["PRODUCT"], "optional": True},
        ],
    )
    entities = (
        EntityMention("Holm", "PERSON"),
        EntityMention("Renate Holm", "PERSON"),
        EntityMention("Gera", "ORG"),
        EntityMention("Ana", "PERSON"),
        EntityMention("Java", "CONCEPT"),
        EntityMention("office", "CONCEPT"),
        EntityMention("Tuesdays", "CONCEPT"),
    )
    judged = judge(one, [Fact("office", speaker="Ana", entities=entities)])
    notes = [check.note for check in judged.misses]
    assert notes == ["'gera' is ORG, not LOCATION", "invented 'tuesdays' (CONCEPT)"]
    found = figures([judged])["entities"]
    assert (found.precision, found.recall) == (pytest.approx(1 / 3), pytest.approx(1 / 2))


def test_the_labelled_set_has_what_it_claims() -> None:
    for name in ("held.jsonl", "tuning.jsonl"):
        items = load([LABELLED / name])
        assert len(items) >= 135
        assert {one.source for one in items} == {"chat", "email", "notes", "transcript", "json"}
        for language in ("zh", "ja", "es", "de"):
            assert sum(one.language == language for one in items) >= 8
        for tag in ("split", "exchange", "junk", "negation", "dates"):
            assert sum(tag in one.tags for one in items) >= 20


def test_an_id_used_twice_and_a_broken_line_are_named(tmp_path: Path) -> None:
    row = {"id": "x", "source": "chat", "language": "en", "tags": [], "item": {"content": "a"}, "facts": []}
    file = tmp_path / "items.jsonl"
    file.write_text(f"{json.dumps(row)}\n{json.dumps(row)}\n")
    with pytest.raises(CommandError, match="uses the id x again"):
        load([file])
    file.write_text('{"id": "x"}\n')
    with pytest.raises(CommandError, match=r"Line 1 .* is not a labelled item"):
        load([file])


def test_the_command_prints_every_miss_and_with_totals_only_none(tmp_path: Path) -> None:
    row = {
        "id": "odd",
        "source": "chat",
        "language": "en",
        "tags": [],
        "item": {"content": "Ana: I own a [red] boat.", "timestamp": "2026-06-12T19:17:00+08:00"},
        "facts": [{"keys": [["zeppelin"]]}],
    }
    file = tmp_path / "items.jsonl"
    file.write_text(json.dumps(row) + "\n")
    full = CliRunner().invoke(app, ["extract", str(file)])
    assert full.exit_code == 0, full.output
    assert "[red] boat" in full.output and "nothing says: zeppelin" in full.output
    totals = CliRunner().invoke(app, ["extract", str(file), "--totals-only"])
    assert "found" in totals.output and "zeppelin" not in totals.output and "boat" not in totals.output
    data = json.loads(CliRunner().invoke(app, ["extract", str(file), "--totals-only", "--json"]).output)
    assert data["figures"]["found"]["share"] == 0 and "misses" not in data


def test_the_examples_of_the_manual_run(monkeypatch: pytest.MonkeyPatch) -> None:
    root = LABELLED.parents[2]
    monkeypatch.chdir(root)
    lines = [
        line for line in (root / "docs/cli.md").read_text().splitlines() if line.startswith("recalld bench extract")
    ]
    assert len(lines) == 3
    for line in lines:
        result = CliRunner().invoke(app, line.split()[2:])
        assert result.exit_code == 0, result.output
        assert "labelled items" in result.output


def test_the_figures_wanted_are_those_promised() -> None:
    assert WANTED == {
        "dates": 0.95,
        "speaker/subject": 0.95,
        "polarity": 0.97,
        "network": 0.9,
        "entities": 0.85,
        "junk left out": 0.97,
    }

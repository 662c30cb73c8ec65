"""What a recall finds and says, over HTTP on a running daemon in both runtimes."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from typing import Any

import pytest
from e2e_daemon import Bank, Daemon

CJK = {
    "外币汇率换算由财务部的林芳负责": ["外币汇率", "现在外币的汇率换算是谁在负责？"],
    "経費精算の締切は毎月25日": ["経費精算", "経費精算の締切はいつですか？"],
    "회의실 예약은 민지가 담당": ["회의실", "회의실 예약은 누가 담당하나요?"],
}


def arm_of(answer: dict[str, Any], name: str) -> dict[str, Any]:
    arm: dict[str, Any] = next(one for one in answer["trace"]["retrieval_results"] if one["method_name"] == name)
    return arm


def window_of(answer: dict[str, Any]) -> tuple[str, str] | None:
    """The window a recall read from its question, as (first day, last day)."""
    window = answer["trace"]["query"]["temporal_constraint"]
    return None if window is None else (window[0][:10], window[1][:10])


def test_the_keyword_arm_alone_reads_chinese_japanese_and_korean(bank: Bank) -> None:
    bank.retain(*({"content": text} for text in CJK), "The weather was fine.", "会议在星期五举行。")
    for text, queries in CJK.items():
        for query in queries:
            assert bank.texts(query, arms=["keyword"])[0] == text, query
            assert bank.texts(query)[0] == text, query


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Cafe\u0301 Zoe\u0308 opens at nine.", "Caf\u00e9 Zo\u00eb"),
        ("Caf\u00e9 Zo\u00eb opens at nine.", "Cafe\u0301 Zoe\u0308"),
        ("The part number is ＡＢＣ１２３.", "ABC123"),
        ("The part number is ABC123.", "ＡＢＣ１２３"),
        ("مدير المشروع هو سامي", "سامي"),
        ("The door code is \u202e4711\u202c now and then.", "door code 4711"),
        ("STRASSE is written Straße here.", "straße"),
    ],
)
def test_what_looks_the_same_is_found_by_its_words(bank: Bank, stored: str, asked: str) -> None:
    bank.retain({"content": stored, "document_id": "d"}, {"content": "Nothing of the kind.", "document_id": "e"})
    assert bank.texts(asked, arms=["keyword"]) == [stored]
    assert bank.texts(asked)[0] == stored
    # Stored as it was sent, mark by mark.
    assert bank.get("/documents/d")["original_text"] == stored


@pytest.mark.parametrize(
    "query",
    [
        r"C:\repo\src\main.py",
        "`foo`",
        "a/b|c (d)",
        "the of and",
        'x"',
        "mcp",
        "NOT AND OR x*",
        "'; --x",
        "{$ne:1}",
        "a:b^2~",
    ],
)
def test_a_query_is_words_never_a_query_language(bank: Bank, query: str) -> None:
    bank.retain(r"The build reads C:\repo\src\main.py first.", "`foo` is a/b|c (d) and the mcp of x.")
    assert bank.post_recall(query).status == 200
    assert bank.post_recall(query, arms=["keyword"]).status == 200
    assert bank.texts(r"C:\repo\src\main.py")[0].startswith("The build reads")


@pytest.mark.parametrize("query", ["", "   ", '"', "...", "\u202e"])
def test_a_query_without_a_word_is_422(bank: Bank, query: str) -> None:
    bank.retain("Ana likes tea.")
    answer = bank.post_recall(query)
    assert answer.status == 422 and answer.detail[0]["loc"] == ["body", "query"]


@pytest.mark.parametrize(
    ("query", "now", "window"),
    [
        # Tuesday 2026-11-24 is the last one before Monday the 30th; a port is no year.
        ("what runs on port 9077 since last Tuesday", "2026-11-30T12:00:00Z", ("2026-11-24", "2026-11-30")),
        ("what runs on port 9077", "2026-11-30T12:00:00Z", None),
        ("what did we decide on 10 June 2026", "2026-11-30T12:00:00Z", ("2026-06-10", "2026-06-10")),
        ("what do we do with me", "2026-11-30T12:00:00Z", None),
        ("what happened yesterday", "2025-03-01T09:00:00Z", ("2025-02-28", "2025-02-28")),
        ("这种鸟十万年前在哪里", "2026-11-30T12:00:00Z", None),
    ],
)
def test_date_words_give_the_window_they_say(bank: Bank, query: str, now: str, window: tuple[str, str] | None) -> None:
    bank.retain("Ana likes tea.")
    assert window_of(bank.recall(query, query_timestamp=now, trace=True)) == window


def test_ages_beyond_the_calendar_leave_the_bank_usable(bank: Bank) -> None:
    bank.retain("这种鸟十万年前就有了")
    assert bank.texts("这种鸟")[0] == "这种鸟十万年前就有了"
    unit = bank.list()[0]
    assert unit["occurred_start"] is None
    bank.usable()


def test_recency_counts_from_the_query_timestamp(bank: Bank) -> None:
    bank.retain(
        {"content": "The team meets in room Orion.", "timestamp": "2024-01-10T00:00:00Z", "document_id": "a"},
        {"content": "The team meets in room Lyra.", "timestamp": "2025-06-10T00:00:00Z", "document_id": "b"},
    )

    def recency(at: str) -> dict[str, float]:
        answer = bank.recall("Where does the team meet?", query_timestamp=at, trace=True)
        return {one["text"]: one["score_components"]["boosts"]["recency"] for one in answer["trace"]["reranked"]}

    later = recency("2025-06-11T00:00:00Z")
    assert later["The team meets in room Lyra."] > later["The team meets in room Orion."]
    # A year back Orion was a day old; what lies ahead of the question is not newer than new.
    then, much_later = recency("2024-01-11T00:00:00Z"), recency("2026-11-30T00:00:00Z")
    assert then["The team meets in room Orion."] > later["The team meets in room Orion."]
    assert much_later["The team meets in room Lyra."] < later["The team meets in room Lyra."]


def test_all_four_networks_come_by_default_each_labelled_and_opinions_with_confidence(bank: Bank) -> None:
    bank.retain(
        {"content": "Rust was released in 2015.", "document_id": "w"},
        {"content": "assistant: I rewrote the server in Rust.", "document_id": "e"},
        {"content": "I think Rust is better than Go for servers.", "document_id": "o"},
        {"content": "I am certain that Rust is the best choice.", "document_id": "o2"},
    )
    for fields in ({}, {"types": None}, {"types": []}, {"types": ["world", "experience", "opinion", "observation"]}):
        results = bank.recall("What about Rust?", **fields)["results"]
        assert {one["text"]: one["type"] for one in results} == {
            "Rust was released in 2015.": "world",
            "assistant: I rewrote the server in Rust.": "experience",
            "I think Rust is better than Go for servers.": "opinion",
            "I am certain that Rust is the best choice.": "opinion",
        }
        sure = {one["text"]: one.get("confidence") for one in results}
        assert (
            0
            < sure["I think Rust is better than Go for servers."]
            < sure["I am certain that Rust is the best choice."]
            <= 1
        )
        assert sure["Rust was released in 2015."] is None
    assert [one["type"] for one in bank.recall("Rust", types=["opinion"])["results"]] == ["opinion", "opinion"]
    unknown = bank.post_recall("Rust", types=["opinions"])
    assert unknown.status == 422 and isinstance(unknown.detail, str)


@pytest.mark.parametrize("arm", ["semantic", "keyword", "graph", "temporal"])
def test_each_arm_alone_answers(bank: Bank, arm: str) -> None:
    bank.retain(
        {"content": "The bridge was closed on 4 March 2025.", "document_id": "a", "entities": [{"text": "bridge"}]},
        {"content": "Engineers inspected the bridge.", "document_id": "b", "entities": [{"text": "bridge"}]},
        {"content": "Cherries are ripe.", "document_id": "c"},
    )
    answer = bank.recall("When was the bridge closed in March 2025?", arms=[arm], trace=True)
    assert answer["results"][0]["text"] in (
        "The bridge was closed on 4 March 2025.",
        "Engineers inspected the bridge.",
    )
    assert arm_of(answer, arm)["metadata"]["status"] == "ok"
    assert {
        one["method_name"]: one["metadata"]["status"]
        for one in answer["trace"]["retrieval_results"]
        if one["method_name"] != arm
    } == dict.fromkeys({"semantic", "keyword", "graph", "temporal"} - {arm}, "off")
    if arm == "temporal":
        assert [one["text"] for one in answer["results"]] == ["The bridge was closed on 4 March 2025."]


def test_a_deadline_leaves_parts_out_and_says_which(bank: Bank) -> None:
    bank.retain(*({"content": f"Report {n} says the valve {n} was replaced in May 2025."} for n in range(60)))
    question = "Which valve was replaced in May 2025?"
    whole = bank.recall(question)
    assert "degraded" not in whole and whole["timings_ms"]["total"] > 0
    hurried = bank.recall(question, max_ms=1, trace=True)
    assert hurried["results"], "a deadline shortens the work, it never empties the answer"
    assert set(hurried["degraded"]) & {"graph", "temporal", "late interaction"}
    assert hurried["trace"]["summary"]["degraded"] == hurried["degraded"]
    assert bank.recall(question, max_ms=60_000).get("degraded") is None


def test_why_not_names_the_gate_that_dropped_a_memory(bank: Bank) -> None:
    bank.retain(
        {"content": "Ana lives in Lyon.", "document_id": "a", "tags": ["x"]},
        {"content": "I think Lyon is better than Paris.", "document_id": "b", "tags": ["x"]},
        {"content": "Lyon lies on two rivers.", "document_id": "c", "tags": ["y"]},
        {"content": "Quarks come in six flavours.", "document_id": "d", "tags": ["x"]},
        {"content": "Lyon was called Lugdunum.", "document_id": "old", "tags": ["x"]},
    )
    ids = {one["text"]: one["id"] for one in bank.list()}
    bank.retain({"content": "Lyon was called Lugdunum by the Romans.", "document_id": "old", "tags": ["x"]})
    stranger = str(uuid.uuid4())
    answer = bank.recall(
        "Who lives in Lyon?",
        tags=["x"],
        tags_match="all_strict",
        types=["world"],
        min_scores={"semantic": 0.3},
        why_not=[*ids.values(), stranger],
    )
    said = answer["trace"]["why_not"]
    assert {text: said[one]["gate"] for text, one in ids.items()} == {
        "Ana lives in Lyon.": "returned",
        "I think Lyon is better than Paris.": "network",
        "Lyon lies on two rivers.": "tags",
        "Quarks come in six flavours.": "no arm",
        "Lyon was called Lugdunum.": "not live",
    }
    assert said[stranger]["gate"] == "unknown id"
    assert said[ids["Ana lives in Lyon."]]["rank"] == 1
    small = bank.recall("Who lives in Lyon? Lyon Paris rivers", max_tokens=8, why_not=list(ids.values()))
    assert "max_tokens" in {one["gate"] for one in small["trace"]["why_not"].values()}


def test_known_time_and_valid_time_rewind(bank: Bank) -> None:
    bank.retain({"content": "The director is Mirela Ionescu.", "document_id": "board"})
    then = bank.get("/documents/board")["updated_at"]
    bank.retain({"content": "The director is Otto Brandt.", "document_id": "board"})
    assert bank.texts("Who is the director?") == ["The director is Otto Brandt."]
    for arm in ("semantic", "keyword", "graph"):
        assert bank.texts("Who is the director?", as_of=then, arms=[arm]) == ["The director is Mirela Ionescu."]
    bank.retain(
        {"content": "Rhea stayed in Bergen in May 2024.", "document_id": "s1"},
        {"content": "Rhea stayed in Turku in June 2024.", "document_id": "s2"},
    )
    question = "Where did Rhea stay?"
    stays = {"Rhea stayed in Bergen in May 2024.", "Rhea stayed in Turku in June 2024."}
    assert stays <= set(bank.texts(question))
    assert stays & set(bank.texts(question, valid_at="2024-05-15T00:00:00Z")) == {"Rhea stayed in Bergen in May 2024."}
    assert stays & set(bank.texts(question, valid_at="2024-06-15T00:00:00Z")) == {"Rhea stayed in Turku in June 2024."}
    assert stays & set(bank.texts(question, valid_at="2023-01-01T00:00:00Z")) == set()
    for field in ("as_of", "valid_at", "query_timestamp"):
        refused = bank.post_recall(question, **{field: "soon"})
        assert refused.status == 400 and field in refused.detail


def test_the_same_sentence_retained_twice_speaks_once(bank: Bank) -> None:
    for document in ("a", "b"):
        bank.retain({"content": "The spare key is under the third pot.", "document_id": document})
    bank.retain("The pots are blue.")
    found = bank.texts("Where is the spare key?")
    assert found.count("The spare key is under the third pot.") == 1
    assert found[0] == "The spare key is under the third pot."
    # Deleting one of its documents does not silence the other.
    assert bank.send("DELETE", "/documents/a").status == 200
    assert bank.texts("Where is the spare key?").count("The spare key is under the third pot.") == 1


def test_neighbours_in_a_conversation_lead_to_the_answer(bank: Bank) -> None:
    turns = [
        "Ana: Did you bring the passport to the embassy?",
        "Ben: Yes, I took it there on Friday.",
        "Ana: Great. What about lunch?",
        "Ben: I had soup.",
    ]
    bank.retain({"content": "\n".join(turns), "document_id": "talk", "timestamp": "2026-05-13T10:00:00Z"})
    bank.retain(*({"content": f"The parcel number {n} arrived late."} for n in range(20)))
    found = bank.texts("When was the passport taken to the embassy?")
    assert any(text.startswith(turns[1].rstrip(".")) for text in found[:2]), found[:4]


def test_words_of_a_zone_are_read_in_that_zone(bank: Bank) -> None:
    bank.retain(
        {"content": "Ana started dinner now.", "timestamp": "2026-06-12T19:17:00+08:00", "document_id": "dinner"},
        {"content": "Last week the pump failed.", "timestamp": "2026-05-13", "document_id": "pump"},
    )
    units = {one["document_id"]: one for one in bank.list()}
    assert units["dinner"]["mentioned_at"] == "2026-06-12T11:17:00.000000+00:00"
    assert (units["pump"]["occurred_start"][:10], units["pump"]["occurred_end"][:10]) == ("2026-05-04", "2026-05-10")


def test_without_a_timestamp_the_server_time_is_the_anchor_and_said_to_be_assumed(bank: Bank) -> None:
    with_time = bank.retain({"content": "Last week the pump failed.", "timestamp": "2026-05-13"})
    without = bank.retain("Last week the pump leaked.")
    assert "time_assumed" not in with_time["receipt"][0]
    assert without["receipt"][0]["time_assumed"] > 1_700_000_000_000_000


def test_a_tag_matches_only_itself(bank: Bank) -> None:
    tags = ['x" OR "1"="1', "*", "{$ne:1}", "a,b", "ä", "A", "a"]
    bank.retain(*({"content": f"Card number {n} is filed.", "tags": [tag]} for n, tag in enumerate(tags)))
    for n, tag in enumerate(tags):
        assert bank.texts("Which card is filed?", tags=[tag], tags_match="any_strict") == [f"Card number {n} is filed."]
        listed = bank.list(tags=json.dumps([tag]), tags_match="any_strict")
        assert [one["text"] for one in listed] == [f"Card number {n} is filed."]


def test_a_query_of_sixty_thousand_words_is_cut_not_refused(bank: Bank) -> None:
    bank.retain("Spam came in boxes.", "The ham was fine.")
    begun = time.monotonic()
    answer = bank.recall(" ".join(["spam"] * 60_000))
    assert answer["results"][0]["text"] == "Spam came in boxes."
    assert time.monotonic() - begun < 2
    bank.usable()


def test_a_repeated_recall_gives_the_same_answer(bank: Bank) -> None:
    bank.retain(*(f"Fact {n} is about the number {n * n}." for n in range(40)))
    first = bank.recall("Which fact is about 81?", query_timestamp="2026-01-01T00:00:00Z")["results"]
    for _ in range(3):
        assert bank.recall("Which fact is about 81?", query_timestamp="2026-01-01T00:00:00Z")["results"] == first
    assert "81" in first[0]["text"]


def test_no_text_of_a_memory_is_logged(bank: Bank, daemon: Daemon) -> None:
    bank.retain("The secret marker is zanzibarquokka.")
    bank.recall("What is zanzibarquokka?")
    assert "zanzibarquokka" not in daemon.printed
    home = subprocess.run(
        ["grep", "-rl", "zanzibarquokka", str(daemon.home / "run")], capture_output=True, text=True, check=False
    )
    assert home.stdout == ""

"""Bad input on a running daemon: a clear error in shape or an answer, nothing lost, the bank usable after."""

from __future__ import annotations

import json
import random
import string
import time
import unicodedata
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from e2e_daemon import Answer, Bank, Daemon, command

BEFORE = "The almanac says that Petra keeps bees."
LONG_WORD = "a" * 100_000
LONG_URL = "https://example.org/" + "path/" * 1790 + "end"
EMOJI = "🎉🎊🥳👩‍👩‍👧‍👦"
NIL = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def held(bank: Bank) -> Iterator[Bank]:
    """A bank that holds a memory: after the test it must still hold it, and be usable."""
    bank.retain({"content": BEFORE, "document_id": "before"})
    yield bank
    bank.usable()
    assert bank.texts("Who keeps bees?")[0] == BEFORE
    assert bank.get("/documents/before")["original_text"] == BEFORE
    assert all(isinstance(value, str) for unit in bank.list() for value in unit["metadata"].values())


def refused(answer: Answer, status: int, *words: str) -> None:
    """A refusal in the contract's shape: a sentence, or a validation list that says where; no internals in it."""
    assert answer.status == status, answer.body
    detail = answer.detail
    assert (isinstance(detail, str) and detail) or all({"type", "loc", "msg"} <= set(one) for one in detail)
    text = json.dumps(answer.body)
    assert "Traceback" not in text and 'File "' not in text and "lmdb" not in text
    for word in words:
        assert word in text, (word, text)


# --- texts ------------------------------------------------------------------------------------------------------------


def test_nul_characters_are_taken_out_everywhere(held: Bank) -> None:
    item = {
        "content": "Ana\u0000 likes tea.",
        "document_id": "d\u0000oc",
        "context": "a\u0000 chat",
        "tags": ["t\u0000ag"],
        "metadata": {"k\u0000ey": "val\u0000ue"},
        "entities": [{"text": "Te\u0000a"}],
    }
    held.retain(item)
    (unit,) = held.list(document_id="doc")
    assert (unit["text"], unit["context"], unit["tags"]) == ("Ana likes tea.", "a chat", ["tag"])
    assert unit["metadata"] == {"key": "value"} and "Tea" in unit["entities"]
    assert held.texts("What does Ana\u0000 like?")[0] == "Ana likes tea."
    assert "\\u0000" not in json.dumps(held.get("/documents")) + json.dumps(held.get("/entities"))
    refused(held.post_items("\u0000\u0000"), 422, "content")


def test_lone_surrogates_become_replacement_characters(held: Bank) -> None:
    item = (
        '{"content": "Half \\ud83d an emoji.", "tags": ["t\\udc00"], "metadata": {"a": "\\ud83d"}, "document_id": "d"}'
    )
    raw = f'{{"items": [{item}]}}'.encode()
    assert held.send("POST", "/memories", raw).status == 200
    (unit,) = held.list(document_id="d")
    assert (unit["text"], unit["tags"], unit["metadata"]) == ("Half \ufffd an emoji.", ["t\ufffd"], {"a": "\ufffd"})
    # Two halves that belong together are one character.
    held.send("POST", "/memories", b'{"items": [{"content": "A whole \\ud83c\\udf89 one.", "document_id": "e"}]}')
    assert held.list(document_id="e")[0]["text"] == "A whole 🎉 one."
    assert held.send("POST", "/memories/recall", b'{"query": "half \\ud83d emoji"}').body["results"]
    operation = held.send("POST", "/memories", b'{"async": true, "items": [{"content": "later \\udfff on"}]}').body
    assert held.wait_for(operation["operation_id"])["status"] == "completed"


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b'"x"', b"", b'{"items": [{"content": "a}', b"\xff\xfe{}", b"nul", b"1e999"]
)
def test_bodies_that_are_no_json_object_are_422(held: Bank, raw: bytes) -> None:
    refused(held.send("POST", "/memories", raw), 422, "body")
    refused(held.send("POST", "/memories/recall", raw), 422, "body")


@pytest.mark.parametrize("content", ["", "   ", "\n\t ", None, 7, [], {}, [{"type": "text", "text": " "}]])
def test_blank_content_is_422_and_nothing_of_the_call_is_stored(held: Bank, content: Any) -> None:
    refused(held.post_items("A good item beside it.", {"content": content}), 422, "content")
    assert [one["text"] for one in held.list()] == [BEFORE]


def test_an_item_without_content_is_422_and_no_items_are_none(held: Bank) -> None:
    refused(held.post_items({"tags": ["x"]}), 422, "content")
    refused(held.send("POST", "/memories", {"items": None}), 422, "items")
    refused(held.send("POST", "/memories", {}), 422, "items")
    assert held.retain()["items_count"] == 0
    assert len(held.list()) == 1


@pytest.mark.parametrize("query", ["", "  ", "\n", "\u0000", "🎉", "!?", None, 5])
def test_a_query_without_a_word_is_422(held: Bank, query: Any) -> None:
    refused(held.send("POST", "/memories/recall", {"query": query}), 422, "query")
    refused(held.send("POST", "/memories/recall", {}), 422, "query")


@pytest.mark.parametrize(
    "text",
    [
        LONG_WORD,
        f"A word {LONG_WORD} in the middle.",
        f"See {LONG_URL} for the minutes.",
        EMOJI,
        f"{EMOJI} party {EMOJI}",
        "مدير المشروع هو سامي",
        "\u202eback to front\u202c",
        "\ufeffA byte order mark.",
        "Zero\u200bwidth\u2060 spaces\u00ad.",
        "ａｂｃ ＡＢＣ１２３ ﬁ ①",
        "e\u0301" * 5000,
        "\u0e33" * 2000,
        "tab\tnew\nline\r\nreturn \x07 bell \x1b[31m escape",
        "<script>alert(1)</script> <b>bold</b>",
        "'); DROP TABLE units; --",
        "{{ }} {% %} ${HOME} %s %d {0}",
    ],
    ids=lambda text: ascii(text)[:24],
)
def test_texts_of_any_kind_are_stored_as_sent(held: Bank, text: str) -> None:
    held.retain({"content": text, "document_id": "odd"})
    assert held.get("/documents/odd")["original_text"] == text
    chunks = held.get("/documents/odd/chunks")["items"]
    assert "".join(one["chunk_text"] for one in chunks).replace(" ", "").replace("\n", "") == text.replace(
        " ", ""
    ).replace("\n", "")
    if any(character.isalnum() for character in text):
        assert held.post_recall(text).status == 200
        assert held.post_recall(text, arms=["keyword"]).status == 200


def test_a_long_url_is_found_by_the_words_around_it(held: Bank) -> None:
    held.retain({"content": f"The minutes of the council are at {LONG_URL} since May."})
    # Longer than a chunk: the text is cut where the URL begins, and each part is found by its own words.
    assert held.texts("Where are the minutes of the council?")[0] == "The minutes of the council are at"
    assert held.texts("example.org", arms=["keyword"])[0].startswith("https://example.org/path/path/")


def test_same_looking_ids_in_other_forms_are_other_ids(daemon: Daemon, held: Bank) -> None:
    composed, decomposed = "Zo\u00eb", unicodedata.normalize("NFD", "Zo\u00eb")
    held.retain({"content": "One.", "document_id": composed}, {"content": "Two it is.", "document_id": decomposed})
    assert held.get("/documents/" + quote(composed))["original_text"] == "One."
    assert held.get("/documents/" + quote(decomposed))["original_text"] == "Two it is."
    for name in (composed, decomposed):
        daemon.wire.bank(held.id + name).retain(f"The bank is {len(name)} long.")
    assert daemon.wire.bank(held.id + composed).texts("How long is the bank?") == ["The bank is 3 long."]


def big_document(size: int = 2_000_000) -> tuple[str, list[str]]:
    """A text of `size` characters with a marker sentence in each tenth, between encoded attachments."""
    colours = ["red", "blue", "green", "yellow", "white", "black", "pink", "brown", "grey", "orange"]
    rng = random.Random(7)
    lines: list[str] = []
    markers = []
    for tenth, colour in enumerate(colours):
        left = size // 10
        while left > 0:
            lines.append("".join(rng.choices(string.ascii_letters + string.digits, k=1450)))
            left -= 1451
            if len(markers) == tenth and left < size // 20:
                markers.append(f"The lighthouse of bay {tenth} was painted {colour}.")
                lines.append(markers[-1])
    return "\n".join(lines), markers


def test_a_document_of_two_megabytes_is_stored_whole_and_found_in_every_tenth(held: Bank) -> None:
    text, markers = big_document()
    held.send("PATCH", "/config", {"updates": {"retain_extraction_mode": "chunks"}})
    operation = held.retain({"content": text, "document_id": "big"}, **{"async": True})["operation_id"]
    # The daemon answers others meanwhile.
    assert held.texts("Who keeps bees?")[0] == BEFORE
    assert held.wait_for(operation, seconds=120)["status"] == "completed"
    assert held.get("/documents/big")["original_text"] == text
    for marker in markers:
        assert marker in held.texts(marker)[0], marker
    # The same text again changes nothing and costs nothing.
    units = {one["id"] for one in held.list(document_id="big", limit=5000)}
    begun = time.monotonic()
    again = held.retain({"content": text, "document_id": "big"})["receipt"][0]
    assert again["chunks"] == again["chunks_unchanged"] and time.monotonic() - begun < 5
    assert {one["id"] for one in held.list(document_id="big", limit=5000)} == units


def test_a_body_beyond_the_limit_is_413(held: Bank) -> None:
    raw = b'{"items": [{"content": "' + b"x" * (65 * 2**20) + b'"}]}'
    try:
        answer = held.send("POST", "/memories", raw)
    except (BrokenPipeError, ConnectionResetError):
        return  # refused by its length while the body was still on its way
    refused(answer, 413, "max_body_mb")


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "мой проект",
        "a/b",
        "agent-1::chan-2::user-3",
        "50% off",
        "日本",
        "AND",
        "main",
        "a b+c",
        "100%25",
        "é" * 96,
        "5f0c8a1e-6f8b-4c55-9d5e-2b7f3f0a9c11",
        "a?b#c",
        "..",
        "x'; --",
    ],
)
def test_bank_ids_of_any_form_round_trip(daemon: Daemon, name: str) -> None:
    bank = daemon.wire.bank(name)
    assert bank.retain({"content": BEFORE, "document_id": "d/1"})["bank_id"] == name
    listed = daemon.wire.send("GET", "/v1/default/banks?q=" + quote(name, safe="")).body["banks"]
    assert name in [one["bank_id"] for one in listed]
    assert bank.texts("Who keeps bees?") == [BEFORE]
    assert bank.list()[0]["chunk_id"] == f"{name}_d/1_0"
    chunk = daemon.wire.send("GET", "/v1/default/chunks/" + quote(f"{name}_d/1_0", safe=""))
    assert chunk.body["chunk_text"] == BEFORE and chunk.body["bank_id"] == name
    bank.usable()
    assert bank.send("DELETE").body["deleted_count"] >= 3
    refused(bank.send("GET", "/memories/list"), 404, "not found")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("__proto__", "underscore"),
        ("_x", "underscore"),
        ("a\u0000b", "control"),
        ("a\nb", "control"),
        ("x" * 600, "192"),
        ("é" * 97, "192"),
        ("x" * 9000, "192"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_bank_ids_that_cannot_be_are_400_on_every_way_in(daemon: Daemon, name: str, rule: str) -> None:
    bank = daemon.wire.bank(name)
    refused(bank.post_items("x"), 400, rule)
    refused(bank.send("PUT", "", {}), 400, rule)
    refused(bank.post_recall("x"), 400, rule)
    refused(bank.send("GET", "/stats"), 400, rule)


def test_ids_of_six_hundred_bytes_work_or_are_refused_with_the_reason(held: Bank) -> None:
    long = "д" * 300
    item = {
        "content": "The long one is here.",
        "document_id": long,
        "tags": [long],
        "metadata": {long: long},
        "context": long,
        "entities": [{"text": long}],
    }
    held.retain(item)
    assert held.get("/documents/" + quote(long))["original_text"] == "The long one is here."
    assert held.texts("Where is the long one?", tags=[long], tags_match="all_strict") == ["The long one is here."]
    assert held.list(document_id=long)[0]["metadata"] == {long: long}
    assert held.send("DELETE", "/documents/" + quote(long)).body["memory_units_deleted"] == 1
    for tail in ("/memories/", "/entities/", "/operations/"):
        refused(held.send("GET", tail + "x" * 600), 400, "UUID")
    refused(held.post_items("x", operation_id="x" * 600, **{"async": True}), 422, "operation_id")
    refused(held.post_items({"content": "x", "document_id": "x" * 5000}), 422, "document_id")


def test_urls_of_nine_thousand_characters_are_answered_in_shape(daemon: Daemon, held: Bank) -> None:
    refused(held.send("GET", "/documents/" + "d" * 9000), 404)
    assert held.send("GET", "/memories/list", q="w" * 9000).body["total"] == 0
    refused(daemon.wire.send("GET", "/" + "x" * 100_000), 414)
    refused(daemon.wire.send("GET", "/v1/default/nothing"), 404, "Not Found")
    refused(daemon.wire.send("DELETE", "/version"), 405)


@pytest.mark.parametrize("bad", ["abc", "123", "null", NIL[:-1], NIL + "0", "'--"])
def test_ids_that_are_no_uuid_are_400_and_unknown_ones_404(held: Bank, bad: str) -> None:
    for tail in ("/memories/", "/entities/", "/operations/"):
        refused(held.send("GET", tail + quote(bad)), 400, "UUID")
        refused(held.send("GET", tail + "%00"), 400, "_id")
    refused(held.send("POST", f"/operations/{quote(bad)}/retry"), 400, "UUID")
    refused(held.send("GET", "/memories/" + NIL), 404)
    refused(held.send("GET", "/entities/" + NIL), 404)
    refused(held.send("DELETE", "/operations/" + NIL), 404)
    assert held.get("/operations/" + NIL)["status"] == "not_found"
    refused(held.post_recall("bees", why_not=[bad]), 422, "why_not")


# --- numbers, types, metadata -----------------------------------------------------------------------------------------


def test_limits_out_of_range_are_422_and_name_the_field(daemon: Daemon, held: Bank) -> None:
    tails = ("/memories/list", "/documents", "/entities", "/tags", "/operations", "/documents/before/chunks")
    for tail in tails:
        for field in ("limit", "offset"):
            for value in ("-1", "x", "1e3", "99999999999999999999"):
                refused(held.send("GET", tail, **{field: value}), 422, field)
    refused(daemon.wire.send("GET", "/v1/default/banks?limit=-1"), 422, "limit")
    refused(held.send("GET", "/operations", limit=101), 422, "limit")
    refused(held.send("GET", "/documents/before/chunks", limit=0), 422, "limit")
    assert held.send("GET", "/memories/list", offset=10**6).body["items"] == []
    for tokens in (-1, "many", 2**40, 1.5, None):
        refused(held.post_recall("bees", max_tokens=tokens), 422, "max_tokens")
    refused(held.post_recall("bees", max_tokens=10**20), 422, "64 bits")
    for field, value in (
        ("budget", "huge"),
        ("tags_match", "some"),
        ("trace", "perhaps"),
        ("max_ms", 0),
        ("arms", ["psychic"]),
        ("arms", []),
        ("min_scores", {"final": "x"}),
        ("include", {"chunks": {"max_tokens": -1}}),
    ):
        refused(held.post_recall("bees", **{field: value}), 422, field)


def test_unknown_types_and_states_are_refused(held: Bank) -> None:
    refused(held.post_recall("bees", types=["rumour"]), 422, "rumour")
    refused(held.send("DELETE", "/memories", type="rumour"), 400, "world")
    refused(held.send("GET", "/memories/list", state="lost"), 400, "state")
    refused(held.send("GET", "/memories/list", consolidation_state="lost"), 400, "consolidation_state")
    for name, value in (("start_date", "soon"), ("end_date", "2026-02-30"), ("start_date", "0000-01-01")):
        refused(held.send("GET", "/memories/list", **{name: value}), 400)
    assert held.send("GET", "/memories/list", type="rumour").status in (400, 422)
    refused(held.post_items({"content": "x", "update_mode": "prepend"}), 422, "update_mode")
    refused(held.post_items({"content": "x", "update_mode": "append"}), 400, "document_id")
    refused(held.post_items({"content": [{"type": "sound"}]}), 422, "content")


@pytest.mark.parametrize(
    "metadata", [{"a": None}, {"a": 3}, {"a": True}, {"a": {"b": "c"}}, {"a": ["x"]}, "text", 7, ["x"]]
)
def test_metadata_is_strings_when_it_comes_back_or_it_does_not_come_in(held: Bank, metadata: Any) -> None:
    answer = held.post_items({"content": "The meter reads ten.", "metadata": metadata, "document_id": "m"})
    if answer.status == 200:
        assert all(isinstance(value, str) for unit in held.list(document_id="m") for value in unit["metadata"].values())
    else:
        refused(answer, 422, "metadata")
        assert held.list(document_id="m") == []


def test_a_bank_with_bad_settings_is_refused_and_reads_never_fail(daemon: Daemon, held: Bank) -> None:
    refused(held.send("PUT", "", {"disposition_skepticism": 0.5}), 422, "disposition_skepticism")
    refused(held.send("PUT", "", {"retain_chunk_size": -4}), 400)
    refused(held.send("PATCH", "/config", {"updates": {"no_such_setting": 1}}), 400, "no_such_setting")
    refused(held.send("PATCH", "/config", {"updates": {"llm_api_key": "x"}}), 400)
    refused(held.send("PATCH", "/config", {"updates": "x"}), 422, "updates")
    assert held.get("/config")["overrides"] == {}
    assert daemon.wire.send("GET", "/v1/default/banks").status == 200
    other = daemon.wire.bank(held.id + "-other")
    refused(other.send("PATCH", "/config", {"updates": {"retain_chunk_size": "big"}}), 400)
    refused(other.send("GET", "/config"), 404)


def test_tag_groups_beyond_reason_are_refused(held: Bank) -> None:
    node: Any = {"tags": ["a"]}
    for _ in range(200):
        node = {"not": node}
    refused(held.post_recall("bees", tag_groups=[node]), 422, "tag_groups")
    refused(held.post_recall("bees", tag_groups=[{"or": [{"tags": ["a"]}] * 1000}]), 422, "tag_groups")
    refused(held.post_recall("bees", tag_groups=[{"tags": ["a"]}], tags=["b"]), 422)
    refused(held.post_recall("bees", tag_groups=[{"xor": []}]), 422)
    assert held.send("POST", "/memories/recall", b'{"query": "bees", "tag_groups": ' + b"[" * 50_000).status == 422
    refused(held.send("GET", "/entities", tag_groups="{bad"), 400)


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "timestamp",
    [
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-01-01",
        "10000-01-01T00:00:00Z",
        "2026-02-30",
        "2026-13-01T00:00:00Z",
        "yesterday",
        "2026-06-12T25:00:00Z",
        True,
        [],
        {},
        "-1",
        "0001-01-01T00:00:00+14:00",
    ],
    ids=str,
)
def test_times_that_are_none_are_422(held: Bank, timestamp: Any) -> None:
    refused(held.post_items({"content": "The clock struck.", "timestamp": timestamp}), 422, "timestamp")
    assert len(held.list()) == 1


@pytest.mark.parametrize(
    ("timestamp", "instant"),
    [
        ("2026-06-12T19:17:00", "2026-06-12T19:17:00.000000+00:00"),
        ("2026-06-12", "2026-06-12T00:00:00.000000+00:00"),
        ("2026-06-12T19:17:00Z", "2026-06-12T19:17:00.000000+00:00"),
        ("2026-06-12T19:17:00.123456+08:00", "2026-06-12T11:17:00.123456+00:00"),
        ("2026-06-12T19:17:00-05:30", "2026-06-13T00:47:00.000000+00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000000+00:00"),
        # The night clocks jump from two to three, half past two is not: it is read with the offset before the jump.
        ("2026-03-29T02:30:00[Europe/Berlin]", "2026-03-29T01:30:00.000000+00:00"),
        # The night clocks go back, half past two is twice: it is read as the first.
        ("2026-10-25T02:30:00[Europe/Berlin]", "2026-10-25T00:30:00.000000+00:00"),
        ("2026-03-29T02:30:00", "2026-03-29T02:30:00.000000+00:00"),
        ("UnSeT", None),
    ],
)
def test_times_naive_and_zoned_are_instants(held: Bank, timestamp: str, instant: str | None) -> None:
    held.retain({"content": "Backup ran at 2:30.", "timestamp": timestamp, "document_id": "t"})
    (unit,) = held.list(document_id="t")
    assert unit["mentioned_at"] == instant
    assert held.recall("When did the backup run?")["results"][0]["mentioned_at"] == instant


def test_texts_about_years_far_away_are_only_texts(held: Bank) -> None:
    for text in (
        "In the year 9999 the bridge falls.",
        "In the year 0 nothing was.",
        "十万年前",
        "Port 0 and year 99999999.",
    ):
        held.retain(text)
        assert held.post_recall(text, trace=True).status == 200
    for query in ("in the year 9999", "in the year 0", "since 0001-01-01", "before 9999-12-31", "in 999999999999 days"):
        assert held.post_recall(query, query_timestamp="9999-12-31T00:00:00Z").status in (200, 400)
        assert held.post_recall(query, query_timestamp="0001-01-01T00:00:00Z").status in (200, 400)
        assert held.post_recall(query).status == 200
    far = {"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59Z"}
    assert held.texts("Who keeps bees?", temporal_window=far)[0] == BEFORE
    refused(held.post_recall("bees", temporal_window={"start": "2026-02-02", "end": "2026-02-01"}), 422)
    refused(held.post_recall("bees", temporal_window={"start": "2026-02-02"}), 422, "end")
    refused(held.post_recall("bees", query_timestamp="0000-01-01"), 400, "query_timestamp")


# --- repeats and races ------------------------------------------------------------------------------------------------


def test_an_operation_id_sent_twice_is_one_operation_and_belongs_to_one_bank(daemon: Daemon, held: Bank) -> None:
    operation = str(uuid.uuid4())
    for text in ("The first wording counts.", "The second wording does not."):
        answer = held.retain(text, operation_id=operation, **{"async": True})
        assert answer["operation_id"] == operation
    assert held.wait_for(operation)["status"] == "completed"
    answer = held.retain("Nor does the third.", operation_id=operation, **{"async": True})
    assert answer["operation_id"] == operation
    assert {one["text"] for one in held.list()} == {BEFORE, "The first wording counts."}
    other = daemon.wire.bank(held.id + "-other")
    other.retain("Something else.")
    refused(other.post_items("x", operation_id=operation, **{"async": True}), 409, operation)
    assert len(other.list()) == 1
    # A synchronous call repeated under one id, as after a lost answer, stores once too.
    once = str(uuid.uuid4())
    for _ in range(3):
        held.retain("Retained under one id.", operation_id=once)
    assert [one["text"] for one in held.list()].count("Retained under one id.") == 1
    two = {"items": [{"content": "a", "strategy": "x"}, {"content": "b", "strategy": "y"}], "async": True}
    refused(held.send("POST", "/memories", {**two, "operation_id": str(uuid.uuid4())}), 400, "operation_id")


def test_twenty_parallel_first_writes_make_one_bank_with_all_of_them(daemon: Daemon, bank: Bank) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: bank.post_items(f"Runner {n} wears number {n * 7}."), range(20)))
    assert [one.status for one in answers] == [200] * 20
    assert {one["text"] for one in bank.list()} == {f"Runner {n} wears number {n * 7}." for n in range(20)}
    listed = daemon.wire.send("GET", "/v1/default/banks?q=" + quote(bank.id, safe="")).body["banks"]
    assert [(one["bank_id"], one["fact_count"]) for one in listed] == [(bank.id, 20)]
    bank.usable()


def test_parallel_appends_lose_no_turn(held: Bank) -> None:
    held.retain({"content": "Turn 0 begins.", "document_id": "talk"})
    with ThreadPoolExecutor(8) as pool:
        turns = [{"content": f"Turn {n} follows.", "document_id": "talk", "update_mode": "append"} for n in range(1, 9)]
        assert [one.status for one in pool.map(held.post_items, turns)] == [200] * 8
    lines = held.get("/documents/talk")["original_text"].split("\n")
    assert lines[0] == "Turn 0 begins." and sorted(lines[1:]) == sorted(f"Turn {n} follows." for n in range(1, 9))
    assert held.get("/documents/talk")["memory_unit_count"] == 9


def test_several_items_of_one_document_are_folded_in_order(held: Bank) -> None:
    items = [{"content": f"Verse {n} of the song.", "document_id": "song"} for n in range(3)]
    for _ in range(2):
        held.retain(*items)
        assert (
            held.get("/documents/song")["original_text"]
            == "Verse 0 of the song.\nVerse 1 of the song.\nVerse 2 of the song."
        )
    assert len(held.list(document_id="song")) == 3


def test_documents_of_one_name_in_two_banks_are_two(daemon: Daemon, held: Bank) -> None:
    other = daemon.wire.bank(held.id + "-other")
    other.retain({"content": "The other almanac is about wine.", "document_id": "before", "tags": ["wine"]})
    assert other.send("PATCH", "/documents/before", {"tags": ["red"]}).status == 200
    assert other.send("DELETE", "/documents/before").body["memory_units_deleted"] == 1
    assert held.get("/documents/before")["tags"] == [] and len(held.list()) == 1


# --- ports and homes --------------------------------------------------------------------------------------------------


def test_a_port_in_use_is_said_and_leaves_nothing_behind(daemon: Daemon, tmp_path: Path) -> None:
    home = tmp_path / "other"
    refusal = command("serve", "--home", home, "--port", daemon.wire.port, "--runtime", "inline")
    assert refusal.returncode == 4, refusal.stderr
    assert f"Port {daemon.wire.port}" in refusal.stderr and "--port" in refusal.stderr
    assert "Traceback" not in refusal.stderr and not (home / "run" / "daemon.json").exists()
    assert daemon.wire.send("GET", "/health").status == 200


def test_a_second_daemon_on_a_home_is_refused_and_the_first_goes_on(daemon: Daemon, held: Bank) -> None:
    refusal = command("serve", "--home", daemon.home, "--port", "0", "--runtime", daemon.runtime)
    assert refusal.returncode == 4, refusal.stderr
    assert str(daemon.process.pid) in refusal.stderr and "in use" in refusal.stderr
    assert "Traceback" not in refusal.stderr
    assert (daemon.home / "run" / "daemon.json").exists()
    assert held.texts("Who keeps bees?") == [BEFORE]

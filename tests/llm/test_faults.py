"""What errors mean: headers, bodies of any shape, and the readers of replies against anything at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recalld.actors.llm.counting import count_tokens
from recalld.actors.llm.faults import Fault, Verdict, detail, from_body, judge, retry_after
from recalld.actors.llm.models import PRESETS, filled
from recalld.actors.llm.modes import JSON_SCHEMA
from recalld.actors.llm.provider import Call, ModelChoice, Reply
from recalld.actors.llm.providers import anthropic, gemini, openai
from recalld.actors.llm.providers.rest import is_loopback_url
from recalld.storage.errors import Unprocessable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        (
            {"Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT", "Date": "Sun, 01 Mar 2026 12:00:00 GMT"},
            30.0,
        ),
        ({"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT", "Date": "Sun, 01 Mar 2026 12:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:30 GMT"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


WORDS = """error message code type status details choices content finish_reason tool_calls function arguments text usage
candidates parts functionCall args stop_reason name id input promptFeedback usageMetadata prompt_tokens refusal param"""
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS.split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=14,
)
tables = st.dictionaries(
    st.sampled_from(["error", "choices", "content", "candidates", "usage", "stop_reason", "usageMetadata"]), anything
)


@given(st.integers(300, 599), anything)
@settings(max_examples=150, deadline=None)
def test_an_error_of_any_shape_is_a_fault_with_a_verdict(status: int, body: Any) -> None:
    fault = from_body(status, body, {})
    assert isinstance(judge(fault, JSON_SCHEMA, 100).verdict, Verdict) and len(detail(fault, "k" * 20)) <= 300


@given(tables)
@settings(max_examples=150, deadline=None)
def test_an_answer_of_any_shape_is_a_reply_or_a_fault(body: dict[str, Any]) -> None:
    for read in (openai.read_reply, gemini._reply, lambda told: anthropic._reply(told, Call(()))):
        try:
            reply = read(body)
        except Fault:
            continue
        assert isinstance(reply, Reply) and isinstance(reply.text, str) and reply.usage.input >= 0


def test_a_key_is_cut_out_of_what_a_provider_says_whole_or_half() -> None:
    key = "sk-proj-abcdefghijklmnop"
    said = detail(Fault(401, "", f"Incorrect API key provided: sk-pro***mnop. You sent {key}."), key)
    assert "abc" not in said and "mnop" not in said


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:1234", True),
        ("http://[::1]:9/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.7:8000/v1", False),
        ("http://localhost.example.com/v1", False),
    ],
)
def test_calls_that_stay_on_this_machine_are_known(url: str, local: bool) -> None:
    assert is_loopback_url(url) is local


@pytest.mark.parametrize("name", PRESETS)
def test_every_name_of_a_provider_stands_for_something_that_can_be_opened(name: str) -> None:
    choice = filled(ModelChoice(name, "m", "k"))
    assert choice.provider == name
    if PRESETS[name].api in ("openai", "anthropic", "gemini"):
        assert choice.base_url.startswith(("https://", "http://127.0.0.1"))
    if PRESETS[name].needs_key:
        with pytest.raises(Unprocessable, match="needs a key"):
            filled(ModelChoice(name, "m"))
    assert filled(ModelChoice("bedrock", "bedrock/x")).model == "bedrock/x"


def test_a_base_url_of_ones_own_needs_no_key() -> None:
    assert filled(ModelChoice("openai", "m", None, "http://127.0.0.1:8000/v1/")).base_url == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("The quick brown fox jumps over the lazy dog.", 9, 12),
        ("東京の猫は水を飲む", 7, 10),
        (json.dumps({"a": [1, 2, 3]}), 8, 14),
        ("internationalisation", 2, 5),
    ],
)
def test_our_own_count_is_near_what_tokenizers_say(text: str, low: int, high: int) -> None:
    assert low <= count_tokens(text) <= high

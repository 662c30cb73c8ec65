"""Malformed answers as they were met in the wild, through every provider: nothing lost or invented, all visible."""

from __future__ import annotations

import json

import pytest

from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow, ModelRefused, RecalldError

from .model_server import Say
from .stages import GOOD, Stage, request, texts

ANA, BO = {"text": "Ana drinks tea.", "kind": "world"}, {"text": "Bo does not.", "kind": "experience"}
BOTH = json.dumps({"facts": [ANA, BO]})
NAMES = ["Ana drinks tea.", "Bo does not."]

MENDED = {
    "prose and fence around": f"Here you go:\n```json\n{BOTH}\n```\nHope it helps!",
    "fence without a name": f"```\n{BOTH}\n```",
    "fence not closed": f"```json\n{BOTH}",
    "prose before": f"Sure! The facts are: {BOTH}",
    "reasoning": f"<think>\nAna says {{tea}}, so [1]\n</think>\n\n{BOTH}",
    "reasoning that holds a draft": f'<think>maybe {{"facts": []}}</think>{BOTH}',
    "reasoning of which the opening is lost": f"First the tea.\n</think>\n\n{BOTH}",
    "trailing commas": BOTH.replace("}]}", "},],}"),
    "single quotes": BOTH.replace('"', "'"),
    "byte order mark": "\ufeff" + BOTH,
    "bare list": json.dumps([ANA, BO]),
    "lines": json.dumps(ANA) + "\n" + json.dumps(BO),
    "another name": json.dumps({"extracted_facts": [ANA, BO]}),
    "wrapped": json.dumps({"output": {"facts": [ANA, BO]}}),
    "a JSON text in a JSON text": json.dumps(BOTH),
    "list in a text": json.dumps({"facts": json.dumps([ANA, BO])}),
    "key given twice": f'{{"facts": [{json.dumps(ANA)}], "facts": [{json.dumps(BO)}]}}',
    "last brace missing": BOTH[:-1],
    "not a number": BOTH.replace('"world"', '"world", "confidence": NaN'),
    "words in capitals": BOTH.replace('"world"', '"World"').replace('"experience"', '"EXPERIENCE"'),
}
SALVAGED = {
    "one item of another kind": (json.dumps({"facts": [ANA, {"text": "x", "kind": "gossip"}, BO]}), "facts[1]"),
    "one item without text": (json.dumps({"facts": [ANA, {"kind": "world"}, BO]}), "facts[1]"),
    "one item that is no object": (json.dumps({"facts": [ANA, 17, BO]}), "facts[1]"),
    "one item that is null": (json.dumps({"facts": [ANA, None, BO]}), "facts[1]"),
}
UNUSABLE = {
    "empty": "",
    "blank": " \n ",
    "apology": "I'm sorry, I cannot find any facts.",
    "another shape": '{"answer": "Ana drinks tea."}',
    "a list of numbers": "[1, 2, 3]",
    "no item fits": '{"facts": [{"statement": "Ana drinks tea."}]}',
    "reasoning alone": "<think>\nAna drinks tea",
    "a draft inside reasoning alone": f"<think>\n{GOOD}",
}


@pytest.mark.parametrize("text", MENDED.values(), ids=MENDED)
async def test_malformed_answers_are_mended_whole(stage: Stage, text: str) -> None:
    stage.say(text)
    answer = await stage.client.complete(request())
    assert texts(answer.parsed) == NAMES and not answer.rejected and stage.calls == 1


@pytest.mark.parametrize(("text", "path"), SALVAGED.values(), ids=SALVAGED)
async def test_the_good_items_stay_and_the_bad_ones_are_named(stage: Stage, text: str, path: str) -> None:
    stage.say(text)
    answer = await stage.client.complete(request())
    assert texts(answer.parsed) == NAMES and [one.path for one in answer.rejected] == [path]


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE)
async def test_an_answer_beyond_repair_is_a_failure_that_can_be_retried_never_an_empty_result(
    stage: Stage, text: str
) -> None:
    stage.say(*[text] * 5)
    with pytest.raises(ModelAnswerUnusable) as caught:
        await stage.client.complete(request())
    assert caught.value.retryable and caught.value.status == 502 and 2 <= stage.calls <= 4
    assert "Ana" not in caught.value.message, "no text of anybody's in an error"
    assert len(stage.records) == stage.calls, "every call is on record, the useless ones too"


async def test_a_second_try_that_fares_better_counts(stage: Stage) -> None:
    stage.say(UNUSABLE["apology"], BOTH)
    answer = await stage.client.complete(request())
    assert texts(answer.parsed) == NAMES and answer.attempts == 2
    assert answer.usage.input == 22, "the first call was paid for as well"


@pytest.mark.parametrize("at", range(2, len(BOTH), 9))
async def test_an_answer_cut_anywhere_loses_no_whole_item_and_keeps_no_half_one(openai_stage: Stage, at: int) -> None:
    openai_stage.say(Say(text=BOTH[:at], finish="length"))
    with pytest.raises(ModelOverflow) as caught:
        await openai_stage.client.complete(request())
    held = texts(caught.value.answer.parsed) if caught.value.answer else []
    assert held == NAMES[: len(held)]
    assert len(held) == (BOTH[:at].count("}") if at < len(BOTH) - 1 else 2)


async def test_an_answer_cut_off_without_saying_so_is_found_out(stage: Stage) -> None:
    stage.say(BOTH[:-20])
    with pytest.raises(ModelOverflow) as caught:
        await stage.client.complete(request())
    assert texts(caught.value.answer.parsed) == NAMES[:1]


async def test_a_model_that_thinks_until_its_tokens_are_gone_overflows(stage: Stage) -> None:
    stage.say(Say(text="", finish="length"))
    with pytest.raises(ModelOverflow) as caught:
        await stage.client.complete(request())
    assert caught.value.kind == "output" and caught.value.answer is None


async def test_a_refusal_in_plain_words_is_no_fact(stage: Stage) -> None:
    stage.say(Say(refusal="I can't help with that."))
    with pytest.raises(ModelRefused, match="content policy"):
        await stage.client.complete(request())


@pytest.mark.parametrize(
    "raw",
    ["", "null", "[]", "{}", "<html>Bad gateway</html>", '{"choices": []}', '{"choices": [null]}', '{"candidates": 7}',
     '{"content": null}', '{"error": {"message": "upstream", "code": 502}}'],
)  # fmt: skip
async def test_bodies_that_are_no_answer_at_all_are_passing_failures(http_stage: Stage, raw: str) -> None:
    http_stage.say(Say(raw=raw, headers={"Content-Type": "application/json"}), GOOD)
    answer = await http_stage.client.complete(request())
    assert texts(answer.parsed) == ["Ana drinks tea."] and answer.attempts == 2


async def test_nothing_but_typed_errors_comes_out(http_stage: Stage) -> None:
    for status in (300, 302, 405, 418, 451, 505, 599):
        http_stage.say(*[Say(status=status, message="?", headers={"Location": "http://127.0.0.1:1/"})] * 4)
        with pytest.raises(RecalldError):
            await http_stage.client.complete(request(deadline=1.0))
        assert http_stage.server is not None
        http_stage.server.says.clear()
        http_stage.client = http_stage.make()

"""Recalled memories that come back in a text are known, and not kept a second time."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from recalld.actors.trust.fence import fence
from recalld.actors.trust.pasted import without_blocks
from recalld.daemon.commands import output

from .conftest import Bank


@pytest.mark.parametrize(
    "name", ["hindsight_memories", "relevant_memories", "memories", "recalled-memories", "Memory_Context"]
)
def test_wrapped_memories_are_taken_out_and_talk_stays(name: str) -> None:
    text = f"Hello.\n<{name} count='2'>\n- Ana likes tea.\n</{name}>\nI moved to Rome."
    assert without_blocks(text) == ("Hello.\n\nI moved to Rome.", 1)


def test_talk_about_a_wrapper_stays() -> None:
    text = "The tag <memories> opens a block. Ana owns the fix."
    assert without_blocks(text) == (text, 0)


def test_our_own_fences_are_known_again() -> None:
    text = "Look:\n" + fence("Ana likes tea.", "n", kind="memory") + "\nI moved to Rome."
    assert without_blocks(text) == ("Look:\n\nI moved to Rome.", 1)


async def recalled(bank: Bank) -> dict[str, Any]:
    await bank.retain({"content": "Ana likes green tea from Kyoto very much.", "document_id": "tea"})
    await bank.retain({"content": "Bob plays chess in Porto.", "document_id": "chess"})
    return await bank.recall("tea and chess")


async def test_what_the_command_line_prints_is_known_again(bank: Bank) -> None:
    console = Console(width=60, highlight=False, record=True, file=io.StringIO())
    console.print(output.memories((await recalled(bank))["results"]))
    (row,) = await bank.retain(
        {"content": f"I asked.\n{console.export_text()}\nI moved to Rome.", "document_id": "new"}
    )
    assert row["dropped"][0]["reason"] == "recalled"
    assert (await bank.document("new"))["original_text"] == "I asked.\n\nI moved to Rome."


async def test_an_answer_of_the_api_is_known_again_and_nothing_is_stored(bank: Bank) -> None:
    answer = json.dumps(await recalled(bank), default=list)
    (row,) = await bank.retain({"content": answer, "document_id": "new"})
    assert (row["nothing_stored"], row["unit_ids"]) == ("all of it was recalled before", [])
    assert row["dropped"][0]["reason"] == "recalled"
    assert len(await bank.texts("tea and chess")) == 2
    (row,) = await bank.retain({"content": f"See:\n```json\n{answer}\n```\nI moved to Rome.", "document_id": "new"})
    assert (await bank.document("new"))["original_text"] == "See:\n\nI moved to Rome."


async def test_answers_in_the_middle_of_a_text_are_known_again(bank: Bank) -> None:
    answer = json.loads(json.dumps(await recalled(bank), default=list))
    for number, shown in enumerate((json.dumps(answer), json.dumps(answer, indent=2), repr(answer))):
        await bank.retain({"content": f"I got\n{shown}\nand moved to Rome.", "document_id": f"new-{number}"})
        assert (await bank.document(f"new-{number}"))["original_text"] == "I got\n\nand moved to Rome."
    other = 'The answer {"results": [{"id": "x", "score": 1}]} is not ours.'
    await bank.retain({"content": other, "document_id": "other"})
    assert (await bank.document("other"))["original_text"] == other


async def test_listed_lines_equal_to_stored_units_are_dropped_and_new_ones_kept(bank: Bank) -> None:
    await recalled(bank)
    text = (
        "Relevant memories:\n- [world] Bob plays chess in Porto.\n"
        "2. Ana likes green tea from Kyoto very much. (2026-01-02)\n- Carl is new here.\n\nWhat now?"
    )
    (row,) = await bank.retain({"content": text, "document_id": "new"})
    assert row["dropped"][0]["pieces"] == 2
    assert (await bank.document("new"))["original_text"] == "Relevant memories:\n- Carl is new here.\n\nWhat now?"


async def test_a_list_sent_again_as_its_own_document_stays_whole(bank: Bank) -> None:
    strategies = {"lines": {"retain_chunk_size": 200}}
    await bank.service.patch_config("default", "b", {"retain_strategies": strategies})
    item = {"content": "My memories:\n- Bob plays chess in Porto.", "document_id": "list"}
    await bank.retain(item)
    (row,) = await bank.retain(item)
    assert "dropped" not in row
    assert row["chunks_unchanged"] == row["chunks"] == 1


async def test_turns_of_a_conversation_lose_what_was_recalled_into_them(bank: Bank) -> None:
    turns = [
        {"role": "user", "content": "<relevant_memories>\n- Ana likes tea.\n</relevant_memories>\nI moved to Rome."},
        {"role": "assistant", "content": "Noted."},
    ]
    await bank.retain({"content": json.dumps(turns), "document_id": "chat"})
    kept = json.loads((await bank.document("chat"))["original_text"])
    assert [turn["content"] for turn in kept] == ["I moved to Rome.", "Noted."]


async def test_a_document_is_not_emptied_by_a_pasted_answer(bank: Bank) -> None:
    answer = json.dumps(await recalled(bank), default=list)
    await bank.retain({"content": answer, "document_id": "tea"})
    assert (await bank.document("tea"))["original_text"] == "Ana likes green tea from Kyoto very much."

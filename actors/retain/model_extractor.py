"""Reading a chunk with a language model: ask, split what does not fit, put the parts together again.

Errors of the model come through as they are: a chunk that could not be read is never a chunk without facts.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from recalld.actors.llm.base import RETAIN, Llm, LlmAnswer, LlmRequest
from recalld.actors.retain.chunking import chunk_text
from recalld.actors.retain.extraction import Dropped, ExtractionInput, Fact, Reading
from recalld.actors.retain.model_answer import reading_from
from recalld.actors.retain.model_prompts import ReadingRules, messages_for, schema_for
from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow

SMALLEST = 500
CUT_OFF = "cut off in the model's answer"


class ModelExtractor:
    """Turns chunks into facts with one language model. `operation` is the name its calls go by."""

    def __init__(self, llm: Llm, operation: str = RETAIN) -> None:
        self._llm = llm
        self._operation = operation

    async def read(self, chunk: ExtractionInput, rules: ReadingRules, bank: tuple[str, str]) -> Reading:
        """The facts of a chunk, in the order of its text. Raises what `Llm.complete` raises.

        A text or an answer that is too long halves the chunk, down to 500 characters. A part that short whose answer
        is cut off again gives what stood in it whole, and says so.
        """
        if not chunk.text.strip():
            return Reading((), (Dropped(chunk.text, "empty"),))
        request = LlmRequest(
            operation=self._operation,
            messages=messages_for(chunk, rules),
            bank=bank,
            schema=schema_for(rules),
            schema_name="facts",
            max_tokens=rules.max_tokens,
        )
        try:
            answer = await self._llm.complete(request)
        except ModelOverflow as overflow:
            parts = halves(chunk.text) if rules.mode != "verbatim" else []
            if not parts:
                return self._salvaged(overflow, chunk, rules)
            read = await asyncio.gather(*(self.read(replace(chunk, text=part), rules, bank) for part in parts))
            return joined(read)
        return reading_from(answer.parsed, answer.rejected, chunk, rules)

    def _salvaged(self, overflow: ModelOverflow, chunk: ExtractionInput, rules: ReadingRules) -> Reading:
        answer: LlmAnswer | None = overflow.answer
        if answer is None or answer.parsed is None:
            raise overflow
        try:
            reading = reading_from(answer.parsed, answer.rejected, chunk, rules)
        except ModelAnswerUnusable:
            raise overflow from None
        if not reading.facts:
            raise overflow
        return replace(reading, dropped=(*reading.dropped, Dropped("", CUT_OFF)))


def halves(text: str) -> list[str]:
    """A text in two or three parts at natural borders; none when it is too short to be cut."""
    if len(text) <= SMALLEST:
        return []
    size = max(SMALLEST, -(-len(text) // 2))
    parts = [part for part in chunk_text(text, size, size) if part.strip()]
    return parts if len(parts) > 1 else []


def joined(readings: list[Reading]) -> Reading:
    """Readings of the parts of one chunk as one; causes go on pointing to the facts they meant."""
    facts: list[Fact] = []
    dropped: list[Dropped] = []
    undated = 0
    for reading in readings:
        start = len(facts)
        facts += [replace(fact, causes=tuple(cause + start for cause in fact.causes)) for fact in reading.facts]
        dropped += reading.dropped
        undated += reading.undated
    return Reading(tuple(facts), tuple(dropped), undated)

"""A provider that gives prepared answers, for tests: from a list, a file or a callable. It records what it was asked.

An answer is a text; a `Reply`; an exception to raise (`Fault`); or a table with `text`, `finish_reason`, `refusal`,
`tool_calls` (each with `name` and `arguments`), `input_tokens`, `output_tokens`, or with `status`, `code`, `message`
and `retry_after` for a failure, and `delay` in seconds. A table with `when` is given to calls whose prompt holds that
text, as often as they come; the others go in order, each once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from recalld.actors.llm.base import Usage
from recalld.actors.llm.faults import Fault
from recalld.actors.llm.modes import MODES
from recalld.actors.llm.provider import Call, ModelChoice, RawToolCall, Reply
from recalld.storage.errors import ModelRefused

Answer = str | Mapping[str, Any] | Reply | BaseException
Script = Iterable[Answer] | Callable[[Call], Answer | Awaitable[Answer]]


class ScriptedProvider:
    """`requests` holds every call in the order it came. A list that has run out refuses, and never repeats itself."""

    modes = MODES

    def __init__(self, script: Script, choice: ModelChoice | None = None) -> None:
        self.choice = choice or ModelChoice("scripted", "scripted")
        self.requests: list[Call] = []
        self._callable = script if callable(script) else None
        answers = [] if callable(script) else list(script)
        self._standing = [one for one in answers if isinstance(one, Mapping) and "when" in one]
        self._queue = [one for one in answers if not (isinstance(one, Mapping) and "when" in one)]

    @classmethod
    def from_file(cls, choice: ModelChoice) -> ScriptedProvider:
        """Answers from the file that the base URL names: a JSON list, or one JSON value a line."""
        path = Path(choice.base_url.removeprefix("file://")).expanduser()
        try:
            text = path.read_text(encoding="utf-8")
            answers = (
                json.loads(text)
                if text.lstrip().startswith("[")
                else [json.loads(line) for line in text.splitlines() if line.strip()]
            )
        except (OSError, ValueError):
            raise ModelRefused(
                "The file of scripted answers (llm.base_url) cannot be read as JSON.", cause="bad_script"
            ) from None
        return cls(answers, choice)

    async def open(self) -> None:
        return None

    async def send(self, call: Call) -> Reply:
        self.requests.append(call)
        answer = await self._next(call)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, str):
            answer = {"text": answer}
        if answer.get("delay"):
            await asyncio.sleep(float(answer["delay"]))
        if "status" in answer:
            wait = answer.get("retry_after")
            raise Fault(
                answer["status"],
                str(answer.get("code", "")),
                str(answer.get("message", "")),
                retry_after=None if wait is None else float(wait),
            )
        counted = "input_tokens" in answer or "output_tokens" in answer
        return Reply(
            text=str(answer.get("text", "")),
            finish_reason=str(answer.get("finish_reason", "stop")),
            tool_calls=tuple(
                RawToolCall(str(one.get("id", f"call_{number}")), str(one["name"]), one.get("arguments", {}))
                for number, one in enumerate(answer.get("tool_calls", ()))
            ),
            refusal=answer.get("refusal"),
            usage=Usage(int(answer.get("input_tokens", 0)), int(answer.get("output_tokens", 0)), reported=counted),
            model=self.choice.model,
        )

    async def _next(self, call: Call) -> Answer:
        if self._callable is not None:
            given = self._callable(call)
            return await given if isinstance(given, Awaitable) else given
        prompt = "\n".join(one.content for one in call.messages)
        for one in self._standing:
            if str(one["when"]) in prompt:
                return one
        if not self._queue:
            return Fault(400, "script_ended", "the script has no more answers")
        return self._queue.pop(0)

    async def known(self) -> bool | None:
        return True

    async def close(self) -> None:
        return None

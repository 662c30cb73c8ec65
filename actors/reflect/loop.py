"""The tool loop: forced first searches, the model's own, then an answer, given or forced. It ends whatever it meets.

A round is one model call. What a model does wrong is told to it and costs a round; what it does not do at first (the
forced searches) is done for it. When the rounds, the room or the calls are used up, the answer is forced from what was
found.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from recalld.actors.llm.base import Message, Tool, ToolCall, system, user
from recalld.actors.llm.counting import count_call, count_tokens
from recalld.actors.reflect import fallback, prompts
from recalld.actors.reflect.calling import Caller
from recalld.actors.reflect.deps import Plain, ReflectDeps
from recalld.actors.reflect.request import BUDGET_FACTORS, ReflectRequest
from recalld.actors.reflect.tools import DONE, RECALL, Toolbox, tools_for
from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow, ModelRefused, NoAnswer

CALLS_A_ROUND = 8
STRIKES = 2
OVERHEAD_TOKENS = 2000
LEAST_EVIDENCE = 500

_NO_TOOLS = re.compile(r"\btools?\b|function.?call", re.IGNORECASE)
_UNREADABLE = "Your last message could not be read. Call one tool with arguments that are one JSON object, or done."
_EMPTY = "The answer is empty. Give it in words, or search on."
_SEARCH_FIRST = "Not yet: the searches come first. What they found follows."
_ABSENCE = "Nothing was searched with recall yet, so nobody can know that it is not there. Search first."
_TOO_MANY = f"Not run: at most {CALLS_A_ROUND} tools at once."
_FIRST = "This search was made for you:"

_FINAL_FIELDS: Plain = {
    "answer": {"type": "string"},
    "answer_found": {"type": "boolean"},
    "memory_ids": {"type": "array", "items": {"type": "string"}},
    "observation_ids": {"type": "array", "items": {"type": "string"}},
    "mental_model_ids": {"type": "array", "items": {"type": "string"}},
}
_FINAL_SCHEMA: Plain = {
    "type": "object",
    "properties": _FINAL_FIELDS,
    "required": ["answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as the model gave it. `named` are the ids it named, in order, whatever they are; `cut` says that the
    provider cut it off."""

    text: str
    found: bool = True
    named: tuple[str, ...] = ()
    compliance: str = ""
    opinions: tuple[Any, ...] = ()
    forced: bool = False
    cut: bool = False


class Loop:
    """One run of the loop. `rounds` counts the model's turns."""

    def __init__(
        self,
        request: ReflectRequest,
        deps: ReflectDeps,
        box: Toolbox,
        caller: Caller,
        disposition: tuple[str, ...],
        directives: list[Plain],
        reserve: int = 1,
        opinions: Plain | None = None,
    ) -> None:
        self._request, self._deps, self._box, self._caller = request, deps, box, caller
        self._words, self._directives = disposition, directives
        self._tools: tuple[Tool, ...] = tools_for(box.offered, bool(directives), opinions)
        self._opinions = opinions
        self._reserve = reserve
        """Calls kept back: the forced answer, and the one that gives it a shape."""
        self._in_json = False
        self._messages: list[Message] = []
        self._forced = list(box.forced)
        self._absence_refused = False
        self._strikes = 0
        self.rounds = 0

    @property
    def most_rounds(self) -> int:
        return max(1, math.ceil(self._deps.limits.iterations * BUDGET_FACTORS[self._request.budget]))

    def system(self, tools: str = "") -> str:
        profile = {"mission": self._deps.config.get("reflect_mission")}
        return prompts.system_text(profile, self._words, self._directives, self._deps.nonce, tools)

    async def run(self) -> Draft:
        """The answer. Raises `NoAnswer`, and what the model and the shard raise."""
        self._messages = [system(self.system()), user(prompts.question_text(self._request))]
        while self.rounds < self.most_rounds and self._caller.left > self._reserve:
            if self._box.fresh_page:
                self._forced = []
            if self._in_json:
                await self._search_for_it()
            if self._size() > self._deps.limits.context_tokens:
                break
            self.rounds += 1
            try:
                draft = await self._round()
            except ModelAnswerUnusable:
                self._strikes += 1
                if self._strikes >= STRIKES:
                    break
                self._messages.append(user(_UNREADABLE))
                continue
            except ModelOverflow:
                break
            except ModelRefused as error:
                if not self._in_json and error.cause != "content_policy" and _NO_TOOLS.search(error.detail):
                    self._speak_json()
                    continue
                raise
            if draft is not None:
                return draft
        return await self._final()

    def _size(self) -> int:
        return count_call(self._messages, None, self._tools)

    # -- one round -----------------------------------------------------------------------------------------------------

    async def _round(self) -> Draft | None:
        """One turn of the model and what its tools gave. The draft when it is done."""
        scope = f"agent_{self.rounds}"
        wanted = self._forced[0] if self._forced else ""
        if self._in_json:
            schema = fallback.schema_for(self._tools)
            step = await self._caller.ask(scope, tuple(self._messages), schema=schema, schema_name="step")
            call = fallback.call_of(step.parsed)
            if call is None:
                raise ModelAnswerUnusable("The language model named no tool.")
            return await self._carry_out((call,), step.text)
        answer = await self._caller.ask(scope, tuple(self._messages), tools=self._tools, tool_choice=wanted or "auto")
        if answer.tool_calls:
            return await self._carry_out(answer.tool_calls, answer.text)
        spoken = fallback.spoken_call(answer.text, [one.name for one in self._tools])
        if spoken is not None or wanted:
            # It writes what it should call, or talks where it had to call: it cannot call tools.
            self._speak_json()
            if spoken is None:
                return None
            await self._search_for_it()
            return await self._carry_out((spoken,), answer.text)
        return Draft(answer.text, cut=answer.finish_reason == "length")

    async def _carry_out(self, calls: tuple[ToolCall, ...], text: str) -> Draft | None:
        results: list[str] = []
        draft: Draft | None = None
        for number, call in enumerate(calls):
            if number >= CALLS_A_ROUND:
                results.append(_TOO_MANY)
            elif call.name == DONE:
                draft, told = self._done(call)
                results.append(told)
            else:
                results.append(await self._box.run(call.name, call.arguments, self.rounds))
                if call.name in self._forced:
                    self._forced.remove(call.name)
        if draft is not None:
            return draft
        if self._in_json:
            said = text or fallback.shown(calls[0])
            self._messages += [Message("assistant", said), user("\n".join(results))]
        else:
            self._messages.append(Message("assistant", text, tool_calls=calls))
            self._messages += [
                Message("tool", told, tool_call_id=call.id, name=call.name)
                for call, told in zip(calls, results, strict=True)
            ]
        if self._forced and (self._in_json or not any(call.name in self._box.forced for call in calls)):
            # It was told which tool to call and called another: the searches are made for it.
            await self._search_for_it()
        return None

    def _done(self, call: ToolCall) -> tuple[Draft | None, str]:
        """The draft of a call of done, or why it is not taken yet."""
        given = call.arguments
        text = str(given.get("answer") or "").strip()
        found = given.get("answer_found") is not False
        if self._forced and not self._box.fresh_page:
            return None, _SEARCH_FIRST
        if not found and not self._box.searched and RECALL in self._box.offered and not self._absence_refused:
            self._absence_refused = True
            return None, _ABSENCE
        if not text:
            return None, _EMPTY
        compliance = str(given.get("directive_compliance") or "")
        return Draft(text, found, named_ids(given), compliance, _proposed(given)), ""

    async def _search_for_it(self) -> None:
        """Make the forced searches that are still to be made, with the question's own words."""
        for name in self._forced:
            if self._box.fresh_page:
                break
            told = await self._box.run(name, {"query": self._request.query, "reason": "first search"}, self.rounds)
            self._messages.append(user(f"{_FIRST} {name}\n{told}"))
        self._forced = []

    def _speak_json(self) -> None:
        self._in_json = True
        self._messages[0] = system(self.system(fallback.explained(self._tools)))
        # A history of native calls is nothing a model without them can read.
        kept = [one for one in self._messages if one.role in ("system", "user") or not one.tool_calls]
        self._messages = [user(one.content) if one.role == "tool" else one for one in kept]

    # -- the forced answer ---------------------------------------------------------------------------------------------

    async def _final(self) -> Draft:
        """The answer from what was found, asked for without tools, with less and less evidence until it fits."""
        if not self._box.evidence.parts:
            self._forced = self._forced or ([] if self._box.searched else list(self._box.forced))
            await self._search_for_it()
        room = max(LEAST_EVIDENCE, self._deps.limits.context_tokens - count_tokens(self.system()) - OVERHEAD_TOKENS)
        plain = False
        for _ in range(4):
            if self._caller.left <= 0:
                break
            try:
                return await self._forced_answer(room, plain)
            except ModelOverflow as error:
                if error.kind == "output":
                    if plain:
                        raise
                    plain = True
                elif room <= LEAST_EVIDENCE:
                    raise
                else:
                    room = max(LEAST_EVIDENCE, min(room, self._evidence_tokens()) // 3)
            except ModelAnswerUnusable:
                if plain:
                    break
                plain = True
        raise NoAnswer("The language model gave no answer; ask again, or with another model.")

    def _evidence_tokens(self) -> int:
        return sum(map(count_tokens, self._box.evidence.parts.values()))

    async def _forced_answer(self, room: int, plain: bool) -> Draft:
        parts = list(self._box.evidence.parts.values())
        found = prompts.evidence_text(parts, room, count_tokens) if parts else "Nothing was found."
        asked = "\n\n".join((found, prompts.question_text(self._request), prompts.FINAL))
        messages = (system(self.system()), user(asked))
        if plain:
            answer = await self._caller.ask("final", messages)
            return Draft(answer.text, forced=True, cut=answer.finish_reason == "length")
        schema = _FINAL_SCHEMA
        if self._opinions is not None:
            schema = {**schema, "properties": {**_FINAL_FIELDS, "opinions": self._opinions}}
        answer = await self._caller.ask("final", messages, schema=schema)
        given: dict[str, Any] = answer.parsed
        text = str(given.get("answer") or "").strip()
        if not text:
            raise ModelAnswerUnusable("The language model gave an empty answer.")
        found_it = given.get("answer_found") is not False
        return Draft(text, found_it, named_ids(given), opinions=_proposed(given), forced=True)


def _proposed(given: dict[str, Any]) -> tuple[Any, ...]:
    opinions = given.get("opinions")
    return tuple(opinions) if isinstance(opinions, list) else ()


def named_ids(given: dict[str, Any]) -> tuple[str, ...]:
    """All ids a model named, whatever it took them for."""
    out: list[str] = []
    for name in ("memory_ids", "observation_ids", "mental_model_ids"):
        value = given.get(name)
        out += [str(one).strip() for one in value] if isinstance(value, list) else []
    return tuple(dict.fromkeys(out))

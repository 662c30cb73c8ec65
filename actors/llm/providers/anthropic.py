"""Anthropic's Messages API, as its REST reference documents it.

Spoken over the daemon's own HTTP library: it is one POST with a fixed version header, the SDK would add a second retry
layer to switch off and a dependency to follow, and so no extra is needed.

A schema travels in `output_config.format`; for models or relays without it as the input of a tool that must be called.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from recalld.actors.llm.base import Message, Usage
from recalld.actors.llm.faults import GARBLED, Fault
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, MODES, closed, schema_text
from recalld.actors.llm.provider import Call, ModelChoice, RawToolCall, Reply
from recalld.actors.llm.providers.openai import whole
from recalld.actors.llm.providers.rest import Rest

OFFICIAL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
# The API wants a limit with every call; a lower one a model has is learnt from its refusal.
_MOST_TOKENS = 16_384
# The field takes closed objects, and refuses limits.
_NOT_TAKEN = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems",
     "minItems", "uniqueItems"}
)  # fmt: skip
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


class AnthropicProvider:
    modes = MODES

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        base = choice.base_url.rstrip("/").removesuffix("/v1")
        headers = {"anthropic-version": _VERSION, **choice.headers}
        if choice.key:
            headers.setdefault("x-api-key", choice.key)
        self._rest = Rest(base, headers)

    async def open(self) -> None:
        return None

    async def send(self, call: Call) -> Reply:
        body = await self._rest.post(
            "/v1/messages", {**_body(self.choice, call), **self.choice.extra_body}, call.timeout
        )
        return _reply(body, call)

    async def known(self) -> bool | None:
        try:
            await self._rest.get(f"/v1/models/{quote(self.choice.model, safe='')}", 10.0)
        except Fault as fault:
            if fault.status == 404:
                return False if "not_found" in fault.code else None
            if fault.status in (405, 501):
                return None
            raise
        return True

    async def close(self) -> None:
        await self._rest.close()


def _body(choice: ModelChoice, call: Call) -> dict[str, Any]:
    limit = call.max_tokens if call.max_tokens is not None else _MOST_TOKENS
    body: dict[str, Any] = {"model": choice.model, "max_tokens": limit, "messages": _messages(call.messages)}
    rules = "\n\n".join(one.content for one in call.messages if one.role == "system")
    if rules:
        body["system"] = rules
    if call.temperature is not None and "temperature" not in call.skip:
        body["temperature"] = min(call.temperature, 1.0)
    if call.mode == JSON_SCHEMA and call.schema is not None:
        schema = closed(call.schema, require_all=False, without=_NOT_TAKEN)
        body["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
    elif call.mode == JSON_OBJECT and call.schema is not None:
        body["tools"] = [
            {"name": call.schema_name, "description": "Give the answer.", "input_schema": dict(call.schema)}
        ]
        if "tool_choice" not in call.skip:
            body["tool_choice"] = {"type": "tool", "name": call.schema_name}
    elif call.tools:
        body["tools"] = [
            {"name": one.name, "description": one.description, "input_schema": dict(one.parameters)}
            for one in call.tools
        ]
        if "tool_choice" not in call.skip:
            kinds = {"auto": "auto", "none": "none", "required": "any"}
            body["tool_choice"] = (
                {"type": kinds[call.tool_choice]}
                if call.tool_choice in kinds
                else {"type": "tool", "name": call.tool_choice}
            )
    if choice.reasoning_effort and "reasoning_effort" not in call.skip:
        body.setdefault("output_config", {})["effort"] = choice.reasoning_effort
    return body


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The turns, without the system ones; results of tools that stand together share a turn, as the API wants."""
    turns: list[dict[str, Any]] = []
    for one in messages:
        if one.role == "system":
            continue
        blocks: list[dict[str, Any]] = []
        if one.role == "tool":
            blocks.append({"type": "tool_result", "tool_use_id": one.tool_call_id, "content": one.content})
        elif one.content:
            blocks.append({"type": "text", "text": one.content})
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in one.tool_calls
        ]
        role = "assistant" if one.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _reply(body: dict[str, Any], call: Call) -> Reply:
    content = body.get("content")
    if not isinstance(content, list):
        raise Fault(None, GARBLED, "the answer has no content")
    blocks = [one for one in content if isinstance(one, dict)]
    text = "".join(str(one.get("text") or "") for one in blocks if one.get("type") == "text")
    calls = [
        RawToolCall(str(one.get("id") or ""), str(one.get("name") or ""), one.get("input"))
        for one in blocks
        if one.get("type") == "tool_use"
    ]
    finish = _FINISH.get(str(body.get("stop_reason") or "end_turn"), "other")
    if call.mode == JSON_OBJECT and calls:
        # The answer is what the tool was called with; text beside it is small talk.
        given = calls[0].arguments
        text, calls = given if isinstance(given, str) else schema_text(given or {}), []
        finish = "stop" if finish == "tool_calls" else finish
    return Reply(
        text=text,
        finish_reason=finish,
        tool_calls=tuple(calls),
        refusal="refusal" if body.get("stop_reason") == "refusal" else None,
        usage=_usage(body.get("usage")),
        model=str(body.get("model") or ""),
    )


def _usage(told: Any) -> Usage:
    if not isinstance(told, dict):
        return Usage()
    read, made = whole(told.get("cache_read_input_tokens")), whole(told.get("cache_creation_input_tokens"))
    return Usage(
        # The API counts what went through its cache apart.
        input=whole(told.get("input_tokens")) + read + made,
        output=whole(told.get("output_tokens")),
        cached=read,
        reported=True,
    )

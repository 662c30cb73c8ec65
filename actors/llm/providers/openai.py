"""OpenAI's chat completions, and the many servers that speak them: through the official SDK, its retries off.

Answers are read from the raw JSON, because servers that are only compatible leave out what the SDK's types promise.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from recalld.actors.llm.base import Message, Usage
from recalld.actors.llm.faults import CONNECTION, GARBLED, TIMEOUT, Fault, from_body
from recalld.actors.llm.modes import JSON_SCHEMA, MODES, closed
from recalld.actors.llm.provider import Call, ModelChoice, RawToolCall, Reply
from recalld.actors.llm.providers.rest import decoded, is_loopback_url, quiet
from recalld.storage.errors import ModelRefused

OFFICIAL = "https://api.openai.com/v1"
_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}


class OpenAiProvider:
    """One model behind one base URL."""

    modes = MODES

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        self._client: Any = None
        self._sdk: Any = None
        self._loading = asyncio.Lock()
        # The official servers know the new name alone for newer models, many others the old one alone.
        official = (urlsplit(choice.base_url).hostname or "").endswith("openai.com")
        self._limit_names = ("max_completion_tokens", "max_tokens")[:: 1 if official else -1]

    async def open(self) -> None:
        await self._open()

    async def send(self, call: Call) -> Reply:
        client = await self._open()
        try:
            raw = await client.chat.completions.with_raw_response.create(
                **self._body(call), extra_body=dict(self.choice.extra_body) or None, timeout=call.timeout
            )
        except self._sdk.APIStatusError as error:
            raise status_fault(error) from None
        except self._sdk.APITimeoutError:
            raise Fault(None, TIMEOUT, f"no answer within {call.timeout:g} s") from None
        except self._sdk.APIConnectionError as error:
            raise Fault(None, CONNECTION, type(error.__cause__ or error).__name__) from None
        return read_reply(decoded(raw.status_code, raw.content, dict(raw.headers)))

    async def known(self) -> bool | None:
        client = await self._open()
        try:
            raw = await client.models.with_raw_response.list(timeout=10.0)
        except self._sdk.APIStatusError as error:
            fault = status_fault(error)
            if fault.status in (404, 405, 501):
                return None
            raise fault from None
        except self._sdk.APIConnectionError as error:
            raise Fault(None, CONNECTION, type(error.__cause__ or error).__name__) from None
        rows = decoded(raw.status_code, raw.content, dict(raw.headers)).get("data")
        if not isinstance(rows, list) or not rows:
            return None
        return any(isinstance(row, dict) and row.get("id") == self.choice.model for row in rows)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _open(self) -> Any:
        """The SDK's client. Importing it takes half a second, which is spent beside the event loop."""
        async with self._loading:
            if self._client is None:
                try:
                    self._sdk = await asyncio.to_thread(importlib.import_module, "openai")
                except ImportError:
                    raise ModelRefused(
                        "The package openai is missing; install it with `pip install openai`.", cause="missing_package"
                    ) from None
                quiet("openai", "httpx", "httpx2", "httpcore", "httpcore2")
                plain = is_loopback_url(self.choice.base_url)
                self._client = self._sdk.AsyncOpenAI(
                    # Servers without keys still want the header.
                    api_key=self.choice.key or "none",
                    base_url=self.choice.base_url,
                    max_retries=0,
                    default_headers=dict(self.choice.headers) or None,
                    http_client=self._sdk.DefaultAsyncHttpxClient(trust_env=False) if plain else None,
                )
        return self._client

    def _body(self, call: Call) -> dict[str, Any]:
        return request_body(self.choice, call, self._limit_names)


def request_body(choice: ModelChoice, call: Call, limit_names: tuple[str, ...]) -> dict[str, Any]:
    """The body of a chat completion."""
    body: dict[str, Any] = {"model": choice.model, "messages": [_message(one) for one in call.messages]}
    if call.temperature is not None and "temperature" not in call.skip:
        body["temperature"] = call.temperature
    names = [name for name in limit_names if name not in call.skip]
    if call.max_tokens is not None and names:
        body[names[0]] = call.max_tokens
    if choice.reasoning_effort and "reasoning_effort" not in call.skip:
        body["reasoning_effort"] = choice.reasoning_effort
    if call.schema is not None:
        body["response_format"] = _response_format(choice, call)
    if call.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": one.name, "description": one.description, "parameters": dict(one.parameters)},
            }
            for one in call.tools
        ]
        if "tool_choice" not in call.skip:
            named = call.tool_choice not in ("auto", "none", "required")
            body["tool_choice"] = (
                {"type": "function", "function": {"name": call.tool_choice}} if named else call.tool_choice
            )
    return body


def _response_format(choice: ModelChoice, call: Call) -> dict[str, Any]:
    assert call.schema is not None
    if call.mode == JSON_SCHEMA:
        schema = closed(call.schema) if choice.strict else call.schema
        inside: dict[str, Any] = {"name": call.schema_name, "schema": dict(schema)}
        if choice.strict:
            inside["strict"] = True
        return {"type": "json_schema", "json_schema": inside}
    return {"type": "json_object", "schema": dict(call.schema)}


def _message(message: Message) -> dict[str, Any]:
    shaped: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shaped["content"] = message.content or None
        shaped["tool_calls"] = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.name, "arguments": json.dumps(one.arguments, ensure_ascii=False)},
            }
            for one in message.tool_calls
        ]
    if message.role == "tool":
        shaped["tool_call_id"] = message.tool_call_id
    return shaped


def status_fault(error: Any) -> Fault:
    """The fault in an `APIStatusError` of the SDK (or of a library that mirrors it)."""
    response = getattr(error, "response", None)
    headers = dict(response.headers) if response is not None else {}
    body = error.body if getattr(error, "body", None) is not None else str(getattr(error, "message", ""))
    return from_body(int(error.status_code), body, headers)


def read_reply(body: Mapping[str, Any]) -> Reply:
    """A chat completion as a `Reply`. Raises `Fault` where a server reports a failure with status 200."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    error = body.get("error") or (first or {}).get("error")
    if error and (first is None or first.get("finish_reason") in (None, "error")):
        code = error.get("code") if isinstance(error, dict) else None
        raise from_body(code if isinstance(code, int) and 400 <= code < 600 else 502, {"error": error}, {})
    if first is None:
        raise Fault(None, GARBLED, "the answer has no choices")
    message = first.get("message")
    message = message if isinstance(message, dict) else {"content": first.get("text")}
    text, finish = _text(message.get("content")), str(first.get("finish_reason") or "stop")
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    if not text and isinstance(thoughts, str) and thoughts.lstrip().startswith("{") and finish == "stop":
        text = thoughts  # some servers file a schema-bound answer under its reasoning
    refusal = message.get("refusal")
    if finish == "content_filter":
        refusal = refusal or "content_filter"
    return Reply(
        text=text,
        finish_reason=_FINISH.get(finish, "other"),
        tool_calls=tuple(_tool_calls(message.get("tool_calls"))),
        refusal=str(refusal) if refusal else None,
        usage=_usage(body.get("usage")),
        model=str(body.get("model") or ""),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(str(one.get("text") or "") for one in parts if isinstance(one, dict) and one.get("type") == "text")


def _tool_calls(calls: Any) -> list[RawToolCall]:
    found = []
    for number, one in enumerate(calls if isinstance(calls, list) else ()):
        function = one.get("function") if isinstance(one, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            found.append(
                RawToolCall(str(one.get("id") or f"call_{number}"), function["name"], function.get("arguments"))
            )
    return found


def whole(value: Any) -> int:
    """A token count out of a provider's mouth: 0 for what is no count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _usage(told: Any) -> Usage:
    if not isinstance(told, dict):
        return Usage()
    read = told.get("prompt_tokens_details")
    cached = read.get("cached_tokens") if isinstance(read, dict) else told.get("prompt_cache_hit_tokens")
    spent = told.get("completion_tokens_details")
    return Usage(
        input=whole(told.get("prompt_tokens")),
        output=whole(told.get("completion_tokens")),
        cached=whole(cached),
        reported=True,
        thoughts=whole(spent.get("reasoning_tokens")) if isinstance(spent, dict) else 0,
    )

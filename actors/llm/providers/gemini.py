"""Google's Gemini API (`generateContent`), as its REST reference documents it.

Spoken over the daemon's own HTTP library: it is one POST with a key, while the SDK brings Google's authentication,
a second HTTP library, websockets and retries of its own. Vertex AI, which needs that authentication, goes through
`litellm`.

A schema travels in `responseJsonSchema`, for older models as the OpenAPI subset in `responseSchema`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from recalld.actors.llm.base import Message, Schema, Usage
from recalld.actors.llm.faults import GARBLED, Fault
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, MODES
from recalld.actors.llm.provider import Call, ModelChoice, RawToolCall, Reply
from recalld.actors.llm.providers.openai import whole
from recalld.actors.llm.providers.rest import Rest

OFFICIAL = "https://generativelanguage.googleapis.com"
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
_REFUSED = {
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE", "MODEL_ARMOR",
}  # fmt: skip
_OPENAPI = ("description", "format", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern")


class GeminiProvider:
    modes = MODES

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        base = choice.base_url.rstrip("/")
        self._version = "" if base.rsplit("/", 1)[-1] in ("v1", "v1beta", "v1alpha") else "/v1beta"
        headers = dict(choice.headers)
        if choice.key:
            headers.setdefault("x-goog-api-key", choice.key)
        self._rest = Rest(base, headers)

    async def open(self) -> None:
        return None

    async def send(self, call: Call) -> Reply:
        path = f"{self._path()}:generateContent"
        return _reply(await self._rest.post(path, {**_body(self.choice, call), **self.choice.extra_body}, call.timeout))

    async def known(self) -> bool | None:
        try:
            await self._rest.get(self._path(), 10.0)
        except Fault as fault:
            if fault.status == 404:
                return False if "NOT_FOUND" in fault.code else None
            if fault.status in (405, 501):
                return None
            raise
        return True

    async def close(self) -> None:
        await self._rest.close()

    def _path(self) -> str:
        return f"{self._version}/models/{quote(self.choice.model.removeprefix('models/'), safe='')}"


def _body(choice: ModelChoice, call: Call) -> dict[str, Any]:
    body: dict[str, Any] = {"contents": _contents(call.messages)}
    rules = "\n\n".join(one.content for one in call.messages if one.role == "system")
    if rules:
        body["systemInstruction"] = {"parts": [{"text": rules}]}
    settings: dict[str, Any] = {}
    if call.temperature is not None and "temperature" not in call.skip:
        settings["temperature"] = call.temperature
    if call.max_tokens is not None and "max_tokens" not in call.skip:
        settings["maxOutputTokens"] = call.max_tokens
    if choice.reasoning_effort and "reasoning_effort" not in call.skip:
        settings["thinkingConfig"] = {"thinkingLevel": choice.reasoning_effort.upper()}
    if call.schema is not None:
        settings["responseMimeType"] = "application/json"
        if call.mode == JSON_SCHEMA:
            settings["responseJsonSchema"] = dict(call.schema)
        elif call.mode == JSON_OBJECT:
            settings["responseSchema"] = openapi(call.schema, call.schema)
    if settings:
        body["generationConfig"] = settings
    if call.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {"name": one.name, "description": one.description, "parametersJsonSchema": dict(one.parameters)}
                    for one in call.tools
                ]
            }
        ]
        if "tool_choice" not in call.skip:
            kinds = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
            chosen: dict[str, Any] = {"mode": kinds.get(call.tool_choice, "ANY")}
            if call.tool_choice not in kinds:
                chosen["allowedFunctionNames"] = [call.tool_choice]
            body["toolConfig"] = {"functionCallingConfig": chosen}
    return body


def _contents(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for one in messages:
        if one.role == "system":
            continue
        parts: list[dict[str, Any]] = []
        if one.role == "tool":
            parts.append({"functionResponse": {"name": one.name, "response": {"result": one.content}}})
        elif one.content:
            parts.append({"text": one.content})
        for call in one.tool_calls:
            part: dict[str, Any] = {"functionCall": {"name": call.name, "args": call.arguments}}
            # Models that think want their mark back with the call, or refuse the turn.
            parts.append({**part, "thoughtSignature": call.signature} if call.signature else part)
        role = "model" if one.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": role, "parts": parts})
    return turns


def openapi(schema: Schema, root: Schema, depth: int = 0) -> dict[str, Any]:
    """A JSON schema as the subset of OpenAPI that `responseSchema` takes; what it cannot say is left out."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/") and depth < 16:
        return openapi(root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {}), root, depth + 1)
    changed: dict[str, Any] = {key: schema[key] for key in _OPENAPI if key in schema}
    declared = schema.get("type")
    types = [declared] if isinstance(declared, str) else list(declared or ())
    if "null" in types:
        changed["nullable"] = True
    named = [one for one in types if one != "null"]
    if named:
        changed["type"] = str(named[0]).upper()
    choices = [one for one in schema.get("anyOf") or schema.get("oneOf") or () if one.get("type") != "null"]
    if choices:
        inside = [openapi(one, root, depth + 1) for one in choices]
        changed.update(inside[0] if len(inside) == 1 else {"anyOf": inside})
        if len(choices) < len(schema.get("anyOf") or schema.get("oneOf") or ()):
            changed["nullable"] = True
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        changed |= {"type": "STRING", "enum": [str(one) for one in words if one is not None]}
    if isinstance(schema.get("properties"), dict):
        changed["properties"] = {name: openapi(part, root, depth + 1) for name, part in schema["properties"].items()}
        changed["required"] = list(schema.get("required", ()))
        changed["propertyOrdering"] = list(schema["properties"])
    if isinstance(schema.get("items"), dict):
        changed["items"] = openapi(schema["items"], root, depth + 1)
    return changed


def _reply(body: dict[str, Any]) -> Reply:
    usage, model = _usage(body.get("usageMetadata")), str(body.get("modelVersion") or "")
    listed = body.get("candidates")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else None
    feedback = body.get("promptFeedback")
    blocked = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if first is None:
        if blocked:
            return Reply("", refusal=str(blocked), usage=usage, model=model)
        raise Fault(None, GARBLED, "the answer has no candidates")
    content = first.get("content")
    held = content.get("parts") if isinstance(content, dict) else None
    parts = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    calls = [one for one in parts if isinstance(one.get("functionCall"), dict)]
    finish = str(first.get("finishReason") or "STOP")
    return Reply(
        text="".join(str(one.get("text") or "") for one in parts if not one.get("thought")),
        finish_reason=_FINISH.get(finish, "other"),
        tool_calls=tuple(
            _tool_call(one["functionCall"], number, one.get("thoughtSignature")) for number, one in enumerate(calls)
        ),
        refusal=finish if finish in _REFUSED else None,
        usage=usage,
        model=model,
    )


def _tool_call(call: dict[str, Any], number: int, signature: Any) -> RawToolCall:
    mark = signature if isinstance(signature, str) else ""
    return RawToolCall(str(call.get("id") or f"call_{number}"), str(call.get("name") or ""), call.get("args"), mark)


def _usage(told: Any) -> Usage:
    if not isinstance(told, dict):
        return Usage()
    thoughts = whole(told.get("thoughtsTokenCount"))
    return Usage(
        input=whole(told.get("promptTokenCount")),
        output=whole(told.get("candidatesTokenCount")) + thoughts,
        cached=whole(told.get("cachedContentTokenCount")),
        reported=True,
        thoughts=thoughts,
    )

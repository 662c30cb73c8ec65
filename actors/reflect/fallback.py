"""Tools for models that cannot call any: they say in JSON which one they want. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from recalld.actors.llm.base import Tool, ToolCall
from recalld.actors.llm.parsing import candidates


def explained(tools: Sequence[Tool]) -> str:
    """The tools for the system message of a model that takes none natively."""
    lines = [f"- {one.name}: {one.description} Arguments: {', '.join(one.parameters['properties'])}." for one in tools]
    return "Tools. Name one at a time, with its arguments:\n" + "\n".join(lines)


def schema_for(tools: Sequence[Tool]) -> dict[str, Any]:
    """The schema of one step: the name of a tool, and beside it the arguments of all. Flat: small models go astray in
    what is nested."""
    fields: dict[str, Any] = {"tool": {"type": "string", "enum": [one.name for one in tools]}}
    for one in tools:
        fields |= one.parameters["properties"]
    return {"type": "object", "properties": fields, "required": ["tool"], "additionalProperties": False}


def call_of(step: Any) -> ToolCall | None:
    """The call that a step in JSON asks for; None when it names no tool."""
    if not isinstance(step, dict):
        return None
    name = next((step[key] for key in ("tool", "name", "tool_name", "function") if isinstance(step.get(key), str)), "")
    if not name:
        return None
    inner = next((step[key] for key in ("arguments", "parameters", "input", "args") if key in step), None)
    if isinstance(inner, str):
        found = candidates(inner)
        inner = found[0].value if found else None
    arguments = inner if isinstance(inner, dict) else {key: value for key, value in step.items() if key != "tool"}
    return ToolCall("", name, {key: value for key, value in arguments.items() if value is not None})


def spoken_call(text: str, names: Sequence[str]) -> ToolCall | None:
    """The call of a known tool that stands as JSON in what a model said."""
    for found in candidates(text):
        call = call_of(found.value) if found.complete else None
        if call is not None and call.name in names:
            return call
    return None


def shown(call: ToolCall) -> str:
    """A call as the model said it, for its own history."""
    return json.dumps({"tool": call.name, **call.arguments}, ensure_ascii=False)

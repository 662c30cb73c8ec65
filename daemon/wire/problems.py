"""Errors as bodies: `{"detail": ...}`, and the list form of what does not validate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from recalld.daemon.wire.base import clean_text

MAX_PROBLEMS = 50
MAX_INPUT_CHARS = 200
MAX_INPUT_ITEMS = 5


def detail(text: str) -> dict[str, Any]:
    return {"detail": text}


def error(text: str) -> dict[str, Any]:
    """The same as MCP says it outside of its own messages."""
    return {"error": text}


def validation(error: ValidationError, where: str) -> dict[str, Any]:
    """The 422 body of a request part that does not validate; `where` is `body`, `query` or `path`."""
    found = error.errors(include_url=False)
    return {"detail": [_problem(one, where) for one in found[:MAX_PROBLEMS]]}


def missing(where: str) -> dict[str, Any]:
    """The 422 body of a request without the part it needs."""
    return {"detail": [{"type": "missing", "loc": [where], "msg": "Field required", "input": None, "ctx": None}]}


def invalid_json(error: ValueError | RecursionError) -> dict[str, Any]:
    """The 422 body of a body that is no JSON."""
    if isinstance(error, json.JSONDecodeError):
        position, reason = error.pos, error.msg
    elif isinstance(error, UnicodeDecodeError):
        position, reason = error.start, "the body is not valid UTF-8"
    elif isinstance(error, RecursionError):
        position, reason = 0, "the body is nested too deep"
    else:
        position, reason = 0, str(error)[:MAX_INPUT_CHARS]
    problem = {
        "type": "json_invalid",
        "loc": ["body", position],
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": clean_text(reason)},
    }
    return {"detail": [problem]}


def not_an_object(value: Any) -> dict[str, Any]:
    """The 422 body of a JSON body that is no object."""
    problem = {
        "type": "model_attributes_type",
        "loc": ["body"],
        "msg": "Input should be a valid dictionary or object to extract fields from",
        "input": short(value),
        "ctx": None,
    }
    return {"detail": [problem]}


def _problem(error: ErrorDetails, where: str) -> dict[str, Any]:
    context = error.get("ctx")
    return {
        "type": error["type"],
        "loc": [
            where,
            *(clean_text(part)[:MAX_INPUT_CHARS] if isinstance(part, str) else part for part in error["loc"]),
        ],
        "msg": clean_text(error["msg"])[:1000],
        "input": short(error["input"]),
        "ctx": {key: short(str(value) if isinstance(value, Exception) else value) for key, value in context.items()}
        if context
        else None,
    }


def short(value: Any, depth: int = 3) -> Any:
    """A JSON value cut to what an error may repeat: few items, short texts, little nesting, no NaN."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # NaN and the infinities are no JSON
    if isinstance(value, str):
        text = clean_text(value[: MAX_INPUT_CHARS + 1])
        return text if len(text) <= MAX_INPUT_CHARS else text[:MAX_INPUT_CHARS] + "…"
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {short(str(key)): short(one, depth - 1) for key, one in _first(value.items())} | _rest(value)
    if isinstance(value, (list, tuple)):
        return [short(one, depth - 1) for one in _first(value)] + (["…"] if len(value) > MAX_INPUT_ITEMS else [])
    return short(str(value))


def _first(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if len(found) == MAX_INPUT_ITEMS:
            break
        found.append(value)
    return found


def _rest(value: Mapping[Any, Any]) -> dict[str, str]:
    return {"…": f"{len(value) - MAX_INPUT_ITEMS} more"} if len(value) > MAX_INPUT_ITEMS else {}

"""How the schema of an answer travels, and the memory of what a server does not take.

    json_schema   in the provider's own field for schemas
    json_object   in an older or weaker field of its own (each provider says which)
    text          in the prompt, and the answer is plain text that is parsed

A schema is in one of the three places, never in two. What a server refused is remembered for each (base URL, model), so
that only the first call walks down.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from recalld.actors.llm.base import Message, Schema, system

JSON_SCHEMA, JSON_OBJECT, TEXT = "json_schema", "json_object", "text"
MODES = (JSON_SCHEMA, JSON_OBJECT, TEXT)

_IGNORED_BEFORE_LEFT = 2
_ASK = "Answer with one JSON object and nothing else: no explanation, no code fence. It follows this JSON schema:\n"

Endpoint = tuple[str, str]
"""(base URL, model)."""


@dataclass(slots=True)
class Habits:
    """What one model behind one base URL was seen to refuse."""

    modes: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    output_limit: int | None = None
    ignored: dict[str, int] = field(default_factory=dict)
    spoken: str = ""

    def open_modes(self, offered: Sequence[str]) -> list[str]:
        """The modes worth trying, best first; plain text is always one."""
        return [one for one in offered if one not in self.modes] or [TEXT]

    def refused(self, mode: str) -> None:
        self.modes.add(mode)

    def passed_over(self, mode: str) -> None:
        """The server took the schema in `mode` and its answer was of another shape; a weaker mode then worked.

        A server that ignores the field does so every time, a model that slips does not: the second time counts.
        """
        self.ignored[mode] = self.ignored.get(mode, 0) + 1
        if self.ignored[mode] >= _IGNORED_BEFORE_LEFT:
            self.modes.add(mode)

    def worked(self, mode: str) -> None:
        self.spoken = mode
        self.ignored.pop(mode, None)

    def refused_parameter(self, name: str, limit: int | None) -> None:
        if name == "max_tokens" and limit is not None:
            self.output_limit = min(limit, self.output_limit or limit)
        else:
            self.parameters.add(name)


class Memory:
    """Habits by endpoint; lives as long as the process, one for all banks."""

    def __init__(self) -> None:
        self._habits: dict[Endpoint, Habits] = {}

    def of(self, endpoint: Endpoint) -> Habits:
        return self._habits.setdefault(endpoint, Habits())


def schema_text(schema: Schema) -> str:
    """A schema as it is written into a prompt: real characters, no escapes."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def with_schema(messages: Sequence[Message], schema: Schema) -> tuple[Message, ...]:
    """The messages with the schema in the system message, for the mode `text`."""
    asked = _ASK + schema_text(schema)
    if messages and messages[0].role == "system":
        first = replace(messages[0], content=f"{messages[0].content}\n\n{asked}")
        return (first, *messages[1:])
    return (system(asked), *messages)


def closed(schema: Schema, *, require_all: bool = True, without: frozenset[str] = frozenset()) -> Schema:
    """The schema as strict modes want it: every object closed, and without the keywords in `without`.

    With `require_all` every property is required, and the optional ones may be null.
    """

    def inside(part: Schema) -> Schema:
        return closed(part, require_all=require_all, without=without)

    changed = {key: value for key, value in schema.items() if key not in without}
    if isinstance(schema.get("properties"), dict):
        required = set(schema.get("required", ()))
        changed["properties"] = {
            name: inside(part) if name in required or not require_all else _nullable(inside(part))
            for name, part in schema["properties"].items()
        }
        if require_all:
            changed["required"] = list(schema["properties"])
        changed["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        changed["items"] = inside(schema["items"])
    for name in ("anyOf", "oneOf"):
        if isinstance(schema.get(name), list):
            changed[name] = [inside(one) for one in schema[name]]
    if isinstance(schema.get("$defs"), dict):
        changed["$defs"] = {name: inside(part) for name, part in schema["$defs"].items()}
    return changed


def _nullable(schema: Schema) -> Schema:
    declared = schema.get("type")
    if any(key in schema for key in ("enum", "const", "$ref", "anyOf", "oneOf")):
        return {"anyOf": [schema, {"type": "null"}]}
    if isinstance(declared, str) and declared != "null":
        return {**schema, "type": [declared, "null"]}
    return schema

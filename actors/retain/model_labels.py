"""Entity labels: the bank's own vocabularies, as a schema for the model and as a check of what it answers.

A group is `{key, description, type, optional, tag, values, fields}`; types are `value`, `multi-values`, `text`,
`multi-text` and `map`. An assigned label is stored as the entity `key:value` (`key:field:value` for a map), taken
literally; with `tag` it is also a tag of the memory. What a vocabulary does not hold is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recalld.storage.errors import Unprocessable

TYPES = ("value", "multi-values", "text", "multi-text", "map")
LONGEST = 120
MOST_VALUES = 10

Group = Mapping[str, Any]


def checked(groups: Sequence[Any] | None) -> tuple[dict[str, Any], ...]:
    """Label groups with every field present. Raises `Unprocessable` naming what is wrong."""
    found: dict[str, dict[str, Any]] = {}
    for group in groups or ():
        if not isinstance(group, Mapping) or not isinstance(group.get("key"), str) or not group["key"].strip():
            raise Unprocessable("Every group of entity_labels must be an object with a 'key'.")
        one = _field(group, f"entity_labels '{group['key']}'")
        key = " ".join(group["key"].split())
        if ":" in key or key in found:
            raise Unprocessable(f"The key '{key}' of entity_labels must be there once and hold no colon.")
        found[key] = {
            "key": key,
            **one,
            "optional": group.get("optional") is not False,
            "tag": group.get("tag") is True,
        }
    return tuple(found.values())


def _field(field: Mapping[str, Any], where: str, depth: int = 0) -> dict[str, Any]:
    kind = field.get("type") or ("value" if depth == 0 else "text")
    if kind not in TYPES or depth > 3:
        raise Unprocessable(f"{where}: the type must be one of {', '.join(TYPES)}, nested no deeper than three.")
    values = []
    for value in field.get("values") or ():
        text = value.get("value") if isinstance(value, Mapping) else value
        if not isinstance(text, str) or not text.strip():
            raise Unprocessable(f"{where}: every value must be a text, or an object with a text 'value'.")
        note = value.get("description") if isinstance(value, Mapping) else ""
        values.append({"value": " ".join(text.split()), "description": note if isinstance(note, str) else ""})
    fields = field.get("fields") or {}
    if not isinstance(fields, Mapping):
        raise Unprocessable(f"{where}: 'fields' must be an object.")
    note = field.get("description")
    return {
        "type": kind,
        "description": note if isinstance(note, str) else "",
        "values": values,
        "fields": {str(name): _field(one, f"{where}.{name}", depth + 1) for name, one in fields.items()},
    }


def schema(groups: Sequence[Group]) -> dict[str, Any]:
    """The JSON schema of the labels of one fact."""
    return {
        "type": "object",
        "properties": {group["key"]: _schema(group) for group in groups},
        "additionalProperties": False,
    }


def _schema(field: Group) -> dict[str, Any]:
    words = [value["value"] for value in field["values"]]
    one: dict[str, Any] = {"type": "string", "maxLength": LONGEST}
    match field["type"]:
        case "value":
            shape = {"type": "string", "enum": words} if words else one
        case "multi-values":
            item = {"type": "string", "enum": words} if words else one
            shape = {"type": "array", "items": item, "maxItems": MOST_VALUES}
        case "multi-text":
            shape = {"type": "array", "items": one, "maxItems": MOST_VALUES}
        case "map":
            fields = {name: _schema(inner) for name, inner in field["fields"].items()}
            shape = {"type": "object", "properties": fields, "additionalProperties": False}
        case _:
            shape = one
    return {**shape, "description": field["description"]} if field["description"] else shape


def explained(groups: Sequence[Group]) -> str:
    """The vocabularies in words: a line a group, a line a described value."""
    lines = []
    for group in groups:
        words = ", ".join(value["value"] for value in group["values"])
        choice = f"one of {words}" if group["type"] == "value" and words else f"any of {words}" if words else "text"
        must = "" if group["optional"] else ", always given"
        note = f" ({group['description']})" if group["description"] else ""
        lines.append(f"- {group['key']}{note}: {'an object' if group['type'] == 'map' else choice}{must}")
        lines += [f"  - {v['value']}: {v['description']}" for v in group["values"] if v["description"]]
    return "\n".join(lines)


def assigned(groups: Sequence[Group], answer: Any) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """(entities, tags, keys of what was dropped because no vocabulary holds it) of one fact's labels."""
    names: dict[str, None] = {}
    tags: dict[str, None] = {}
    dropped: list[str] = []
    given = answer if isinstance(answer, Mapping) else {}
    for group in groups:
        for name in _names(group, given.get(group["key"]), group["key"], dropped):
            names[name] = None
            if group["tag"]:
                tags[name] = None
    dropped += [str(key) for key in given.keys() - {group["key"] for group in groups}]
    return tuple(names), tuple(tags), dropped


def _names(field: Group, value: Any, prefix: str, dropped: list[str]) -> Iterator[str]:
    if field["type"] == "map":
        inner = value if isinstance(value, Mapping) else {}
        for name, one in field["fields"].items():
            yield from _names(one, inner.get(name), f"{prefix}:{name}", dropped)
        return
    several = field["type"].startswith("multi")
    values = value if isinstance(value, list) else [] if value is None else [value]
    known = {one["value"].casefold(): one["value"] for one in field["values"]}
    for one in values[: MOST_VALUES if several else 1]:
        text = " ".join(one.split())[:LONGEST] if isinstance(one, str) else ""
        if not text:
            continue
        if field["type"] in ("value", "multi-values") and known:
            if text.casefold() not in known:
                dropped.append(prefix)
                continue
            text = known[text.casefold()]
        yield f"{prefix}:{text}"


def tag_keys(groups: Sequence[Group]) -> tuple[str, ...]:
    """How tags that labels wrote begin."""
    return tuple(f"{group['key']}:" for group in groups if group["tag"])

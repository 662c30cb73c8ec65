"""Make a model's value fit the schema it was asked for: coerce what is safe, leave out item by item what is not. Pure.

Of JSON Schema this understands type (also a list of types), properties, required, items, enum, const, anyOf, oneOf,
`$ref` into `$defs`, default, minimum, maximum, minLength. Limits on length and count are for the provider; a text that
is longer is kept whole here, since half a sentence can say the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recalld.actors.llm.base import Rejected, Schema
from recalld.actors.llm.parsing import DEEPEST, Found, candidates, without_reasoning

_UNREAD = Rejected("", "stands beside what cannot be read")
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}
_NUMBER = re.compile(r"[+-]?(\d{1,18}(\.\d+)?|\.\d+)([eE][+-]?\d{1,3})?")


class Misfit(ValueError):
    """A value that no safe change makes fit; the message is a reason without the value."""


@dataclass(frozen=True, slots=True)
class Read:
    """An answer as its schema wants it, what was left out of it, what was mended, and whether it was all there."""

    value: Any
    rejected: tuple[Rejected, ...] = ()
    repairs: tuple[str, ...] = ()
    complete: bool = True


def read_answer(text: str, schema: Schema) -> Read:
    """The value in a model's answer. Raises `Misfit` when nothing in it is one.

    Of several values the last that fits as it stands counts, empty ones last of all; else what fits best after being
    wrapped or unwrapped. Lines of items with nothing around them are taken together. What stands in brackets
    that cannot be read is a part of an answer: its items count, with a note that others are missing; bare words and
    emptiness do not.
    """
    text = without_reasoning(text)
    found = candidates(text)
    if not found:
        raise Misfit("there is no JSON in the answer" if text.strip() else "the answer is empty")
    best: tuple[tuple[int, int, int], Read] | None = None
    reason: Misfit | None = None
    for number, one in enumerate(found):
        for straight, value in _views(one.value, schema):
            rejected: list[Rejected] = []
            try:
                if not straight and not _is_whole(one, text):
                    _insist_on_items(value)
                    rejected += [_UNREAD] if one.inside else []
                fitted = _fit(value, schema, schema, "", rejected, 0)
                if not _weight(fitted) and (items := [one for one in rejected if "[" in one.path]):
                    raise Misfit(f"no part of the answer fits: {items[0].path} {items[0].reason}")
            except Misfit as error:
                reason = reason or error
                continue
            weight = _weight(fitted)
            rank = (int(weight > 0), int(straight), number if straight else weight)
            if best is None or rank >= best[0]:
                repairs = one.repairs if straight else (*one.repairs, "wrapped")
                best = (rank, Read(fitted, tuple(rejected), repairs, one.complete))
            break
    lines = _lines(found, schema) if len(found) > 1 and (best is None or not best[0][1]) else None
    if lines is not None and (best is None or _weight(lines.value) > _weight(best[1].value)):
        return lines
    if best is None:
        raise reason or Misfit("the answer has another shape")
    return best[1]


def fit(value: Any, schema: Schema) -> Read:
    """A value that is already data (a tool's arguments), made to fit. Raises `Misfit`."""
    rejected: list[Rejected] = []
    return Read(_fit(value, schema, schema, "", rejected, 0), tuple(rejected))


def _is_whole(found: Found, text: str) -> bool:
    """Whether a value is what the answer says, and not a part of it that happens to be readable.

    A list of nothing or of bare words has to stand alone, or on the only line there is: many texts have one in passing.
    """
    if found.inside:
        return False
    if isinstance(found.value, dict) or any(isinstance(one, dict) for one in found.value):
        return True
    before, behind = text[: found.start].rpartition("\n")[2], text[found.end :].partition("\n")[0]
    return "\n" not in text.strip() or (not before.strip(" `json") and not behind.strip(" `"))


def _insist_on_items(value: Any) -> None:
    """Raise `Misfit` for a list of bare words or of nothing: names in an item are no items themselves."""
    parts = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if isinstance(parts, list) and not any(isinstance(one, dict) for one in parts):
        raise Misfit("the answer cannot be read, only a list in it")


def _weight(value: Any) -> int:
    """How much an answer holds: its leaves."""
    if isinstance(value, dict):
        return sum(_weight(one) for one in value.values())
    if isinstance(value, list):
        return sum(_weight(one) for one in value)
    return int(value is not None)


def _list_property(schema: Schema) -> str | None:
    """The one property of an answer that is a list, when there is one such and no other is required."""
    lists = [name for name, part in schema.get("properties", {}).items() if "array" in _types(_resolved(part, schema))]
    others = set(schema.get("required", ())) - set(lists)
    return lists[0] if len(lists) == 1 and not others else None


def _views(value: Any, schema: Schema) -> list[tuple[bool, Any]]:
    """The value as it stands (True), then other ways to look at it: wrapped, unwrapped, under another name."""
    views = [(True, value)]
    if "object" not in _types(schema):
        if isinstance(value, dict) and len(value) == 1:
            views.append((False, next(iter(value.values()))))
        elif isinstance(value, dict):
            views.append((False, [value]))
        return views
    lists = _list_property(schema)
    if lists is None:
        return views + [(False, one) for one in _inner(value) if isinstance(one, dict)]
    if isinstance(value, list):
        inner = [one for one in value if isinstance(one, dict) and isinstance(one.get(lists), list)]
        if inner and len(inner) == len(value):
            return [(False, {lists: [item for one in inner for item in one[lists]]})]
        return [(False, {lists: value})]
    if isinstance(value, dict) and not _has(value, lists):
        items = _resolved(_resolved(schema["properties"][lists], schema).get("items", {}), schema)
        wanted = set(items.get("required", ())) or set(items.get("properties", ()))
        views = [(False, {lists: [value]})] if wanted and wanted <= {str(key) for key in value} else []
        views += [(False, one) for one in _inner(value) if isinstance(one, dict) and _has(one, lists)]
        others = [one for one in value.values() if isinstance(one, list)]
        # Beside other members a list of bare words is a list of names or thoughts, and an empty one says nothing.
        if len(others) == 1 and (len(value) == 1 or any(isinstance(one, dict) for one in others[0])):
            views.append((False, {lists: others[0]}))
        views += [(True, value)] if lists not in schema.get("required", ()) else []
        # Last, so that its reason is what is told.
        views += [(False, value)]
    return views


def _inner(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) and len(value) <= 3 else []


def _has(table: Mapping[str, Any], name: str) -> bool:
    return any(_folded(key) == _folded(name) for key in table)


def _lines(found: list[Found], schema: Schema) -> Read | None:
    """Items that stand one after the other with nothing around them, put into the one list of the answer."""
    lists = _list_property(schema) if "object" in _types(schema) else None
    if lists is None:
        return None
    rejected: list[Rejected] = []
    try:
        value = _fit({lists: [one.value for one in found]}, schema, schema, "", rejected, 0)
    except Misfit:
        return None
    if not value.get(lists):
        return None
    repairs = tuple(dict.fromkeys([*(repair for one in found for repair in one.repairs), "wrapped"]))
    rejected += [_UNREAD] if any(one.inside for one in found) else []
    return Read(value, tuple(rejected), repairs, all(one.complete for one in found))


# -- one value against one schema ------------------------------------------------------------------------------------


def _resolved(schema: Schema, root: Schema) -> Schema:
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        target: Any = root
        for step in reference[2:].split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        schema = target
    return schema


def _types(schema: Schema) -> tuple[str, ...]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return (declared,)
    if declared:
        return tuple(declared)
    if "properties" in schema:
        return ("object",)
    return ("array",) if "items" in schema else ()


def _fit(value: Any, schema: Schema, root: Schema, path: str, rejected: list[Rejected], depth: int) -> Any:
    if depth > DEEPEST:
        raise Misfit("is nested too deeply")
    schema = _resolved(schema, root)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return _fit_choice(value, choices, root, path, rejected, depth)
    if "const" in schema or "enum" in schema:
        return _fit_enum(value, schema["enum"] if "enum" in schema else [schema["const"]])
    types = _types(schema)
    if len(types) > 1:
        return _fit_choice(value, [{**schema, "type": one} for one in types], root, path, rejected, depth)
    if not types:
        return value
    kind = types[0]
    if kind == "object":
        return _fit_object(value, schema, root, path, rejected, depth)
    if kind == "array":
        return _fit_array(value, schema, root, path, rejected, depth)
    if kind == "null":
        if value is None or (isinstance(value, str) and value.strip().lower() in ("", "null", "none")):
            return None
        raise Misfit("should be null")
    fitted = {"string": _fit_string, "integer": _fit_integer, "number": _fit_number, "boolean": _fit_boolean}[kind](
        value
    )
    _within(fitted, schema)
    return fitted


def _fit_choice(
    value: Any, choices: list[Schema], root: Schema, path: str, rejected: list[Rejected], depth: int
) -> Any:
    """The first choice the value already is, else the first it can be made into."""
    matching = [one for one in choices if _is_already(value, _resolved(one, root))]
    reason: Misfit | None = None
    for one in [*matching, *(other for other in choices if other not in matching)]:
        left_out: list[Rejected] = []
        try:
            fitted = _fit(value, one, root, path, left_out, depth + 1)
        except Misfit as error:
            reason = reason or error
            continue
        rejected += left_out
        return fitted
    raise reason or Misfit("fits none of the shapes it may have")


def _is_already(value: Any, schema: Schema) -> bool:
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    names = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
        "null": type(None),
    }  # fmt: skip
    return any(
        isinstance(value, names[kind]) and (kind == "boolean" or not isinstance(value, bool))  # type: ignore[arg-type]
        for kind in _types(schema)
        if kind in names
    )


def _folded(word: Any) -> str:
    return re.sub(r"[\s_\-]+", "", str(word)).casefold()


def _fit_enum(value: Any, allowed: list[Any]) -> Any:
    if value in allowed and not isinstance(value, bool):
        return value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict | list):
        raise Misfit("should be one word of the list")
    folded = _folded(value)
    for one in allowed:
        if _folded(one) == folded:
            return one
    raise Misfit("is none of the words it may be")


def _fit_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    if isinstance(value, dict):
        named = [value[key] for key in ("text", "name", "value") if isinstance(value.get(key), str)]
        if named:
            return str(named[0])
    raise Misfit("should be text")


def _fit_number(value: Any) -> float | int:
    if isinstance(value, bool) or value is None:
        raise Misfit("should be a number")
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value.strip())
        return int(number) if number.is_integer() and "." not in value else number
    raise Misfit("should be a number")


def _fit_integer(value: Any) -> int:
    number = _fit_number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise Misfit("should be a whole number")
        return int(number)
    return number


def _fit_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | str):
        word = str(value).strip().lower()
        if word in _TRUE | _FALSE:
            return word in _TRUE
    raise Misfit("should be true or false")


def _within(value: Any, schema: Schema) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise Misfit("is outside its range")
    if isinstance(value, str) and len(value.strip()) < schema.get("minLength", 0):
        raise Misfit("is empty" if not value.strip() else "is too short")


def _fit_array(value: Any, schema: Schema, root: Schema, path: str, rejected: list[Rejected], depth: int) -> list[Any]:
    items = _resolved(schema.get("items", {}), root)
    if value is None:
        return []
    if isinstance(value, str):
        value = _as_data(value, list) if value.strip() else []
    if isinstance(value, dict):
        numbered = bool(value) and all(str(key).isdigit() for key in value)
        value = list(value.values()) if numbered else [value] if value else []
    elif not isinstance(value, list):
        value = [value]
    fitted = []
    for number, one in enumerate(value):
        place = f"{path}[{number}]"
        left_out: list[Rejected] = []
        try:
            fitted.append(_fit(one, items, root, place, left_out, depth + 1))
        except Misfit as error:
            rejected.append(Rejected(place, str(error)))
        else:
            rejected += left_out
    return fitted


def _fit_object(
    value: Any, schema: Schema, root: Schema, path: str, rejected: list[Rejected], depth: int
) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    if isinstance(value, str):
        value = _as_data(value, dict)
        if isinstance(value, str) and len(required) == 1:
            value = {next(iter(required)): value}
    if not isinstance(value, dict):
        raise Misfit("should be an object")
    if not properties:
        return dict(value)
    extra = schema.get("additionalProperties")
    fitted: dict[str, Any] = {}
    names = {_folded(name): name for name in properties}
    given: dict[str, Any] = {}
    for key, one in value.items():
        name = key if key in properties else names.get(_folded(key))
        if name is None:
            if extra is True:
                fitted[str(key)] = one
            continue
        if name not in given or key == name:
            given[name] = one
    for name, part in properties.items():
        place = f"{path}.{name}" if path else name
        if name not in given:
            if name in required:
                _stand_in(fitted, name, _resolved(part, root), depth)
            continue
        if given[name] is None and name not in required and not _takes_null(_resolved(part, root), root):
            continue
        try:
            fitted[name] = _fit(given[name], part, root, place, rejected, depth + 1)
        except Misfit as error:
            if name in required:
                raise Misfit(f"{name} {error}") from None
            rejected.append(Rejected(place, str(error)))
    return fitted


def _stand_in(fitted: dict[str, Any], name: str, part: Schema, depth: int) -> None:
    """What a required member that is missing may be taken for without inventing anything: its default, or nothing.

    The answer itself (depth 0) must have its list: an answer without it is another answer.
    """
    if "default" in part:
        fitted[name] = part["default"]
    elif "null" in _types(part):
        fitted[name] = None
    elif "array" in _types(part) and depth:
        fitted[name] = []
    else:
        raise Misfit(f"{name} is missing")


def _takes_null(part: Schema, root: Schema) -> bool:
    choices = part.get("anyOf") or part.get("oneOf") or ()
    return "null" in _types(part) or any("null" in _types(_resolved(one, root)) for one in choices)


def _as_data(text: str, kind: type) -> Any:
    """The list or object written in a text, or else the text."""
    if text.lstrip()[:1] in ("{", "["):
        found = candidates(text)
        if len(found) == 1 and isinstance(found[0].value, kind):
            return found[0].value
    return text

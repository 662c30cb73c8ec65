"""Routes as values, matched on the raw path.

aiohttp decodes `%2F` before it matches, which would cut the bank id `a/b` in two; so one catch-all route hands every
request to `Router`, which matches the path as it came and decodes each parameter afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote_to_bytes

from recalld.daemon.wire.base import RequestModel, ResponseModel, clean_text
from recalld.daemon.wire.queries import NoQuery
from recalld.storage.errors import BadRequest

if TYPE_CHECKING:
    from recalld.daemon.exchange import Call

Handler = Callable[["Call"], Awaitable[Any]]
Role = Literal["read", "write", "admin"]

MAX_BANK_ID_BYTES = 192


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. In `path` a parameter is `{name}`; `{name:any}` also takes slashes.

    `public` routes need no key. `lane` names the admission lane. `role` is what a key must be allowed to do. An
    `upload` reads its body itself, as multipart; `body` is then the JSON in its part `request`. With `body_optional` no
    body is one without fields.
    """

    method: str
    path: str
    operation: str
    handler: Handler
    summary: str
    query: type[RequestModel] = NoQuery
    body: type[RequestModel] | None = None
    response: type[ResponseModel] | None = None
    lane: str | None = None
    role: Role = "read"
    public: bool = False
    tag: str = ""
    upload: bool = False
    body_optional: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        expression = re.sub(r"\{(\w+)(:any)?\}", _group, re.escape(self.path).replace(r"\{", "{").replace(r"\}", "}"))
        object.__setattr__(self, "pattern", re.compile(expression, re.DOTALL))

    @property
    def template(self) -> str:
        """The path as documents show it."""
        return self.path.replace(":any}", "}")

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.pattern.groupindex)


def _group(match: re.Match[str]) -> str:
    name, greedy = match.groups()
    return f"(?P<{name}>.+)" if greedy else f"(?P<{name}>[^/]*)"


@dataclass(frozen=True, slots=True)
class Match:
    """What a path matched: the route with its raw parameters, or the methods that would have."""

    route: Route | None
    raw: dict[str, str]
    allowed: tuple[str, ...]


class Router:
    """The route table. The first route whose path and method match wins, so more special paths stand first."""

    def __init__(self, routes: tuple[Route, ...], base_path: str = "") -> None:
        self.routes = routes
        self.base_path = base_path.rstrip("/")

    def match(self, method: str, raw_path: str) -> Match:
        if self.base_path:
            if not raw_path.startswith(self.base_path + "/"):
                return Match(None, {}, ())
            raw_path = raw_path.removeprefix(self.base_path)
        allowed: list[str] = []
        for route in self.routes:
            found = route.pattern.fullmatch(raw_path)
            if found is None:
                continue
            if route.method == method:
                return Match(route, found.groupdict(), ())
            if route.method not in allowed:
                allowed.append(route.method)
        return Match(None, {}, tuple(allowed))


def decode_parameters(raw: dict[str, str]) -> dict[str, str]:
    """Path parameters decoded and checked. Raises `BadRequest` naming the one that is wrong."""
    return {
        name: bank_id(_decode(name, text)) if name == "bank_id" else _other(name, text) for name, text in raw.items()
    }


def _decode(name: str, text: str) -> str:
    try:
        return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8")
    except UnicodeError:
        raise BadRequest(f"{name} is not valid UTF-8 once its percent escapes are decoded.") from None


def _other(name: str, text: str) -> str:
    value = clean_text(_decode(name, text))
    if not value:
        raise BadRequest(f"{name} must not be empty.")
    return value


def bank_id(value: str) -> str:
    """`value` if it may name a bank. Raises `BadRequest` with the rule it breaks."""
    if not value:
        raise BadRequest("bank_id must not be empty.")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        raise BadRequest("bank_id must not contain control characters.")
    if len(value.encode("utf-8", "replace")) > MAX_BANK_ID_BYTES:
        raise BadRequest(f"bank_id must be at most {MAX_BANK_ID_BYTES} bytes of UTF-8.")
    if value.startswith("_"):
        raise BadRequest("bank_id must not start with an underscore.")
    return value

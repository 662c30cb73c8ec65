"""What a tool is, and how a call of one becomes a result: arguments checked, the façade asked, the answer in shape.

Nothing here knows the SDK: tools are values, as routes are, so that their table can be read without it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, create_model
from pydantic_core import to_json

from recalld.daemon.routing import Role
from recalld.daemon.routing import bank_id as checked_bank_id
from recalld.daemon.wire.base import RequestModel, Tags, clean_text, clean_tree
from recalld.storage.errors import BankNotFound, Forbidden, NotFound, RecalldError
from recalld.storage.faults import origin

log = logging.getLogger("recalld.mcp")

M = TypeVar("M", bound=RequestModel)
Answer = dict[str, Any]
MAX_PROBLEMS = 10
WENT_WRONG = "Something went wrong inside recalld; the daemon's log has the details."


def _decoded(value: Any) -> Any:
    """A list or an object that a model wrote as a text of JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


Texts = Annotated[list[str], BeforeValidator(_decoded)]
Objects = Annotated[list[dict[str, Any]], BeforeValidator(_decoded)]
Object = Annotated[dict[str, Any], BeforeValidator(_decoded)]
TagTexts = Tags


class Arguments(RequestModel):
    """Arguments of a tool; unknown ones are dropped."""

    def given(self, *names: str) -> Answer:
        """Those of the named arguments that are not null: models send null for what they do not mean."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class NoArguments(Arguments):
    """A tool that takes none, but for the bank."""


@asynccontextmanager
async def _no_lane() -> AsyncIterator[None]:
    yield


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and through what: the bank of a path (`bound`), or the one meant where a call names none.

    `lanes` gives the turn of a lane; `enabled` are the tools this server offers, None for all.
    """

    service: Any
    tenant: str
    bank: str
    bound: bool
    lanes: Callable[[str], AbstractAsyncContextManager[None]] = lambda _: _no_lane()
    enabled: frozenset[str] | None = None
    instructions: str = ""
    config_api: bool = True


@dataclass(slots=True)
class ToolCall:
    """What a tool gets: the façade, whose bank, and its arguments, checked."""

    service: Any
    tenant: str
    bank: str
    arguments: Arguments
    config_api: bool = True

    def as_(self, model: type[M]) -> M:
        """The arguments as the model the tool declares."""
        assert isinstance(self.arguments, model)
        return self.arguments


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool. `role` is what a key must be allowed to do; `empty` stands in the payload of a failed call.

    `reads` says that the tool changes nothing, `destructive` that it takes something away. `multi_only` tools are not
    offered where the path names the bank. `makes_bank` tools make a bank that is not there, for the others that is an
    error. `object_always` tools answer with an object in both modes.
    """

    name: str
    description: str
    run: Callable[[ToolCall], Awaitable[Answer]]
    arguments: type[Arguments] = NoArguments
    role: Role = "read"
    reads: bool = False
    destructive: bool = False
    multi_only: bool = False
    scoped: bool = True
    makes_bank: bool = False
    object_always: bool = False
    lane: str | None = None
    empty: Mapping[str, Any] = field(default_factory=dict)
    instructed: bool = False
    failed: Callable[[str], Answer] | None = None

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: its text, its structured content, and whether the call itself was wrong."""

    text: str
    structured: Answer | None
    is_error: bool = False
    wrapped: bool = False


BANK_HELP = "Bank to use; the session's default bank when left out."


@cache
def arguments_model(tool: Tool, bound: bool) -> type[Arguments]:
    """The model of a tool's arguments: outside a bank's own path, with the bank among them."""
    if bound or not tool.scoped or "bank_id" in tool.arguments.model_fields:
        return tool.arguments
    bank: Any = (str | None, Field(None, description=BANK_HELP))
    return create_model(tool.arguments.__name__ + "OfBank", __base__=tool.arguments, bank_id=bank)


@cache
def input_schema(tool: Tool, bound: bool) -> Answer:
    schema = arguments_model(tool, bound).model_json_schema()
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return {**schema, "title": f"{tool.name}Arguments"}


def output_schema(tool: Tool, bound: bool) -> Answer:
    if bound or tool.object_always:
        return {"type": "object", "additionalProperties": True}
    return {
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }


async def call(tool: Tool, caller: Caller, given: Mapping[str, Any] | None) -> Outcome:
    """Carry out one call. A failure is a payload that says so; only wrong arguments are an error of the call."""
    try:
        arguments = arguments_model(tool, caller.bound).model_validate(clean_tree(dict(given or {})))
    except ValidationError as error:
        return Outcome(f"Invalid arguments for tool '{tool.name}': {in_words(error)}", None, is_error=True)
    try:
        bank = _bank_of(tool, caller, arguments)
        answer = await _run(tool, caller, bank, arguments)
    except RecalldError as error:
        if error.status >= 500 and not error.retryable:
            log.error("tool %s failed: %s", tool.name, origin(error))
        answer = _failure(tool, error.message)
    except ValidationError as error:
        answer = _failure(tool, in_words(error))
    except Exception as error:
        log.error("tool %s failed: %s", tool.name, origin(error))
        answer = _failure(tool, WENT_WRONG)
    return shaped(tool, caller.bound, answer)


def _bank_of(tool: Tool, caller: Caller, arguments: Arguments) -> str:
    if not tool.scoped or caller.bound:
        return caller.bank
    named = getattr(arguments, "bank_id", None)
    return checked_bank_id(clean_text(named)) if named else caller.bank


async def _run(tool: Tool, caller: Caller, bank: str, arguments: Arguments) -> Answer:
    service, tenant = caller.service, caller.tenant
    if tool.scoped:
        allowed = await service.enabled_tools(tenant, bank)
        if allowed is not None and tool.name not in allowed:
            raise Forbidden(f"Tool '{tool.name}' is not enabled for bank '{bank}'.")
        if not tool.makes_bank and not tool.reads:
            await service.bank_config(tenant, bank)
    made = ToolCall(service, tenant, bank, arguments, caller.config_api)
    try:
        async with caller.lanes(tool.lane) if tool.lane else _no_lane():
            return await tool.run(made)
    except NotFound as error:
        if not isinstance(error, BankNotFound) and tool.scoped:
            await service.bank_config(tenant, bank)  # when the bank itself is unknown, that is what is said
        raise


def _failure(tool: Tool, text: str) -> Answer:
    if tool.failed is not None:
        return tool.failed(text)
    return {"error": text, **tool.empty}


def shaped(tool: Tool, bound: bool, answer: Answer) -> Outcome:
    """The answer as a client gets it; see `output_schema`."""
    if bound or tool.object_always:
        return Outcome(dumped(answer), answer)
    text = dumped(answer, indent=2)
    return Outcome(text, {"result": text}, wrapped=True)


def dumped(value: Any, indent: int | None = None) -> str:
    return to_json(value, indent=indent, inf_nan_mode="null").decode()


def in_words(error: ValidationError) -> str:
    """What is wrong with which argument, in one line."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = []
    for one in found[:MAX_PROBLEMS]:
        where = ".".join(str(part) for part in one["loc"])
        text = clean_text(one["msg"]).removeprefix("Value error, ")
        lines.append(f"{where}: {text}" if where else text)
    rest = len(found) - MAX_PROBLEMS
    return "; ".join(lines) + (f"; and {rest} more" if rest > 0 else "")

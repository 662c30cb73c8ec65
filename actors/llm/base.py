"""The one way to ask a language model: `Llm.complete(LlmRequest) -> LlmAnswer`, whoever answers.

    answer = await llm.complete(LlmRequest(operation="retain", messages=(system(RULES), user(text)), schema=SCHEMA))
    answer.parsed      # the value the schema asked for, repaired and coerced; `answer.rejected` says what was left out

`complete` raises, and raises nothing else: `ModelRefused` (do not ask again), `ModelOverflow` (split, then ask again),
`ModelRateLimited` and `ModelUnavailable` (both with `retry_after` seconds; put the work aside), `ModelAnswerUnusable`
(may be asked again), and `asyncio.CancelledError`. It has retried what is worth retrying: callers
add no loop of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]
Schema = Mapping[str, Any]

RETAIN, CONSOLIDATE, REFLECT = "retain", "consolidate", "reflect"
OPERATIONS = (RETAIN, CONSOLIDATE, REFLECT)
"""Operations that may have a model, and a cap, of their own; any other name uses the general ones."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool. `arguments` are parsed like any answer; `{}` when they were empty.

    `signature` is what a provider wants to see again with the call, "" where it wants nothing.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `tool_calls` belong to the role assistant; `tool_call_id` and `name` to the role tool."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""


def system(content: str) -> Message:
    return Message("system", content)


def user(content: str) -> Message:
    return Message("user", content)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool a model may ask for; `parameters` is the JSON schema of its arguments (an object)."""

    name: str
    description: str
    parameters: Schema


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One question to a model.

    `schema` is the JSON schema of the answer (an object at its top), `schema_name` what the provider is told it is
    called. Say in the messages what to do, not how the JSON looks: the schema is sent once, by the provider.
    `max_tokens` None leaves the provider's default. `timeout` is for one attempt and `deadline` for the whole with its
    waits and retries, both in seconds; None takes the settings' value, as it does for `temperature`. `tool_choice` is
    `auto`, `none`, `required` or the name of a tool.
    """

    operation: str
    messages: tuple[Message, ...]
    bank: tuple[str, str] = ("", "")
    schema: Schema | None = None
    schema_name: str = "answer"
    max_tokens: int | None = None
    temperature: float | None = None
    timeout: float | None = None
    deadline: float | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"

    def __post_init__(self) -> None:
        if self.schema is not None and self.tools:
            raise ValueError("A request has a schema or tools, not both.")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `cached` is the part of `input` read from a cache, `thoughts` the part of `output` not shown.

    `input`, `output` and `cached` are the provider's words, 0 when it gave none (`reported` is False then). The
    `own_` figures are counted here, from what was sent and received.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    own_input: int = 0
    own_output: int = 0
    reported: bool = False
    thoughts: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.own_input + other.own_input,
            self.own_output + other.own_output,
            self.reported or other.reported,
            self.thoughts + other.thoughts,
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """A part of an answer that was left out: where it stood (`facts[3].kind`) and why, without its text."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class LlmAnswer:
    """What a model said. `usage` sums every attempt the answer took, the failed ones included.

    `finish_reason` is one of `stop`, `length`, `tool_calls`, `other`. `parsed` is None unless a schema was given.
    `repairs` names what had to be mended to read it; `mode` is how the schema travelled.
    """

    text: str
    parsed: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str = "stop"
    model: str = ""
    provider: str = ""
    rejected: tuple[Rejected, ...] = ()
    repairs: tuple[str, ...] = ()
    mode: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One attempt that reached for a provider, for a ledger: failed ones are here too.

    `outcome` is `ok` or the code of the error it ended in; `milliseconds` is the attempt alone, without waits.
    """

    operation: str
    bank: tuple[str, str]
    provider: str
    model: str
    usage: Usage
    milliseconds: float
    outcome: str
    attempt: int
    detail: str = ""


Observer = Callable[[CallRecord], None]


@runtime_checkable
class Llm(Protocol):
    """A language model. `provider` and `model` say which, for people; safe for concurrent use in one event loop."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    async def complete(self, request: LlmRequest) -> LlmAnswer: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What every call of a process shares. Times in seconds; `per_operation` caps below `concurrent`.

    `timeouts` and `temperatures` are of single operations, for requests that name none.
    """

    concurrent: int = 32
    per_operation: Mapping[str, int] = field(default_factory=dict)
    timeout: float = 120.0
    timeouts: Mapping[str, float] = field(default_factory=dict)
    temperatures: Mapping[str, float | None] = field(default_factory=dict)
    deadline: float = 300.0
    retries: int = 3
    backoff: float = 1.0
    backoff_max: float = 60.0

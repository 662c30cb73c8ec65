"""What a provider is: it sends one prepared call once, and gives back a reply or raises a `Fault`.

A provider knows the shape of one API and nothing else. Waiting, retrying, choosing a mode and reading the answer are
`client.ModelClient`'s, the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from recalld.actors.llm.base import Message, Schema, Tool, Usage


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model, and how it is spoken to. The key is a secret and never shown."""

    provider: str
    model: str = ""
    key: str | None = field(default=None, repr=False)
    base_url: str = ""
    reasoning_effort: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt. In mode `text` the schema is in the messages already, and `schema` is None.

    `skip` names parameters this server was seen to refuse. `timeout` is in seconds.
    """

    messages: tuple[Message, ...]
    mode: str = ""
    schema: Schema | None = None
    schema_name: str = "answer"
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    skip: frozenset[str] = frozenset()
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class RawToolCall:
    """A tool call as it came: arguments are JSON text, or data where the API sends data."""

    id: str
    name: str
    arguments: Any
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `refusal` is not None when the model or a filter said no; it then holds the reason or ""."""

    text: str
    finish_reason: str = "stop"
    tool_calls: tuple[RawToolCall, ...] = ()
    refusal: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class Provider(Protocol):
    """One API and one model."""

    @property
    def choice(self) -> ModelChoice: ...

    @property
    def modes(self) -> tuple[str, ...]:
        """How a schema may travel here, best first."""
        ...

    async def open(self) -> None:
        """Load what the provider needs, once; takes seconds where a library is large. Raises `ModelRefused`."""
        ...

    async def send(self, call: Call) -> Reply:
        """One attempt, without retries. Raises `Fault`."""
        ...

    async def known(self) -> bool | None:
        """Whether the provider says that it has the model; None when it cannot tell. Raises `Fault`."""
        ...

    async def close(self) -> None: ...

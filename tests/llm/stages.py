"""One way to put any provider on a stage: say what the other side answers, ask, look at what it heard."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from recalld.actors.llm.base import CallRecord, Limits, LlmRequest, system, user
from recalld.actors.llm.client import ModelClient
from recalld.actors.llm.gate import Gate, Permits
from recalld.actors.llm.models import filled, open_provider
from recalld.actors.llm.modes import Memory
from recalld.actors.llm.provider import ModelChoice, Provider
from recalld.actors.llm.providers.scripted import ScriptedProvider

from .model_server import ModelServer, Say

FACTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "description": "MARK-OF-THE-SCHEMA",
            "maxItems": 9,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "minLength": 1, "maxLength": 400},
                    "kind": {"enum": ["world", "experience", "opinion"]},
                    "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                    "entities": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
                            "required": ["name"],
                        },
                    },
                },
                "required": ["text", "kind"],
            },
        }
    },
    "required": ["facts"],
}
GOOD = '{"facts": [{"text": "Ana drinks tea.", "kind": "world"}]}'
QUICK = Limits(timeout=5.0, deadline=20.0, retries=3, backoff=0.01, backoff_max=5.0)


def request(text: str = "Ana: I drink tea.", **changes: Any) -> LlmRequest:
    """A question for facts."""
    base = LlmRequest("retain", (system("Say the facts."), user(text)), bank=("default", "b"), schema=FACTS)
    return replace(base, **changes)


def texts(parsed: Any) -> list[str]:
    return [one["text"] for one in parsed["facts"]]


class Stage:
    """A provider, its other side, and a client of it. `records` is what a ledger would be told."""

    def __init__(self, provider: Provider, server: ModelServer | None, limits: Limits = QUICK) -> None:
        self.provider, self.server = provider, server
        self.records: list[CallRecord] = []
        self.memory = Memory()
        self.limits = limits
        self.permits = Permits(limits.concurrent, limits.per_operation)
        self.slept: list[float] = []
        self.client = self.make()

    def make(self, provider: Provider | None = None) -> ModelClient:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            await asyncio.sleep(seconds)

        self.gate = Gate(self.permits, monotonic=time.monotonic, sleep=sleep, chance=lambda: 0.5)
        return ModelClient(provider or self.provider, self.gate, self.memory, self.limits, self.records.append)

    def say(self, *says: Say | str) -> None:
        if self.server is not None:
            self.server.say(*says)
            return
        assert isinstance(self.provider, ScriptedProvider)
        for one in says:
            self.provider._queue.append(scripted(Say(text=one) if isinstance(one, str) else one))

    @property
    def calls(self) -> int:
        if self.server is not None:
            return len(self.server.heard)
        assert isinstance(self.provider, ScriptedProvider)
        return len(self.provider.requests)

    @property
    def raw(self) -> list[str]:
        """Every request body as it crossed the wire; of the scripted provider the call in words."""
        if self.server is not None:
            return [one.raw.decode() for one in self.server.heard]
        assert isinstance(self.provider, ScriptedProvider)
        return [json.dumps(asdict(replace(one, skip=frozenset())), ensure_ascii=False, default=list)
                for one in self.provider.requests]  # fmt: skip

    @property
    def outcomes(self) -> list[str]:
        return [one.outcome for one in self.records]


def scripted(say: Say) -> dict[str, Any]:
    """What a `Say` is to the scripted provider."""
    if say.hang_up:
        return {"status": None, "code": "connection"}
    if say.raw is not None:
        return {"status": None, "code": "garbled"}
    if say.status > 299:
        wait = say.headers.get("Retry-After")
        return {"status": say.status, "code": say.code, "message": say.message, "retry_after": wait, "delay": say.delay}
    sent, back, _ = say.tokens
    return {
        "text": say.text,
        "finish_reason": say.finish,
        "refusal": say.refusal,
        "tool_calls": [{"name": name, "arguments": args} for name, args in say.tools],
        "input_tokens": sent,
        "output_tokens": back,
        "delay": say.delay,
    }


async def on_stage(name: str, limits: Limits = QUICK, **choice: Any) -> Stage:
    """The provider `name` before a server that speaks its API."""
    if name == "scripted":
        return Stage(ScriptedProvider([]), None, limits)
    dialect = "openai" if name == "litellm" else name
    server = await ModelServer(dialect).start()
    model = "openai/test-model" if name == "litellm" else "test-model"
    made = filled(ModelChoice(name, model, "sk-the-secret-key", server.url, **choice))
    return Stage(open_provider(made), server, limits)


async def off_stage(stage: Stage) -> None:
    await stage.client.close()
    if stage.server is not None:
        await stage.server.stop()


async def until(true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what is waited for is on the other side of a socket
            await asyncio.sleep(0.005)

"""A real HTTP server that speaks the APIs of model providers and says what a test tells it to.

A test says things once, as `Say`; each dialect puts them into the words of its API. Every request is kept as it came.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Say:
    """One response: an answer, or with a `status` above 299 an error in the API's own shape.

    `raw` replaces the whole body; `hang_up` closes the connection instead of answering.
    """

    text: str = ""
    finish: str = "stop"
    refusal: str | None = None
    tools: tuple[tuple[str, Any], ...] = ()
    tokens: tuple[int, int, int] = (11, 7, 3)
    status: int = 200
    code: str = ""
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: str | None = None
    hang_up: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """One request: its path, headers (names in lower case), its body as it came, and decoded."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]


Script = Callable[[Heard], Say]


class OpenAiDialect:
    name = "openai"
    key_header, base = "authorization", "/v1"

    def answer(self, say: Say) -> dict[str, Any]:
        sent, back, cached = say.tokens
        message: dict[str, Any] = {"role": "assistant", "content": say.text, "refusal": say.refusal}
        if say.tools:
            message["content"] = say.text or None
            message["tool_calls"] = [
                {
                    "id": f"c{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
                }
                for number, (name, args) in enumerate(say.tools)
            ]
        finish = "tool_calls" if say.tools and say.finish == "stop" else say.finish
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "served-model",
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {
                "prompt_tokens": sent,
                "completion_tokens": back,
                "total_tokens": sent + back,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }

    def error(self, say: Say) -> dict[str, Any]:
        return {"error": {"message": say.message, "type": "some_error", "code": say.code or None, "param": None}}

    def prompt(self, body: dict[str, Any]) -> str:
        return "\n".join(str(one.get("content")) for one in body["messages"])


class AnthropicDialect:
    name = "anthropic"
    key_header, base = "x-api-key", ""

    def answer(self, say: Say) -> dict[str, Any]:
        sent, back, cached = say.tokens
        stop = {"stop": "end_turn", "length": "max_tokens"}.get(say.finish, say.finish)
        content: list[dict[str, Any]] = [{"type": "text", "text": say.text}] if say.text else []
        for number, (name, args) in enumerate(say.tools):
            content.append({"type": "tool_use", "id": f"c{number}", "name": name, "input": args})
            stop = "tool_use"
        if say.refusal is not None:
            stop = "refusal"
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "served-model",
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": sent - cached, "output_tokens": back, "cache_read_input_tokens": cached},
        }

    def error(self, say: Say) -> dict[str, Any]:
        return {"type": "error", "error": {"type": say.code or "api_error", "message": say.message}}

    def prompt(self, body: dict[str, Any]) -> str:
        turns = [block.get("text", "") for turn in body["messages"] for block in turn["content"]]
        return "\n".join([str(body.get("system", "")), *turns])


class GeminiDialect:
    name = "gemini"
    key_header, base = "x-goog-api-key", ""

    def answer(self, say: Say) -> dict[str, Any]:
        sent, back, cached = say.tokens
        usage = {"promptTokenCount": sent, "candidatesTokenCount": back, "cachedContentTokenCount": cached}
        shared = {"usageMetadata": usage, "modelVersion": "served-model"}
        if say.refusal is not None:
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **shared}
        finish = {"stop": "STOP", "length": "MAX_TOKENS"}.get(say.finish, say.finish)
        parts: list[dict[str, Any]] = [{"text": say.text}] if say.text else []
        parts += [{"functionCall": {"name": name, "args": args}} for name, args in say.tools]
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}], **shared}

    def error(self, say: Say) -> dict[str, Any]:
        return {"error": {"code": say.status, "message": say.message, "status": say.code or "UNKNOWN"}}

    def prompt(self, body: dict[str, Any]) -> str:
        turns = [part.get("text", "") for turn in body["contents"] for part in turn["parts"]]
        rules = [part["text"] for part in body.get("systemInstruction", {}).get("parts", [])]
        return "\n".join([*rules, *turns])


DIALECTS = {one.name: one for one in (OpenAiDialect(), AnthropicDialect(), GeminiDialect())}
Dialect = OpenAiDialect | AnthropicDialect | GeminiDialect


class ModelServer:
    """Listens on a free port of loopback. `says` are given in order, then `script` answers, or the last one again."""

    def __init__(self, dialect: str = "openai") -> None:
        self.dialect: Dialect = DIALECTS[dialect]
        self.heard: list[Heard] = []
        self.says: list[Say] = []
        self.script: Script | None = None
        self.models = ["test-model"]
        self.busy = 0
        self.most_busy = 0
        self._last = Say(text="")
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> ModelServer:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("GET", "/{path:.*}", self._list)
        app.router.add_route("POST", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{port}{self.dialect.base}"
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def say(self, *says: Say | str) -> None:
        self.says += [Say(text=one) if isinstance(one, str) else one for one in says]

    @property
    def prompts(self) -> list[str]:
        return [self.dialect.prompt(one.body) for one in self.heard]

    async def _list(self, request: web.Request) -> web.Response:
        path = request.path
        if path.endswith("/models"):
            return web.json_response({"object": "list", "data": [{"id": one} for one in self.models]})
        if path.rsplit("/", 1)[-1] in self.models:
            return web.json_response({"id": path.rsplit("/", 1)[-1]})
        code = {"anthropic": "not_found_error", "gemini": "NOT_FOUND"}.get(self.dialect.name, "")
        return web.json_response(self.dialect.error(Say(status=404, code=code, message="no such model")), status=404)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        heard = Heard(request.path, headers, raw, json.loads(raw))
        self.heard.append(heard)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            if self.says:
                say = self._last = self.says.pop(0)
            else:
                say = self.script(heard) if self.script is not None else self._last
            if say.delay:
                await asyncio.sleep(say.delay)
            if say.hang_up:
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            if say.raw is not None:
                return web.Response(status=say.status, text=say.raw, headers=say.headers)
            body = self.dialect.error(say) if say.status > 299 else self.dialect.answer(say)
            text = json.dumps(body, ensure_ascii=False)
            return web.Response(
                status=say.status, text=text, content_type="application/json", headers=say.headers, charset="utf-8"
            )
        finally:
            self.busy -= 1

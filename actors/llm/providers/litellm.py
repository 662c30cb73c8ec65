"""Every other provider through the library litellm (extra `recalld[litellm]`): Bedrock, Vertex AI and a hundred more.

The model is named the library's way (`bedrock/...`, `vertex_ai/...`); keys may also come from its own variables.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import Any

from recalld.actors.llm.faults import CONNECTION, TIMEOUT, Fault
from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA, TEXT
from recalld.actors.llm.provider import Call, ModelChoice, Reply
from recalld.actors.llm.providers.openai import read_reply, request_body, status_fault
from recalld.actors.llm.providers.rest import quiet
from recalld.storage.errors import ModelRefused


class LiteLlmProvider:
    modes = (JSON_SCHEMA, JSON_OBJECT, TEXT)

    def __init__(self, choice: ModelChoice) -> None:
        self.choice = choice
        self._library: Any = None
        self._loading = asyncio.Lock()

    async def open(self) -> None:
        await self._open()

    async def send(self, call: Call) -> Reply:
        library = await self._open()
        choice = self.choice
        body = {**request_body(choice, call, ("max_tokens", "max_completion_tokens")), **choice.extra_body}
        try:
            answer = await library.acompletion(
                **body,
                api_key=choice.key,
                api_base=choice.base_url or None,
                extra_headers=dict(choice.headers) or None,
                timeout=call.timeout,
                num_retries=0,
                max_retries=0,
            )
        except library.exceptions.Timeout:
            raise Fault(None, TIMEOUT, f"no answer within {call.timeout:g} s") from None
        except library.exceptions.APIConnectionError as error:
            raise Fault(None, CONNECTION, str(getattr(error, "message", ""))[:300]) from None
        except Exception as error:
            # The library's errors have no common base of their own; each has a status.
            if isinstance(getattr(error, "status_code", None), int):
                raise status_fault(error) from None
            raise Fault(None, CONNECTION, type(error).__name__) from None
        return read_reply(answer.model_dump())

    async def known(self) -> bool | None:
        await self._open()
        return None

    async def close(self) -> None:
        self._library = None

    async def _open(self) -> Any:
        async with self._loading:
            if self._library is None:
                # Else the library fetches a price list from the network as it is imported.
                os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                try:
                    self._library = await asyncio.to_thread(importlib.import_module, "litellm")
                except ImportError:
                    raise ModelRefused(
                        "The provider litellm needs an extra; install it with `pip install 'recalld[litellm]'`.",
                        cause="missing_package",
                    ) from None
                quiet("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")
                self._library.suppress_debug_info = True
                self._library.telemetry = False
        return self._library

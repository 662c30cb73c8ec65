"""Try a model with one small call: is it there, does the provider know it, and how does a schema travel."""

from __future__ import annotations

import time
from dataclasses import dataclass

from recalld.actors.llm.base import Llm, LlmRequest, user
from recalld.actors.llm.client import ModelClient
from recalld.actors.llm.faults import Fault
from recalld.storage.errors import ModelAnswerUnusable, ModelOverflow, ModelRefused, RecalldError

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "minLength": 1, "maxLength": 20}},
    "required": ["word"],
    "additionalProperties": False,
}
_TOKENS = 256
"""Room for a model that thinks first; the answer itself takes ten."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one call showed. `mode` is how the schema travelled, "" when none did.

    `listed` is whether the provider lists the model (None: it cannot tell). `error` is None when all is well.
    """

    provider: str
    model: str
    mode: str = ""
    listed: bool | None = None
    milliseconds: float = 0.0
    error: RecalldError | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.error is None


async def probe(llm: Llm, operation: str, seconds: float = 30.0) -> Probe:
    """Ask for one word. Never raises a `RecalldError`: it is what the probe tells."""
    began = time.perf_counter()
    request = LlmRequest(
        operation,
        (user("Say one word, as the value of `word`."),),
        schema=SCHEMA,
        max_tokens=_TOKENS,
        timeout=seconds,
        deadline=seconds,
    )
    mode, listed, error, detail = "", None, None, ""
    try:
        mode = (await llm.complete(request)).mode
    except RecalldError as failure:
        error = failure
        detail = failure.detail if isinstance(failure, ModelRefused) else ""
    wanted = error is None or isinstance(error, ModelRefused | ModelAnswerUnusable | ModelOverflow)
    if wanted and isinstance(llm, ModelClient):
        try:
            listed = await llm.known()
        except (Fault, RecalldError):
            listed = None
    milliseconds = (time.perf_counter() - began) * 1000
    return Probe(llm.provider, llm.model, mode, listed, milliseconds, error, detail)

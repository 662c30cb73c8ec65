"""`Models`: every language model of a process, made from plain settings. Nothing is imported or opened before its use.

    models = Models(config, chance=random.random, observe=ledger.note)
    models.calls("retain")                  # False with the providers `none` and `local`
    answer = await models.llm("retain").complete(request)
    await models.close()

Names that people know from elsewhere (`groq`, `ollama`, `vertexai` ...) are one of the five that are spoken here, with
a base URL of their own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from recalld.actors.llm.base import Limits, Llm, LlmAnswer, LlmRequest, Observer
from recalld.actors.llm.client import ModelClient
from recalld.actors.llm.gate import Chance, Gate, Permits
from recalld.actors.llm.modes import Memory
from recalld.actors.llm.provider import ModelChoice, Provider
from recalld.storage.errors import ModelRefused, Unprocessable

NONE, LOCAL = "none", "local"
SILENT = (NONE, LOCAL)
"""Providers that call nobody: `local` leaves the work to rules, `none` leaves it undone."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What a provider's name stands for: the API spoken, where, which model, and whether a key is a must."""

    api: str
    base_url: str = ""
    model: str = ""
    needs_key: bool = True
    prefix: str = ""


PRESETS: dict[str, Preset] = {
    NONE: Preset(NONE, needs_key=False),
    LOCAL: Preset(LOCAL, needs_key=False),
    "openai": Preset("openai", "https://api.openai.com/v1", "gpt-4o-mini"),
    "anthropic": Preset("anthropic", "https://api.anthropic.com", "claude-haiku-4-5"),
    "gemini": Preset("gemini", "https://generativelanguage.googleapis.com", "gemini-2.5-flash"),
    "litellm": Preset("litellm", needs_key=False),
    "scripted": Preset("scripted", model="scripted", needs_key=False),
    "bedrock": Preset("litellm", needs_key=False, prefix="bedrock/"),
    "deepseek": Preset("openai", "https://api.deepseek.com/v1", "deepseek-chat"),
    "groq": Preset("openai", "https://api.groq.com/openai/v1", "openai/gpt-oss-20b"),
    "llamacpp": Preset("openai", "http://127.0.0.1:8080/v1", "default", needs_key=False),
    "lmstudio": Preset("openai", "http://127.0.0.1:1234/v1", needs_key=False),
    "minimax": Preset("openai", "https://api.minimax.io/v1"),
    "ollama": Preset("openai", "http://127.0.0.1:11434/v1", needs_key=False),
    "openrouter": Preset("openai", "https://openrouter.ai/api/v1"),
    "vertexai": Preset("litellm", needs_key=False, prefix="vertex_ai/"),
}
PROVIDERS = tuple(PRESETS)


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """The general model, the ones of single operations (by name), and the limits they share."""

    general: ModelChoice = field(default_factory=lambda: ModelChoice(LOCAL))
    operations: Mapping[str, ModelChoice] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def of(self, operation: str) -> ModelChoice:
        return self.operations.get(operation, self.general)


class NoModel:
    """The `Llm` of `none` and `local`: it calls nobody, and says so when asked."""

    def __init__(self, provider: str) -> None:
        self.provider, self.model = provider, ""

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        raise ModelRefused("No language model is set; set llm.provider, llm.api_key and llm.model.", cause="no_model")

    async def close(self) -> None:
        return None


def filled(choice: ModelChoice) -> ModelChoice:
    """`choice` with its preset's API, address and model where it names none. Raises `Unprocessable`."""
    name = choice.provider.strip().lower()
    preset = PRESETS.get(name)
    if preset is None:
        raise Unprocessable(f"There is no model provider '{name[:40]}'; there are {', '.join(PROVIDERS)}.")
    if preset.api in SILENT:
        return replace(choice, provider=name)
    base_url = choice.base_url.rstrip("/") or preset.base_url
    if preset.needs_key and not choice.key and base_url == preset.base_url:
        raise Unprocessable(f"The model provider {name} needs a key; set llm.api_key (RECALLD_LLM_API_KEY).")
    model = choice.model or preset.model
    if not model:
        raise Unprocessable(f"The model provider {name} needs the name of a model; set llm.model (RECALLD_LLM_MODEL).")
    if preset.prefix and not model.startswith(preset.prefix):
        model = preset.prefix + model
    return replace(choice, provider=name, model=model, base_url=base_url)


def open_provider(choice: ModelChoice) -> Provider:
    """The provider of a filled choice."""
    api = PRESETS[choice.provider].api
    if api == "openai":
        from recalld.actors.llm.providers.openai import OpenAiProvider

        return OpenAiProvider(choice)
    if api == "anthropic":
        from recalld.actors.llm.providers.anthropic import AnthropicProvider

        return AnthropicProvider(choice)
    if api == "gemini":
        from recalld.actors.llm.providers.gemini import GeminiProvider

        return GeminiProvider(choice)
    if api == "litellm":
        from recalld.actors.llm.providers.litellm import LiteLlmProvider

        return LiteLlmProvider(choice)
    from recalld.actors.llm.providers.scripted import ScriptedProvider

    return ScriptedProvider.from_file(choice)


class Models:
    """The models of a process. Make one in the event loop that uses it; `chance` gives numbers in [0, 1)."""

    def __init__(self, config: LlmConfig, *, chance: Chance, observe: Observer | None = None) -> None:
        self._config, self._observe = config, observe
        self.gate = Gate(
            Permits(config.limits.concurrent, config.limits.per_operation), monotonic=time.monotonic, chance=chance
        )
        self.memory = Memory()
        self._open: list[tuple[ModelChoice, Llm]] = []

    def calls(self, operation: str) -> bool:
        """Whether this operation has a model to call."""
        return self._config.of(operation).provider.strip().lower() not in SILENT

    def llm(self, operation: str) -> Llm:
        """The model of an operation; operations that name the same one share a client. Raises `Unprocessable`."""
        choice = filled(self._config.of(operation))
        for known, client in self._open:
            if known == choice:
                return client
        made: Llm
        if choice.provider in SILENT:
            made = NoModel(choice.provider)
        else:
            made = ModelClient(open_provider(choice), self.gate, self.memory, self._config.limits, self._observe)
        self._open.append((choice, made))
        return made

    async def close(self) -> None:
        for _, one in self._open:
            await one.close()
        self._open.clear()

"""The rows of language models, and the `LlmConfig` that settings describe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recalld.actors.llm.base import CONSOLIDATE, REFLECT, RETAIN, Limits
from recalld.actors.llm.models import LOCAL, PROVIDERS, LlmConfig, filled
from recalld.actors.llm.provider import ModelChoice
from recalld.daemon.settings_rows import row
from recalld.storage.errors import RecalldError

if TYPE_CHECKING:
    from recalld.daemon.settings_table import Settings

ALIASES = {RETAIN: "RETAIN", CONSOLIDATE: "CONSOLIDATION", REFLECT: "REFLECT"}
"""Operations that may have a model of their own, and what they are called in the variables people have."""


def _provider(operation: str) -> Any:
    return row(
        None,
        f"Provider of {operation}; unset is llm.provider.",
        choices=PROVIDERS,
        alias=f"{ALIASES[operation]}_LLM_PROVIDER",
    )


def _key(operation: str) -> Any:
    return row(
        None,
        f"Key of {operation}; unset is llm.api_key where the provider is the same.",
        secret=True,
        alias=f"{ALIASES[operation]}_LLM_API_KEY",
    )


def _model(operation: str) -> Any:
    return row(
        None,
        f"Model of {operation}; unset is llm.model where the provider is the same.",
        alias=f"{ALIASES[operation]}_LLM_MODEL",
    )


def _base_url(operation: str) -> Any:
    return row(
        None,
        f"Base URL of {operation}; unset is llm.base_url where the provider is the same.",
        alias=f"{ALIASES[operation]}_LLM_BASE_URL",
    )


def _concurrent(operation: str) -> Any:
    return row(0, f"Calls of {operation} at once; 0 is llm.max_concurrent.", minimum=0, maximum=1024)


def _timeout(operation: str, default: float) -> Any:
    return row(
        default,
        f"Seconds one attempt of {operation} may take.",
        minimum=0.1,
        maximum=3600,
        alias=f"{ALIASES[operation]}_LLM_TIMEOUT",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRows:
    """The settings of language models; `Settings` begins with them."""

    llm_provider: str = row(
        LOCAL,
        "Whose language model is used; local leaves the work to rules, none leaves it undone. Unset it is openai where"
        " llm.api_key is set, else local.",
        choices=PROVIDERS,
        alias="LLM_PROVIDER",
    )
    llm_api_key: str | None = row(None, "Key of the model provider.", secret=True, alias="LLM_API_KEY")
    llm_model: str | None = row(None, "Model; unset is the provider's usual one.", alias="LLM_MODEL")
    llm_base_url: str | None = row(
        None, "Address of the provider, or of any server that speaks its API.", alias="LLM_BASE_URL"
    )
    llm_max_concurrent: int = row(
        32, "Model calls of the process at once.", minimum=1, maximum=1024, alias="LLM_MAX_CONCURRENT"
    )
    llm_timeout: float = row(120.0, "Seconds one attempt may take.", minimum=0.1, maximum=3600, alias="LLM_TIMEOUT")
    llm_deadline: float = row(
        300.0, "Seconds a call may take with all its attempts and waits.", minimum=0.1, maximum=7200
    )
    llm_max_retries: int = row(
        3,
        "Attempts after the first when a provider fails.",
        minimum=0,
        maximum=20,
        alias="LLM_MAX_RETRIES",
    )
    llm_initial_backoff: float = row(
        1.0, "Wait before the second attempt; doubles with each.", minimum=0, maximum=600, alias="LLM_INITIAL_BACKOFF"
    )
    llm_max_backoff: float = row(
        60.0,
        "Longest wait between attempts; where the provider asks for more, the work is put aside.",
        minimum=0,
        maximum=3600,
        alias="LLM_MAX_BACKOFF",
    )
    llm_reasoning_effort: str | None = row(
        None, "How much the model may think first; unset is not sent.", alias="LLM_REASONING_EFFORT"
    )
    llm_extra_body: str | None = row(None, "JSON object merged into every call's body.", alias="LLM_EXTRA_BODY")
    llm_default_headers: str | None = row(
        None, "JSON object of headers sent with every call.", secret=True, alias="LLM_DEFAULT_HEADERS"
    )
    llm_strict_schema: bool = row(False, "Ask for OpenAI's strict schema mode.", alias="LLM_STRICT_SCHEMA")
    llm_temperature_retain: float | None = row(
        0.1, "Temperature of retain; `none` sends none.", minimum=0, maximum=2, alias="LLM_TEMPERATURE_RETAIN"
    )
    llm_temperature_consolidate: float | None = row(
        0.0, "Temperature of consolidate.", minimum=0, maximum=2, alias="LLM_TEMPERATURE_CONSOLIDATION"
    )
    llm_temperature_reflect: float | None = row(
        0.9, "Temperature of reflect.", minimum=0, maximum=2, alias="LLM_TEMPERATURE_REFLECT"
    )

    llm_retain_provider: str | None = _provider(RETAIN)
    llm_retain_api_key: str | None = _key(RETAIN)
    llm_retain_model: str | None = _model(RETAIN)
    llm_retain_base_url: str | None = _base_url(RETAIN)
    llm_retain_max_concurrent: int = _concurrent(RETAIN)
    llm_consolidate_provider: str | None = _provider(CONSOLIDATE)
    llm_consolidate_api_key: str | None = _key(CONSOLIDATE)
    llm_consolidate_model: str | None = _model(CONSOLIDATE)
    llm_consolidate_base_url: str | None = _base_url(CONSOLIDATE)
    llm_consolidate_max_concurrent: int = _concurrent(CONSOLIDATE)
    llm_reflect_provider: str | None = _provider(REFLECT)
    llm_reflect_api_key: str | None = _key(REFLECT)
    llm_reflect_model: str | None = _model(REFLECT)
    llm_reflect_base_url: str | None = _base_url(REFLECT)
    llm_reflect_max_concurrent: int = _concurrent(REFLECT)
    llm_reflect_timeout: float = _timeout(REFLECT, 30.0)


GENERAL = ("llm_provider", "llm_api_key", "llm_model", "llm_base_url")
OWN = {
    RETAIN: ("llm_retain_provider", "llm_retain_api_key", "llm_retain_model", "llm_retain_base_url"),
    CONSOLIDATE: (
        "llm_consolidate_provider", "llm_consolidate_api_key", "llm_consolidate_model", "llm_consolidate_base_url"
    ),
    REFLECT: ("llm_reflect_provider", "llm_reflect_api_key", "llm_reflect_model", "llm_reflect_base_url"),
}  # fmt: skip


def llm_config(settings: Settings) -> LlmConfig:
    """Which models these settings name. Settings that were loaded give one that `Models` takes."""
    general = [getattr(settings, name) for name in GENERAL]
    operations: dict[str, ModelChoice] = {}
    for operation, names in OWN.items():
        own = [getattr(settings, name) for name in names]
        if any(own):
            provider = own[0] or settings.llm_provider
            # A key is for the provider it was given for, and is never sent to another.
            fallback = general if provider == settings.llm_provider else [None] * len(own)
            values = [mine or theirs for mine, theirs in zip(own[1:], fallback[1:], strict=True)]
            operations[operation] = _choice(settings, provider, *values)
    caps = {
        RETAIN: settings.llm_retain_max_concurrent,
        CONSOLIDATE: settings.llm_consolidate_max_concurrent,
        REFLECT: settings.llm_reflect_max_concurrent,
    }
    limits = Limits(
        concurrent=settings.llm_max_concurrent,
        per_operation={name: count for name, count in caps.items() if count},
        timeout=settings.llm_timeout,
        timeouts={REFLECT: settings.llm_reflect_timeout},
        temperatures={
            RETAIN: settings.llm_temperature_retain,
            CONSOLIDATE: settings.llm_temperature_consolidate,
            REFLECT: settings.llm_temperature_reflect,
        },
        deadline=settings.llm_deadline,
        retries=settings.llm_max_retries,
        backoff=settings.llm_initial_backoff,
        backoff_max=settings.llm_max_backoff,
    )
    return LlmConfig(_choice(settings, *general), operations, limits)


def _choice(settings: Settings, provider: str, key: str | None, model: str | None, base_url: str | None) -> ModelChoice:
    return ModelChoice(
        provider=provider,
        model=model or "",
        key=key,
        base_url=base_url or "",
        reasoning_effort=settings.llm_reasoning_effort,
        extra_body=_table(settings.llm_extra_body),
        headers=_table(settings.llm_default_headers),
        strict=settings.llm_strict_schema,
    )


def _table(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    if not isinstance(value, dict):
        raise ValueError
    return value


def default_provider(values: Mapping[str, Any]) -> str | None:
    """The provider of settings that name none: `openai` where there is a key, None where the default stands."""
    return "openai" if "llm_provider" not in values and values.get("llm_api_key") else None


def problems(settings: Settings) -> list[str]:
    """What is wrong with the settings of language models, one sentence each."""
    found = []
    for name in ("llm_extra_body", "llm_default_headers"):
        try:
            table = _table(getattr(settings, name))
        except ValueError:
            found.append(f"{name.replace('_', '.', 1)}: must be a JSON object")
            continue
        if name == "llm_default_headers" and not all(isinstance(one, str) for one in table.values()):
            found.append("llm.default_headers: every value must be text")
    used = {settings.llm_provider, *(getattr(settings, names[0]) for names in OWN.values())}
    for name in (names[3] for names in (GENERAL, *OWN.values())):
        value = getattr(settings, name)
        if value and "scripted" not in used and not value.startswith(("http://", "https://")):
            found.append(f"{name.replace('_', '.', 1)}: must begin with http:// or https://")
    if found:
        return found
    config = llm_config(settings)
    for where, choice in (("llm", config.general), *((f"llm.{name}", one) for name, one in config.operations.items())):
        try:
            filled(choice)
        except RecalldError as error:
            found.append(f"{where}: {error.message}")
    return found

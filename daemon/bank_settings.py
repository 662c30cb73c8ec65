"""Settings a bank may override: names, types, defaults, and the rules of `PATCH .../config`.

`resolve` gives what a request sees: the server's defaults, then the bank's overrides. `validate_updates` is the gate:
a type error, an unknown name or a credential is refused with one sentence for all, and nothing is stored.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recalld.actors.retain import model_labels
from recalld.actors.trust.instructions import SOURCE_LEVELS
from recalld.actors.trust.redaction import POLICIES
from recalld.daemon.settings_rows import ALIAS_PREFIX, ENV_PREFIX
from recalld.daemon.settings_table import SETTINGS, Settings
from recalld.storage.errors import BadRequest, Unprocessable

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class BankSetting:
    """One field a bank may override. `rule` ends the sentence `NAME must be ...`; `server` names a server setting."""

    name: str
    rule: str
    check: Check
    default: Any = None
    server: str | None = None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _whole(low: int, high: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> bool:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return math.isfinite(value) and low <= value <= high

    return check


def _one_of(*words: str) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _strategies(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


_SCOPES = ("per_tag", "combined", "all_combinations", "shared")


def _scopes(value: Any) -> bool:
    return value in _SCOPES if isinstance(value, str) else isinstance(value, list) and all(_texts(one) for one in value)


def _flag(name: str, default: bool = True, server: str | None = None) -> BankSetting:
    return BankSetting(name, "true or false", _boolean, default, server)


def _int(
    name: str, default: int | None, low: int = 0, high: int = 10_000_000, server: str | None = None
) -> BankSetting:
    return BankSetting(name, f"a whole number from {low} to {high}", _whole(low, high), default, server)


def _float(name: str, default: float, low: float, high: float, server: str | None = None) -> BankSetting:
    return BankSetting(name, f"a number from {low:g} to {high:g}", _number(low, high), default, server)


def _string(name: str, server: str | None = None) -> BankSetting:
    return BankSetting(name, "text", _text, None, server)


_CAP = "a number that is not negative"


def _cap(whole: bool) -> Check:
    return _whole(0, 2**53) if whole else _number(0, 1e12)


MODES = ("concise", "verbose", "custom", "verbatim", "chunks")

BANK_SETTINGS: tuple[BankSetting, ...] = (
    # retain
    _int("retain_chunk_size", 3000, 200, 100_000, "retain_chunk_size"),
    _int("retain_structured_chunk_size", None, 200, 1_000_000, "retain_structured_chunk_size"),
    BankSetting(
        "retain_extraction_mode", "one of " + ", ".join(MODES), _one_of(*MODES), "concise", "retain_extraction_mode"
    ),
    _string("retain_mission", "retain_mission"),
    _string("retain_custom_instructions", "retain_custom_instructions"),
    _flag("retain_extract_causal_links", True, "retain_extract_causal_links"),
    _string("retain_default_strategy", "retain_default_strategy"),
    BankSetting("retain_strategies", "an object of objects, one a strategy", _strategies),
    _int("retain_chunk_batch_size", 100, 1, 10_000, "retain_chunk_batch_size"),
    _int("retain_max_attachments_per_chunk", 8, 0, 1000),
    _flag("store_document_text", True, "store_document_text"),
    BankSetting("redaction", "one of " + ", ".join(POLICIES), _one_of(*POLICIES), "off", "redaction"),
    BankSetting(
        "source_trust", "one of " + ", ".join(SOURCE_LEVELS), _one_of(*SOURCE_LEVELS), "normal", "source_trust"
    ),
    BankSetting("entity_labels", "a list of objects", _tables),
    _flag("entities_allow_free_form"),
    _string("llm_output_language", "llm_output_language"),
    BankSetting("budget_bank_calls_per_day", _CAP, _cap(whole=True), None, "budget_bank_calls_per_day"),
    BankSetting("budget_bank_tokens_per_day", _CAP, _cap(whole=True), None, "budget_bank_tokens_per_day"),
    BankSetting("budget_bank_cost_per_day", _CAP, _cap(whole=False), None, "budget_bank_cost_per_day"),
    # recall
    _flag("enable_text_search", True, "enable_text_search"),
    _flag("enable_temporal_retrieval", True, "enable_temporal_retrieval"),
    _flag("enable_graph_retrieval", True, "enable_graph_retrieval"),
    _flag("enable_reranking", True, "enable_reranking"),
    BankSetting(
        "recall_budget_function",
        "one of fixed, adaptive",
        _one_of("fixed", "adaptive"),
        "fixed",
        "recall_budget_function",
    ),
    _int("recall_budget_fixed_low", 100, 1, 10_000, "recall_budget_fixed_low"),
    _int("recall_budget_fixed_mid", 300, 1, 10_000, "recall_budget_fixed_mid"),
    _int("recall_budget_fixed_high", 1000, 1, 10_000, "recall_budget_fixed_high"),
    _float("recall_budget_adaptive_low", 0.025, 0, 10, "recall_budget_adaptive_low"),
    _float("recall_budget_adaptive_mid", 0.075, 0, 10, "recall_budget_adaptive_mid"),
    _float("recall_budget_adaptive_high", 0.25, 0, 10, "recall_budget_adaptive_high"),
    _int("recall_budget_min", 20, 1, 10_000, "recall_budget_min"),
    _int("recall_budget_max", 2000, 1, 10_000, "recall_budget_max"),
    _flag("recall_prefer_observations", False, "recall_prefer_observations"),
    _int("recall_max_tokens", 2048),
    _flag("recall_include_chunks"),
    _int("recall_chunks_max_tokens", 1000),
    # opinions
    _float("opinion_confidence_step", 0.1, 0, 1),
    _float("opinion_similarity_threshold", 0, 0, 1),
    _float("opinion_retirement_floor", 0.1, 0, 1),
    # observations
    _flag("enable_observations", True, "enable_observations"),
    _flag("enable_auto_consolidation", True, "enable_auto_consolidation"),
    _string("observations_mission", "observations_mission"),
    BankSetting("default_observation_scopes", f"one of {', '.join(_SCOPES)}, or a list of tag lists", _scopes),
    _int("max_observations_per_scope", -1, -1, server="max_observations_per_scope"),
    BankSetting("observation_scope_limits", "a list of objects", _tables),
    BankSetting("consolidation_strategies", "a list of objects", _tables),
    *(
        _int(f"consolidation_{name}", default, low, high, f"consolidation_{name}")
        for name, default, low, high in (
            ("llm_batch_size", 8, 1, 1000),
            ("llm_parallelism", 4, 1, 256),
            ("max_memories_per_round", 100, 1, 100_000),
            ("source_facts_max_tokens", 4096, -1, 10_000_000),
            ("source_facts_max_tokens_per_observation", 256, -1, 10_000_000),
        )
    ),
    _flag("consolidation_use_decision_model"),
    # reflect
    _string("reflect_mission", "reflect_mission"),
    _int("disposition_skepticism", None, 1, 5, "disposition_skepticism"),
    _int("disposition_literalism", None, 1, 5, "disposition_literalism"),
    _int("disposition_empathy", None, 1, 5, "disposition_empathy"),
    BankSetting("disposition_bias_strength", "a number from 0 to 1", _number(0, 1), 1.0, "disposition_bias_strength"),
    _flag("reflect_form_opinions", True, "reflect_form_opinions"),
    _flag("background_from_retain", False),
    _int("reflect_source_facts_max_tokens", -1, -1),
    BankSetting("reflect_default_options", "an object", _table),
    _flag("reflect_use_decision_model"),
    # mental models
    _int(
        "mental_model_min_refresh_interval_seconds",
        0,
        0,
        10**9,
        "mental_model_min_refresh_interval_seconds",
    ),
    BankSetting("knowledge_page_default_trigger", "an object", _table),
    _flag("mental_model_refresh_use_decision_model"),
    _flag("mental_model_delta_use_decision_model"),
    # other
    BankSetting("mcp_enabled_tools", "a list of texts", _texts),
    _flag("audit_log_enabled", False, "audit_log_enabled"),
    BankSetting("llm_gemini_safety_settings", "a list of objects", _tables),
    BankSetting("memory_defense", "an object", _table),
)

BY_NAME: dict[str, BankSetting] = {one.name: one for one in BANK_SETTINGS}

_CREDENTIALS = ("api_key", "secret", "token", "password", "base_url", "credential")


def resolve(settings: Settings, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Every bank field with the value in force: the bank's override, else the server's setting, else the default."""
    answer = {}
    for one in BANK_SETTINGS:
        if overrides.get(one.name) is not None:
            answer[one.name] = overrides[one.name]
        else:
            answer[one.name] = getattr(settings, one.server) if one.server else one.default
    return answer


def canonical_name(key: str) -> str:
    """The field a key means: its own name, or its environment spelling with or without the prefix."""
    if key != key.upper():
        return key
    for prefix in (ALIAS_PREFIX, ENV_PREFIX):
        if key.startswith(prefix):
            key = key.removeprefix(prefix)
            break
    return key.lower()


def validate_updates(updates: Mapping[str, Any]) -> dict[str, Any]:
    """`updates` under canonical names, null meaning "remove the override". Raises `BadRequest` naming every problem."""
    accepted: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in updates.items():
        name = canonical_name(key)
        field = BY_NAME.get(name)
        if field is None:
            problems.append(_refusal(key, name))
        elif name in accepted:
            problems.append(f"{key} is given twice")
        elif value is not None and not field.check(value):
            problems.append(f"{name} must be {field.rule}")
        else:
            accepted[name] = value
    if problems:
        raise BadRequest("Nothing was stored. " + "; ".join(problems) + ".")
    return accepted


def check_together(resolved: Mapping[str, Any]) -> None:
    """Rules between fields, on what would be in force. Raises `BadRequest`."""
    low, mid, high = (resolved[f"recall_budget_fixed_{step}"] for step in ("low", "mid", "high"))
    if not low <= mid <= high:
        raise BadRequest("Nothing was stored. recall_budget_fixed_low, _mid and _high must not fall.")
    if resolved["recall_budget_min"] > resolved["recall_budget_max"]:
        raise BadRequest("Nothing was stored. recall_budget_min must not be above recall_budget_max.")
    try:
        model_labels.checked(resolved["entity_labels"])
    except Unprocessable as error:
        raise BadRequest(f"Nothing was stored. {error.message}") from None
    default, known = resolved["retain_default_strategy"], resolved["retain_strategies"] or {}
    if default is not None and default not in known:
        raise BadRequest("Nothing was stored. retain_default_strategy must be a key of retain_strategies.")


def _refusal(key: str, name: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in key[:80])
    if any(word in name for word in _CREDENTIALS):
        return f"{shown} is a credential or an address and can only be set on the server"
    if name in {row.removeprefix(ALIAS_PREFIX).lower() for row in _server_names()}:
        return f"{shown} can only be set on the server"
    close = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.7)
    return f"{shown} is not a bank setting" + (f" (did you mean {close[0]}?)" if close else "")


def _server_names() -> set[str]:
    return {row.attribute for row in SETTINGS} | {alias for row in SETTINGS for alias in row.aliases}

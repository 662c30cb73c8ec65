"""The rows of consolidation: what makes facts into observations, and when."""

from __future__ import annotations

from dataclasses import dataclass

from recalld.daemon.settings_reflect import ReflectRows
from recalld.daemon.settings_rows import row


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationRows(ReflectRows):
    """The settings of consolidation."""

    enable_observations: bool = row(True, "Build observations from facts.", alias="ENABLE_OBSERVATIONS")
    enable_auto_consolidation: bool = row(
        True, "Consolidate by itself after memories changed.", alias="ENABLE_AUTO_CONSOLIDATION"
    )
    observations_mission: str | None = row(
        None, "What observations are to track, where the bank has no mission of its own.", alias="OBSERVATIONS_MISSION"
    )
    max_observations_per_scope: int = row(
        -1, "Observations one set of tags may have; -1 for any number.", minimum=-1, alias="MAX_OBSERVATIONS_PER_SCOPE"
    )
    consolidation_llm_batch_size: int = row(
        8, "Facts in one call of a model.", minimum=1, maximum=1000, alias="CONSOLIDATION_LLM_BATCH_SIZE"
    )
    consolidation_llm_parallelism: int = row(
        4, "Scopes of a bank consolidated side by side.", minimum=1, maximum=256, alias="CONSOLIDATION_LLM_PARALLELISM"
    )
    consolidation_max_memories_per_round: int = row(
        100,
        "Facts taken at once.",
        minimum=1,
        maximum=100_000,
        alias="CONSOLIDATION_MAX_MEMORIES_PER_ROUND",
    )
    consolidation_max_tokens: int = row(
        512, "Tokens of observations that are looked for beside each fact.", minimum=1, alias="CONSOLIDATION_MAX_TOKENS"
    )
    consolidation_source_facts_max_tokens: int = row(
        4096,
        "Tokens of facts shown with those observations; -1 for any number.",
        minimum=-1,
        alias="CONSOLIDATION_SOURCE_FACTS_MAX_TOKENS",
    )
    consolidation_source_facts_max_tokens_per_observation: int = row(
        256,
        "Tokens of facts shown with one of them; -1 for any number.",
        minimum=-1,
        alias="CONSOLIDATION_SOURCE_FACTS_MAX_TOKENS_PER_OBSERVATION",
    )
    consolidation_dedup_threshold: float = row(
        0.97,
        "Cosine from which two observations of a scope may be merged; 1 switches that off.",
        minimum=0,
        maximum=1,
        alias="CONSOLIDATION_DEDUP_THRESHOLD",
    )
    consolidation_reconcile_seconds: float = row(
        300.0,
        "How often banks are looked through for facts that wait.",
        minimum=0.05,
        alias="CONSOLIDATION_RECONCILE_INTERVAL_SECONDS",
    )
    consolidation_delay_seconds: float = row(
        5.0, "How long a bank must be quiet before it is consolidated by itself; at most ten times as long.", minimum=0
    )
    consolidation_retry_seconds: float = row(
        60.0, "Wait before a fact that failed is tried again; it doubles each time, up to a day.", minimum=0
    )

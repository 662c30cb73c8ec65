"""The rows of reflect and of the disposition that banks begin with."""

from __future__ import annotations

from dataclasses import dataclass

from recalld.daemon.settings_mcp import McpRows
from recalld.daemon.settings_rows import row


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectRows(McpRows):
    """The settings of reflect."""

    reflect_max_iterations: int = row(
        10,
        "Rounds of a reflect at the budget mid; low has half of them, high twice as many, rounded up.",
        minimum=1,
        maximum=200,
        alias="REFLECT_MAX_ITERATIONS",
    )
    reflect_max_context_tokens: int = row(
        100_000,
        "Tokens of a reflect's conversation after which the answer is forced from what was found.",
        minimum=2000,
        maximum=10_000_000,
        alias="REFLECT_MAX_CONTEXT_TOKENS",
    )
    reflect_wall_timeout: float = row(
        300.0, "Seconds a reflect may take; above it 504.", minimum=0.1, maximum=7200, alias="REFLECT_WALL_TIMEOUT"
    )
    reflect_mission: str | None = row(
        None, "What the memory of a bank is for, where the bank has no mission of its own.", alias="REFLECT_MISSION"
    )
    reflect_form_opinions: bool = row(
        True, "Form opinions after a reflect with a model, unless the caller is a client that expects reads alone."
    )
    reflect_max_in_flight: int = row(
        0, "Reflects served at once; 0 means 16 a core.", minimum=0, alias="ADMISSION_REFLECT_MAX_IN_FLIGHT"
    )
    reflect_max_wait_ms: int = row(
        30_000, "Longest wait for a reflect's turn before 503.", minimum=0, alias="ADMISSION_REFLECT_MAX_WAIT_MS"
    )
    disposition_skepticism: int | None = row(
        None, "Skepticism of banks that set none, 1 to 5; unset is 3.", minimum=1, maximum=5,
        alias="DISPOSITION_SKEPTICISM",
    )  # fmt: skip
    disposition_literalism: int | None = row(
        None, "Literalism of banks that set none, 1 to 5; unset is 3.", minimum=1, maximum=5,
        alias="DISPOSITION_LITERALISM",
    )  # fmt: skip
    disposition_empathy: int | None = row(
        None, "Empathy of banks that set none, 1 to 5; unset is 3.", minimum=1, maximum=5, alias="DISPOSITION_EMPATHY"
    )
    disposition_bias_strength: float = row(
        1.0, "How strongly a bank's disposition counts, 0 (not at all) to 1.", minimum=0, maximum=1
    )

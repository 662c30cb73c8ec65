"""What a refresh of a mental model can come to, in the words of the wire."""

from __future__ import annotations

from typing import Any

KIND = "refresh_mental_model"
"""Kind of the operations that refresh one."""

WRITTEN = "content_written"
UNCHANGED = "content_unchanged"
PRESERVED = "content_preserved_no_new_facts"
EMPTY_CANDIDATE = "refresh_failed_empty_candidate"
DELTA_NOT_APPLIED = "refresh_failed_delta_not_applied"
STRUCTURED_OUTPUT = "refresh_failed_structured_output"
FAILED_ERROR = "refresh_failed_error"

NO_BASELINE = "no_baseline_content"
QUERY_CHANGED = "source_query_changed"


def details(outcome: str, failure: str | None) -> dict[str, Any]:
    """What an operation says about its refresh."""
    return {"operation_type": KIND, "outcome": outcome, "failure_reason": failure or None}


def line_of(model_id: str) -> str:
    """The name under which refreshes of one model stand in line, one at a time."""
    return f"\0mental-model\0{model_id}"

"""Who holds an opinion: the agent, or a person by name."""

from __future__ import annotations

from recalld.actors.retain.turns import ASSISTANT, role_of
from recalld.storage.names import folded

AGENT = "agent"
"""The holder of what nobody is named for, and of what the assistant of a talk says."""


def holder_of(speaker: str) -> str:
    """The holder of what a speaker thinks, as answers name it."""
    return AGENT if not speaker or role_of(speaker) == ASSISTANT else speaker


def same_holder(one: str, other: str) -> bool:
    """Whether two speakers are one holder."""
    return folded(holder_of(one)) == folded(holder_of(other))

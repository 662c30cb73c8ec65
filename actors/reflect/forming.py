"""Opinions that a reflect forms: what the model proposed with its answer, checked, with its evidence. Pure.

The model proposes them in the call that gives the answer, so they cost no call of their own. One without a memory that
a tool gave is dropped. An opinion carries the tags of all its evidence, so that it is seen by nobody who could not see
what it rests on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from recalld.actors.opinions.messages import Proposal
from recalld.actors.reflect.tools import Evidence
from recalld.storage.beliefs import REINFORCE, WEAKEN

MOST = 3
USUAL_CONFIDENCE = 0.6
TEXT_LENGTH = 500

FIELD: dict[str, Any] = {
    "type": "array",
    "maxItems": MOST,
    "description": (
        "Judgements of your own about the world that the memories newly support or put in doubt. Usually none. No"
        " facts, no preferences of others."
    ),
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The judgement, in one sentence that stands alone."},
            "confidence": {"type": "number", "description": "From 0 to 1."},
            "memory_ids": {"type": "array", "items": {"type": "string"}, "description": "What speaks for it."},
            "against_ids": {"type": "array", "items": {"type": "string"}, "description": "What speaks against it."},
        },
    },
}


def proposals(given: Sequence[Any], evidence: Evidence, question: str) -> tuple[Proposal, ...]:
    """The opinions a model proposed that rest on what it saw."""
    known = {**evidence.memories, **evidence.observations}
    facts = {_folded(str(one["text"])) for one in known.values() if one.get("type") != "opinion"}
    out = []
    for one in given[:MOST]:
        text = " ".join(str(one.get("text") or "").split()) if isinstance(one, dict) else ""
        if not text or len(text) > TEXT_LENGTH or _folded(text) in facts:
            continue  # a fact that is said again is no judgement
        for_it, against = (_known(one.get(name), known) for name in ("memory_ids", "against_ids"))
        if not for_it and not against:
            continue
        tags = {tag for unit in (*for_it, *against) for tag in known[unit].get("tags") or ()}
        out.append(
            Proposal(
                text=text,
                confidence=_confidence(one.get("confidence")),
                tags=tuple(sorted(tags)),
                evidence=(
                    *((unit, REINFORCE, "named in a reflect") for unit in for_it),
                    *((unit, WEAKEN, "named in a reflect") for unit in against if unit not in for_it),
                ),
                reason=f"Formed when this was asked: {question[:200]}",
            )
        )
    return tuple(out)


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _known(ids: Any, known: dict[str, Any]) -> list[str]:
    named = [str(one).strip() for one in ids] if isinstance(ids, list) else []
    return [one for one in dict.fromkeys(named) if one in known]


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return USUAL_CONFIDENCE
    return min(1.0, max(0.0, float(value)))

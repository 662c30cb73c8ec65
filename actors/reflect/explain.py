"""The path from a question to its answer, for `include.explain`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from recalld.actors.reflect.deps import Plain
from recalld.actors.reflect.request import ReflectRequest
from recalld.actors.reflect.tools import Toolbox


def path(
    request: ReflectRequest, box: Toolbox, words: Sequence[str], directives: Sequence[Plain], used: Sequence[Plain]
) -> Plain:
    """{question, searches, beliefs, disposition, directives}: each search with what it found, used and left out."""
    cited = {one["id"] for one in used}
    return {
        "question": request.query,
        "searches": [_search(call, cited) for call in box.calls],
        "beliefs": [
            {"id": one["id"], "text": one["text"], "confidence": one.get("confidence"), "used": one["id"] in cited}
            for one in box.evidence.opinions
        ],
        "disposition": list(words),
        "directives": [one["name"] for one in directives],
    }


def _search(call: Plain, cited: set[str]) -> Plain:
    output = call["output"]
    found = [one for name in ("mental_models", "observations", "memories", "opinions") for one in output.get(name, ())]
    ids = list(dict.fromkeys(one["id"] for one in found))
    return {
        "tool": call["tool"],
        "query": call["input"].get("query"),
        "reason": call["input"].get("reason"),
        "candidates": ids,
        "used": [one for one in ids if one in cited],
        "left_out": [one for one in ids if one not in cited],
        "error": output.get("error"),
    }

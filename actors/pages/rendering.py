"""Knowledge pages as markdown documents, and pages ranked for a question. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recalld.actors.pages.extractive import NOTICE
from recalld.storage.analysis import term_frequencies
from recalld.storage.isotime import iso
from recalld.storage.pages import FOLDER, PAGE, FormerContent, MentalModel, PageContent, PageNode

NO_CONTENT = "No content yet."
TYPE_TAG = "type:"
PAGE_TYPE = "knowledge-page"
SNIPPET = 240
_FUSION = 60
_K1, _B = 1.2, 0.75
_COSINE_FLOOR = 0.3


def page_type(model: MentalModel) -> str:
    """From a tag `type:...`, else `knowledge-page`."""
    return next((tag.removeprefix(TYPE_TAG) for tag in model.tags if tag.startswith(TYPE_TAG)), "") or PAGE_TYPE


def document(node: PageNode, model: MentalModel, body: str) -> str:
    """Front matter, its values quoted as JSON, then the body."""
    fields: dict[str, Any] = {
        "id": node.id,
        "type": page_type(model),
        "title": node.name,
        "description": model.source_query,
        "timestamp": iso(model.last_refreshed_at or model.created_at),
        "tags": list(model.tags),
    }
    head = "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    text = f"---\n{head}\n---\n"
    return f"{text}\n{body.rstrip()}\n" if body.strip() else text


def index(nodes: Sequence[PageNode], models: Mapping[str, MentalModel]) -> str:
    """A list of all pages under their folders, with links to their files."""
    lines = ["# Knowledge base", ""]
    known = {one.id for one in nodes}
    seen: set[str] = set()

    def walk(parent: str, depth: int) -> None:
        for one in nodes:
            if (one.parent if one.parent in known else "") != parent or one.id in seen:
                continue
            seen.add(one.id)
            indent = "  " * depth
            if one.kind == FOLDER:
                lines.append(f"{indent}- {one.name}")
                walk(one.id, depth + 1)
            elif one.kind == PAGE and one.model in models:
                about = " ".join(models[one.model].source_query.split())
                lines.append(f"{indent}- [{one.name}]({one.id}.md): {about}")

    walk("", 0)
    return "\n".join(lines) + "\n"


def log(node: PageNode, formers: Sequence[FormerContent]) -> str:
    """What a page said before, the latest first."""
    parts = [f"# History of {node.name}"]
    for former in reversed(formers):
        parts.append(f"## Until {iso(former.changed_at)}\n\n{former.text.strip() or NO_CONTENT}")
    return "\n\n".join(parts) + "\n"


def snippet(text: str) -> str:
    """The opening of a page, on one line, without the line that says who wrote it."""
    opening = " ".join(text.removeprefix(NOTICE).split())
    if not opening:
        return NO_CONTENT
    return opening if len(opening) <= SNIPPET else opening[: SNIPPET - 1].rsplit(" ", 1)[0] + "…"


def ranked(
    models: Sequence[MentalModel],
    contents: Mapping[str, PageContent],
    terms: Sequence[str],
    vector: NDArray[np.float32],
) -> list[tuple[MentalModel, float]]:
    """Models with a score in 0..1, best first: rank fusion of BM25 and cosine; what neither finds is left out."""
    by_words = _by_words(models, contents, terms)
    by_meaning = _by_meaning(models, contents, vector)
    best = 2.0 / (_FUSION + 1)
    scores: dict[str, float] = {}
    for ranking in (by_words, by_meaning):
        for place, model_id in enumerate(ranking, start=1):
            scores[model_id] = scores.get(model_id, 0.0) + 1.0 / (_FUSION + place)
    found = [(one, round(scores[one.id] / best, 6)) for one in models if one.id in scores]
    return sorted(found, key=lambda pair: (-pair[1], pair[0].name, pair[0].id))


def _by_words(models: Sequence[MentalModel], contents: Mapping[str, PageContent], terms: Sequence[str]) -> list[str]:
    wanted = dict.fromkeys(terms)
    held = {}
    for one in models:
        counts = dict(contents[one.id].terms)
        for term, count in term_frequencies(f"{one.name}\n{one.source_query}"):
            counts[term] = counts.get(term, 0) + 2 * count
        held[one.id] = counts
    if not held or not wanted:
        return []
    lengths = {model_id: sum(counts.values()) for model_id, counts in held.items()}
    average = max(1.0, sum(lengths.values()) / len(lengths))
    scores: dict[str, float] = {}
    for term in wanted:
        having = [model_id for model_id, counts in held.items() if term in counts]
        weight = math.log(1 + (len(held) - len(having) + 0.5) / (len(having) + 0.5))
        for model_id in having:
            count = held[model_id][term]
            norm = _K1 * (1 - _B + _B * lengths[model_id] / average)
            scores[model_id] = scores.get(model_id, 0.0) + weight * count * (_K1 + 1) / (count + norm)
    return sorted(scores, key=lambda model_id: (-scores[model_id], model_id))


def _by_meaning(
    models: Sequence[MentalModel], contents: Mapping[str, PageContent], vector: NDArray[np.float32]
) -> list[str]:
    scores = {}
    for one in models:
        own = np.frombuffer(contents[one.id].vector, np.float32)
        if len(own) == len(vector) and len(own):
            scores[one.id] = float(own @ vector)
    found = [model_id for model_id, score in scores.items() if score >= _COSINE_FLOOR]
    return sorted(found, key=lambda model_id: (-scores[model_id], model_id))

"""How well memories fit a question: words, scores, and whom each tells of. Pure.

What a person is asked about and what another person said of themselves is no evidence about the first. So each memory
counts for the person the question names as far as it tells of them, and for somebody else as far as it does not; a
question is answered only where its own person's evidence stands against the other's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recalld.actors.reflect.questions import Question, content

_SPEAKER = re.compile(r"^([^\W\d_][\w .'’-]{0,40}?): ")
_FIRST = re.compile(r"\b(?:i|i['’](?:m|ve|d|ll)|me|my|mine|we|we['’](?:re|ve|d|ll)|our|us|myself)\b", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|you['’](?:re|ve|d|ll)|your|yours|yourself)\b", re.IGNORECASE)
_LEADING_NAME = re.compile(r"^([A-ZÀ-ÖØ-Þ][\w'’-]+)")
_RARE = 0.3
_KEYWORD_SCALE = 15.0


@dataclass(frozen=True, slots=True)
class Weighed:
    """A memory with its place in the ranking. `covers` is the share of the question's words it holds, the rarer ones
    counting more; `fit` joins that with its scores. `for_asked` and `for_other` say of whom it tells."""

    memory: dict[str, Any]
    place: int
    speaker: str
    body: str
    covers: float
    fit: float
    for_asked: float
    for_other: float


def weigh(question: Question, results: Sequence[dict[str, Any]]) -> list[Weighed]:
    """Each result weighed, in the same order."""
    read = [_parts(str(one["text"])) for one in results]
    words = [content(body) for _, body in read]
    counts: Counter[str] = Counter(word for some in words for word in some)
    rarity = {word: max(_RARE, math.log((len(results) + 1) / (counts[word] + 0.5))) for word in question.words}
    whole = sum(rarity.values()) or 1.0
    out = []
    for place, (one, (speaker, body), has) in enumerate(zip(results, read, words, strict=True)):
        scores = one.get("scores") or {}
        covers = sum(rarity[word] for word in question.words if word in has) / whole
        fit = covers + float(scores.get("late") or 0) + float(scores.get("semantic") or 0)
        asked, other = _told_of(question, speaker, body)
        out.append(Weighed(one, place, speaker, body, covers, fit, asked, other))
    return out


def advantage(weighed: Sequence[Weighed]) -> float:
    """How much better the evidence about the person asked about fits than the evidence about anybody else."""
    asked = max((one.for_asked * one.fit for one in weighed), default=0.0)
    other = max((one.for_other * one.fit for one in weighed), default=0.0)
    return asked - other


def _parts(text: str) -> tuple[str, str]:
    match = _SPEAKER.match(text)
    return (match[1].casefold(), text[match.end() :]) if match else ("", text)


def _told_of(question: Question, speaker: str, body: str) -> tuple[float, float]:
    """How far a memory tells of the person the question names, and how far of another, each from 0 to 1."""
    if not question.names:
        return 1.0, 0.0
    folded = body.casefold()
    named = any(name in folded for name in question.names)
    if not speaker:
        lead = _LEADING_NAME.match(body)
        of_another = lead is not None and not named and lead[1].casefold() not in question.names and bool(lead[1][1:])
        return (0.4, 0.8) if of_another and _is_name(body) else (1.0, 0.2)
    mine = speaker in question.names or speaker.split()[0] in question.names
    first, second = bool(_FIRST.search(body)), bool(_SECOND.search(body))
    if mine:
        return (1.0 if first or not second else 0.4), (0.15 if first else 0.5)
    asked = 1.0 if second and not first else 0.5 if second else 0.15
    other = 1.0 if first and not second else 0.5 if first else 0.2
    return (max(asked, 0.7) if named else asked), other


def _is_name(body: str) -> bool:
    """Whether a text begins with a name and a verb in the third person, as facts about somebody do."""
    return (
        re.match(r"[A-ZÀ-ÖØ-Þ][\w'’-]+ (?:[A-ZÀ-ÖØ-Þ][\w'’-]+ )?(?:is|was|has|had|does|did|\w+s|\w+ed)\b", body)
        is not None
    )

"""A bank's disposition in words: the exact sentences a prompt holds for each level. Pure; docs/reflect.md shows them.

Three traits from 1 to 5 and how strongly they count, beta from 0 to 1. At beta 0 nothing is said of them at all, so a
prompt is the same for every profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NEUTRAL = 3

WORDS: dict[str, tuple[str, str, str, str, str]] = {
    "skepticism": (
        "You trust what you are told: take memories at their word unless they contradict each other.",
        "You are inclined to trust: doubt a memory only where something speaks against it.",
        "You weigh claims evenly: neither trusting nor doubting without a reason.",
        "You are inclined to doubt: say where a claim rests on one source, and prefer what is confirmed.",
        "You are skeptical: question every claim, name what is missing, and state as certain only what several memories"
        " confirm.",
    ),
    "literalism": (
        "You read between the lines: answer what was meant, and draw the conclusions the memories invite.",
        "You read generously: go a step beyond the wording where the meaning is plain.",
        "You balance wording and meaning.",
        "You keep to the wording: mark every conclusion of your own as one.",
        "You take words exactly: answer what was asked and nothing else, and report what was said as it was said.",
    ),
    "empathy": (
        "You give facts only: feelings play no part in the answer.",
        "You are matter-of-fact: mention feelings only where they are the point.",
        "You mention feelings where they help to understand.",
        "You consider how people feel: word things with care.",
        "You put people first: feelings and circumstances count as much as facts, and the answer shows it.",
    ),
}
"""The sentence of each level, 1 to 5."""

STEPS: tuple[tuple[float, str], ...] = (
    (0.25, "Let this colour your tone alone, never what you say."),
    (0.5, "Let this weigh lightly, where the memories leave room."),
    (0.75, "Let this shape what you stress and what you doubt."),
    (1.0, "Let this shape judgement and tone throughout. It never changes what the memories say."),
)
"""How strongly it counts: the sentence for a beta up to each bound."""


@dataclass(frozen=True, slots=True)
class Disposition:
    """Levels from 1 to 5; `bias_strength` is beta."""

    skepticism: int = NEUTRAL
    literalism: int = NEUTRAL
    empathy: int = NEUTRAL
    bias_strength: float = 1.0

    @classmethod
    def of(cls, config: Mapping[str, Any], bias_strength: float | None = None) -> Disposition:
        """That of a bank's settings in force; a request's own beta goes over the bank's."""
        levels = {trait: int(config.get(f"disposition_{trait}") or NEUTRAL) for trait in WORDS}
        beta = config.get("disposition_bias_strength") if bias_strength is None else bias_strength
        return cls(**levels, bias_strength=1.0 if beta is None else min(1.0, max(0.0, float(beta))))

    @property
    def levels(self) -> dict[str, int]:
        return {trait: getattr(self, trait) for trait in WORDS}


def words(disposition: Disposition) -> tuple[str, ...]:
    """What a prompt says of it, line by line: nothing at beta 0, the numbers alone when all three are in the middle."""
    beta = disposition.bias_strength
    if beta <= 0:
        return ()
    levels = disposition.levels
    numbers = ", ".join(f"{trait} {level} of 5" for trait, level in levels.items())
    lines = [f"Disposition: {numbers}."]
    if any(level != NEUTRAL for level in levels.values()):
        lines += [WORDS[trait][level - 1] for trait, level in levels.items()]
        lines.append(next(sentence for bound, sentence in STEPS if beta <= bound))
    return tuple(lines)

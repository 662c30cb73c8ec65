"""Made-up material for latency and growth: seeded, so that two runs measure the same thing."""

from __future__ import annotations

import random
from collections.abc import Iterator

from recalld.daemon.demo import load


def sentences() -> list[str]:
    """The turns of the shipped conversation, as `speaker: text`."""
    sessions, _ = load()
    return [f"{turn['speaker']}: {turn['text']}" for session in sessions for turn in session["turns"]]


def turns(count: int, seed: int = 1) -> Iterator[str]:
    """`count` different chat-like turns, mixed from pieces of real ones."""
    chosen = random.Random(seed)
    known = sentences()
    pieces = [piece.strip() for text in known for piece in text.split(": ", 1)[1].replace("?", ".").split(".")]
    pieces = [piece for piece in pieces if len(piece) > 12]
    for number in range(count):
        speaker = known[chosen.randrange(len(known))].split(":", 1)[0]
        body = ". ".join(chosen.choice(pieces) for _ in range(chosen.randint(1, 3)))
        yield f"{speaker}: {body}, number {number}."


def queries(count: int, seed: int = 2) -> list[str]:
    """`count` different questions: some words of a real turn behind a question word, so that no cache answers two."""
    chosen = random.Random(seed)
    known = [text.split(": ", 1)[1].rstrip(".!?").split() for text in sentences()]
    openings = ("what about", "when was", "who said", "where is", "why", "how was")
    made: dict[str, None] = {}
    while len(made) < count:
        words = chosen.choice(known)
        at = chosen.randrange(max(1, len(words) - 5))
        made[f"{chosen.choice(openings)} {' '.join(words[at : at + chosen.randint(3, 7)])} {len(made)}?"] = None
    return list(made)

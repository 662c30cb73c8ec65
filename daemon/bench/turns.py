"""Which turns of a conversation a unit tells of, by its words, when nothing else says so."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from recalld.daemon.bench.data import Turn

_WORD = re.compile(r"\w+")
WHOLE = 0.6
"""A turn is in a unit that holds this share of the weight of its words."""


class TurnFinder:
    """The turns of a conversation, to be found by session and words. Rare words weigh more."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.sessions: dict[str, list[tuple[str, frozenset[str]]]] = {}
        counts: Counter[str] = Counter()
        for turn in turns:
            words = frozenset(_WORD.findall(turn.text.partition(": ")[2].casefold()))
            counts.update(words)
            self.sessions.setdefault(turn.session, []).append((turn.id, words))
        self.weights = {word: math.log(1 + len(turns) / count) for word, count in counts.items()}

    def find(self, session: str, text: str) -> tuple[str, ...]:
        """The turn that shares most with a text, and every other one of its session that is nearly whole in it.

        A text that shares no word with any turn comes from none.
        """
        words = frozenset(_WORD.findall(text.casefold()))
        shared = [(self._weight(own & words), self._weight(own), turn) for turn, own in self.sessions.get(session, ())]
        best = max(shared, default=(0.0, 0.0, ""), key=lambda one: one[0])
        if not best[0]:
            return ()
        rest = (turn for common, whole, turn in shared if turn != best[2] and whole and common / whole >= WHOLE)
        return (best[2], *rest)

    def _weight(self, words: frozenset[str]) -> float:
        return sum(self.weights.get(word, 0.0) for word in words)

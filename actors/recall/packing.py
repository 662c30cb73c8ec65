"""What fits: greedy packing of a ranking into a token budget, and one voice per claim."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recalld.actors.recall.snapshot import AnyInts, Bools, Ints
from recalld.storage.bodies import Body
from recalld.storage.records import OPINION, UnitRecord


def pack(tokens: AnyInts, max_tokens: int) -> Ints:
    """Places of a ranking (`tokens` in its order) that go into the budget, in order.

    One that does not fit is skipped and the walk goes on. If none fits and the budget is above 0, the first goes alone;
    a budget of 0 or less takes none.
    """
    if max_tokens <= 0 or len(tokens) == 0:
        return np.empty(0, np.int64)
    cost = np.maximum(tokens.astype(np.int64), 1)
    left = max_tokens
    rest = np.flatnonzero(cost <= left)
    taken: list[Ints] = []
    # Each round takes the longest run that fits and drops all that no longer can: a few rounds, not one a unit.
    while len(rest):
        filled = np.cumsum(cost[rest])
        run = int(np.searchsorted(filled, left, side="right"))
        taken.append(rest[:run])
        left -= int(filled[run - 1]) if run else 0
        rest = rest[run:]
        rest = rest[cost[rest] <= left]
    return np.concatenate(taken) if taken else np.zeros(1, np.int64)


class Selection(NamedTuple):
    """Places of the ranking that are returned, their bodies, and duplicates: place -> the uid that speaks for it."""

    places: Ints
    bodies: list[Body]
    duplicates: dict[int, int]


def select(uids: Ints, tokens: AnyInts, max_tokens: int, fetch: Callable[[Sequence[int]], list[Body]]) -> Selection:
    """Pack the ranking, then give the room of repeated claims to what comes next, until all in it differ.

    `fetch` reads the bodies of units that are packed; one it leaves out is being erased and is dropped.
    """
    alive: Bools = np.ones(len(uids), np.bool_)
    known: dict[int, Body] = {}
    duplicates: dict[int, int] = {}
    while True:
        open_places = np.flatnonzero(alive)
        places = open_places[pack(tokens[open_places], max_tokens)]
        wanted = [int(uid) for uid in uids[places]]
        missing = [uid for uid in wanted if uid not in known]
        if missing:
            known.update((body.record.uid, body) for body in fetch(missing))
        gone = {uid: uid for uid in missing if uid not in known}
        repeated = gone or repeats(known[uid] for uid in wanted)
        if not repeated:
            return Selection(places, [known[uid] for uid in wanted], duplicates)
        for place, uid in zip(places.tolist(), wanted, strict=True):
            if uid in repeated:
                alive[place] = False
                if not gone:
                    duplicates[place] = repeated[uid]


def repeats(bodies: Iterable[Body]) -> dict[int, int]:
    """uid of a unit that repeats an earlier one -> that one's uid.

    The same text is one claim; so is the same text but for case, width and spacing from the same speaker. A fact and an
    opinion in the same words stay two.
    """
    first: dict[Any, int] = {}
    out: dict[int, int] = {}
    for body in bodies:
        claim = body.claim
        if claim is None:
            claim = body.claim = _claim(body.record)
        exact, folded = claim
        earlier = first.get(exact, first.get(folded))
        if earlier is not None:
            out[body.record.uid] = earlier
            continue
        first[exact] = first[folded] = body.record.uid
    return out


def _claim(record: UnitRecord) -> tuple[Any, Any]:
    belief = record.network == OPINION
    return (belief, record.text), (belief, fold(record.text), _fold_name(record.speaker))


def fold(text: str) -> str:
    """A text without case, width and spacing."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(text.casefold().split())


@lru_cache(maxsize=1024)
def _fold_name(name: str) -> str:
    return fold(name)


def estimate_tokens(text: str) -> int:
    """Size of a text whose tokens nobody counted: four Latin characters a token, or one of a denser script."""
    if text.isascii():
        return (len(text) + 3) // 4
    narrow = sum(1 for c in text if c < "\u0300")
    return (narrow + 3) // 4 + (len(text) - narrow)


def cut_to_tokens(text: str, tokens: int) -> str:
    """The longest beginning of the text that `estimate_tokens` puts within the budget."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]

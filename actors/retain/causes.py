"""What the words say caused what, between one fact and the next. Direction and strength come from the cue."""

from __future__ import annotations

import re
from typing import NamedTuple


class Cue(NamedTuple):
    """`backward`: the fact that opens with the cue follows from the one before; else it is that one's cause."""

    pattern: re.Pattern[str]
    weight: float
    backward: bool


def _cue(words: str, weight: float, *, backward: bool = True) -> Cue:
    return Cue(
        re.compile(rf"^\W*(?:(?:and|but|well|yes|yeah|oh|und|y|et)\W+)?(?:{words})", re.IGNORECASE), weight, backward
    )


CUES = (
    _cue(
        r"(?:because of|due to|thanks to|as a (?:direct )?(?:result|consequence) of) (?:that|this|it)\b"
        r"|as a (?:result|consequence)\b|"
        r"consequently\b|for (?:this|that) reason\b|that(?:['’]s| is| was) (?:the reason )?why\b|this is why\b"
        r"|which is why\b|"
        r"por eso\b|por esa razón\b|aus diesem grund\b|c'est pourquoi\b|因此|因而|結果として|そのため|따라서",
        1.0,
    ),
    _cue(
        r"therefore\b|thus\b|hence\b|accordingly\b|por lo tanto\b|por tanto\b|deshalb\b|deswegen\b|daher\b|darum\b"
        r"|par conséquent\b|"
        r"所以|したがって|그래서",
        0.9,
    ),
    _cue(r"so(?:,| (?:i|we|he|she|they|it|the|that|now|my|our)\b)|así que\b|donc\b|于是|だから|なので", 0.8),
    _cue(r"(?:after|since|ever since) (?:that|then|this)\b|seitdem\b|desde entonces\b|从那以后|それ以来", 0.5),
    _cue(
        r"(?:that(?:['’]s| is| was)|this is|it(?:['’]s| is| was)|just|only|mainly|mostly)? ?because\b"
        r"|the reason (?:is|was|being)\b|"
        r"(?:es |fue )?porque\b|weil\b|denn\b|parce que\b|(?:这|那)?是?因为|原因是|なぜなら|というのも|理由は",
        1.0,
        backward=False,
    ),
    _cue(r"(?:after all|you see|since)\b,? ?|schließlich\b|毕竟", 0.6, backward=False),
)
"""Cues by strength: 1.0 says it outright, 0.9 concludes, 0.8 "so", 0.6 explains, 0.5 only follows in time."""


def cue_of(said: str) -> Cue | None:
    """The cue a saying opens with, None when it names no cause."""
    for cue in CUES:
        if cue.pattern.match(said):
            return cue
    return None

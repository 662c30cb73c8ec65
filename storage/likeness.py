"""Whether two names are one: what may never be one, how alike they are spelt, and under which forms they are found.

Names are compared word by word. What only dresses a name (accents, punctuation, spaces, an article, a possessive) does
not count. Titles, endings of companies, initials and a mistyped letter make names alike but not equal: then company
and time decide. Words that differ, and numbers that differ, make different names whatever else speaks for them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

PERSON, ORG = "PERSON", "ORG"
SAME = 1.0
"""Spelt alike but for what dresses a name."""
DRESSED = 0.95
"""A title or an ending of a company on one side alone."""
TYPED = 0.85
"""A letter left out, doubled or swapped in a long word."""
TYPED_OF_SEVERAL = 0.92
"""The same in one word of several."""
CHANGED = 0.78
"""A letter changed, or any slip in a short word: closeness in time alone must not carry it past the threshold."""
INITIAL = 0.75
PART = 0.5
"""A person's first or last name beside the full one."""

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’`](?:s\b|(?=\s|$))")
_TITLES = {
    **dict.fromkeys(("mr", "mister", "herr", "señor", "senor", "monsieur"), "m"),
    **dict.fromkeys(("mrs", "ms", "miss", "madam", "frau", "señora", "senora", "madame"), "f"),
    **dict.fromkeys(("dr", "doctor", "prof", "professor"), "d"),
}
_ENDS = {
    **dict.fromkeys(("inc", "incorporated"), "inc"),
    **dict.fromkeys(("corp", "corporation"), "corp"),
    **dict.fromkeys(("ltd", "limited"), "ltd"),
    **dict.fromkeys(("co", "company"), "co"),
    **{end: end for end in ("llc", "plc", "gmbh", "ag", "sa", "bv", "kk")},
}
_ROMAN = re.compile(r"(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3})")
_ARTICLES = {"the"}
_DROPPED = str.maketrans("", "", "aeiouyhw")
_ALIKE = str.maketrans("ckqzv", "kkksf")
_DIGITS = re.compile(r"\d+")
_LATIN = re.compile(r"[a-z\d]+")


class Parts(NamedTuple):
    """A folded name taken apart. `words` are what names it, without accents; `numbers` in order."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    title: str
    ending: str

    @property
    def squeezed(self) -> str:
        return "".join(self.words)


def plain(name: str) -> str:
    """A name without capitals, accents and compatibility forms."""
    if name.isascii():
        return name.lower()
    spread = unicodedata.normalize("NFKD", name.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in spread if not unicodedata.combining(c) or c > "\u0fff"))


@lru_cache(maxsize=16384)
def parts(name: str) -> Parts:
    """A name taken apart: possessives and articles go, titles and endings of companies stand aside."""
    bare = plain(name)
    if not bare.isalnum():
        bare = _POSSESSIVE.sub("", bare).replace("'", "").replace("’", "")
    words = _WORD.findall(bare)
    title = ending = ""
    kept = words
    while len(kept) > 1 and kept[0] in _ARTICLES:
        kept = kept[1:]
    while len(kept) > 1 and kept[0] in _TITLES:
        title, kept = title or _TITLES[kept[0]], kept[1:]
    while len(kept) > 1 and kept[-1] in _ENDS:
        ending, kept = ending or _ENDS[kept[-1]], kept[:-1]
    numbers = [digits for word in kept if not word.isalpha() for digits in _DIGITS.findall(word)]
    # A number written as a Roman one, or a single letter that is no initial: "Rocky II", "Vitamin C".
    numbers += [word for i, word in enumerate(kept) if i and _ROMAN.fullmatch(word)]
    return Parts(tuple(kept), tuple(numbers), title, ending)


def spellings(name: str, kind: str) -> list[str]:
    """The forms under which a name is kept; at most four."""
    return _forms(name, kind)[0]


def sought(name: str, kind: str) -> list[str]:
    """The forms under which the names are kept that may be one with this one; at most four."""
    return _forms(name, kind)[1]


@lru_cache(maxsize=4096)
def _forms(name: str, kind: str) -> tuple[list[str], list[str]]:
    found = parts(name)
    if not found.words:
        return [], []
    if not _LATIN.fullmatch(found.squeezed):
        return ["=" + found.squeezed], ["=" + found.squeezed]
    # Over all words at once, so that a name in one word meets itself in two.
    both = ["~" + _skeleton(found.squeezed)]
    if kind != PERSON:
        return both, both
    first, last = found.words[0], found.words[-1]
    if len(found.words) == 1:
        return [*both, "one " + first], [*both, "of " + first]
    initial = f"{first[0]} {last}"
    kept, asked = ("short ", "full ") if len(first) == 1 else ("full ", "short ")
    return [*both, kept + initial, "of " + first, "of " + last], [*both, asked + initial, "one " + first, "one " + last]


def _skeleton(word: str) -> str:
    """A word's first letter and its consonants, those that sound alike as one, doubled ones once."""
    letters = word.replace("ph", "f").replace("ck", "k").translate(_ALIKE)
    tail = letters[1:].translate(_DROPPED)
    found = letters[:1]
    for letter in tail:
        if letter != found[-1]:
            found += letter
    return found


def likeness(one: str, other: str, kind: str) -> float:
    """How alike two names of one kind are spelt, 0 to 1; 0 says that they are never one."""
    a, b = parts(one), parts(other)
    if not a.words or not b.words or a.numbers != b.numbers:
        return 0.0
    if (a.title and b.title and a.title != b.title) or (a.ending and b.ending and a.ending != b.ending):
        return 0.0
    dressed = SAME
    if (a.title, a.ending) != (b.title, b.ending):
        # "Dr Waller" may be any Waller; "Dr Sara Waller" is hardly another Sara Waller.
        dressed = CHANGED if kind == PERSON and len(a.words) == 1 else DRESSED
    if a.squeezed == b.squeezed:
        # "Git Hub" is "GitHub", but a person's "Ann Abel" is no "Anna Bel".
        return dressed if a.words == b.words or kind != PERSON else 0.0
    if len(a.words) == len(b.words):
        return min(dressed, _words_alike(a.words, b.words, kind))
    if kind == PERSON and dressed == SAME and not a.title:
        short, long = sorted((a.words, b.words), key=len)
        if len(short) == 1 and len(short[0]) > 2 and short[0] in (long[0], long[-1]):
            return PART
    return 0.0


def _words_alike(one: tuple[str, ...], other: tuple[str, ...], kind: str) -> float:
    worst, slips = SAME, 0
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        if a == b:
            continue
        slips += 1
        short, long = sorted((a, b), key=len)
        if kind == PERSON and len(short) == 1 and index < len(one) - 1 and long.startswith(short):
            worst = min(worst, INITIAL)
        elif (alike := _slip(short, long, kind)) > 0:
            worst = min(worst, TYPED_OF_SEVERAL if alike == TYPED and len(one) > 1 else alike)
        else:
            return 0.0
    return worst if slips == 1 else 0.0


def _slip(short: str, long: str, kind: str) -> float:
    """How alike two words are that differ by one slip of the pen; 0 when they are different words."""
    if len(short) < 3 or short[0] != long[0] or not (_LATIN.fullmatch(short) and _LATIN.fullmatch(long)):
        return 0.0
    if any(map(str.isdigit, short + long)) or OSA.distance(short, long, score_cutoff=1) > 1:
        return 0.0
    if long[:-1] == short and long[-1] in "saeio":
        return 0.0  # "Adam" and "Adams", "Paul" and "Paula"
    if len(short) == len(long) and sorted(short) != sorted(long):
        # Another letter in the same place is mostly another word: "Waller" and "Weller", "Maria" and "Marie".
        least = 8 if kind == PERSON else 6
        inside = len(short) >= least and short[-1] == long[-1]
        return CHANGED if inside and _skeleton(short) == _skeleton(long) else 0.0
    return TYPED if len(short) >= 6 else CHANGED

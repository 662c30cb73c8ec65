"""Which words are known as given names, family names and places, from data that others keep.

Given and family names of some hundred regions come from the files of `Faker`, towns, states and countries from those
of `Faker` and `airportsdata`. The files are read, never imported: the packages' own way of loading them costs
ten times the memory. Only hashes are held (one megabyte for a hundred thousand names), from the first question on.
"""

from __future__ import annotations

import csv
import importlib.util
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from recalld.actors.retain.lexicon import COMMON_WORDS, LABELS, NEVER_NAMES, SENTENCE_OPENERS

_ATTRIBUTE: Final = re.compile(r"\n    (\w+)[^=\n]*= *")
_STRING: Final = re.compile(r"[\"'](\w[^\"'\\\n]{1,40})[\"']")
_FIRST: Final = re.compile(r"first_?name|given_name|^_?(?:fe)?males?_", re.IGNORECASE)
_LAST: Final = re.compile(r"last_?name|surname|family_name", re.IGNORECASE)
_PLACE: Final = re.compile(r"cit(?:y|ies)|countr|state|provinc|region|town|municip|land_coords|canton|department", re.I)
_NO_PLACE: Final = re.compile(r"suffix|prefix|format|abbr|code|street", re.IGNORECASE)
_log = logging.getLogger(__name__)

Hashes = npt.NDArray[np.int64]


class Lists(NamedTuple):
    """Sorted hashes of names in small letters."""

    given: Hashes
    family: Hashes
    places: Hashes


_lock = threading.Lock()
_loaded: Lists | None = None


def is_given(word: str) -> bool:
    """Whether somebody may be called so ("Obinna", "Gudrun")."""
    return _holds(lists().given, word)


def is_family(word: str) -> bool:
    """Whether a family may be called so ("Kowalczyk")."""
    return _holds(lists().family, word)


def is_place(name: str) -> bool:
    """Whether a town, a state or a country is called so ("Bydgoszcz", "Bolivien")."""
    return _holds(lists().places, name)


def is_known(word: str) -> bool:
    """Whether a word is in any of the lists."""
    return is_given(word) or is_place(word) or is_family(word)


def lists() -> Lists:
    """The names, read once a process; empty, and said so in the log, where the packages are not installed."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _read()
    return _loaded


def _holds(hashes: Hashes, name: str) -> bool:
    key = hash(name.casefold())
    at = int(np.searchsorted(hashes, key))
    return at < len(hashes) and int(hashes[at]) == key


def _read() -> Lists:
    given: set[str] = set()
    family: set[str] = set()
    places: set[str] = set()
    for name, value in _attributes("person"):
        wanted = given if _FIRST.search(name) else family if _LAST.search(name) else None
        if wanted is not None:
            wanted.update(_STRING.findall(value))
    for part in ("address", "geo"):
        for name, value in _attributes(part):
            if _PLACE.search(name) and not _NO_PLACE.search(name):
                places.update(_STRING.findall(value))
    airports = _folder("airportsdata", ".")
    if airports is not None and (airports / "airports.csv").is_file():
        with (airports / "airports.csv").open(encoding="utf-8", newline="") as rows:
            reader = csv.reader(rows)
            head = next(reader, [])
            if "city" in head and "subd" in head:
                city, state = head.index("city"), head.index("subd")
                for row in reader:
                    places.add(row[city])
                    places.add(row[state])
    if not (given and places):
        _log.warning("The name lists (packages faker, airportsdata) are not installed; kinds of names are guessed.")
    return Lists(_hashed(given), _hashed(family), _hashed(places))


def _folder(package: str, inside: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations if spec else None) or []:
        if (Path(location) / inside).is_dir():
            return Path(location) / inside
    return None


def _attributes(part: str) -> Iterator[tuple[str, str]]:
    """The assignments in the class bodies of Faker's providers of one part: each reaches up to the next."""
    folder = _folder("faker", f"providers/{part}")
    for file in sorted(folder.rglob("*.py")) if folder else ():
        parts = _ATTRIBUTE.split(file.read_text(encoding="utf-8"))
        yield from zip(parts[1::2], parts[2::2], strict=True)


def _hashed(names: Iterable[str]) -> Hashes:
    """Names in Latin letters that are no everyday word."""
    folded = {name.casefold() for name in names if name[:1] < "\u0250" or "\u1e00" <= name[:1] < "\u1f00"} - _PLAIN
    hashes = np.fromiter(map(hash, folded), np.int64, len(folded))
    hashes.sort()
    return hashes


_PLAIN: Final = NEVER_NAMES | SENTENCE_OPENERS | COMMON_WORDS | LABELS

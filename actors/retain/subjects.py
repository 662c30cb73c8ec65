"""Who a claim is about: the speaker for "I", the named one otherwise, the one recent candidate for a pronoun."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from recalld.actors.retain.attributes import Statement
from recalld.actors.retain.turns import Turn, is_generic

_KIN_NAMED = re.compile(
    r"^(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[A-Z][\w-]+'s)(?: [\w-]+){0,3}? (?P<name>(?:(?:Dr|Mr|Mrs|Ms"
    r"|Prof)\.? )?[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)$"
)
_IS_NAMED = re.compile(
    r"^\W*(?:my|our|his|her|their|the) (?:[\w-]+ ){0,3}?[\w-]+ (?:is|was|are) (?:called |named )?(?P<name>(?:(?:Dr"
    r"|Mr|Mrs|Ms|Prof)\.? )?[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)(?=[.,;!]|$)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"^(?:Dr|Mr|Mrs|Ms|Prof|Madame|Sir|Senator|Captain)\.? ")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)$")
_PRONOUN = re.compile(r"^(?P<p>He|She|They|His|Her|Their)(?P<c>['’](?:s|ll|d|ve|re))?(?= [a-z])")
_SHE = frozenset(["she", "her", "hers"])
_HE = frozenset(["he", "him", "his"])
_FEMALE = re.compile(
    r"\b(?:mother|mom|mum|sister|wife|daughter|aunt|niece|girlfriend|grandma|grandmother|mrs|ms|madame|woman|lady"
    r"|queen)\b",
    re.IGNORECASE,
)
_MALE = re.compile(
    r"\b(?:father|dad|brother|husband|son|uncle|nephew|boyfriend|grandpa|grandfather|mr|sir|man|king)\b", re.IGNORECASE
)


class Recent:
    """The people named lately in a chunk, to find whom a pronoun means. Nobody is guessed: two candidates are none."""

    def __init__(self) -> None:
        self._named: list[tuple[str, str]] = []  # (name, "she", "he" or "") of the last sayings that named anybody

    def hear(self, said: str, people: Sequence[str], speaker: str) -> None:
        """Take note of whom a saying names, besides its speaker."""
        named = [name for name in people if name.casefold() != speaker.casefold() and not is_generic(name)]
        if named:
            self._named = [(name, _gender(said, name)) for name in named]

    def meant_by(self, pronoun: str, speaker: str) -> str:
        """The one recent candidate for a pronoun; "" when there is none, or more than one."""
        wanted = "she" if pronoun.casefold() in _SHE else "he" if pronoun.casefold() in _HE else ""
        if not wanted:
            return ""
        fitting = {
            name for name, gender in self._named if gender in ("", wanted) and name.casefold() != speaker.casefold()
        }
        sure = {name for name, gender in self._named if gender == wanted}
        fitting = sure or fitting
        return fitting.pop() if len(fitting) == 1 else ""


def _gender(said: str, name: str) -> str:
    at = said.find(name)
    around = said[max(0, at - 24) : at + len(name)] if at >= 0 else ""
    return "she" if _FEMALE.search(around) else "he" if _MALE.search(around) else ""


def subject_of(
    statements: Sequence[Statement], main: Statement, turn: Turn, recent: Recent, people: Set[str], said: str
) -> str:
    """Whom the claim is about, "" when that is nobody in particular or not sure. `people`: folded names in the text."""
    subject = _PARENTHESIS.sub("", main.subject)
    folded = subject.casefold()
    speaker = turn.speaker
    if not subject:
        return ""
    if folded in ("i", "we"):
        return speaker
    if folded in _HE | _SHE | {"they"}:
        for one in statements:
            if one is main:
                break
            named = name_in(one.subject, people)
            if named:
                return named
        inside = _IS_NAMED.match(said)
        if inside and len(statements) > 1:
            return inside["name"]
        return recent.meant_by(folded, speaker)
    inside = _IS_NAMED.match(said)
    if inside and folded.startswith(("my ", "our ")) and not main.attribute:
        return inside["name"]
    kin = _KIN_NAMED.match(subject)
    if kin:
        return kin["name"]
    if folded.startswith(("my ", "our ")):
        owner = speaker if speaker and not is_generic(speaker) else ""
        return f"{owner}'s {subject.split(' ', 1)[1]}" if owner and main.attribute else ""
    if folded.startswith(("his ", "her ", "their ")):
        owner = recent.meant_by(folded.split()[0], speaker)
        return f"{owner}'s {subject.split(' ', 1)[1]}" if owner and main.attribute else ""
    if main.person and (folded in people or _bare(folded) in people or main.attribute):
        return subject
    return subject if main.attribute else ""


def name_in(subject: str, people: Set[str]) -> str:
    """The name a subject phrase holds, "" for a phrase that names nobody."""
    bare = _PARENTHESIS.sub("", subject)
    kin = _KIN_NAMED.match(bare)
    if kin:
        return kin["name"]
    return bare if bare.casefold() in people or _bare(bare.casefold()) in people else ""


def _bare(folded: str) -> str:
    return _TITLE.sub("", folded.title()).casefold()


def named(text: str, recent: Recent, speaker: str) -> str:
    """A text that opens with a pronoun, with the name it stands for in its place where that is sure."""
    match = _PRONOUN.match(text)
    if match is None:
        return text
    name = recent.meant_by(match["p"], speaker)
    if not name:
        return text
    owns = match["p"] in ("His", "Their") or (match["p"] == "Her")
    if owns:
        return text if match["c"] else f"{name}'s{text[match.end() :]}"
    return name + (match["c"] or "") + text[match.end() :]

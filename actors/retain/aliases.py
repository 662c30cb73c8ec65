"""Other names of one person or thing, as a text gives them: `Bob (Robert Chen)`, `known as Bob`, `call me Bob`."""

from __future__ import annotations

import re

from recalld.actors.retain.lexicon import word_set

_CAPITAL = r"[A-Z\u00c0-\u00de\u0400-\u042f][\w.'’-]*"
_NAME = rf"{_CAPITAL}(?: (?:(?:of|de|van|von|der|la|the) )?{_CAPITAL}){{0,4}}"
_KNOWN_AS = (
    r"(?:also |better |commonly |formerly |previously |otherwise )?(?:known|referred to) (?:to \w+ )?as|a\.?k\.?a\.?|"
    r"nick-?named|(?:who )?goes by(?: the name(?: of)?)?|called by \w+|short for|or simply|alias|"
    r"(?:is|was|are) (?:often |usually |just |simply )?called"
)
_PAIRS = (
    re.compile(
        rf"(?<![\w(])(?P<a>{_NAME}) ?\((?:aka |a\.k\.a\. |also |formerly |née |or "
        rf"|{_KNOWN_AS} )?[\"“]?(?P<b>{_NAME})[\"”]?\)"
    ),
    re.compile(rf"(?<!\w)(?P<a>{_NAME}),? (?:{_KNOWN_AS}) [\"“]?(?P<b>{_NAME})(?!\w)"),
    re.compile(
        rf"(?<!\w)(?P<a>{_NAME}),? (?:everyone|everybody|people|friends|we all|we) calls? (?:him|her|it"
        rf"|them) [\"“]?(?P<b>{_NAME})"
    ),
    re.compile(
        r"(?P<a>[\u4e00-\u9fff]{2,4})[（(](?:又名|别名|英文名|也叫|昵称|小名)?[:：]?\s*(?P<b>[A-Z][\w .'-]{1,30}"
        r"|[\u4e00-\u9fff]{2,4})[）)]"
    ),
    re.compile(
        r"(?P<a>[\u4e00-\u9fff]{2,4})[，,]?(?:又名|人称|别名|外号|也叫|昵称)(?P<b>[A-Z][\w'-]{1,20}|[\u4e00-\u9fff]{2,4})"
    ),
)
_OWN = re.compile(
    rf"\b(?:(?:please |just |you can |everyone |everybody |friends |people |they |they all )?calls? me|(?:i )?go by|"
    rf"my (?:nickname|nick|full name|real name|handle) is|i(?: a|')m (?:also )?known as) [\"“]?(?P<b>{_NAME})",
)
_OWN_CJK = re.compile(
    r"(?<!不要)(?<!别)(?<!別)(?:大家|朋友|他们|同事)?(?:都)?叫我(?P<b>[A-Z][\w-]{1,20}|[\u4e00-\u9fff]{2,3})"
)
_DENIED = re.compile(r"\b(?:never|not|don['’]t|stop|nobody|no longer|no one)\b[^.!?]{0,24}$", re.IGNORECASE)
_NO_ALIAS = word_set(
    """
    CEO CTO CFO COO VP HR QA PM Inc Ltd LLC GmbH AM UTC GMT USA UK EU Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov
    Dec Monday Tuesday Wednesday Thursday Friday Saturday Sunday Yes No The This That It He She They We Note See
    """
)


def aliases(said: str, speaker: str = "") -> tuple[tuple[str, str], ...]:
    """Pairs of names the words declare one, the shorter first. `speaker` is who says "call me ..."; "" when unknown."""
    found: dict[tuple[str, str], None] = {}
    if "(" in said or "（" in said or _MAY.search(said):
        for form in _PAIRS:
            for match in form.finditer(said):
                if not _DENIED.search(said[max(0, match.start("b") - 40) : match.start("b")]):
                    _add(found, match["a"], match["b"])
    if speaker:
        for form in (_OWN, _OWN_CJK):
            for match in form.finditer(said):
                if not _DENIED.search(said[max(0, match.start() - 30) : match.start()]):
                    _add(found, speaker, match["b"])
    return tuple(found)


_MAY = re.compile(
    r"\b(?:known|a\.?k\.?a|nick-?named|goes by|short for|alias|calls? (?:him|her|it|them)|called)\b"
    r"|又名|人称|别名|外号|也叫|昵称",
    re.IGNORECASE,
)


def _add(found: dict[tuple[str, str], None], one: str, other: str) -> None:
    one, other = (" ".join(name.strip(" .,'’\"“”").split()) for name in (one, other))
    if not one or not other or one.casefold() == other.casefold() or one in _NO_ALIAS or other in _NO_ALIAS:
        return
    if other.isupper() and len(other) <= 6 and not _initials(other, one) and not _initials(one, other):
        return  # "Ana Ruiz (IT)": a department, a country, a unit
    pair = (one, other) if len(one) <= len(other) else (other, one)
    found[pair] = None


def _initials(short: str, long: str) -> bool:
    return short.casefold() == "".join(word[0] for word in long.split() if word[0].isupper()).casefold()

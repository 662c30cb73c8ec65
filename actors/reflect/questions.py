"""What a question asks for: its kind, whom it names, and the words that must be found. Pure, by rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

WHEN, WHO, WHERE, HOW_MANY = "when", "who", "where", "how many"
YES_NO, LIST, SUMMARY, WHY, WHAT = "yes-no", "list", "summary", "why", "what"
KINDS = (WHO, WHEN, WHERE, HOW_MANY, YES_NO, LIST, SUMMARY, WHY, WHAT)

_PATTERNS: dict[str, tuple[str, ...]] = {
    WHEN: (
        r"^(?:and |so )?(?:since |until |by |from )?when\b",
        r"\b(?:what|which) (?:date|day|month|year|time|week|season)\b|\bhow long ago\b",
        r"^¿?cuándo\b|^(?:seit )?wann\b|什么时候|何时|哪(?:天|年|个月)|いつ",
    ),
    HOW_MANY: (
        r"\bhow (?:many|much|often|long|old|tall|far|big)\b|\bwhat (?:number|amount|age)\b",
        r"^¿?cuánt[oa]s?\b|^wie ?(?:viele?|oft|lange|alt)\b|多少|几(?:个|次|岁)|いくつ|何(?:人|回|個|歳)",
    ),
    SUMMARY: (r"\b(?:summar|overview|tell me (?:all |every)?(?:thing )?about|what do (?:you|we) know|describe)\w*",),
    WHY: (
        r"\bwhy\b|\bwhat (?:was|is|were) the reasons?\b|\bhow come\b",
        r"^¿?por qué|^warum|^wieso|为什么|なぜ|どうして",
    ),
    WHERE: (
        r"^(?:\w+ )?where\b|\b(?:what|which) (?:city|country|place|state|town)\b",
        r"^¿?(?:a|de )?dónde|^wo(?:hin|her)?\b|哪里|哪儿|どこ",
    ),
    WHO: (r"^(?:\w+ )?who(?:se|m)?\b", r"^¿?quién(?:es)?\b|^we[rmn]\b|谁|誰|だれ"),
    LIST: (
        r"^(?:\w+ )?(?:what|which) (?:(?:kinds?|types?|sorts?) of )?(?:\w+ ){0,2}?\w{3,}(?<!ss)(?<!us)(?<!is)s\b",
        r"\b(?:list|name) (?:all|the|some|every)\b|^¿?(?:qué|cuáles) \w+s\b|^welche \w+(?:en|er|e)\b|哪些",
    ),
    YES_NO: (
        r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should|may|might)\b",
        r"^(?:hat|ist|war|wird|kann|sind)\b|^¿?(?:es|está|tiene|ha|fue)\b|[吗嗎]\s*[?？]?$|(?:です|ます|ました)か",
    ),
}
"""Patterns of each kind; the first kind that fits is taken."""
_RULES = tuple((kind, re.compile("|".join(some), re.IGNORECASE)) for kind, some in _PATTERNS.items())

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'’.-]*[^\W_]")
_SUFFIXES = ("ingly", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s")
_STOP = """
    a about after all also an and any are as at be been before being but by can could did do does doing during each
    for from had has have having he her hers him his how i if in into is it its just many may me might more most much
    my name no not of often on one only or other our out over she should so some such than that the their them then
    there these they thing things this those to too under up was way we were what when where which while who whom whose
    why will with would you your kind type sort according describe tell mention mentioned say said says ever long ago
    get got go goes going make made take took
"""
STOP = frozenset(_STOP.split())
_NOT_NAMES = """
    what when where which who whom whose why how is are was were do does did has have had can could would will should
    may might in on at by for from the a an i according based since until during after before and so list name describe
    tell january february march april june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday
"""
NOT_NAMES = frozenset(_NOT_NAMES.split())


@dataclass(frozen=True, slots=True)
class Question:
    """`names` are folded names it holds, `words` the stems that an answer's evidence should hold."""

    text: str
    kind: str
    names: frozenset[str]
    words: frozenset[str]


def read(text: str) -> Question:
    """A question by its words."""
    text = " ".join(text.split())
    names = frozenset(
        one
        for match in _NAME.finditer(text)
        if (one := folded_name(match[0])) not in NOT_NAMES
    )  # fmt: skip
    return Question(text, kind_of(text), names, content(text) - {stem(one) for one in names})


def kind_of(text: str) -> str:
    """What a question asks for, by the first rule that fits."""
    return next((kind for kind, rule in _RULES if rule.search(text.strip())), WHAT)


def folded_name(name: str) -> str:
    return re.sub(r"['’]s?$", "", name.strip(".'’-")).casefold()


def content(text: str) -> frozenset[str]:
    """The stems of the words of a text that say something."""
    return frozenset(stem(word) for word in tokens(text) if word not in STOP)


def tokens(text: str) -> list[str]:
    """Words of a text, folded, without the 's of a genitive."""
    return [re.sub(r"['’](s|re|ve|ll|d|m|t)$", "", word) for word in _WORD.findall(text.casefold())]


def stem(word: str) -> str:
    """A word without its commonest endings: enough to join `signed`, `signing` and `signs`."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.rstrip("ey") if len(word) > 3 else word

"""What kind of saying a text is: a question, an opinion, the agent's own doing, an instruction; and what caused what.

Rules are conservative on purpose: a turn that is not clearly one of these is a plain fact about the world.
"""

from __future__ import annotations

import re

from recalld.actors.retain import languages
from recalld.actors.retain.sentences import sentence_spans
from recalld.actors.retain.turns import ASSISTANT
from recalld.actors.trust.instructions import NORMAL, QUOTED, reads_like_instruction
from recalld.storage.records import EXPERIENCE, OPINION, WORLD

_CLOSERS = " \t\r\n\"'”’»)]}*_~`」』）.!"
_QUESTION_ENDS = ("?", "？", "؟", ";\u037e", "⁇", "⁈", "?!")


def is_question(text: str) -> bool:
    """Whether the text ends as a question; closing quotes, brackets and emoji behind the mark do not count."""
    end = len(text)
    while end and (text[end - 1] in _CLOSERS or (text[end - 1] > "\u2190" and not _is_letter_like(text[end - 1]))):
        end -= 1
    return text[:end].endswith(_QUESTION_ENDS) or bool(_QUESTION_CJK.search(text[:end]))


def _is_letter_like(character: str) -> bool:
    return character.isalnum() or character in "？؟⁇⁈"


_QUESTION_CJK = re.compile(r"(?:吗|嗎|ですか|ますか|でしょうか|습니까|나요)$")


# --- opinions ---------------------------------------------------------------------------------------------------

_HEDGES: tuple[tuple[re.Pattern[str], float, bool], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), confidence, judging)
    for pattern, confidence, judging in (
        (
            r"^(?:i(?:['’]m| am) (?:(?:pretty|quite|fairly|very|absolutely|almost|really) )?(?:sure|certain"
            r"|convinced|positive|confident)(?: that)?"
            r"|i firmly believe(?: that)?|(?:definitely|undoubtedly|without (?:a )?doubt|no doubt),?)(?![\w'’])",
            0.9,
            False,
        ),
        (
            r"^(?:honestly|frankly|clearly|personally|to be (?:honest|fair|frank)|let['’]s be honest),? (?=\S)",
            0.75,
            False,
        ),
        (r"^i (?:really |truly |still |strongly |honestly |personally )?believe(?: that)?\b(?! in\b)", 0.75, False),
        (
            r"^(?:in my (?:(?:humble|honest) )?(?:opinion|view|experience|book|eyes)|imo|imho|to my mind"
            r"|if you ask me|for me|as i see it)\b,?",
            0.7,
            False,
        ),
        (r"^my (?:(?:personal|honest) )?(?:opinion|view|take|impression|feeling|guess)(?: is(?: that)?|:)", 0.7, False),
        (
            r"^i (?:really |still |honestly |personally |do |just )?(?:think|reckon)(?: that)?\b(?! (?:of|about|so)\b)",
            0.7,
            False,
        ),
        (r"^i (?:really |still |honestly |personally |do |just )?(?:find|consider|feel)(?: that| like)?\b", 0.7, True),
        (r"^(?:i['’]d|i would) (?:say|argue|guess)(?: that)?\b", 0.7, False),
        (
            r"^(?:it (?:seems|looks like|appears|sounds like)(?: to me)?(?: that)?|probably|apparently|presumably"
            r"|most likely|seems like|looks like)\b,?",
            0.6,
            False,
        ),
        (
            r"^(?:i(?:['’]m| am) not (?:so |really |very )?(?:sure|convinced)(?: that| if)?|i doubt(?: that)?"
            r"|i (?:don['’]t|do not) (?:really )?(?:think|believe)(?: that)?)\b",
            0.6,
            False,
        ),
        (r"^i (?:guess|suppose|suspect|imagine|assume|bet)(?: that)?\b", 0.5, False),
        (r"^(?:maybe|perhaps|possibly)\b,?", 0.4, False),
        (r"^(?:je (?:pense|crois|trouve) que|à mon avis)\b,?", 0.7, False),
    )
)
"""Openings that make what follows an opinion, how sure they are of it, and whether it must also judge."""
_INSIDE: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile(r"\b(?:probably|presumably|most likely|arguably)\b", re.IGNORECASE), 0.6),
    (
        re.compile(
            r",? (?:in my (?:opinion|view)|if you ask me|imo|imho|i (?:think|believe|reckon|guess|suppose))[.!]?$",
            re.IGNORECASE,
        ),
        0.7,
    ),
)
_STRONG = re.compile(
    r"\b(?:is|are|was|were|looks?|tastes?|tasted|sounds?|feels?|seems?|(?:it|that|he|she"
    r"|this)['’]s)(?: \w+)? (?:(?:just|so|really|very|absolutely|simply|by far|easily|one of) )*"
    r"(?:the (?:best|worst|most \w+|least \w+|nicest|ugliest|greatest)|terrible|awful|horrible|dreadful|superb"
    r"|brilliant|overrated|underrated|"
    r"rude|overcooked|undercooked|bland|delicious|disgusting|hideous|gorgeous|dull|tedious|disappointing|fantastic"
    r"|tasteless|clumsy|sloppy|pointless|"
    r"overpriced|ugly|boring|ridiculous|useless|worthless|stupid|mediocre|(?:far |much |way |a bit "
    r"|a little )?too (?!late\b)\w+)\b",
    re.IGNORECASE,
)
_UNHEDGED = 0.8
# What is judged must be the world: a plan, a wish or a memory of one's own under "I think" is a fact about oneself.
_OWN = re.compile(
    r"^\W*(?:i|i['’]m|i['’]ll|i['’]d|i['’]ve|we|we['’]re|we['’]ll|we['’]ve|my|me)\b"
    r"|^\W*(?:you|you['’]re|you['’]ll|you['’]ve|your)\b"
    r"|^\W*(?:yo|ich|wir|je|nous|我们?|私は|僕は)\b",
    re.IGNORECASE,
)
_JUDGING = re.compile(
    r"\b(?:is|are|was|were|be|good|bad|great|better|best|worse|worst|terrible|awful|horrible|excellent|amazing"
    r"|awesome|brilliant|"
    r"useful|useless|helpful|easy|hard|easier|harder|simple|confusing|clear|elegant|ugly|beautiful|boring"
    r"|interesting|fun|fast|"
    r"slow|safe|dangerous|important|necessary|worth|wrong|right|fair|unfair|smart|stupid|silly|promising|disappointing|"
    r"impressive|expensive|cheap|rude|annoying|lovely|nice|perfect|should|shouldn['’]t|ought|must|deserves?|too \w+"
    r"|more \w+|less \w+|"
    r"bon|bonne|mauvais|mauvaise|meilleur|meilleure|utile|mieux|devrait)\b",
    re.IGNORECASE,
)
_PREFACE = re.compile(
    r"^\W*(?:(?:well|so|and|but|yeah|yes|no|hm+|u[hm]+|ok(?:ay)?|also|actually|still|you know|i mean|like|oh|ah"
    r"|right|look|see)[,.]?\s+)+",
    re.I,
)
_GOES_ON = re.compile(
    r"^\W*(?:it|that|this|they|he|she|so|because|and|but|too|very|really|especially)\b", re.IGNORECASE
)
_WANTS = re.compile(r"我想(?:要|去|买|買|吃|学|學|把|在|给|給|看|做|用|问|問)|[おこそとのもよろごぼ]うと(?:思|考え)")


def opens_opinion(sentence: str) -> float | None:
    """How sure a sentence is of the opinion it opens as; None when it opens as none."""
    body = _PREFACE.sub("", sentence.strip().strip("\"“”'"))
    for pattern, confidence, judging in _HEDGES:
        match = pattern.search(body)
        if match is not None:
            judged = body[match.end() :]
            if _OWN.match(judged) or (judging and not _JUDGING.search(judged)) or len(judged.split()) < 2:
                return None
            return confidence
    return None


def opinion_confidence(said: str) -> float | None:
    """How sure a saying is of the judgement or belief it is; None when it is none, or more than that."""
    if len(said) > 400 or not said.strip():
        return None
    spans = sentence_spans(said)
    first = said[slice(*spans[0])] if spans else said
    if is_question(first) or len(spans) > 3:
        return None
    language = languages.language_of(first)
    if language not in ("en", "fr") and (hedged := languages.hedge(first, language)) is not None:
        return None if _WANTS.search(first) or languages.is_hypothetical(first, language) else hedged
    opened = opens_opinion(first)
    if len(spans) > 1:
        return opened if all(_GOES_ON.match(said[slice(*span)]) for span in spans[1:]) else None
    if opened is not None:
        return opened
    body = _PREFACE.sub("", first)
    if _OWN.match(body):
        return None
    for pattern, confidence in _INSIDE:
        if pattern.search(body):
            return confidence
    return _UNHEDGED if _STRONG.search(body) else None


# --- the agent's own doing --------------------------------------------------------------------------------------

_DID = (
    r"(?:ran|wrote|found|built|made|sent|read|fixed|did|set|put|got|took|gave|told|saw|went|began|chose|kept|left|met|"
    r"rewrote|[a-z]{2,}ed)"
)
_OWN_ACTION = re.compile(
    rf"\bI(?:'ve| have)?(?: (?:just|also|then|now|already|successfully|first|finally|have|had))* {_DID}\b"
    r"|\bI(?:'ll| will|'m going to| am going to|'m (?:now )?\w+ing| am (?:now )?\w+ing)\b"
    r"|\b(?:let me|I need to|I was able to|I couldn't|I could not|I failed to|I tried)\b"
    r"|我(?:已经|已|刚|刚刚|将|会|正在)\w|我[^，。]{0,12}[了过過]|(?:しました|いたしました|しています)[。.]?"
    r"|\b(?:he|hemos) \w+(?:ado|ido|to|cho)\b|\bich habe\b.{0,80}\b(?:ge\w+|\w+(?:iert|tet))\b|\bhabe ich\b",
)
_OPENS_WITH_ACTION = re.compile(
    r"^(?:done[:.,!]?\s+\S|(?!Need|Indeed|Speed|Feed|Seed)[A-Z][a-z]+ed (?:the|an?|all|your|my|it|to|\d|[A-Z`]))"
)


def network_of(said: str, role: str) -> tuple[int, float | None]:
    """The network of a turn, and the confidence when it is an opinion. `role` is the speaker's (turns.py)."""
    if role == ASSISTANT and (_OWN_ACTION.search(said) or _OPENS_WITH_ACTION.match(said)):
        return EXPERIENCE, None
    confidence = opinion_confidence(said)
    return (WORLD, None) if confidence is None else (OPINION, confidence)


# --- instructions -----------------------------------------------------------------------------------------------


def trust_of(text: str) -> str:
    """`quoted` when the text reads like an instruction to the model that will one day see it, else `normal`."""
    return QUOTED if reads_like_instruction(text) else NORMAL


# --- the first person -------------------------------------------------------------------------------------------

_ONESELF = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|me|my|mine|myself|we|our|us|ich|mein\w*|wir|unser\w*|yo|mi|mis|je|mon|mes|nous|notre)\b"
    r"|我|咱|私|僕|俺|나는|저는|내가|제가",
    re.IGNORECASE,
)


def speaks_of_oneself(text: str) -> bool:
    """Whether the words hold a first person, who must be somebody."""
    return _ONESELF.search(text) is not None

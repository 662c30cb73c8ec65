"""What kind of saying a text is: a question, an opinion, the agent's own doing, an instruction; and what caused what.

Rules are conservative on purpose: a turn that is not clearly one of these is a plain fact about the world.
"""

from __future__ import annotations

import re

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

_HEDGES: tuple[tuple[re.Pattern[str], float], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), confidence)
    for pattern, confidence in (
        (r"^(?:i(?:'m| am) (?:sure|certain|convinced|positive|confident)(?: that)?|i firmly believe(?: that)?)\b", 0.9),
        (r"^(?:honestly|frankly|clearly|personally),? (?=\S)", 0.75),
        (r"^i (?:really |truly |still |strongly |honestly |personally )?believe(?: that)?\b", 0.75),
        (r"^(?:in my (?:opinion|view|experience|book)|imo|imho|to my mind|if you ask me)\b,?", 0.7),
        (r"^my (?:opinion|view|take) is(?: that)?\b", 0.7),
        (r"^i (?:really |still |honestly |personally )?(?:think|find|consider|reckon|feel)(?: that| like)?\b", 0.7),
        (r"^(?:i'd|i would) (?:say|argue)(?: that)?\b", 0.7),
        (r"^(?:it (?:seems|looks like|appears)(?: to me)?(?: that)?|probably|apparently)\b,?", 0.6),
        (r"^i (?:guess|suppose|suspect|imagine)(?: that)?\b", 0.5),
        (r"^(?:i(?:'m| am) not (?:sure|convinced)(?: that| if)?|i doubt(?: that)?|i don't think(?: that)?)\b", 0.6),
        (r"^(?:maybe|perhaps|possibly)\b,?", 0.4),
        (r"^(?:creo|pienso|opino|me parece) que\b|^en mi opinión\b,?", 0.7),
        (r"^(?:ich (?:finde|glaube|denke|meine)|meiner meinung nach|meines erachtens)\b,?", 0.7),
        (r"^(?:je (?:pense|crois|trouve) que|à mon avis)\b,?", 0.7),
        (r"^(?:我觉得|我认为|我覺得|我認為|在我看来|依我看|我看)", 0.7),
        (r"^(?:我猜|也许|可能|或许|说不定)", 0.5),
        (r"(?:と思います|と思う|と感じる|と考えます)[。.]?$", 0.7),
        (r"(?:かもしれない|かもしれません)[。.]?$", 0.4),
    )
)
# What is judged must be the world: a plan, a wish or a memory of one's own under "I think" is a fact about oneself.
_OWN = re.compile(
    r"^\W*(?:i|i'm|i'll|i'd|i've|we|we're|we'll|we've|my|me)\b"
    r"|^\W*(?:you|you're|you'll|you've|your)\b"
    r"|^\W*(?:yo|ich|wir|je|nous|我们?|私は|僕は)\b",
    re.IGNORECASE,
)
_JUDGING = re.compile(
    r"\b(?:reliable|unreliable|good|bad|great|better|best|worse|worst|terrible|awful|horrible|excellent|amazing|awesome|"
    r"brilliant|fantastic|wonderful|superb|mediocre|overrated|underrated|overpriced|useful|useless|helpful|harmful|"
    r"easy|hard|easier|harder|simple|simpler|complex|complicated|confusing|clear|elegant|ugly|beautiful|pretty|boring|"
    r"interesting|fun|fast|faster|slow|slower|safe|safer|unsafe|dangerous|secure|insecure|stable|unstable|fragile|robust|"
    r"mature|immature|important|unimportant|necessary|unnecessary|worth|worthless|wrong|right|fair|unfair|smart|stupid|dumb|silly|clever|"
    r"promising|disappointing|impressive|effective|ineffective|efficient|inefficient|expensive|cheap|cheaper|"
    r"trustworthy|honest|kind|rude|annoying|lovely|nice|perfect|broken|doomed|likely|unlikely|superior|inferior|"
    r"should|shouldn't|ought|must|deserves?|needs? to|beats?|sucks?|rocks?|"
    r"will (?:win|lose|fail|succeed|replace|survive)|"
    r"too \w+|more \w+ than|less \w+ than|\w+er than|"
    r"mejor|peor|bueno|buena|malo|mala|fiable|excelente|interesante|debería|"
    r"gut|schlecht|besser|schlechter|zuverlässig|schön|wichtig|langweilig|sollte|toll|"
    r"bon|bonne|mauvais|mauvaise|meilleur|meilleure|fiable|utile|mieux|devrait)\b"
    r"|可靠|好|差|不错|最|更|应该|值得|重要|有用|没用|糟|棒|贵|便宜|快|慢|难|简单|优秀|良い|いい|悪い|最高|便利|面白い|すごい|べき",
    re.IGNORECASE,
)
_PREFACE = re.compile(
    r"^(?:(?:well|so|and|but|yeah|yes|no|hm+|ok(?:ay)?|also|actually|honestly|personally|still)[,.]?\s+)+", re.I
)


def opinion_confidence(said: str) -> float | None:
    """How sure a turn is of the one judgement it is; None when it is not one judgement sentence."""
    if len(said) > 300 or is_question(said) or len(sentence_spans(said)) != 1:
        return None
    body = _PREFACE.sub("", said.strip())
    for pattern, confidence in _HEDGES:
        match = pattern.search(body)
        if match is None:
            continue
        judged = body[match.end() :] if match.start() == 0 else body[: match.start()]
        if _OWN.match(judged) or not _JUDGING.search(judged):
            return None
        return confidence
    return None


# --- the agent's own doing --------------------------------------------------------------------------------------

_DID = (
    r"(?:ran|wrote|found|built|made|sent|read|fixed|did|set|put|got|took|gave|told|saw|went|began|chose|kept|left|met|"
    r"rewrote|[a-z]{2,}ed)"
)
_OWN_ACTION = re.compile(
    rf"\bI(?:'ve| have)?(?: (?:just|also|then|now|already|successfully|first|finally|have|had))* {_DID}\b"
    r"|\bI(?:'ll| will|'m going to| am going to|'m (?:now )?\w+ing| am (?:now )?\w+ing)\b"
    r"|\b(?:let me|I need to|I was able to|I couldn't|I could not|I failed to|I tried)\b"
    r"|我(?:已经|已|刚|刚刚|将|会|正在)\w|(?:しました|いたしました|しています)[。.]?",
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


# --- causes -----------------------------------------------------------------------------------------------------

_BECAUSE_OF_THAT = re.compile(
    r"^\W*(?:therefore|thus|hence|consequently|accordingly|as a (?:result|consequence)|for (?:this|that) reason|"
    r"that(?:'s| is| was) why|this is why|which is why|because of (?:this|that|it)|due to (?:this|that)|"
    r"por eso|por lo tanto|por tanto|así que|deshalb|deswegen|daher|darum|aus diesem grund|"
    r"c'est pourquoi|par conséquent|thanks to that|"
    r"因此|所以|于是|因而|結果として|だから|そのため|したがって|그래서|따라서)",
    re.IGNORECASE,
)


def follows_from_before(said: str) -> bool:
    """Whether a saying opens by naming what came before it as its cause."""
    return _BECAUSE_OF_THAT.match(said) is not None


_ONESELF = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|me|my|mine|myself|we|our|us|ich|mein\w*|wir|unser\w*|yo|mi|mis|je|mon|mes|nous|notre)\b"
    r"|我|咱|私|僕|俺|나는|저는|내가|제가",
    re.IGNORECASE,
)


def speaks_of_oneself(text: str) -> bool:
    """Whether the words hold a first person, who must be somebody."""
    return _ONESELF.search(text) is not None

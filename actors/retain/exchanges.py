"""Turns that only say something together: a question with its answer, a proposal with what came of it.

An exchange is found, never built: it is a run of neighbouring turns, from the one that asks or proposes to the one that
answers or settles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recalld.actors.retain import languages
from recalld.actors.retain.sentences import sentence_spans, weight
from recalld.actors.retain.stance import is_question
from recalld.actors.retain.turns import Turn

LONGEST = 6
"""Turns an exchange may take."""
HEAVIEST = 900
"""What its words may weigh together (see `sentences.weight`)."""
_LONG_TURN = 320
_SHORT_ANSWER = 28

_PROPOSES = re.compile(
    r"\b(?:should be|we need|could you|can you|would you|will you|i think we)\b|"
    r"\b(?:i move that|i(?:'d| would) like to propose|what do you (?:say|think) (?:to|about))\b|^\W*\w+en wir\b[^.!]*\?"
    r"|(?:放在|定在|改到|改成|约在|安排在|选|放)[^。？?]{0,12}[？?]|"
    r"\b(?:shall (?:we|i)|should (?:we|i)|can we|could we|may we|how about|what about|why don't we|why not"
    r"|what if we|let's|let us|"
    r"i(?:'d| would) (?:put|go|use|take|suggest|propose|say|vote|pick|choose|like us)|i (?:suggest|propose|recommend"
    r"|vote)|"
    r"my (?:suggestion|proposal|idea)|the (?:proposal|suggestion|idea|plan|motion) is|we (?:could|should|might)"
    r"|do (?:you"
    r"|we) want to|would you (?:like|mind|prefer)|"
    r"want to|i want(?:ed)? to|i need to|i'd like to|i would like to|are you ok(?:ay)? with|is it ok(?:ay)? if"
    r"|proposed|proposal:)\b"
    r"|要不|不如|是否|能不能|可以.{0,12}[吗嗎]|要不要|建议|提议|我想把|改到.{0,12}[？?]|怎么样[？?]"
    r"|ませんか|ましょうか|どうですか|はどう|にしない|提案|したいです"
    r"|\b(?:sollen wir|wollen wir|können wir|wie wäre|ich schlage vor|was hältst|vamos a|qué tal si|podemos|propongo"
    r"|y si|cenamos|quedamos)\b|^¿\w+(?:amos|emos|imos)\b",
    re.IGNORECASE,
)
_SETTLES = re.compile(
    r"\b(?:count me in|i['’]?m (?:in|down|game|on board)|(?:suits?|works for) (?:me|us|everyone|everybody|all of us)"
    r"|i second (?:that|it)|no objections?|let['’]?s do (?:it|that)|i can live with that|good idea|me too"
    r"|cuenta conmigo|me apunto|bin dabei|so machen|trato hecho)\b|^\W*(?:much|even|far|way) better\b|"
    r"\bit is[.!]?$|\b(?:is|are|sounds?|looks?|would be|suits?) (?:fine|good|great|perfect|better|best|ok(?:ay)?"
    r"|me)\b|^\W*love (?:that|it)\b|\bthen yes\b|"
    r"^\W*(?:take|book|use|do|pick|choose|keep|go with|make it|order|get) (?:the|it|that|both)\b|^那(?!么|个|天|边|里)"
    r"|(?<=[\u4e00-\u9fff])行[。！!]?$|^\W*(?:fine by|works for|suits) me\b|"
    r"^\W*(?:seconded|carried|motion carried|same|done deal|so machen wir)\b|可以[。！!]?$|"
    r"^\W*(?:(?:ok(?:ay)?|alright|all right|right|good|great|perfect|fine|deal|agreed|done|sure|yes|yep|yeah|sold"
    r"|settled|sounds good|works for me|"
    r"that works|makes sense|fair enough|excellent|wonderful|lovely|so be it|very well)\b"
    r"|then\b|so (?:it's|we|it is|let's)\b|in that case|we(?:'ll| will) |i(?:'ll| will) |let's )"
    r"|\b(?:agreed|then let's|it is, then|it is then|instead|we decided|decided|decision|we(?:'ll| will) (?:go|take"
    r"|use|do)|we go with|going with|"
    r"settled on|then we)\b|\bworks?(?: for me)?[.!]?$|\w then[.!?]?$"
    r"|^(?:可以|好的?|行|没问题|同意|就这么|那就|成交|定了)|那就|就这样|决定"
    r"|賛成|了解|にしましょう|そうしましょう|決まり|いいですね|^じゃあ|^では"
    r"|^\W*(?:vale|perfecto|de acuerdo|hecho|pues|entonces|bien|genial|trato|gut|einverstanden|abgemacht|dann|passt"
    r"|perfekt|ok|d'accord|alors|parfait)\b",
    re.IGNORECASE,
)
_OBJECTS = re.compile(
    r"\b(?:no|not|n't|can't|need|needs|want|wants|wanted|prefer|rather|but|only if|unless|too|because|nicht|kein"
    r"|braucht|no hay|prefiero|necesito)\b|n['’]t\b"
    r"|不|没|要|想|ので|から|ない|ません|いい",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"^\W*(?:(?:and|so|but|ok|well|hey|hi)\W+)*(?:why|how come|what made|what for|how)\b|为什么|怎么|なぜ|どうして"
    r"|\b(?:por qué|warum|wieso|pourquoi)\b",
    re.I,
)
_ASKS_WH = re.compile(
    r"\b(?:what|which|who|whose|where|when|how (?:old|many|much|long|far|often|big|tall))\b"
    r"|什么|哪|谁|多少|几|どこ|何|いつ|誰|いくら|\b(?:qué|cuál|quién|dónde|cuándo|cuánto|wer|was|wo|wann|welche|wie)\b",
    re.IGNORECASE,
)
_HAS_SUBJECT_AND_VERB = re.compile(
    r"^\W*(?:(?:well|oh|so|um|ah|hm+|yeah)\W+)*(?:i|we|he|she|they|you|it|there|that|this|my|our|the|an?|his|her"
    r"|their|[A-Z][\w'-]+(?: [A-Z][\w'-]+)*)(?:'(?:m|s|re|ve|ll|d))?\b[^,;:]{0,40}?"
    r"(?:\b(?:am|is|are|was|were|has|have|had|do|does|did|will|would|can|could|should|must|may|might)\b|'(?:m|s|re"
    r"|ve|ll|d)\b|\b\w+(?:ed|s)\b|"
    r"\b(?:went|got|took|made|saw|met|gave|came|ran|bought|told|said|felt|found|lost|won|left|think|know|like|love"
    r"|use|live|work|want|need)\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4,}|[\u4e00-\u9fff]{2}")
_DOES_NOT_KNOW = re.compile(
    r"^\W*(?:i (?:don't|do not) know|no idea|not sure|i can't say|i cannot say|dunno|no lo sé|ni idea|keine ahnung"
    r"|weiß nicht|不知道|分かりません|知りません)",
    re.IGNORECASE,
)


def exchanges(turns: Sequence[Turn]) -> list[tuple[int, int]]:
    """Ranges (first, last) of turns that are one exchange each, in order and apart from each other."""
    found: list[tuple[int, int]] = []
    first = 0
    while first < len(turns) - 1:
        last = _settled(turns, first) or _answered(turns, first)
        if last:
            found.append((first, last))
            first = last
        first += 1
    return found


def proposes(text: str) -> bool:
    """Whether a turn puts something up for decision."""
    return _PROPOSES.search(text) is not None


def settles(text: str) -> bool:
    """Whether a turn agrees or decides."""
    return _SETTLES.search(text) is not None


def _settled(turns: Sequence[Turn], first: int) -> int | None:
    """The last turn of a proposal's exchange: the one that settles it, with a bare agreement behind it."""
    opening = turns[first]
    asks = is_question(opening.text)
    if not (asks or proposes(opening.text)) or weight(opening.text) > _LONG_TURN:
        return None
    total = weight(opening.text)
    settled: int | None = None
    objected = False
    for at in range(first + 1, min(len(turns), first + LONGEST)):
        turn = turns[at]
        size = weight(turn.text)
        total += size
        if size > _LONG_TURN or total > HEAVIEST:
            break
        if turn.speaker == turns[at - 1].speaker:
            break
        accepts = at > first + 1 and _is_fragment(turns[at - 1].text) and _repeats(turn.text, turns[at - 1].text)
        if not is_question(turn.text) and (settles(turn.text) or accepts):
            settled = at
        elif settled is not None and not _is_fragment(turn.text):
            break
        objected = objected or _OBJECTS.search(turn.text) is not None
    if settled is None or (settled == first + 1 and not asks):
        return None
    if settled == first + 1 and not proposes(opening.text):
        return None
    return settled


def _is_fragment(text: str) -> bool:
    """Whether a turn is a few words that only say something behind the turn before ("The sauna?", "Sundays?")."""
    return weight(text) <= _SHORT_ANSWER and (
        text.rstrip().endswith(("?", "？")) or _HAS_SUBJECT_AND_VERB.match(text) is None
    )


def _repeats(text: str, before: str) -> bool:
    words = {word.casefold() for word in _WORD.findall(before)}
    return weight(text) <= _LONG_TURN // 3 and any(word.casefold() in words for word in _WORD.findall(text))


def _answered(turns: Sequence[Turn], first: int) -> int | None:
    """The turn that answers a question, where one means nothing without the other."""
    question, answer = turns[first], turns[first + 1]
    if question.speaker == answer.speaker or is_question(answer.text) or _DOES_NOT_KNOW.match(answer.text):
        return None
    asked = question.text[slice(*sentence_spans(question.text)[-1])] if question.text.strip() else ""
    if not (is_question(question.text) or languages.is_question(asked)):
        return None
    if weight(question.text) > _LONG_TURN or weight(question.text) + weight(answer.text) > HEAVIEST:
        return None
    opening = answer.text[slice(*sentence_spans(answer.text)[0])] if answer.text.strip() else ""
    if weight(answer.text) <= _SHORT_ANSWER:
        return first + 1
    if _WHY.search(asked):
        return first + 1
    fragment = _HAS_SUBJECT_AND_VERB.match(opening) is None and opening.isascii()
    return first + 1 if fragment and _ASKS_WH.search(asked) and weight(answer.text) <= _LONG_TURN else None

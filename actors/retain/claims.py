"""How a turn or a prose text falls into units: one claim a unit, with the sentences that elaborate on it.

Sentences stay together unless something says that they are about different things: a word that changes the subject,
another attribute, another subject with another matter, a new line of a list. A unit is a run of verbatim sentences;
only words that merely keep the talk going are left out.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from recalld.actors.retain import cleaning
from recalld.actors.retain.attributes import NOTHING, Statement, clauses, folded_value, read_statement
from recalld.actors.retain.lexicon import COMMON_WORDS
from recalld.actors.retain.polarity import denies
from recalld.actors.retain.sentences import SHORT, passages, sentence_spans, weight
from recalld.actors.retain.stance import is_question, opens_opinion

_LEAST = 14
"""A sentence under this weight says too little to stand alone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A unit to be with what its sentences state, or words to leave out with a `reason`."""

    text: str
    statements: tuple[Statement, ...] = ()
    reason: str | None = None
    corrects: bool = False


_SHIFTS = re.compile(
    r"^\W*(?:(?:oh|ah|and|but|so)[,.]?\s+)*(?:by the way|btw|on (?:another|a different|an unrelated) (?:note|topic"
    r"|subject)|"
    r"separately|unrelated(?:ly)?\b|another thing|one more thing|changing (?:the )?(?:topic|subject)|in other news|"
    r"p\.?s\.?[ :]|also\b|apart from that|aside from that|besides that|meanwhile,|"
    r"por cierto|además\b|aparte de eso|übrigens|außerdem|nebenbei|au fait|par ailleurs|"
    r"顺便|順便|另外|此外|还有一件事|话说|ところで|ちなみに|あと、|それと、|그런데|참고로)",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"^\W*(?:(?:it|that|this|these|those|they|them|he|she|his|her|hers|their|its|there|then|so|because|since then"
    r"|and|but|or|"
    r"which|such|both|neither|either|same|therefore|thus|hence|however|still|yet|instead|otherwise|afterwards?|later|"
    r"after that|before that|until then|as a result|for (?:example|instance|that reason)|e\.g\.|i\.e\.|in (?:fact"
    r"|that case|"
    r"short|other words)|namely|especially|plus|even|only|just|not|no|yes|yeah|yep|well|actually|honestly|of course|"
    r"unfortunately|luckily|hopefully|at least|at first|in the end|finally|next,|first|second|third|one of|all of|now|"
    r"most of|some of|none of|each of|everyone|everything|nothing|what a|how \w+ it|"
    r"it['’]s|that['’]s|this['’]s|they['’]re|he['’]s|she['’]s|there['’]s|they['’]ve|they['’]ll|he['’]ll|she['’]ll"
    r"|it['’]ll|that['’]ll|"
    r"esto|eso|ella|él|ellos|pero|porque|así que|por eso|también|luego|entonces|"
    r"dies\w*|er|sie|es|aber|denn|weil|deshalb|deswegen|daher|dann|danach|dabei|dafür|damit|"
    r"elle|ils|elles|mais|parce|donc|alors|ensuite)(?![\w])"
    r"|[这這那它他她该該其]|因此|因为|因為|所以|于是|但|不过|不過|而且|并且|然后|然後|之后|其中|否则|同时|同時|尤其|例如|比如|也|"
    r"その|それ|これ|この|あの|そこ|だから|しかし|でも|また|そして|なので|ただ|"
    r"그|이것|하지만|그래서|그리고)",
    re.IGNORECASE,
)
_AND_NEW = re.compile(r"^\W*(?:and|also|plus)[,:]?\s+(?:i mean,?\s+)?(?=(?:the|my|our|i|we|[A-Z])\b)", re.IGNORECASE)
_POINTS_BACK = re.compile(r"\b(?:it|its|that|this|those|these|him|her|hers|them|their|theirs)\b", re.IGNORECASE)
_POINTS_OUT = re.compile(r"\b(?:it|that|this|those|these|him|them|hers|theirs)\b", re.IGNORECASE)
"""Of those, the ones that cannot mean the subject of their own sentence ("the neighbours sell their house")."""
_NEW_SUBJECT = re.compile(
    r"^\W*(?:(?:so|well|um|uh)[, ]+)*(?:the|a|an|my|our|nobody|no one|i|we|mr|mrs|ms|dr|prof|el|la|los|las|mi|mis"
    r"|nuestr[oa]s?|un"
    r"|una|der|die|das|ein|eine|mein\w*|unser\w*|le|les|mon|ma|mes)\b",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"^\W*(?:yesterday|today|tomorrow|tonight|this (?:morning|afternoon|evening|week|weekend|month|year)"
    r"|last (?:night|week|weekend|month|year|\w+day)|"
    r"next (?:week|month|year|\w+day)|on (?:\w+day|\d|the \d)|in (?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december|\d{4})|"
    r"\w+ (?:days?|weeks?|months?|years?) ago|ayer|hoy|mañana|la semana (?:pasada|que viene)|gestern|heute|morgen"
    r"|letzte[ns]? \w+|nächste[ns]? \w+)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^\W*(?:correction\b|no[,:—–-]+ |nope, |sorry, (?:i meant|that's wrong|my mistake|it's)|i meant\b|my (?:mistake"
    r"|bad)|scratch that|i was wrong|"
    r"wait,? (?:no|actually)|actually,? (?:it|that|no|the|i'm not|i am not|he|she|they|we|my)\b|i stand corrected"
    r"|let me correct|to correct|"
    r"更正|纠正|不对|搞错了|说错了|訂正|間違え|corrección|me equivoqué|korrektur|berichtigung|erratum)"
    r"|\b(?:no, (?:my|it|that|the|i)\b.{0,60}\b(?:wrong|mistake|fine|actually)|i was wrong about"
    r"|not .{3,40} but (?:rather|actually))",
    re.IGNORECASE,
)
_HEAD_NAME = re.compile(r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?")
_THERE_IS = re.compile(r"^\W*there(?:['’]s| is| are| was| were) (?:an?|no|some|two|three|\d+)\b", re.IGNORECASE)
_OF_ONESELF = re.compile(
    r"^\W*(?:(?:finally|never|still|already|just|recently|every \w+|sometimes|usually|hopefully|also|most \w+)[, ]+)*"
    r"(?:(?:i|we)(?:['’](?:m|ve|d|ll|re))?\b|(?-i:Got|Sold|Paid|Bought|Went|Been|Had|Made|Took|Lost|Found|Met|Saw"
    r"|Started"
    r"|Finished|Quit|Thinking|Planning|Trying|Looking|Feeling|Working|Hoping|Can['’]t|Cannot|Couldn['’]t|Won['’]t"
    r"|Didn['’]t"
    r"|Don['’]t|Haven['’]t|Need|Needed|Want|Wanted|Hate|Love|Might|Should|Must)\b|(?-i:[A-ZÁÉÍ][a-záéíóúñ]+(?:amos"
    r"|emos|imos))\b"
    r"|(?:odio|vivo|tengo|quiero|trabajo|estoy|soy|voy|compré|vendí|perdí|empecé|dejé|prefiero)\b)",
    re.IGNORECASE,
)
"""Said of the speaker, with the pronoun or without it ("Finally sold the boat")."""
_OF_YOU = re.compile(r"\b(?:you|your|yours|here)\b", re.IGNORECASE)
_NEW_HEAD = re.compile(
    r"^\W*(?:(?:(?:two|three|four|five|six|both|half|several|a few|many) (?:of )?|someone|somebody"
    r"|every (?:\w+ ){1,2}(?:i|we)\b"
    r"|mum|mom|dad|daddy|grandma|grandpa|granny|gran|nana|uncle|aunt|auntie|cousin|tante|onkel|oma|opa)\b"
    r"|(?-i:[A-Z]\w+['’]s) (?!(?:a|an|the|not|so|been|going|just|really|very)\b)\w+)",
    re.IGNORECASE,
)
"""A head of its own: so many of something, a relative, what belongs to somebody named."""
_TELLS = re.compile(
    r"^[^,;]{2,60}?\b(?:is|are|was|were|has|have|had|will|can|can['’]t|won['’]t|isn['’]t|wasn['’]t|doesn['’]t"
    r"|didn['’]t|does|did"
    r"|need|want|cost|[a-z]{3,}(?<![sui])s|[a-z]{3,}ed|fell|rose|went|came|got|broke|died|grew|lost|won|ran|sold|left"
    r"|began"
    r"|stood|froze|burst|sank|fed|gave|took|made|quit|bought|moved|hit|cut|put|ist|sind|hat|haben|wird|wurde"
    r"|[a-zäöü]{3,}t"
    r"|está|están|es|son|ha|han|tiene|[a-zñ]{2,}ó)\b"
)
"""A sentence with a subject and a verb of its own."""
_BARE_NOUN = re.compile(
    r"[A-Z][a-z]+(?<!ing) (?:[a-z]+ )?(?:is|are|was|were|has|have|had|costs?|[a-z]{3,}(?<![sui])s|[a-z]{3,}ed"
    r"|fell|rose|went|came|got|broke|died|grew|lost|won|ran|sold|left|began|stood|froze|burst|sank)\b"
)
_OWN_DATE = re.compile(
    r"\b(?:19|20)\d\d\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|"
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december) \d{1,2}\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4,}|\d{2,}")
_LIST_LINE = re.compile(
    r"^[ \t]*(?:[-*+•·–]|\d{1,2}[.)、]|[（(]\d{1,2}[）)]|[一二三四五六七八九十]{1,2}、)[ \t]+(?P<box>\[[ xX]?\][ \t]*)?"
    r"|^[ \t]*[一二三四五六七八九十]{1,2}、(?P<b2>)",
)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<h>[^\n]+)$|^(?P<l>[^\n.。!?！？]{1,80})[:：]\s*$")
_TITLE_LINE = re.compile(r"^[^\n.!?。！？,，;；]{3,60}$")
_STEPS = (
    re.compile(r"\b(?:propos(?:ed|al)|suggest(?:ed|ion)|offered|option|idea)\b|提议|建议|提案", re.IGNORECASE),
    re.compile(
        r"\b(?:decided|decision|agreed|settled|chose|went with|outcome|result|in the end)\b|决定|最后|決定|結論",
        re.IGNORECASE,
    ),
)
_EMPTY_ITEM = re.compile(
    r"^\W*(?:welcome|introductions?|intro|next steps|action items|follow[- ]ups?|updates|round ?table|minutes"
    r"|summary|overview|apologies|roll call|"
    r"approval of (?:the )?minutes|(?:date of )?next meeting|participants|attendees|to[- ]?dos?|any other business"
    r"|aob|goodbye|closing|q ?& ?a|questions|break|lunch|agenda"
    r"|notes|wrap[- ]?up|"
    r"tbd|tba|n/?a|none|misc(?:ellaneous)?|开场|结束|休息|其他|その他|挨拶)\W*$",
    re.IGNORECASE,
)


def pieces(text: str, people: Set[str] = frozenset(), *, talk: bool) -> list[Piece]:
    """The units of a turn (`talk`) or of prose, in order, with what is left out of it. `people`: folded names in it."""
    found: list[Piece] = []
    for block, of_list in _blocks(text):
        if of_list:
            found += _of_list(block, people)
            continue
        close = talk or weight(block) <= SHORT
        for passage in passages(block):
            found += _of_passage(passage, people, close=close)
    return found


# --- lists ------------------------------------------------------------------------------------------------------


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Runs of list lines, each with the heading right above it, and the text between them."""
    lines = text.split("\n")
    if sum(1 for line in lines if _LIST_LINE.match(line)) < 1:
        return [(text, False)]
    blocks: list[tuple[list[str], bool]] = []
    for line in lines:
        item = _LIST_LINE.match(line) is not None or (
            bool(blocks) and blocks[-1][1] and line[:2] in ("  ", "\t") and bool(line.strip())
        )
        if not line.strip() and blocks:
            blocks[-1][0].append(line)
            continue
        if blocks and blocks[-1][1] == item:
            blocks[-1][0].append(line)
            continue
        if item and blocks and not blocks[-1][1]:
            above = blocks[-1][0]
            while above and not above[-1].strip():
                above.pop()
            heading = [above.pop()] if above and (_HEADING.match(above[-1]) or _TITLE_LINE.match(above[-1])) else []
            if not any(part.strip() for part in above):
                blocks.pop()
            blocks.append(([*heading, line], True))
            continue
        blocks.append(([line], item))
    return [("\n".join(part).strip("\n"), of_list) for part, of_list in blocks if any(map(str.strip, part))]


def _of_list(block: str, people: Set[str]) -> list[Piece]:
    heading = ""
    items: list[str] = []
    for line in block.split("\n"):
        if not line.strip():
            continue
        mark = _LIST_LINE.match(line)
        if mark and not line.startswith(("  ", "\t")):
            items.append(line[mark.end() :].rstrip())
        elif items:
            items[-1] += "\n" + line.rstrip()
        else:
            match = _HEADING.match(line)
            heading = (match["h"] or match["l"] or "").strip() if match else line.strip()
    kept = [item for item in items if not cleaning.is_empty(item) and not _EMPTY_ITEM.match(item)]
    dropped = [Piece(item, reason="empty") for item in items if item not in kept]
    if len(kept) > 1 and any(_STEPS[0].search(one) for one in kept) and any(_STEPS[1].search(one) for one in kept):
        whole = "\n".join(([heading] if heading else []) + kept)
        return [Piece(whole, tuple(map(read_statement, kept))), *dropped]
    found: list[Piece] = []
    for item in kept:
        if weight(item) > SHORT:
            for passage in passages(item):
                found += _of_passage(passage, people, close=False)
        else:
            found += _of_passage(item, people, close=True)
    if heading and found and not _EMPTY_ITEM.match(heading):
        found = [_under(heading, one) for one in found]
    return [*found, *dropped]


def _under(heading: str, piece: Piece) -> Piece:
    """An item that says too little alone is kept behind its heading."""
    if piece.reason is not None or (weight(piece.text) >= 24 and not _LEANS.match(piece.text)):
        return piece
    glue = "" if heading.endswith((":", "：")) else "：" if heading[-1:] > "\u2e7f" else ":"
    space = "" if heading[-1:] > "\u2e7f" else " "
    return Piece(f"{heading}{glue}{space}{piece.text}", piece.statements, None, piece.corrects)


# --- sentences --------------------------------------------------------------------------------------------------


def _of_passage(passage: str, people: Set[str], *, close: bool) -> list[Piece]:
    """`close`: the sentences are few, so that a new subject is a new claim; a story told at length stays a passage."""
    spans = [span for span in sentence_spans(passage) if not cleaning.is_empty(passage[slice(*span)])]
    if not spans:
        return []
    dropped: list[Piece] = []
    runs: list[_Run] = []
    adjacent = False
    together = _settling(passage, spans)
    for at, (start, end) in enumerate(spans):
        sentence = passage[start:end]
        if len(spans) > 1 and cleaning.is_phatic(sentence):
            dropped.append(Piece(sentence, reason="filler"))
            adjacent = False
            continue
        statement = read_statement(sentence)
        if runs and _CORRECTS.search(sentence):
            taken = runs[-1].corrected_by(passage, (start, end), statement)
            if taken is not None:
                dropped += taken
                adjacent = True
                continue
        if runs and (carried := _still_about(sentence, runs[-1].statements[-1])) is not None:
            statement = carried
        joins = bool(runs) and at in together
        if not runs or (not joins and _begins_new(passage, runs[-1], people, sentence, statement, close=close)):
            runs.append(_Run())
        runs[-1].add((start, end), statement, content(sentence), adjacent=adjacent)
        adjacent = True
    found: list[Piece] = []
    for run in runs:
        found += run.pieces(passage)
    return [*found, *dropped]


def _settling(passage: str, spans: list[tuple[int, int]]) -> range:
    """Indexes of the sentences behind a proposal, up to what was decided: they are one exchange."""
    told = [passage[slice(*span)] for span in spans]
    first = next((at for at, one in enumerate(told) if _STEPS[0].search(one)), None)
    last = next((at for at in range(len(told) - 1, -1, -1) if _STEPS[1].search(told[at])), None)
    if first is None or last is None or last <= first or last - first > 4:
        return range(0)
    return range(first + 1, last + 1)


_NOW_IT_IS = re.compile(
    r"^\W*(?:(?:but|and|well|actually|no)[, ]+)*(?:(?:now|nowadays|these days|today|currently|lately),? (?:it|he|she"
    r"|they)(?:['’]s|['’]re| is| are)"
    r"|(?:it|he|she|they)(?:['’]s|['’]re| is| are) (?:now|currently))(?: now)? (?P<v>[^,;.!?]+)",
    re.IGNORECASE,
)


def _still_about(sentence: str, before: Statement) -> Statement | None:
    """`Now it's B` behind `my favourite X used to be A`: the same attribute, another value."""
    match = _NOW_IT_IS.match(sentence) if before.attribute else None
    return None if match is None else before._replace(value=folded_value(match["v"]), denied=False)


class _Run:
    """Sentences that make one unit."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.statements: list[Statement] = []
        self.words: set[str] = set()
        self.corrects = False
        self.rewritten = ""

    def add(self, span: tuple[int, int], statement: Statement, words: set[str], *, adjacent: bool) -> None:
        if self.spans and adjacent:
            self.spans[-1] = (self.spans[-1][0], span[1])
        else:
            self.spans.append(span)
        self.statements.append(statement)
        self.words |= words

    def corrected_by(self, passage: str, span: tuple[int, int], statement: Statement) -> list[Piece] | None:
        """Take the run's words back for those of a correction of the same thing; None when it corrects another."""
        if len(self.statements) > 1:
            return None
        before = self.statements[-1]
        old = " ".join(passage[a:b] for a, b in self.spans)
        sentence = passage[slice(*span)]
        same = bool(statement.attribute) and (statement.subject.casefold(), statement.attribute) == (
            before.subject.casefold(),
            before.attribute,
        )
        pronoun = re.match(
            r"(?P<head>\W*(?:correction|no|sorry|actually|wait)[,:.]?\s+)(?P<it>it|he|she|they)\b(?!['’])",
            sentence,
            re.I,
        )
        thing = _THING.match(old)
        named = before.subject if before.person else thing["s"] if thing else ""
        if not same and not (pronoun is not None and named):
            return None
        self.spans, self.statements, self.corrects = [span], [statement], True
        if pronoun is not None and named:
            subject = named if named in ("I", "we") else _lowered(named)
            self.rewritten = sentence[: pronoun.start("it")] + subject + sentence[pronoun.end("it") :]
        self.words = content(sentence)
        return [Piece(old, reason="taken back")]

    def pieces(self, passage: str) -> list[Piece]:
        text = self.rewritten or " ".join(passage[a:b] for a, b in self.spans)
        corrects = self.corrects or _CORRECTS.search(text) is not None
        if len(self.statements) == 1:
            parts = clauses(text)
            if len(parts) > 1:
                return [Piece(part, (statement,), None, corrects) for part, statement in parts]
        return [Piece(text, tuple(self.statements), None, corrects)]


_THING = re.compile(
    r"(?P<s>(?:The|My|Our|This|Your|[A-Z]\w+'s) [\w-]+(?: [\w-]+){0,2}?) (?=(?:is|are|was|were|has|had|will|can"
    r"|[a-z]+s|[a-z]+ed)\b)"
)


def _lowered(subject: str) -> str:
    return (
        subject[0].lower() + subject[1:] if subject.split()[0] in ("The", "My", "Our", "A", "An", "This") else subject
    )


def content(sentence: str) -> set[str]:
    """The telling words of a sentence, cut to their first letters so that forms of one word meet."""
    return {word[:5] for word in map(str.casefold, _WORD.findall(sentence)) if word not in COMMON_WORDS}


def _begins_new(passage: str, run: _Run, people: Set[str], sentence: str, statement: Statement, *, close: bool) -> bool:
    if _SHIFTS.match(sentence):
        return True
    asks = is_question(sentence)
    if asks or (weight(sentence) < _LEAST and sentence.split()[0].casefold() not in people):
        return False
    last = passage[slice(*run.spans[-1])] if run.spans else ""
    if len(run.statements) == 1 and _TITLE_LINE.match(last) and not _LIST_LINE.match(last):
        return False  # a title says nothing without what stands under it
    if sentence[0] > "\u2e7f":
        return close and not _LEANS.match(sentence) and not is_question(last)
    fresh = None if sentence[0].islower() else _AND_NEW.match(sentence)
    own_subject = statement.person != "i" and _NEW_SUBJECT.match(sentence) is not None
    points = (_POINTS_OUT if own_subject else _POINTS_BACK).search(sentence)
    if (_LEANS.match(sentence) and not fresh and not _THERE_IS.match(sentence)) or points:
        return False
    own = content(sentence)
    if close and _OWN_DATE.search(sentence) and _OWN_DATE.search(last):
        return True
    if own & run.words:
        return False
    if statement.attribute and any(one.attribute for one in run.statements):
        return all((one.subject, one.attribute) != (statement.subject, statement.attribute) for one in run.statements)
    told = _HEAD_NAME.match(last)
    if close and statement.attribute and statement.person == "i" and told and told.group().casefold() in people:
        return True
    if not close or sentence.endswith("!") or last.endswith(("!", "?")):
        return False
    if denies(sentence) != denies(last) and run.statements[-1].person == "i" == statement.person:
        return True
    if fresh or _DATED.match(sentence):
        return True
    opening = sentence[fresh.end() :] if fresh else sentence
    before = run.statements[-1]
    if opens_opinion(opening) is not None:
        return True
    person = statement.person
    if _THERE_IS.match(opening):
        return True
    if person == "i" or _OF_ONESELF.match(opening):
        return before.person != "i" and _OF_ONESELF.match(last) is None and _names_subject(last, before, people)
    if _NEW_SUBJECT.match(opening) or person in people or person.startswith(("my ", "our ")):
        return True
    head = _HEAD_NAME.match(opening)
    if head and (head.group().casefold() in people or head.group().split()[0].casefold() in people):
        return True
    if _OF_YOU.search(sentence):
        return False
    if _NEW_HEAD.match(opening):
        return _TELLS.search(opening) is not None
    if _BARE_NOUN.match(opening) is None:
        return False
    return before.person == "i" or _names_subject(last, before, people) or _is_note(last)


def _is_note(sentence: str) -> bool:
    """Whether a sentence is a note without a verb ("Next service due in August.")."""
    return (
        len(sentence.split()) > 3
        and sentence.endswith(".")
        and not any(form.search(sentence) for form in (_TELLS, _LEANS, _OF_ONESELF, _POINTS_BACK, _OF_YOU))
    )


def _names_subject(sentence: str, statement: Statement, people: Set[str]) -> bool:
    """Whether a sentence is about something it names, not about the speaker or what was meant before."""
    person = statement.person
    if person:
        return person in people or person.startswith(("my ", "our "))
    named = _NEW_SUBJECT.match(sentence) is not None or _BARE_NOUN.match(sentence) is not None
    return named and not _LEANS.match(sentence)


__all__ = ["NOTHING", "Piece", "content", "pieces"]

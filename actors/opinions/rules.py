"""What a piece of evidence says about an opinion, by rules alone: pure, and well under a millisecond a pair.

An opinion is read as a judgement (`Vespa is reliable`: the dimension `reliable`, for) or as a plain proposition.
Evidence about the same thing is read for words of judgement and for outcomes (`crashed`, `on time`), each with its
negation; a proposition is compared word by word, for repetition, denial and antonyms. What is about something else is
neutral, and so is what no rule reads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from recalld.actors.opinions.lexicon import ANTONYMS, DIMENSIONS, GENERAL, HEDGES, MILD, STOP, words
from recalld.actors.retain.polarity import denies
from recalld.actors.retain.stance import is_question
from recalld.storage.beliefs import CONTRADICT, NEUTRAL, REINFORCE, WEAKEN

SAME, SAID, OUTCOME, DENIED, OPPOSITE, OTHER, UNSURE, ANTONYM, COMPARED, ASKED = (
    "said again",
    "same judgement",
    "outcome",
    "denied",
    "opposite judgement",
    "another matter",
    "unsure",
    "antonym",
    "compared the other way",
    "a question",
)
"""Reasons, as they stand in the history and the audit log."""


class Finding(NamedTuple):
    """A verdict and the rule that gave it. `same`: the evidence says the very same as the opinion."""

    verdict: str
    reason: str
    same: bool = False


class _Sign(NamedTuple):
    dimension: str
    sign: int
    outcome: bool
    mild: bool
    at: int


_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CLAUSE = re.compile(
    r"(?<=[.!?;。！？；])\s*|,?\s+(?:but|while|whereas|although|though|however|yet|except)\s+"
    r"|[，,]\s*(?:但是?|不过|而|でも|しかし)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^\W*(?:(?:well|so|and|honestly|frankly|personally|actually|still|yes|no)[, ]+)*"
    r"(?:(?:i (?:(?:really|still|strongly|firmly|now|do|just|also) )*(?:think|believe|reckon|feel"
    r"|find|guess|suppose|suspect"
    r"|would say|am (?:pretty |quite |very )?(?:sure|certain|convinced))|i['’](?:d say|m (?:pretty "
    r"|quite )?(?:sure|certain"
    r"|convinced))|in (?:my|our) (?:humble |honest )?(?:opinion|view)|imo|imho|to my mind"
    r"|if you ask me|it seems(?: to me)?"
    r"|as i see it|my (?:opinion|view|impression) is)(?: that)?\b[,:]?\s*)",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"^\W*i (?:(?:really|still|just) )*(?:don['’]t|do not|no longer|never|can['’]t|cannot) (?:(?:really|even) )*"
    r"(?:think|believe|find|feel|consider)(?: that)?\b\s*|^\W*i doubt(?: that)?\s+"
    r"|^\W*it is (?:not true|false) that\s+",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^[^\W\d_][\w .'’-]{0,40}:\s+")
_NOT = words(
    "not no never without hardly barely rarely seldom neither nor nothing nobody none cannot isn't aren't"
    " wasn't weren't don't doesn't didn't won't can't couldn't hasn't haven't hadn't wouldn't shouldn't"
    " ain't zero free lacks lacked nicht kein keine nie sin nunca"
)
_ONLY = words("only just merely")
_NOT_CJK = re.compile(r"(?:没有|從未|从未|不|没|未|ない|なく|ません)$")
_NOT_CJK_AFTER = re.compile(r"^(?:く|では|じゃ)?(?:ない|ありません|なかった|ません)")
_LONGER = frozenset({"longer", "more", "anymore"})
_AVOIDED = words(
    "avoid avoided avoids prevent prevented prevents survive survived survives stopped reduced fewer"
    " fixed resolved fix solves solved recovered"
)
"""Words behind which a bad outcome is a good one."""
_PRONOUN = re.compile(
    r"^\W*(?:(?:and|so|then|also|because|since|after that)\s+)*(?:it|they|he|she|this|that|these"
    r"|those|its|their|his|her"
    r"|both|everything|nothing|nobody|everyone|the (?:service|system|team|place|product|thing|whole|latter))\b",
    re.IGNORECASE,
)
_COMPARE = re.compile(
    r"(?P<a>[\w.+#-]+)(?:['’]s)? (?:is|are|was|were|runs|looks|tastes|feels|seems|got|became"
    r"|has been|ran|works|performs)"
    r" (?:(?P<n>not|no)\s+)?(?:(?:much|far|way|clearly|a lot|a bit|even|still|\d+% |twice as) ?)*"
    r"(?P<adj>\w+er|better|worse|more \w+|less \w+) than (?:the )?(?P<b>[\w.+#-]+)"
    r"|(?P<w>[\w.+#-]+) (?:(?:easily|clearly|again|narrowly|consistently) )?"
    r"(?P<v>beats?|beat|outperform(?:s|ed)?|defeat(?:s|ed)?|surpass(?:es|ed)?|outsold"
    r"|outpaced) (?:the )?(?P<l>[\w.+#-]+)",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, list[tuple[str, int, bool]]], tuple[tuple[str, ...], ...], dict[str, frozenset[str]]]:
    """Single words, phrases in CJK, and antonyms. Words stand stemmed."""
    words: dict[str, list[tuple[str, int, bool]]] = {}
    for one in DIMENSIONS:
        lists = ((one.good, 1, False), (one.bad, -1, False), (one.went_well, 1, True), (one.went_badly, -1, True))
        for text, sign, outcome in lists:
            for form in text.split():
                key = form.replace("_", " ")
                if outcome and key.isascii():
                    # What happened is inflected; a judgement has its forms listed (`interest` is not `interesting`).
                    key = " ".join(map(stem, key.split()))
                entry = (one.name, sign, outcome)
                held = words.setdefault(key, [])
                if entry not in held:
                    held.append(entry)
    cjk = tuple(sorted((key for key in words if _CJK.search(key)), key=len, reverse=True))
    opposites: dict[str, frozenset[str]] = {}
    for row in ANTONYMS:
        left, right = (frozenset(map(stem, side.split())) for side in row.split("/"))
        for word in left:
            opposites[word] = opposites.get(word, frozenset()) | right
        for word in right:
            opposites[word] = opposites.get(word, frozenset()) | left
    return words, (cjk,), opposites


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its endings, for comparing words of English; short ones stay."""
    from recalld.storage.analysis import _stem

    word = word.casefold().replace("’", "'").removesuffix("'s")
    return _stem("english", word) if word.isascii() and len(word) > 3 else word


def words_of(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


@lru_cache(maxsize=4096)
def bare(text: str) -> tuple[str, bool]:
    """What is held, without who says it and how it is opened; and whether the opening denies it (`I doubt that`)."""
    said = _PREFIX.sub("", text.strip(), count=1)
    doubts = _DOUBTS.match(said)
    if doubts:
        return said[doubts.end() :], True
    return _OPENING.sub("", said, count=1), False


class Reading(NamedTuple):
    """A text as the rules see it."""

    text: str
    signs: tuple[_Sign, ...]
    topics: frozenset[str]
    content: frozenset[str]
    denied: bool
    hedged: bool


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    said, doubted = bare(text)
    words = words_of(said)
    signs = _signs(said, words)
    content = frozenset(stem(w) for w in words if w not in STOP and not _CJK.search(w)) | _grams(said)
    judging = {stem(words[one.at]) for one in signs if 0 <= one.at < len(words)}
    topics = frozenset(w for w in content if w not in judging and w not in HEDGES and w not in MILD and w not in _NOT)
    denied = denies(said) != doubted
    if doubted:
        signs = tuple(one._replace(sign=-one.sign) for one in signs)
    # `May` inside a sentence is a month.
    hedged = any(w in HEDGES and not (w == "may" and " May" in said) for w in words)
    return Reading(said, signs, topics, content, denied, hedged)


def _grams(text: str) -> frozenset[str]:
    """Pairs of neighbouring characters of scripts without spaces."""
    runs = re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}", text)
    return frozenset(run[i : i + 2] for run in runs for i in range(len(run) - 1))


def _signs(said: str, words: list[str]) -> tuple[_Sign, ...]:
    table, (cjk,), _ = _tables()
    stems = [stem(word) for word in words]
    found: list[_Sign] = []
    taken: set[int] = set()
    for length in (4, 3, 2, 1):
        for at in range(len(stems) - length + 1):
            if any(place in taken for place in range(at, at + length)):
                continue
            spelt, ended = " ".join(words[at : at + length]), " ".join(stems[at : at + length])
            entries = list(table.get(spelt, ()))
            if ended != spelt:
                entries += [one for one in table.get(ended, ()) if one[2] and one not in entries]
            if not entries:
                continue
            taken.update(range(at, at + length))
            turned = _negated(words, at)
            before = words[max(0, at - 3) : at]
            mild = any(word in MILD for word in words[max(0, at - 4) : at + length + 2])
            if any(sign < 0 and outcome for _, sign, outcome in entries) and any(word in _AVOIDED for word in before):
                turned = not turned
            for name, sign, outcome in entries:
                found.append(_Sign(name, -sign if turned else sign, outcome, mild, at))
    if _CJK.search(said):
        rest = said
        for phrase in cjk:
            place = rest.find(phrase)
            if place < 0:
                continue
            turned = bool(_NOT_CJK.search(rest[:place])) or bool(_NOT_CJK_AFTER.match(rest[place + len(phrase) :]))
            for name, sign, outcome in table[phrase]:
                found.append(_Sign(name, -sign if turned else sign, outcome, False, -1))
            rest = rest.replace(phrase, "　" * len(phrase))
    return tuple(found)


def _negated(words: list[str], at: int) -> bool:
    """Whether a denial stands before a word, with nothing but small words between."""
    turned = False
    for place in range(at - 1, max(-1, at - 6), -1):
        word = words[place]
        if word in _NOT or (word in _LONGER and place and words[place - 1] == "no"):
            if place + 1 < len(words) and words[place + 1] in _ONLY:
                continue
            turned = not turned
            if word in _LONGER:
                break
        elif word in ("and", "but", "or", "because", "then", "so") and place < at - 1:
            break
    return turned


def judge(opinion: str, evidence: str, shared: Iterable[str] = ()) -> Finding:
    """What `evidence` says about `opinion`. `shared` are names both are known to be about."""
    if _asks(evidence):
        return Finding(NEUTRAL, ASKED)
    held, told = read(opinion), read(evidence)
    names = frozenset(stem(word) for name in shared for word in words_of(name))
    names |= frozenset(gram for name in shared for gram in _grams(name))
    compared = _compared(held.text, told.text)
    if compared is not None:
        return compared._replace(same=compared.verdict == REINFORCE and held.content == told.content)
    same = _same(held, told)
    if same is not None:
        return same
    about = _about(held, told, names)
    if about is None:
        return Finding(NEUTRAL, OTHER)
    return _valued(held, about) if held.signs else _proposed(held, about)


_asks = lru_cache(maxsize=1024)(is_question)


def _same(held: Reading, told: Reading) -> Finding | None:
    """The same words, but for small ones and a denial."""
    if not held.content or not told.content:
        return None
    a = held.content - HEDGES - _NOT
    b = told.content - HEDGES - _NOT
    if a != b or not a:
        return None
    if held.denied == told.denied and _sum(held.signs) == _sum(told.signs):
        return Finding(REINFORCE, SAME, same=True)
    return Finding(CONTRADICT, DENIED)


def _sum(signs: Iterable[_Sign]) -> Counter[tuple[str, int]]:
    return Counter((one.dimension, one.sign) for one in signs)


def _about(held: Reading, told: Reading, names: frozenset[str]) -> Reading | None:
    """The clauses of the evidence that are about what the opinion is about; None when none is."""
    topics = held.topics | names
    subject = _subject(held) | names
    wanted = subject & told.content if subject & told.content else topics & told.content
    if not wanted:
        return None
    if len(topics) > 4 and not held.signs and len(wanted) < 2:
        return None
    clauses = [clause for clause in _CLAUSE.split(told.text) if clause and clause.strip()]
    if len(clauses) < 2:
        return told
    kept: list[str] = []
    on = False
    for clause in clauses:
        content = read(clause).content
        on = bool(content & wanted) or (on and bool(_PRONOUN.match(clause))) or (on and len(content) < 3)
        if on:
            kept.append(clause)
    if not kept:
        return told
    joined = read(". ".join(kept))
    return joined._replace(hedged=told.hedged)


_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|will|would|can|could|should|must|does|do|did"
    r"|isn['’]t|aren['’]t|won['’]t"
    r"|looks?|seems?|tastes?|feels?|sounds?|makes?|makes|deserves?|needs?|es|son|ist|sind)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def _subject(held: Reading) -> frozenset[str]:
    """Content words before the first verb."""
    match = _VERB.search(held.text)
    head = held.text[: match.start()] if match and match.start() else held.text
    return frozenset(stem(word) for word in words_of(head)) & held.topics or held.topics


def _valued(held: Reading, told: Reading) -> Finding:
    """A judgement against words of judgement and outcomes."""
    wanted = {one.dimension: one.sign for one in held.signs}
    for one in held.signs:  # a specific word counts for more than a general one
        wanted[one.dimension] = one.sign
    own = {name: sign for name, sign in wanted.items() if name != GENERAL} or wanted
    lean = next(iter(own.values()))
    direct: list[tuple[int, _Sign]] = []
    general: list[tuple[int, _Sign]] = []
    for one in told.signs:
        if one.dimension in own:
            direct.append((one.sign * own[one.dimension], one))
        elif one.dimension == GENERAL or set(own) == {GENERAL}:
            general.append((one.sign * lean, one))
    found = direct or general
    if not found:
        return Finding(NEUTRAL, OTHER) if not held.topics or told.signs else _proposed(held, told)
    total = sum(sign for sign, _ in found)
    if not total:
        stated = [sign for sign, one in found if not one.outcome]
        total = sum(stated)
    if not total:
        return Finding(WEAKEN, UNSURE) if any(s < 0 for s, _ in found) and len(found) > 2 else Finding(NEUTRAL, UNSURE)
    agreeing = [one for sign, one in found if (sign > 0) == (total > 0)]
    outcome = all(one.outcome for one in agreeing)
    if total > 0:
        if told.hedged and outcome:
            return Finding(NEUTRAL, UNSURE)
        return Finding(REINFORCE, OUTCOME if outcome else SAID)
    strong = bool(direct) and not told.hedged and not all(one.mild for one in agreeing)
    reason = OUTCOME if outcome else OPPOSITE
    return Finding(CONTRADICT if strong else WEAKEN, reason)


def _proposed(held: Reading, told: Reading) -> Finding:
    """A plain proposition: how many of its words are said, denied or turned round."""
    opposites = _tables()[2]
    a = held.content - HEDGES - _NOT
    b = told.content - HEDGES - _NOT
    if not a:
        return Finding(NEUTRAL, OTHER)
    turned = {word for word in a - b if opposites.get(word, frozenset()) & (b - a)}
    shared = (len(a & b) + len(turned)) / len(a)
    least = 0.6 if len(a) > 2 else 1.0
    if shared < least:
        return Finding(NEUTRAL, OTHER)
    differs = (held.denied != told.denied) != (len(turned) % 2 == 1)
    if not differs:
        if told.hedged:
            return Finding(NEUTRAL, UNSURE)
        return Finding(REINFORCE, SAID)
    if told.hedged:
        return Finding(WEAKEN, UNSURE)
    return Finding(CONTRADICT, ANTONYM if turned else DENIED)


def _compared(held: str, told: str) -> Finding | None:
    """Two comparisons of the same two things."""
    one, other = _comparison(held), _comparison(told)
    if one is None or other is None or {one[0], one[1]} != {other[0], other[1]}:
        return None
    if one[2] != other[2] and GENERAL not in (one[2], other[2]):
        return None
    if one[0] == other[0]:
        return Finding(REINFORCE, SAID)
    return Finding(CONTRADICT, COMPARED)


@lru_cache(maxsize=4096)
def _comparison(text: str) -> tuple[str, str, str] | None:
    """(the better, the worse, in what)."""
    match = _COMPARE.search(text)
    if match is None:
        return None
    if match["v"]:
        return _thing(match["w"]), _thing(match["l"]), GENERAL
    a, b = _thing(match["a"]), _thing(match["b"])
    words = match["adj"].casefold().split()
    sign, name = 1, GENERAL
    key = words[-1]
    if words[0] == "less":
        sign = -1
    entries = _tables()[0].get(key) or _tables()[0].get(_positive(key)) or []
    if not entries:
        return None
    name = entries[0][0]
    sign *= entries[0][1] * (-1 if match["n"] else 1)
    return (a, b, name) if sign > 0 else (b, a, name)


def _thing(word: str) -> str:
    return stem(word.rstrip(".-"))


def _positive(word: str) -> str:
    """`safer` -> `safe`, `noisier` -> `noisy`, `bigger` -> `big`."""
    if word.endswith("ier"):
        return word[:-3] + "y"
    root = word.removesuffix("er")
    for form in (root, root + "e", root[:-1] if len(root) > 2 and root[-1] == root[-2] else root):
        if form in _tables()[0]:
            return form
    return root

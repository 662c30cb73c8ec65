"""What a sentence claims: whose attribute has which value, stated or denied. English; other languages beside it.

The reading is shallow on purpose: a head word (`lives`, `works`, `likes`), what stands before it (subject, then helping
words that deny, weaken or put it in the past) and the value behind it. What does not fit exactly claims nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recalld.actors.retain import attribute_languages, languages
from recalld.actors.retain import attribute_rules as rules
from recalld.actors.retain import attribute_words as w
from recalld.actors.retain.attribute_rules import Rule
from recalld.actors.retain.lexicon import PEOPLES


class Statement(NamedTuple):
    """A sentence as a claim. `subject` is the phrase as written ("" unknown), `person` its folded form where it is
    somebody; `past`: told as something that happened; `unreal`: a condition, a wish or a possibility."""

    subject: str = ""
    person: str = ""
    attribute: str = ""
    value: str = ""
    denied: bool = False
    past: bool = False
    unreal: bool = False


NOTHING = Statement()

_HEADS: dict[str, tuple[tuple[Rule, re.Pattern[str]], ...]] = {}
for _rule in rules.ENGLISH:
    for _head in _rule.heads.split():
        _HEADS[_head] = (*_HEADS.get(_head, ()), (_rule, re.compile(_rule.between, re.IGNORECASE)))
_TOKEN = re.compile(r"[A-Za-z][\w'-]*")


def plain(sentence: str) -> str:
    """The sentence with contractions written out, for reading only."""
    text = w.APOSTROPHE.sub("'", sentence)
    if "'" in text or "nna" in text or "annot" in text or " im " in text or text.startswith(("Im ", "im ")):
        for pattern, full in w.CONTRACTIONS:
            text = pattern.sub(full, text)
    return text


def read_statement(sentence: str) -> Statement:
    """The claim of one sentence; its subject alone where nothing more is sure."""
    if not sentence:
        return NOTHING
    if (other := attribute_languages.read_claim(sentence)) is not None:
        return Statement(other.subject, other.subject.casefold(), other.attribute, other.value, other.denied)
    if sentence[0] > "\u2e7f":
        return NOTHING
    text = plain(sentence).strip(" \t\"'“”*_>-•")
    body = text[_prefix(text) :]
    unreal = w.UNREAL.search(text) is not None
    reported = w.REPORTED.match(body)
    if reported:
        body = body[reported.end() :]
    found = NOTHING if unreal or text.endswith("?") else _attribute(body)
    subject, person = found.subject, found.person
    if not subject:
        opening = w.OPENING.match(body)
        if opening:
            subject, person = _person(opening)
    if reported and (not subject or subject.casefold() in ("he", "she", "they", "i")):
        subject = reported["who"]
        person = subject.casefold()
    past = w.PAST.search(body) is not None
    return found._replace(subject=subject, person=person, past=past, unreal=unreal)


def _prefix(text: str) -> int:
    match = w.PREFACE.match(text)
    return match.end() if match else 0


def _person(match: re.Match[str]) -> tuple[str, str]:
    if match["pronoun"]:
        folded = match["pronoun"].casefold()
        return match["pronoun"], "i" if folded in ("i", "we") else folded
    phrase = match["kin"] or match["name"]
    return phrase, phrase.casefold()


def _attribute(body: str) -> Statement:
    special = _special(body)
    if special is not None:
        return special
    for token in _TOKEN.finditer(body):
        word = token.group().casefold()
        if word in w.BE:
            found = _after_be(body, token.start(), token.end())
        elif word in w.HAVE:
            found = _after_have(body, token.start(), token.end())
        else:
            found = None
        if found is None and word in _HEADS:
            found = _after_head(body, token.start(), token.end(), word)
        if found is not None:
            return found
    return NOTHING


def _special(body: str) -> Statement | None:
    """Forms whose subject is not what stands before the verb: `my favourite X is Y`, `the deadline is Y`."""
    owner = re.match(r"(?P<s>[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[A-Z][\w-]+(?: [A-Z][\w-]+)?'s) ", body)
    if owner:
        subject = _owner(owner["s"])
        rest = body[owner.end() :]
        favourite = rules.FAVOURITE.match(rest)
        if favourite:
            value, denied = _denied_value(favourite["v"])
            denied = denied or " used to be " in favourite.group().casefold()
            return Statement(subject, subject.casefold(), f"favourite:{folded_value(favourite['k'])}", value, denied)
        owned = rules.IS_OWNED.match(rest)
        if owned and not re.match(r"(?:going|not|very|so|a|an|in|at|really)\b", owned["v"], re.I):
            key = owned["k"].casefold().replace("-", "-")
            return Statement(
                subject,
                subject.casefold(),
                rules.OWNED_KEYS.get(key, key.replace(" ", "_")),
                _value(owned["v"], rules.ANY),
            )
    if "avo" in body:
        favourite = rules.IS_FAVOURITE.match(body)
        if favourite:
            subject = _owner(favourite["s"])
            return Statement(
                subject, subject.casefold(), f"favourite:{folded_value(favourite['k'])}", folded_value(favourite["v"])
            )
    thing = rules.IS_THING.match(body)
    if thing and not w.WEAKENS & set(thing.group().casefold().split()):
        value, denied = _denied_value(thing["v"])
        if value:
            name = folded_value(thing["k"] + (thing["of"] or ""))
            return Statement(name, "", "is", value, denied)
    return None


def _owner(word: str) -> str:
    folded = word.casefold()
    return {"my": "I", "our": "we", "his": "he", "her": "she", "their": "they"}.get(folded) or word[:-2]


def _after_be(body: str, start: int, end: int) -> Statement | None:
    rest = body[end:].lstrip()
    state, subject = "", ""
    again = re.match(r"(?:not|no longer|never) (?:any ?more )?", rest)
    late = again is not None
    if again:
        rest = rest[again.end() :]
    key = ""
    role = rules.IS_A.match(rest)
    if role:
        state = role["v"].casefold()
        key = "diet" if state.split()[-1] in rules.DIETS else "role"
        state += (role["rest"] or "").casefold()
    elif (found := rules.IS_STATE.match(rest)) is not None:
        state = found["v"].casefold()
        key = "marital_status" if state in rules.MARITAL else "status"
    elif (found := rules.AGE.match(rest)) is not None:
        state, key = found["v"], "age"
    elif (found := re.match(r"(?:now )?(\w+)(?=[,;.!?]|$| and\b)", rest)) is not None and found[
        1
    ].casefold() in PEOPLES:
        state, key = found[1].casefold(), "nationality"
    if not key:
        return None
    read = _before(body[:start], body[start:end].casefold())
    if read is None:
        return None
    subject, person, denied, past = read
    if past or (key in ("age", "nationality", "diet", "marital_status") and not person):
        return None
    return Statement(subject if person else folded_value(subject), person, key, folded_value(state), denied or late)


def _after_have(body: str, start: int, end: int) -> Statement | None:
    rest = body[end:].lstrip()
    allergy = rules.HAS_ALLERGY.match(rest)
    found = allergy or rules.HAS_A.match(rest)
    if found is None:
        return None
    read = _before(body[:start], "")
    if read is None or not read[1]:
        return None
    subject, person, denied, past = read
    if past or body[start:end].casefold() == "had":
        return None
    value = folded_value(found["v"])
    return Statement(subject, person, f"{'allergic_to' if allergy else 'owns'}:{value}", value, denied)


def _after_head(body: str, start: int, end: int, word: str) -> Statement | None:
    for rule, between in _HEADS[word]:
        rest = body[end:].lstrip(" ")
        joined = between.match(rest)
        if joined is None:
            continue
        read = _before(body[:start], "")
        if read is None:
            return None
        subject, person, denied, past = read
        if past and not rule.past and not denied:
            continue
        if word == "stand":
            if not denied:
                continue
            denied = False
        if (
            rule.key in ("from", "likes:")
            and word in ("from", "into", "fan")
            and not re.search(r"\b(?:am|is|are)\b", body[:start], re.I)
        ):
            continue
        if rule.key == "scheduled":
            if person or word == "moved":
                continue
        elif not person:
            if rule.key not in ("uses:", "owns:", "leads:", "responsible_for:", "role"):
                continue
            subject = folded_value(subject)
        value = "" if rule.value == rules.NONE else _value(rest[joined.end() :], rule.value)
        if not value and rule.value != rules.NONE:
            continue
        if value.split(" ")[0] in w.NO_VALUE:
            continue
        key = rule.key + value if rule.key.endswith(":") else rule.key
        return Statement(subject, person, key, rule.says or value, denied or rule.denies)
    return None


def _before(before: str, own: str) -> tuple[str, str, bool, bool] | None:
    """The subject before a head word, whether it is somebody, whether helping words deny it, and put it in the past.

    None when there is no clear subject, or the words leave it open whether it is so at all.
    """
    words = before.split()
    helps: list[str] = [own] if own else []
    while words and words[-1].strip(",").casefold() in w.HELPS:
        if len(words) == 1 and words[0].casefold() in ("all", "that", "this", "who", "which"):
            break
        helps.append(words.pop().strip(",").casefold())
    if not words:
        return None
    held = set(helps)
    if held & w.WEAKENS or (held & w.AHEAD and "used" not in held):
        return None
    phrase = " ".join(words)
    comma = max(
        phrase.rfind(", "), phrase.rfind(": "), phrase.rfind(" that "), phrase.rfind(" but "), phrase.rfind(" and ")
    )
    if comma >= 0:
        tail = re.split(r"^(?:, |: | that | but | and )", phrase[comma:], maxsplit=1)[-1].strip()
        if " and " in phrase[comma : comma + 5] and not re.search(
            r"\b(?:[a-z]+s|am|is|are|was|[a-z]+ed)\b", phrase[:comma]
        ):
            tail = phrase  # "Ana and Ben"
        phrase = tail
    match = w.SUBJECT.fullmatch(phrase)
    if match is None:
        return None
    denied = bool(held & w.DENIES) or ("no" in held and "longer" in held) or ("gave" in held and "up" in held)
    was = "used" in held and "to" in held
    past = bool(held & w.PAST_HELP) and not denied
    if match["thing"]:
        if match["thing"].casefold() in w.NO_SUBJECT:
            return None
        return phrase, "", denied or was, past
    subject, person = _person(match)
    if person == "it":
        return None
    return subject, person, denied or was, past


def _denied_value(value: str) -> tuple[str, bool]:
    denied = re.match(r"(?:not|no longer|never) (?:any ?more )?", value, re.IGNORECASE)
    return _value(value[denied.end() :] if denied else value, rules.ANY), denied is not None


def _value(rest: str, kind: str) -> str:
    if kind == rules.NAME:
        rest = w.DETERMINER.sub("", rest)
        named = w.NAMED.match(rest)
        if named is None:
            return ""
        return folded_value(named.group())
    if kind == rules.ANY:
        stop = re.search(r"[,;!?\n]|\.(?:\s|$)| (?:and|but|because|instead|now|anymore)\b", rest)
        return folded_value(rest[: stop.start()] if stop else rest)
    while (found := w.DETERMINER.match(rest)) is not None:
        rest = rest[found.end() :]
    stop = w.STOPS.search(rest)
    phrase = rest[: stop.start()] if stop else rest
    words = phrase.split()
    return folded_value(" ".join(words)) if 0 < len(words) <= 5 else ""


def folded_value(value: str) -> str:
    """A value as claims are compared by: small letters, no article, no punctuation around it."""
    folded = " ".join(value.casefold().split()).strip(" .,;:!?\"'“”’")
    while (found := w.DETERMINER.match(folded)) is not None:
        folded = folded[found.end() :]
    return folded


# --- clauses ----------------------------------------------------------------------------------------------------

_JOINS = re.compile(r",? (?:and|but)(?: also)? |; |, (?=(?:i|we|he|she|they|my|our)\b)", re.IGNORECASE)


def clauses(sentence: str) -> list[tuple[str, Statement]]:
    """A sentence that claims two attributes, as two sentences that each name their subject; else the sentence alone.

    "Ana does not use Vim and uses Helix" denies one thing and states another: together they could not be compared
    with what is said later.
    """
    whole = read_statement(sentence)
    if not sentence.isascii() and len(sentence) <= 300 and (parts := _denied_behind(sentence, whole)) is not None:
        return parts
    if not whole.attribute or len(sentence) > 300:
        return [(sentence, whole)]
    for join in _JOINS.finditer(sentence):
        left, right = sentence[: join.start()], sentence[join.end() :]
        first = read_statement(left)
        if not first.attribute or first.unreal:
            continue
        second = read_statement(right)
        if not second.attribute and first.subject:
            # The second verb has the first one's subject: "does not use Vim and uses Helix".
            subject = _written_subject(left, first)
            if subject:
                right = f"{subject} {right}"
                second = read_statement(right)
        if (
            second.attribute
            and (second.attribute, second.denied) != (first.attribute, first.denied)
            and not second.unreal
        ):
            end = sentence[-1] if sentence[-1] in ".!" and not left.endswith((".", "!")) else ""
            return [(left + end, first), (right[:1].upper() + right[1:], second)]
    return [(sentence, whole)]


def _written_subject(left: str, statement: Statement) -> str:
    """The subject as it stands in the first clause, so that it can be said again."""
    if statement.person:
        return statement.subject
    opening = re.match(
        r"(?:[Tt]he|[Tt]his|[Oo]ur|[Mm]y) [\w-]+(?: [\w-]+)?(?= (?:do|does|did|is|are|has|have|no|never|[a-z]+s)\b)",
        left,
    )
    return opening.group() if opening else ""


_SUBJECT_ZH = re.compile(
    r"(?P<s>我(?!们)|[\u4e00-\u9fff]{2,4}?)(?=(?:已经|都|也|还|一直|现在)?\s*(?:使用|采用|用|有|在|是|写(?!作)|做|喜欢|住|养|会(?!议)|吃|喝|要(?!求"
    r"|点)|想(?!法)))"
)
_DENIED_BEHIND = re.compile(r"(?<=[\u3040-\u9fff\w])[，、](?=(?:但|也|而且|并且|并)?(?:不|没|沒|别))")


def _denied_behind(sentence: str, whole: Statement) -> list[tuple[str, Statement]] | None:
    """Chinese says the subject once: `团队用Postgres，不想要向量库` states one thing and denies another."""
    cut = _DENIED_BEHIND.search(sentence)
    subject = _SUBJECT_ZH.match(sentence) if cut is not None else None
    if cut is None or subject is None or whole.denied:
        return None
    left, right = sentence[: cut.start()], sentence[cut.end() :]
    right = right.removeprefix("但").removeprefix("而且").removeprefix("并且")
    if len(left) < 4 or len(right) < 4 or languages.polarity(left, "zh") < 0:
        return None
    owner = "I" if subject["s"] == "我" else whole.subject
    return [(left + "。", whole), (subject["s"] + right, Statement(owner, owner.casefold(), denied=True))]

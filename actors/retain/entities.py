"""The names in a text and their kinds: what the model tags, joined with what spelling shows.

Rules propose stretches of text (capitalised runs, product names, titles, handles); the model confirms them, gives them
a kind, and adds names the rules cannot see (in small letters, at the start of a sentence).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from recalld.actors.retain import entity_cjk, entity_latin, name_lists
from recalld.actors.retain.entity_kinds import LOCATION, ORG, PERSON, PRODUCT, SURE, best, scores_of, spelled_kind
from recalld.actors.retain.lexicon import (
    CALENDAR,
    ING_NAMES,
    MEASURE_WORDS,
    NEVER_NAMES,
    ORG_ENDS,
    PEOPLES,
    PERSON_STARTS,
    SENTENCE_OPENERS,
)
from recalld.actors.retain.ner import NerModel, Tagged
from recalld.actors.retain.sentences import sentence_spans
from recalld.storage.records import EntityMention

CONCEPT = "CONCEPT"
MOST = 40
"""Names kept of one fact."""
_LONGEST = 100
_SMALL_LETTERS = 400
"""Up to this length a text without capitals is talk; beyond, it is logs, code or lists of words, which name nobody."""

_UPPER = "".join(c for c in map(chr, range(0x41, 0x1F00)) if c.isupper() and unicodedata.category(c) == "Lu")
_U, _W = f"[{_UPPER}]", "[^\\W_\u1100-\u11ff\u2e80-\U0003ffff]"
_CAPITALISED = rf"{_U}(?:{_W}|(?<={_W})[&.](?={_W}{{2}}))*(?:['’-](?=[{_UPPER}\d]){_W}+)*(?!{_W}|['’]t(?!{_W}))"
_LINK = r"(?:of|the|de|la|del|van|von|der|da|di|du|al|bin|&)"
_HOUSES = "(?:Hospital|Church|School|College|Academy|Cathedral|University|Clinic|Restaurant|Bakery|Diner|Pub|Square)"
_RUN = re.compile(
    rf"(?<!{_W})(?<![@#/\\.])(?:(?:Dr|Prof|Mr|Mrs|Ms|St)\. |(?:{_U}\. ?){{2,3}})?{_CAPITALISED}"
    rf"(?:(?:['’]s(?= {_HOUSES}))?[ \u00a0](?:{_LINK}[ \u00a0]){{0,2}}{_CAPITALISED}"
    rf"|[ \u00a0](?:S\.[AL]\.U?|S\.p\.A\.|S\.r\.l\.|e\.V\.)(?!{_W})|[ \u00a0]\d{{1,2}}(?![\d:/.%,]\d|\w|[ ](?:{_W})))*"
)
_PRODUCT = re.compile(
    rf"(?<!{_W})(?<![@#/\\.])(?:{_U}[A-Za-z]*-\d[\w.]*\w|{_U}[A-Za-z]*-\d|[a-z]?{_U}+[a-z]*\d[\w]*|"
    rf"(?:[a-z]+{_U}\w*|{_U}[a-z]+(?:{_U}[a-z]*)+)(?: \d+(?:\.\d+)*(?: (?:Pro|Max|Mini|Plus|Ultra))?)?|"
    rf"{_U}[A-Za-z]{{2,}} \d{{1,2}}(?= (?:headphones|earbuds|phone|laptop|camera|tablet|watch|printer|speaker"
    rf"|console|bike|car|replaced"
    rf"|released?|came|ships|launched|beta|app)\b)|{_U}[A-Za-z]+ \d+(?:\.\d+)+|{_U}?[a-z]+\.(?:js|io|ai|py|net"
    rf"|NET)(?!{_W}))(?!{_W})"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?!\w)")
_HANDLE = re.compile(r"(?<![\w@./])@[A-Za-z_]\w{1,38}(?![\w/])")
_TITLE = re.compile(
    r"[“\"]([^“”\"\n]{2,60})[”\"]|(?<![\w])[‘']([^‘’'\n]{2,60})[’'](?!\w)|《([^《》\n]{1,40})》|『([^『』\n]{1,40})』"
)
_HONOURED = re.compile(r"(?P<name>[\u4e00-\u9fff\u3005]{1,4})(?:さん|さま|様|氏|くん|ちゃん|先生)")
_KATAKANA = re.compile(
    r"[\u30a1-\u30fa\u30fc]{2,}(?:[・＝][\u30a1-\u30fa\u30fc]{2,})*(?P<honorific>さん|さま|様|氏|くん|君|ちゃん|先生)?"
)
_PLAIN_BEHIND = re.compile(r" (?:is|are|was|were) (?:with|at|in|on|under|behind|due|done|ready)\b|(?: [a-z]+){1,2}:")
_SENTENCE_START = re.compile(r"(?:^|[.!?…:;。！？\n]|[\"“(\[*•>-])[\s\"“‘'(\[*_#>•-]*$")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]{2}")
_WORDS = re.compile(r"\S+")
_WRITES_CAPITALS = re.compile(rf"(?!I\b){_U}")
_ACTS = re.compile(r"^ (?!is|was|has|does)[a-z]{2,}(?:s|ed)\b")
_STREET = re.compile(r"(?:stra(?:ss|ß)e|gasse|weg|platz|street|road|avenue|lane)$", re.IGNORECASE)
_HONORIFIC_DOT = re.compile(r"^(Dr|Prof|Mr|Mrs|Ms)\. ?")
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_EDGES = " \t.,;:!?…'\"“”‘’«»()[]{}<>*_`~|/\\-–—。、，"

_CALLED = re.compile(
    r"(?:^|[.!?\n] )(?:hey|hi|hello|wow|woah|whoa|thanks|thank you|yo|oh|yeah|congrats|bye|dear),? $", re.I
)
_NOUNS_CAPITALISED = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|ich|mit|für|auf|dem|den|wir|zu)\b")


class _Candidate(NamedTuple):
    start: int
    end: int
    kind: str
    rank: int  # of two that overlap the longer wins, then the smaller rank
    points: float = 1.0  # what speaks for the kind


def clean_name(name: str) -> str:
    """A name fit to store: white space folded, quotes and a possessive 's off; "" when nothing is left of it."""
    folded = _HONORIFIC_DOT.sub(r"\1 ", " ".join(name.split()))
    folded = _POSSESSIVE.sub("", folded.strip(_EDGES.replace("'", "").replace("’", "")))
    folded = folded.strip(_EDGES)
    return folded if any(c.isalnum() for c in folded) else ""


def fold_name(name: str) -> str:
    """The form two spellings of one name share."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def deduplicated(mentions: Iterable[EntityMention]) -> tuple[EntityMention, ...]:
    """Cleaned mentions, one a folded name, the first kept; a later, more telling kind replaces CONCEPT.

    An exact mention's name stays as it was written.
    """
    kept: dict[str, EntityMention] = {}
    for mention in mentions:
        name = mention.name if mention.exact else clean_name(mention.name)
        key = fold_name(name)
        if not key:
            continue
        held = kept.get(key)
        if held is None:
            kept[key] = EntityMention(name, mention.kind, mention.exact)
        elif held.kind == CONCEPT != mention.kind:
            kept[key] = EntityMention(held.name, mention.kind, held.exact)
    return tuple(kept.values())


def find_entities(text: str, model: NerModel, language: str | None = None) -> tuple[EntityMention, ...]:
    """The names in a text in order of appearance, at most MOST. Deterministic; thread-safe when the model is.

    `language` is what the text around says (`es`, `de`, "" for another); None: the text itself tells.
    """
    return deduplicated(mention for mention, _ in weighed_entities(text, model, language))[:MOST]


def weighed_entities(text: str, model: NerModel, language: str | None = None) -> list[tuple[EntityMention, float]]:
    """Every name in a text, each with the points that speak for its kind."""
    latin = entity_latin.surely(text) if language is None else language
    worth = "" if latin else _worth_tagging(text)
    tagged = model.tag(worth) if worth.strip() else None
    found = _candidates(text, tagged, latin)
    if not text.isascii():
        found += [_Candidate(*one, 1) for one in entity_cjk.in_cjk(text)]
    mentions: list[tuple[EntityMention, float]] = []
    for candidate in _without_overlaps(found):
        name = clean_name(text[candidate.start : candidate.end])
        least = 1 if name[:1] > "\u2e7f" else 2
        if least <= len(name) <= _LONGEST and not _refused(name):
            mentions.append((EntityMention(name, candidate.kind), candidate.points))
    return mentions


def one_kind_each(weighed: Iterable[tuple[EntityMention, float]]) -> dict[str, str]:
    """The kind of every name (folded) that a document speaks of, over all places where it stands.

    A name in several words lends its kind to those of its words that stand alone: "Ilse" is who "Ilse Brandt" is.
    """
    points: dict[str, dict[str, float]] = {}
    for mention, weight in weighed:
        kinds = points.setdefault(fold_name(mention.name), {})
        kinds[mention.kind] = kinds.get(mention.kind, 0.0) + (weight if mention.kind != CONCEPT else 0.1)
    for name, kinds in list(points.items()):
        words = name.split()
        if len(words) > 1 and PERSON in kinds:
            for word in words:
                if word in points:
                    points[word][PERSON] = points[word].get(PERSON, 0.0) + kinds[PERSON] / 2
    return {name: max(kinds, key=lambda kind: kinds[kind]) for name, kinds in points.items()}


def _worth_tagging(text: str) -> str:
    """The text with blanks for every sentence the model can find nothing in, so that offsets hold.

    A pass costs in proportion to its words, and three quarters of the words of talk stand in sentences whose capitals
    are only plain words'. Measured on 2,760 turns: the same names but for one in a hundred, at a quarter of the cost.
    """
    if _LATIN.search(text) is None:
        return ""
    if _WRITES_CAPITALS.search(text) is None:
        return text if len(text) <= _SMALL_LETTERS else ""
    parts: list[str] = []
    position = 0
    for start, end in sentence_spans(text):
        parts.append(text[position:start])
        parts.append(text[start:end] if _may_name(text[start:end]) else " " * (end - start))
        position = end
    return "".join(parts)


def _may_name(sentence: str) -> bool:
    for match in _RUN.finditer(sentence):
        words = match.group().casefold().split()
        participle = len(words) == 1 and words[0].endswith("ing") and words[0] not in ING_NAMES
        if participle and _opens_sentence(sentence, match.start()):
            continue
        if any(word not in NEVER_NAMES and word not in SENTENCE_OPENERS for word in words):
            return True
    return False


def _refused(name: str) -> bool:
    words = fold_name(name).replace("’", "'").split()
    if all(word in NEVER_NAMES or word in MEASURE_WORDS for word in words):
        return True
    return (words[-1].isdigit() and words[0] in NEVER_NAMES) or name.isdigit()


def _candidates(text: str, tagged: Tagged | None, latin: str) -> list[_Candidate]:
    found = [_Candidate(*match.span(), CONCEPT, 0) for match in _EMAIL.finditer(text)] if "@" in text else []
    if "@" in text:
        found += [_Candidate(*match.span(), PERSON, 0) for match in _HANDLE.finditer(text)]
    for match in _TITLE.finditer(text):
        group = match.lastindex or 1
        if group > 2 or _looks_like_title(match.group(group)):
            kind = tagged.kind_of(*match.span(group))[0] if tagged else ""
            found.append(_Candidate(*match.span(group), kind, 1))
    if latin:
        found += _products(text)
        found += [_Candidate(*one[:3], 2, one[3]) for one in entity_latin.in_latin(text, latin)]
    elif not _is_shouting(text):
        found += _products(text)
        found += _runs(text, tagged)
    found += [_Candidate(*match.span("name"), PERSON, 4) for match in _HONOURED.finditer(text)]
    for match in _KATAKANA.finditer(text):
        if match["honorific"]:
            found.append(_Candidate(match.start(), match.start("honorific"), PERSON, 4))
        elif len(match.group()) > 2:
            found.append(_Candidate(*match.span(), CONCEPT, 4))
    if tagged is not None:
        capitals = _WRITES_CAPITALS.search(text) is not None
        for span in tagged.spans(text):
            start, end = _without_small_words(text, *_whole_words(text, span.start, span.end))
            surface = text[start:end]
            if len(surface) < 2 or surface[0] > "\u2e7f" or not (surface[0].isalpha() and surface[-1].isalnum()):
                continue
            if surface.casefold() in SENTENCE_OPENERS and _opens_sentence(text, start):
                continue
            if surface.casefold() in NEVER_NAMES or _is_everyday(text, start, end, tagged):
                continue
            # Where people write capitals, a name in small letters is the model's mistake.
            if surface.islower() and (capitals or span.score < 0.8):
                continue
            people = span.kind == PRODUCT and surface.casefold() in PEOPLES
            found.append(_Candidate(start, end, CONCEPT if people else span.kind, 3))
    return [candidate._replace(kind=candidate.kind or CONCEPT) for candidate in found]


def _is_everyday(text: str, start: int, end: int, tagged: Tagged) -> bool:
    """Whether a lone word that opens a sentence or a label is more likely a plain one ("Key is with Ana")."""
    word = text[start:end]
    if " " in word or not _opens_sentence(text, start) or tagged.rarity(start, end) > 1:
        return False
    return _PLAIN_BEHIND.match(text, end) is not None and not name_lists.is_known(word)


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while end < len(text) and (text[end].isalnum() and text[end] < "\u2e80"):
        end += 1
    while start and text[start - 1].isalnum() and text[start - 1] < "\u2e80":
        start -= 1
    return start, end


def _without_small_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Cut words in small letters off both ends of a span that also has capitals."""
    words = list(_WORDS.finditer(text, start, end))
    capital = [word for word in words if word.group()[0].isupper() or any(map(str.isupper, word.group()))]
    return (capital[0].start(), capital[-1].end()) if capital else (start, end)


def _looks_like_title(quoted: str) -> bool:
    words = quoted.split()
    if not words or len(words) > 8 or quoted[-1] in ".!?,…" or not words[0][0].isupper():
        return False
    capital = sum(1 for word in words if word[0].isupper() or word[0].isdigit())
    return capital * 2 >= len(words) and (len(words) > 1 or words[0].casefold() not in SENTENCE_OPENERS)


def _is_shouting(text: str) -> bool:
    """Whether capitals carry no meaning here: most words of the text have one."""
    words = [word for word in text.split() if word[0].isalpha()]
    return len(words) >= 5 and sum(1 for word in words if word[0].isupper()) > len(words) * 0.8 and text.upper() == text


def _products(text: str) -> list[_Candidate]:
    found = []
    for match in _PRODUCT.finditer(text):
        first = re.split(r"[ \d.-]", match.group(), maxsplit=1)[0].casefold()
        if match.group().casefold() in MEASURE_WORDS:
            continue
        if first not in NEVER_NAMES and first not in MEASURE_WORDS and first not in SENTENCE_OPENERS:
            found.append(_Candidate(*match.span(), PRODUCT, 0))
    return found


def _runs(text: str, tagged: Tagged | None) -> list[_Candidate]:
    found: list[_Candidate] = []
    german = len(_NOUNS_CAPITALISED.findall(text)) >= 2
    for match in _RUN.finditer(text):
        opens = _opens_sentence(text, match.start())
        start, end, trimmed = _trim(text, *match.span(), opens)
        if german and (link := text.rfind(" von ", start, end)) > 0:
            start = link + 5  # "Hund von Anna": in a language of capitalised nouns the link joins no name
        if start >= end:
            continue
        head = start + len(text[start:end].split()[0])
        if opens and not trimmed and head < end and tagged is not None and _opens_only(tagged, start, head, end):
            # "Painting Rome": the model believes in the rest, not in the word that merely opens the sentence.
            start, trimmed = head + 1, True
        surface = text[start:end]
        words = surface.split()
        if words[-1].isdigit():
            if len(words) > 1 and words[0].casefold() not in MEASURE_WORDS and words[0].casefold() not in NEVER_NAMES:
                found.append(_Candidate(start, end, LOCATION if _STREET.search(words[-2]) else PRODUCT, 2))
            continue
        first = words[0].casefold()
        if (
            opens
            and not trimmed
            and len(words) == 1
            and (first in SENTENCE_OPENERS or (first.endswith("ly") and text[end : end + 1] == ","))
        ):
            continue
        if " of " in surface and (parts := _person_of(text, start, end, tagged)):
            found += parts
            continue
        if tagged is not None and _is_everyday(text, start, end, tagged):
            continue
        kind, points = _kind_of_run(text, start, end, words, tagged)
        confirmed = points >= SURE
        if not confirmed and surface.isupper() and len(surface) > 5:
            continue  # emphasis
        if len(words) == 1 and not confirmed:
            telling = len(surface) > 1 and (surface.isupper() or any(c.isdigit() for c in surface))
            inside = start > 1 and text[start - 1] == " " and text[start - 2].islower()
            if not inside and text[start - 1 : start] == "(" and text[end : end + 1] == ")" and not telling:
                inside, kind, opens = True, kind or PERSON, False  # who said so: "(Kalle)"
            if not telling and (len(surface) == 1 or german or (opens and not trimmed)):
                continue
            if surface.casefold() in SENTENCE_OPENERS and not inside:
                continue
        found.append(_Candidate(start, end, kind, 2, max(points, 0.1)))
    return found


def _person_of(text: str, start: int, end: int, tagged: Tagged | None) -> list[_Candidate]:
    """ "Isolde Brandt of Vantage Optics": a person and whose they are, not one long name."""
    link = text.index(" of ", start, end)
    left, right = text[start:link].split(), text[link + 4 : end].split()
    person = tagged is not None and tagged.kind_of(start, link)[0] == PERSON
    if not right or not left or spelled_kind(left) == ORG or not (person or spelled_kind(left) == PERSON):
        return []
    kind, _ = _kind_of_run(text, link + 4, end, right, tagged)
    return [_Candidate(start, link, PERSON, 2), _Candidate(link + 4, end, kind, 2)]


def _kind_of_run(text: str, start: int, end: int, words: list[str], tagged: Tagged | None) -> tuple[str, float]:
    """The likeliest kind of a capitalised run ("" when nothing tells), and its points."""
    opens = _opens_sentence(text, start)
    points = scores_of(text, start, end, tagged, opens=opens)
    single = len(words) == 1
    if _is_spoken_to(text, start, end):
        points[PERSON] += 1.2
    if single and opens and _ACTS.match(text[end : end + 20]):
        points[PERSON] += 0.6
    if not single and words[0].casefold() not in SENTENCE_OPENERS and words[0].casefold() not in PEOPLES:
        # Two capitals in a row are seldom a concept.
        before = text[max(0, start - 4) : start].casefold()
        points[PRODUCT if before.endswith((" a ", " an ")) else ORG if before.endswith("the ") else PERSON] += 0.8
    kind, most = best(points)
    if single and words[0].casefold() in PEOPLES:
        return CONCEPT, most
    if single and words[0].isupper() and (kind == PRODUCT or (kind == PERSON and len(words[0]) <= 4)) and most < 3.5:
        return CONCEPT, most  # "our API"
    return (kind, most) if most >= 0.8 else ("", most)


def _is_spoken_to(text: str, start: int, end: int) -> bool:
    """Whether a run stands where the name of the one spoken to stands ("Thanks, Mel!")."""
    before, after = text[max(0, start - 24) : start], text[end : end + 2]
    ends_clause = after[:1] in ("!", "?", ".", ",", "") or after[:2] == " -"
    return ends_clause and (
        _CALLED.search(before) is not None or (before.endswith(", ") and after[:1] in ("!", "?", "."))
    )


def _opens_only(tagged: Tagged, start: int, head: int, end: int) -> bool:
    kind, score = tagged.kind_of(start, head)
    return kind == "" and score >= 0.9 and tagged.kind_of(head, end)[0] != ""


def _opens_sentence(text: str, start: int) -> bool:
    return _SENTENCE_START.search(text, max(0, start - 6), start) is not None


def _trim(text: str, start: int, end: int, opens: bool) -> tuple[int, int, bool]:
    """Cut stop words (and, at a sentence's start, opening words) off the ends of a run; whether the front was cut."""
    trimmed = False
    last = text[start:end].rsplit(" ", 1)[-1].strip(_EDGES).casefold()
    if last in ORG_ENDS and " " in text[start:end] and text[start:end].split()[0].casefold() in CALENDAR:
        return start, end, False  # "Morning Tide Radio"
    while start < end:
        word = re.match(r"\S+", text[start:end])
        if word is None:
            start += 1
            continue
        bare = word.group().strip(_EDGES).casefold().replace("’", "'")
        if (bare in NEVER_NAMES and bare not in PERSON_STARTS) or (
            opens and not trimmed and bare in SENTENCE_OPENERS and " " in text[start:end]
        ):
            start += len(word.group())
            trimmed = True
        elif bare in ("of", "de", "&"):
            start += len(word.group())
        else:
            break
    while start < end:
        word = re.search(r"\S+$", text[start:end].rstrip())
        if word is None or word.group().strip(_EDGES).casefold() not in NEVER_NAMES:
            break
        end = start + word.start()
    return start, end, trimmed


def _without_overlaps(candidates: list[_Candidate]) -> list[_Candidate]:
    kept: list[_Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.start - c.end, c.rank, c.start)):
        if all(candidate.end <= other.start or candidate.start >= other.end for other in kept):
            kept.append(candidate)
    return sorted(kept)

"""Labelled items of extraction, and how the facts read from one are judged. Pure; the format is told beside the items.

A judgement is a list of checks. A labelled field of a fact that nobody found is a wrong check marked `missing`, so an
extractor cannot look better by keeping less.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from recalld.actors.retain.extraction import Fact
from recalld.daemon.commands.common import USAGE, CommandError, read_text
from recalld.storage.records import NETWORK_NAMES

FIGURES = (
    "found",
    "dates",
    "speaker/subject",
    "polarity",
    "network",
    "wording",
    "attributes",
    "restraint",
    "splits",
    "exchanges",
    "junk left out",
    "entities",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CJK = 0x2E80
_LETTER = "0-9a-z_\u00c0-\u2e7f"
"""Of scripts that put spaces between words: a word ends where Chinese begins."""
_TITLES = {"mr", "mrs", "ms", "dr", "prof", "the"}
_ROLES = frozenset({"user", "assistant", "host", "guest"})
Keys = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """A fact that must be there. Fields that are None are not judged; `dates` () means undated."""

    keys: Keys
    must: Keys = ()
    must_not: tuple[str, ...] = ()
    speaker: tuple[str, ...] | None = None
    subject: tuple[str, ...] | None = None
    network: str | None = None
    polarity: int | None = None
    dates: tuple[tuple[str, str], ...] | None = None
    attribute: tuple[str, ...] | None = None
    value: tuple[str, ...] | None = None
    exchange: bool = False

    @property
    def name(self) -> str:
        return " ".join(alternatives[0] for alternatives in self.keys)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A fact with all `keys`, of that speaker, subject and attribute, that lacks every word of `without`, is wrong."""

    why: str
    keys: Keys = ()
    without: tuple[str, ...] = ()
    speaker: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    attribute: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """An entity of an item: spellings and kinds that count. An optional one is neither asked for nor wrong."""

    spellings: frozenset[str]
    kinds: frozenset[str]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class LabelledItem:
    id: str
    source: str
    language: str
    tags: tuple[str, ...]
    item: Mapping[str, Any]
    facts: tuple[Expected, ...] = ()
    entities: tuple[Name, ...] | None = None
    count: tuple[int, int] | None = None
    junk: bool = False
    junk_parts: tuple[Keys, ...] = ()
    forbidden: tuple[Forbidden, ...] = ()

    @property
    def zone(self) -> timezone:
        stamp = datetime.fromisoformat(str(self.item["timestamp"]))
        return timezone(stamp.utcoffset() or timedelta())


@dataclass(frozen=True, slots=True)
class Check:
    """One thing judged. Of entities, `kind` tells a found name (hit) from an invented (extra) or absent (lost) one."""

    figure: str
    right: bool
    note: str = ""
    missing: bool = False
    kind: str = ""


@dataclass(slots=True)
class Judged:
    item: LabelledItem
    facts: Sequence[Fact]
    checks: list[Check] = field(default_factory=list)

    @property
    def misses(self) -> list[Check]:
        return [check for check in self.checks if not check.right]


def load(paths: Iterable[Path]) -> list[LabelledItem]:
    """The items of some files. Raises a usage error that names the line that is not an item, or the id used twice."""
    items: dict[str, LabelledItem] = {}
    for path in paths:
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if not line.strip():
                continue
            try:
                one = parse(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                what = f"{type(error).__name__}: {error}"
                raise CommandError(f"Line {number} of {path} is not a labelled item ({what}).", USAGE) from None
            if one.id in items:
                raise CommandError(f"Line {number} of {path} uses the id {one.id} again.", USAGE)
            items[one.id] = one
    return list(items.values())


def parse(row: Mapping[str, Any]) -> LabelledItem:
    entities = row.get("entities")
    return LabelledItem(
        id=row["id"],
        source=row["source"],
        language=row["language"],
        tags=tuple(row["tags"]),
        item=row["item"],
        facts=tuple(_expected(one) for one in row["facts"]),
        entities=None if entities is None else tuple(_name(one) for one in entities),
        count=(int(row["count"][0]), int(row["count"][1])) if "count" in row else None,
        junk=bool(row.get("junk", False)),
        junk_parts=tuple(_keys(one) for one in row.get("junk_parts", ())),
        forbidden=tuple(_forbidden(one) for one in row.get("forbidden", ())),
    )


def _expected(row: Mapping[str, Any]) -> Expected:
    dates = None
    if "dates" in row:
        dates = tuple((start, end) for start, end in row["dates"] or ())
    return Expected(
        keys=_keys(row["keys"]),
        must=_keys(row.get("must", ())),
        must_not=tuple(row.get("must_not", ())),
        speaker=_options(row, "speaker"),
        subject=_options(row, "subject"),
        network=row.get("network"),
        polarity=row.get("polarity"),
        dates=dates,
        attribute=_options(row, "attribute"),
        value=_options(row, "value"),
        exchange=bool(row.get("exchange", False)),
    )


def _forbidden(row: Mapping[str, Any]) -> Forbidden:
    return Forbidden(
        row["why"],
        _keys(row.get("keys", ())),
        tuple(row.get("without", ())),
        _options(row, "speaker") or (),
        _options(row, "subject") or (),
        _options(row, "attribute") or (),
    )


def _name(row: Mapping[str, Any]) -> Name:
    return Name(frozenset(map(fold_name, row["name"])), frozenset(row["kind"]), bool(row.get("optional", False)))


def _keys(rows: Iterable[Sequence[str]]) -> Keys:
    return tuple(tuple(row) for row in rows)


def _options(row: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return tuple(row[name]) if name in row else None


# ---------------------------------------------------------------------------------------------------- words


def fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("’", "'").casefold()


def fold_name(name: str) -> str:
    """A name as compared: no case, no article or title in front, no possessive or full stop behind."""
    words = fold(name).removesuffix("'s").strip(" .,;:\"'").split()
    while len(words) > 1 and words[0].strip(".") in _TITLES:
        words = words[1:]
    return " ".join(words)


def says(text: str, word: str) -> bool:
    """Whether a folded text holds a word or phrase: from the start of a word, and to its end for very short ones."""
    word = fold(word)
    if not word[0].isalnum() or word == "n't" or ord(word[0]) >= _CJK:
        return word in text
    end = f"(?![{_LETTER}])" if len(word) <= 2 else ""
    return re.search(f"(?<![{_LETTER}]){re.escape(word)}{end}", text) is not None


def holds(text: str, keys: Keys) -> bool:
    return all(any(says(text, word) for word in alternatives) for alternatives in keys)


def names(text: str, options: Iterable[str]) -> bool:
    """Whether a folded text names one of some people."""
    return any(fold(option) in text if ord(option[0]) >= _CJK else says(text, option) for option in options)


def own_words(subject: str) -> str:
    """A subject without whose it is: "Ana's sister Lena" is Lena, and not Ana."""
    return re.sub(r"\S+'s\s+|\S+[の的](?=\S)", "", fold(subject))


# ---------------------------------------------------------------------------------------------------- judging


def judge(item: LabelledItem, facts: Sequence[Fact]) -> Judged:
    judged = Judged(item, facts)
    checks = judged.checks
    texts = [fold(fact.text) for fact in facts]
    if item.junk:
        checks.append(Check("junk left out", not facts, f"kept {len(facts)} facts of what is junk"))
    for keys in item.junk_parts:
        found = [fact.text for fact, text in zip(facts, texts, strict=True) if holds(text, keys)]
        checks.append(Check("junk left out", not found, f"kept {found}"))
    answers = align(item.facts, facts, texts)
    for expected, place in zip(item.facts, answers, strict=True):
        fact = None if place is None else facts[place]
        checks += _of_fact(expected, fact, "" if place is None else texts[place], item)
    checks += _forbidden_kept(item, facts, texts)
    checks += _counts(item, facts, answers)
    if item.entities is not None:
        checks += _of_entities(item, facts)
    return judged


def align(expected: Sequence[Expected], facts: Sequence[Fact], texts: Sequence[str]) -> list[int | None]:
    """Which fact answers each expectation: one of its own where there is one, and the one that says least besides."""
    matches = [[place for place, text in enumerate(texts) if holds(text, one.keys)] for one in expected]
    load = [sum(place in found for found in matches) for place in range(len(facts))]
    answers: list[int | None] = [None] * len(expected)
    used: set[int] = set()
    for at in sorted(range(len(expected)), key=lambda one: len(matches[one])):
        if matches[at]:
            answers[at] = min(
                matches[at],
                key=lambda place: (place in used, facts[place].question, load[place], len(texts[place]), place),
            )
            used.add(answers[at] or 0)
    return answers


def _of_fact(expected: Expected, fact: Fact | None, text: str, item: LabelledItem) -> list[Check]:
    name = expected.name
    # An exchange is judged whole, with the number of facts, by `_counts`.
    checks = [] if expected.exchange else [Check("found", fact is not None, f"nothing says: {name}")]
    judged: list[tuple[str, bool, str]] = []
    said = fact is not None and holds(text, expected.must) and not any(says(text, w) for w in expected.must_not)
    if expected.must or expected.must_not:
        judged.append(("wording", said, f"{name}: must say {expected.must}, not {expected.must_not}"))
    if expected.speaker is not None:
        got = fold_name(fact.speaker) if fact else ""
        right = got in map(fold_name, expected.speaker)
        judged.append(("speaker/subject", right, f"{name}: speaker {got!r}, not {expected.speaker}"))
    if expected.subject is not None:
        got = fact.subject if fact else ""
        right = names(own_words(got) if got else text, expected.subject)
        judged.append(("speaker/subject", right, f"{name}: subject {got!r}, not {expected.subject}"))
    if expected.network is not None:
        got = NETWORK_NAMES[fact.network] if fact else ""
        judged.append(("network", got == expected.network, f"{name}: network {got}, not {expected.network}"))
    if expected.polarity is not None:
        polarity = fact.polarity if fact else 0
        right = polarity == expected.polarity and (polarity > 0 or said or not expected.must)
        judged.append(("polarity", right, f"{name}: polarity {polarity}, not {expected.polarity}"))
    if expected.dates is not None:
        days = days_of(fact, item.zone) if fact else ("", "")
        wanted = expected.dates or "undated"
        judged.append(("dates", dated_right(days, expected.dates), f"{name}: {days or 'undated'}, not {wanted}"))
    if expected.attribute is not None:
        key, value = (fact.attribute, fold(fact.value or fact.attribute)) if fact else ("", "")
        right = key.split(":")[0] in expected.attribute
        right = right and (expected.value is None or any(fold(one) in value for one in expected.value))
        note = f"{name}: attribute {key!r} = {value!r}, not {expected.attribute} = {expected.value}"
        judged.append(("attributes", right, note))
    checks += [
        Check(figure, right and fact is not None, f"{name}: missing" if fact is None else note, fact is None)
        for figure, right, note in judged
    ]
    return checks


def days_of(fact: Fact, zone: timezone) -> tuple[str, str] | None:
    """First and last day of a fact in a zone; None when undated. An open side is `*`."""
    if fact.occurred_start is None and fact.occurred_end is None:
        return None

    def day(instant: int | None) -> str:
        return (
            "*" if instant is None else (_EPOCH + timedelta(microseconds=instant)).astimezone(zone).date().isoformat()
        )

    return day(fact.occurred_start), day(fact.occurred_end)


def dated_right(days: tuple[str, str] | None, wanted: Sequence[tuple[str, str]]) -> bool:
    """Whether the days are one of the ranges wanted; `*` in a label is any day, or none."""
    if not wanted:
        return days is None
    return any(
        all(
            want == "*" or (days is not None and have == want) for have, want in zip(days or ("", ""), one, strict=True)
        )
        for one in wanted
    )


def _forbidden_kept(item: LabelledItem, facts: Sequence[Fact], texts: Sequence[str]) -> list[Check]:
    checks = []
    for rule in item.forbidden:
        found = [
            fact.text for fact, text in zip(facts, texts, strict=True) if not fact.question and breaks(rule, fact, text)
        ]
        figure = "speaker/subject" if rule.why == "role" else "restraint"
        checks.append(Check(figure, not found, f"{rule.why} taken as fact: {found}"))
    return checks


def breaks(rule: Forbidden, fact: Fact, text: str) -> bool:
    if rule.speaker and fold_name(fact.speaker) not in map(fold_name, rule.speaker):
        return False
    if rule.subject and not names(own_words(fact.subject), rule.subject):
        return False
    if rule.attribute and (fact.attribute.split(":")[0] not in rule.attribute or fact.polarity < 0):
        return False
    return holds(text, rule.keys) and not any(says(text, word) for word in rule.without)


def _counts(item: LabelledItem, facts: Sequence[Fact], answers: Sequence[int | None]) -> list[Check]:
    if item.count is None:
        return []
    least, most = item.count
    right = least <= len(facts) <= most and None not in answers
    if least >= len(item.facts):
        right = right and len(set(answers)) == len(answers)
    whole = any(one.exchange for one in item.facts)
    figure = "exchanges" if whole else "splits"
    lost = [one.name for one, place in zip(item.facts, answers, strict=True) if place is None]
    note = f"{len(facts)} facts, not {least} to {most}" + (f"; no one fact says: {'; '.join(lost)}" if lost else "")
    return [Check(figure, right, note)]


def _of_entities(item: LabelledItem, facts: Sequence[Fact]) -> list[Check]:
    """Names found, lost and invented. Speakers, roles and common nouns are neither asked for nor wrong."""
    speakers = set(_ROLES) | {fold_name(fact.speaker) for fact in facts}
    speakers |= {fold_name(option) for one in item.facts for option in one.speaker or ()}
    got: dict[str, str] = {}
    common = set()
    for fact in facts:
        for entity in fact.entities:
            got.setdefault(fold_name(entity.name), entity.kind)
            if entity.kind == "CONCEPT" and entity.name == entity.name.lower():
                common.add(fold_name(entity.name))
    checks = []
    for label in item.entities or ():
        found = [name for name in got if name in label.spellings]
        kinds = [got.pop(name) for name in found]
        if label.optional:
            continue
        if not kinds:
            checks.append(Check("entities", False, f"lost {min(label.spellings)!r}", kind="lost"))
        elif any(kind in label.kinds for kind in kinds):
            checks.append(Check("entities", True, kind="hit"))
        else:
            note = f"{found[0]!r} is {kinds[0]}, not {'/'.join(sorted(label.kinds))}"
            checks.append(Check("entities", False, note, kind="wrong kind"))
    for name, kind in got.items():
        if name not in speakers and name not in common and not speakers & set(name.split()):
            checks.append(Check("entities", False, f"invented {name!r} ({kind})", kind="extra"))
    return checks

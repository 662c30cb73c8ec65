"""Where sentences end, and how a prose text falls into passages that stand alone.

Everything works on spans, so that a sentence or a passage is always a verbatim slice of its text.
"""

from __future__ import annotations

import re

from recalld.actors.retain.lexicon import ABBREVIATIONS, ABBREVIATIONS_THAT_END

AIM, MOST, SHORT = 480, 700, 600
"""A passage is about AIM long and at most MOST; a text up to SHORT is not cut at all (in weighed characters)."""
_LONGEST_SENTENCE = 1200
_SMALLEST = 120

Span = tuple[int, int]

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s)|[。！？｡]+[」』”’）)》]*|\n")
_BEHIND_AN_ORDINAL = re.compile(
    r"\s+(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|[a-zäöü])"
)
_LAST_WORD = re.compile(r"(?:^|[\s(\"'“‘])([^\s(\"'“‘]*)$")
_BLANK_LINE = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^[^\n]{1,80}[:：]\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_SOFT_BREAK = re.compile(r"[;；,，、]\s*|\s+")


def weight(text: str) -> int:
    """Length in Latin-like characters: one CJK character carries about as much as two and a half letters."""
    if text.isascii():
        return len(text)
    return len(text) + len(_CJK.findall(text)) * 3 // 2


def sentence_spans(text: str) -> list[Span]:
    """Spans of the sentences, without the white space around them. Abbreviations and initials do not end one."""
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        if match.group()[0] == "." and not _ends_sentence(text, match.start(), match.end()):
            continue
        _add(spans, text, start, match.end())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def sentences(text: str) -> list[str]:
    """The sentences as strings."""
    return [text[start:end] for start, end in sentence_spans(text)]


def passages(text: str) -> list[str]:
    """A prose text as passages of one to about four sentences, cut at paragraphs where the text has them.

    Each passage is a verbatim slice and together they hold every sentence, in order.
    """
    if weight(text) <= SHORT:
        stripped = text.strip()
        return [stripped] if stripped else []
    groups: list[Span] = []
    carried: Span | None = None
    scrap = False
    for paragraph in _paragraphs(text):
        heading = _HEADING.match(text[slice(*paragraph)]) is not None and "\n" not in text[slice(*paragraph)]
        if heading and scrap and carried is not None:
            # A scrap before a heading belongs to what is above it.
            _append(groups, text, carried)
            carried = None
        span = paragraph if carried is None else (carried[0], paragraph[1])
        # A heading or a scrap says nothing alone: it goes in front of what follows.
        if heading or weight(text[slice(*span)]) < _SMALLEST:
            carried, scrap = span, not heading
            continue
        carried = None
        groups.extend(_group(text, span))
    if carried is not None:
        _append(groups, text, carried)
    return [text[start:end] for start, end in groups]


def _append(groups: list[Span], text: str, span: Span) -> None:
    if groups and weight(text[groups[-1][0] : span[1]]) <= MOST:
        groups[-1] = (groups[-1][0], span[1])
    else:
        groups.extend(_group(text, span))


def _ends_sentence(text: str, dot: int, end: int) -> bool:
    word_match = _LAST_WORD.search(text, max(0, dot - 24), dot)
    word = word_match.group(1).lower() if word_match else ""
    following = text[end : end + 8].lstrip()[:1]
    if end - dot > 1 and text[dot : dot + 2] == "..":
        return not following.islower()
    if word in ABBREVIATIONS_THAT_END:
        return following.isupper()
    if word in ABBREVIATIONS:
        return False
    initial = len(word) == 1 and word.isalpha() and text[dot - 1].isupper() and word != "i"
    numbered = word.isdigit() and len(word) <= 2 and (dot - len(word) == 0 or text[dot - len(word) - 1] == "\n")
    ordinal = word.isdigit() and len(word) <= 2 and _BEHIND_AN_ORDINAL.match(text, end) is not None
    return not (initial or numbered or ordinal)


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def _paragraphs(text: str) -> list[Span]:
    """Spans between blank lines; a fenced block of code is never cut at the blank lines inside it."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    inside = list(zip(fences[::2], fences[1::2], strict=False))
    spans: list[Span] = []
    start = 0
    for match in _BLANK_LINE.finditer(text):
        if any(opened < match.start() < closed for opened, closed in inside):
            continue
        _add(spans, text, start, match.start())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def _group(text: str, paragraph: Span) -> list[Span]:
    """Cut one paragraph into runs of sentences of about AIM, evenly, so that no scrap is left at its end."""
    total = weight(text[slice(*paragraph)])
    if total <= MOST:
        return [paragraph]
    aim = total / max(2, round(total / AIM))
    offset = paragraph[0]
    units: list[Span] = []
    for start, end in sentence_spans(text[slice(*paragraph)]):
        units.extend(_cut_long(text, (start + offset, end + offset)))
    groups: list[Span] = []
    for unit in units:
        if groups:
            held = weight(text[slice(*groups[-1])])
            joined = weight(text[groups[-1][0] : unit[1]])
            # The unit goes where the group ends up nearer its aim.
            if joined <= MOST and (held < _SMALLEST or abs(joined - aim) <= abs(aim - held)):
                groups[-1] = (groups[-1][0], unit[1])
                continue
        groups.append(unit)
    if len(groups) > 1 and weight(text[slice(*groups[-1])]) < _SMALLEST:
        joined = weight(text[groups[-2][0] : groups[-1][1]])
        if joined <= MOST + _SMALLEST:
            groups[-2:] = [(groups[-2][0], groups[-1][1])]
    return groups


def _cut_long(text: str, span: Span) -> list[Span]:
    """A sentence past any sensible length is cut at a comma or a space, else anywhere."""
    start, end = span
    if weight(text[start:end]) <= _LONGEST_SENTENCE:
        return [span]
    pieces: list[Span] = []
    step = max(1, (end - start) * AIM // weight(text[start:end]))
    while end - start > step * 3 // 2:
        cut = start + step
        for match in _SOFT_BREAK.finditer(text, start + step // 2, start + step * 3 // 2):
            cut = match.end()
            if cut >= start + step:
                break
        _add(pieces, text, start, cut)
        start = cut
    _add(pieces, text, start, end)
    return pieces

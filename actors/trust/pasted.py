"""Recalled memories that come back inside a text: what agents and integrations put into a prompt, pasted or logged.

Kept again, they would turn into memories of memories, newer than what they repeat. Recognised are

* our fences (`fence`), and the elements integrations wrap recalled memories in, closed;
* what `recalld recall` prints, as table or JSON, and what the SDKs print;
* under a heading that names memories, the lines of a list that equal stored units (`listed`, `without_lines`).

A text that only talks about such a thing is left alone.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

RECALLED: Final = "recalled"
"""The reason in a receipt."""

_NAMES: Final = (
    "hindsight[-_]memories|relevant[-_]memories|recalled[-_]memories|retrieved[-_]memories|memories|memory[-_]context|"
    "recalled[-_]context|user[-_]memories|long[-_]term[-_]memory|recalld[-_]memories|working_memory|episodic_memory|"
    "semantic_memory|mental[-_]models|hindsight[-_]context"
)
_WRAPPED: Final = re.compile(rf"(?<!`)<({_NAMES})(?:\s[^<>]{{0,400}})?>(?:(?!<\1[\s>])[\s\S])*?</\1\s*>", re.IGNORECASE)
_FENCED: Final = re.compile(r"<<quoted ([0-9a-f]{16})[^\n>]*>>\n(?:(?!<<quoted )[\s\S])*?\n<</quoted \1>>")
_CODE: Final = re.compile(r"^(`{3,12}|~{3,12})[^\n]*\n([\s\S]*?)\n\1[ \t]*$", re.MULTILINE)
_TABLE_HEAD: Final = re.compile(r"^[ \t]*#[ \t]+score[ \t]+date[ \t]+(?:arms[ \t]+)?memory[ \t]*$", re.MULTILINE)
_TABLE_ROW: Final = re.compile(r"^[ \t]*\d+[ \t]+-?\d+\.\d{3}[ \t]+(?:\d{4}-\d\d-\d\d[ \t]+)?\S")
_TABLE_MORE: Final = re.compile(r"^(?:[ \t]{12,}\S|\.\.\. and \d+ more; see --limit)")
_OBJECT: Final = re.compile(r"^.*\bRecallResult\(id=['\"][0-9a-f\-]{36}['\"], text=.*$", re.MULTILINE)
_ANSWER: Final = re.compile(r"""\{\s*"results"\s*:\s*\[\s*\{|^[ \t]*\{'results':\s*\[\{""", re.MULTILINE)
_DECODER: Final = json.JSONDecoder()
MOST_LITERAL: Final = 200_000
_HEADING: Final = re.compile(
    r"^\W*(?:(?:here (?:are|is)|these are|the following|found|using|use|given|based on)\b.{0,30}?)?"
    r"(?:(?:relevant|recalled|retrieved|related|recent|stored|past|previous|your|my|the|\d+)\s){0,3}"
    r"(?:memor(?:y|ies)|recollections|what (?:i|you|we) remember)\b.{0,60}$"
    r"|^\W*(?:相关|相關|召回的?|检索到的?|以下|历史|歷史)?(?:记忆|記憶|回忆)\W{0,3}$|^\W*(?:関連する|思い出した|検索された)?(?:記憶|メモリ)\W{0,3}$"
    r"|^\W*(?:recuerdos|memorias)(?: relevantes| relacionad[oa]s| recuperad[oa]s)?\W{0,3}$"
    r"|^\W*(?:relevante |abgerufene |passende )?erinnerungen\W{0,3}$",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"^\s*(?:[-*+•–]|\(?\d{1,3}[.)\]])\s+(?:\[[ xX]\]\s+)?")
_BEFORE: Final = re.compile(
    r"^(?:\[?(?:world|experience|opinion|observation)(?:,? \d\.\d+)?\]?:?\s+"
    r"|\[?\(?\d{4}-\d\d-\d\d(?:T[\d:.+Z\-]+)?\)?\]?:?\s+)+",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"(?:\s+[\[(](?:type|score|date|kind|world|experience|opinion|observation|\d{4}-\d\d-\d\d|\d\.\d+)[^\[\]()]{0,80}[\])])+$",
    re.IGNORECASE,
)
MOST_LINES: Final = 100
# Any of these stands in a text that holds recalled memories; a backslash may spell one.
_MAY_HOLD: Final = re.compile(
    r"<<quoted|memor|recall|recollect|remember|[\"']results[\"']|context>|mental|recuerdo|erinnerung|记忆|記憶|回忆|メモリ|\\u",
    re.IGNORECASE,
)


def may_hold(text: str) -> bool:
    """Whether a closer look is worth its time."""
    return _MAY_HOLD.search(text) is not None


def without_blocks(text: str) -> tuple[str, int]:
    """(the text without recalled blocks, how many there were)."""
    count = 0
    for pattern in (_FENCED, _WRAPPED, _OBJECT):
        if pattern is _OBJECT and "RecallResult(" not in text:
            continue
        text, n = pattern.subn("", text)
        count += n
    if "```" in text or "~~~" in text:
        text, n = _without_code(text)
        count += n
    if "memory" in text and "score" in text:
        text, n = _without_table(text)
        count += n
    if "results" in text:
        text, n = _without_answers(text)
        count += n
    return (text.strip() if count else text), count


def _without_code(text: str) -> tuple[str, int]:
    count = 0

    def change(match: re.Match[str]) -> str:
        nonlocal count
        if is_recall_answer(match[2]) or _TABLE_HEAD.search(match[2]):
            count += 1
            return ""
        return match[0]

    return _CODE.sub(change, text), count


def _without_table(text: str) -> tuple[str, int]:
    if not _TABLE_HEAD.search(text):
        return text, 0
    kept: list[str] = []
    inside, count = False, 0
    for line in text.split("\n"):
        if _TABLE_HEAD.match(line):
            inside, count = True, count + 1
        elif not (inside and (_TABLE_ROW.match(line) or _TABLE_MORE.match(line))):
            inside = False
            kept.append(line)
    return "\n".join(kept), count


def _without_answers(text: str) -> tuple[str, int]:
    """Without answers of a recall inside a text: JSON, or on a line of its own a dict as Python prints it."""
    kept: list[str] = []
    place = count = 0
    for match in _ANSWER.finditer(text):
        if match.start() < place:
            continue
        end = _end_of_answer(text, match.start(), match[0])
        if end > match.start():
            kept.append(text[place : match.start()])
            place, count = end, count + 1
    return "".join((*kept, text[place:])), count


def _end_of_answer(text: str, start: int, opening: str) -> int:
    """Where the answer that begins at `start` ends; `start` itself when it is none."""
    try:
        if '"' in opening:
            value, end = _DECODER.raw_decode(text, start)
        else:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            value = ast.literal_eval(text[start:end].strip()) if end - start < MOST_LITERAL else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return start
    return end if _is_answer(value) else start


def is_recall_answer(text: str) -> bool:
    """Whether a text is the JSON answer of a recall: results with an id, a text and a type each."""
    if '"results"' not in text or '"text"' not in text:
        return False
    try:
        return _is_answer(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _is_answer(value: Any) -> bool:
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, list) and bool(results) and all(_is_result(one) for one in results)


def _is_result(one: Any) -> bool:
    return isinstance(one, dict) and {"id", "text", "type"} <= one.keys() and ("scores" in one or "mentioned_at" in one)


def listed(text: str) -> list[str]:
    """Lines that may be stored units: those of lists under a heading that names memories, without their decoration."""
    return list(dict.fromkeys(form for _, _, forms in _lines(text) for form in forms))[: MOST_LINES * 3]


def without_lines(text: str, stored: Collection[str]) -> tuple[str, int]:
    """(the text without the lines `listed` named that are `stored`, how many). A heading left alone goes with them."""
    lines = text.split("\n")
    dropped: set[int] = set()
    blocks: dict[int, list[int]] = {}
    for heading, number, forms in _lines(text):
        blocks.setdefault(heading, []).append(number)
        if any(form in stored for form in forms):
            dropped.add(number)
    if not dropped:
        return text, 0
    gone = dropped | {heading for heading, numbers in blocks.items() if dropped.issuperset(numbers)}
    return "\n".join(line for number, line in enumerate(lines) if number not in gone).strip(), len(dropped)


def _lines(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(number of the heading, number of the line, its text with less and less decoration)."""
    heading: int | None = None
    seen = 0
    for number, line in enumerate(text.split("\n")):
        bare = line.strip()
        if heading is not None and _BULLET.match(line):
            seen += 1
            if seen > MOST_LINES:
                return
            first = _BULLET.sub("", line, count=1).strip()
            second = _BEFORE.sub("", first)
            yield heading, number, tuple(dict.fromkeys((bare, first, second, _BEHIND.sub("", second))))
        elif bare and len(bare) <= 120 and _HEADING.match(bare):
            heading = number
        elif bare:
            heading = None

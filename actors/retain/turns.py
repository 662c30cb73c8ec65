"""Who says what: a text as turns of talk, from `Name: text` lines, JSON conversations or JSON lines.

A text that is no conversation has no turns (None): it is prose, and its paragraphs count instead.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

from recalld.actors.retain.cleaning import is_filler
from recalld.actors.retain.lexicon import LABELS, PERSON_STARTS
from recalld.actors.retain.lexicon_cjk import GIVEN_NAME_ENDS_JA, GIVEN_NAMES_JA, SURNAMES

USER, ASSISTANT, SYSTEM, TOOL = "user", "assistant", "system", "tool"
_ROLES = {
    "user": USER,
    "human": USER,
    "customer": USER,
    "me": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "agent": ASSISTANT,
    "bot": ASSISTANT,
    "model": ASSISTANT,
    "chatbot": ASSISTANT,
    "claude": ASSISTANT,
    "chatgpt": ASSISTANT,
    "gpt": ASSISTANT,
    "copilot": ASSISTANT,
    "gemini": ASSISTANT,
    "system": SYSTEM,
    "developer": SYSTEM,
    "tool": TOOL,
    "function": TOOL,
    "tool_result": TOOL,
}
_GENERIC = frozenset({"user", "human", "customer", "me", "assistant", "ai", "agent", "bot", "model", "chatbot"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One voice speaking once. `speaker` is the name as written ("" when unknown), `role` one of user, assistant,
    system, tool or "". `at` is its own time (microseconds, UTC) and `utc_offset_minutes` its zone, when it has one.
    `named`: the words are remembered behind the speaker's name, or behind `label` where more than it was written."""

    speaker: str
    role: str
    text: str
    at: int | None = None
    utc_offset_minutes: int | None = None
    named: bool = True
    label: str = ""

    def rendered(self) -> str:
        """`Speaker: text`, the form a turn is remembered in."""
        return f"{self.label or self.speaker}: {self.text}" if self.speaker and self.named else self.text


_CUE = re.compile(
    r"^(?:\d+[ \t]*\n)?[ \t]*(?:\d{1,2}:)?\d{2}:\d{2}[.,]\d{3}[ \t]*-->[^\n]*\n?|^WEBVTT[^\n]*\n?|^NOTE\b[^\n]*\n?",
    re.MULTILINE,
)
_VOICE = re.compile(r"<v(?:\.[\w.]+)? ([^<>\n]{1,60})>")


def without_cues(text: str) -> str:
    """A subtitle file as lines of talk; another text as it is."""
    if "-->" not in text:
        return text
    stripped = _CUE.sub("", text)
    if stripped == text:
        return text
    return re.sub(r"\n{2,}", "\n", _VOICE.sub(r"\1: ", stripped).replace("</v>", "")).strip()


def role_of(name: str) -> str:
    """The role a speaker's name stands for ("Assistant" -> assistant), "" for a person's name."""
    return _ROLES.get(name.strip().casefold(), "")


def is_generic(name: str) -> bool:
    """Whether a speaker is only a role word, so that it names nobody."""
    return name.strip().casefold() in _GENERIC or role_of(name) in (SYSTEM, TOOL)


def turns_of(text: str, utc_offset_minutes: int = 0) -> list[Turn] | None:
    """The turns of a text, None when it is not a conversation. Times without a zone are read in the given one."""
    stripped = text.lstrip()
    if mail := _MAIL.match(stripped):
        return [Turn(" ".join(mail["name"].split()), "", text.strip(), named=False)]
    if stripped[:1] in ("[", "{", ","):
        turns = _json_turns(stripped, utc_offset_minutes)
        if turns is not None:
            return turns
    return _line_turns(text)


def single_speaker(text: str) -> str:
    """The one person a text quotes as speaker; "" when there is none or more than one."""
    names = {turn.speaker for turn in turns_of(text) or [] if turn.text.strip()}
    return names.pop() if len(names) == 1 else ""


_MAIL = re.compile(
    r"From:[ \t]*\"?(?P<name>[^\W\d_][\w.'’ -]{0,60}?)\"?[ \t]*(?:<[^<>\n]+>)?[ \t]*\n(?:[A-Z][\w-]*:[^\n]*\n)+\s*\n"
)


# --- Name: text -------------------------------------------------------------------------------------------------

_NAME = (
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof|St)\.\s)?@?[^\W\d_][\w'’-]*\.?(?:[ \t]\(?[^\W\d_][\w.'’-]*\)?){0,3}"
    r"(?:[ \t]\d{1,2}(?=[ \t]*[:：]))?(?:[ \t]\([^\W\d_][\w.'’ -]{1,40}\))?"
)
_STAMP = r"[\[(]\s*\d[\d/.:,\-T APMapmZ+]{2,30}[\])]"
_BARE_STAMP = (
    r"(?:\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4},?\s)?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s?[AaPp][Mm])?(?=\s)"
)
_BOLD = r"(?:\*\*)?"
_TURN_LINE = re.compile(
    rf"^[ \t]*(?:>>[ \t]*)?(?:(?:{_STAMP}"
    rf"|{_BARE_STAMP})[ \t]*(?:-[ \t]*)?)?(?:#{{1,4}}[ \t]*)?{_BOLD}(?P<name>{_NAME}){_BOLD}"
    rf"[ \t]*(?:{_STAMP})?[ \t]*(?::{_BOLD}(?=\s|$)|：)[ \t]*",
    re.MULTILINE,
)
_IRC_LINE = re.compile(
    rf"^[ \t]*(?:{_STAMP}[ \t]*|\d{{1,2}}:\d{{2}}(?::\d{{2}})?[ \t]+)?<(?P<name>@?\w[\w.-]{{0,30}})>[ \t]+",
    re.MULTILINE,
)
_INLINE = re.compile(
    r"(?<=[.!?…。！？\"”])\s+(?=(?P<name>[^\W\d_a-z][\w'’-]{1,20}(?:[ ][^\W\d_a-z][\w'’-]{1,20})?):\s)"
)
_SENTENCE_LIKE = re.compile(r"[.!?。！？…]\s*$|\b(?:I|I'm|I've|you|we|my|your)\b")

# Words that stand before a colon without being anybody's name; one of them in a prefix is enough to refuse it.


def _plausible(name: str) -> bool:
    """Whether the words before a colon can be a speaker: a role, or capitalised words none of which is a label."""
    bare = re.sub(r"\s*\([^()]*\)$", "", name.strip().strip("@")) or name
    if role_of(bare):
        return True
    words = bare.replace("(", " ").replace(")", " ").split()
    titled = len(words) > 1 and words[0].strip(".").casefold() in PERSON_STARTS
    if not words or len(bare) > 40:
        return False
    if not titled and any(word.strip(".,'’").casefold() in LABELS for word in words):
        return False
    if bare[0] > "\u2e7f":
        return _plausible_cjk(bare)
    small = ("de", "van", "von", "der", "da", "la", "del")
    return all(word[0].isupper() or word in small or (word.isdigit() and n) for n, word in enumerate(words))


def _plausible_cjk(name: str) -> bool:
    if name in LABELS:
        return False
    if name.endswith(("さん", "くん", "ちゃん", "老师", "先生", "님", "씨")):
        return True
    chinese = 2 <= len(name) <= 4 and (name[0] in SURNAMES or (name[0] in "阿小老" and len(name) <= 3))
    return chinese or name in GIVEN_NAMES_JA or (len(name) in (2, 3) and name[-1] in GIVEN_NAME_ENDS_JA)


_LABEL_ENDS_CJK = (
    "料品種种価价金量例由目的向日時所地名物件点数度式法率場部会費額表号题題论論果因注记記录錄要求案项項标標型类類员員者"
)
_TOLD_CJK = re.compile(
    r"(?:です|ます|ました|でした|ません|ください|だよ|だね|[たるいう]よ?ね?|ない|[了吗呢吧啊呀嘛])[。！？!?]*\s*$|我|私|僕|俺|[。！？]\s*$"
)


def _line_turns(text: str) -> list[Turn] | None:
    if ":" not in text and "：" not in text and "<" not in text:
        return None
    marks = [match for match in _TURN_LINE.finditer(text)] + [match for match in _IRC_LINE.finditer(text)]
    marks.sort(key=lambda match: match.start())
    counts = Counter(match["name"].strip().casefold() for match in marks)
    lines = sum(1 for line in text.splitlines() if line.strip())
    repeated = sum(count for count in counts.values() if count > 1)
    labelled = any(_is_label(name) and name not in _VOICES for name in counts)
    heads_cjk = {match["name"].strip() for match in marks if match["name"][:1] > "\u2e7f"}

    def accepted(match: re.Match[str]) -> bool:
        name = match["name"].strip()
        stamped = match.group().lstrip()[:1] in "[(0123456789"
        if "<" in match.group() or stamped or _plausible(name):
            return True
        if name.casefold() in _VOICES:
            return len(marks) > 1 and not labelled
        if name[0] > "\u2e7f":
            # Beside a voice that is surely one, every line's head is one; and so is a short head before a sentence.
            if lines == len(marks) and len(name) <= 3 and name not in LABELS and name[-1] not in _LABEL_ENDS_CJK:
                line = text[match.end() :].split("\n", 1)[0]
                return _TOLD_CJK.search(line) is not None
            return len(name) <= 4 and name not in LABELS and lines == len(marks) and any(map(_plausible, heads_cjk))
        # A handle in small letters or a name in a script without capitals is one when it keeps coming back.
        labels = any(word.strip(".,").casefold() in LABELS for word in name.split())
        often = counts[name.casefold()] > 1 or (lines == len(marks) and not labelled)
        return not labels and len(name) <= 24 and often and repeated * 2 >= lines

    heads = [match for match in marks if accepted(match)]
    if not heads or not _is_conversation(text, heads, lines):
        return None
    turns: list[Turn] = []
    before = text[: heads[0].start()].strip()
    if before:
        turns.append(Turn("", "", before))
    ends = [match.start() for match in heads[1:]] + [len(text)]
    for match, end in zip(heads, ends, strict=True):
        name = " ".join(match["name"].split())
        turns.extend(_inline_turns(name, text[match.end() : end].strip()))
    return turns


_VOICES = frozenset({"host", "guest", "moderator", "interviewer", "speaker", "narrator", "presenter", "operator"})
"""Words for voices of a transcript that may also be labels."""


def _is_label(name: str) -> bool:
    return any(word.strip(".,") in LABELS for word in name.split())


def _is_conversation(text: str, heads: list[re.Match[str]], lines: int) -> bool:
    names = Counter(match["name"].strip().casefold() for match in heads)
    first = not text[: heads[0].start()].strip()
    if len(heads) >= 3 and len(names) == len(heads):
        # All different and with short values: a form (`Height: 180`), not a room full of people.
        ends = [match.start() for match in heads[1:]] + [len(text)]
        bodies = [text[match.end() : end].strip() for match, end in zip(heads, ends, strict=True)]
        if not any(role_of(name) for name in names) and sum(1 for b in bodies if _talks(b)) * 2 < len(bodies):
            return False
    return first or max(names.values()) > 1 or len(heads) * 4 >= lines


def _talks(body: str) -> bool:
    return _SENTENCE_LIKE.search(body) is not None or is_filler(body)


def _inline_turns(name: str, body: str) -> Iterator[Turn]:
    """Split `Ana: I prefer Go. Ben: I prefer Rust.` on one line; a turn that merely holds a colon stays whole."""
    cuts = [0]
    names = [name]
    if ":" in body and not role_of(name):
        for match in _INLINE.finditer(body):
            if _plausible(match["name"]):
                cuts.append(match.end())
                names.append(match["name"])
    cuts.append(len(body))
    bare = re.sub(r"\s*\([^()]*\)", "", name) or name
    for index, (start, end) in enumerate(pairwise(cuts)):
        piece = body[start:end].strip()
        if index:
            said = piece[len(names[index]) + 1 :].strip()
            yield Turn(names[index], role_of(names[index]), said)
        else:
            yield Turn(bare, role_of(bare), piece, label="" if bare == name else name)


# --- JSON -------------------------------------------------------------------------------------------------------

_CONTENT_KEYS = ("content", "text", "message", "utterance", "body", "value", "parts")
_NAME_KEYS = ("name", "speaker", "author", "sender", "from", "user", "username", "role", "type")
_TIME_KEYS = ("timestamp", "time", "date", "created_at", "createdAt", "datetime", "ts", "sent_at")
_LIST_KEYS = ("messages", "conversation", "turns", "history", "dialogue", "transcript")


def _json_turns(text: str, utc_offset_minutes: int) -> list[Turn] | None:
    objects = _objects(text)
    if objects is None:
        return None
    if len(objects) == 1:
        for key in _LIST_KEYS:
            inner = objects[0].get(key)
            if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
                objects = inner
                break
    turns: list[Turn] = []
    for item in objects:
        speaker = _first_string(item, _NAME_KEYS)
        content = next((item[key] for key in _CONTENT_KEYS if item.get(key) is not None), None)
        if content is None or (not speaker and not turns and len(objects) == 1):
            return None
        role = role_of(str(item.get("role") or "")) or role_of(speaker)
        at, offset = _instant(next((item[key] for key in _TIME_KEYS if item.get(key)), None), utc_offset_minutes)
        turns.append(Turn(speaker, role, _plain(content).strip(), at, offset))
    return turns if any(turn.speaker for turn in turns) else None


def _objects(text: str) -> list[dict[str, Any]] | None:
    """The objects of an array, of lines, or of a piece of either (a chunk may begin or end between two turns)."""
    decoder = json.JSONDecoder()
    position = 0
    found: list[dict[str, Any]] = []
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, list):
        return whole if whole and all(isinstance(item, dict) for item in whole) else None
    if isinstance(whole, dict):
        return [whole]
    while True:
        while position < len(text) and text[position] in " \t\r\n,[]":
            position += 1
        if position == len(text):
            return found or None
        try:
            item, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        if not isinstance(item, dict):
            return None
        found.append(item)


def _first_string(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = item.get(key)
        if isinstance(value, dict):
            value = value.get("name") or value.get("role")
        if isinstance(value, str) and value.strip() and len(value) <= 80:
            return re.sub(r"\s+", " ", value).strip()
    return ""


def _plain(content: Any) -> str:
    """The words of a content value: a string, or a list of parts of which only text parts speak."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(_plain, content) if part)
    if isinstance(content, dict):
        return (
            _plain(content.get("text") or content.get("content") or "")
            if content.get("type", "text") in ("text", "input_text", "output_text")
            else ""
        )
    return ""


def _instant(value: Any, utc_offset_minutes: int) -> tuple[int | None, int | None]:
    """Microseconds and zone of a turn's time: ISO text, or seconds or milliseconds since the epoch."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None, None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        else:
            moment = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
            return _microseconds(moment), None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone(timedelta(minutes=utc_offset_minutes)))
        offset = moment.utcoffset()
        return _microseconds(moment), None if offset is None else int(offset.total_seconds() // 60)
    except (ValueError, OverflowError, OSError):
        return None, None


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# --- context ----------------------------------------------------------------------------------------------------

_CONTEXT_NAME = r"(?P<name>[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,2})"
_CONTEXT_FORMS = (
    re.compile(
        r"\b(?i:chat|conversation|call|dm|message|interview|talk|discussion|e-?mail|thread|session|meeting|note|notes|"
        rf"letter|text|voice message)s? (?:with|from|by) {_CONTEXT_NAME}(?![\w]|,? and\b| &)"
    ),
    re.compile(
        # Not in German, where every noun has a capital: "Gespräch mit Kunden" names nobody.
        r"\b(?i:chat|conversación|charla|llamada|mensaje|entrevista|reunión|conversation|appel|message|entretien|réunion)"
        rf" (?:con|avec) {_CONTEXT_NAME}(?![\w]|,? (?:y|e|et)\b| &)"
    ),
    re.compile(r"(?P<name>[\uac00-\ud7af]{2,4}?)(?:님|씨)?(?:와|과|랑)의? ?(?:대화|채팅|통화)"),
    re.compile(rf"\b(?i:speaker|user|author|from|sender|narrator)(?: is|:)\s*{_CONTEXT_NAME}"),
    re.compile(
        rf"^{_CONTEXT_NAME}(?:'s (?:notes?|message|diary|journal|words)| (?:speaking|says|said|writes|wrote|speaks))\b"
    ),
    re.compile(r"(?:与|和|跟|來自|来自)(?P<name>[\u4e00-\u9fff]{2,4}?)(?:的)?(?:对话|聊天|谈话|通话|消息|對話)"),
    re.compile(r"(?P<name>[\u3040-\u30ff\u4e00-\u9fff]{2,8}?)(?:さん)?との(?:会話|チャット|通話)"),
)


def speaker_in_context(context: str) -> str:
    """The one person a context says is speaking ("chat with Ana" -> "Ana"); "" when it names none or several."""
    for form in _CONTEXT_FORMS:
        match = form.search(context)
        if match and match["name"].casefold() not in LABELS:
            return match["name"]
    return ""

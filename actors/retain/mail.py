"""An e-mail as turns: who wrote what, its quoted replies with whom they quote, and what of it is no talk.

Headers, salutations, signatures, disclaimers and the lines that introduce a quotation are left out with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from recalld.actors.retain.extraction import Dropped
from recalld.actors.retain.turns import Turn

_FROM = r"From|Von|De|Da|Van|发件人|寄件人|寄件者|差出人|送信者|보낸 ?사람"
_OTHER = (
    r"To|Cc|Bcc|Subject|Date|Sent|Reply-To|An|Kopie|Betreff|Datum|Gesendet|Para|Asunto|Fecha|Enviado|À|Objet|Envoyé|"
    r"收件人|抄送|主题|主題|主旨|日期|时间|發送時間|发送时间|宛先|件名|日時|送信日時|"
    r"받는 ?사람|제목|날짜|Message-ID|In-Reply-To|X-[\w-]+|"
    r"MIME-Version|Content-[\w-]+|References|Importance|Attachments?"
)
_HEADER = re.compile(rf"^[ \t]*\**(?P<key>{_FROM}|{_OTHER})\**[ \t]*[:：]\**[ \t]*(?P<value>[^\n]*)$", re.IGNORECASE)
_IS_FROM = re.compile(rf"^(?:{_FROM})$", re.IGNORECASE)
_IS_DATE = re.compile(r"^(?:date|sent|datum|gesendet|fecha|enviado|日期|时间|日時|发送时间|送信日時)$", re.IGNORECASE)
_IS_SUBJECT = re.compile(r"^(?:subject|betreff|asunto|objet|主题|主題|主旨|件名|제목)$", re.IGNORECASE)
_RE = re.compile(r"^(?:(?:re|fwd?|aw|wg|rv|答复|回复|转发|返信)\s*[:：]\s*)+", re.IGNORECASE)
_ADDRESS = re.compile(r"\s*[<\[(]?[\w.+-]+@[\w.-]+[>\])]?|\s*<[^<>]*>")

_INTRODUCES = re.compile(
    r"^[> \t]*(?:On\b(?P<when>.{4,120}?)(?:,"
    r"| at [\d:]+\s*(?:[AaPp][Mm])?,?)?\s(?P<who>[^\W\d_][\w.'’ -]{1,50}?)\s*(?:<[^>]*>)?\s*wrote:"
    r"|(?:Am|El|Le)\b.{4,120}?\b(?:schrieb|escribió"
    r"|a écrit)\b[ ]*(?P<who2>[^\W\d_][\w.'’ -]{0,50}?)?\s*(?:<[^>]*>)?\s*:"
    r"|(?P<who3>[^\W\d_][\w.'’ -]{1,40}?) (?:wrote|schrieb|escribió)(?: on [^:\n]{4,60})?:"
    r"|.{0,60}?(?P<who4>[\u4e00-\u9fff]{2,4})\s*(?:<[^>]*>)?\s*写道[:：])\s*$"
)
_NO_NAME = re.compile(
    r"^(?:(?:\d[\d:.,/-]*|[AaPp]\.?[Mm]\.?|at|um|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|(?:mon|tue"
    r"|wed|thu|fri|sat|sun)\w*)[,.]? +)+",
    re.IGNORECASE,
)
_ORIGINAL = re.compile(
    r"^\s*-{2,}\s*(?:original message|forwarded message|ursprüngliche nachricht|mensaje original|原始邮件"
    r"|元のメッセージ)\s*-{2,}\s*$",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"^[ \t]*((?:>[ \t]?)+)")
_DASHES = re.compile(r"^\s*(?:--|—|__+)\s*$")
_CLOSING = re.compile(
    r"^\W*(?:(?:best|kind|warm|many|with (?:best|kind|warm)|warmest|kindest)(?: (?:regards|wishes|thanks))?|regards"
    r"|cheers|sincerely(?: yours)?|"
    r"yours(?: (?:sincerely|truly|faithfully))?|cordially|respectfully|all the best|take care|love|xoxo"
    r"|thanks(?: (?:a lot|again|so much|in advance))?|"
    r"thank you(?: (?:very much|again|in advance))?|many thanks|talk soon|see you|ciao|"
    r"(?:un )?(?:cordial )?saludos?(?: cordiales)?|un abrazo|abrazos|atentamente|"
    r"(?:mit )?(?:freundlichen|besten|lieben|herzlichen) grüßen?|(?:liebe|viele|beste|herzliche|schöne) grüße|grüße"
    r"|gruß|lg|mfg|vg|"
    r"cordialement|bien à vous|amicalement|"
    r"祝好|此致|敬礼|顺祝商祺|祝(?:工作|生活|一切)\S{0,4}|谢谢|"
    r"よろしくお願い(?:いたし|し)?ます|どうぞよろしくお願い(?:いたし|し)?ます|敬具|以上)\W*$",
    re.IGNORECASE,
)
_SALUTATION = re.compile(
    r"^\W*(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening)|greetings|hola|estimad[oa]s?|querid[oa]s?"
    r"|buen[oa]s (?:días|tardes)|hallo|"
    r"liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen)|moin|bonjour|cher|chère|salut|ciao)\b[^.!?\n]{0,40}[,:!]?"
    r"|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?[,:]|[\u4e00-\u9fff]{1,6}(?:好|您好|你好)[，,：:！!]?"
    r"|[\u3040-\u30ff\u4e00-\u9fff]{1,8}(?:様|さん)[、，]?)\s*$",
    re.IGNORECASE,
)
_NOT_TALK = re.compile(
    r"\b(?:confidential(?:ity)?(?: notice)?\b.{0,80}\b(?:intended|recipient|addressee|privileged|message|e-?mail)"
    r"|intended (?:only|solely) for|"
    r"(?:received|receive) this (?:e-?mail|message|communication) in error|notify the sender"
    r"|not the intended recipient|"
    r"(?:please )?do not (?:reply|respond)(?: to this)?|automated (?:message|e-?mail|reply|response)|automatic reply"
    r"|out of office reply|"
    r"unsubscribe (?:here|now|link|at any time|from (?:this|these|our|future))|(?:click|here|link|reply"
    r"|wish)\b[^.]{0,60}"
    r"\bunsubscribe|(?:currently )?out of (?:the )?office and will|view (?:this e-?mail )?in (?:your )?browser"
    r"|sent from my|get the app|download (?:the|our) app"
    r"|virus[- ]free|scanned for viruses|"
    r"consider the environment|this (?:e-?mail|message) (?:and any attachments )?(?:is|are|may be"
    r"|may contain) (?:confidential|intended|privileged)|"
    r"all rights reserved|diese (?:e-?mail|nachricht) (?:ist|enthält) vertraulich|von meinem \w+ gesendet"
    r"|este (?:correo|mensaje) es confidencial|"
    r"enviado desde mi)\b|本邮件.{0,20}(?:保密|机密)|请勿(?:直接)?回复|自动回复|このメールは自動|秘密情報",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(slots=True)
class Mail:
    """A mail read: its turns, the oldest first, and what was left out."""

    turns: list[Turn] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    subject: str = ""


def read_mail(text: str) -> Mail | None:
    """The text as an e-mail, None when it has no mail headers on top."""
    lines = text.strip().splitlines()
    headers, body = _headers(lines)
    if not headers:
        return None
    return _read(headers, lines[body:])


def is_disclaimer(paragraph: str) -> bool:
    """Whether a paragraph is what mail programs add by themselves."""
    return _NOT_TALK.search(paragraph) is not None


def _headers(lines: Sequence[str]) -> tuple[dict[str, str], int]:
    """The headers on top by kind (`from`, `date`, `subject`), and the index of the first line behind them."""
    found: dict[str, str] = {}
    count = end = 0
    for line in lines:
        match = _HEADER.match(line)
        if match is None and not (count and line[:1] in (" ", "\t") and line.strip()):
            break
        end += 1
        if match is None:
            continue  # a folded header
        count += 1
        key, value = match["key"], match["value"].strip()
        if _IS_FROM.match(key) and "from" not in found:
            found["from"] = value
        elif _IS_DATE.match(key):
            found["date"] = value
        elif _IS_SUBJECT.match(key):
            found["subject"] = value
    if count < 2 or "from" not in found or (end < len(lines) and lines[end].strip()):
        return {}, 0
    return found, end


def _read(headers: dict[str, str], body: Sequence[str]) -> Mail:
    mail = Mail(subject=_RE.sub("", headers.get("subject", "")).strip())
    at, offset = _instant(headers.get("date", ""))
    sender = name_of(headers["from"])
    _Reader(mail, sender, at, offset).read(body)
    mail.turns.reverse()  # what is quoted was said before
    return mail


def name_of(header: str) -> str:
    """The person's name of an address header; "" for a bare address."""
    bare = _ADDRESS.sub("", header).strip(" \"'“”,;")
    return " ".join(bare.split()) if any(map(str.isalpha, bare)) and len(bare) <= 60 else ""


def _instant(value: str) -> tuple[int | None, int | None]:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None, None
    if moment.tzinfo is None:
        return None, None
    offset = moment.utcoffset()
    micros = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    return micros, None if offset is None else int(offset.total_seconds() // 60)


class _Reader:
    """Goes through a body line by line: own words, quoted words by depth, and what ends a message."""

    def __init__(self, mail: Mail, sender: str, at: int | None, offset: int | None) -> None:
        self._mail = mail
        self._sender = sender
        self._at = at
        self._offset = offset
        self._quoted = ""  # whom the quotation at depth 1 quotes

    def read(self, body: Sequence[str]) -> None:
        depth_now = 0
        held: list[str] = []
        for number, line in enumerate(body):
            introduces = _INTRODUCES.match(line)
            if introduces:
                self._end(held, depth_now)
                held, depth_now = [], max(1, _depth(line) + (0 if _depth(line) else 1))
                who = next((introduces[k] for k in ("who", "who2", "who3", "who4") if introduces[k]), "")
                self._quoted = _NO_NAME.sub("", who).strip()
                self._mail.dropped.append(Dropped(line, "quoted mail"))
                continue
            if _ORIGINAL.match(line) or (number and _HEADER.match(line) and _headers(body[number:])[0]):
                self._end(held, depth_now)
                rest = list(body[number + 1 :]) if _ORIGINAL.match(line) else list(body[number:])
                while rest and not rest[0].strip():
                    rest.pop(0)
                headers, start = _headers(rest)
                self._mail.dropped.append(Dropped("\n".join(rest[:start]) or line, "quoted mail"))
                if headers:
                    inner = _read(headers, rest[start:])
                    self._mail.turns += reversed(inner.turns)
                    self._mail.dropped += inner.dropped
                else:
                    self._quoted = ""
                    self._end(rest, 1)
                return
            depth = _depth(line)
            if depth != depth_now and line.strip():
                self._end(held, depth_now)
                held, depth_now = [], depth
            held.append(_QUOTE.sub("", line) if depth else line)
        self._end(held, depth_now)

    def _end(self, lines: list[str], depth: int) -> None:
        """Take the lines of one voice in."""
        speaker = self._sender if depth == 0 else self._quoted if depth == 1 else ""
        kept = self._without_signature(lines, speaker)
        while kept and (not kept[0].strip() or _SALUTATION.match(kept[0])):
            if kept[0].strip():
                self._mail.dropped.append(Dropped(kept[0], "filler"))
            kept.pop(0)
        paragraphs = []
        for paragraph in re.split(r"\n[ \t]*\n", "\n".join(kept)):
            if not paragraph.strip():
                continue
            if is_disclaimer(paragraph):
                self._mail.dropped.append(Dropped(paragraph, "disclaimer"))
            else:
                paragraphs.append(paragraph.strip())
        if paragraphs:
            at, offset = (self._at, self._offset) if depth == 0 else (None, None)
            self._mail.turns.append(Turn(speaker, "", "\n\n".join(paragraphs), at, offset))

    def _without_signature(self, lines: list[str], speaker: str) -> list[str]:
        names = {word.strip(".,").casefold() for word in speaker.split()}
        for number, line in enumerate(lines):
            rest = sum(1 for one in lines[number:] if one.strip())
            words = [word.strip(".,-").casefold() for word in line.split()]
            own_name = 0 < len(words) <= 4 and bool(names) and all(word in names for word in words)
            bare = line.strip()
            closing = _CLOSING.match(line) and (rest <= 8)
            if (number and (closing or (own_name and rest <= 8))) or _DASHES.match(line):
                kept, cut = lines[:number], lines[number:]
                signature = [one for one in cut if one.strip()]
                if signature and bare:
                    self._mail.dropped.append(Dropped("\n".join(signature), "signature"))
                return kept
        return list(lines)


def _depth(line: str) -> int:
    match = _QUOTE.match(line)
    return match.group(1).count(">") if match else 0

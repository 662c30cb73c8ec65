"""Whether the words of two claims about one attribute can be compared at all. Pure.

Claims are read shallowly: `my brother is Tom` and `my brother is late` say the same attribute of the same subject, and
`I don't like tea with milk` denies that tea is liked. A claim that is ended leaves recall, so what merely looks like a
change has to leave the older claim alone. Both then stay, each with its date.
"""

from __future__ import annotations

import re

DAY, CLOCK, NUMBER, NAME, OTHER = "day", "clock", "number", "name", "other"

_TIGHT = frozenset({"age", "nationality", "marital_status", "status", "diet", "smokes"})
"""Attributes whose values come from a closed list: every second value is another state of the same."""
_SEVERAL = frozenset({"brother", "sister", "son", "daughter", "dog", "cat", "car", "hobby", "goal"})
"""What one may have two of: only words that say so replace the first."""
_CARRIED = frozenset({"lives_in", "works_at", "role"})
"""Attributes for which a word of change is enough, whatever the values look like."""
_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY = re.compile(
    rf"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|{_MONTHS}|today|tonight|tomorrow|yesterday|weekend)\b"
    r"|\b(?:19|20)\d\d\b|\d\s*[月日号]|星期|周[一二三四五六日]|曜日",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\b\d{1,2}(?::\d\d|\s*[ap]\.?m\b| o'?clock)|\bnoon\b|\bmidnight\b|\d\s*[点時]", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:ein|eine[nmrs]?|un|una|une|der|die|das|de[mn])\s*$", re.IGNORECASE)
_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|currently|these days|nowadays|became|become|promoted|changed|moved|switched|renamed"
    r"|replaced|new|instead|again|since|correction|actually|turns out|as of|from now on|ahora|ya no|jetzt|inzwischen"
    r"|nun|mittlerweile)\b|现在|現在|如今|改成|改为|換|换|今は",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"\b(?:also|as well|additionally|part[- ]time|on the side|sometimes|occasionally|partly|weekends?|weekdays?"
    r"|evenings?|during the (?:week|day|summer|winter)|in (?:summer|winter|my dreams?)|(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)days|tambi[eé]n|auch|zus[aä]tzlich)\b|\btoo\s*[.!]*$|\bjoined\b[^,.;]* for \b|[也还還]",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\s+(?:with|without|before|after(?! all)|at(?! all\b| the moment| present)|in(?! the least| general| fact)|on"
    r"|during|when|while|if|unless|as (?:much|often)|every|for(?! now| years| ages| a )|that|which|who|from|alone"
    r"|outside|except)\b",
    re.IGNORECASE,
)
_ON_A_DAY = re.compile(
    rf"\s+(?:in|on|from|since) (?:the )?(?:(?:early|late|mid) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\d"
    rf"|(?:{_MONTHS})\b)",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(
    r"(?:[我他她]|自己|朋友|父母|爸妈|亲戚)?(?:的)?(?:家里?|酒店|宾馆|旅馆|宿舍|学校|公司|公寓|办公室|附近|这里|那里|外面|城里|乡下|海边|山上|楼上|楼下)"
    r"|家|自宅|実家|会社|ホテル|寮|近く|ここ|そこ|집|회사|호텔|기숙사"
)
_GONE = re.compile(r"\b(?:sold|quit|left|resigned|gave up)\b", re.IGNORECASE)
_BUT = re.compile(r"\b(?:but|sondern|sino)\b|而是", re.IGNORECASE)


def replaces(attribute: str, new: tuple[str, str], old: tuple[str, str]) -> bool:
    """Whether another value takes the place of the old one. Each side is (text, value as claims are compared by)."""
    text, value = new
    if _BESIDE.search(text):
        return False
    if attribute in _TIGHT or attribute.startswith("favourite:"):
        return True
    change = _CHANGE.search(text) is not None
    if attribute in _SEVERAL:
        return change
    kinds = kind(text, value), kind(*old)
    if kinds[0] == kinds[1] and kinds[0] != OTHER:
        # A thing may both be something and be somewhere.
        return attribute != "is" or _placed(text, value) == _placed(*old)
    return change and (attribute in _CARRIED or kinds == (OTHER, OTHER))


def denies_all(attribute: str, text: str, value: str) -> bool:
    """Whether a denial is of the whole claim, and not of a part: `with milk`, `on Mondays`, `as much as opera`."""
    behind = _behind(text, attribute.partition(":")[2] or value)
    if behind is None or _LIMIT.match(behind) is None:
        return True
    return _ON_A_DAY.match(behind) is not None or _GONE.search(text) is not None


def says_more(attribute: str, text: str, value: str) -> bool:
    """Whether a denied claim goes on with what holds instead (`no Vim but Helix`), which must not end with it."""
    behind = _behind(text, attribute.partition(":")[2] or value)
    return behind is not None and _BUT.search(behind) is not None


def kind(text: str, value: str) -> str:
    """What sort of thing a value is, as it is written in its text."""
    at = text.casefold().find(value)
    if not value or at < 0:
        return OTHER
    written = text[at : at + len(value)]
    if _DAY.search(written):
        return DAY
    if _CLOCK.search(written):
        return CLOCK
    if any(character.isdigit() for character in written):
        return NUMBER
    if written[:1].isupper() and not _ARTICLE.search(text[:at]):
        return NAME
    # Scripts without capitals do not tell names from other words.
    return NAME if written[0] > "\u2e7f" and _ANYWHERE.fullmatch(written) is None else OTHER


def _placed(text: str, value: str) -> bool:
    return re.search(r"\b(?:in|at|bei|en) (?:the )?$", text[: max(0, text.casefold().find(value))]) is not None


def _behind(text: str, value: str) -> str | None:
    at = text.casefold().find(value) if value else -1
    return None if at < 0 else text[at + len(value) :]

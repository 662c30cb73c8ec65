"""What a sentence claims in Chinese, Japanese, Spanish and German: the attributes people state of themselves.

A rule is a key, what its value says (or the value itself), and one pattern with the groups `s` (the subject; without
one the speaker is meant), `n` (what denies it) and `v`. A key that ends in a colon takes the value into itself.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from recalld.actors.retain import languages


class Claim(NamedTuple):
    """`subject` is "I" for the speaker, else the name or kin as written."""

    subject: str
    attribute: str
    value: str
    denied: bool


class _Rule(NamedTuple):
    key: str
    says: str
    pattern: re.Pattern[str]


# --- whose attribute it is --------------------------------------------------------------------------------------------

_ZH = (
    r"(?:^|[，,。；;])\s*(?P<s>我(?!们)|(?:我的?)?(?:弟弟|妹妹|哥哥|姐姐|爸爸|妈妈|父亲|母亲|丈夫|妻子|儿子|女儿|朋友|同事|老板|男友|女友)"
    r"(?:[\u4e00-\u9fff]{2,3}?)?|[\u4e00-\u9fff]{2,3}?|[A-Z][\w-]*)\s*"
    r"(?:现在|目前|一直|还|也|已经|从来|平时|真的|其实)*"
)
_JA = (
    r"(?:^|[、。])\s*(?:(?P<s>私|僕|俺|わたし|ぼく|あたし|(?:私の|僕の)?(?:妹|弟|兄|姉|父|母|夫|妻|息子|娘|友人|同僚|上司)(?:の[^\sはがも、]{1,6})?"
    r"|[^\sはがも、。]{1,8}?(?:さん|くん|ちゃん)?)(?:は|も|が)、?)?(?:今|現在|もう|ずっと|まだ|今は)?、?"
)
_NO_NAME = r"(?!(?:Ya|No|Nunca|Me|Mi|Yo|Ahora|Ich|Mein|Meine|Nicht|Pero|Aber)\b)"
_NAME = rf"{_NO_NAME}[A-ZÁÉÍÓÚÑÄÖÜ][\w'’-]*(?: [A-ZÁÉÍÓÚÑÄÖÜ][\w'’-]*)?"
_ES = (
    rf"(?:^|[,;] |\b(?:y|pero|que) )(?:(?P<s>[Yy]o|(?:[Mm]i|[Ss]u) [a-zñáéíóú]+(?: {_NAME})?|{_NAME}) )?"
    r"(?:ahora |actualmente |todavía |también )?"
)
_DE = rf"(?:^|[,;] |\b(?:und|aber|dass) )(?P<s>[Ii]ch|[Mm]eine?r? [A-ZÄÖÜ]\w+(?: {_NAME})?|{_NAME}) "
_ES_V = r"(?P<v>[^,.;!?\n]+?)(?= como\b| desde\b| porque\b| y\b| pero\b| con\b| cuando\b| hace\b| más\b|[,.;!?\n]|$)"
_DE_V = r"(?P<v>[^,.;!?\n]+?)(?= seit\b| weil\b| und\b| aber\b| mit\b| wenn\b| mehr\b|[,.;!?\n]|$)"
_ZH_V = r"(?P<v>[^，。！？,;；\n]{1,16}?)"
_JA_V = r"(?P<v>[^、。！？\n]{1,16}?)"
_ES_N = r"(?P<n>[Yy]a no |[Nn]o |[Nn]unca )?"

_TABLE: dict[str, tuple[tuple[str, str, str], ...]] = {
    "zh": (
        ("lives_in", "", rf"{_ZH}(?P<n>不再|不|没有|没)?住在{_ZH_V}(?:了)?(?=[，。！,]|$)"),
        ("lives_in", "", rf"{_ZH}(?:搬到|搬去|定居在?|移居){_ZH_V}(?:了)?(?=[，。！,]|$)"),
        ("works_at", "", rf"{_ZH}(?P<n>不再|不|没有|没)?在{_ZH_V}(?:工作|上班|任职|就职|当\w+)"),
        (
            "favourite:",
            "",
            r"(?P<s>我|他|她)?(?:的)?最(?:喜欢|爱)的(?P<k>[^是，。]{1,8}?)(?:现在|目前|如今)?是(?P<v>[^，。！？\n]{1,16})",
        ),
        ("likes:", "dislikes", rf"{_ZH}(?:讨厌|很讨厌|最讨厌|受不了|反感){_ZH_V}(?=[，。！,]|$)"),
        (
            "likes:",
            "likes",
            rf"{_ZH}(?P<n>不再|不太|并不|不)?(?:很|最|非常|特别|超级?|挺|比较)?(?:喜欢|热爱|喜爱){_ZH_V}(?:了)?(?=[，。！,]|$)",
        ),
        ("allergic_to:", "", rf"{_ZH}(?P<n>不)?对{_ZH_V}(?:严重|有点|很)?过敏"),
        ("birthday", "", r"(?P<s>我|他|她)?的?生日(?:是|在){v}".replace("{v}", r"(?P<v>[^，。！？\n]{2,12})")),
        ("name", "", r"(?:^|[，,。])(?P<s>我)(?:的名字)?(?:叫|名叫)(?P<v>[\u4e00-\u9fffA-Za-z·]{2,12})(?=[，。！,]|$)"),
        ("uses:", "", rf"{_ZH}(?P<n>不再|不|没)?(?:在用|使用|用的是|改用){_ZH_V}(?:了)?(?=[，。！,]|$)"),
        ("drinks:", "", rf"{_ZH}(?P<n>不再|从不|不)?喝{_ZH_V}(?:了)?(?=[，。！,]|$)"),
        ("eats:", "", rf"{_ZH}(?P<n>不再|从不|不)?吃{_ZH_V}(?:了)?(?=[，。！,]|$)"),
    ),
    "ja": (
        ("lives_in", "", rf"{_JA}{_JA_V}に(?:住んで(?P<n>い?ない|い?ません)?|引っ越し)"),
        ("works_at", "", rf"{_JA}{_JA_V}(?:で働いて(?P<n>い?ない|い?ません)?|に勤めて|に勤務して)"),
        ("likes:", "dislikes", rf"{_JA}{_JA_V}(?:が|は)(?:大?嫌い|苦手)"),
        (
            "likes:",
            "likes",
            rf"{_JA}{_JA_V}(?:が|は)(?:大?好き)(?P<n>では(?:ない|ありません)|じゃ(?:ない|ありません)|でなくな)?",
        ),
        ("allergic_to:", "", rf"{_JA}{_JA_V}アレルギー(?:が|です|だ|を)"),
        ("birthday", "", r"誕生日は(?P<v>[^、。]{2,12}?)(?:です|だ|。|$)"),
        ("favourite:", "", r"好きな(?P<k>[^は、。]{1,8})は(?P<v>[^、。]{1,14}?)(?:です|だ|。|$)"),
        ("uses:", "", rf"{_JA}{_JA_V}を使って(?P<n>い?ない|い?ません)?"),
    ),
    "es": (
        ("lives_in", "", rf"{_ES}{_ES_N}(?:[Vv]iv[oe]|[Rr]esid[oe]) en {_ES_V}"),
        ("lives_in", "", rf"{_ES}(?:me |[Mm]e |se |[Ss]e )(?:mudé|mudó|he mudado|ha mudado) a {_ES_V}"),
        ("works_at", "", rf"{_ES}{_ES_N}(?:[Tt]rabaj[oa]) (?:en|para) {_ES_V}"),
        ("favourite:", "", rf"(?P<s>[Mm]i) (?P<k>[a-zñáéíóú]+) (?:favorit[oa]|preferid[oa]) (?:ahora )?es {_ES_V}"),
        ("likes:", "dislikes", rf"{_ES}(?:[Oo]di[oa]|[Dd]etest[oa]) {_ES_V}"),
        ("likes:", "likes", rf"{_ES}(?P<n>[Yy]a no |[Nn]o )?[Mm]e (?:gustan?|encantan?)(?: mucho)? {_ES_V}"),
        (
            "allergic_to:",
            "",
            rf"{_ES}{_ES_N}(?:[Ss]oy|es|[Tt]engo alergia|tiene alergia) (?:alérgic[oa] )?a(?:l"
            rf"| la| los| las)? {_ES_V}",
        ),
        ("birthday", "", rf"[Mm]i cumpleaños es (?:el )?{_ES_V}"),
        ("name", "", rf"(?:^|[,;] )[Mm]e llamo {_ES_V}"),
        ("born_in", "", rf"{_ES}(?:[Nn]ací|nació) en (?P<v>{_NAME})"),
        ("uses:", "", rf"{_ES}{_ES_N}(?:[Uu]s[oa]|[Uu]tiliz[oa]) {_ES_V}"),
        (
            "owns:",
            "",
            rf"{_ES}{_ES_N}(?:[Tt]engo|tiene) un[oa]? (?P<v>(?:perr|gat|coche|bici|mot|cas|barc"
            rf"|conej)\w*)",
        ),
    ),
    "de": (
        ("lives_in", "", rf"{_DE}(?:wohn(?:e|t)|leb(?:e|t))(?P<n> nicht(?: mehr)?)?(?: jetzt| nun)? in {_DE_V}"),
        ("lives_in", "", rf"{_DE}(?:bin|ist) (?:\w+ )?nach (?P<v>{_NAME}) (?:um)?gezogen"),
        ("works_at", "", rf"{_DE}arbeite(?:t)?(?P<n> nicht(?: mehr)?)?(?: jetzt| nun)? (?:bei|beim|für) {_DE_V}"),
        ("favourite:", "", rf"(?P<s>[Mm]ein)e? [Ll]ieblings-?(?P<k>\w+) ist (?:jetzt )?{_DE_V}"),
        ("likes:", "dislikes", rf"{_DE}(?:hasse|hasst|verabscheu(?:e|t)) {_DE_V}"),
        ("likes:", "likes", rf"{_DE}(?:mag|liebe|liebt)(?P<n> kein(?:e|en)?| nicht)? {_DE_V}"),
        ("allergic_to:", "", rf"{_DE}(?:bin|ist)(?P<n> nicht)? allergisch (?:gegen|auf) {_DE_V}"),
        ("birthday", "", r"[Mm]ein Geburtstag ist (?:am )?(?P<v>[^,;!?\n]+?)(?=\.?$|[,;!?\n])"),
        ("name", "", rf"(?:^|[,;] )[Ii]ch heiße {_DE_V}"),
        (
            "uses:",
            "",
            rf"{_DE}(?:benutze|benutzt|nutze|nutzt|verwende|verwendet)(?P<n> kein(?:e|en)?"
            rf"| nicht(?: mehr)?)? {_DE_V}",
        ),
        (
            "owns:",
            "",
            rf"{_DE}(?:habe|hat|besitz(?:e|t))(?P<n> kein(?:e|en)?)?(?: ein(?:e|en)?)? (?P<v>Hund"
            rf"|Katze|Auto|Fahrrad|Boot|Haus|Motorrad|Pferd)\b",
        ),
    ),
}
_SPEAKER = frozenset({"我", "私", "僕", "俺", "わたし", "ぼく", "あたし", "yo", "ich", "mi", "mein", "i", ""})
_ENDED = {
    "zh": re.compile(r"不再|再也不"),
    "de": re.compile(r"\b(?:nicht|kein\w*)\b[^.!?]* mehr\b"),
    "es": re.compile(r"(?i)\bya no\b|\bno\b[^.]* más\b"),
    "ja": re.compile(r"(?:ない|ません)(?:。|$)|なくな(?:った|りました)"),
}
_ARTICLE = re.compile(r"(?i)^(?:el|la|los|las|un|una|der|die|das|dem|den|ein|eine|einen|einem)\s+")
_NOBODY = re.compile(
    r"^(?:这|那|它|他们|她们|我们|你|什么|谁|哪|大家|有人|これ|それ|あれ|何|誰|No|Sí|Pero|Y|Aber|Und|Nein|Ja|Es|Das|Der|Die)$"
)

_MAYBE = re.compile(
    r"[^\x00-\x7f]|\b(?:ich|meine?|wohnt|lebt|mag|hat|arbeitet|viv[oe]|trabaj[oa]|gustan?|encantan?|soy|es"
    r"|odi[oa]|tengo|tiene|us[oa]"
    r"|utiliz[oa]|llamo)\b",
    re.IGNORECASE,
)


@cache
def _rules(language: str) -> tuple[_Rule, ...]:
    return tuple(_Rule(key, says, re.compile(pattern)) for key, says, pattern in _TABLE[language])


def read_claim(sentence: str) -> Claim | None:
    """The attribute one sentence states or denies; None when it states none, or in another language."""
    if _MAYBE.search(sentence) is None:
        return None
    language = languages.language_of(sentence)
    if language not in _TABLE or languages.is_hypothetical(sentence, language):
        return None
    for rule in _rules(language):
        match = rule.pattern.search(sentence)
        if match is None:
            continue
        groups = match.groupdict()
        value = _ARTICLE.sub("", groups["v"].strip(" .。!！\"'“”「」")).casefold()
        subject = (groups.get("s") or "").strip()
        if not value or len(value) > 48 or len(value.split()) > 6 or _NOBODY.match(subject):
            continue
        key = f"{rule.key}{groups['k'].strip().casefold()}" if "k" in groups else rule.key
        if key.endswith(":"):
            key += value
        denied = bool(groups.get("n")) or _ENDED[language].search(sentence) is not None
        own = subject.casefold() in _SPEAKER
        return Claim("I" if own else subject, key, rule.says or value, denied)
    return None

"""Names in Chinese, Japanese, Spanish and German, by rules alone: the small model knows English only.

What is sure is named: a place of the lists, a family name with its given name where a person stands, an organisation by
its ending. What is not sure is left unnamed; a wrong name costs more than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from recalld.actors.retain import languages
from recalld.actors.retain import languagewords as w
from recalld.actors.retain.lexicon import NEVER_NAMES, SENTENCE_OPENERS, word_set
from recalld.actors.retain.lexicon_cjk import NO_PERSON, PLACES, SURNAMES, SURNAMES_JA
from recalld.actors.retain.ner_zh import chinese_names

PERSON, ORG, LOCATION, PRODUCT, CONCEPT = "PERSON", "ORG", "LOCATION", "PRODUCT", "CONCEPT"
Found = tuple[int, int, str]

# --- Chinese and Japanese ---------------------------------------------------------------------------------------

_PLACE: Final = re.compile("|".join(sorted(PLACES, key=len, reverse=True)))
_PLACE_END: Final = re.compile(
    r"(?<=[在去到往从從住])(?P<zh>(?![了过過着去到来來])[\u4e00-\u9fff]{1,3}(?:市|省|县|區|区|镇|村|州|岛|山|湖|路|街|广场|机场|车站|火车站))"
    r"|(?P<ja>[\u4e00-\u9fff]{1,3}(?:市|県|府|都|町|村|駅|区))(?=[はがをにでのへと、])"
)
_ORG_CJK: Final = re.compile(
    r"(?:(?<=[在为為给給与與和跟加入的了从從、，。\s])|^)?(?P<name>(?:[\u4e00-\u9fff]{2,6}?|[A-Za-z]{2,12})(?:有限公司|股份公司|科技|集团|集團|公司|银行"
    r"|銀行|大学|大學|学院|医院|出版社|研究院|研究所|"
    r"基金会|工作室|律师事务所|株式会社|製薬|電機|工業|商事|商店|証券|物産|自動車|新聞社|病院|製作所|製造|重工|運輸|海運|学園|建設|食品"
    r"|印刷))(?=[的在是把将跟和与，。、了开開推发發宣为為上下里がはのをにでとへも\s]|$)"
)
_ORG_LEAD: Final = re.compile(
    r"^.*(?:创办了?|成立了?|加入了?|入职了?|收购了?|就职于|任职于|供职于|来自|去了?|在|从|為|为|给|与|和|跟|是|的|了|、)"
)
_KIN: Final = (
    "弟弟|哥哥|姐姐|妹妹|儿子|女儿|爸爸|妈妈|父亲|母亲|丈夫|老公|妻子|老婆|同事|朋友|室友|同学|邻居|老板|经理|主管|总监|编辑|主编|医生|律师|教练|导师|表哥|表弟|表姐|表妹|堂哥|堂弟|"
    "叔叔|阿姨|舅舅|姑姑|侄子|侄女|男友|女友|男朋友|女朋友|客户|设计师|工程师|记者|作者|部长|组长|队长"
)
_BY_KIN: Final = re.compile(
    rf"(?:{_KIN})(?P<name>[{''.join(sorted(SURNAMES))}][\u4e00-\u9fff]{{1,2}}?)(?=[考在是的说说了已把将就也都和跟与、，。；对會会要想不没没去来從从住买卖给做写负搬拿有养喜讨离辞生结升得学\s]|$)"
)
_PERSON_ZH: Final = re.compile(
    rf"(?:^|(?<=[，。；、：:\s由和跟与與给給找让讓请請被叫是]))(?P<name>[{''.join(sorted(SURNAMES))}][\u4e00-\u9fff]{{1,2}}?)"
    r"(?=(?:在|说|說|负责|負責|是|的(?:建议|意见|想法|项目|团队)|已经|把|将|要|想|会|會|不|没|沒|去|来了|住|写|寫|做|提|创办|加入|离职|辞职|认为|觉得|喜欢|讨厌|搬|买|卖|"
    r"建议|同意|决定|宣布|表示|告诉|发|拿|和|跟|与|、)|[：:])"
)
_SURNAME_JA: Final = re.compile(
    rf"(?:^|(?<=[、。はがのとにも\s]))(?P<name>{'|'.join(sorted(SURNAMES_JA))})(?=[はがとにも、])"
)
_EMPLOYER_CJK: Final = re.compile(
    r"在(?P<zh>[\u4e00-\u9fff]{2,6}?)(?:工作|上班|任职|任職|实习|就职)"
    r"|(?:^|[、。はが])(?P<ja>[^\sはがをにで、。]{2,8})(?:で働|に勤め|に入社)"
)
_NO_EMPLOYER: Final = ("里", "図書館", "学校", "会社", "公司", "家", "大学")
_KIN_JA: Final = re.compile(
    r"(?:妹|姉|兄|弟|母|父|夫|妻|息子|娘|友人|友達|同僚|上司|部下|先輩|後輩|彼女|彼氏|いとこ|祖母|祖父|叔父|叔母|犬|猫|社長|部長|課長"
    r"|店長)の(?P<name>[\u4e00-\u9fff\u3041-\u3096\u30a1-\u30fa]{1,4}?)(?=[はがもとをに、])"
)
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")


def in_cjk(text: str) -> Iterator[Found]:
    """Names in Chinese and Japanese text (Latin names inside it are found as elsewhere)."""
    if _HAN.search(text) is None and _PLACE.search(text) is None:
        return
    if languages.language_of(text) == "zh" and (model := chinese_names()) is not None:
        yield from model.names(text)
        return
    for match in _PLACE.finditer(text):
        yield match.start(), match.end(), LOCATION
    for match in _PLACE_END.finditer(text):
        group = "zh" if match["zh"] else "ja"
        yield match.start(group), match.end(group), LOCATION
    for match in _ORG_CJK.finditer(text):
        start, end = match.span("name")
        lead = _ORG_LEAD.match(text[start:end])
        start += lead.end() if lead else 0
        if end - start > 2:
            yield start, end, ORG
    for match in (*_BY_KIN.finditer(text), *_PERSON_ZH.finditer(text)):
        if match["name"] not in NO_PERSON and match["name"][:2] not in NO_PERSON:
            yield match.start("name"), match.end("name"), PERSON
    for match in _EMPLOYER_CJK.finditer(text):
        group = "zh" if match["zh"] else "ja"
        name = match[group].rsplit("の", 1)[-1]
        if len(name) > 1 and _PLACE.fullmatch(name) is None and not name.endswith(_NO_EMPLOYER):
            yield match.end(group) - len(name), match.end(group), ORG
    for match in _SURNAME_JA.finditer(text):
        yield match.start("name"), match.end("name"), PERSON
    for match in _KIN_JA.finditer(text):
        yield match.start("name"), match.end("name"), PERSON


# --- Spanish and German -----------------------------------------------------------------------------------------

_UPPER: Final = "A-ZÁÉÍÓÚÑÜÄÖ"
_CAPITAL: Final = rf"[{_UPPER}][\w'’-]+"
_LINKS: Final = ("de", "del", "la", "von", "van", "zu", "y")
_RUN: Final = re.compile(rf"(?<![\w@#/.]){_CAPITAL}(?: (?:(?:de|del|la|von|van|zu|y) )?{_CAPITAL}){{0,3}}")
_OPENS: Final = re.compile(r"(?:^|[.!?…:;¿¡\n]|[-*•]\s)\s*$")
_LOCATIVE: Final = {
    "es": re.compile(r"\b(?:en|a|hacia|desde|hasta|de|por|vive en|vivo en)\s$", re.IGNORECASE),
    "de": re.compile(r"\b(?:in|nach|aus|bei|auf|bis|über|von)\s$", re.IGNORECASE),
}
_IN: Final = {
    "es": re.compile(
        r"\b(?:en|hacia|desde|hasta|(?:viaj|vol|mud|fui|voy|va|vamos|ir|lleg|regres)\w* a)\s$", re.IGNORECASE
    ),
    "de": re.compile(r"\b(?:in|nach|aus)\s$", re.IGNORECASE),
}
"""What stands before a place alone, even one of two words."""
_EMPLOYER: Final = {
    "es": re.compile(
        r"\b(?:trabaj\w+ (?:en|para)|emplead[oa] (?:en|de)|empresa|compañía|contrat\w+ (?:con|a))\s(?:la |el )?$",
        re.IGNORECASE,
    ),
    "de": re.compile(r"\b(?:(?:arbeit|jobb|anfang|angestellt)\w* bei|firma|unternehmen|bei der|zur)\s$", re.IGNORECASE),
}
_TOOL: Final = {
    "es": re.compile(r"\b(?:us[aoé]\w*|utiliz\w+|instal\w+|prob[aéó]\w*|migramos a|cambiamos a)\s$", re.IGNORECASE),
    "de": re.compile(
        r"\b(?:nutz\w+|benutz\w+|verwend\w+|installier\w+|setzen auf|läuft auf|umgestiegen auf)\s$", re.IGNORECASE
    ),
}
_PERSONAL: Final = {
    "es": re.compile(
        r"\b(?:herman[oa]|hij[oa]|primo|prima|tío|tía|amig[oa]|madre|padre|abuel[oa]|novi[oa]|espos[oa]|marido|mujer"
        r"|jefe|jefa|doctora?|profesora?|"
        r"veci[nñ][oa]|compañer[oa]|señora?|don|doña|casa de|con|llamad[oa]|se llama)\s$",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:bruder|schwester|sohn|tochter|mutter|vater|onkel|tante|cousin|cousine|freund|freundin|kollege"
        r"|kollegin|chef|chefin|nachbar|nachbarin|"
        r"oma|opa|frau|herr|herrn|mann|neffe|nichte|mit|heißt|namens|doktor|professor)\s$",
        re.IGNORECASE,
    ),
}
_ORG_FIRST: Final = word_set(
    "laboratorios construcciones seguros viajes muebles industrias almacenes colegio hospital bar transportes banco "
    "universidad grupo editorial hotel restaurante clínica instituto fundación bodegas talleres "
    "empresa cooperativa farmacia "
    "librería panadería verlag bäckerei universität hochschule stadtwerke brauerei apotheke klinik institut "
    "stiftung werkstatt druckerei gasthof café cafe"
)
_ORG_LAST: Final = word_set("gmbh ag kg sa sl ltd inc verlag bank werke versicherung energie energía seguros verein")
_ES_OPENERS: Final = word_set(
    "el la los las un una unos unas mi mis tu su nuestro nuestra en a de con por para y o pero pues allí aquí ayer "
    "hoy mañana vale perfecto sí no ya también "
    "quiero tengo vivo trabajo soy estoy voy creo cenamos vamos hola gracias hay es son fue si cuando donde como qué "
    "quién entonces luego este esta ese esa todo "
    "me te se le nos lo yo él ella ellos nosotros después antes ahora nunca siempre"
)
_DE_CALENDAR: Final = word_set(
    "firma unternehmen letzte letzten letztes nächste nächsten nächstes diese dieser dieses vorige vorigen woche "
    "monat jahr tag morgen "
    "abend nacht uhr"
)
_VERB_BEHIND: Final = re.compile(
    r"^ (?:(?:no|ya no|también|se|me|le|nunca|auch|nicht) )?(?:abrió|cerró|enseña|llegó|escribió|fundó|dejó|es|fue"
    r"|vive|trabaja|coordina|tiene|dijo|quiere|cocina|compró|vendió|ganó|juega|canta|habla|estudia|llamó"
    r"|viene|va|ist|hat|wohnt|arbeitet|sagt|sagte|kommt|"
    r"geht|spielt|züchtet|leitet|studiert|übernimmt|übernahm|heiratet|kocht|will|mag|macht)\b"
)


def surely(text: str) -> str:
    """`es` or `de` when more than a stray word says so, else ""."""
    language = languages.language_of(text)
    if language not in ("es", "de"):
        return ""
    functions = w.FUNCTION_WORDS[language]
    words = [word.strip(".,;:!?¿¡\"'()").casefold() for word in text.split()]
    known = sum(word in functions for word in words)
    english = sum(word in w.FUNCTION_WORDS["en"] for word in words)
    marked = language in w.LETTERS and w.LETTERS[language].search(text) is not None
    accented = not text.isascii() and english == 0 and known >= 1
    return language if (known >= 2 and known > english) or (marked and known >= english) or accented else ""


def in_latin(text: str, language: str) -> Iterator[Found]:
    """Names in Spanish or German text. German writes every noun with a capital, so a bare one is no name."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        opens = _OPENS.search(text, max(0, start - 4), start) is not None
        words = match.group().split()
        while words and (
            _common(words[0], language, opens) or words[0] in ("de", "del", "la", "von", "van", "zu", "y")
        ):
            start += len(words.pop(0)) + 1
            opens = False
        if not words:
            continue
        kind = _kind(text, start, end, words, language, opens)
        if kind:
            yield start, end, kind


def _common(word: str, language: str, opens: bool) -> bool:
    folded = word.casefold()
    if folded in NEVER_NAMES or folded in w.FUNCTION_WORDS[language]:
        return True
    if language == "es":
        verb = re.search(r"(?:[aei]mos|[éó]|aba|ía|aron|ieron)$", folded) is not None
        return opens and (folded in _ES_OPENERS or folded in SENTENCE_OPENERS or verb)
    kin = _PERSONAL["de"].search(folded + " ") is not None or folded in _DE_CALENDAR
    return kin or (opens and folded in SENTENCE_OPENERS)


def _kind(text: str, start: int, end: int, words: list[str], language: str, opens: bool) -> str:
    before = text[max(0, start - 32) : start]
    folded = [word.casefold() for word in words]
    capitals = [word for word in words if word[0].isupper()]
    if (folded[0] in _ORG_FIRST and len(words) > 1) or folded[-1] in _ORG_LAST or _EMPLOYER[language].search(before):
        return ORG
    if _TOOL[language].search(before):
        return PRODUCT
    if _PERSONAL[language].search(before):
        return PERSON
    if any(character.isdigit() for character in "".join(words)) or any(word[1:] != word[1:].lower() for word in words):
        return PRODUCT
    if _LOCATIVE[language].search(before) and (len(capitals) == 1 or _IN[language].search(before)):
        return LOCATION
    if language == "de" and _ORG_DE.search(words[-1]):
        return ORG
    if language == "de" and len(capitals) < 2:
        return PERSON if _VERB_BEHIND.match(text[end : end + 16]) and opens and not _article(before) else ""
    if len(capitals) >= 2:
        return "" if language == "de" and _article(before) else PERSON
    if opens:
        return PERSON if _VERB_BEHIND.match(text[end : end + 16]) else ""
    return PERSON if _VERB_BEHIND.match(text[end : end + 16]) else CONCEPT


_ORG_DE: Final = re.compile(r"(?<=[a-zäöü]{3})(?:bank|werke?|verlag|kasse|bahn|verein|gruppe)$")
_ARTICLE: Final = re.compile(
    r"\b(?:der|die|das|den|dem|des|ein\w*|kein\w*|mein\w*|dein\w*|sein\w*|ihr\w*|unser\w*|jede\w*|diese\w*|viele"
    r"|neue\w*|zur|zum|am|im|vom|beim)\s$",
    re.IGNORECASE,
)


def _article(before: str) -> bool:
    return _ARTICLE.search(before) is not None

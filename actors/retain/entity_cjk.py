"""Names in Chinese and Japanese, by rules alone: the small model knows English only.

What is sure is named: a place of the lists, a family name with its given name where a person stands, an organisation by
its ending. What is not sure is left unnamed; a wrong name costs more than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from recalld.actors.retain import languages
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

"""What stands around a name tells its kind where the small model does not: `works at X`, `lives in X`, `uses X`.

Cues are for names the model has no kind for, or guesses at. They are read left and right of a stretch of text.
"""

from __future__ import annotations

import re
from typing import Final

PERSON, ORG, LOCATION, PRODUCT = "PERSON", "ORG", "LOCATION", "PRODUCT"

_OTHER_NAME: Final = r"[A-Z][\w.+-]*(?: [A-Z\d][\w.+-]*)?"


def _cue(pattern: str) -> re.Pattern[str]:
    """The words right before a name, other names of the same list between."""
    listed = rf"(?:(?-i:{_OTHER_NAME})(?:,| and| or|, and) )*"
    return re.compile(rf"(?:{pattern}) (?:the |a |an |my |our )?{listed}[\"“‘']?$", re.IGNORECASE)


_LEFT: Final[tuple[tuple[str, re.Pattern[str], bool], ...]] = tuple(
    (kind, _cue(pattern), strong)
    for kind, pattern, strong in (
        (
            ORG,
            r"\b(?:team|people|guys|staff|folks|everyone|engineers?|office|friends?|buddies) (?:over )?at|"
            r"\b(?:vendor|supplier|courier|employer|landlord|insurer|publisher|carrier|agency|distributor|retailer"
            r"|airline)|"
            r"\b(?:flew|fly|flying|booked|insured|bank|banks|signed)\b[^.!?]{0,30}\bwith|"
            r"\b(?:work(?:s|ed|ing)?|jobs?|position|role|employed|intern(?:s|ed|ing|ship)?|consult\w*|career"
            r"|last day|first day|colleagues?) "
            r"(?:now |currently )?(?:at|for)|\b(?:joined|joining|rejoined|founded|co-founded|employed by"
            r"|resigned from|acquired|ceo of|cto of|founder of|"
            r"contract with|deal with|invoice from|membership at|account (?:at|with)|not at|no longer at"
            r"|head of [^,.]{1,20},|of [^,.]{1,16},)"
            r"|\b(?:courier|supplier|vendor|client|customer|employer|company|agency|bank|publisher|insurer|landlord):",
            True,
        ),
        (
            PRODUCT,
            r"\b(?:us(?:e|es|ed|ing)|install(?:s|ed|ing)?|deploy(?:s|ed|ing)?(?: to| on)?|migrat\w+ to|runs? on"
            r"|running on|built (?:with|on|in)|"
            r"written in|everything to|(?:images|data|files|backups|logs|it|them) (?:on|in|to)|tried|proposed:"
            r"|decision:|buying|lease|leased|"
            r"upgrad\w+ to|switch\w* from|(?:switch|migrat)\w* (?:over )?(?:from \S+(?: \S+)? )?to"
            r"|deployed \S+ (?:on|to)|sign\w* up for|subscrib\w+ to|log\w* in(?:to| to)"
            r"|migrat\w+ from|driv(?:e|es|ing)|presented|launched|released"
            r"|our (?:\w+ )?(?:tool|database|editor|tracker) is"
            r"|instead of using|downloaded|wrote the parser for)",
            True,
        ),
        (
            PERSON,
            r"\b(?:met|married|hire|hired|asked|told|phoned|interviewed|candidate:|speaker:|host:|guest:|named"
            r"|(?:signed|written|led|run|painted|repaired|designed|reviewed|approved|chaired|taught|coached) by"
            r"|(?:plays?|played|dinner|lunch|breakfast|coffee|walk|run|danced?|chess|tennis|lives?"
            r"|travel\w*) (?:\w+ )?with|engaged to|dating|divorced|thanks to|meet|belong(?:s|ed)? to|"
            r"(?:sold|gave|sent|lent|showed|handed|paid|spoke|talked|wrote|introduced)\b[^.!?]{0,40}\b(?:to|with)|"
            r"favou?rite (?:writer|player|singer|actor|actress|author|artist|band|teacher|footballer|composer"
            r"|painter) (?:is|was|used to be)(?: now)?)",
            True,
        ),
        (
            LOCATION,
            r"\b(?:bridge|harbou?r|station|farm|lighthouse|ruins|castle|beach|camp|border|coast|lake) (?:at|in|near"
            r"|of)|\b(?:in|near|around|outside|towards?|via|visit(?:s|ed|ing)?|(?:moved|moving|move|trip|flew|fly|drove"
            r"|drive|travel\w*|went|go|going|ferry|train|flight|"
            r"bus|sailed|relocat\w+|walked|hiked|cycled|return\w*|back|commutes?"
            r"|emigrated) (?:back )?(?:from \S+ )?to|(?:sailed|flew|train|flight|"
            r"travel\w*|drove|walked|came|comes|moved) from|based in|the (?:harbour|port|bridge|town|city|village"
            r"|island|lake|valley) (?:of|at)|been to|island of)",
            False,
        ),
        (ORG, r"\bat", False),
        (PRODUCT, r"\bprefers?|\bpreferred|\b(?:over|than|versus|vs\.?|replaced|replaces|beats)", False),
    )
)
"""Kind by the words before a name; a strong cue outweighs what the model believes."""
_RIGHT: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        PRODUCT,
        re.compile(
            r"^ (?:is|was|remains) (?:the|a|an|our|my)(?: [a-z-]+){0,3} (?:tracker|tool|app|application|library"
            r"|framework|database|editor|"
            r"browser|language|plugin|phone|printer|software|service|platform|game|engine|system|package|device"
            r"|model)\b|^ (?:DB|API|SDK|CLI|app|printer|"
            r"database|server|plugin|library|phone|camera|laptop)\b",
        ),
    ),
    (
        LOCATION,
        re.compile(
            r"^ (?:office|branch|airport|harbou?r|station|plant|warehouse|suburb|district|marathon|river|coast"
            r"|peninsula)\b"
        ),
    ),
    (
        ORG,
        re.compile(
            r"^ (?:announced|sells|acquired|hired|laid off|went public|employs|raised \$)|^(?:'s|’s) (?:ceo"
            r"|cto|shares|employees)\b",
            re.I,
        ),
    ),
    (
        PERSON,
        re.compile(
            r"^ (?:plays?|played|handles|writes|wrote|runs|ran|repaired|repairs|planted|phoned|studies|studied"
            r"|adopted|wants|plans|"
            r"is (?:pregnant|moving|coming|leaving|sick|ill|retired|married|vegan|vegetarian|allergic|\d+ years old"
            r"|on leave|in hospital|our|my)|"
            r"was born|passed|won|proposed|suggested|offered|trained|retired|coordinates|teaches|taught|drives|eats"
            r"|drinks|speaks|spoke|"
            r"sings|cooks|cleans|forgot|remembers|remembered|signed|moved|does the|got (?:the|a|an|married|sick)"
            r"|counts|joined|left|resigned|"
            r"said|says|told|asked|called|thinks|thought|likes|loves|hates|prefers|lives|lived|works|worked|feels"
            r"|felt|knows|knew|leads|led|owns|"
            r"swims|bakes|paints|painted|quit|agreed|replied|answered|helped|helps|visited|invited|bought|sold"
            r"|borrowed|promised)\b"
            r"|^, (?:who|my|our|his|her|a|an|the) |^ and I\b"
        ),
    ),
)


def kind_before(text: str, start: int) -> tuple[str, bool]:
    """The kind that the words before a name give it, and whether the cue is strong; ("", False) for none."""
    before = text[max(0, start - 60) : start]
    for kind, pattern, strong in _LEFT:
        if pattern.search(before):
            return kind, strong
    return "", False


def kind_behind(text: str, end: int) -> str:
    """The kind that the words behind a name give it, "" for none."""
    after = text[end : end + 60]
    for kind, pattern in _RIGHT:
        if pattern.match(after):
            return kind
    return ""

"""Whether a sentence denies its claim, or says that it has ended. English and French; the tables of other languages
stand in `languagewords`.

Only the main clause counts: a reason, a condition or a relative clause may deny what it likes. Words that are merely
bad news (`failed`, `hates`) deny nothing.
"""

from __future__ import annotations

import re

from recalld.actors.retain import languages

_INSERTED = re.compile(r", (?:who|which|whose|where)\b[^,]*,", re.IGNORECASE)
_ASIDE = re.compile(
    r"\b(?:because|since|so that|although|though|even though|unless|until|while|whereas|in case|which|who|whose"
    r"|where|when|whenever|"
    r"as long as|as soon as|due to|despite|in spite of|that way|parce que)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(
    r"^\W*(?:if|when|whenever|unless|because|since|although|though|even though|while|as|after|before|once)\b"
    r"(?:[^,]*,\s*|.* (?=(?:we|i|he|she|they|it|you) \S+$))",
    re.IGNORECASE,
)
_NO_DENIAL = re.compile(
    r"\bnot only\b|\bnot just\b|\bnot to mention\b|\bno doubt\b|\bno problem\b|\bno worries\b|\bno wonder\b"
    r"|\bno matter\b|"
    r"\bwhy not\b|\bif not\b|\bor not\b|\bnot bad\b|\bcan(?:no|['’])?t wait\b|\bcan not wait\b|\bcannot help\b"
    r"|\bcan['’]t help\b|"
    r"\bcould(?:n['’]t| not) (?:be (?:happier|better|prouder|more)|agree more|have done it without|help)\b"
    r"|\bnever ?mind\b|\bno, |"
    r"^\W*no[,.!…–-]|\b(?:don['’]t|do not) (?:worry|forget|hesitate|get me wrong|give up)\b|"
    r"\bno (?:later|earlier|less|fewer|more) than\b|\bwon['’]t forget\b|\bnever forget\b|\bnot until\b"
    r"|\bnot long (?:ago|after)\b|"
    r"\b(?:is|are|was|were|do|does|did)n['’]t (?:it|you|they|we|he|she)\b\??|\bnot surprisingly\b|\bnothing but\b"
    r"|\bno\. ?\d|\bnon-\w+|\bpas seulement\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no longer|never|nobody|no one|noone|nothing|none|neither|nor|nowhere|cannot|hardly|barely|scarcely"
    r"|rarely|seldom)\b"
    r"|\w+n['’]t\b|\b(?:dont|doesnt|didnt|wont|cant|isnt|arent|wasnt|havent|hasnt|wouldnt)\b"
    r"|\bno(?= (?!\d)[a-z]+)"
    r"|\b(?:anymore|any longer)\b"
    r"|\b(?:stopped|quit|quits|ceased|discontinued|gave up|given up|giving up|dropped out of|got rid of)\b"
    r"|\bused to\b(?! (?:it|this|that|the|being|seeing|having|working|living|doing|getting)\b)|\bno more\b"
    r"|\b(?:ne|n['’])\s?\w+.{0,20}\b(?:pas|jamais|plus|rien|personne)\b",
    re.IGNORECASE,
)
_QUICK = re.compile(
    r"n['’]t|\bn|\b(?:don|doesn|didn|won|can|isn|aren|wasn|haven|hasn|wouldn)t\b|cannot|anymore|any longer|stopped"
    r"|quit|ceased|"
    r"gave up|giv(?:en|ing) up|got rid|dropped out|used to|hardly|barely|rarely|seldom|scarcely|discontin",
    re.IGNORECASE,
)

_QUICK_ELSEWHERE = re.compile(
    r"[^\x00-\u2e7f]|\b(?:no|nunca|jam|tampoco|nadie|nada|ni|ning|odi|dej|he dejado|nicht|kein|nie|weder|nirgends"
    r"|ungern|aufge|hass|ohne)",
    re.IGNORECASE,
)
"""What a denial in Chinese, Japanese, Spanish or German cannot do without."""


def denies(sentence: str) -> bool:
    """Whether the main clause of a sentence (not a question) is denied, or says that something is no longer so."""
    if _QUICK_ELSEWHERE.search(sentence) is not None and languages.polarity(sentence) < 0:
        return True
    if _QUICK.search(sentence) is None:
        return False
    main = _NO_DENIAL.sub(" ", _INSERTED.sub(" ", sentence))
    shorter = _CONDITION.sub("", main, count=1)
    cut = _ASIDE.sub("", shorter)
    main = cut if len(cut.strip(" ,.")) >= 4 else shorter
    return _DENIES.search(main) is not None

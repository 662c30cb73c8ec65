"""What the words of a sentence do in Chinese, Japanese, Spanish and German: which language it is, whether it asks,
denies, supposes or hedges, and who its first person is.

The tables stand in `languagewords`; English is here only where a caller asks about any language. All functions are
pure and cheap: a text in plain ASCII that opens no table costs one or two searches.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from recalld.actors.retain import languagewords as w

KNOWN: Final = ("en", "zh", "ja", "ko", "es", "de", "fr", "it", "pt")

_KANA: Final = re.compile(r"[\u3041-\u309f\u30a0-\u30ff\uff66-\uff9f]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")
_HAN: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SCRIPTS: Final = (
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
)


_VOTES: Final[dict[str, tuple[str, ...]]] = {
    word: tuple(name for name, words in w.FUNCTION_WORDS.items() if word in words)
    for word in frozenset().union(*w.FUNCTION_WORDS.values())
}
_ACCENTED: Final = ("es", "de", "pt")
"""Languages whose telling letters are none of ASCII."""


@lru_cache(maxsize=4096)
def language_of(text: str) -> str:
    """The language of a text: by script, then by the function words and letters of the tables; `en` when none tells.

    Latin product names inside Chinese or Japanese do not make it English: a fifth of Han or kana is enough.
    """
    text = text[:2000]
    if not text.isascii():
        kana, han, hangul = len(_KANA.findall(text)), len(_HAN.findall(text)), len(_HANGUL.findall(text))
        letters = len(_LETTER.findall(text)) or 1
        # A character of these scripts says as much as several letters.
        if (kana + han + hangul) * 5 >= letters or kana + han + hangul >= 8:
            if hangul > kana + han:
                return "ko"
            return "ja" if kana * 12 > han or (kana and not han) else "zh"
        for name, script in _SCRIPTS:
            if len(script.findall(text)) * 2 > letters:
                return name
    return _latin(text)


def _latin(text: str) -> str:
    scores = dict.fromkeys(w.FUNCTION_WORDS, 0.0)
    for word in _WORD.findall(text):
        for name in _VOTES.get(word.lower(), ()):
            scores[name] += 1
    plain = text.isascii()
    for name, letters in w.LETTERS.items():
        if not (plain and name in _ACCENTED):
            scores[name] += 0.75 * len(letters.findall(text))
    best, most = "en", 0.0
    for name, score in scores.items():
        if score > most:
            best, most = name, score
    return best


def is_question(text: str, language: str | None = None) -> bool:
    """Whether one sentence asks, with or without its mark; the marks of other languages are the caller's."""
    stripped = text.strip().rstrip(w.CLOSERS)
    if stripped.endswith(("?", "？", "؟")):
        return True
    if text.lstrip().startswith("¿"):
        return True
    pattern = w.QUESTIONS.get(language or language_of(text))
    return pattern is not None and pattern.search(stripped) is not None


def is_hypothetical(text: str, language: str | None = None) -> bool:
    """Whether one sentence supposes or wishes what it speaks of ("if it rains", `如果`, `もし…たら`, "ojalá")."""
    pattern = w.HYPOTHETICALS.get(language or language_of(text))
    return pattern is not None and pattern.search(text) is not None


def polarity(text: str, language: str | None = None) -> int:
    """-1 when the main claim of one sentence is denied or no longer so, else 1. Tables for zh, ja, es and de."""
    language = language or language_of(text)
    table = w.NEGATIONS.get(language)
    if table is None:
        return 1
    denied, not_denial = table
    return -1 if denied.search(not_denial.sub(" ", text)) else 1


def no_longer(text: str, language: str | None = None) -> bool:
    """Whether a sentence says that something ended (`不再`, `ya no`, `nicht mehr`, `なくなった`)."""
    pattern = w.NO_LONGER.get(language or language_of(text))
    return pattern is not None and pattern.search(text) is not None


def hedge(text: str, language: str | None = None) -> float | None:
    """How sure a judgement under these hedges is (0 to 1); None when the sentence has no hedge of the tables."""
    for pattern, confidence in w.HEDGES.get(language or language_of(text), ()):
        if pattern.search(text):
            return confidence
    return None


def speaks_of_oneself(text: str, language: str | None = None) -> bool:
    """Whether a first person, spoken or only in the verb ("vivo en Lyon"), is in the words."""
    pattern = w.FIRST_PERSON.get(language or language_of(text))
    return pattern is not None and pattern.search(text) is not None


def first_person(language: str) -> re.Pattern[str] | None:
    """The pronouns a speaker's name may stand for in a language (subject form), None where the tables have none."""
    return w.SUBJECT_PRONOUNS.get(language)


def is_filler(text: str) -> bool:
    """Whether a whole turn only keeps talk going in one of these languages (`好的谢谢`, "vale, gracias")."""
    if len(text) > 60 or "?" in text or "？" in text:
        return False
    if not text.isascii():
        for fillers in w.CJK_FILLERS.values():
            rest = fillers.sub("", text)
            if rest != text and not any(character.isalnum() for character in rest):
                return True
    words = [word.lower() for word in _WORD.findall(text)]
    if not words or re.search(r"\d", text):
        return False
    return any(all(word in fillers for word in words) for fillers in w.FILLERS.values())

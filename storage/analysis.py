"""The BM25 analyser: text in, index terms out. Index and query go through the same functions.

Steps: NFKC, case fold, zero-width and bidi controls out, words (letters, digits, marks; an apostrophe inside a word
stays), accents folded, stop words out, Snowball stem. `src/main.py` gives `src`, `main`, `py`. Runs of scripts that
write no spaces, and Hangul, give unigrams and bigrams. Emoji are terms.

Which stemmer. A language guessed from a whole text cannot be guessed from a query of two words, so no term may depend
on the guess alone:

* A word in a script of its own (Cyrillic, Greek, Arabic, Devanagari, ...) takes the stemmer of that script. The word
  decides, so both sides agree always.
* A word in Latin letters always gives its *base* term: accents folded, English stem. Again the word alone decides, so
  an exact word meets itself whatever was guessed, and English text has only these terms.
* A text that is plainly in another Latin language (by its stop words) gives, beside each base term, the stem of that
  language marked `~`. A query gives the marked stems of its language, or, when it is too short to tell and holds no
  English stop word, those of the most common languages. English text holds no marked term, so there they find nothing:
  whoever cuts a query to its most selective terms drops the terms no unit holds first.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import Stemmer

ANALYSER: Final = f"words-1-snowball-{Stemmer.version()}"
"""Name and version that stand with every index; the stemmer's own release is part of it because its stems change."""

MAX_TERM: Final = 64  # characters kept of one word
MAX_TERMS: Final = 65_536  # terms kept of one text
MAX_TEXT: Final = 1_000_000  # characters read of one text
MAX_QUERY: Final = 8_192  # characters read of one query
MAX_QUERY_TERMS: Final = 1_024
MAX_MEMO: Final = 200_000  # words remembered before the memory is emptied


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH_STOP: Final = _word_set(
    """a an and are as at be but by did do does for from had has have he her his how i if in into is it its me my no not
    of on or our she so that the their them then there these they this to was we were what when where which who why will
    with would you your"""
)

# Words that tell a language and that English does not use; shared ones count for each language that has them.
_STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "spanish": "el la los las de del que y en un una unos unas con para por se su sus es está están fue son lo le "
        "les como más pero muy ya cuando donde dónde qué quién cuándo cómo este esta eso ese mi nos hay ser también",
        "french": "le la les de des du et un une est sont dans pour par sur avec qui que quoi où quand ce cette ces il "
        "elle nous vous ils elles je ne pas plus mais se sa ses au aux été était ont sommes très aussi comment",
        "german": "der das den dem des ein eine einen einem einer und ist sind nicht mit für auf von zu zum zur im ich "
        "wir ihr sie es wer wann wo warum wie auch aber oder wenn dass sich bei nach über wird wurde haben hatte",
        "italian": "il lo la gli le di del della dei delle che e un una per con su non è sono si ma anche come più "
        "quando dove chi nel nella al alla questo questa suo sua ho hanno stato",
        "portuguese": "o os as de do da dos das que e em um uma para por com não é são se na nos mas mais como "
        "quando onde quem ao à seu sua foi está ele ela eu você também",
        "dutch": "de het een en van ik dat die niet zijn op te met voor er maar om hem dan zou wat ze bij ook naar "
        "heeft wordt werd onze jij wij hoe waar waarom",
        "swedish": "och att det som en är av för med till inte om ett han jag var vi kan från ni när hur vad vem ska",
        "danish": "og at det som en er af for med til ikke om et han jeg var vi kan fra hvad hvem hvor når skal også",
        "norwegian": "og å det som en er av for med til ikke om et han jeg var vi kan fra hva hvem hvor når skal også",
        "finnish": "ja on ei että se hän oli mutta kun joka mitä missä kuka milloin ovat olen myös tai niin minä sinä",
        "polish": "i w na z do nie się że to jest są był była co kto gdzie kiedy jak dla od po ale czy przez oraz już",
        "czech": "a v na se je že do s z jsem jsou byl byla co kdo kde kdy jak pro od po ale nebo přes už také",
        "hungarian": "a az és hogy nem is egy van volt ez azt mint csak meg ki mi hol mikor miért de már vagy",
        "romanian": "și în la de cu pe un o nu este sunt că pentru din mai ce cine unde când cum dar sau fost",
        "turkish": "ve bir bu da de için ile ne kim nerede mi mı çok daha gibi ama var yok olarak kadar ben sen biz",
        "indonesian": "yang dan di ke dari ini itu untuk dengan tidak adalah pada akan saya kami apa siapa kapan juga",
        "catalan": "el la els les de del que i en un una amb per es seu són però més quan on qui com aquest aquesta",
    }.items()
}
_ALSO_ENGLISH: Final = _word_set(
    """a an and are as at be but by die do does e el en er for from fur had has have he her his hat him hem i if il in
    is it la las le les los man men me mi my no non not o of om on op or os par per por pour sa se ser si sin so son su
    sue sur te the to un us var vi van von was wat we were will with you ya y com come dan das den des dos lo ne ni os
    plus que s sole u via vous w war z are dem di de al also ma na nos once over ses sold some sons sous tan ten under
    till kan ki ke co od po ce da es ai au im most more em um uma"""
)
_HINTS: Final[dict[str, tuple[str, ...]]] = {
    word: tuple(language for language, words in _STOP_WORDS.items() if word in words)
    for word in frozenset().union(*_STOP_WORDS.values()) - _ALSO_ENGLISH
}
_HINT_WORDS: Final = frozenset(_HINTS)
# Languages in which a query too short to tell is stemmed as well.
_GUESSES: Final = ("spanish", "french", "german", "italian", "portuguese", "dutch")
_MAX_GUESSED_WORDS: Final = 8

# First and last code point, stemmer: scripts whose words need no guess.
_SCRIPT_STEMMERS: Final = (
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0531, 0x058F, "armenian"),
    (0x0600, 0x077F, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x1F00, 0x1FFF, "greek"),
)

# Han, kana, Bopomofo, Hangul, Thai, Lao, Myanmar, Khmer, Tai scripts, Javanese, Balinese: no spaces, or (Hangul)
# endings glued to the word, so whole words would never meet.
_UNSPACED: Final = (
    "\u0e00-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u109f\u1100-\u11ff\u1780-\u17d3\u1950-\u19df\u1a20-\u1a7f\u1b05-\u1b4c"
    "\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua980-\ua9c0\ua9e0-\ua9fe\uaa60-\uaadf\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
)
_EMOJI: Final = "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
# Marks that stay inside words: the vowel signs of Indic and similar scripts. The rest are removed before.
_MARKS: Final = "".join(
    chr(c) for c in range(0x0700, 0x11800) if unicodedata.category(chr(c)) in ("Mn", "Mc") and not 0x20D0 <= c <= 0x20FF
)
_LETTER: Final = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_MIXED: Final = re.compile(rf"[{_UNSPACED}]+|{_LETTER}+(?:'{_LETTER}+)*|[{_EMOJI}]")
_PLAIN: Final = re.compile(rf"[^\W_]+(?:'[^\W_]+)*|[{_EMOJI}]")
_NEEDS_MIXED: Final = re.compile(rf"[{_UNSPACED}{_MARKS}]")
_IS_UNSPACED: Final = re.compile(rf"[{_UNSPACED}]")
_CLUSTER: Final = re.compile(rf"[^{_MARKS}][{_MARKS}]*|[{_MARKS}]+")
_NEEDS_CLUSTERS: Final = re.compile(f"[{_MARKS}]")
_ASCII: Final = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")
# Articles and pronouns that French, Italian and Catalan glue to the next word.
_ELISION: Final = re.compile(r"(?:l|d|j|qu|n|m|s|t|dell|all|nell|sull|dall|un)'(?=\w{3})")


def _clean_character(code: int) -> int | str | None:
    """What one code point becomes before words are cut: itself, an apostrophe, or nothing."""
    character = chr(code)
    if character in "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4`":
        return "'"
    category = unicodedata.category(character)
    if category in ("Cf", "Co") or code == 0x0640:  # zero-width, bidi, private use; Arabic tatweel
        return None
    # Combining marks outside the scripts that spell with them: accents, Hebrew points, Arabic harakat.
    if category in ("Mn", "Me") and (code < 0x0700 or 0x1AB0 <= code <= 0x1AFF or 0x1DC0 <= code <= 0x20FF):
        return None
    if 0xFE00 <= code <= 0xFE2F or 0xE0100 <= code <= 0xE01EF or 0x1F3FB <= code <= 0x1F3FF:
        return None
    return code


_UNDECOMPOSED: Final = {ord(a): b for a, b in zip("ıłøđæœðþ", ("i", "l", "o", "d", "ae", "oe", "d", "th"), strict=True)}


def _fold_character(code: int) -> int | str:
    """A Latin letter without its accent; the Turkish dotless i meets the dotted one."""
    if code in _UNDECOMPOSED:
        return _UNDECOMPOSED[code]
    if 0x00C0 <= code <= 0x024F or 0x1E00 <= code <= 0x1EFF:
        return "".join(c for c in unicodedata.normalize("NFD", chr(code)) if not unicodedata.combining(c)) or code
    return code


class _CharacterMap(dict[int, int | str | None]):
    """A `str.translate` table that fills itself; there are at most 1.1 million code points, and texts use few."""

    def __init__(self, rule: Callable[[int], int | str | None]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> int | str | None:
        value = self._rule(code)
        self[code] = value
        return value


_CLEAN: Final = _CharacterMap(_clean_character)
_FOLD: Final = _CharacterMap(_fold_character)
_local: Final = threading.local()


def _stem(language: str, word: str) -> str:
    """One stem. A `Stemmer` keeps state between calls, so every thread has its own."""
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    stemmer = stemmers.get(language)
    if stemmer is None:
        stemmer = stemmers[language] = Stemmer.Stemmer(language, 0)  # its own cache is slower than the memo here
    return str(stemmer.stemWord(word))


class _Memo(dict[str, str]):
    """Remembers a term by word; emptied when full, because the words of the world never end."""

    def _keep(self, word: str, term: str) -> str:
        if len(self) >= MAX_MEMO:
            self.clear()
        self[word] = term
        return term


class _BaseTerms(_Memo):
    """Word -> base term; "" for an English stop word."""

    def __missing__(self, word: str) -> str:
        return self._keep(word, "" if word in ENGLISH_STOP else _base_term(word))


class _MarkedTerms(_Memo):
    """Word -> marked stem of one Latin language; "" for its stop words and for words in other scripts."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, word: str) -> str:
        stops = _STOP_WORDS[self._language]
        known = word in stops or word in ENGLISH_STOP or not _is_latin(word)
        stem = "" if known else "~" + _stem(self._language, word[:MAX_TERM]).translate(_FOLD)[:MAX_TERM]
        return self._keep(word, stem)


_base: Final = _BaseTerms()
_marked: Final[dict[str, _MarkedTerms]] = {language: _MarkedTerms(language) for language in _STOP_WORDS}


def _is_latin(word: str) -> bool:
    return word[0].isalpha() and (word[0] < "\u0250" or "\u1e00" <= word[0] <= "\u1eff")


def _base_term(word: str) -> str:
    word = word[:MAX_TERM]
    if not word.isascii():
        code = ord(word[0])
        for first, last, language in _SCRIPT_STEMMERS:
            if first <= code <= last:
                return _stem(language, word) or word
        word = word.translate(_FOLD)[:MAX_TERM]
    return _stem("english", word) or word


def _words(text: str) -> list[str]:
    """Folded words, emoji and unspaced runs of `text`, in order."""
    if text.isascii():
        words = _ASCII.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_CLEAN)
        words = (_MIXED if _NEEDS_MIXED.search(folded) else _PLAIN).findall(folded)
    if "'" in text or "\u2019" in text:
        return [_ELISION.sub("", word) if "'" in word else word for word in words]
    return words


def _grams(run: str) -> Iterable[str]:
    """Unigrams and bigrams of one unspaced run; a base character keeps its marks."""
    pieces = list(run) if run.isalpha() and not _NEEDS_CLUSTERS.search(run) else _CLUSTER.findall(run)
    yield from pieces
    for left, right in pairwise(pieces):
        yield left + right


def _language(words: Sequence[str]) -> str | None:
    """The Latin language other than English that the words are plainly in, if any."""
    found = _HINT_WORDS.intersection(words)
    if not found:
        return None
    votes = Counter(language for word in found for language in _HINTS[word])
    language, count = max(votes.items(), key=lambda vote: vote[1])
    english = len(ENGLISH_STOP.intersection(words))
    return language if count > english or (count >= 2 and count >= english) else None


def _terms(words: list[str], languages: Sequence[str]) -> list[str]:
    terms: list[str] = []
    for word in words:
        if word > "\u0dff" and _IS_UNSPACED.match(word):
            terms.extend(_grams(word[:MAX_TERMS]))
        elif term := _base[word]:
            terms.append(term)
            if languages:
                terms.extend({marked for language in languages if (marked := _marked[language][word])})
        if len(terms) >= MAX_TERMS:
            return terms[:MAX_TERMS]
    return terms


def analyse(text: str) -> list[str]:
    """Index terms of `text` in order, repeated as often as they occur. Only stop words: the stop words themselves."""
    words = _words(text[:MAX_TEXT])
    language = _language(words)
    return _terms(words, (language,) if language else ()) or words[:MAX_TERMS]


def term_frequencies(text: str) -> tuple[tuple[str, int], ...]:
    """(term, frequency) of `text`, each term once; a frequency fits one byte."""
    return tuple((term, min(count, 255)) for term, count in Counter(analyse(text)).items())


def query_terms(text: str) -> tuple[str, ...]:
    """Terms to look up for a query, each once, in order of first use; a huge query is cut before it costs."""
    words = _words(text[:MAX_QUERY])
    if (language := _language(words)) is not None:
        languages: tuple[str, ...] = (language,)
    else:
        short = len(words) <= _MAX_GUESSED_WORDS and ENGLISH_STOP.isdisjoint(words)
        languages = _GUESSES if short else ()
    return tuple(dict.fromkeys(_terms(words, languages) or words))[:MAX_QUERY_TERMS]


def is_cjk_heavy(text: str) -> bool:
    """True when at least three in ten letters of the (first 2,000 characters of the) text are of unspaced scripts."""
    sample = text[:2000]
    if sample.isascii():
        return False
    letters = sum(map(str.isalpha, sample))
    return letters > 0 and len(_IS_UNSPACED.findall(sample)) >= 0.3 * letters

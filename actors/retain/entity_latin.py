"""Names in Spanish and German: the small model knows English only, so that words around a name and lists decide.

German writes every noun with a capital: there a lone one is a name only where something says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from recalld.actors.retain import languages, name_lists
from recalld.actors.retain import languagewords as w
from recalld.actors.retain.entity_kinds import LOCATION, ORG, PERSON, PRODUCT, SURE, best, scores_of, spelled_kind
from recalld.actors.retain.lexicon import LEGAL_FORMS, NEVER_NAMES, SENTENCE_OPENERS, word_set

CONCEPT: Final = "CONCEPT"
Found = tuple[int, int, str, float]

_UPPER: Final = "A-ZÁÉÍÓÚÑÜÄÖÀÈÇŞİŁŻŚČŠŽ"
_CAPITAL: Final = rf"[{_UPPER}](?:[\w'’-]|\.(?=[A-Z]\b))+"
_LINKS: Final = ("de", "del", "la", "von", "van", "zu", "y")
_RUN: Final = re.compile(
    rf"(?<![\w@#/.]){_CAPITAL}(?: (?:(?:de|del|de la|la|von|van|zu|y|und"
    rf"|&) )?{_CAPITAL}){{0,4}}(?: \d{{1,2}}(?![\w.:/%]))?"
)
_OPENS: Final = re.compile(r"(?:^|[.!?…:;¿¡\n]|[-*•]\s)\s*$")
_JOINED: Final = re.compile(r" (?:y|und) ")
_VERB_ES: Final = re.compile(r"(?:[aei]mos|[éó]|aba|ía|aron|ieron|aste|iste)$")
_ES_OPENERS: Final = word_set(
    "el la los las un una unos unas mi mis tu su nuestro nuestra en a de con por para y o pero pues allí aquí ayer "
    "hoy mañana vale perfecto sí no ya también quiero tengo vivo trabajo soy estoy voy creo cenamos vamos hola gracias "
    "hay es son fue si cuando donde como qué quién entonces luego este esta ese esa todo me te se le nos lo yo él ella "
    "ellos nosotros después antes ahora nunca siempre uso usa usamos prefiero odio conozco necesito llevo hablo leo "
    "escribo compro juego pienso puedo debo viajo cocino estudio llamo espero busco pido nuevo nueva reunión cita "
    "proveedor proveedora cliente pedido pago factura viaje nota tarea visita llamada contrato entrega compra anteayer "
    "finalmente además según durante desde hasta sobre tras entre sin cada otra otro muchos muchas algunos pregunta"
)
_DE_PLAIN: Final = word_set(
    "firma unternehmen letzte letzten letztes nächste nächsten nächstes diese dieser dieses vorige vorigen woche monat "
    "jahr tag morgen abend nacht uhr rente ordnung hause haus urlaub arbeit eile feierabend zukunft vergangenheit holz "
    "metall angst ruhe frieden betrieb kraft form farbe deutsch englisch spanisch französisch teilzeit vollzeit "
    "elternzeit kontakt panik therapie mode serie not hand bett kino büro stadt dorf land welt schule kirche "
    "krankenhaus "
    "garten küche keller auto bus bahn zug flugzeug fahrrad regen schnee sonne wetter essen wasser kaffee tee brot "
    "butter fleisch fisch geld konto termin besprechung sitzung projekt kunde kunden team chef chefin kollege kollegin "
    "freund freundin freunde freunden familie kinder kindern eltern mann frau leute menschen neuer neue neues alter "
    "alte lieferant rechnung vertrag angebot nachricht mail anruf notiz aufgabe frage antwort problem fehler lösung "
    "entscheidung montag hallo danke bitte gut genau leider gestern heute norden süden osten westen mitte nähe höhe "
    "tiefe beginn ende anfang schluss stelle seite reihe liste punkt grund glas stein stoff leder plastik spaß freude "
    "liebe wut trauer hunger durst gefahr sicherheit berlinern bergen wald hof post park burg singen weiden markt "
    "hafen bahnhof flughafen museum theater restaurant hotel laden geschäft fabrik werk halle bar nummer zimmer "
)
_DE_KIN: Final = word_set("bruder schwester sohn tochter mutter vater onkel tante nachbarin nachbar")
_DE_NOUN: Final = re.compile(r"(?:ung|heit|keit|schaft|ionen|ion|tät|chen|nis|tum|ment|ling|ungen|zeit|haus|weise)$")
_TELLING: Final = {
    "es": word_set(
        "toca vive trabaja uso usamos tengo cocina compró enseña estudia dirige escribió llegó juega mudó casó vivo "
        "trabajo vivimos volamos compré cambié instalamos instalé encanta gusta río hermano hermana jefe jefa "
        "hija hijo madre padre amigo amiga oficina ayer cené estudié soy somos nuestro nuestra también cuando "
        "nunca siempre ahora después antes reunión proveedor nuevo nueva factura contrato desde hacia regaló vecino "
        "vecina semana mes año años lunes martes jueves viernes llamo llama prefiere prefiero quiero muy pero "
        "puede puedo venir hacer tiene tenemos está estamos fui fuimos nació abrió calienta pago llamar dejé dejó "
        "abuela abuelo esposa marido verano invierno casa libro hoy"
    ),
    "de": word_set(
        "spielt kommt wohnt arbeitet zieht leitet fliegen fährt führt habe haben ist sind wir ich und nicht "
        "bei mit für nach aus ein eine einen meine mein unser unsere kollegin kollege lieferant neuer termin besuche "
        "wohne arbeite liefert benutzen nutzen verwenden studiert heißt heiße schreibt singt kocht baut geht gibt "
        "wird wurde haben gestern heute morgen letzte nächste woche auch noch schon aber oder wenn weil sagt meint "
        "umzug waren fahren fahre lese schreibe läuft wollen sollen kann können übernimmt kaputt krank freitag samstag "
        "sonntag montag dienstag mittwoch donnerstag früher später vater mutter bruder schwester sohn tochter"
    ),
}
"""Words of a language that no English sentence holds."""
_ENGLISH: Final = w.FUNCTION_WORDS["en"] - {"a", "an", "in", "so", "was", "am", "no", "me", "do", "as"}
_ARTICLE: Final = re.compile(
    r"\b(?:der|die|das|den|dem|des|ein\w*|kein\w*|mein\w*|dein\w*|sein\w*|ihr\w*|unser\w*|jede\w*|diese\w*|viele"
    r"|neue\w*|alte\w*|zur|zum|am|im|vom|beim|\d+)\s$",
    re.IGNORECASE,
)
_ARTICLE_ES: Final = re.compile(r"\b(?:el|la|los|las|un|una|unos|unas|mi|tu|su)\s$", re.IGNORECASE)


def surely(text: str) -> str:
    """`es` or `de` when more than a stray word says so, else ""."""
    words = [word.strip(".,;:!?¿¡\"'()").casefold() for word in text.split()]
    language = languages.language_of(text)
    english = sum(word in w.FUNCTION_WORDS["en"] for word in words)
    if language in ("es", "de"):
        known = sum(word in w.FUNCTION_WORDS[language] for word in words)
        marked = language in w.LETTERS and w.LETTERS[language].search(text) is not None
        accented = not text.isascii() and english == 0 and known >= 1
        if (known >= 2 and known > english) or (marked and known >= english) or accented:
            return language
    for language, telling in _TELLING.items():
        told = sum(word in telling for word in words)
        if told and told > sum(word in _ENGLISH for word in words):
            return language
    return ""


def in_latin(text: str, language: str) -> Iterator[Found]:
    """Names in Spanish or German text with the points of their kinds."""
    for match in _RUN.finditer(text):
        start = match.start()
        for part in _parts(match.group()):
            begin = start
            start += len(part[0]) + len(part[1])
            yield from _in_run(text, begin, begin + len(part[0]), language)


def _parts(run: str) -> Iterator[tuple[str, str]]:
    """The run, cut at a link between two names ("Annegret und Wolfgang"), each with the link behind it."""
    at = 0
    for link in _JOINED.finditer(run):
        left = run[at : link.start()].split()
        if len(left) == 1 and not spelled_kind(run.split()):
            yield run[at : link.start()], link.group()
            at = link.end()
    yield run[at:], ""


def _in_run(text: str, start: int, end: int, language: str) -> Iterator[Found]:
    if text[end : end + 1] == ":" and _OPENS.search(text, max(0, start - 4), start) is not None:
        return  # a label
    opens = _OPENS.search(text, max(0, start - 4), start) is not None
    words = text[start:end].split()
    while words and (_common(words, language, opens) or words[0] in (*_LINKS, "und", "&")):
        start += len(words.pop(0)) + 1
        opens = False
    while words and language == "de" and len(words) > 1 and _plain_noun(words[-1]) and not spelled_kind(words):
        end -= len(words.pop()) + 1
    if not words or not any(word[0].isupper() for word in words):
        return
    if text[end : end + 1] == "." and words[-1].casefold() + "." in LEGAL_FORMS and "." in words[-1]:
        end += 1
    kind, points = _kind(text, start, end, words, language, opens)
    if kind:
        yield start, end, kind, points


def _common(words: list[str], language: str, opens: bool) -> bool:
    folded = words[0].casefold()
    if folded in NEVER_NAMES or folded in w.FUNCTION_WORDS[language]:
        return True
    if language == "es":
        if not opens or name_lists.is_given(folded) or spelled_kind(words):
            return False
        plain = folded in _ES_OPENERS or folded in SENTENCE_OPENERS or folded in _TELLING["es"]
        return plain or _VERB_ES.search(folded) is not None
    if spelled_kind(words):
        return False
    return (
        _plain_noun(words[0])
        or (opens and (folded in SENTENCE_OPENERS or folded in _TELLING["de"]))
        or (
            folded
            in ("bruder", "schwester", "sohn", "tochter", "mutter", "vater", "onkel", "tante", "nachbarin", "nachbar")
        )
    )


def _plain_noun(word: str) -> bool:
    folded = word.casefold()
    return folded in _DE_PLAIN or (_DE_NOUN.search(folded) is not None and not name_lists.is_place(folded))


def _kind(text: str, start: int, end: int, words: list[str], language: str, opens: bool) -> tuple[str, float]:
    points = scores_of(text, start, end, None, language, opens=opens)
    capitals = [word for word in words if word[0].isupper()]
    before = text[max(0, start - 16) : start]
    behind_article = (_ARTICLE if language == "de" else _ARTICLE_ES).search(before) is not None
    if len(capitals) >= 2 and not behind_article:
        points[PERSON] += 0.9
    kind, most = best(points)
    if language == "de" and len(capitals) < 2:
        if behind_article and most < 3:
            return "", most
        return (kind, most) if most >= (SURE if kind == PERSON else 2) else ("", most)
    if behind_article and language == "de" and most < 2:
        return "", most
    if most >= SURE:
        return kind, most
    if len(capitals) >= 2:
        return (kind if most >= 0.9 else PERSON), most
    return ("", most) if opens else (kind if most >= 1.2 else CONCEPT, most)


__all__ = ["LOCATION", "ORG", "PERSON", "PRODUCT", "in_latin", "surely"]

"""Finds personal data in a text: e-mail, telephone, IBAN, credit card, national ids, IP addresses; checked where it can
be checked.

Borders are spelt as "no letter or digit beside it", so that patterns hold next to Chinese and Japanese.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Final

from recalld.actors.trust.findings import Finding

_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+\-À-ɏ])[A-Za-z0-9À-ɏ_%+'\-](?:[A-Za-z0-9À-ɏ._%+'\-]{0,62}[A-Za-z0-9À-ɏ_%+'\-])?@"
    r"(?:[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ\-]{0,61}[A-Za-z0-9À-ɏ])?\.)+(?:[A-Za-z]{2,24}|xn--[A-Za-z0-9\-]{2,20})"
)
_MOST_IBAN: Final = 34
_IBAN_START: Final = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}(?=[ \-]?[A-Za-z0-9])")
_IBAN_LENGTHS: Final = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FO", "FI", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "CR", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    "LC": 32,
    "RU": 33,
}
_CARD: Final = re.compile(r"(?<![\d.\-])(?:\d[ \-]?){12,18}\d(?![\d\-]|\.\d)")
_CARD_START: Final = re.compile(r"(?:4|5[1-5]|2[2-7]|3[0-9]|6)")

_PHONE_WORD: Final = (
    r"(?:phones?|tel(?:ephone|éfono|efono|efon)?|mobiles?|cell|fax|whats ?app|handy(?:nummer)?|rufnummer|telefonnummer|"
    r"m[óo]vil|celular|call(?: me)?(?: at| on)?|ring(?: me)?(?: at| on)?|sms|text me(?: at| on)?|"
    r"电话|電話(?:番号)?|手机号?码?|手機|联系方式|聯絡|携帯(?:番号)?|전화)"
)
_PHONES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d+A-Za-z])(?<!\d )(?:\+|00)[1-9]\d{0,2}[ \-./]?(?:\(0?\d{1,4}\)[ \-./]?)?\d(?:[ \-./]?\d){5,12}(?!\d)",
        r"(?<![\d\-.A-Za-z])(?:1[ \-.])?(?:\(\d{3}\) ?|\d{3}[\-. ])\d{3}[\-. ]\d{4}(?![\d\-])",
        r"(?<![\dA-Za-z.\-])(?:86[ \-]?)?1[3-9]\d(?:[ \-]?\d{4}){2}(?![\d\-.])",
        r"(?<![\dA-Za-z.\-])0\d{1,4}[\-(]\d{1,4}[\-)]\d{3,4}(?![\d\-])",
        r"(?<![\dA-Za-z.\-])(?<!\d )0\d{2,4}[ /]\d{2,4}[ \-]?\d{2,5}(?:[ \-]\d{2,5})?(?![\d\-])",
        r"(?<![\dA-Za-z.\-])(?<!\d )0[1-9](?:[ .]\d{2}){4}(?![\d\-])",
        rf"{_PHONE_WORD}(?:\s?(?:no|nr|number|nummer|número|号码|番号)\.?)?\s{{0,2}}"
        r"(?:[:：=#]|is|ist|es|是|为|為|は)?\s{0,2}(\(?\d(?:[ \-./()]{0,2}\d){5,13})(?!\d)",
    )
)

_IPV4: Final = re.compile(r"(?<![\d.A-Za-z])(?:\d{1,3}\.){3}\d{1,3}(?![\d]|\.\d|[A-Za-z])")
_IPV6: Final = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Za-z:])")


def find_personal(text: str) -> Iterator[Finding]:
    """Personal data in `text` (which is narrow: findings.py), in no order; findings may overlap."""
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Finding(match.start(), match.end(), "email")
    if not _DIGIT.search(text):
        return
    yield from _ibans(text)
    for match in _CARD.finditer(text):
        digits = _digits(match[0])
        if _CARD_START.match(digits) and len(set(digits)) > 1 and luhn(digits):
            yield Finding(match.start(), match.end(), "credit_card")
    for pattern, needs, check in _NATIONAL:
        for match in pattern.finditer(text):
            if check(match[0]) and (needs is None or needs.search(text, max(0, match.start() - 40), match.start())):
                yield Finding(match.start(), match.end(), "national_id")
    for pattern in _PHONES:
        for match in pattern.finditer(text):
            group = match.lastindex or 0
            if 7 <= len(_digits(match[group])) <= 15 and not _DATE.fullmatch(match[group]):
                yield Finding(match.start(group), match.end(group), "phone")
    for match in _IPV4.finditer(text):
        if _is_address(match[0]):
            yield Finding(match.start(), match.end(), "ip")
    if text.count(":") > 1:
        for match in _IPV6.finditer(text):
            if sum(bool(part) for part in match[0].split(":")) > 2 and _is_address(match[0]):
                yield Finding(match.start(), match.end(), "ip")


_DIGIT: Final = re.compile(r"\d")
_DATE: Final = re.compile(r"\d{4}[\-./]\d{1,2}[\-./]\d{1,2}.*|\d{1,2}[\-./]\d{1,2}[\-./]\d{4}")


def _digits(text: str) -> str:
    return "".join(c for c in text if "0" <= c <= "9")


def _is_address(text: str) -> bool:
    """Whether this is an address that says something about somebody: not this machine's own, not "any"."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


# -- checks ----------------------------------------------------------------------------------------------------------


def luhn(digits: str) -> bool:
    """The check of payment cards: every second digit from the right counts double."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def iban(text: str) -> bool:
    """Whether letters and digits without spaces are an IBAN: the length of the country, and 1 modulo 97."""
    text = text.upper()
    if _IBAN_LENGTHS.get(text[:2]) != len(text) or not text.isalnum() or not text.isascii():
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN_START.finditer(text):
        length = _IBAN_LENGTHS.get(match[1].upper())
        if length is None:
            continue
        taken: list[str] = []
        place = match.start()
        while place < len(text) and len(taken) < length:
            character = text[place]
            if character.isascii() and character.isalnum():
                taken.append(character)
            elif character not in " -":
                break
            place += 1
        beside = text[place : place + 1]
        if iban("".join(taken)) and not (beside.isascii() and beside.isalnum()):
            yield Finding(match.start(), place, "iban")


def _weighted(digits: str, weights: tuple[int, ...], modulus: int) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False)) % modulus


def _chinese_id(text: str) -> bool:
    month, day = int(text[10:12]), int(text[12:14])
    total = _weighted(text[:17], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), 11)
    return 1 <= month <= 12 and 1 <= day <= 31 and "10X98765432"[total] == text[17].upper()


def _us_ssn(text: str) -> bool:
    area, group, serial = re.split(r"[ \-]", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _spanish_id(text: str) -> bool:
    body = _digits({"X": "0", "Y": "1", "Z": "2"}.get(text[0].upper(), text[0]) + text[1:])
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23] == text[-1].upper()


def _my_number(text: str) -> bool:
    digits = _digits(text)
    rest = _weighted(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2), 11)
    return int(digits[11]) == (0 if rest <= 1 else 11 - rest)


def _german_tax_id(text: str) -> bool:
    digits = _digits(text)
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return digits[0] != "0" and (11 - product) % 10 == int(digits[10])


def _brazilian_cpf(text: str) -> bool:
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    first = _weighted(digits[:9], tuple(range(10, 1, -1)), 11)
    second = _weighted(digits[:10], tuple(range(11, 1, -1)), 11)
    return digits[9:] == f"{0 if first < 2 else 11 - first}{0 if second < 2 else 11 - second}"


def _french_nir(text: str) -> bool:
    digits = text.replace(" ", "").upper().replace("2A", "19").replace("2B", "18")
    return digits.isdigit() and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _aadhaar(text: str) -> bool:
    """Verhoeff's check, in which neighbours cannot be swapped unseen."""
    check = 0
    for place, digit in enumerate(reversed(_digits(text))):
        check = _VERHOEFF_D[check][_VERHOEFF_P[place % 8][int(digit)]]
    return check == 0


_VERHOEFF_D: Final = tuple(
    tuple(
        (a + b) % 5
        if a < 5 and b < 5
        else (a - b) % 5
        if a >= 5 and b >= 5
        else (a + b) % 5 + 5
        if a < 5
        else (a - 5 - b) % 5 + 5
        for b in range(10)
    )
    for a in range(10)
)
_VERHOEFF_P: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 5, 7, 6, 2, 8, 3, 0, 9, 4),
    (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7),
    (9, 4, 5, 3, 1, 2, 6, 8, 7, 0),
    (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5),
    (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)

_L: Final = r"(?<![A-Za-z0-9\-.])"
_R: Final = r"(?![A-Za-z0-9\-])"
# (pattern, words that must stand before it where the check alone would meet too many other numbers, check)
_NATIONAL: Final[tuple[tuple[re.Pattern[str], re.Pattern[str] | None, Callable[[str], bool]], ...]] = (
    (re.compile(rf"{_L}[1-9]\d{{5}}(?:18|19|20)\d{{9}}[\dXx]{_R}"), None, _chinese_id),
    (re.compile(rf"{_L}\d{{3}}-\d{{2}}-\d{{4}}{_R}"), None, _us_ssn),
    (re.compile(rf"{_L}\d{{3}} \d{{2}} \d{{4}}{_R}"), re.compile(r"ssn|social security", re.I), _us_ssn),
    (re.compile(rf"{_L}(?:\d{{8}}|[XYZxyz]\d{{7}})-?[A-Za-z]{_R}"), None, _spanish_id),
    (
        re.compile(rf"{_L}\d{{4}}[ \-]?\d{{4}}[ \-]?\d{{4}}{_R}"),
        re.compile("マイナンバー|個人番号|my ?number", re.I),
        _my_number,
    ),
    (
        re.compile(rf"{_L}[1-9]\d ?\d{{3}} ?\d{{3}} ?\d{{3}}{_R}"),
        re.compile(r"steuer|tax|\bidnr", re.I),
        _german_tax_id,
    ),
    (re.compile(rf"{_L}\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}{_R}"), None, _brazilian_cpf),
    (re.compile(rf"{_L}[12] ?\d{{2}} ?\d{{2}} ?(?:\d{{2}}|2[AaBb]) ?\d{{3}} ?\d{{3}} ?\d{{2}}{_R}"), None, _french_nir),
    (re.compile(rf"{_L}[2-9]\d{{3}} \d{{4}} \d{{4}}{_R}"), None, _aadhaar),
    (
        re.compile(rf"{_L}[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{{2}} ?\d{{2}} ?\d{{2}} ?[A-D]{_R}"),
        None,
        lambda _: True,
    ),
)

"""Finds secrets in a text: keys of known shapes, private keys, tokens, passwords, and random strings behind key words.

No pattern relies on a word border: `\\b` does not exist between a Chinese character and a letter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from recalld.actors.trust.findings import Finding, joined

_LEFT: Final = r"(?<![A-Za-z0-9_\-])"
_RIGHT: Final = r"(?![A-Za-z0-9_\-])"

# (kind, a literal that every match holds, pattern)
_SHAPES: Final = tuple(
    (kind, literal, re.compile(pattern))
    for kind, literal, pattern in (
        ("aws_key", "A", rf"{_LEFT}(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|AIPA|ABIA|ACCA)[A-Z0-9]{{16}}{_RIGHT}"),
        ("github_token", "gh", rf"{_LEFT}gh[pousr]_[A-Za-z0-9]{{30,255}}(?![A-Za-z0-9])"),
        ("github_token", "github_pat_", rf"{_LEFT}github_pat_[A-Za-z0-9_]{{22,255}}(?![A-Za-z0-9_])"),
        ("gitlab_token", "glpat-", rf"{_LEFT}glpat-[A-Za-z0-9_\-]{{20,}}"),
        ("anthropic_key", "sk-ant-", rf"{_LEFT}sk-ant-[A-Za-z0-9_\-]{{20,}}"),
        ("openai_key", "sk-", rf"{_LEFT}sk-(?:proj-|svcacct-|admin-|None-)[A-Za-z0-9_\-]{{20,}}"),
        ("openai_key", "sk-", rf"{_LEFT}sk-(?:or-v1-)?[A-Za-z0-9]{{20,}}(?![A-Za-z0-9])"),
        ("slack_token", "xox", rf"{_LEFT}xox[abeoprs]-[A-Za-z0-9\-]{{10,}}"),
        ("slack_token", "xapp-", rf"{_LEFT}xapp-\d-[A-Za-z0-9\-]{{10,}}"),
        ("slack_token", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/]{20,}"),
        ("google_key", "AIza", rf"{_LEFT}AIza[A-Za-z0-9_\-]{{35}}(?![A-Za-z0-9_\-])"),
        ("google_key", "ya29.", rf"{_LEFT}ya29\.[A-Za-z0-9_\-]{{20,}}"),
        ("google_key", "GOCSPX-", rf"{_LEFT}GOCSPX-[A-Za-z0-9_\-]{{20,}}"),
        ("stripe_key", "k_", rf"{_LEFT}[rs]k_(?:live|test)_[A-Za-z0-9]{{16,}}"),
        ("stripe_key", "whsec_", rf"{_LEFT}whsec_[A-Za-z0-9+/=]{{24,}}"),
        ("huggingface_token", "hf_", rf"{_LEFT}hf_[A-Za-z0-9]{{30,}}"),
        ("npm_token", "npm_", rf"{_LEFT}npm_[A-Za-z0-9]{{36}}(?![A-Za-z0-9])"),
        ("pypi_token", "pypi-", rf"{_LEFT}pypi-[A-Za-z0-9_\-]{{40,}}"),
        ("sendgrid_key", "SG.", rf"{_LEFT}SG\.[A-Za-z0-9_\-]{{16,}}\.[A-Za-z0-9_\-]{{16,}}"),
        ("telegram_token", ":", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])"),
        ("jwt", "eyJ", rf"{_LEFT}eyJ[A-Za-z0-9_\-]{{6,}}\.eyJ[A-Za-z0-9_\-]{{4,}}\.[A-Za-z0-9_\-]*"),
    )
)

PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\s\S]{0,20000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,\-]*)"
)
"""A whole block. The end may be missing (cut off), or stand behind `\\n` spelt out, as environment files have it."""

# user:password@ in an address; the password alone is the secret, and may itself hold an @.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://[^\s:/@\"'<>]*:([^\s/\"'<>]+)@[^\s@]")

_PASSWORD_WORD: Final = (
    r"(?:passwords?|passwd|passwort|passphrase|pwd|kennwort|contraseñas?|contrasena|senha|mot de passe|"
    r"密码|密碼|口令|パスワード|暗証番号|비밀번호|пароль|pin[ _\-]?code|pass)"
)
_KEY_WORD: Final = (
    r"(?:api[ _\-]?(?:keys?|token|secret)|(?:access|secret|account|auth|private|master|encryption|signing|client|"
    r"shared|webhook|session|refresh|bearer|id|service)[ _\-]?(?:key|token|secret)s?|secret[ _\-]?access[ _\-]?key|"
    r"apikey|tokens?|secrets?|credentials?|"
    r"密钥|密鑰|秘钥|令牌|凭证|APIキー|シークレット|トークン|秘密鍵|アクセスキー|clave(?: secreta)?|clave de api|"
    r"schlüssel|zugangstoken|geheimnis)"
)
_SIGN: Final = r"\\?[\"'`]?\s{0,3}(?::=|=>|[=:])\s{0,3}"
_SAID: Final = r"\s{0,3}(?:is|was|es|ist|lautet|est|это|é|是|为|為|は|が|는|은|가|이|:|=)\s{0,3}"
_QUOTED_VALUE: Final = r"\\?\"((?:\\[^\"]|[^\"\\\n])+)|'((?:\\.|[^'\\\n])+)'|`([^`\n]+)`|「([^」\n]+)」"
_BARE_VALUE: Final = r"([^\s\"'`,;&<>(){}\[\]|「」。、，；]+)"

_PASSWORD_SET: Final = re.compile(
    rf"(?<![A-Za-z]){_PASSWORD_WORD}{_SIGN}(?:{_QUOTED_VALUE}|{_BARE_VALUE})|"
    rf"[A-Za-z0-9]_(?:password|passwd|pwd|pass)s?{_SIGN}(?:{_QUOTED_VALUE}|{_BARE_VALUE})",
    re.IGNORECASE,
)
_PASSWORD_SAID: Final = re.compile(
    rf"(?<![A-Za-z]){_PASSWORD_WORD}(?:\s(?:for|of|to|de|para|für|von|del|de la)\s[^\n.:]{{1,40}}?)?{_SAID}"
    rf"(?:{_QUOTED_VALUE}|([\x21-\x7e]{{4,}}))",
    re.IGNORECASE,
)
_KEY_SET: Final = re.compile(
    rf"{_KEY_WORD}(?:{_SIGN}|{_SAID}|\s{{1,3}})\\?[\"'`「]?([A-Za-z0-9_\-./+=~%$!@#^&*]{{12,}})", re.IGNORECASE
)
_BEARER: Final = re.compile(r"(?:Bearer|Basic|Token)\s+([A-Za-z0-9._~+/\-]{16,}=*)", re.IGNORECASE)

_NOT_A_VALUE: Final = re.compile(
    r"[*x•.…_\-]+|<.*|\$\{?.*|\{\{.*|%[A-Za-z_]+%|\[redacted.*|redacted|null|none|nil|undefined|true|false|required|"
    r"optional|string|str|text|changeme|your[_\-].*|example|placeholder|\d{1,2}|process\.env.*|os\.environ.*|env\..*",
    re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(
    rf"(?:.*[^A-Za-z])?(?:{_PASSWORD_WORD}|api[ _\-]?key|secret|token|private[ _\-]?key|credentials?|authorization)",
    re.IGNORECASE,
)


def secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret, whatever its value looks like."""
    return _SECRET_NAME.fullmatch(name.strip()) is not None


def is_value(value: str) -> bool:
    """Whether a field's value may be a secret at all: not blank, not a placeholder, not hidden already."""
    return bool(value.strip()) and _NOT_A_VALUE.fullmatch(value.strip()) is None


def find_secrets(text: str) -> Iterator[Finding]:
    """Every secret in `text` (which is narrow: findings.py), in no order; findings may overlap."""
    for kind, literal, pattern in _SHAPES:
        if literal in text:
            for match in pattern.finditer(text):
                yield Finding(match.start(), match.end(), kind)
    if "://" in text:
        for match in _ADDRESS.finditer(text):
            if is_value(match[1]):
                yield Finding(match.start(1), match.end(1), "password")
    for match in _PASSWORD_SET.finditer(text):
        yield from _password(text, match, said=False)
    for match in _PASSWORD_SAID.finditer(text):
        yield from _password(text, match, said=True)
    for pattern in (_KEY_SET, _BEARER):
        for match in pattern.finditer(text):
            value = match[1].rstrip(".")
            if is_value(value) and looks_random(value):
                yield Finding(match.start(1), match.start(1) + len(value), "secret")


def broken_secrets(text: str) -> Iterator[Finding]:
    """Keys of known shapes with a line break inside. What stands behind a whole key is its rest only if it looks so."""
    whole, places = joined(text)
    if len(whole) == len(text):
        return
    for kind, literal, pattern in _SHAPES:
        if literal not in whole:
            continue
        for match in pattern.finditer(whole):
            start, end = places[match.start()], places[match.end() - 1] + 1
            if end - start == match.end() - match.start() or not any(c.isdigit() for c in match[0]):
                continue
            alone = pattern.match(text, start)
            rest = "" if alone is None else text[alone.end() : end].strip()
            if alone is None or (len(rest) >= 6 and any(c.isdigit() for c in rest) and any(c.isalpha() for c in rest)):
                yield Finding(start, end, kind)


def _password(text: str, match: re.Match[str], said: bool) -> Iterator[Finding]:
    number = match.lastindex
    if number is None or not is_value(match[number]):
        return
    start, end = match.span(number)
    if text[start - 1] in "\"'`「" or _convincing(text, start, end, said):
        while end - start > 4 and text[end - 1] in ".!?\\":
            end -= 1
        yield Finding(start, end, "password")


def _convincing(text: str, start: int, end: int, said: bool) -> bool:
    """Whether a bare word behind "password" is one: "password: hunter2", not "password: must have ten characters"."""
    value = text[start:end].rstrip(".!?")
    if len(value) < 3:
        return False
    letters = any(c.isalpha() for c in value)
    if any(c.isdigit() for c in value) or (letters and any(c in "!@#$%^&*+=~" for c in value)):
        return True
    before = text[max(0, start - 2) : start]
    if "=" in before and " " not in before:
        return True
    if any(not c.isascii() for c in before):
        return True  # 密码是hunter: a Latin word in a Chinese sentence
    return not said and text[end : end + 40].partition("\n")[0].strip(" \t.!?,;\"'") == ""


def looks_random(value: str) -> bool:
    """Whether a string looks made by a machine: long, of mixed signs, and hard to guess sign by sign."""
    if len(value) < 12:
        return False
    kinds = sum((any(c.isdigit() for c in value), any(c.islower() for c in value), any(c.isupper() for c in value)))
    if kinds < 2 or not any(c.isdigit() for c in value):
        return False
    if "://" in value or value.count("/") > 3 or value.count(".") > 3:
        return False  # an address, a path
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return entropy >= (2.8 if len(value) < 20 else 3.0)

"""Secrets that only their name gives away: ``password=...``, hex beside a cue.

The name is kept and the value goes. Much that looks like an assignment is prose or code
(``password: required``, ``token = get_token()``), so the value has to look like a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.redaction import context
from memory.redaction.candidate import Candidate

__all__ = ["assigned_secrets", "long_secrets", "told_passwords"]

_LOGIN_NAMES = (
    r"pass(?:word|wd|code|phrase|wort)s?|pwd|passwrd|\u092a\u093e\u0938\u0935\u0930\u094d\u0921"
)
_KEY_NAMES = (
    r"(?:client|app|api|shared|signing|webhook|jwt|consumer|oauth|account)?[_\-. ]?secret"
    r"(?:[_\-. ]?(?:access[_\-. ]?)?key)?"
    r"|(?:api|access|auth|secret|private|encryption|signing|license|account|storage|master)"
    r"[_\-. ]?key"
    r"|(?:access|auth|refresh|id|api|bearer|bot|session|csrf|personal|deploy)?[_\-. ]?token"
    r"|credentials?|session[_\-]?id|phpsessid|jsessionid"
)
_VALUE = (
    r"(?:\"([^\"\n]{1,512})\"|'([^'\n]{1,512})'|((?:[^\s\"'<>,;&]|&(?![A-Za-z_]{1,32}=)){1,512}))"
)
_ASSIGNMENT = re.compile(
    rf"(?:({_LOGIN_NAMES})|(?:{_KEY_NAMES}))(?:_?[0-9]{{1,2}}|_?(?:confirmation|base64|value|text))?"
    rf"[\"'`\])]{{0,2}}[ \t]{{0,3}}(?::=|=>|==?|:|\uff1a)[ \t]{{0,3}}{_VALUE}",
    re.IGNORECASE,
)
_FLAG = re.compile(rf"--(?:({_LOGIN_NAMES})|(?:{_KEY_NAMES}))[ \t]{{1,3}}{_VALUE}", re.IGNORECASE)

_CUES = ("pass", "pwd", "secret", "token", "key", "credential", "sess", "\u092a\u093e\u0938")

_TRAILING = ").,?}]\u0964"
_PLACEHOLDER = re.compile(
    r"[<${%\[(]|(?:\*+|x+|\.+|-+|_+)$|(?:your|my|the|enter|insert|some|example|os\.|env\b|env\.|process\.|"
    r"self\.|this\.|config\.|settings\.|args\.|request\.|req\.|getenv|function|lambda|await)",
    re.IGNORECASE,
)
_NOT_A_VALUE_WORDS = """
    none null nil true false undefined str string bytes int bool optional required any text field
    varchar char invalid incorrect wrong missing expired reset changed updated hidden empty unset
    redacted masked encrypted hashed plain plaintext value password secret token key default yes no
    must should is was not the a an and or please weak strong bearer basic jwt auto todo tbd na n/a
    unknown invalid_token protected policy manager refresh access forgotten forgot same too very
    needs cannot can will has have been being stored saved safe secure set here there again now in
    """
_NOT_A_VALUE = frozenset(_NOT_A_VALUE_WORDS.split())
_CODE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+$|[A-Za-z_][\w.]*[(\[]")


def assigned_secrets(text: str) -> Iterator[Candidate]:
    """Yield the values of ``password=``, ``"api_key": "..."``, ``--token ...`` and their like."""
    lowered = text.lower()
    if not any(cue in lowered for cue in _CUES):
        return
    for pattern in (_ASSIGNMENT, _FLAG):
        for match in pattern.finditer(text):
            group = next(at for at in (2, 3, 4) if match[at] is not None)
            start, end = match.span(group)
            quoted = group != 4
            if not quoted:
                end -= len(match[4]) - len(match[4].rstrip(_TRAILING))
            if _is_value(text[start:end], password=match[1] is not None, quoted=quoted) and not (
                _prose(text, match, end, quoted=quoted)
            ):
                kind = "password" if match[1] is not None else "secret"
                yield Candidate(start, end, kind)


def _is_value(value: str, *, password: bool, quoted: bool) -> bool:
    if not value or value.lower() in _NOT_A_VALUE or _PLACEHOLDER.match(value):
        return False
    if not quoted and _CODE.match(value):
        return False
    if password:
        return len(value) >= 3
    if len(value) < 8 or " " in value:
        return False
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed or len(value) >= 16


def _prose(text: str, match: re.Match[str], end: int, *, quoted: bool) -> bool:
    """Return whether a value of letters only, after a colon, goes on as a sentence."""
    if quoted or not text[match.start(4) : end].isalpha():
        return False
    if "=" in text[match.start() : match.start(4)]:
        return False
    return re.match(r"[ \t]+[A-Za-z]", text[end : end + 8]) is not None


_TOLD_VALUE = r"(?:\"([^\"\n]{1,128})\"|'([^'\n]{1,128})'|([^\s\"'<>,;]{3,128}))"
_TOLD = re.compile(
    rf"(?:{_LOGIN_NAMES})(?:[ \t]{{1,3}}[A-Za-z0-9.\-]{{1,24}}){{0,4}}?[ \t]{{1,3}}"
    rf"(is|was|=>|->)[ \t]{{1,3}}(?:now[ \t]{{1,3}}|set to[ \t]{{1,3}})?{_TOLD_VALUE}",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?:{_LOGIN_NAMES})[ \t]{{1,3}}(?:(?:mera|hai|ye|yeh|my|to|as)[ \t]{{1,3}})?(){_TOLD_VALUE}",
    re.IGNORECASE,
)


def told_passwords(text: str) -> Iterator[Candidate]:
    """Yield passwords told in a sentence: ``my password is hunter2``, ``password Abc@123 hai``.

    One of letters alone is taken only where nothing follows and it is no word of state.
    """
    lowered = text.lower()
    if not any(cue in lowered for cue in ("pass", "pwd", "\u092a\u093e\u0938")):
        return
    for match in (*_TOLD.finditer(text), *_BARE.finditer(text)):
        group = next(at for at in (2, 3, 4) if match[at] is not None)
        start, end = match.span(group)
        end -= len(match[group]) - len(match[group].rstrip(_TRAILING))
        value = text[start:end]
        if not _is_value(value, password=True, quoted=group != 4):
            continue
        said = bool(match[1])
        final = said and value.isalpha() and _final_word(text, value, end)
        if group != 4 or final or (said and _looks_made_up(value)) or _mixed(value):
            yield Candidate(start, end, "password")


def _mixed(value: str) -> bool:
    return (
        len(value) >= 6
        and any(char.isdigit() for char in value)
        and any(char.isalpha() for char in value)
        and "-" not in value
    )


def _looks_made_up(value: str) -> bool:
    return len(value) >= 4 and not value.replace("-", "").replace("'", "").isalpha()


def _final_word(text: str, value: str, end: int) -> bool:
    if value.lower().endswith(("ed", "ing", "en", "able")) or len(value) < 4:
        return False
    return re.match(r"[.!?,]?\s*(?:$|\n|[A-Z])", text[end : end + 12]) is not None


_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?[0-9a-fA-F]{32,512}(?![A-Za-z0-9])")
_OPAQUE = re.compile(r"(?<![A-Za-z0-9+/_.\-])[A-Za-z0-9+/_\-]{24,512}={0,2}(?![A-Za-z0-9+/_\-])")


def long_secrets(text: str, *, always: bool = False) -> Iterator[Candidate]:
    """Yield long random-looking strings beside a cue; a commit or a checksum is no secret.

    Hexadecimal from 32 digits on (``always`` takes those without a cue too), or 24 characters and
    more that mix capitals, small letters and digits.
    """
    for match in _HEX.finditer(text):
        if always or context.says(text, *match.span(), "secret"):
            yield Candidate(*match.span(), "secret")
    for match in _OPAQUE.finditer(text):
        if _random(match[0]) and context.says(text, *match.span(), "secret"):
            yield Candidate(*match.span(), "secret")


def _random(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    capitals = sum(map(str.isupper, value))
    return digits >= 2 and capitals >= 3 and any(map(str.islower, value))

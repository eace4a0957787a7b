"""Secrets that only their name gives away: ``password=...``, hex beside a cue.

The name is kept and the value goes. Much that looks like an assignment is prose or code
(``password: required``, ``token = get_token()``), so the value has to look like a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.redaction import context
from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["assigned_secrets", "long_secrets", "told_passwords"]

# Names are searched for in the small-letter form of the text, values in the text itself.
_LOGIN = (
    r"pass(?:word|wd|code|phrase|wort)s?|pwd|passwrd|\u092a\u093e\u0938\u0935\u0930\u094d\u0921"
)
_OTHER = (
    r"secret(?:[_\-. ]?(?:access[_\-. ]?)?key)?|token|key|credentials?|session[_\-]?id"
    r"|phpsessid|jsessionid"
)
_NAME = re.compile(
    rf"(?:({_LOGIN})|({_OTHER}))(?:_?[0-9]{{1,2}}|_?(?:confirmation|base64|value|text))?"
    r"(?:[\"'`\])]{0,2}[ \t]{0,3}(?::=|=>|==?|:)|(?<=[a-z])(?=[ \t]))[ \t]{0,3}"
)
# A key is a secret if it is one of these.
_QUALIFIED = re.compile(
    r"(?:api|access|auth|secret|private|encryption|signing|license|account|storage|master|hmac"
    r"|service|crypto|cipher|subscription|x)[_\-. ]?$"
)
_VALUE = re.compile(
    r"\"([^\"\n\ufffc]{1,512})\"|'([^'\n\ufffc]{1,512})'"
    r"|((?:[^\s\"'<>,;&\ufffc]|&(?![A-Za-z_]{1,32}=)){1,512})"
)

_TRAILING = ").,?}]\u0964"
_PLACEHOLDER = re.compile(
    r"[<${%\[(]|(?:\*+|x+|\.+|-+|_+)$|(?:your|my|the|enter|insert|some|example)(?:[_\- ]|$)"
    r"|(?:os|env|process|self|this|config|settings|args|request|req)\.|(?:getenv|function|lambda|await)\b",
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


def assigned_secrets(view: View) -> Iterator[Candidate]:
    """Yield the values of ``password=``, ``"api_key": "..."``, ``--token ...`` and their like."""
    text = view.text
    for match in _NAME.finditer(view.lowered):
        value = _VALUE.match(text, match.end())
        if value is None or not _assigns(view, match):
            continue
        start, end = _trimmed(value)
        quoted, password = value[3] is None, match[1] is not None
        sure = _is_value(text[start:end], password=password, quoted=quoted) and (
            quoted or ":" not in match[0] or not _goes_on(text, start, end)
        )
        kind = "password" if password else "secret"
        yield Candidate(start, end, kind if sure else "")


def _assigns(view: View, match: re.Match[str]) -> bool:
    """Return whether the name is a secret's and is given a value, by a sign or as a flag."""
    before = view.lowered[max(0, match.start() - 24) : match.start()]
    if match[2] == "key" and not _QUALIFIED.search(before):
        return False
    if any(sign in match[0] for sign in ":="):
        return True
    return before.split(" ")[-1].startswith("--")


def _trimmed(value: re.Match[str]) -> tuple[int, int]:
    """Return the span of a value without its quotes, or without the marks that end a sentence."""
    group = value.lastindex or 3
    start, end = value.span(group)
    if group == 3:
        end -= len(value[3]) - len(value[3].rstrip(_TRAILING))
    return start, end


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


def _goes_on(text: str, start: int, end: int) -> bool:
    """Return whether a value of letters only is the first word of a sentence."""
    following = re.match(r"[ \t]+[A-Za-z]", text[end : end + 8])
    return text[start:end].isalpha() and following is not None


_TOLD = re.compile(
    rf"(?:{_LOGIN})(?:[ \t]{{1,3}}[a-z0-9.\-]{{1,24}}){{0,4}}?[ \t]{{1,3}}"
    r"(?:is|was|=>|->)[ \t]{1,3}(?:now[ \t]{1,3}|set to[ \t]{1,3})?"
)
_FOLLOWED = re.compile(
    rf"(?:{_LOGIN})[ \t]{{1,3}}(?:-[ \t]{{1,3}})?"
    rf"(?:(?:mera|hai|ye|yeh|my|to|as|\u0939\u0948)[ \t]{{1,3}})?"
)


def told_passwords(view: View) -> Iterator[Candidate]:
    """Yield passwords told in a sentence: ``my password is hunter2``, ``password Abc@123 hai``.

    One of letters alone is taken only where nothing follows and it is no word of state.
    """
    for pattern, said in ((_TOLD, True), (_FOLLOWED, False)):
        for match in pattern.finditer(view.lowered):
            value = _VALUE.match(view.text, match.end())
            if value is not None:
                told = _is_told(view.text, value, said=said)
                yield Candidate(*_trimmed(value), "password" if told else "")


def _is_told(text: str, value: re.Match[str], *, said: bool) -> bool:
    start, end = _trimmed(value)
    word = text[start:end]
    if not _is_value(word, password=True, quoted=value[3] is None):
        return False
    if value[3] is None or _mixed(word):
        return True
    return said and (_looks_made_up(word) or (word.isalpha() and _final_word(text, word, end)))


def _mixed(value: str) -> bool:
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    return len(value) >= 6 and digits and letters and "-" not in value


def _looks_made_up(value: str) -> bool:
    return len(value) >= 4 and not value.replace("-", "").replace("'", "").isalpha()


def _final_word(text: str, value: str, end: int) -> bool:
    if value.lower().endswith(("ed", "ing", "en", "able")) or len(value) < 4:
        return False
    return re.match(r"[.!?,]?\s*(?:$|\n|[A-Z])", text[end : end + 12]) is not None


_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?[0-9a-fA-F]{32,512}(?![A-Za-z0-9])")
_OPAQUE = re.compile(r"(?<![A-Za-z0-9+/_.\-])[A-Za-z0-9+/_\-]{24,512}={0,2}(?![A-Za-z0-9+/_\-])")


def long_secrets(view: View, *, always: bool = False) -> Iterator[Candidate]:
    """Yield long random-looking strings beside a cue; a commit or a checksum is no secret.

    Hexadecimal from 32 digits on (``always`` takes those without a cue too), or 24 characters and
    more that mix capitals, small letters and digits.
    """
    text = view.text
    guarded = view.secret
    for piece in view.pieces:
        for match in _HEX.finditer(text, *piece):
            sure = always or (guarded and context.says(text, *match.span(), "secret"))
            yield Candidate(*match.span(), "secret" if sure else "")
        for match in _OPAQUE.finditer(text, *piece) if guarded else ():
            if _random(match[0]):
                sure = context.says(text, *match.span(), "secret")
                yield Candidate(*match.span(), "secret" if sure else "")


def _random(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    capitals = sum(map(str.isupper, value))
    return digits >= 2 and capitals >= 3 and any(map(str.islower, value))

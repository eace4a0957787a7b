"""The copy as detectors see it, with what several of them ask about worked out once.

Most texts hold nothing for most detectors. Each detector is therefore behind a gate, a flag of the
view that says whether looking is worth while: an ``@``, a digit, the word ``passport``.
"""

from __future__ import annotations

import re

__all__ = ["View"]

_GROUP = re.compile("[0-9]+")
_PIECE = re.compile(r"(?<!\S)\S{20,}+")
_SPELLED_AT = re.compile(r"[(\[{<] ?(?:at|@|dot)| dot ")


class View:
    """A text to search.

    ``lowered`` is the text in small letters and of the same length, ``groups`` are the runs of
    digits, ``pieces`` the stretches of twenty and more characters without white space.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = lowered = _lowered(text)
        self.groups = [match.span() for match in _GROUP.finditer(text)]
        self.pieces = [match.span() for match in _PIECE.finditer(text)]
        self.always = True
        self.digits = digits = bool(self.groups)
        self.long = bool(self.pieces)
        self.at = "@" in text
        self.spelled_at = _SPELLED_AT.search(lowered) is not None
        self.url = self.at and "://" in text
        self.private_key = "PRIVATE KEY" in text
        self.jwt = "eyJ" in text
        self.header = "authorization" in lowered or "bearer" in lowered or "basic" in lowered
        self.login = "pass" in lowered or "pwd" in lowered or "पासव" in lowered
        self.secret = (
            self.login
            or "secret" in lowered
            or "token" in lowered
            or "key" in lowered
            or "credential" in lowered
            or "sess" in lowered
        )
        self.voter = digits and (
            "voter" in lowered
            or "epic" in lowered
            or "elect" in lowered
            or "मतद" in lowered
            or "वोट" in lowered
        )
        self.passport = digits and ("passport" in lowered or "पासपोर्ट" in lowered)
        self.licence = digits and (
            "licen" in lowered or "dl" in lowered or "driv" in lowered or "लाइसेंस" in lowered
        )


def _lowered(text: str) -> str:
    lowered = text.lower()
    if len(lowered) != len(text):
        # U+0130 is the one letter whose small form is two characters.
        lowered = text.replace("\u0130", "I").lower()
    return lowered

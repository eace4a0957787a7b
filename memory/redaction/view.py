"""The copy as detectors see it, with what several of them ask about worked out once.

Most texts hold nothing for most detectors. Each detector is therefore behind a gate, which
says what has to be in the text for looking to be worth while: an ``@``, a digit, the word
``passport``. Plain substring searches decide: they are many times faster than any pattern.
"""

from __future__ import annotations

import re

__all__ = ["Gate", "View"]


class Gate:
    """What a text may hold, as bits of a number."""

    ALWAYS = 1 << 0
    DIGITS = 1 << 1
    GSTIN = 1 << 2
    IBAN = 1 << 3
    PAN = 1 << 4
    IFSC = 1 << 5
    PASSPORT = 1 << 6
    LICENCE = 1 << 7
    VOTER = 1 << 8
    LONG = 1 << 9
    AT = 1 << 10
    URL = 1 << 11
    SPELLED_AT = 1 << 12
    SECRET = 1 << 13
    LOGIN = 1 << 14
    PRIVATE_KEY = 1 << 15
    HEADER = 1 << 16
    JWT = 1 << 17


_GROUP = re.compile("[0-9]+")
# Short words first: what follows them is a long one, or there is none before the end.
_PIECE = re.compile(r"(?:\S{0,19}+\s)*+(\S{20,}+)")
_SPELLED_AT = re.compile(r"[(\[{<] ?(?:at|@|dot)")


class Starts:
    """Where runs of digits begin that a code may hold.

    ``short`` are those of one or two digits, ``fours`` of four, ``zeros`` those that begin with a
    zero, ``glued`` those of two and more right behind a letter.
    """

    __slots__ = ("fours", "glued", "short", "zeros")

    def __init__(self, text: str) -> None:
        self.short: list[int] = []
        self.fours: list[int] = []
        self.zeros: list[int] = []
        self.glued: list[int] = []
        for match in _GROUP.finditer(text):
            start, end = match.span()
            size = end - start
            if size == 4:
                self.fours.append(start)
            elif size <= 2:
                self.short.append(start)
            if text[start] == "0":
                self.zeros.append(start)
            if size > 1 and start and text[start - 1].isalpha():
                self.glued.append(start)


class View:
    """A text to search.

    ``lowered`` is the text in small letters and of the same length, ``pieces`` are the stretches of
    twenty and more characters without white space.
    """

    __slots__ = ("_secret", "_starts", "lowered", "pieces", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lowered = _lowered(text)
        self.pieces = _pieces(text)
        self._starts: Starts | None = None
        self._secret: bool | None = None

    @property
    def starts(self) -> Starts:
        """Where the runs of digits begin."""
        if self._starts is None:
            self._starts = Starts(self.text)
        return self._starts

    @property
    def secret(self) -> bool:
        """Whether a word for a secret is in the text."""
        if self._secret is None:
            lowered = self.lowered
            self._secret = (
                "pass" in lowered
                or "key" in lowered
                or "token" in lowered
                or "secret" in lowered
                or "pwd" in lowered
                or "sess" in lowered
                or "credential" in lowered
                or "पासव" in lowered
            )
        return self._secret

    def gates(self) -> int:
        """Return the gates that are open; none where there is nothing to look for."""
        text, lowered = self.text, self.lowered
        found = 0
        if _has_digit(text):
            found |= Gate.DIGITS
            found |= self._codes() | self._documents()
        if self.pieces:
            found |= Gate.LONG
        if "@" in text:
            found |= Gate.AT
            if "://" in text:
                found |= Gate.URL
        if _has_spelled_at(lowered):
            found |= Gate.SPELLED_AT
        if self.secret:
            found |= Gate.SECRET
            if "pass" in lowered or "pwd" in lowered or "पासव" in lowered:
                found |= Gate.LOGIN
            if "PRIVATE KEY" in text:
                found |= Gate.PRIVATE_KEY
        if "authorization" in lowered or "bearer" in lowered or "basic" in lowered:
            found |= Gate.HEADER
        if "eyJ" in text:
            found |= Gate.JWT
        return found

    def _codes(self) -> int:
        starts, lowered = self.starts, self.lowered
        found = 0
        if starts.short:
            found |= Gate.GSTIN
        if starts.glued:
            found |= Gate.IBAN
        if starts.fours or "pan" in lowered or "\u092a\u0948\u0928" in lowered:
            found |= Gate.PAN
        if starts.zeros or "ifs" in lowered:
            found |= Gate.IFSC
        return found

    def _documents(self) -> int:
        lowered = self.lowered
        found = 0
        if "passport" in lowered or "पासपोर्ट" in lowered:
            found |= Gate.PASSPORT
        if "dl" in lowered or "licen" in lowered or "driv" in lowered or "लाइसेंस" in lowered:
            found |= Gate.LICENCE
        if (
            "voter" in lowered
            or "epic" in lowered
            or "elect" in lowered
            or "मतद" in lowered
            or "वोट" in lowered
        ):
            found |= Gate.VOTER
        return found


def _lowered(text: str) -> str:
    lowered = text.lower()
    if len(lowered) != len(text):
        # U+0130 is the one letter whose small form is two characters.
        lowered = text.replace("\u0130", "I").lower()
    return lowered


def _pieces(text: str) -> list[tuple[int, int]]:
    found = []
    position = 0
    while match := _PIECE.match(text, position):
        found.append(match.span(1))
        position = match.end()
    return found


def _has_digit(text: str) -> bool:
    return (
        "0" in text
        or "1" in text
        or "2" in text
        or "3" in text
        or "4" in text
        or "5" in text
        or "6" in text
        or "7" in text
        or "8" in text
        or "9" in text
    )


def _has_spelled_at(lowered: str) -> bool:
    if " dot " in lowered:
        return True
    bracket = "(" in lowered or "[" in lowered or "{" in lowered or "<" in lowered
    return bracket and _SPELLED_AT.search(lowered) is not None

"""The copy as detectors see it, with what several of them ask about worked out once.

Most texts hold nothing for most detectors. Each detector is therefore behind a gate, a property of
the view that says whether looking is worth while: an ``@``, a digit, the word ``passport``.
"""

from __future__ import annotations

import re
from functools import cached_property

__all__ = ["View"]

_GROUP = re.compile("[0-9]+")
_PIECE = re.compile(r"(?<!\S)\S{20,}+")


class View:
    """A text to search. ``lowered`` has the same length as ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _names(self, *words: str) -> bool:
        lowered = self.lowered
        return any(word in lowered for word in words)

    @cached_property
    def lowered(self) -> str:
        """The text in small letters."""
        lowered = self.text.lower()
        if len(lowered) != len(self.text):
            # U+0130 is the one letter whose small form is two characters.
            lowered = self.text.replace("\u0130", "I").lower()
        return lowered

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """The runs of digits."""
        return [match.span() for match in _GROUP.finditer(self.text)]

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """The stretches of twenty and more characters without white space."""
        return [match.span() for match in _PIECE.finditer(self.text)]

    @cached_property
    def at(self) -> bool:
        """Whether there is an @."""
        return "@" in self.text

    @cached_property
    def spelled_at(self) -> bool:
        """Whether an e-mail address may be spelled out."""
        return self._names(
            " dot ", "(dot", "[dot", "(at", "[at", "{at", "<at", "( at", "[ at", "(@", "[@"
        )

    @cached_property
    def url(self) -> bool:
        """Whether there is a URL that may hold a password."""
        return self.at and "://" in self.text

    @cached_property
    def private_key(self) -> bool:
        """Whether the armour of a private key is there."""
        return "PRIVATE KEY" in self.text

    @cached_property
    def jwt(self) -> bool:
        """Whether a base64url JSON object may begin somewhere."""
        return "eyJ" in self.text

    @cached_property
    def header(self) -> bool:
        """Whether an authorization header may be there."""
        return self._names("authorization", "bearer", "basic")

    @cached_property
    def login(self) -> bool:
        """Whether a password is spoken of."""
        return self._names("pass", "pwd", "\u092a\u093e\u0938\u0935")

    @cached_property
    def secret(self) -> bool:
        """Whether a password or another secret is spoken of."""
        return self.login or self._names("secret", "token", "key", "credential", "sess")

    @cached_property
    def voter(self) -> bool:
        """Whether a voter id is spoken of."""
        return bool(self.groups) and self._names(
            "voter", "epic", "elect", "\u092e\u0924\u0926", "\u0935\u094b\u091f"
        )

    @cached_property
    def passport(self) -> bool:
        """Whether a passport is spoken of."""
        return bool(self.groups) and self._names(
            "passport", "\u092a\u093e\u0938\u092a\u094b\u0930\u094d\u091f"
        )

    @cached_property
    def licence(self) -> bool:
        """Whether a driving licence is spoken of."""
        return bool(self.groups) and self._names(
            "licen", "dl", "driv", "\u0932\u093e\u0907\u0938\u0947\u0902\u0938"
        )

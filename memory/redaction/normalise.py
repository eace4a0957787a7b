r"""A copy of the text for matching, and the way back to the original's offsets.

People write identifiers with no-break spaces, zero-width characters, en dashes, full-width letters
and the digits of their own script; programs write ``\n``, ``\u0967`` and ``%2B``. The copy has one
plain character for each of these and none for what shows nothing; the gaps are remembered.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["Copy", "normalise"]

# Soft hyphen, grapheme joiner, Arabic letter mark, Mongolian separators, zero-width and
# bidirectional marks, word joiners, variation selectors, the keycap ring, tag characters.
_INVISIBLE = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u20e3\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]+"
)
_GAP = re.compile(
    rf"{_INVISIBLE}|%(20|2[Bb]|2[Ff]|40|3[Aa]|3[Dd]|0[9AaDd])"
    r"|\\{1,4}(?:([nrt/])|u([0-9a-fA-F]{4}))"
)
_ESCAPED = {"n": "\n", "r": "\n", "t": "\t", "/": "/"}
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u3164"
_DASHES = "\u058a\u1806\u2010-\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_DOTS = "\u00b7\u2024\u2027\u2219\u22c5\u30fb\uff0e\uff65"


def _members(char_class: str) -> re.Pattern[str]:
    return re.compile(f"[{char_class}]")


def _replacements() -> dict[int, str]:
    """Return what stands for what: decimal digits, wide and mathematical letters, separators."""
    everything = "".join(map(chr, range(0x80, 0x20000)))
    table = {ord(char): str(unicodedata.decimal(char)) for char in re.findall(r"\d", everything)}
    for block in (range(0xFF01, 0xFF5F), range(0x1D400, 0x1D6A4)):
        for code in block:
            plain = unicodedata.normalize("NFKC", chr(code))
            if plain.isascii() and len(plain) == 1:
                table[code] = plain
    for char_class, plain in (
        (_SPACES, " "),
        (_DASHES, "-"),
        (_DOTS, "."),
        ("\x85\u2028\u2029", "\n"),
    ):
        table.update((ord(char), plain) for char in _members(char_class).findall(everything))
    table[0xFF20] = table[0xFE6B] = "@"
    return table


_TABLE = _replacements()
_NO_ESCAPES: Mapping[int, int] = MappingProxyType({})


class Copy:
    """The copy and, where characters were left out, how to find an offset again.

    ``kept`` are the starts in the copy of the stretches between gaps, ``shifts`` how much was left
    out before each, ``escapes`` the characters that were written as an escape and by how much that
    was longer.
    """

    __slots__ = ("escapes", "kept", "shifts", "text")

    def __init__(
        self,
        text: str,
        kept: Sequence[int] = (),
        shifts: Sequence[int] = (),
        escapes: Mapping[int, int] = _NO_ESCAPES,
    ) -> None:
        self.text = text
        self.kept = kept
        self.shifts = shifts
        self.escapes = escapes

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original: invisible characters inside belong to it."""
        if not self.kept:
            return start, end
        first = self.shifts[bisect_right(self.kept, start) - 1]
        last = self.shifts[bisect_right(self.kept, end - 1) - 1]
        return start + first, end + last + self.escapes.get(end - 1, 0)


def normalise(text: str) -> Copy:
    """Return the copy to match on. Linear; a text in plain ASCII is its own copy."""
    if text.isascii() and "%" not in text and "\\" not in text:
        return Copy(text)
    plain = text if text.isascii() else text.translate(_TABLE)
    if _GAP.search(plain) is None:
        return Copy(plain)
    pieces, kept, shifts = [], [], []
    escapes = {}
    length = gone = last = 0
    for gap in _GAP.finditer(plain):
        shown = _shown(gap)
        stretch = plain[last : gap.start()] + shown
        pieces.append(stretch)
        kept.append(length)
        shifts.append(gone)
        length += len(stretch)
        if shown:
            escapes[length - 1] = gap.end() - gap.start() - 1
        last = gap.end()
        gone = last - length
    pieces.append(plain[last:])
    kept.append(length)
    shifts.append(gone)
    return Copy("".join(pieces), kept, shifts, escapes)


def _shown(gap: re.Match[str]) -> str:
    """Return what a gap stands for: nothing, or the one character that is escaped."""
    percent, letter, code = gap.groups()
    if letter:
        return _ESCAPED[letter]
    if not percent and not code:
        return ""
    char = chr(int(percent or code, 16)).translate(_TABLE)
    return "" if re.fullmatch(_INVISIBLE, char) else char

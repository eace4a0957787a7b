"""The one tokeniser: what counts as a word, for both stores, in writing and in asking.

A term is a run of letters, digits and combining marks after NFKC normalisation and case folding
(Unicode UAX #15 and the Unicode Standard, section 3.13). Hindi and Tamil keep their vowel signs.
Scripts written without spaces (Han, Hiragana, Katakana, Hangul) are cut into overlapping pairs of
characters; a lone character is a term of its own. There is no stemming and no stop list.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

__all__ = ["TERM_BYTES", "terms"]

TERM_BYTES = 128

_ASCII_TERM = re.compile(r"[a-z0-9]+")

# Joiners, soft hyphens and variation selectors shape a glyph; with or without them it is one word.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u034f\u200c\u200d\u2060\ufeff")) | dict.fromkeys(
    [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
)

_UNSPACED = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"  # Han
    "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
)
_SEGMENT = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")


def terms(text: str) -> dict[str, int]:
    """Return the distinct terms of a text with their frequencies, in order of first occurrence.

    Each is at most :data:`TERM_BYTES` bytes of UTF-8, cut at a character: an unbroken blob must fit
    an index. Linear in the length of the text.
    """
    return dict(Counter(_shortened(term) for term in _terms(text)))


def _terms(text: str) -> Iterator[str]:
    if text.isascii():
        yield from _ASCII_TERM.findall(text.lower())
        return
    for run in _runs(_folded(text)):
        for segment in _SEGMENT.findall(run):
            if len(segment) > 1 and _UNSPACED_START.match(segment):
                yield from map("".join, pairwise(segment))
            else:
                yield segment


def _folded(text: str) -> str:
    text = _bounded_marks(text.translate(_INVISIBLE))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _bounded_marks(text: str) -> str:
    """Keep 30 combining marks in a row (UAX #15, Stream-Safe Text): sorting more is quadratic."""
    marks = "".join(char for char in set(text) if unicodedata.category(char)[0] == "M")
    if not marks:
        return text
    return re.sub(f"([{re.escape(marks)}]{{30}})[{re.escape(marks)}]+", r"\1", text)


def _runs(text: str) -> Iterator[str]:
    separators, marks = {}, ""
    for char in set(text):
        category = unicodedata.category(char)[0]
        if category not in "LNM":
            separators[ord(char)] = " "
        elif category == "M":
            marks += char
    for run in text.translate(separators).split(" "):
        word = run.lstrip(marks)
        if word:
            yield word


def _shortened(term: str) -> str:
    if len(term) * 4 <= TERM_BYTES:
        return term
    return term.encode()[:TERM_BYTES].decode(errors="ignore")

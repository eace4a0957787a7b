"""What the words around a candidate say it is.

A checksum cannot tell an Aadhaar number from an order number that happens to pass; the words can.
The nearest cue wins, looking back first: ``Order 55, call 9876543210`` is a phone number and
``phone order 9876543210`` an order. A cue serves the first number after it (and a list of numbers
written alike), does not reach across the end of a sentence, and never across another identifier,
masked or about to be: that keeps a second pass from reading more into the text than the first.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from memory.redaction.backwards import REACH, Said, before, cue_of
from memory.redaction.masks import HIDDEN
from memory.redaction.pieces import chunks_of, pieces_of
from memory.redaction.tables import column_head
from memory.redaction.words import CUES, HEADS, UNITS

__all__ = ["Said", "about", "cue_of", "glued", "says"]

_OPERATOR = re.compile(r"%| ?[+*^] ?[0-9(]")
_SIGNS = frozenset("%+*^")
_LINKS_WORDS = "is was are as being hai tha are equals"
_LINKS = frozenset(_LINKS_WORDS.split())
# One of these has to be among the first two pieces behind, or the rest is not read.
_HEEDED = _LINKS | {"(", ","} | CUES.keys() | {f"{word}s" for word in CUES}


def after(text: str, end: int) -> Said | None:
    """Return what is said behind a candidate: a unit, or ``is my account number``."""
    nearest = _pieces_after(text, end, 24, 2)
    if _counts(text, end, nearest):
        return Said("amount")
    if _HEEDED.isdisjoint(nearest):
        return None
    return _linked(_pieces_after(text, end, REACH, 8))


def _counts(text: str, end: int, nearest: Sequence[str]) -> bool:
    """Return whether a unit or an operator directly behind makes the number a quantity."""
    if nearest and nearest[0] in UNITS:
        return True
    sign = text[end : end + 2]
    return not _SIGNS.isdisjoint(sign) and _OPERATOR.match(text, end) is not None


def _pieces_after(text: str, end: int, reach: int, count: int) -> list[str]:
    """Return the first pieces behind ``end``, in small letters."""
    found: list[str] = []
    for chunk in chunks_of(text[end : end + reach].partition(HIDDEN)[0]):
        if chunk:
            found += pieces_of(chunk)
            if len(found) >= count:
                break
    return [piece.lower() for piece in found[:count]]


def _linked(pieces: list[str]) -> Said | None:
    """Return the cue that a verb, a bracket or a noun such as ``number`` ties to what precedes."""
    linked = pieces[0] == "("
    for index, piece in enumerate(pieces[:6]):
        if piece in ".?!;\n\u0964|" or piece.isdigit():
            break
        if piece == "," and not (index == 0 and "ifsc" in pieces[1:3]):
            break
        linked = linked or piece in _LINKS
        cue = cue_of(piece)
        following = pieces[index + 1] if index + 1 < len(pieces) else ""
        if cue == "headed":
            cue = "reference" if following in HEADS else ""
        if not cue:
            continue
        if linked or cue == "ifsc" or (index <= 1 and (following in HEADS or "hai" in pieces)):
            return Said(cue, index)
        break
    return None


def about(text: str, start: int, end: int, lengths: Container[int] = ()) -> Said:
    """Return what the words say about the span: before it, behind it, or above its column."""
    said = before(text, start, lengths)
    if (
        said.cue
        and said.binding
        and not (said.gap and _counts(text, end, _pieces_after(text, end, 24, 1)))
    ):
        return said
    return after(text, end) or _above(text, start) or said


def _above(text: str, start: int) -> Said | None:
    """Return what the head of a table calls the span's column."""
    name = column_head(text, start)
    said = before(f"{name}:", len(name) + 1) if name else None
    return said if said and said.cue and not said.gap else None


def says(text: str, start: int, end: int, *cues: str) -> bool:
    """Return whether one of the cues is what the words around the span say."""
    return about(text, start, end).cue in cues


_JOINTS = frozenset("-_/#.")
_GLUED = re.compile(r"(?:([A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*)[ ]?)([-_/#.]{1,2})$")


def glued(text: str, start: int) -> str:
    """Return what a prefix such as ``INV-`` or ``Ph-`` makes of the number: a cue or nothing.

    A short word in capitals, or one with digits in it, is the prefix of a document's number; a
    person's name is not.
    """
    if text[start - 1 : start] not in _JOINTS:
        return ""
    match = _GLUED.search(text, max(0, start - 24), start)
    if match is None:
        return ""
    word, joint = match.groups()
    parts = pieces_of(word)
    cue = cue_of(parts[-1]) if parts and not word[-1].isdigit() else ""
    if cue and cue != "headed":
        return cue
    if not word.isalpha() or "_" in joint or "#" in joint or cue:
        return "reference"
    if "-" in joint and word.isupper() and len(word) <= 5 and word.lower() not in HEADS:
        return "reference"
    if "/" in joint and _in_path(text, start):
        return "phone" if word == "me" else "reference"
    return ""


def _in_path(text: str, start: int) -> bool:
    """Return whether the number is part of an address or a path rather than after a slash."""
    left = text[max(0, start - 200) : start]
    piece = re.split(r"[\s\"'<>(]", left)[-1]
    return "://" in piece or piece.startswith(("/", "www.")) or piece.count("/") > 1 or "." in piece

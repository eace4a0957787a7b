"""What the words around a candidate say it is.

A checksum cannot tell an Aadhaar number from an order number that happens to pass; the words can.
The nearest cue wins, looking back first: ``Order 55, call 9876543210`` is a phone number and
``phone order 9876543210`` an order. A cue serves the first number after it (and a list of numbers
written alike), does not reach across the end of a sentence, and never across another identifier,
masked or about to be: that keeps a second pass from reading more into the text than the first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory.redaction.masks import HIDDEN
from memory.redaction.words import CUES, FILLERS, HEADS, PERSONAL, SHORTENED, UNITS

__all__ = ["NOTHING", "Said", "about", "cue_of", "glued", "says"]

_REACH = 96  # characters looked at on either side
_GAP = 5  # words between a cue and what it names

_TOKEN = re.compile(
    r"\b[Aa][/\\.][Cc]\b|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[\u0900-\u0dff]+|[^\W\d_A-Za-z\u0900-\u0dff]+"
    r"|[0-9]+|[.?!;](?=\s|$)|[\n,:=#(]|[\u20b9$\u20ac\xa3]"
)
_CARDS = frozenset({"aadhaar", "pan", "voter", "licence", "ssn", "reference", "secret"})
_CURRENCIES = frozenset("\u20b9$\u20ac\xa3")
_LINKS_WORDS = "is was are as being hai tha are equals"
_LINKS = frozenset(_LINKS_WORDS.split())


class Said(NamedTuple):
    """A cue and how it stands.

    ``cue`` is empty where nothing was said; ``gap`` counts the words in between; ``personal`` is
    whether a name or a preposition of contact (``at``, ``from``) is among them; ``headed`` whether
    ``id``, ``no`` or ``number`` is.
    """

    cue: str = ""
    gap: int = 0
    personal: bool = False
    headed: bool = False

    @property
    def thing(self) -> bool:
        """Whether the words name a document, an amount or another thing, not a person's number."""
        return self.cue in {"reference", "amount", "weak"}


NOTHING = Said()


def cue_of(word: str) -> str:
    """Return the cue a word is, in any case and number; empty if it is none."""
    word = word.lower()
    found = CUES.get(word)
    if found is None and word.endswith("s"):
        found = CUES.get(word[:-1])
    return found or ""


def before(text: str, start: int, lengths: frozenset[int]) -> Said:
    """Return the nearest cue before ``start``; numbers of the given lengths are looked past."""
    left = text[max(0, start - _REACH) : start].rpartition(HIDDEN)[2]
    gap = 0
    personal = headed = labelled = crossed = listed = False
    first = True
    pieces = _TOKEN.findall(left)
    for index in range(len(pieces) - 1, -1, -1):
        piece = pieces[index]
        if piece.isdigit():
            if len(piece) not in lengths:
                break
            listed, first = True, True
            continue
        if piece in ".?!;":
            if piece == "." and index and pieces[index - 1].lower() in SHORTENED:
                continue
            break
        if piece == "\n":
            if crossed:
                break
            crossed = True
            labelled = index > 0 and (
                pieces[index - 1] in ":=#" or pieces[index - 1].lower() in HEADS
            )
            continue
        if piece == ",":
            gap += 0 if listed else 1
            listed = False
            continue
        if piece in _CURRENCIES:
            if first:
                return Said("amount")
            continue
        if piece == "#":
            headed = True
            continue
        if not piece[0].isalpha():
            continue
        word = piece.lower()
        cue = cue_of(word)
        if cue == "headed":
            cue = "reference" if headed and gap == 0 else ""
        if cue == "card":
            cue = _document(pieces[:index])
        if cue in {"reference", "amount"} and crossed and not labelled:
            cue = ""
        if cue:
            return Said(cue, gap, personal, headed)
        if word in HEADS:
            headed = True
        elif word not in FILLERS:
            gap += 1
            personal = personal or (piece[0].isupper() and piece[1:].islower())
        if first and word in PERSONAL:
            personal = True
        first = False
        if gap > _GAP:
            break
    return Said("weak" if headed and _weak(pieces) else "", 0, personal, headed)


def _document(pieces: list[str]) -> str:
    """Return what kind of card it is: ``voter id card`` is no payment card."""
    for piece in reversed(pieces[-2:]):
        cue = cue_of(piece)
        if cue in _CARDS:
            return cue
        if piece.lower() not in HEADS:
            break
    return "card"


def _weak(pieces: list[str]) -> bool:
    """Return whether the number is only said to be an id or stands behind a #."""
    words = [piece.lower() for piece in pieces[-3:]]
    return any(word in {"id", "ids", "#", "code"} for word in words)


def after(text: str, end: int) -> Said:
    """Return what is said behind a candidate: a unit, or ``is my account number``."""
    right = text[end : end + _REACH].partition(HIDDEN)[0]
    pieces = _TOKEN.findall(right.lower())[:8]
    if not pieces:
        return NOTHING
    if pieces[0] in UNITS:
        return Said("amount")
    linked = pieces[0] == "(" or pieces[0] in _LINKS
    for index, piece in enumerate(pieces[:6]):
        if piece in ".?!;\n" or piece.isdigit():
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
    return NOTHING


def about(text: str, start: int, end: int, lengths: frozenset[int] = frozenset()) -> Said:
    """Return what the words say about the span: those before it, else those behind it."""
    said = before(text, start, lengths)
    if said.cue and said.cue != "weak" and (said.gap <= 1 or not said.thing):
        return said
    return after(text, end) if not said.cue else said


def says(text: str, start: int, end: int, *cues: str) -> bool:
    """Return whether one of the cues is what the words around the span say."""
    return about(text, start, end).cue in cues


_GLUED = re.compile(r"(?:([A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*)[ ]?)([-_/#.]{1,2})$")


def glued(text: str, start: int) -> str:
    """Return what a prefix such as ``INV-`` or ``Ph-`` makes of the number: a cue or nothing.

    A short word in capitals, or one with digits in it, is the prefix of a document's number; a
    person's name is not.
    """
    match = _GLUED.search(text, max(0, start - 24), start)
    if match is None:
        return ""
    word, joint = match.groups()
    parts = _TOKEN.findall(word)
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

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
from typing import NamedTuple

from memory.redaction.masks import HIDDEN
from memory.redaction.tables import column_head
from memory.redaction.words import CUES, FILLERS, HEADS, PERSONAL, SHORTENED, UNITS

__all__ = ["Said", "about", "cue_of", "glued", "says"]

_REACH = 64  # characters looked at on either side
_GAP = 5  # words between a cue and what it names

_PIECE = re.compile(
    # Letters and digits by turns are a code, not words with numbers between.
    r"[A-Za-z]+[0-9]+[A-Za-z][A-Za-z0-9]*|[0-9]+[A-Za-z]+[0-9][A-Za-z0-9]*|[A-Za-z]+|[0-9]+"
    r"|[\n,:=#(|]|[.?!;\u0964](?=\s|$)|[\u20b9$\u20ac\xa3]"
    r"|[\u0900-\u0963\u0970-\u0dff]+|[^\W\d_A-Za-z\u0900-\u0dff]+"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OPERATOR = re.compile(r"%| ?[+*^] ?[0-9(]")
_ACCOUNT = re.compile(r"\b[Aa][/\\.][Cc]\b")
_CARDS = frozenset({"aadhaar", "pan", "voter", "licence", "ssn", "reference", "secret"})
_OPEN_KEY_WORDS = (
    "public primary foreign cache partition sort idempotency object row map lookup s3 index group"
)
_NAMELESS = frozenset({"id", "ids", "code"})
_OPEN_KEYS = frozenset(_OPEN_KEY_WORDS.split())
_CURRENCIES = frozenset("\u20b9$\u20ac\xa3")
_LINKS_WORDS = "is was are as being hai tha are equals"
_LINKS = frozenset(_LINKS_WORDS.split())
_OPENERS = _LINKS | {"(", ","}


_THINGS = frozenset({"reference", "amount"})


class Said(NamedTuple):
    """A cue and how it stands.

    ``cue`` is empty where nothing was said; ``gap`` counts the words in between; ``personal`` is
    whether a name or a preposition of contact (``at``, ``from``) is among them.
    """

    cue: str = ""
    gap: int = 0
    personal: bool = False

    @property
    def thing(self) -> bool:
        """Whether the words name a document, an amount or another thing, not a person's number."""
        return self.cue in {"reference", "amount", "weak"}

    @property
    def binding(self) -> bool:
        """Whether the cue is near enough for its sort, and no name or preposition intervenes."""
        if self.cue not in _THINGS:
            return True
        return not self.personal and self.gap <= (1 if self.cue == "reference" else 0)


def cue_of(word: str) -> str:
    """Return the cue a word is, in any case and number; empty if it is none."""
    word = word.lower()
    found = CUES.get(word)
    if found is None and word.endswith("s"):
        found = CUES.get(word[:-1])
    return found or ""


def _unambiguous() -> dict[str, Said | None]:
    """Return the words that mean the same whatever stands before them; None if they are fillers.

    The cues of the other kinds depend on the words around them.
    """
    words: dict[str, Said | None] = {}
    for word in FILLERS - PERSONAL - _NAMELESS:
        if not cue_of(word):
            words[word] = None
    for word, cue in CUES.items():
        if cue not in {"headed", "card", "account", "secret"}:
            words[word] = Said(cue)
            if f"{word}s" not in CUES:
                words[f"{word}s"] = Said(cue)
    plain = {word: said for word, said in words.items() if word.isascii() and word.isalpha()}
    return {
        form: said
        for word, said in plain.items()
        for form in (word, word.upper(), word.title())
    }


_UNAMBIGUOUS = _unambiguous()


def before(text: str, start: int, lengths: Container[int] = ()) -> Said:
    """Return the nearest cue before ``start``; numbers of the given lengths are looked past."""
    begin = start - _REACH if start > _REACH else 0
    _, hidden, left = text[begin:start].rpartition(HIDDEN)
    chunks = _chunks(left)
    # A word cut by the reach could be any word.
    cut = not hidden and begin > 0 and text[begin - 1].isalnum()
    for chunk in reversed(chunks[1:] if cut else chunks):
        if chunk:
            if chunk not in _UNAMBIGUOUS:
                break
            said = _UNAMBIGUOUS[chunk]
            if said:
                return said
    return _Backwards(chunks, cut, lengths).read()


def _chunks(text: str) -> list[str]:
    """Return the stretches between spaces; a line break is one of its own."""
    return (text.replace("\n", " \n ") if "\n" in text else text).split(" ")


def _pieces(chunk: str) -> list[str]:
    """Return words, numbers and marks, ``orderId`` as two words and ``A/c`` as one."""
    if chunk.isalpha() and chunk.isascii() and (chunk.islower() or chunk[1:].islower()):
        return [chunk]
    if "/" in chunk or "." in chunk or "\\" in chunk:
        chunk = _ACCOUNT.sub("account", chunk)
    if not chunk.islower():
        chunk = _CAMEL.sub(" ", chunk)
    return _PIECE.findall(chunk)


class _Backwards:
    """Reads from the candidate towards the start until a cue or something that ends its reach.

    What is further away than that is not even taken apart.
    """

    def __init__(self, chunks: list[str], cut: bool, lengths: Container[int]) -> None:
        self._chunks = chunks
        self._cut = cut
        self._pieces: list[str] = []  # the nearest first
        self._lengths = lengths
        self._gap = 0
        self._first = True
        self._personal = self._headed = self._weak = False
        self._crossed = self._labelled = False
        self._commas = 0

    def _piece(self, at: int) -> str:
        """Return the piece at this distance; empty where there is none."""
        while at >= len(self._pieces):
            if not self._chunks:
                return ""
            chunk = self._chunks.pop()
            if chunk:
                found = _pieces(chunk)
                if self._cut and not self._chunks:
                    del found[:1]
                self._pieces += reversed(found)
        return self._pieces[at]

    def read(self) -> Said:
        at = -1
        while piece := self._piece(at := at + 1):
            if piece[0].isalnum() and not piece.isdigit():
                cue = self._word(piece, at)
                if cue and self._weak and self._gap:
                    # It is the id of something else that stands between.
                    break
                if cue:
                    return Said(cue, self._gap, self._personal)
                if self._gap > _GAP:
                    break
            elif piece.isdigit():
                if len(piece) < 3 or len(piece) not in self._lengths:
                    break
                self._list_goes_on()
            elif piece in _CURRENCIES:
                if self._first:
                    return Said("amount")
            elif self._ends(piece, at):
                break
        return Said("weak" if self._weak else "", 0, self._personal)

    def _list_goes_on(self) -> None:
        """Look past a number written alike: ``orders 9876543210, 9876543211 and ...``."""
        if self._gap == self._commas:
            self._gap = self._commas = 0
        self._first = True

    def _ends(self, piece: str, at: int) -> bool:
        """Take note of a mark; return whether nothing before it counts."""
        if piece == "\n":
            if self._crossed:
                return True
            self._crossed = True
            previous = self._piece(at + 1).lower()
            self._labelled = previous in HEADS or previous in {":", "=", "#"}
        elif piece in ",|":
            self._gap += 1
            self._commas += 1
        elif piece == "#":
            self._headed = True
            self._weak = self._weak or self._gap == 0
        elif piece == ".":
            return self._piece(at + 1).lower() not in SHORTENED
        return piece in "?!;\u0964"

    def _word(self, piece: str, at: int) -> str:
        """Return the cue the word is here; else count it."""
        word = piece.lower()
        cue = cue_of(word)
        if cue:
            cue = self._in_place(cue, at)
        if cue:
            return cue
        if word in HEADS:
            self._headed = True
            self._weak = self._weak or (self._gap == 0 and word in _NAMELESS)
        elif word not in FILLERS:
            self._gap += 1
            self._personal = self._personal or (piece[0].isupper() and piece[1:].islower())
        if self._first and word in PERSONAL:
            self._personal = True
        self._first = False
        return ""

    def _in_place(self, cue: str, at: int) -> str:
        """Return what a cue means with what stands around it."""
        if cue in _THINGS:
            return "" if self._crossed and not self._labelled else cue
        if cue == "headed":
            cue = "reference" if self._headed and self._gap == 0 else ""
        elif cue == "card":
            cue = self._modified(at, _CARDS) or cue
        elif cue == "account" and self._piece(at + 1).lower() == "permanent":
            cue = "pan"
        elif cue == "secret" and self._piece(at + 1).lower() in _OPEN_KEYS:
            cue = "reference"
        if cue in _THINGS and self._crossed and not self._labelled:
            return ""
        return cue

    def _modified(self, at: int, cues: frozenset[str]) -> str:
        """Return the cue that modifies a noun: ``voter id card`` is no payment card."""
        for piece in (self._piece(at + 1), self._piece(at + 2)):
            cue = cue_of(piece)
            if cue in cues:
                return cue
            if piece.lower() not in HEADS:
                break
        return ""


def after(text: str, end: int) -> Said | None:
    """Return what is said behind a candidate: a unit, or ``is my account number``."""
    nearest = _pieces_after(text, end, 24, 2)
    if _counts(text, end, nearest):
        return Said("amount")
    if not any(piece in _OPENERS or cue_of(piece) for piece in nearest):
        return None
    return _linked(_pieces_after(text, end, _REACH, 8))


def _counts(text: str, end: int, nearest: Sequence[str]) -> bool:
    """Return whether a unit or an operator directly behind makes the number a quantity."""
    return bool(nearest and nearest[0] in UNITS) or _OPERATOR.match(text, end) is not None


def _pieces_after(text: str, end: int, reach: int, count: int) -> list[str]:
    """Return the first pieces behind ``end``, in small letters."""
    found: list[str] = []
    for chunk in _chunks(text[end : end + reach].partition(HIDDEN)[0]):
        if chunk:
            found += _pieces(chunk)
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
    if said.cue and said.binding:
        if not said.gap or not _counts(text, end, _pieces_after(text, end, 24, 1)):
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
    parts = _pieces(word)
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

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


def before(text: str, start: int, lengths: frozenset[int] = frozenset()) -> Said:
    """Return the nearest cue before ``start``; numbers of the given lengths are looked past."""
    reader = _Backwards(_pieces_before(text, start), lengths)
    return reader.read()


def _pieces_before(text: str, start: int) -> list[str]:
    begin = max(0, start - _REACH)
    _, hidden, left = text[begin:start].rpartition(HIDDEN)
    pieces = _pieces(left)
    # A word cut by the reach could be any word.
    cut = not hidden and begin and text[begin - 1].isalnum()
    return pieces[1:] if cut else pieces


def _pieces(text: str) -> list[str]:
    """Return words, numbers and marks, ``orderId`` as two words and ``A/c`` as one."""
    if "/" in text or "." in text or "\\" in text:
        text = _ACCOUNT.sub("account", text)
    if _CAMEL.search(text):
        text = _CAMEL.sub(" ", text)
    return _PIECE.findall(text)


class _Backwards:
    """Reads from the candidate towards the start until a cue or something that ends its reach."""

    def __init__(self, pieces: list[str], lengths: frozenset[int]) -> None:
        self._pieces = pieces
        self._lengths = lengths
        self._gap = 0
        self._first = True
        self._personal = self._headed = self._weak = False
        self._crossed = self._labelled = False
        self._commas = 0

    def read(self) -> Said:
        for index in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[index]
            if piece.isdigit():
                if len(piece) < 3 or len(piece) not in self._lengths:
                    break
                self._list_goes_on()
            elif piece in _CURRENCIES:
                if self._first:
                    return Said("amount")
            elif piece[0].isalnum():
                cue = self._word(piece, index)
                if cue and self._weak and self._gap:
                    # It is the id of something else that stands between.
                    break
                if cue:
                    return Said(cue, self._gap, self._personal)
                if self._gap > _GAP:
                    break
            elif self._ends(piece, index):
                break
        return Said("weak" if self._weak else "", 0, self._personal)

    def _list_goes_on(self) -> None:
        """Look past a number written alike: ``orders 9876543210, 9876543211 and ...``."""
        if self._gap == self._commas:
            self._gap = self._commas = 0
        self._first = True

    def _ends(self, piece: str, index: int) -> bool:
        """Take note of a mark; return whether nothing before it counts."""
        previous = self._pieces[index - 1].lower() if index else ""
        if piece == "\n":
            if self._crossed:
                return True
            self._crossed = True
            self._labelled = previous in HEADS or previous in {":", "=", "#"}
        elif piece in ",|":
            self._gap += 1
            self._commas += 1
        elif piece == "#":
            self._headed = True
            self._weak = self._weak or self._gap == 0
        elif piece == ".":
            return previous not in SHORTENED
        return piece in "?!;\u0964"

    def _word(self, piece: str, index: int) -> str:
        """Return the cue the word is here; else count it."""
        word = piece.lower()
        cue = self._in_place(cue_of(word), word, index)
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

    def _in_place(self, cue: str, word: str, index: int) -> str:
        """Return what a cue means with what stands around it."""
        if cue == "headed":
            cue = "reference" if self._headed and self._gap == 0 else ""
        if cue == "card":
            cue = self._modified(index, _CARDS) or cue
        if cue == "account" and index and self._pieces[index - 1].lower() == "permanent":
            cue = "pan"
        if cue == "secret" and index and self._pieces[index - 1].lower() in _OPEN_KEYS:
            cue = "reference"
        if cue in _THINGS and self._crossed and not self._labelled:
            return ""
        return cue

    def _modified(self, index: int, cues: frozenset[str]) -> str:
        """Return the cue that modifies a noun: ``voter id card`` is no payment card."""
        for piece in reversed(self._pieces[max(0, index - 2) : index]):
            cue = cue_of(piece)
            if cue in cues:
                return cue
            if piece.lower() not in HEADS:
                break
        return ""


def after(text: str, end: int) -> Said | None:
    """Return what is said behind a candidate: a unit, or ``is my account number``."""
    if _counts(text, end):
        return Said("amount")
    nearest = _pieces_after(text, end, 24)[:2]
    if not any(piece in _OPENERS or cue_of(piece) for piece in nearest):
        return None
    return _linked(_pieces_after(text, end, _REACH)[:8])


def _counts(text: str, end: int) -> bool:
    """Return whether a unit or an operator directly behind makes the number a quantity."""
    if _OPERATOR.match(text, end):
        return True
    nearest = _pieces_after(text, end, 24)
    return bool(nearest) and nearest[0] in UNITS


def _pieces_after(text: str, end: int, reach: int) -> list[str]:
    return [piece.lower() for piece in _pieces(text[end : end + reach].partition(HIDDEN)[0])]


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


def about(text: str, start: int, end: int, lengths: frozenset[int] = frozenset()) -> Said:
    """Return what the words say about the span: before it, behind it, or above its column."""
    said = before(text, start, lengths)
    if said.cue and said.binding and not (said.gap and _counts(text, end)):
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

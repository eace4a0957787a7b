"""Reads the words before a candidate, towards the start, until a cue or what ends its reach.

Most candidates stand behind a few plain words, which are read without any state or pattern. What is
further away than the cue is never taken apart. No word of a text is cached: erased means erased.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from memory.redaction.masks import HIDDEN
from memory.redaction.pieces import chunks_of, is_plain, pieces_of
from memory.redaction.words import CUES, FILLERS, HEADS, PERSONAL, SHORTENED

__all__ = ["REACH", "Said", "before", "cue_of", "cue_start"]

REACH = 64  # characters looked at on either side
_GAP = 5  # words between a cue and what it names

_CARDS = frozenset({"aadhaar", "pan", "voter", "licence", "ssn", "reference", "secret"})
_OPEN_KEY_WORDS = (
    "public primary foreign cache partition sort idempotency object row map lookup s3 index group"
)
_NAMELESS = frozenset({"id", "ids", "code"})
_OPEN_KEYS = frozenset(_OPEN_KEY_WORDS.split())
_CURRENCIES = frozenset("\u20b9$\u20ac\xa3")
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


# What these cues mean depends on the words around them.
_DEPENDENT = frozenset({"headed", "card", "account", "secret"})


def _forms(words: Iterable[str]) -> list[str]:
    """Return the words in small letters, in capitals and with one capital."""
    plain = [word for word in words if word.isascii() and word.isalpha()]
    return [form for word in plain for form in (word, word.upper(), word.title())]


_CUE_WORDS = (*CUES, *(f"{word}s" for word in CUES))
_SAID = {form: Said(cue_of(form)) for form in _forms(_CUE_WORDS) if cue_of(form) not in _DEPENDENT}
_DEPENDS = frozenset(
    _forms([word for word in _CUE_WORDS if cue_of(word) in _DEPENDENT] + [*_NAMELESS, *PERSONAL])
)
_MODIFIED = frozenset(form for form in _DEPENDS if cue_of(form) in {"card", "account", "secret"})
_MODIFIERS = HEADS | _OPEN_KEYS | {"permanent"}
_FILLS = frozenset(_forms(FILLERS)) - _DEPENDS - _SAID.keys()
_CALLS = frozenset(_forms(PERSONAL)) - frozenset(_forms(FILLERS)) - _SAID.keys()


def _left(text: str, start: int) -> tuple[list[str], bool]:
    """Return what stands before, as far as it may be read, and whether the reach cuts a word."""
    begin = start - REACH if start > REACH else 0
    _, hidden, left = text[begin:start].rpartition(HIDDEN)
    # A word that is cut could be any word.
    return chunks_of(left), not hidden and begin > 0 and text[begin - 1].isalnum()


def cue_start(text: str, start: int) -> int:
    """Return where the cue begins if nothing but fillers comes between; else -1."""
    chunks, cut = _left(text, start)
    at = start
    for chunk in reversed(chunks[1:] if cut else chunks):
        at -= len(chunk)
        if chunk in _SAID:
            return at
        if chunk and chunk not in _FILLS:
            break
        at -= 1
    return -1


def before(text: str, start: int, lengths: Container[int] = ()) -> Said:
    """Return the nearest cue before ``start``; numbers of the given lengths are looked past."""
    chunks, cut = _left(text, start)
    said = _plainly(chunks, cut)
    return _Backwards(chunks, cut, lengths).read() if said is None else said


def _plainly(chunks: list[str], cut: bool) -> Said | None:
    """Return what plain words say; None where something else comes before the cue."""
    gap = 0
    personal = False
    first = True
    for chunk in reversed(chunks[1:] if cut else chunks):
        if not chunk:
            continue
        if chunk in _FILLS:
            first = False
            continue
        said = _SAID.get(chunk)
        if said is not None:
            return Said(said.cue, gap, personal) if gap else said
        if chunk in _CALLS:
            personal = personal or first or (chunk[0].isupper() and chunk[1:].islower())
        elif chunk in _DEPENDS:
            sure = gap == 0 and chunk in _MODIFIED and _unmodified(chunks, cut, chunk)
            return Said(cue_of(chunk)) if sure else None
        elif not is_plain(chunk):
            return Said("", 0, personal) if _ends_a_sentence(chunk) else None
        else:
            personal = personal or (chunk[0].isupper() and chunk[1:].islower())
        first = False
        gap += 1
        if gap > _GAP:
            return Said("", 0, personal)
    return None if cut else Said("", 0, personal)


def _unmodified(chunks: list[str], cut: bool, cue: str) -> bool:
    """Return whether a plain word that changes nothing stands right before a cue."""
    at = len(chunks) - 1 - chunks[::-1].index(cue)
    word = chunks[at - 1] if at > cut else ""
    if word in _CALLS:
        return True
    if word in _SAID or word in _DEPENDS or not is_plain(word):
        return False
    return word.lower() not in _MODIFIERS


def _ends_a_sentence(chunk: str) -> bool:
    """Return whether it is a word with the mark that ends a sentence."""
    word = chunk[:-1]
    if chunk[-1] in "?!":
        return True
    return chunk[-1] == "." and is_plain(word) and word.lower() not in SHORTENED


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
                found = pieces_of(chunk)
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

"""BERT's uncased WordPiece tokeniser (Devlin et al., 2018) in plain Python.

The ids are those of the reference tokeniser, with one difference: ``[MASK]`` in a text is three
words like any others, so that no text can put a control token before the model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import islice
from typing import Final

__all__ = ["WordPiece", "vocabulary", "words"]

LONGEST_WORD: Final = 100
"""A longer word, in characters, is unknown as a whole."""

# Control, format and private characters; one that is not assigned yet is unknown, not absent.
_DROPPED: Final = frozenset({"Cc", "Cf", "Co", "Cs"})

# Blocks of ideographs, each of which is a word of its own.
_IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def vocabulary() -> dict[str, int]:
    """Return the 30,522 pieces of ``bert-base-uncased`` with their ids."""
    file = resources.files("memory.integrations").joinpath("bert_uncased", "vocab.txt")
    pieces = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return {piece: number for number, piece in enumerate(pieces)}


def words(text: str) -> Iterator[str]:
    """Yield the words: lower case, without accents, punctuation and ideographs on their own."""
    for part in _normalised(text).split():
        word = ""
        for char in part:
            if not _is_punctuation(char):
                word += char
                continue
            if word:
                yield word
            word = ""
            yield char
        if word:
            yield word


def _normalised(text: str) -> str:
    cleaned = "".join(map(_cleaned, text))
    decomposed = unicodedata.normalize("NFD", cleaned)
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn").lower()


def _cleaned(char: str) -> str:
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char) in _DROPPED:
        return ""
    if any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
        return f" {char} "
    return char


def _is_punctuation(char: str) -> bool:
    # All of ASCII that is neither letter, digit nor space, "$" and "+" too, whatever Unicode says.
    ascii_sign = char.isascii() and char.isprintable() and not char.isalnum() and char != " "
    return ascii_sign or unicodedata.category(char)[0] == "P"


class WordPiece:
    """Cuts words into the longest pieces of a vocabulary, from the left.

    It remembers nothing of the texts: a cache of words would outlive an erasure.
    """

    def __init__(self, pieces: Mapping[str, int]) -> None:
        self._pieces = pieces
        self._longest = max(map(len, pieces))
        self._first, self._last, self._unknown = (
            pieces[name] for name in ("[CLS]", "[SEP]", "[UNK]")
        )

    def ids(self, text: str, most: int) -> list[int]:
        """Return at most ``most`` ids, the first and the last marking the ends of the text."""
        found = (number for word in words(text) for number in self._cut(word))
        return [self._first, *islice(found, most - 2), self._last]

    def _cut(self, word: str) -> Iterable[int]:
        if len(word) > LONGEST_WORD:
            return [self._unknown]
        found = []
        start = 0
        while start < len(word):
            stop, number = self._longest_piece(word, start)
            if number is None:
                return [self._unknown]
            found.append(number)
            start = stop
        return found

    def _longest_piece(self, word: str, start: int) -> tuple[int, int | None]:
        mark = "##" if start else ""
        for stop in range(min(len(word), start + self._longest), start, -1):
            number = self._pieces.get(mark + word[start:stop])
            if number is not None:
                return stop, number
        return start, None

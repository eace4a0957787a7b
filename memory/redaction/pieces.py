"""Takes text apart into what cues are read from: words, numbers and marks."""

from __future__ import annotations

import re

__all__ = ["chunks_of", "is_plain", "pieces_of"]

_PIECE = re.compile(
    # Letters and digits by turns are a code, not words with numbers between.
    r"[A-Za-z]+[0-9]+[A-Za-z][A-Za-z0-9]*|[0-9]+[A-Za-z]+[0-9][A-Za-z0-9]*|[A-Za-z]+|[0-9]+"
    r"|[\n,:=#(|]|[.?!;\u0964](?=\s|$)|[\u20b9$\u20ac\xa3]"
    r"|[\u0900-\u0963\u0970-\u0dff]+|[^\W\d_A-Za-z\u0900-\u0dff]+"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACCOUNT = re.compile(r"\b[Aa][/\\.][Cc]\b")


def chunks_of(text: str) -> list[str]:
    """Return the stretches between spaces; a line break is one of its own."""
    return (text.replace("\n", " \n ") if "\n" in text else text).split(" ")


def pieces_of(chunk: str) -> list[str]:
    """Return words, numbers and marks, ``orderId`` as two words and ``A/c`` as one."""
    if is_plain(chunk):
        return [chunk]
    if "/" in chunk or "." in chunk or "\\" in chunk:
        chunk = _ACCOUNT.sub("account", chunk)
    if not chunk.islower():
        chunk = _CAMEL.sub(" ", chunk)
    return _PIECE.findall(chunk)


def is_plain(chunk: str) -> bool:
    """Return whether it is one word, of which :func:`pieces_of` would make one piece."""
    if not (chunk.isalpha() and chunk.isascii()):
        return False
    return chunk.islower() or chunk[1:].islower() or chunk.isupper()

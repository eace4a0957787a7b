"""The forms in which erased content may lie in a file. Pure."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memory.errors import InvalidInputError

__all__ = ["Needle", "Pattern", "fold", "patterns"]

Needle = str | bytes | Sequence[float]
"""A text or key, raw bytes, or the values of a vector."""

_SHORTEST = 4
# Shorter ones would be met by chance in files that hold anything at all.
_SHORTEST_ENCODED = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """Bytes to look for. Unless ``exact``, capital ASCII letters equal small ones."""

    needle: int
    encoding: str
    value: bytes = field(repr=False)
    exact: bool


def fold(content: bytes) -> bytes:
    """Make capital ASCII letters small."""
    return content.lower()


def patterns(needles: Iterable[Needle], fragment: int | None = None) -> list[Pattern]:
    """Return what to search for; ``needle`` is a position in ``needles``.

    With ``fragment``, pieces of that many bytes stand for what is longer, each overlapping the
    next by half: a remnant of one and a half fragments always holds a whole one.

    Raises ``InvalidInputError`` for a needle under four bytes and for a fragment under eight.
    """
    if fragment is not None and fragment < _SHORTEST_ENCODED:
        raise InvalidInputError("fragment", "must be 8 bytes or more")
    found = []
    for position, needle in enumerate(needles):
        seen = set()
        for encoding, value, exact in _forms(needle):
            if value in seen:
                continue
            seen.add(value)
            found += [
                Pattern(needle=position, encoding=encoding, value=piece, exact=exact)
                for piece in _pieces(value, fragment)
            ]
    return found


def _forms(needle: Needle) -> Iterator[tuple[str, bytes, bool]]:
    if isinstance(needle, str):
        yield from _text_forms(needle)
    elif isinstance(needle, bytes):
        yield from _byte_forms("bytes", needle)
    else:
        yield from _vector_forms(needle)


def _vector_forms(values: Sequence[float]) -> Iterator[tuple[str, bytes, bool]]:
    """Yield the values and, as an index by cosine distance keeps them, those of unit length."""
    for encoding, code in (("float32", "f"), ("float16", "e")):
        packed = _packed(values, code)
        yield encoding, packed, True
        stored = struct.unpack(f"<{len(values)}{code}", packed)
        if norm := math.sqrt(sum(value * value for value in stored)):
            yield encoding, _packed([value / norm for value in stored], code), True


def _packed(values: Sequence[float], code: str) -> bytes:
    try:
        packed = struct.pack(f"<{len(values)}{code}", *values)
    except (OverflowError, struct.error):
        packed = b""
    # Raised here, as the error of struct is about the values.
    if len(packed) < _SHORTEST_ENCODED:
        raise InvalidInputError("needles", "must be texts, bytes or vectors of 4 values or more")
    return packed


def _text_forms(text: str) -> Iterator[tuple[str, bytes, bool]]:
    for form in dict.fromkeys((text, text.casefold(), text.upper())):
        yield from _byte_forms("text", form.encode())
        for escaped in (json.dumps(form), json.dumps(form, ensure_ascii=False)):
            yield "json", escaped[1:-1].encode(), False


def _byte_forms(name: str, value: bytes) -> Iterator[tuple[str, bytes, bool]]:
    if len(value) < _SHORTEST:
        raise InvalidInputError("needles", "must be 4 bytes or more each")
    yield name, value, False
    others = [("hex", value.hex().encode(), False)]
    for shift in range(3):
        # Characters at the ends depend on the neighbours, which are unknown.
        first, last = (0, 2, 3)[shift], (len(value) + shift) // 3 * 4
        coded = base64.b64encode(b"\0" * shift + value)[first:last]
        others.append(("base64", coded, True))
        others.append(("base64", coded.translate(bytes.maketrans(b"+/", b"-_")), True))
    yield from (other for other in others if len(other[1]) >= _SHORTEST_ENCODED)


def _pieces(value: bytes, fragment: int | None) -> list[bytes]:
    if fragment is None or len(value) <= fragment:
        return [value]
    starts = range(0, len(value) - fragment + 1, fragment // 2)
    return [value[start : start + fragment] for start in starts]

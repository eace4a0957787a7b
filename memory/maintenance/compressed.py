"""Values that PostgreSQL compressed, found and unpacked in the bytes of a file. Pure.

A compressed value holds few runs of the original, so a search of the file would miss it. Nothing
says where in a file such a value is, least of all in freed space: whatever looks like the head of
one is unpacked, as far as it goes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["unpack_all"]


def _among(first: int, step: int) -> bytes:
    """Write the class of the bytes from ``first`` on, in steps."""
    return b"[%b]" % b"".join(re.escape(bytes([value])) for value in range(first, 256, step))


# The original size, of more than 32 bytes, and the method in the two highest bits of the word.
_INFO: Final = rb"((?:[\x20-\xff]\x00|.[\x01-\xff])[\x00-\x03][\x00\x40])"
# Of a value kept in its row: a length whose low bits say "compressed", then the word above. See
# "varatt.h" and "toast_compression.h" of PostgreSQL.
_INLINE: Final = re.compile(
    b"((?:%b\\x00|%b[\\x01-\\x7f])\\x00\\x00)" % (_among(66, 4), _among(2, 4)) + _INFO, re.DOTALL
)
# Of a value kept out of line: chunk number nought, the chunk's length, the same word.
_CHUNK: Final = re.compile(
    b"\\x00{4}((?:%b\\x00|%b[\\x01-\\x1f])\\x00\\x00)" % (_among(64, 4), _among(0, 4)) + _INFO,
    re.DOTALL,
)
_LARGEST: Final = 1 << 18


def unpack_all(content: bytes) -> Iterator[bytes]:
    """Yield what every plausible compressed value in the content unpacks to.

    Of a value in several chunks, the first is unpacked: about two kilobytes compressed.
    """
    for form, header in ((_INLINE, 4), (_CHUNK, 8)):
        at = 0
        while match := form.search(content, at):
            at = match.start() + 1
            length = int.from_bytes(match[1], "little") >> 2
            (info,) = struct.unpack("<I", match[2])
            size, method = info & 0x3FFFFFFF, info >> 30
            start, stop = match.start() + header + 4, match.start() + header - 4 + length
            if stop - start >= 8 and stop - start < size <= _LARGEST:
                unpack = _unpack_lz4 if method else _unpack_pglz
                yield unpack(content[start:stop], size)


def _unpack_pglz(packed: bytes, size: int) -> bytes:
    out = bytearray()
    at, end = 0, len(packed)
    while at < end and len(out) < size:
        control = packed[at]
        at += 1
        if not control:
            out += packed[at : at + 8]
            at += 8
            continue
        for bit in range(8):
            if at >= end or len(out) >= size:
                break
            if not control >> bit & 1:
                out.append(packed[at])
                at += 1
                continue
            if at + 1 >= end:
                return bytes(out)
            length, offset = (packed[at] & 15) + 3, (packed[at] & 240) << 4 | packed[at + 1]
            at += 2
            if length == 18 and at < end:
                length += packed[at]
                at += 1
            if not _copy(out, offset, length):
                return bytes(out)
    return bytes(out[:size])


def _unpack_lz4(packed: bytes, size: int) -> bytes:
    out = bytearray()
    at, end = 0, len(packed)
    while at < end and len(out) < size:
        token = packed[at]
        length, at = _length(packed, at + 1, token >> 4)
        out += packed[at : at + length]
        at += length
        if at + 1 >= end:
            break
        offset = int.from_bytes(packed[at : at + 2], "little")
        length, at = _length(packed, at + 2, token & 15)
        if not _copy(out, offset, min(length + 4, size)):
            break
    return bytes(out[:size])


def _length(packed: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while at < len(packed):
            length += packed[at]
            at += 1
            if packed[at - 1] != 255:
                break
    return length, at


def _copy(out: bytearray, offset: int, length: int) -> bool:
    """Repeat what stands ``offset`` bytes back; false if there is no such place."""
    if not 0 < offset <= len(out):
        return False
    piece = bytes(out[-offset:])
    out += (piece * (length // offset + 1))[:length]
    return True

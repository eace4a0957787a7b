"""Free space that still holds bytes, as read from the files through the server."""

from __future__ import annotations

import re
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Final

from memory.maintenance.scrubbing.relations import Table
from memory.maintenance.scrubbing.session import Session
from memory.maintenance.scrubbing.wal import checkpoint

__all__ = ["read_remnants", "remnant"]

_PAGE: Final = 8192
_AT_ONCE: Final = 1024
_SEGMENT: Final = 131072  # pages in one file of a relation
# What a row of filler holds soon after its header, and a piece of a filler vector.
_FILLER: Final = re.compile(rb"\x05~.{16}|~{6,}|(?:\x00\x00\x80\x3f){2}", re.DOTALL)
# How far that is from the row's beginning, and the length of the header that says so in byte 22.
_HEADERS: Final = ((24, 24), (25, 24), (32, 32), (36, 24), (56, 24))
# The header of a row is full of zeros; content, of text or vectors, is not.
_CONTENT: Final = re.compile(rb"[^\x00]{8,}")


def remnant(page: bytes) -> int:
    """Count the bytes in a page's free space that may be content and are not filler."""
    lower, upper = struct.unpack_from("<HH", page, 12)
    if not 24 <= lower <= upper <= _PAGE:
        return 0
    gap = page[lower:upper]
    filler = _FILLER.search(gap)
    if filler is not None:
        gap = gap[: _beginning(gap, filler.start())]
    at = 0
    while at + 4 <= len(gap) and _is_line_pointer(gap[at : at + 4]):
        at += 4
    return sum(len(run) for run in _CONTENT.findall(gap, at))


def _beginning(gap: bytes, content: int) -> int:
    """Find where the row with this content begins."""
    for distance, header in _HEADERS:
        start = content - distance
        if start >= 0 and gap[start + 22] == header:
            return start
    return content


def _is_line_pointer(word: bytes) -> bool:
    """Tell whether a word may have pointed at a row: see ``itemid.h`` of PostgreSQL."""
    (value,) = struct.unpack("<I", word)
    offset, flags, length = value & 0x7FFF, value >> 15 & 3, value >> 17
    return (flags != 1 and not length) or (not offset % 8 and offset + length <= _PAGE)


async def read_remnants(session: Session, tables: Sequence[Table]) -> dict[str, str] | None:
    """Say what is left in the free space of which table; None if this role may not read the files.

    The files are what the server last wrote: so it writes them first.
    """
    if not await _may_read(session) or not await checkpoint(session):
        return None
    left = {}
    for table in tables:
        sizes = [size async for page in _pages(session, table) if (size := remnant(page))]
        if sizes:
            left[table.plain] = f"{sum(sizes)} bytes on {len(sizes)} pages of {table.plain}"
    return left


async def _may_read(session: Session) -> bool:
    return bool(
        await session.value(
            "select has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)',"
            " 'execute')"
        )
    )


async def _pages(session: Session, table: Table) -> AsyncIterator[bytes]:
    rows = await session.fetch(
        "select pg_relation_filepath(r.oid) as path, pg_relation_size(r.oid) / 8192 as pages"
        " from pg_class as c cross join lateral unnest(array[c.oid, c.reltoastrelid]) as r (oid)"
        " where c.oid = $1::bigint::oid and r.oid <> 0",
        table.oid,
    )
    for row in rows:
        for first in range(0, row.pages, _AT_ONCE):
            segment, offset = divmod(first, _SEGMENT)
            content = await session.value(
                "select pg_read_binary_file($1, $2::bigint, $3::bigint, true)",
                f"{row.path}.{segment}" if segment else row.path,
                offset * _PAGE,
                _AT_ONCE * _PAGE,
            )
            if isinstance(content, bytes):
                for at in range(0, len(content) - _PAGE + 1, _PAGE):
                    yield content[at : at + _PAGE]

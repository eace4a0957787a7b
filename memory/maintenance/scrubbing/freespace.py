"""Free space that still holds bytes, as read from the files through the server."""

from __future__ import annotations

import re
import struct
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory.maintenance.scrubbing.placing import Gap
from memory.maintenance.scrubbing.relations import Table
from memory.maintenance.scrubbing.session import Session

__all__ = ["Left", "gap_left", "may_read", "read_remnants"]

_PAGE: Final = 8192
_AT_ONCE: Final = 1024
_SEGMENT: Final = 131072  # pages in one file of a relation
# What a row of filler holds soon after its header, and a piece of a filler vector.
_FILLER: Final = re.compile(rb"\x05~.{16}|~{6,}|(?:\x00\x00\x80\x3f){2}", re.DOTALL)
# How far that is from the row's beginning, and the length of the header that says so in byte 22.
_HEADERS: Final = ((24, 24), (25, 24), (32, 32), (36, 24), (56, 24))
# The header of a row is full of zeros; content, of text or vectors, is not.
_CONTENT: Final = re.compile(rb"[^\x00]{8,}")
_UNUSED: Final = b"\0\0\0\0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """Gaps with old bytes in a table's pages, and in those of values kept out of line."""

    table: str
    gaps: tuple[Gap, ...]
    long_gaps: tuple[Gap, ...]

    def __str__(self) -> str:
        gaps = self.gaps + self.long_gaps
        return f"{sum(gap.left for gap in gaps)} bytes on {len(gaps)} pages of {self.table}"


def gap_left(page: bytes) -> Gap | None:
    """Find what in a page's free space may be content and is not filler; None if nothing."""
    lower, upper = struct.unpack_from("<HH", page, 12)
    if not 24 <= lower <= upper <= _PAGE:
        return None
    gap = page[lower:upper]
    filler = _FILLER.search(gap)
    end = len(gap) if filler is None else _beginning(gap, filler.start())
    at = 0
    while at + 4 <= end and _is_line_pointer(gap[at : at + 4]):
        at += 4
    runs = tuple(match.span() for match in _CONTENT.finditer(gap, at, end))
    if not runs:
        return None
    pointers = (page[place : place + 4] for place in range(24, lower - 3, 4))
    return Gap(size=len(gap), unused=sum(p == _UNUSED for p in pointers), runs=runs)


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


async def may_read(session: Session) -> bool:
    """Say whether this role may have the files written, and read them."""
    return bool(
        await session.value(
            "select has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)',"
            " 'execute') and (rolsuper or current_setting('server_version_num')::int >= 150000"
            " and pg_has_role('pg_checkpoint', 'usage')) from pg_roles where rolname = current_user"
        )
    )


async def read_remnants(session: Session, tables: Sequence[Table]) -> list[Left]:
    """Say what is left in the free space of which table, after a checkpoint has written it."""
    left = []
    for table in tables:
        gaps: tuple[list[Gap], list[Gap]] = ([], [])
        async for long, page in _pages(session, table):
            if gap := gap_left(page):
                gaps[long].append(gap)
        if any(gaps):
            left.append(Left(table=table.plain, gaps=tuple(gaps[0]), long_gaps=tuple(gaps[1])))
    return left


async def _pages(session: Session, table: Table) -> AsyncIterator[tuple[bool, bytes]]:
    rows = await session.fetch(
        "select pg_relation_filepath(r.oid) as path, pg_relation_size(r.oid) / 8192 as pages,"
        " r.oid = c.reltoastrelid as long"
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
                    yield row.long, content[at : at + _PAGE]

"""Remove deleted bytes from PostgreSQL's files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from memory.database import OwnAccess
from memory.engines import open_engine
from memory.errors import InvalidInputError
from memory.maintenance.scrubbing.freespace import Left, may_read
from memory.maintenance.scrubbing.overwrite import FILLED, overwrite, overwrite_gaps
from memory.maintenance.scrubbing.pins import find_pins
from memory.maintenance.scrubbing.relations import (
    Table,
    drop_leftovers,
    find_tables,
    rebuild,
    rewrite,
    vacuum,
)
from memory.maintenance.scrubbing.report import Scrubbed, ScrubStep
from memory.maintenance.scrubbing.session import Session
from memory.maintenance.scrubbing.statistics import clear_statistics
from memory.maintenance.scrubbing.wal import checkpoint, remove_segments

__all__ = ["scrub"]

_logger = logging.getLogger("memory.scrub")


async def scrub(
    engine_or_url: AsyncEngine | URL | str,
    *,
    exclusive: bool = False,
    wal: bool = True,
    lock_timeout: float = 2.0,
    attempts: int = 5,
    progress: Callable[[ScrubStep], object] | None = None,
) -> Scrubbed:
    """Remove what was deleted from tables, indexes, statistics and the write-ahead log.

    An erasure deletes rows; their bytes stay in the server's files. Everything here can be run
    again, also after a cancellation, and while the application works: no step blocks a reader or a
    writer, unless ``exclusive``, which writes each table anew under a lock that shuts everybody
    out for as long as that takes. ``wal=False`` leaves the write-ahead log alone.

    No lock is waited for longer than ``lock_timeout`` seconds at a time, ``attempts`` times. Run it
    as a superuser for everything, as the owner of the tables for what an owner may; through a
    direct connection, not PgBouncer. What was not done or cannot be known is ``pending``.
    ``progress`` is called with each finished step.

    Raises ``InvalidInputError`` for a limit out of range, ``InstallError`` without the schema and
    ``StoreUnavailableError`` if the database cannot be reached.

    >>> from memory import maintenance
    >>> scrubbed = await maintenance.scrub(owner_url, wal=False)
    >>> scrubbed.complete  # what only a superuser may do is pending
    False
    """
    if not 0 < lock_timeout <= 3600:
        raise InvalidInputError("lock_timeout", "must be more than 0 and at most 3600 seconds")
    if not 1 <= attempts <= 1000:
        raise InvalidInputError("attempts", "must be 1 to 1000")

    async def work(connection: AsyncConnection) -> Scrubbed:
        session = Session(
            connection, lock_timeout=lock_timeout, attempts=attempts, progress=progress
        )
        try:
            await session.prepare()
            return await _scrub(session, exclusive=exclusive, wal=wal)
        finally:
            # It has settings that the next borrower did not ask for.
            await connection.invalidate()

    if isinstance(engine_or_url, AsyncEngine):
        report = await OwnAccess(engine_or_url).single(work)
    else:
        engine = open_engine(engine_or_url)
        try:
            report = await OwnAccess(engine).single(work)
        finally:
            await engine.dispose()
    _logger.info("scrub: %d steps, pending: %s", len(report.steps), sorted(report.codes))
    return report


async def _scrub(session: Session, *, exclusive: bool, wal: bool) -> Scrubbed:
    tables = await find_tables(session)
    erased = [table for table in tables if table.erased]
    readable = await may_read(session)
    await drop_leftovers(session)
    await vacuum(session, tables, sized=True)
    rewritten: list[Table] = []
    if exclusive and not readable:
        rewritten = await rewrite(session, erased)
    else:
        await overwrite(session, twice=not readable)
    # Other sessions report dead rows late: those that are gone by now would be taken for kept.
    await vacuum(session, [table for table in tables if table.plain not in FILLED])
    await rebuild(session, [table for table in erased if table not in rewritten])
    await clear_statistics(session)
    if wal:
        written = await remove_segments(session)
    else:
        session.pend("wal", "the write-ahead log was left alone", "scrub with wal=True")
        written = await checkpoint(session)
    if not written:
        await session.flush()
    left = await overwrite_gaps(session) if written else None
    if left and exclusive:
        left = await _rewrite_left(session, erased, left)
    _pend_free_space(session, left, all_rewritten=len(rewritten) == len(erased))
    await find_pins(session, tables)
    return Scrubbed(steps=tuple(session.steps), pending=tuple(session.pending))


async def _rewrite_left(session: Session, tables: Sequence[Table], left: list[Left]) -> list[Left]:
    concerned = {item.table for item in left}
    done = await rewrite(session, [table for table in tables if table.plain in concerned])
    await checkpoint(session)
    names = {table.plain for table in done}
    return [item for item in left if item.table not in names]


def _pend_free_space(session: Session, left: list[Left] | None, *, all_rewritten: bool) -> None:
    if left:
        session.pend(
            "free_space",
            f"in gaps too small for a row of filler: {', '.join(map(str, left))}",
            "exclusive=True writes these tables anew",
        )
    elif left is None and not all_rewritten:
        session.pend(
            "free_space_unread",
            "this role may not read the files: small gaps between rows may hold old bytes",
            "scrub as a superuser, who may; exclusive=True leaves no gaps",
        )

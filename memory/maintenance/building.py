"""How the build of an index runs: alone, watched, and without leaving statistics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Access, fetch
from memory.errors import ConflictError, InvalidInputError, MemoryServiceError
from memory.maintenance.walking import Portion

__all__ = ["running", "settled", "watched"]

_LOCK: Final = 0x6D656D686E7377  # "memhnsw" in ASCII
_POLL: Final = (0.01, 0.5)  # seconds: the first looks are for the index to appear

# A build takes as long as it takes, whatever is preset for the role; its session is put back.
_SESSION: Final = ("maintenance_work_mem", "statement_timeout", "lock_timeout")


@asynccontextmanager
async def running(connection: AsyncConnection, memory: str | None) -> AsyncIterator[None]:
    """Hold the lock of all who build, and the settings of the session, until the end."""
    rows = await fetch(connection, "select pg_try_advisory_lock($1)", _LOCK)
    if not rows[0][0]:
        raise ConflictError("another session builds, drops or maintains indexes here")
    try:
        await fetch(connection, "set statement_timeout = 0")
        await fetch(connection, "set lock_timeout = 0")
        if memory is not None:
            await _set_memory(connection, memory)
        yield
    except BaseException:
        # The lock and the settings end with the session.
        await asyncio.shield(connection.invalidate())
        raise
    for name in _SESSION:
        await fetch(connection, f"reset {name}")
    await fetch(connection, "select pg_advisory_unlock($1)", _LOCK)


async def _set_memory(connection: AsyncConnection, memory: str) -> None:
    # Judged by the server, which knows its units.
    valid = isinstance(memory, str) and memory[:1].isdigit() and memory.isascii()
    if not valid or not memory.replace(" ", "").isalnum():
        raise InvalidInputError("memory", "must be a size such as 512MB or 2GB")
    await fetch(connection, "select set_config('maintenance_work_mem', $1, false)", memory)


_PROGRESS: Final = """
select p.phase,
    case when p.tuples_total > 0 then p.tuples_done else p.blocks_done end as done,
    case when p.tuples_total > 0 then p.tuples_total else p.blocks_total end as total
from pg_catalog.pg_stat_progress_create_index as p where p.pid = $1
"""

# No build has ended when this finds the index: until then ANALYZE cannot run on the table.
_EARLY: Final = """
select quote_ident(x.relname) as name from pg_catalog.pg_class as x
join pg_catalog.pg_attribute as a on a.attrelid = x.oid and a.attnum = 1
where x.oid = pg_catalog.to_regclass('memory.' || $1) and a.attstattarget is distinct from 0
"""


async def watched(
    access: Access,
    connection: AsyncConnection,
    name: str | None,
    statement: str,
    progress: Portion,
) -> None:
    """Run the statement; tell meanwhile how far it is, and set the target of the new index."""
    pid = (await fetch(connection, "select pg_backend_pid()"))[0][0]

    async def watch(other: AsyncConnection) -> None:
        target, pause = name, _POLL[0]
        while True:
            if target is not None and await fetch(other, _EARLY, target):
                await fetch(other, f"alter index memory.{target} alter column 1 set statistics 0")
                target = None
            for row in await fetch(other, _PROGRESS, pid):
                progress(row.phase, row.done, row.total)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _POLL[1])

    watcher = asyncio.create_task(access.single(watch))
    try:
        await fetch(connection, statement)
    finally:
        watcher.cancel()
        (ended,) = await asyncio.gather(watcher, return_exceptions=True)
    # Its own errors cost only the view; those of the host's callback are the host's.
    if isinstance(ended, Exception) and not isinstance(ended, MemoryServiceError):
        raise ended


_STATISTICS: Final = """
select s.attname from pg_catalog.pg_stats as s
where s.schemaname = 'memory' and s.tablename = $1
"""


def settled(name: str) -> Callable[[AsyncConnection], Awaitable[bool]]:
    """Return what sets the target of an index's expression to 0 and clears what was gathered.

    It answers false where there is something that the server cannot clear (before version 18).
    The lock waits for an ANALYZE that has begun, and those after it see the target.
    """
    quoted = '"' + name.replace('"', '""') + '"'

    async def settle(connection: AsyncConnection) -> bool:
        await fetch(connection, "lock table memory.records in share update exclusive mode")
        await fetch(connection, f"alter index memory.{quoted} alter column 1 set statistics 0")
        gathered = await fetch(connection, _STATISTICS, name)
        if not gathered:
            return True
        version = await fetch(connection, "select current_setting('server_version_num')::integer")
        if version[0][0] < 180_000:
            return False
        for row in gathered:
            await fetch(
                connection,
                "select pg_clear_attribute_stats('memory', $1::text, $2::text, false)",
                name,
                row.attname,
            )
        return True

    return settle

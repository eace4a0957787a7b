"""The write-ahead log: segments written before are removed, not recycled with their bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from memory.maintenance.scrubbing.report import ScrubStep
from memory.maintenance.scrubbing.session import FORBIDDEN, Session

__all__ = ["checkpoint", "remove_segments"]

_SEGMENTS: Final = (
    "select d.name from pg_ls_waldir() as d where d.name ~ '^[0-9A-F]{24}(\\.partial)?$'"
)
_CURRENT: Final = "select pg_walfile_name(pg_current_wal_lsn())"
_ROUNDS: Final = 3
_SUPERUSER: Final = "run the scrub as a superuser, or wait until the server has overwritten it"


async def remove_segments(session: Session) -> bool:
    """Have the server write its files, which it says, and remove the log from before.

    A segment that is recycled keeps its bytes under a new name until it is written again, so
    ``wal_recycle`` is off meanwhile, and what was recycled before is written over: a switch fills
    the rest of a segment with zeros.
    """
    before = await _segments(session)
    if before is None:
        session.pend("wal", "this role may not list or switch the write-ahead log", _SUPERUSER)
        return await checkpoint(session)
    started = time.monotonic()
    async with _without_recycling(session) as allowed:
        written, left = await _leave(session, before) if allowed else (False, before)
    session.report(
        ScrubStep(
            action="remove_wal",
            target="pg_wal",
            lock="none",
            seconds=time.monotonic() - started,
            done=not left,
            detail=f"{len(before) - len(left)} of {len(before)} segments removed",
        )
    )
    if not allowed:
        session.pend("wal_recycle", "this role may not turn wal_recycle off", _SUPERUSER)
    elif left:
        session.pend(
            "wal",
            f"{len(left)} segments from before are kept",
            "see replication slots, wal_keep_size and failed archiving; then run it again",
        )
    return written if allowed else await checkpoint(session)


async def _segments(session: Session) -> frozenset[str] | None:
    try:
        rows = await session.fetch(_SEGMENTS)
    except asyncpg.InsufficientPrivilegeError:
        return None
    if not await session.value("select has_function_privilege('pg_switch_wal()', 'execute')"):
        return None
    return frozenset(row.name for row in rows)


async def _leave(session: Session, before: frozenset[str]) -> tuple[bool, frozenset[str]]:
    """Switch past every segment of ``before``; say if files were written, and what is there."""
    left = before
    for _ in range(_ROUNDS):
        # The current one is among them at first, then those that were recycled ahead of it.
        for _ in range(len(before) + 1):
            current = await session.value(_CURRENT)
            if current not in before:
                break
            # At the very beginning of a segment a switch does nothing.
            await session.fetch("select pg_logical_emit_message(false, 'memory', '')")
            await session.fetch("select pg_switch_wal()")
        if not await checkpoint(session):
            return False, left
        left = before & (await _segments(session) or before)
        if not left:
            break
    return True, left


@asynccontextmanager
async def _without_recycling(session: Session) -> AsyncIterator[bool]:
    """Turn ``wal_recycle`` off and back to what it was; yields false if that is not allowed."""
    if await session.value("select current_setting('wal_recycle') = 'off'"):
        yield True
        return
    by_us = "alter system reset wal_recycle"
    if await session.value(
        "select coalesce(sourcefile like '%postgresql.auto.conf', false)"
        " from pg_settings where name = 'wal_recycle'"
    ):
        by_us = "alter system set wal_recycle = on"
    if await session.attempt("alter system set wal_recycle = off") == FORBIDDEN:
        yield False
        return
    try:
        await _reload(session, "off")
        yield True
    finally:
        await asyncio.shield(_restore(session, by_us))


async def _restore(session: Session, statement: str) -> None:
    await session.renew()
    await session.fetch(statement)
    await session.fetch("select pg_reload_conf()")


async def _reload(session: Session, wanted: str) -> None:
    await session.fetch("select pg_reload_conf()")
    for _ in range(100):
        if await session.value("select current_setting('wal_recycle')") == wanted:
            return
        await asyncio.sleep(0.01)


async def checkpoint(session: Session) -> bool:
    """Write the server's buffers to its files, and drop the files of what was replaced."""
    started = time.monotonic()
    state = await session.attempt("checkpoint")
    session.report(
        ScrubStep(
            action="checkpoint",
            target="files",
            lock="none",
            seconds=time.monotonic() - started,
            done=state is None,
            detail="this role may not" if state else "",
        )
    )
    if state is not None:
        session.pend(
            "checkpoint",
            "the files are written at the server's next checkpoint (checkpoint_timeout)",
            "grant pg_checkpoint to the role, or wait",
        )
    return state is None

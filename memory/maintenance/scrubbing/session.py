"""A connection that scrubs: its statements are timed, wait for locks a while, and are reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import AnyRow, fetch
from memory.maintenance.scrubbing.report import Pending, ScrubStep

__all__ = ["BUSY", "FORBIDDEN", "Session"]

FORBIDDEN: Final = "42501"
BUSY: Final = frozenset({"55P03", "40P01"})
"""The lock was not to be had in time, or a deadlock was resolved at our cost."""


class Session:
    """Statements outside any transaction, their steps, and what stays pending."""

    def __init__(
        self,
        connection: AsyncConnection,
        *,
        lock_timeout: float,
        attempts: int,
        progress: Callable[[ScrubStep], object] | None,
    ) -> None:
        self.connection = connection
        self.steps: list[ScrubStep] = []
        self.pending: list[Pending] = []
        self._lock_timeout = lock_timeout
        self._attempts = attempts
        self._progress = progress

    async def prepare(self) -> None:
        """Set what the statements need; the connection is not to be used by others afterwards."""
        milliseconds = max(1, round(self._lock_timeout * 1000))
        settings = {
            "default_transaction_read_only": "off",
            "lock_timeout": f"{milliseconds}ms",
            "search_path": "pg_catalog, pg_temp",
            "statement_timeout": "0",
            # A commit need not wait for the disk: a checkpoint, or flush(), follows them all.
            "synchronous_commit": "off",
        }
        await self.fetch(
            "select set_config(s.name, s.value, false)"
            " from unnest($1::text[], $2::text[]) as s (name, value)",
            list(settings),
            list(settings.values()),
        )

    async def flush(self) -> None:
        """Have the log of everything so far written to disk."""
        await self.fetch("set synchronous_commit = local")
        await self.fetch("select pg_logical_emit_message(true, 'memory', '')")

    async def renew(self) -> None:
        """Connect again if a cancellation has cost the connection."""
        await self.connection.get_raw_connection()

    async def fetch(self, statement: str, *values: object) -> list[AnyRow]:
        """Run a statement that is no step, and return its rows."""
        return await fetch(self.connection, statement, *values)

    async def value(self, statement: str, *values: object) -> object:
        """Return the first column of the first row."""
        return (await self.fetch(statement, *values))[0][0]

    async def attempt(self, statement: str) -> str | None:
        """Run a statement; return the SQLSTATE of a refusal that a scrub lives with."""
        try:
            await self.fetch(statement)
        except asyncpg.PostgresError as error:
            if error.sqlstate == FORBIDDEN or error.sqlstate in BUSY:
                return error.sqlstate
            raise
        return None

    async def step(
        self,
        action: str,
        target: str,
        statement: str,
        *,
        lock: str,
        size: str | None = None,
        once: bool = False,
    ) -> bool:
        """Run a statement as a step, again if its lock was not to be had; say if it was done.

        ``size`` is an SQL expression of the target's bytes. With ``once`` it is not run again.
        """
        attempts = 1 if once else self._attempts
        before = await self._size(size)
        waited = 0.0
        for number in range(1, attempts + 1):
            started = time.monotonic()
            state = await self.attempt(statement)
            seconds = time.monotonic() - started
            if state not in BUSY or number == attempts:
                break
            waited += seconds
            # Whoever waits behind a lock request waits for its holder: give way in between.
            await asyncio.sleep(min(1.0, 0.05 * 2**number))
        self.report(
            ScrubStep(
                action=action,
                target=target,
                lock=lock,
                seconds=seconds,
                waited=waited,
                bytes_before=before,
                bytes_after=None if state else await self._size(size),
                done=state is None,
                detail=_reason(state),
            )
        )
        if state is not None:
            self._refused(action, target, state)
        return state is None

    def report(self, step: ScrubStep) -> None:
        """Keep a step and tell whoever listens."""
        self.steps.append(step)
        if self._progress is not None:
            self._progress(step)

    def pend(self, code: str, detail: str, remedy: str) -> None:
        """Keep what stays pending, once."""
        item = Pending(code=code, detail=detail, remedy=remedy)
        if item not in self.pending:
            self.pending.append(item)

    def _refused(self, action: str, target: str, state: str) -> None:
        if state in BUSY:
            self.pend(
                "locked", f"{action} {target}", "run it again when no long transaction is open"
            )
        else:
            self.pend("privilege", f"{action} {target}", "run it as the owner or a superuser")

    async def _size(self, expression: str | None) -> int | None:
        if expression is None:
            return None
        size = await self.value(f"select {expression}")
        return size if isinstance(size, int) else None


def _reason(state: str | None) -> str:
    if state is None:
        return ""
    return "the lock was not free in time" if state in BUSY else "this role may not"

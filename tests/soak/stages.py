"""Where the machine plays: the store in this process, or PostgreSQL and what can happen to it.

A verb is run in a *way*: as it is; inside a transaction of the caller's, which commits, is rolled
back or is cut off by the server before it commits; torn by the end of every backend in the middle
of it; or cancelled by its caller. After the last two nobody knows whether it happened, but it did
as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from memory import InMemoryStore, Memory, PostgresStore, StoreUnavailableError
from memory.urls import normalize_url
from observed import Observed, image_in_tables, image_on_the_shelf, in_tables, on_the_shelf
from stores import leaks

Call = Callable[[Memory], Awaitable[Any]]
WAYS = ("plain", "joined", "rolled back", "cut", "torn", "cancelled")
UNDONE = ("rolled back", "cut")
UNKNOWN = ("torn", "cancelled")


@dataclass
class Outcome:
    """What a call returned or raised; ``error`` is None where it returned."""

    result: Any = None
    error: BaseException | None = None


async def outcome_of(call: Awaitable[Any]) -> Outcome:
    try:
        return Outcome(result=await call)
    except (Exception, asyncio.CancelledError) as error:
        return Outcome(error=error)


class InProcess:
    """The store in this process, new for every history."""

    ways: tuple[str, ...] = ("plain",)
    restarts = False

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def begin(self, **plugs: Any) -> None:
        self.store = InMemoryStore()
        self._memory = Memory(self.store, **plugs)

    async def run(self, call: Call, way: str, delay: float, *, operator: bool) -> Outcome:
        return await outcome_of(call(self._memory))

    async def observe(self, tenant: str, start: datetime) -> Observed:
        return on_the_shelf(self.store, tenant, start)

    async def image(self, tenant: str) -> str:
        return image_on_the_shelf(self.store, tenant)

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class Urls:
    """One database: the application's URL, the operator's, the owner's and the superuser's."""

    app: str
    operator: str
    owner: str
    superuser: str


class InPostgres:
    """One database for many histories, whose tenants have other names."""

    ways = WAYS

    def __init__(self, urls: Urls, restart: Callable[[bool], None] | None = None) -> None:
        self.urls = urls
        self.restarts = restart is not None
        self._restart = restart
        self.runner = asyncio.Runner()
        self._stores = {
            False: PostgresStore(urls.app),
            True: PostgresStore(urls.operator),
        }
        self._engines = {
            False: create_async_engine(normalize_url(urls.app)),
            True: create_async_engine(normalize_url(urls.operator)),
        }
        self.inspector: Any = None

    def begin(self, **plugs: Any) -> None:
        self._plugs = plugs
        self._memories = {who: Memory(store, **plugs) for who, store in self._stores.items()}

    async def looking(self) -> Any:
        """The superuser's connection, past every policy."""
        if self.inspector is None or self.inspector.is_closed():
            self.inspector = await asyncpg.connect(self.urls.superuser)
        return self.inspector

    async def run(self, call: Call, way: str, delay: float, *, operator: bool) -> Outcome:
        if way in ("plain", *UNKNOWN):
            verb = asyncio.ensure_future(outcome_of(call(self._memories[operator])))
            if way == "torn":
                await asyncio.sleep(delay)
                await self._end_backends()
            elif way == "cancelled":
                await asyncio.sleep(delay)
                verb.cancel()
            found = (await asyncio.gather(verb, return_exceptions=True))[0]
            if way in UNKNOWN:
                await self._quiet()
            return found if isinstance(found, Outcome) else Outcome(error=found)
        return await self._joined(call, way, operator=operator)

    async def _joined(self, call: Call, way: str, *, operator: bool) -> Outcome:
        # The pool may hold what a restart or an end of all backends has left of connections.
        await self._engines[operator].dispose()
        connection = await self._engines[operator].connect()
        transaction = await connection.begin()
        memory = Memory(PostgresStore.joined(connection), **self._plugs)
        found = await outcome_of(call(memory))
        if way == "joined":
            await transaction.commit()
        elif way == "rolled back":
            await transaction.rollback()
        else:
            await self._end_backends()
            with contextlib.suppress(SQLAlchemyError, OSError):
                await transaction.commit()
            await self._quiet()
        with contextlib.suppress(SQLAlchemyError, OSError):
            await connection.close()
        return found

    async def _end_backends(self) -> None:
        inspector = await self.looking()
        await inspector.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and usename <> current_user"
            " and backend_type = 'client backend'"
        )

    async def _quiet(self) -> None:
        """Wait until no backend of the application works, and none that was ended is left."""
        inspector = await self.looking()
        for _ in range(2_000):
            busy = await inspector.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and usename <> current_user and backend_type = 'client backend'"
                " and state is distinct from 'idle'"
            )
            if not busy:
                break
            await asyncio.sleep(0.005)
        else:
            raise AssertionError("a backend does not come to an end")
        # What still is idle may be about to read that its client has gone, or that it must end.
        await asyncio.sleep(0.01)

    async def raw(self, who: str, tenant: str, sql: str, *values: Any) -> Outcome:
        """What somebody types into psql, in a transaction of its own."""
        connection = await asyncpg.connect(getattr(self.urls, who))
        try:
            async with connection.transaction():
                if who != "superuser":
                    await connection.execute(
                        "select set_config('app.current_tenant', $1, true)", tenant
                    )
                return Outcome(result=await connection.execute(sql, *values))
        except asyncpg.PostgresError as error:
            return Outcome(error=error)
        finally:
            await connection.close()

    async def observe(self, tenant: str, start: datetime) -> Observed:
        return await in_tables(await self.looking(), tenant, start)

    async def image(self, tenant: str) -> str:
        return await image_in_tables(await self.looking(), tenant)

    async def restart(self, immediately: bool) -> None:
        """Restart the server; every connection of the pools is dead, and each call says so once."""
        assert self._restart is not None
        await asyncio.to_thread(self._restart, immediately)
        for memory in self._memories.values():
            for _ in range(10):
                found = await outcome_of(memory.records("nobody"))
                if found.error is None:
                    break
                assert isinstance(found.error, StoreUnavailableError), repr(found.error)
                assert leaks(found.error, []) == []
            else:
                raise AssertionError("the store does not come back after a restart")

    async def close(self) -> None:
        for engine in self._engines.values():
            await engine.dispose()
        for store in self._stores.values():
            await store.close()
        if self.inspector is not None:
            await self.inspector.close()

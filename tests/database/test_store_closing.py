"""What ``close`` leaves open: nothing of a store's own, and an engine of a host's as it was."""

from __future__ import annotations

import asyncio

import psycopg
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from servers import Database


async def test_close_ends_the_connections_and_a_later_call_opens_new_ones(
    database: Database,
) -> None:
    memory = Memory(PostgresStore(database.app_url), subject_pepper="pepper")
    for _ in range(2):
        await memory.remember("acme", text="x", subject_keys="p")
        assert await connections(database, expected=1) == 1
        await memory.close()
        assert await connections(database, expected=0) == 0


async def test_close_leaves_an_engine_of_the_hosts_open(database: Database) -> None:
    engine = create_async_engine(normalize_url(database.app_url))
    async with Memory(PostgresStore(engine), subject_pepper="pepper") as memory:
        await memory.remember("acme", text="x", subject_keys="p")
    assert await connections(database, expected=1) == 1
    await engine.dispose()
    assert await connections(database, expected=0) == 0


async def connections(database: Database, *, expected: int) -> int:
    """Count the application's; a server notices the end of one a little later."""
    found = -1
    for _ in range(100):
        with psycopg.connect(database.superuser_url) as superuser:
            rows = superuser.execute(
                "select count(*) from pg_stat_activity"
                " where datname = current_database() and usename = %s",
                [database.role("app")],
            )
            [(found,)] = rows.fetchall()
        if found == expected:
            break
        await asyncio.sleep(0.02)
    return found

"""The two mistakes with set_config fail in opposite directions, as the README says."""

from __future__ import annotations

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory, PostgresStore
from memory.urls import normalize_url
from servers import Database

SET = "select set_config('app.current_tenant', 'shop', {})"
COUNT = "select count(*) from memory.records"


async def remember_one(database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        await memory.remember("shop", text="Dana moved", subject_keys="customer:dana")


async def test_true_outside_a_transaction_fails_closed(
    database: Database, app: asyncpg.Connection
) -> None:
    await remember_one(database)
    await app.execute(SET.format("true"))
    assert await app.fetchval(COUNT) == 0
    async with app.transaction():
        await app.execute(SET.format("true"))
        assert await app.fetchval(COUNT) == 1
    assert await app.fetchval(COUNT) == 0


async def test_false_on_a_pooled_connection_fails_open(database: Database) -> None:
    await remember_one(database)
    engine = create_async_engine(normalize_url(database.app_url), pool_size=1, max_overflow=0)
    async with engine.begin() as first:
        await first.execute(text(SET.format("true")))
    async with engine.connect() as next_borrower:
        assert (await next_borrower.execute(text(COUNT))).scalar() == 0
    async with engine.begin() as first:
        await first.execute(text(SET.format("false")))
    async with engine.connect() as next_borrower:
        assert (await next_borrower.execute(text(COUNT))).scalar() == 1
    await engine.dispose()

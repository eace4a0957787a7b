"""A caller's transaction that fails, is shared, meets another or is rolled back."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from joining import Joined, order, orders
from memory import InstallError, Memory, RetryableError, StoreUnavailableError
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection
from servers import Postgres
from stores import leaks


async def test_a_transaction_that_failed_or_a_connection_that_closed_is_said_so(
    engine: AsyncEngine, joined: Joined, tenant: str
) -> None:
    async with engine.connect() as connection:
        memory = joined(connection)
        with pytest.raises(Exception, match="division"):
            await connection.execute(text("select 1/0"))
        with pytest.raises(StoreUnavailableError) as caught:
            await memory.remember(tenant, text=tenant, subject_keys="ann")
        assert leaks(caught.value, [tenant]) == []
        await connection.rollback()
        await memory.remember(tenant, text=tenant, subject_keys="ann")
    with pytest.raises(StoreUnavailableError) as caught:
        await memory.remember(tenant, text=tenant, subject_keys="ann")
    assert leaks(caught.value, [tenant]) == []


async def test_tasks_that_share_the_connection_take_turns(
    engine: AsyncEngine, joined: Joined, tenant: str
) -> None:
    async with engine.begin() as connection:
        memory = joined(connection)
        await asyncio.gather(
            *(
                memory.remember(f"{tenant}-{n % 2}", text=f"tea {n}", subject_keys="ann")
                for n in range(10)
            )
        )
        for n in range(2):
            found = await memory.records(f"{tenant}-{n}")
            assert {int(r.text.split()[1]) % 2 for r in found} == {n}
            assert len(found) == 5


async def test_a_deadlock_with_another_transaction_is_the_callers_to_retry(
    engine: AsyncEngine, joined: Joined, own: Memory, superuser: Connection, tenant: str
) -> None:
    for person in ("ann", "bob"):
        await own.remember(tenant, text="tea", subject_keys=person)

    async def both(first: str, second: str, ready: asyncio.Event, other: asyncio.Event) -> bool:
        async with engine.connect() as connection:
            memory = joined(connection)
            await order(connection, tenant)
            await memory.forget(tenant, subject_key=first)
            ready.set()
            await other.wait()
            try:
                await memory.forget(tenant, subject_key=second)
            except RetryableError:
                # The savepoint is gone, the rest of the transaction is not.
                assert (await connection.execute(text("select 1"))).scalar_one() == 1
                await connection.rollback()
                return False
            await connection.commit()
            return True

    one, two = asyncio.Event(), asyncio.Event()
    done = await asyncio.gather(both("ann", "bob", one, two), both("bob", "ann", two, one))
    assert sorted(done) == [False, True]
    assert await own.records(tenant) == []
    assert await orders(superuser, tenant) == 1


async def test_a_pepper_whose_claim_was_rolled_back_is_checked_again(
    server: Postgres,
) -> None:
    with server.migrated() as database:
        engine = create_async_engine(normalize_url(database.app_url))
        async with engine.connect() as connection:
            joined = Memory(PostgresStore.joined(connection), subject_pepper="one")
            await joined.remember("acme", text="Ann called", subject_keys="ann")
            await connection.rollback()
            async with Memory(PostgresStore(database.app_url), subject_pepper="two") as other:
                await other.remember("acme", text="Bob called", subject_keys="bob")
            with pytest.raises(InstallError):
                await joined.remember("acme", text="Ann called", subject_keys="ann")
        await engine.dispose()

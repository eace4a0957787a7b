"""Calls that are ended, time out or find their connection gone: ours to say, and the next works."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memory import Memory, StoreUnavailableError
from memory.stores.postgres import PostgresStore
from memory.urls import normalize_url
from rawsql import Connection, act
from refusing import PERSON, TEXT, VERBS, WRITES, opened, raises
from servers import Database
from silenced import silenced
from stores import rows_of


@contextlib.asynccontextmanager
async def person_locked(inspector: Connection, tenant: str) -> AsyncIterator[None]:
    """Somebody else is erasing the person: every write about them waits."""
    transaction = inspector.transaction()
    await transaction.start()
    await act(inspector, tenant)
    await inspector.execute(
        "insert into memory.subjects (tenant_key, subject_hash) values ($1, $2)",
        tenant,
        # The hash under which the store will want it.
        Memory(subject_pepper="pepper").subject_fingerprint(tenant, subject_key=PERSON),
    )
    yield
    await transaction.rollback()


async def backends(inspector: Connection, *, waiting: bool) -> list[int]:
    rows = await inspector.fetch(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'victim' and (wait_event_type = 'Lock') = $1",
        waiting,
    )
    return [row["pid"] for row in rows]


async def waiting(inspector: Connection) -> int:
    """The backend of the call that waits for a lock."""
    while True:
        if found := await backends(inspector, waiting=True):
            return found[0]
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_timeout_is_unavailable_and_the_next_call_works(
    shared: Database, inspector: Connection, tenant: str, setting: str, verb: str
) -> None:
    # Long enough for the call that must succeed, on a busy machine too.
    async with opened(shared.app_url, settings={setting: "400"}, pool_size=1) as memory:
        await memory.ready()
        async with person_locked(inspector, tenant):
            with raises(StoreUnavailableError):
                await VERBS[verb](memory, tenant)
        assert "records" not in await rows_of(inspector, tenant)
        await VERBS[verb](memory, tenant)


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("verb", sorted(WRITES))
async def test_a_call_that_an_operator_ends_is_unavailable_and_the_next_works(
    shared: Database, inspector: Connection, connect: Any, tenant: str, function: str, verb: str
) -> None:
    admin = await connect("superuser")
    settings = {"application_name": "victim"}
    async with opened(shared.app_url, settings=settings, pool_size=1) as memory:
        await memory.ready()
        async with person_locked(inspector, tenant):
            call = asyncio.ensure_future(VERBS[verb](memory, tenant))
            await admin.execute(f"select {function}($1)", await waiting(admin))
            with raises(StoreUnavailableError):
                await call
        assert "records" not in await rows_of(inspector, tenant)
        await VERBS[verb](memory, tenant)


@pytest.mark.parametrize("verb", ["remember", "forget", "get"])
async def test_a_pooled_connection_that_died_costs_no_call(
    shared: Database, inspector: Connection, tenant: str, verb: str
) -> None:
    settings = {"application_name": "victim"}
    call = VERBS[verb]
    async with opened(shared.app_url, settings=settings, pool_size=3) as memory:
        await asyncio.gather(*(call(memory, tenant) for _ in range(3)))
        for pid in await backends(inspector, waiting=False):
            await inspector.execute("select pg_terminate_backend($1, 5000)", pid)
        # What a server says last is read in one turn of the loop, that it has gone in the next.
        await asyncio.sleep(0.05)
        await asyncio.gather(*(call(memory, tenant) for _ in range(3)))


@pytest.mark.parametrize("verb", ["remember", "forget", "get"])
async def test_a_connection_that_went_back_while_it_is_being_closed_costs_no_call(
    shared: Database, tenant: str, verb: str
) -> None:
    """As a call leaves it that was cancelled twice: hosts on anyio cancel until it has ended."""
    engine = create_async_engine(normalize_url(shared.app_url), pool_size=1, max_overflow=0)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    await VERBS[verb](memory, tenant)
    async with engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
    closing = asyncio.create_task(driver.close())
    await asyncio.sleep(0)
    assert driver.is_closed()
    assert not closing.done()
    await VERBS[verb](memory, tenant)
    await closing
    await engine.dispose()


async def test_a_pool_without_a_free_connection_is_unavailable(
    shared: Database, tenant: str
) -> None:
    url = normalize_url(shared.app_url)
    engine = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    memory = Memory(PostgresStore(engine), redactor=None, subject_pepper="pepper")
    async with engine.connect():
        for verb in sorted(WRITES):
            with raises(StoreUnavailableError):
                await VERBS[verb](memory, tenant)
    await VERBS["remember"](memory, tenant)
    await engine.dispose()


async def test_a_connection_that_replaces_one_that_died_has_the_level_of_the_others(
    shared: Database, inspector: Connection, tenant: str
) -> None:
    """An erasure is refused in any level but READ COMMITTED."""
    settings = {
        "application_name": "victim",
        "default_transaction_isolation": "serializable",
    }
    async with opened(shared.app_url, settings=settings, pool_size=2) as memory:
        await memory.remember(tenant, text=TEXT, subject_keys=PERSON)
        for pid in await backends(inspector, waiting=False):
            await inspector.execute("select pg_terminate_backend($1, 5000)", pid)
        assert (await memory.forget(tenant, subject_key=PERSON)).counts.records == 1
    assert "records" not in await rows_of(inspector, tenant)


async def test_a_server_that_fell_silent_keeps_neither_a_call_from_ending_nor_a_store_from_closing(
    shared: Database, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with silenced(shared, tmp_path) as (url, answers):
        memory = Memory(PostgresStore(url, pool_size=3), redactor=None, subject_pepper="pepper")
        await asyncio.gather(*(memory.records(tenant) for _ in range(3)))
        answers.clear()
        for verb in ("get", "forget"):
            call = asyncio.ensure_future(VERBS[verb](memory, tenant))
            await asyncio.sleep(0.05)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(call, 20)
        await asyncio.wait_for(memory.close(), 20)
        answers.set()
        assert await memory.records(tenant) == []
        await memory.close()
    assert caplog.text == ""
